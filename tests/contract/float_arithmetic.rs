//! Tests of floating-point arithmetic in all four rounding modes, and of comparisons, flushing and saturation, bit for
//! bit against a software implementation of IEEE 754. Square roots are compared with the host's, adjusted to the mode.
//!
//! NaN results: f32 arithmetic returns 0x7fffffff; f64 arithmetic keeps an operand's payload, so those results are only
//! compared as NaNs.

use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, Round};

use crate::common::gpu::{Gpu, Plain};
use crate::common::values::{digest, doubles, floats, fma64, pairs, random_doubles, random_floats};
use crate::common::{Codes, say};

const MODES: [Round; 4] = [
    Round::NearestTiesToEven,
    Round::TowardZero,
    Round::TowardPositive,
    Round::TowardNegative,
];
const NAMES: [&str; 4] = ["rn", "rz", "ru", "rd"];

/// A floating-point width: the kernels' bit patterns, and the arithmetic to compare with.
trait Width: Plain + PartialEq + std::fmt::LowerHex + Into<u64> {
    type Ieee: Float;
    const NAME: &'static str;
    /// The NaN that arithmetic returns, if there is only one.
    const NAN: Option<Self>;
    fn narrow(bits: u64) -> Self;
    fn edges() -> Vec<Self>;
    fn random(count: usize, seed: u64) -> Vec<Self>;
    /// Returns the square root, rounded in the mode `MODES[mode]`.
    fn sqrt(x: Self, mode: usize) -> Self;

    fn ieee(self) -> Self::Ieee {
        Self::Ieee::from_bits(u128::from(self.into()))
    }

    fn is_nan(self) -> bool {
        self.ieee().is_nan()
    }

    fn of(value: Self::Ieee) -> Self {
        Self::narrow(value.to_bits() as u64)
    }
}

impl Width for u32 {
    type Ieee = Single;
    const NAME: &'static str = "f32";
    const NAN: Option<u32> = Some(0x7fff_ffff);

    fn narrow(bits: u64) -> u32 {
        bits as u32
    }

    fn edges() -> Vec<u32> {
        floats()
    }

    fn random(count: usize, seed: u64) -> Vec<u32> {
        random_floats(count, seed)
    }

    fn sqrt(x: u32, mode: usize) -> u32 {
        let x = f32::from_bits(x);
        let root = x.sqrt();
        if !root.is_finite() || root == 0.0 {
            return root.to_bits();
        }
        // The square of a 24-bit number is exact in 53 bits.
        let square = f64::from(root) * f64::from(root);
        adjust(square.total_cmp(&f64::from(x)), mode, root.to_bits().into()) as u32
    }
}

impl Width for u64 {
    type Ieee = Double;
    const NAME: &'static str = "f64";
    const NAN: Option<u64> = None;

    fn narrow(bits: u64) -> u64 {
        bits
    }

    fn edges() -> Vec<u64> {
        doubles()
    }

    fn random(count: usize, seed: u64) -> Vec<u64> {
        random_doubles(count, seed)
    }

    fn sqrt(x: u64, mode: usize) -> u64 {
        let x = f64::from_bits(x);
        let root = x.sqrt();
        if !root.is_finite() || root == 0.0 {
            return root.to_bits();
        }
        // The sign of the exact difference, scaled to avoid underflow and overflow.
        let (x, scaled) = if x < 1.0 {
            (x * 2_f64.powi(400), root * 2_f64.powi(200))
        } else {
            (x, root)
        };
        let (x, scaled) = if x > 2_f64.powi(1000) {
            (x * 2_f64.powi(-400), scaled * 2_f64.powi(-200))
        } else {
            (x, scaled)
        };
        adjust(fma64(scaled, scaled, -x).total_cmp(&0.0), mode, root.to_bits())
    }
}

/// Returns the bits of the root in the mode `MODES[mode]`: those of the nearest root, `root`, or of its neighbour if
/// `root` is on the wrong side of the exact root.
fn adjust(nearest_against_exact: std::cmp::Ordering, mode: usize, root: u64) -> u64 {
    match (mode, nearest_against_exact) {
        (1 | 3, std::cmp::Ordering::Greater) => root - 1,
        (2, std::cmp::Ordering::Less) => root + 1,
        _ => root,
    }
}

