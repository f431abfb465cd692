//! Tests of integer arithmetic on all pairs of edge values and on pseudo-random values.

use std::fmt::LowerHex;

use crate::common::Codes;
use crate::common::gpu::{Gpu, Plain};
use crate::common::values::{integers, pairs, random_integers};

/// An integer type that [`table`] tests.
trait Integer: Plain + PartialEq + LowerHex {
    fn from_bits(bits: u64) -> Self;
    /// Returns the results of `int_ops_…`, in the kernel's order.
    fn ops(a: Self, b: Self) -> [Self; 16];
    /// Returns quotient and remainder.
    fn div(a: Self, b: Self) -> [Self; 2];
    /// Returns true if PTX defines the quotient.
    fn divides(a: Self, b: Self) -> bool;
}

macro_rules! integer {
    ($t:ident, $wide:ident, $bits:literal) => {
        impl Integer for $t {
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }

            fn ops(a: Self, b: Self) -> [Self; 16] {
                let high = ((a as $wide).wrapping_mul(b as $wide) >> $bits) as Self;
                // Shift amounts are the low 32 bits of b, unsigned; an amount of the width or more gives 0, or only
                // sign bits for a signed right shift.
                let amount = b as u32;
                let left = if amount < $bits { a << amount } else { 0 };
                let right = a >> amount.min($bits - 1);
                let right = if amount >= $bits && Self::MIN == 0 {
                    0
                } else {
                    right
                };
                #[allow(unused_comparisons)]
                let magnitude = if a < 0 { (0 as Self).wrapping_sub(a) } else { a };
                let comparison = u8::from(a == b)
                    | u8::from(a != b) << 1
                    | u8::from(a < b) << 2
                    | u8::from(a <= b) << 3
                    | u8::from(a > b) << 4
                    | u8::from(a >= b) << 5;
                [
                    a.wrapping_add(b),
                    a.wrapping_sub(b),
                    a.wrapping_mul(b),
                    high,
                    a.wrapping_mul(b).wrapping_add(a),
                    a & b,
                    a | b,
                    a ^ b,
                    !a,
                    (0 as Self).wrapping_sub(a),
                    left,
                    right,
                    a.min(b),
                    a.max(b),
                    magnitude,
                    comparison as Self,
                ]
            }

            fn div(a: Self, b: Self) -> [Self; 2] {
                [a.wrapping_div(b), a.wrapping_rem(b)]
            }

            fn divides(a: Self, b: Self) -> bool {
                b != 0 && a.checked_div(b).is_some()
            }
        }
    };
}
integer!(u32, u64, 32);
integer!(i32, i64, 32);
integer!(u64, u128, 64);
integer!(i64, i128, 64);

const OPS: [&str; 16] = [
    "add", "sub", "mul.lo", "mul.hi", "mad.lo", "and", "or", "xor", "not", "neg", "shl", "shr", "min", "max", "abs",
    "compare",
];

fn inputs<T: Integer>() -> (Vec<T>, Vec<T>) {
    let edges = integers();
    let (mut a, mut b) = pairs(&edges, &edges);
    a.extend(random_integers(4000, 1));
    b.extend(random_integers(4000, 2));
    // Small right operands, so that shift amounts near the width occur.
    a.extend(random_integers(280, 3));
    b.extend((0..280).map(|i| i % 70));
    (
        a.into_iter().map(T::from_bits).collect(),
        b.into_iter().map(T::from_bits).collect(),
    )
}

fn table<T: Integer>(suffix: &str) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (a, b) = inputs::<T>();
    let ops = gpu.kernel("int_arith.ptx", &format!("int_ops_{suffix}"));
    let seen: Vec<T> = gpu.table(ops, &[&a, &b], 16);
    for (i, results) in seen.chunks(16).enumerate() {
        for (k, (result, expected)) in results.iter().zip(T::ops(a[i], b[i])).enumerate() {
            c.that(*result == expected, || {
                format!(
                    "{}.{suffix} {:#x}, {:#x}: {result:#x}, expected {expected:#x}",
                    OPS[k], a[i], b[i]
                )
            });
        }
    }

    let (a, b): (Vec<T>, Vec<T>) = a.into_iter().zip(b).filter(|(a, b)| T::divides(*a, *b)).unzip();
    let divide = gpu.kernel("int_arith.ptx", &format!("int_div_{suffix}"));
    let seen: Vec<T> = gpu.table(divide, &[&a, &b], 2);
    for (i, results) in seen.chunks(2).enumerate() {
        let expected = T::div(a[i], b[i]);
        c.that(results == expected, || {
            let [q, r] = expected;
            format!(
                "div.{suffix} {:#x}, {:#x}: {:#x}, {:#x}, expected {q:#x}, {r:#x}",
                a[i], b[i], results[0], results[1]
            )
        });
    }
}

#[test]
fn unsigned_32() {
    table::<u32>("u32");
}

#[test]
fn signed_32() {
    table::<i32>("s32");
}

#[test]
fn unsigned_64() {
    table::<u64>("u64");
}

#[test]
fn signed_64() {
    table::<i64>("s64");
}

