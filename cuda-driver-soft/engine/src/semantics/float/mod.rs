//! Floating-point arithmetic on `.f32` and `.f64`: `add sub mul fma div rcp sqrt abs neg min max copysign`.

mod double;
mod single;

pub use double::*;
pub use single::*;

/// True if every CPU of this target has a fused multiply-add instruction. Code that is not compiled for a particular
/// instruction set passes this as the argument `fused` of [`fma_f32`] and [`fma_f64`].
pub const BASELINE_FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
