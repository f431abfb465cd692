//! What each PTX instruction computes, for one thread: pure functions with the manual's names.
//!
//! - **Values.** Integers are Rust's integers of the instruction's type; `.f32` and `.f64` are `f32` and `f64`;
//!   `.f16` and `.bf16` are their bits in a `u16`, the packed pairs a `u32` with the first element in the low half;
//!   predicates are `bool`. No function depends on anything but its arguments, and none panics.
//! - **Modifiers** are the last arguments, in the manual's order: rounding, `ftz`, `sat`. Every function is
//!   `#[inline(always)]`: a caller that passes constants gets the code of that form alone, which vectorises over lanes
//!   where the operation allows it; a caller that passes variables gets one function for all forms.
//! - **Bits do not depend on the CPU.** Nothing is contracted, and what has no instruction on the baseline CPU is
//!   computed another way to the same bits. The argument `fused` of the fused multiply-adds only says which way.
//!   The host's rounding mode must be to nearest, and its own flushing of subnormal numbers off.
//! - **NaN.** A NaN that `.f16`, `.bf16` and `.f32` arithmetic makes or passes on is always the same one; `.f64` keeps
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
//! | `atomic` | what atom and red compute, where no other instruction does |
//! | `texture` | which texels tex and tld4 read, and what comes of them; what sust.p stores |
//! | `video` | vadd vsub vabsdiff vmin vmax vshl vshr vset vmad, and the forms for two and four elements |
//! | `affine` | integer instructions on rows in which each lane has the same step to the next |
//! | `round`, `elementary` | the one place where an exact value becomes a rounded one; functions in f64 below `approx` |

pub mod affine;
pub mod approx;
pub mod atomic;
pub mod bits;
pub mod carry;
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