/// Compares a table of results with the reference, and describes the first 40 differences. Prints a digest of the
/// results if `CONTRACT_DIGESTS` is set.
fn compare<W: Width>(label: &str, names: &[String], seen: &[W], reference: impl Fn(usize, usize) -> (W, String)) {
    let mut c = Codes::new();
    let per = names.len();
    let mut differences = 0;
    for (i, results) in seen.chunks(per).enumerate() {
        for (k, result) in results.iter().enumerate() {
            let (expected, operands) = reference(i, k);
            let right = if expected.is_nan() {
                W::NAN.map_or_else(|| result.is_nan(), |nan| *result == nan)
            } else {
                *result == expected
            };
            differences += usize::from(!right);
            if differences <= 40 {
                c.that(right, || {
                    format!(
                        "{}.{} {operands}: {result:#x}, expected {expected:#x}",
                        names[k],
                        W::NAME
                    )
                });
            }
        }
    }
    c.that(differences == 0, || {
        format!("{differences} of {} results differ", seen.len())
    });
    if std::env::var_os("CONTRACT_DIGESTS").is_some() {
        say(&format!(
            "digest {label} {} {:016x}",
            W::NAME,
            digest(seen.iter().map(|x| (*x).into()))
        ));
    }
}

fn in_modes(operations: &[&str]) -> Vec<String> {
    operations
        .iter()
        .flat_map(|op| NAMES.iter().map(move |mode| format!("{op}.{mode}")))
        .collect()
}

fn binary<W: Width>() {
    let gpu = Gpu::new();
    let (mut a, mut b) = pairs(&W::edges(), &W::edges());
    a.extend(W::random(6000, 1));
    b.extend(W::random(6000, 2));
    // Neighbours in magnitude, whose difference cancels.
    let close = W::random(2000, 3);
    b.extend(
        close
            .iter()
            .enumerate()
            .map(|(i, x)| W::narrow((*x).into() ^ (i as u64 % 4096))),
    );
    a.extend(close);
    let kernel = gpu.kernel("float_arith.ptx", &format!("{}_binary", W::NAME));
    let seen: Vec<W> = gpu.table(kernel, &[&a, &b], 16);
    compare("binary", &in_modes(&["add", "sub", "mul", "div"]), &seen, |i, k| {
        let (x, y, mode) = (a[i].ieee(), b[i].ieee(), MODES[k % 4]);
        let value = match k / 4 {
            0 => x.add_r(y, mode),
            1 => x.sub_r(y, mode),
            2 => x.mul_r(y, mode),
            _ => x.div_r(y, mode),
        };
        (W::of(value.value), format!("{:#x}, {:#x}", a[i], b[i]))
    });
}

#[test]
fn binary_f32() {
    binary::<u32>();
}

#[test]
fn binary_f64() {
    binary::<u64>();
}

fn fma<W: Width>() {
    let gpu = Gpu::new();
    // Every second edge value as a, every third as b and as c.
    let edges = W::edges();
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for x in edges.iter().step_by(2) {
        for y in edges.iter().skip(1).step_by(3) {
            for z in edges.iter().step_by(3) {
                a.push(*x);
                b.push(*y);
                c.push(*z);
            }
        }
    }
    a.extend(W::random(6000, 4));
    b.extend(W::random(6000, 5));
    c.extend(W::random(6000, 6));
    // c near -a * b, so that all but the last bits cancel.
    let (p, q) = (W::random(3000, 7), W::random(3000, 8));
    c.extend(p.iter().zip(&q).enumerate().map(|(i, (x, y))| {
        let product = W::of(-x.ieee().mul_r(y.ieee(), Round::NearestTiesToEven).value);
        W::narrow(product.into() ^ (i as u64 % 3))
    }));
    a.extend(p);
    b.extend(q);
    let kernel = gpu.kernel("float_arith.ptx", &format!("{}_fma", W::NAME));
    let seen: Vec<W> = gpu.table(kernel, &[&a, &b, &c], 4);
    compare("fma", &in_modes(&["fma"]), &seen, |i, k| {
        let value = a[i].ieee().mul_add_r(b[i].ieee(), c[i].ieee(), MODES[k]);
        (W::of(value.value), format!("{:#x}, {:#x}, {:#x}", a[i], b[i], c[i]))
    });
}