fn short_inputs() -> (Vec<u16>, Vec<u16>) {
    let edges: Vec<u16> = [
        0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 255, 256, 0x7fff, 0x8000, 0x8001, 0xff00, 0xfffe, 0xffff, 12345,
    ]
    .to_vec();
    let (mut a, mut b) = pairs(&edges, &edges);
    a.extend(random_integers(2000, 4).iter().map(|x| *x as u16));
    b.extend(random_integers(2000, 5).iter().map(|x| *x as u16));
    (a, b)
}

#[test]
fn sixteen_bits() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (a, b) = short_inputs();
    let unsigned = gpu.kernel("int_arith.ptx", "int_ops_u16");
    let seen: Vec<u16> = gpu.table(unsigned, &[&a, &b], 10);
    for (i, results) in seen.chunks(10).enumerate() {
        let (x, y) = (a[i], b[i]);
        let d = y | 1;
        let shift = u32::from(y);
        let expected = [
            x.wrapping_add(y),
            x.wrapping_sub(y),
            x.wrapping_mul(y),
            ((u32::from(x) * u32::from(y)) >> 16) as u16,
            x / d,
            x % d,
            x.min(y),
            x.max(y),
            x.checked_shl(shift).unwrap_or(0),
            x.checked_shr(shift).unwrap_or(0),
        ];
        c.that(results == expected, || {
            format!("u16 {x:#x}, {y:#x}: {results:x?}, expected {expected:x?}")
        });
    }
    let signed = gpu.kernel("int_arith.ptx", "int_ops_s16");
    let seen: Vec<u16> = gpu.table(signed, &[&a, &b], 10);
    for (i, results) in seen.chunks(10).enumerate() {
        let (x, y) = (a[i].cast_signed(), b[i].cast_signed());
        let d = y | 1;
        let shift = u32::from(b[i]);
        // -32768 / -1 is the only quotient that overflows; it and its remainder are not compared.
        let fits = x.checked_div(d).is_some();
        let expected = [
            x.wrapping_add(y),
            x.wrapping_sub(y),
            x.wrapping_mul(y),
            ((i32::from(x) * i32::from(y)) >> 16) as i16,
            if fits {
                x.wrapping_div(d)
            } else {
                results[4].cast_signed()
            },
            if fits {
                x.wrapping_rem(d)
            } else {
                results[5].cast_signed()
            },
            x.min(y),
            x.max(y),
            x.checked_shl(shift).unwrap_or(0),
            x >> shift.min(15),
        ]
        .map(i16::cast_unsigned);
        c.that(results == expected, || {
            format!("s16 {x}, {y}: {results:x?}, expected {expected:x?}")
        });
    }
}

#[test]
fn wide_and_partial() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (a, b) = inputs::<u32>();
    let kernel = gpu.kernel("int_arith.ptx", "int_wide");
    let seen: Vec<u64> = gpu.table(kernel, &[&a, &b], 16);
    const NAMES: [&str; 16] = [
        "mul.wide.u32",
        "mul.wide.s32",
        "mad.wide.u32",
        "mad.wide.s32",
        "mul.wide.u16",
        "mul.wide.s16",
        "mul24.lo.u32",
        "mul24.lo.s32",
        "mul24.hi.u32",
        "mul24.hi.s32",
        "mad24.lo.u32",
        "add.sat.s32",
        "sub.sat.s32",
        "mad.hi.s32",
        "mad.hi.u32",
        "cnot.b32",
    ];
    let low24 = |x: u32| u64::from(x & 0xff_ffff);
    let signed24 = |x: u32| i64::from((x << 8).cast_signed() >> 8);
    for (i, results) in seen.chunks(16).enumerate() {
        let (x, y) = (a[i], b[i]);
        let (sx, sy) = (x.cast_signed(), y.cast_signed());
        let wide = u64::from(x) * u64::from(y);
        let signed = (i64::from(sx) * i64::from(sy)).cast_unsigned();
        let u24 = low24(x) * low24(y);
        let s24 = signed24(x) * signed24(y);
        let word = |v: u32| u64::from(v);
        let expected = [
            wide,
            signed,
            wide.wrapping_add(word(x)),
            signed.wrapping_add(word(x)),
            word((x & 0xffff) * (y & 0xffff)),
            word((i32::from(x as i16) * i32::from(y as i16)).cast_unsigned()),
            u24 & 0xffff_ffff,
            s24.cast_unsigned() & 0xffff_ffff,
            u24 >> 16 & 0xffff_ffff,
            (s24 >> 16).cast_unsigned() & 0xffff_ffff,
            word((u24 as u32).wrapping_add(x)),
            word(sx.saturating_add(sy).cast_unsigned()),
            word(sx.saturating_sub(sy).cast_unsigned()),
            word(((signed >> 32) as u32).wrapping_add(x)),
            word(((wide >> 32) as u32).wrapping_add(x)),
            word(u32::from(x == 0)),
        ];
        for k in 0..16 {
            c.that(results[k] == expected[k], || {
                format!(
                    "{} {x:#x}, {y:#x}: {:#x}, expected {:#x}",
                    NAMES[k], results[k], expected[k]
                )
            });
        }
    }
}
