//! The product of two matrices, computed element by element of the result.

#![forbid(unsafe_code)]

use crate::semantics::cvt::{cvt_f16_from_e4m3, cvt_f16_from_e5m2};
use crate::semantics::float::add_f32;
use crate::semantics::half;
use crate::semantics::matrix::{Factor, Factors, dot_f16, dot_f32, dot_f64, dot_s32};
use ptx::ir::{BoolOp, Mma, Rounding, Type};

/// A row of A or a column of B, in the representation that the sums use.
enum Line {
    Factors(Factors),
    Doubles(Vec<f64>),
    Integers(Vec<i32>),
    Bits(Vec<u64>),
}

impl Line {
    fn new(ty: Type, elements: &[u64]) -> Self {
        let factors = |format| Line::Factors(Factors::new(format, elements));
        let integers = |extend: fn(u8) -> i32| Line::Integers(elements.iter().map(|x| extend(*x as u8)).collect());
        match ty {
            Type::F16 => factors(Factor::F16),
            Type::BF16 => factors(Factor::Bf16),
            Type::TF32 => factors(Factor::Tf32),
            Type::E4M3 => factors(Factor::E4m3),
            Type::E5M2 => factors(Factor::E5m2),
            Type::F64 => Line::Doubles(elements.iter().map(|x| f64::from_bits(*x)).collect()),
            Type::B1 => Line::Bits(elements.to_vec()),
            Type::S8 => integers(|x| i32::from(x as i8)),
            Type::S4 => integers(|x| i32::from(x << 4) << 24 >> 28),
            _ => integers(i32::from),
        }
    }
}

/// Adds the product of A and B to C. The elements are bit patterns: A and C are stored by rows, B by columns.
pub(super) fn add(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64]) {
    let k = usize::from(mma.shape[2]).max(1);
    let lines = |all: &[u64], ty| -> Vec<Line> { all.chunks_exact(k).map(|line| Line::new(ty, line)).collect() };
    let (rows, columns) = (lines(a, mma.a), lines(b, mma.b));
    for (row, results) in rows.iter().zip(c.chunks_exact_mut(columns.len().max(1))) {
        for (column, result) in columns.iter().zip(results) {
            *result = dot(mma, row, column, *result);
        }
    }
}

/// Adds the product of A and B to C. `a` has half of the elements of each row, and `places` has their columns.
pub(super) fn add_sparse(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64], places: &[Vec<usize>]) {
    let k = usize::from(mma.shape[2]).max(2);
    let columns = b.len() / k;
    let is_small = matches!(mma.a, Type::E4M3 | Type::E5M2);
    for ((row, places), results) in a
        .chunks_exact(k / 2)
        .zip(places)
        .zip(c.chunks_exact_mut(columns.max(1)))
    {
        let elements = |column: &[u64]| -> Vec<u64> {
            let all = places.iter().map(|at| column.get(*at).copied().unwrap_or(0));
            all.collect()
        };
        let columns = b.chunks_exact(k).zip(results);
        if is_small {
            let row = SmallLine::new(mma.a, row);
            for (column, result) in columns {
                *result = row.dot(&SmallLine::new(mma.b, &elements(column)), mma.d, *result);
            }
        } else {
            let row = Line::new(mma.a, row);
            for (column, result) in columns {
                *result = dot(mma, &row, &Line::new(mma.b, &elements(column)), *result);
            }
        }
    }
}

/// A row of A or a column of B of 8-bit floating-point numbers. The code that ptxas emits for `mma` on sm_90 converts
/// them to f16 and adds the products of two halves one after the other: first those of elements 0 and 1 of every four,
/// then those of elements 2 and 3.
struct SmallLine([Factors; 2]);

impl SmallLine {
    fn new(ty: Type, elements: &[u64]) -> Self {
        let convert = |bits: &u64| match ty {
            Type::E4M3 => u64::from(cvt_f16_from_e4m3(*bits as u8, false)),
            _ => u64::from(cvt_f16_from_e5m2(*bits as u8, false)),
        };
        SmallLine([0, 1].map(|upper| {
            let half = elements.iter().enumerate().filter(|(i, _)| i % 4 / 2 == upper);
            let half: Vec<u64> = half.map(|(_, bits)| convert(bits)).collect();
            Factors::new(Factor::F16, &half)
        }))
    }

    /// Adds the products of both halves, then C in the type `ty` of the result. Returns the sum as bits.
    fn dot(&self, other: &Self, ty: Type, c: u64) -> u64 {
        let halves = self.0.iter().zip(&other.0);
        if ty == Type::F16 {
            let sum = halves.fold(0, |sum, (a, b)| dot_f16(a, b, sum));
            u64::from(half::add_f16(sum, c as u16, false, false))
        } else {
            let sum = halves.fold(0.0, |sum, (a, b)| dot_f32(a, b, sum));
            u64::from(add_f32(sum, f32::from_bits(c as u32), Rounding::Rn, false, false).to_bits())
        }
    }
}

/// Adds the product of the 8-bit floating-point matrices A and B to C.
pub(super) fn add_small(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64]) {
    let k = usize::from(mma.shape[2]).max(1);
    let lines = |all: &[u64], ty| -> Vec<SmallLine> {
        let lines = all.chunks_exact(k).map(|line| SmallLine::new(ty, line));
        lines.collect()
    };
    let (rows, columns) = (lines(a, mma.a), lines(b, mma.b));
    for (row, results) in rows.iter().zip(c.chunks_exact_mut(columns.len().max(1))) {
        for (column, result) in columns.iter().zip(results) {
            *result = row.dot(column, mma.d, *result);
        }
    }
}

/// Returns one element of the result, as bits.
fn dot(mma: &Mma, a: &Line, b: &Line, c: u64) -> u64 {
    match (a, b) {
        (Line::Factors(a), Line::Factors(b)) => {
            let halves = (mma.c == Type::F16, mma.d == Type::F16);
            match halves {
                (true, true) => u64::from(dot_f16(a, b, c as u16)),
                (false, true) => {
                    let c = half::f32_to_f16(f32::from_bits(c as u32));
                    u64::from(dot_f16(a, b, c))
                }
                (true, false) => u64::from(dot_f32(a, b, half::f16_to_f32(c as u16)).to_bits()),
                (false, false) => u64::from(dot_f32(a, b, f32::from_bits(c as u32)).to_bits()),
            }
        }
        (Line::Doubles(a), Line::Doubles(b)) => dot_f64(a, b, f64::from_bits(c)).to_bits(),
        (Line::Integers(a), Line::Integers(b)) => u64::from(dot_s32(a, b, c as u32 as i32, mma.satfinite) as u32),
        (Line::Bits(a), Line::Bits(b)) => {
            let holds = |(a, b): &(&u64, &u64)| match mma.bits {
                Some(BoolOp::And) => **a & **b != 0,
                _ => **a ^ **b != 0,
            };
            let count = a.iter().zip(b).filter(holds).count();
            u64::from((c as u32).wrapping_add(count as u32))
        }
        // The types of A and B never have different representations.
        _ => c,
    }
}
