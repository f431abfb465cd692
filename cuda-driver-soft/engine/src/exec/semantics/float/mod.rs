//! Floating-point arithmetic on `.f32` and `.f64`: `add sub mul fma div rcp sqrt abs neg min max copysign`.

mod double;
mod single;

pub use double::*;
pub use single::*;

/// Whether code for this target's plainest CPU has a fused multiply-add instruction: what to pass as `fused` to
/// [`fma_f32`] and [`fma_f64`] in code that is not compiled for a chosen instruction set.
pub const BASELINE_FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
