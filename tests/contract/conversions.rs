//! Tests of conversions between `f32`, `f64` and integers of every width, in all four rounding modes.

use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::common::gpu::Gpu;
use crate::common::values::{digest, doubles, floats, integers, random_doubles, random_floats, random_integers};
use crate::common::{Codes, say};

const MODES: [Round; 4] = [
    Round::NearestTiesToEven,
    Round::TowardZero,
    Round::TowardPositive,
    Round::TowardNegative,
];
const NAMES: [&str; 4] = ["rn", "rz", "ru", "rd"];
const TARGETS: [&str; 4] = ["s32", "u32", "s64", "u64"];

fn all_floats() -> Vec<u32> {
    let mut values = floats();
    values.extend(random_floats(4000, 1));
    // Around multiples of 1/4.
    for i in 0..200_i16 {
        let x = f32::from(i - 100) / 4.0;
        values.extend([x.to_bits(), x.next_up().to_bits(), x.next_down().to_bits()]);
    }
    values
}

fn all_doubles() -> Vec<u64> {
    let mut values = doubles();
    values.extend(random_doubles(4000, 2));
    values.extend(all_floats().iter().map(|x| f64::from(f32::from_bits(*x)).to_bits()));
    for i in 0..200_i16 {
        let x = f64::from(i - 100) / 4.0;
        values.extend([x.to_bits(), x.next_up().to_bits(), x.next_down().to_bits()]);
    }
    values
}

fn all_integers() -> Vec<u64> {
    let mut values = integers();
    values.extend(random_integers(4000, 3));
    // Half and three quarters of the way from one `f32` to the next, and next to that.
    for shift in 0..39 {
        for quarters in [2, 3] {
            let between = ((1 << 25) + quarters) << shift;
            values.extend([between, between - 1, between + 1, u64::wrapping_neg(between)]);
        }
    }
    values
}

fn show_digest(label: &str, values: impl IntoIterator<Item = u64>) {
    if std::env::var_os("CONTRACT_DIGESTS").is_some() {
        say(&format!("digest {label} {:016x}", digest(values)));
    }
}

fn rounded(x: f64, mode: usize) -> f64 {
    match mode {
        0 => x.round_ties_even(),
        1 => x.trunc(),
        2 => x.ceil(),
        _ => x.floor(),
    }
}

/// Rounds and saturates a number. 32-bit results are sign- or zero-extended, as the kernel stores them.
fn to_integer(x: f64, target: usize, mode: usize) -> i64 {
    let whole = rounded(x, mode);
    match target {
        0 => i64::from(whole as i32),
        1 => i64::from(whole as u32),
        2 => whole as i64,
        _ => (whole as u64).cast_signed(),
    }
}

/// Compares 16 results per value: four targets in four modes. `recorded_nan` has the results for NaN that a GPU
/// returned; `None` if they are not compared.
fn check_to_integer(label: &str, values: &[f64], seen: &[i64], recorded_nan: [Option<i64>; 4]) {
    let mut c = Codes::new();
    for (i, results) in seen.chunks(16).enumerate() {
        for (k, result) in results.iter().enumerate() {
            let (target, mode) = (k / 4, k % 4);
            let expected = match recorded_nan[target] {
                Some(nan) if values[i].is_nan() => nan,
                // Any result of a NaN that is not recorded is right.
                None if values[i].is_nan() => *result,
                _ => to_integer(values[i], target, mode),
            };
            c.that(*result == expected, || {
                format!(
                    "{label} to {}, {} of {:e}: {result:#x}, expected {expected:#x}",
                    TARGETS[target], NAMES[mode], values[i]
                )
            });
        }
    }
    show_digest(label, seen.iter().map(|x| x.cast_unsigned()));
}

#[test]
fn f32_to_integers() {
    let gpu = Gpu::new();
    let a = all_floats();
    let kernel = gpu.kernel("convert.ptx", "f32_to_int");
    let seen: Vec<i64> = gpu.table(kernel, &[&a], 16);
    let values: Vec<f64> = a.iter().map(|x| f64::from(f32::from_bits(*x))).collect();
    // An H200 converts NaN to 0 as s32 and to the smallest number as s64.
    check_to_integer("f32", &values, &seen, [Some(0), None, Some(i64::MIN), None]);
}

#[test]
fn f64_to_integers() {
    let gpu = Gpu::new();
    let a = all_doubles();
    let kernel = gpu.kernel("convert.ptx", "f64_to_int");
    let seen: Vec<i64> = gpu.table(kernel, &[&a], 16);
    let values: Vec<f64> = a.iter().map(|x| f64::from_bits(*x)).collect();
    // An H200 converts NaN to 0x80000000 as u32.
    check_to_integer("f64", &values, &seen, [None, Some(0x8000_0000), None, None]);
}

#[test]
fn integers_to_f32() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = all_integers();
    let kernel = gpu.kernel("convert.ptx", "int_to_f32");
    let seen: Vec<u32> = gpu.table(kernel, &[&a], 16);
    for (i, results) in seen.chunks(16).enumerate() {
        for (k, result) in results.iter().enumerate() {
            let mode = MODES[k % 4];
            let x = a[i];
            let value = match k / 4 {
                0 => Single::from_i128_r(i128::from(x as i32), mode),
                1 => Single::from_u128_r(u128::from(x as u32), mode),
                2 => Single::from_i128_r(i128::from(x.cast_signed()), mode),
                _ => Single::from_u128_r(u128::from(x), mode),
            };
            let expected = value.value.to_bits() as u32;
            c.that(*result == expected, || {
                format!(
                    "{} {x:#x} to f32, {}: {result:#x}, expected {expected:#x}",
                    TARGETS[k / 4],
                    NAMES[k % 4]
                )
            });
        }
    }
}

