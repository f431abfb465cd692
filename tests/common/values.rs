//! Inputs of the arithmetic tests: edge cases and pseudo-random numbers. Also `fma` as a reference, and a digest.

use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::{Double, Single};

/// True if `mul_add` rounds once on every CPU. On a CPU without the instruction, the C library computes it, and mingw's
/// rounds twice.
const MUL_ADD_FUSES: bool = cfg!(any(target_os = "linux", target_vendor = "apple"));

/// Returns `a * b + c`, rounded once.
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    if MUL_ADD_FUSES {
        return a.mul_add(b, c);
    }
    let [a, b, c] = [a, b, c].map(|x| Single::from_bits(x.to_bits().into()));
    f32::from_bits(a.mul_add(b, c).value.to_bits() as u32)
}

/// Returns `a * b + c`, rounded once.
pub(crate) fn fma64(a: f64, b: f64, c: f64) -> f64 {
    if MUL_ADD_FUSES {
        return a.mul_add(b, c);
    }
    let [a, b, c] = [a, b, c].map(|x| Double::from_bits(x.to_bits().into()));
    f64::from_bits(a.mul_add(b, c).value.to_bits() as u64)
}

/// A small generator (splitmix64): the same numbers in every run and on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.word() % bound
    }
}

/// A linear congruential generator, whose numbers are inputs of results that were recorded on GPUs.
pub(crate) struct Recorded(pub(crate) u64);

impl Recorded {
    /// Returns the next number, which has 31 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }
}

/// Returns all pairs of two lists, as the list of the first elements and the list of the second ones.
pub(crate) fn pairs<T: Copy>(a: &[T], b: &[T]) -> (Vec<T>, Vec<T>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for &x in a {
        for &y in b {
            left.push(x);
            right.push(y);
        }
    }
    (left, right)
}

/// Returns integers at the edges of several widths, and their negatives, as 64-bit patterns.
pub(crate) fn integers() -> Vec<u64> {
    let mut values = vec![0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 65, 100, 255, 256, 1000];
    for bits in [8_u32, 15, 16, 24, 31, 32, 33, 53, 63] {
        let edge = 1_u64 << bits;
        values.extend([edge - 1, edge, edge + 1]);
    }
    values.extend([0x1234_5678, 0xdead_beef, 0x0123_4567_89ab_cdef, 0xaaaa_aaaa_5555_5555]);
    let negated: Vec<u64> = values.iter().map(|v| v.wrapping_neg()).collect();
    values.extend(negated);
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns integers of all magnitudes: random bits shifted right by a random amount, about half of them negated.
pub(crate) fn random_integers(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let shift = random.below(64);
            let value = random.next() >> shift;
            if random.below(2) == 0 {
                value
            } else {
                value.wrapping_neg()
            }
        })
        .collect()
}

/// Returns bit patterns of `f32`: zeros, subnormals, the edges of the type and of integer types, halves, NaNs.
pub(crate) fn floats() -> Vec<u32> {
    let mut values = vec![
        0x0000_0000, // 0
        0x0000_0001, // smallest subnormal
        0x0000_0002,
        0x0000_ffff,
        0x007f_ffff, // largest subnormal
        0x0080_0000, // smallest normal
        0x0080_0001,
        0x0100_0000,
        0x3300_0000, // 2^-25
        0x3380_0000, // 2^-24
        0x3f00_0000, // 0.5
        0x3eff_ffff,
        0x3f7f_ffff, // just below 1
        0x3f80_0000, // 1
        0x3f80_0001, // just above 1
        0x3fc0_0000, // 1.5
        0x4020_0000, // 2.5
        0x4049_0fdb, // pi
        0x4055_5555, // 3.33…
        0x4b00_0000, // 2^23
        0x4b00_0001,
        0x4aff_ffff, // 2^23 - 0.5
        0x4b80_0001,
        0x4eff_ffff, // below 2^31
        0x4f00_0000, // 2^31
        0x4f7f_ffff, // below 2^32
        0x4f80_0000, // 2^32
        0x5eff_ffff, // below 2^63
        0x5f00_0000, // 2^63
        0x5f80_0000, // 2^64
        0x7e80_0000,
        0x7f7f_ffff, // largest
        0x7f80_0000, // infinity
        0x7fc0_0000, // quiet NaN
        0x7fc1_2345,
        0x7f80_0001, // signalling NaN
        0x7fff_ffff,
    ];
    let negative: Vec<u32> = values.iter().map(|v| v | 0x8000_0000).collect();
    values.extend(negative);
    values
}

