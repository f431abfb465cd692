//! The results of PTX instructions for one thread: pure functions with the manual's names.
//!
//! - **Values.** Integers are Rust's integers of the instruction's type; `.f32` and `.f64` are `f32` and `f64`;
//!   `.f16` and `.bf16` are their bits in a `u16`, the packed pairs a `u32` with the first element in the low half;
//!   predicates are `bool`. Results depend only on the arguments, and no function panics.
//! - **Modifiers** are the last arguments, in the manual's order: rounding, `ftz`, `sat`. Except in `matrix` and
//!   `texture`, the function of an instruction with modifiers is `#[inline(always)]`. A caller that passes constants
//!   gets the code of that form alone, which vectorises over lanes if the operation can be vectorised. A caller that
//!   passes variables gets one function for all forms.
//! - **Bits do not depend on the CPU.** The compiler contracts no operations. If the baseline CPU has no instruction
//!   for an operation, another computation gives the same bits; the argument `fused` of the fused multiply-adds selects
//!   it. The host must round to nearest and must not flush subnormal numbers.
//! - **NaN.** `.f16`, `.bf16` and `.f32` arithmetic returns the same NaN for all NaN operands; `.f64` keeps
//!   the payload of an operand.
//!
//! | file | instructions |
//! |---|---|
//! | `int` | add sub mul mad mul24 mad24 div rem abs neg min max sad, u16x2 and s16x2 |
//! | `logic` | and or xor not cnot shl shr lop3 shf selp slct |
//! | `compare` | setp set testp |
//! | `float` | f32 and f64: add sub mul fma div rcp sqrt abs neg min max copysign |
//! | `half` | f16, f16x2, bf16, bf16x2: add sub mul fma abs neg min max, and their comparison |
//! | `cvt` | cvt, cvt.pack |
//! | `approx` | rcp sqrt rsqrt sin cos lg2 ex2 tanh with .approx, div.approx, div.full |
//! | `bits`, `carry` | bfe bfi bfind bmsk brev clz popc fns prmt szext dp2a dp4a; add.cc addc sub.cc subc mad.cc madc |
//! | `atomic` | the operations of atom and red that no other instruction has |
//! | `matrix` | the sums of mma, wmma and wgmma |
//! | `mbarrier` | mbarrier |
//! | `texture` | the texels that tex and tld4 read, and their filtering; the texels that sust.p stores |
//! | `video` | vadd vsub vabsdiff vmin vmax vshl vshr vset vmad, and the forms for two and four elements |
//! | `collective` | the lanes that shfl reads |
//! | `round`, `elementary` | the rounding of exact values; functions in f64 that `approx` uses |

#![cfg_attr(not(test), forbid(unsafe_code))]

pub mod approx;
pub mod atomic;
pub mod bits;
pub mod carry;
pub mod collective;
pub mod compare;
pub mod cvt;
pub(crate) mod elementary;
pub mod float;
pub mod half;
pub mod int;
pub mod logic;
pub mod matrix;
pub mod mbarrier;
pub(crate) mod round;
pub mod texture;
pub mod video;

#[cfg(test)]
mod tests;