#[test]
fn integers_to_f64() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = all_integers();
    let kernel = gpu.kernel("convert.ptx", "int_to_f64");
    let seen: Vec<u64> = gpu.table(kernel, &[&a], 10);
    for (i, results) in seen.chunks(10).enumerate() {
        for (k, result) in results.iter().enumerate() {
            let x = a[i];
            let expected = match k {
                0 => f64::from(x as i32).to_bits(),
                1 => f64::from(x as u32).to_bits(),
                2..=5 => Double::from_i128_r(i128::from(x.cast_signed()), MODES[k - 2])
                    .value
                    .to_bits() as u64,
                _ => Double::from_u128_r(u128::from(x), MODES[k - 6]).value.to_bits() as u64,
            };
            c.that(*result == expected, || {
                format!("{x:#x} to f64, {k}: {result:#x}, expected {expected:#x}")
            });
        }
    }
}

#[test]
fn between_floats() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = all_doubles();
    let kernel = gpu.kernel("convert.ptx", "f64_to_f32");
    let seen: Vec<u32> = gpu.table(kernel, &[&a], 4);
    for (i, results) in seen.chunks(4).enumerate() {
        for (k, result) in results.iter().enumerate() {
            let mut loses = false;
            let value: Single = Double::from_bits(u128::from(a[i]))
                .convert_r(MODES[k], &mut loses)
                .value;
            let expected = value.to_bits() as u32;
            let right = if value.is_nan() {
                f32::from_bits(*result).is_nan()
            } else {
                *result == expected
            };
            c.that(right, || {
                format!(
                    "f64 {:#x} to f32, {}: {result:#x}, expected {expected:#x}",
                    a[i], NAMES[k]
                )
            });
        }
    }
    show_digest("f64 to f32", seen.iter().map(|x| u64::from(*x)));

    let a = all_floats();
    let kernel = gpu.kernel("convert.ptx", "f32_to_f64");
    let seen: Vec<u64> = gpu.table(kernel, &[&a], 1);
    for (x, result) in a.iter().zip(&seen) {
        let value = f32::from_bits(*x);
        let right = match *x {
            0x7fc1_2345 => *result == 0x7ff8_2468_a000_0000, // an H200 keeps the payload
            _ if value.is_nan() => f64::from_bits(*result).is_nan(),
            _ => *result == f64::from(value).to_bits(),
        };
        c.that(right, || format!("f32 {x:#x} to f64: {result:#x}"));
    }
    show_digest("f32 to f64", seen);
}

#[test]
fn to_whole_numbers() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = all_floats();
    let kernel = gpu.kernel("convert.ptx", "f32_round");
    let seen: Vec<u32> = gpu.table(kernel, &[&a], 5);
    for (i, results) in seen.chunks(5).enumerate() {
        let x = f32::from_bits(a[i]);
        for mode in 0..4 {
            let expected = rounded(f64::from(x), mode) as f32;
            let right = if x.is_nan() {
                f32::from_bits(results[mode]).is_nan()
            } else {
                results[mode] == expected.to_bits()
            };
            c.that(right, || {
                format!(
                    "{x:e} {}: {:#x}, expected {:#x}",
                    NAMES[mode],
                    results[mode],
                    expected.to_bits()
                )
            });
        }
        let clamped = if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
        // The sign of a clamped zero is not compared.
        let right = f32::from_bits(results[4]).abs().to_bits() == clamped.abs().to_bits();
        c.that(right, || format!("{x:e} saturated: {:#x}", results[4]));
    }
    let a = all_doubles();
    let kernel = gpu.kernel("convert.ptx", "f64_round");
    let seen: Vec<u64> = gpu.table(kernel, &[&a], 4);
    for (i, results) in seen.chunks(4).enumerate() {
        let x = f64::from_bits(a[i]);
        for mode in 0..4 {
            let expected = rounded(x, mode);
            let right = if x.is_nan() {
                f64::from_bits(results[mode]).is_nan()
            } else {
                results[mode] == expected.to_bits()
            };
            c.that(right, || {
                format!(
                    "{x:e} {}: {:#x}, expected {:#x}",
                    NAMES[mode],
                    results[mode],
                    expected.to_bits()
                )
            });
        }
    }
}

#[test]
fn between_integers_and_bits() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = all_integers();
    let kernel = gpu.kernel("convert.ptx", "int_to_int");
    let seen: Vec<i64> = gpu.table(kernel, &[&a], 12);
    for (i, results) in seen.chunks(12).enumerate() {
        let x = a[i].cast_signed();
        let w = x as i32;
        let expected = [
            i64::from(x as i8),
            i64::from(x as u8),
            i64::from(x as i16),
            i64::from(x as u16),
            i64::from(w),
            i64::from(x as u32),
            i64::from(w.clamp(-128, 127)),
            i64::from(w.clamp(0, 255)),
            i64::from(w.clamp(-32768, 32767)),
            i64::from(w.clamp(0, 65535)),
            x.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
            x.clamp(0, i64::from(u32::MAX)),
        ];
        c.that(results == expected, || {
            format!("{x:#x}: {results:x?}, expected {expected:x?}")
        });
    }
    let mut a = all_doubles();
    a.extend(all_floats().iter().map(|x| u64::from(*x)));
    let kernel = gpu.kernel("convert.ptx", "bits");
    let seen: Vec<u64> = gpu.table(kernel, &[&a], 2);
    for (i, results) in seen.chunks(2).enumerate() {
        c.that(results == [a[i] & 0xffff_ffff, a[i]], || {
            format!("{:#x} moved: {results:x?}", a[i])
        });
    }
}