/// Returns bit patterns of `f64`, chosen like those of [`floats`].
pub(crate) fn doubles() -> Vec<u64> {
    let mut values = vec![
        0x0000_0000_0000_0000,
        0x0000_0000_0000_0001,
        0x0000_0000_0000_0002,
        0x0000_0000_ffff_ffff,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x0010_0000_0000_0001,
        0x0020_0000_0000_0000,
        0x3690_0000_0000_0000, // 2^-150, half the smallest f32 subnormal
        0x36a0_0000_0000_0000, // 2^-149
        0x380f_ffff_e000_0000, // half a unit above the largest f32 subnormal
        0x3810_0000_0000_0000, // smallest normal f32
        0x3ca0_0000_0000_0000,
        0x3cb0_0000_0000_0000,
        0x3fdf_ffff_ffff_ffff,
        0x3fe0_0000_0000_0000, // 0.5
        0x3fef_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000, // 1
        0x3ff0_0000_0000_0001,
        0x3ff0_0000_1000_0000, // halfway between two f32
        0x3ff0_0000_3000_0000,
        0x3ff8_0000_0000_0000, // 1.5
        0x4004_0000_0000_0000, // 2.5
        0x400a_aaaa_aaaa_aaab, // 3.33…
        0x4009_21fb_5444_2d18, // pi
        0x41df_ffff_ffc0_0000, // 2^31 - 1
        0x41e0_0000_0000_0000, // 2^31
        0x41ef_ffff_ffe0_0000, // 2^32 - 1
        0x41f0_0000_0000_0000, // 2^32
        0x4330_0000_0000_0000, // 2^52
        0x432f_ffff_ffff_ffff, // 2^52 - 0.5
        0x4340_0000_0000_0001,
        0x43df_ffff_ffff_ffff, // below 2^63
        0x43e0_0000_0000_0000, // 2^63
        0x43f0_0000_0000_0000, // 2^64
        0x47ef_ffff_e000_0000, // largest f32
        0x47ef_ffff_f000_0000, // half a unit above the largest f32
        0x7fd0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0x7ff8_1234_5678_9abc,
        0x7ff0_0000_0000_0001,
        0x7fff_ffff_ffff_ffff,
    ];
    let negative: Vec<u64> = values.iter().map(|v| v | 1 << 63).collect();
    values.extend(negative);
    values
}

/// Returns random bit patterns of `f32`: half of them uniform, half with exponents near that of 1, where sums and
/// products round.
pub(crate) fn random_floats(count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let bits = random.word();
            if random.below(2) == 0 {
                bits
            } else {
                bits & 0x807f_ffff | (100 + random.below(56)) << 23
            }
        })
        .collect()
}

/// Returns random bit patterns of `f64`, chosen like those of [`random_floats`].
pub(crate) fn random_doubles(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let bits = random.next();
            if random.below(2) == 0 {
                bits
            } else {
                bits & 0x800f_ffff_ffff_ffff | u64::from(980 + random.below(90)) << 52
            }
        })
        .collect()
}

/// Returns a digest of results (FNV-1a), for comparing the runs of two drivers by eye.
pub(crate) fn digest(bytes: impl IntoIterator<Item = u64>) -> u64 {
    hash(bytes.into_iter().flat_map(u64::to_le_bytes))
}

/// Returns the FNV-1a hash of bytes; of larger units, a hash that is made in the same way.
pub(crate) fn hash(units: impl IntoIterator<Item = impl Into<u64>>) -> u64 {
    units.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, unit| {
        (hash ^ unit.into()).wrapping_mul(0x0100_0000_01b3)
    })
}
