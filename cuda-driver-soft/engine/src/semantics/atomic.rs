//! The new values that `atom` and `red` write, from the old value `a` and the operand `b`. Operations that other
//! instructions also have (`.and .or .xor .min .max`, and `.add` of integers and of packed pairs) are in the modules of
//! those instructions.

use super::float::{add_f32, add_f64};
use super::half::{add_bf16, add_f16};
use ptx::ir::Rounding;

/// `atom.inc.u32`: counts up to `b`, then restarts at 0.
#[inline(always)]
pub fn inc(a: u32, b: u32) -> u32 {
    if a >= b { 0 } else { a.wrapping_add(1) }
}

/// `atom.dec.u32`: counts down to 0, then restarts at `b`. Values above `b` also become `b`.
#[inline(always)]
pub fn dec(a: u32, b: u32) -> u32 {
    if a == 0 || a > b { b } else { a.wrapping_sub(1) }
}

/// `atom.cas`: `c` if the old value is `b`, else the old value.
#[inline(always)]
pub fn cas<T: PartialEq>(a: T, b: T, c: T) -> T {
    if a == b { c } else { a }
}

/// `atom.add.f32`. On an H200, subnormal operands and results are flushed in global memory, but not in shared memory.
#[inline(always)]
pub fn atom_add_f32(a: f32, b: f32, global: bool) -> f32 {
    add_f32(a, b, Rounding::Rn, global, false)
}

/// `atom.add.f64`. On an H200, a NaN operand is returned unchanged in global memory, even if it is a signalling one; of
/// two NaNs, `b` is returned. In shared memory a NaN becomes quiet; of two NaNs, the old value keeps its payload.
#[inline(always)]
pub fn atom_add_f64(a: f64, b: f64, global: bool) -> f64 {
    if global && b.is_nan() {
        b
    } else if global && a.is_nan() {
        a
    } else {
        add_f64(b, a, Rounding::Rn)
    }
}

/// `atom.add.noftz.f16`
#[inline(always)]
pub fn atom_add_f16(a: u16, b: u16) -> u16 {
    add_f16(a, b, false, false)
}

/// `atom.add.noftz.bf16`
#[inline(always)]
pub fn atom_add_bf16(a: u16, b: u16) -> u16 {
    add_bf16(a, b)
}
