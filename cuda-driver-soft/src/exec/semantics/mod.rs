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
//! | `round` | the one place where an exact value becomes a rounded one |

pub mod approx;
pub mod bits;
pub mod carry;
pub mod compare;
pub mod cvt;
pub(crate) mod elementary;
pub mod float;
pub mod half;
pub mod int;
pub mod logic;
pub(crate) mod round;

#[cfg(test)]
mod tests;
