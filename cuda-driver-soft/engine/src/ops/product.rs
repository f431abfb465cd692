//! The product of two matrices, computed element by element of the result.

#![forbid(unsafe_code)]

use crate::semantics::cvt::{cvt_f16_from_e4m3, cvt_f16_from_e5m2};
use crate::semantics::float::add_f32;
use crate::semantics::half;
use crate::semantics::matrix::{Factor, Factors, dot_f16, dot_f32, dot_f64, dot_s32};
use ptx::ir::{BoolOp, Mma, Rounding, Type};

/// A row of A or a column of B, in the representation that the sums use.
trait Line {
    fn new(ty: Type, elements: &[u64]) -> Self;

    /// Returns the sum of the products of both lines' elements and `c`, as bits.
    fn dot(&self, other: &Self, mma: &Mma, c: u64) -> u64;
}

/// A line whose elements the tensor cores multiply as they are.
enum NativeLine {
    Factors(Factors),
    Doubles(Vec<f64>),
    Integers(Vec<i32>),
    Bits(Vec<u64>),
}

impl Line for NativeLine {
    fn new(ty: Type, elements: &[u64]) -> Self {
        let factors = |format| Self::Factors(Factors::new(format, elements));
        let integers = |extend: fn(u8) -> i32| Self::Integers(elements.iter().map(|x| extend(*x as u8)).collect());
        match ty {
            Type::F16 => factors(Factor::F16),
            Type::BF16 => factors(Factor::Bf16),
            Type::TF32 => factors(Factor::Tf32),
            Type::E4M3 => factors(Factor::E4m3),
            Type::E5M2 => factors(Factor::E5m2),
            Type::F64 => Self::Doubles(elements.iter().map(|x| f64::from_bits(*x)).collect()),
            Type::B1 => Self::Bits(elements.to_vec()),
            Type::S8 => integers(|x| i32::from(x as i8)),
            Type::S4 => integers(|x| i32::from(x << 4) << 24 >> 28),
            _ => integers(i32::from),
        }
    }

    fn dot(&self, other: &Self, mma: &Mma, c: u64) -> u64 {
        match (self, other) {
            (Self::Factors(a), Self::Factors(b)) => {
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
            (Self::Doubles(a), Self::Doubles(b)) => dot_f64(a, b, f64::from_bits(c)).to_bits(),
            (Self::Integers(a), Self::Integers(b)) => u64::from(dot_s32(a, b, c as u32 as i32, mma.satfinite) as u32),
            (Self::Bits(a), Self::Bits(b)) => {
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
}

/// A row of A or a column of B of 8-bit floating-point numbers. The code that ptxas emits for `mma` on sm_90 converts
/// them to f16 and adds the products of two halves one after the other: first those of elements 0 and 1 of every four,
/// then those of elements 2 and 3.
struct SmallLine([Factors; 2]);

impl Line for SmallLine {
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

    /// Adds the products of both halves, then C in the type of the result.
    fn dot(&self, other: &Self, mma: &Mma, c: u64) -> u64 {
        let halves = self.0.iter().zip(&other.0);
        if mma.d == Type::F16 {
            let sum = halves.fold(0, |sum, (a, b)| dot_f16(a, b, sum));
            u64::from(half::add_f16(sum, c as u16, false, false))
        } else {
            let sum = halves.fold(0.0, |sum, (a, b)| dot_f32(a, b, sum));
            u64::from(add_f32(sum, f32::from_bits(c as u32), Rounding::Rn, false, false).to_bits())
        }
    }
}

/// Adds the product of A and B to C. The elements are bit patterns: A and C are stored by rows, B by columns. A sparse A
/// has half of the elements of each row, and `places` has their columns.
pub(super) fn add(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64], places: Option<&[Vec<usize>]>) {
    add_lines::<NativeLine>(mma, a, b, c, places);
}

/// Like [`add`], for `mma` of 8-bit floating-point numbers.
pub(super) fn add_small(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64], places: Option<&[Vec<usize>]>) {
    add_lines::<SmallLine>(mma, a, b, c, places);
}

fn add_lines<L: Line>(mma: &Mma, a: &[u64], b: &[u64], c: &mut [u64], places: Option<&[Vec<usize>]>) {
    let k = usize::from(mma.shape[2]).max(2);
    let columns = b.chunks_exact(k);
    let results = c.chunks_exact_mut(columns.len().max(1));
    let Some(places) = places else {
        let columns: Vec<L> = columns.map(|column| L::new(mma.b, column)).collect();
        for (row, results) in a.chunks_exact(k).zip(results) {
            let row = L::new(mma.a, row);
            for (column, result) in columns.iter().zip(results) {
                *result = row.dot(column, mma, *result);
            }
        }
        return;
    };
    for ((row, places), results) in a.chunks_exact(k / 2).zip(places).zip(results) {
        let row = L::new(mma.a, row);
        for (column, result) in columns.clone().zip(results) {
            let elements = places.iter().map(|at| column.get(*at).copied().unwrap_or(0));
            *result = row.dot(&L::new(mma.b, &elements.collect::<Vec<u64>>()), mma, *result);
        }
    }
}
