//! `mma` of shape `.m8n8k4` and `.f16`: four products. Each is computed by four lanes of the lower half of the warp and
//! the four lanes 16 above them.
//!
//! GPUs of sm_90 have no such instruction. The sums are those of the code that ptxas emits for them.

#![forbid(unsafe_code)]

use crate::code::matrix::MatrixInst;
use crate::code::registers::{RegFile, Slot};
use crate::lanes::Mask;
use crate::semantics::cvt::cvt_f16_from_f32;
use crate::semantics::float::{BASELINE_FUSED, add_f32, fma_f32};
use crate::semantics::half::f16_to_f32;
use ptx::ir::{Mma, Rounding, Type};

/// Number of products.
const PRODUCTS: usize = 4;
/// Rows of A and columns of B.
const LINES: usize = 8;

/// Returns the lane of the warp that is lane `line`, 0 to 7, of the eight lanes of a product.
fn lane_of(product: usize, line: usize) -> usize {
    4 * product + line % 4 + line / 4 * 16
}

/// Returns the row and column of register `i` of an f32 fragment in lane `line` of a product.
fn place_of_single(line: usize, i: usize) -> (usize, usize) {
    ((line & 1) + (i & 2) + line / 4 * 4, (i & 4) + (line & 2) + (i & 1))
}

/// Returns the f16 halves of a lane's registers, as f32.
fn halves(file: &mut RegFile, slots: &[Slot], lane: usize) -> Vec<f32> {
    let words: Vec<u64> = slots.iter().map(|slot| file.get(*slot, 4, lane)).collect();
    let halves = words.iter().flat_map(|word| [*word as u16, (*word >> 16) as u16]);
    halves.map(f16_to_f32).collect()
}

/// Returns the rows of A, or the columns of B. `swapped` is true if the matrix is stored by columns instead (A), or by
/// rows (B).
fn factors(file: &mut RegFile, slots: &[Slot], product: usize, swapped: bool) -> [[f32; 4]; LINES] {
    let mut lines = [[0.0; 4]; LINES];
    for line in 0..LINES {
        for (i, element) in halves(file, slots, lane_of(product, line))
            .into_iter()
            .enumerate()
            .take(4)
        {
            match swapped {
                false => lines[line][i] = element,
                true => lines[i + line / 4 * 4][line % 4] = element,
            }
        }
    }
    lines
}

/// Runs the instruction.
pub(super) fn multiply(file: &mut RegFile, call: &MatrixInst, mma: &Mma, mask: Mask) {
    let [a, b, c] = match call.srcs.as_slice() {
        [a0, a1, b0, b1, c @ ..] => [&[*a0, *a1], &[*b0, *b1], c],
        _ => return,
    };
    for product in 0..PRODUCTS {
        let rows = factors(file, a, product, mma.swapped[0]);
        let columns = factors(file, b, product, mma.swapped[1]);
        let mut sums = [[0.0; LINES]; LINES];
        for line in 0..LINES {
            let lane = lane_of(product, line);
            if mma.c == Type::F32 {
                for (i, slot) in c.iter().enumerate() {
                    let (row, column) = place_of_single(line, i);
                    sums[row][column] = f32::from_bits(file.get(*slot, 4, lane) as u32);
                }
            } else {
                for (to, from) in sums[line].iter_mut().zip(halves(file, c, lane)) {
                    *to = from;
                }
            }
        }
        for (sums, row) in sums.iter_mut().zip(&rows) {
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = dot(row, column, *sum, mma.d == Type::F16);
            }
        }
        for line in 0..LINES {
            let lane = lane_of(product, line);
            for (i, slot) in call.dsts.iter().enumerate() {
                let value = if mma.d == Type::F32 {
                    let (row, column) = place_of_single(line, i);
                    u64::from(sums[row][column].to_bits())
                } else {
                    let half = |i: usize| u64::from(cvt_f16_from_f32(sums[line][i], Rounding::Rn, false, false, false));
                    half(2 * i) | half(2 * i + 1) << 16
                };
                file.set(*slot, 4, mask & 1 << lane, |_| value);
            }
        }
    }
}

/// Returns the sum of four products and `c`. If `pairs` is true, as for an f16 result, products are added in pairs;
/// otherwise they are added one after another, and then `c`.
fn dot(a: &[f32; 4], b: &[f32; 4], c: f32, pairs: bool) -> f32 {
    let fma = |i: usize, sum| fma_f32(a[i], b[i], sum, Rounding::Rn, false, false, BASELINE_FUSED);
    let add = |a, b| add_f32(a, b, Rounding::Rn, false, false);
    match pairs {
        true => add(add(c, fma(1, a[0] * b[0])), fma(3, a[2] * b[2])),
        false => add(c, fma(3, fma(2, fma(1, fma(0, 0.0))))),
    }
}