#[test]
fn fma_f32() {
    fma::<u32>();
}

#[test]
fn fma_f64() {
    fma::<u64>();
}

fn unary<W: Width>() {
    let gpu = Gpu::new();
    let mut a = W::edges();
    a.extend(W::random(10_000, 9));
    // Perfect squares, whose roots are exact.
    a.extend((1..200_u32).map(|i| W::of(W::Ieee::from_u128(u128::from(i) * u128::from(i)).value)));
    let kernel = gpu.kernel("float_arith.ptx", &format!("{}_sqrt", W::NAME));
    let seen: Vec<W> = gpu.table(kernel, &[&a], 4);
    compare("sqrt", &in_modes(&["sqrt"]), &seen, |i, k| {
        (W::sqrt(a[i], k), format!("{:#x}", a[i]))
    });

    let kernel = gpu.kernel("float_arith.ptx", &format!("{}_rcp", W::NAME));
    let seen: Vec<W> = gpu.table(kernel, &[&a], 4);
    let one = W::Ieee::from_u128(1).value;
    compare("rcp", &in_modes(&["rcp"]), &seen, |i, k| {
        (W::of(one.div_r(a[i].ieee(), MODES[k]).value), format!("{:#x}", a[i]))
    });
}

#[test]
fn roots_and_reciprocals_f32() {
    unary::<u32>();
}

#[test]
fn roots_and_reciprocals_f64() {
    unary::<u64>();
}

fn order<W: Width>(sign: u64) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut a, mut b) = pairs(&W::edges(), &W::edges());
    a.extend(W::random(2000, 10));
    b.extend(W::random(2000, 11));
    let kernel = gpu.kernel("float_arith.ptx", &format!("{}_order", W::NAME));
    let seen: Vec<W> = gpu.table(kernel, &[&a, &b], 7);
    const NAMES: [&str; 7] = ["neg", "abs", "min", "max", "copysign", "select", "compare"];
    for (i, results) in seen.chunks(7).enumerate() {
        let (x, y): (u64, u64) = (a[i].into(), b[i].into());
        let (fx, fy) = (a[i].ieee(), b[i].ieee());
        let any_nan = fx.is_nan() || fy.is_nan();
        let less = fx < fy;
        let number = |from: bool, other: u64| if from { x } else { other };
        // min and max return the number if one operand is a NaN, and -0 is less than +0.
        let pick = |minimum: bool| match (fx.is_nan(), fy.is_nan()) {
            (true, true) => None,
            (true, false) => Some(y),
            (false, true) => Some(x),
            _ if fx == fy => Some(number((x & sign != 0) == minimum, y)),
            _ => Some(number(less == minimum, y)),
        };
        let bits = u32::from(fx == fy)
            | u32::from(fx != fy) << 1
            | u32::from(less) << 2
            | u32::from(fx <= fy) << 3
            | u32::from(fx > fy) << 4
            | u32::from(fx >= fy) << 5
            | u32::from(fx.is_nan()) << 6
            | u32::from(!less) << 7;
        // For `None`, any NaN is right.
        let expected = [
            (!fx.is_nan()).then_some(x ^ sign),
            (!fx.is_nan()).then_some(x & !sign),
            pick(true),
            pick(false),
            Some(x & !sign | y & sign),
            Some(if less { x } else { y }),
            Some(W::of(W::Ieee::from_u128(u128::from(bits)).value).into()),
        ];
        for k in 0..7 {
            let right = expected[k].map_or_else(|| results[k].is_nan(), |bits| results[k].into() == bits);
            c.that(right, || {
                format!(
                    "{}.{} {x:#x}, {y:#x} (NaN: {any_nan}): {:#x}, expected {:x?}",
                    NAMES[k],
                    W::NAME,
                    results[k],
                    expected[k]
                )
            });
        }
    }
}

#[test]
fn order_f32() {
    order::<u32>(1 << 31);
}

#[test]
fn order_f64() {
    order::<u64>(1 << 63);
}

/// Flushes an operand or result as `.ftz` does.
fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

#[test]
fn flushing_and_saturating() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut a, mut b) = pairs(&floats(), &floats());
    a.extend(random_floats(4000, 12));
    b.extend(random_floats(4000, 13));
    // Normal numbers of all magnitudes below 4, and numbers between 0.5 and 2: some products and quotients are near the
    // smallest normal number.
    a.extend(
        random_floats(2000, 14)
            .iter()
            .map(|x| (x & 0x807f_ffff) | (0x0080_0000 + ((x >> 3) & 0x3f80_0000))),
    );
    b.extend(random_floats(2000, 15).iter().map(|x| x & 0x80ff_ffff | 0x3f00_0000));
    let kernel = gpu.kernel("float_arith.ptx", "f32_flush");
    let seen: Vec<u32> = gpu.table(kernel, &[&a, &b], 14);
    const NAMES: [&str; 14] = [
        "add.ftz",
        "sub.ftz",
        "mul.ftz",
        "fma.rn.ftz",
        "div.rn.ftz",
        "sqrt.rn.ftz",
        "add.sat",
        "mul.sat",
        "fma.rn.sat",
        "add.rz.ftz.sat",
        "min.ftz",
        "max.ftz",
        "abs.ftz",
        "neg.ftz",
    ];
    let rn = Round::NearestTiesToEven;
    for (i, results) in seen.chunks(14).enumerate() {
        let (x, y) = (a[i], b[i]);
        let (fx, fy) = (flushed(x).ieee(), flushed(y).ieee());
        let (wx, wy) = (x.ieee(), y.ieee());
        let saturate = |value: Single| -> u32 {
            let value = f32::from_bits(u32::of(value));
            if value.is_nan() {
                0
            } else {
                value.clamp(0.0, 1.0).to_bits()
            }
        };
        let pick = |minimum: bool| {
            let (x, y) = (flushed(x), flushed(y));
            match (fx.is_nan(), fy.is_nan()) {
                (true, true) => 0x7fff_ffff,
                (true, false) => y,
                (false, true) => x,
                _ if fx == fy => {
                    if (x >> 31 != 0) == minimum {
                        x
                    } else {
                        y
                    }
                }
                _ => {
                    if (fx < fy) == minimum {
                        x
                    } else {
                        y
                    }
                }
            }
        };
        let arithmetic = [
            fx.add_r(fy, rn).value,
            fx.sub_r(fy, rn).value,
            fx.mul_r(fy, rn).value,
            fx.mul_add_r(fy, fx, rn).value,
            fx.div_r(fy, rn).value,
            u32::sqrt(flushed(x), 0).ieee(),
        ];
        for k in 0..14 {
            let result = results[k];
            let right = match k {
                0..=5 => {
                    let bits = u32::of(arithmetic[k]);
                    if bits.is_nan() {
                        result == 0x7fff_ffff
                    } else {
                        // PTX allows both results for a value that was subnormal before it was rounded up to the
                        // smallest normal number.
                        result == flushed(bits) || bits & 0x7fff_ffff == 0x0080_0000 && result == bits & 0x8000_0000
                    }
                }
                // The sign of a zero that saturation returns is not compared.
                6..=9 => {
                    let value = match k {
                        6 => wx.add_r(wy, rn).value,
                        7 => wx.mul_r(wy, rn).value,
                        8 => wx.mul_add_r(wy, wx, rn).value,
                        _ => flushed(u32::of(fx.add_r(fy, Round::TowardZero).value)).ieee(),
                    };
                    result & 0x7fff_ffff == saturate(value) & 0x7fff_ffff
                        && (result >> 31 == 0 || result == 0x8000_0000)
                }
                10 => result == pick(true),
                11 => result == pick(false),
                12 => x.is_nan() && result.is_nan() || result == flushed(x) & 0x7fff_ffff,
                _ => x.is_nan() && result.is_nan() || result == flushed(x) ^ 0x8000_0000,
            };
            c.that(right, || format!("{} {x:#x}, {y:#x}: {result:#x}", NAMES[k]));
        }
    }
    if std::env::var_os("CONTRACT_DIGESTS").is_some() {
        say(&format!(
            "digest flush f32 {:016x}",
            digest(seen.iter().map(|x| u64::from(*x)))
        ));
    }
}
