//! Conversions of texels between memory and registers, and the weighted means of texture filtering.
//!
//! The tests compare with results of an H200.

use super::super::half::f32_to_f16;

/// The type of a channel in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Unsigned integers of 8 bits.
    U8,
    /// Unsigned integers of 16 bits.
    U16,
    /// Unsigned integers of 32 bits.
    U32,
    /// Signed integers of 8 bits.
    S8,
    /// Signed integers of 16 bits.
    S16,
    /// Signed integers of 32 bits.
    S32,
    /// Floating-point numbers of 16 bits.
    Half,
    /// Floating-point numbers of 32 bits.
    Float,
}

impl Channel {
    /// Returns the size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Channel::U8 | Channel::S8 => 1,
            Channel::U16 | Channel::S16 | Channel::Half => 2,
            Channel::U32 | Channel::S32 | Channel::Float => 4,
        }
    }

    /// Returns the largest value of an integer type of less than 32 bits.
    fn largest(self) -> Option<f64> {
        Some(match self {
            Channel::U8 => 255.0,
            Channel::S8 => 127.0,
            Channel::U16 => 65535.0,
            Channel::S16 => 32767.0,
            _ => return None,
        })
    }

    /// Returns true for signed integers.
    fn is_signed(self) -> bool {
        matches!(self, Channel::S8 | Channel::S16 | Channel::S32)
    }

    /// Widens a channel from its bits in memory: integers are extended, and floating-point numbers keep their bits.
    pub fn widen(self, bits: u32) -> u32 {
        match self {
            Channel::S8 => bits as u8 as i8 as u32,
            Channel::S16 => bits as u16 as i16 as u32,
            Channel::U8 => bits & 0xff,
            Channel::U16 | Channel::Half => bits & 0xffff,
            _ => bits,
        }
    }
}

/// The conversion of integers when texels are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// No conversion.
    Element,
    /// To floating-point numbers from 0 to 1, or from -1 to 1.
    Normalized,
    /// Like [`Normalized`](Self::Normalized), and the first three components are converted from sRGB to linear values.
    Srgb,
}

/// The upper halves of the linear values that an H200 returns for sRGB components; the lower halves are 0.
#[rustfmt::skip] // a table
const SRGB: [u16; 256] = [
    0x0000, 0x39a0, 0x3a20, 0x3a70, 0x3aa0, 0x3ac8, 0x3af0, 0x3b0c, 0x3b20, 0x3b34, 0x3b48, 0x3b5c,
    0x3b70, 0x3b84, 0x3b90, 0x3b9c, 0x3baa, 0x3bb8, 0x3bc6, 0x3bd6, 0x3be6, 0x3bf6, 0x3c03, 0x3c0c,
    0x3c16, 0x3c1f, 0x3c29, 0x3c34, 0x3c3e, 0x3c49, 0x3c55, 0x3c60, 0x3c6c, 0x3c7a, 0x3c83, 0x3c8a,
    0x3c91, 0x3c98, 0x3c9f, 0x3ca6, 0x3cae, 0x3cb6, 0x3cbe, 0x3cc6, 0x3cce, 0x3cd7, 0x3ce0, 0x3ce9,
    0x3cf2, 0x3cfc, 0x3d03, 0x3d08, 0x3d0d, 0x3d12, 0x3d17, 0x3d1c, 0x3d22, 0x3d28, 0x3d2d, 0x3d33,
    0x3d39, 0x3d3f, 0x3d45, 0x3d4c, 0x3d52, 0x3d58, 0x3d60, 0x3d66, 0x3d6c, 0x3d74, 0x3d7a, 0x3d81,
    0x3d85, 0x3d88, 0x3d8c, 0x3d90, 0x3d94, 0x3d98, 0x3d9c, 0x3da0, 0x3da4, 0x3da9, 0x3dad, 0x3db1,
    0x3db6, 0x3dba, 0x3dbf, 0x3dc3, 0x3dc8, 0x3dcd, 0x3dd1, 0x3dd6, 0x3ddb, 0x3de0, 0x3de5, 0x3dea,
    0x3df0, 0x3df4, 0x3dfa, 0x3e00, 0x3e02, 0x3e05, 0x3e08, 0x3e0b, 0x3e0e, 0x3e11, 0x3e14, 0x3e17,
    0x3e1a, 0x3e1d, 0x3e20, 0x3e23, 0x3e26, 0x3e29, 0x3e2c, 0x3e30, 0x3e33, 0x3e36, 0x3e3a, 0x3e3d,
    0x3e40, 0x3e44, 0x3e47, 0x3e4b, 0x3e4e, 0x3e52, 0x3e56, 0x3e59, 0x3e5d, 0x3e61, 0x3e65, 0x3e68,
    0x3e6c, 0x3e70, 0x3e74, 0x3e78, 0x3e7c, 0x3e80, 0x3e82, 0x3e84, 0x3e86, 0x3e88, 0x3e8a, 0x3e8d,
    0x3e8f, 0x3e91, 0x3e93, 0x3e95, 0x3e98, 0x3e9a, 0x3e9c, 0x3e9e, 0x3ea1, 0x3ea3, 0x3ea5, 0x3ea8,
    0x3eaa, 0x3ead, 0x3eaf, 0x3eb2, 0x3eb4, 0x3eb6, 0x3eb9, 0x3ebc, 0x3ebe, 0x3ec1, 0x3ec3, 0x3ec6,
    0x3ec8, 0x3ecb, 0x3ece, 0x3ed1, 0x3ed3, 0x3ed6, 0x3ed9, 0x3edb, 0x3ede, 0x3ee1, 0x3ee4, 0x3ee7,
    0x3eea, 0x3eed, 0x3ef0, 0x3ef2, 0x3ef6, 0x3ef8, 0x3efc, 0x3efe, 0x3f01, 0x3f02, 0x3f04, 0x3f05,
    0x3f07, 0x3f09, 0x3f0a, 0x3f0c, 0x3f0d, 0x3f0f, 0x3f11, 0x3f12, 0x3f14, 0x3f16, 0x3f17, 0x3f19,
    0x3f1b, 0x3f1c, 0x3f1e, 0x3f20, 0x3f21, 0x3f23, 0x3f25, 0x3f27, 0x3f29, 0x3f2a, 0x3f2c, 0x3f2e,
    0x3f30, 0x3f32, 0x3f33, 0x3f35, 0x3f37, 0x3f39, 0x3f3b, 0x3f3d, 0x3f3f, 0x3f41, 0x3f43, 0x3f45,
    0x3f47, 0x3f49, 0x3f4b, 0x3f4d, 0x3f4f, 0x3f51, 0x3f53, 0x3f55, 0x3f57, 0x3f59, 0x3f5b, 0x3f5d,
    0x3f5f, 0x3f61, 0x3f63, 0x3f65, 0x3f68, 0x3f6a, 0x3f6c, 0x3f6e, 0x3f70, 0x3f72, 0x3f74, 0x3f76,
    0x3f7a, 0x3f7c, 0x3f7e, 0x3f80,
];

/// Returns the value of a channel as it is written to a register: the bits of an f32, or an integer.
pub fn value(channel: Channel, read: Read, component: usize, wide: u32) -> u32 {
    if channel == Channel::Half {
        return single(wide);
    }
    match channel.largest() {
        Some(_) if read == Read::Srgb && channel == Channel::U8 && component < 3 => {
            u32::from(SRGB[wide as usize & 0xff]) << 16
        }
        Some(largest) if read != Read::Element => {
            let n = if channel.is_signed() {
                f64::from(wide as i32)
            } else {
                f64::from(wide)
            };
            ((n / largest).max(-1.0) as f32).to_bits()
        }
        _ => wide,
    }
}

/// Returns the border color for a channel, in the representation of [`Channel::widen`]. `normalized` is true for
/// formats of normalized integers, for which an H200 rounds ties down.
pub fn border(channel: Channel, read: Read, color: f32, normalized: bool) -> u32 {
    match (channel, channel.largest()) {
        (Channel::Half, _) => half_toward_zero(color.to_bits()),
        (_, Some(largest)) if normalized => {
            let least = if channel.is_signed() { -1.0 } else { 0.0 };
            let n = f64::from(color.clamp(least, 1.0) * largest as f32);
            (n - 0.5).ceil() as i32 as u32
        }
        (_, Some(largest)) if read != Read::Element => {
            let least = if channel.is_signed() { -1.0 } else { 0.0 };
            // Ties are rounded up.
            let n = (f64::from(color).clamp(least, 1.0) * largest + 0.5).floor();
            n as i32 as u32
        }
        // For an integer that is read without conversion, an H200 uses the low bits.
        (_, Some(_)) => channel.widen(color.to_bits()),
        _ => color.to_bits(),
    }
}

/// A texel with its weight in a filtered value: the weight as a multiple of 1/256, and one channel in the
/// representation of [`Channel::widen`].
pub type WeightedTexel = (u32, u32);

/// Returns the weighted mean of one channel of the texels of `planes`, as the bits of an f32. Texels with weight 0 are
/// ignored, even if they are infinite or NaN.
pub fn mean(channel: Channel, read: Read, component: usize, planes: &[[WeightedTexel; 4]]) -> u32 {
    let all = || planes.iter().flatten().filter(|part| part.0 != 0);
    match channel {
        Channel::Float | Channel::U32 | Channel::S32 => floats(planes),
        Channel::Half => halves(all().map(|part| (part.0, single(part.1)))),
        Channel::U8 if read == Read::Srgb && component < 3 => {
            halves(all().map(|part| (part.0, value(channel, read, component, part.1))))
        }
        _ => {
            // The mean is rounded to 16 bits, to the nearest, with ties up.
            let sum: f64 = all().map(|part| f64::from(part.0) * scale_to_16(channel, part.1)).sum();
            let largest = if channel.is_signed() { 32767.0 } else { 65535.0 };
            let n = (sum / 256.0 + 0.5).floor();
            ((n / largest).max(-1.0) as f32).to_bits()
        }
    }
}

/// Scales an integer of 8 or 16 bits to 16 bits.
fn scale_to_16(channel: Channel, wide: u32) -> f64 {
    match channel {
        Channel::U8 => f64::from(wide) * 257.0,
        Channel::S8 => f64::from(wide as i32) * (32767.0 / 127.0),
        Channel::S16 => f64::from(wide as i32),
        _ => f64::from(wide),
    }
}

/// Returns the weighted mean, rounded to a half with ties away from zero. The numbers and the mean are the bits of an
/// f32. As on an H200, summands are truncated to 14 bits below the largest, and a single number is returned unchanged.
fn halves(parts: impl Iterator<Item = (u32, u32)> + Clone) -> u32 {
    let exponent = |x: f64| (x.abs().to_bits() >> 52) as i32 - 1023;
    let values = parts.clone().map(|part| f64::from(f32::from_bits(part.1)));
    let most = values.clone().map(exponent).max().unwrap_or(0);
    let least = 2f64.powi(most.max(-14) - 14);
    let weights = parts.clone().map(|part| f64::from(part.0) / 256.0);
    let cut = |x: f64| {
        if x.is_finite() { (x / least).trunc() * least } else { x }
    };
    let sum: f64 = values.zip(weights).map(|(x, weight)| cut(x) * weight).sum();
    if let (Some(only), 1) = (parts.clone().next(), parts.count()) {
        return only.1;
    }
    if !sum.is_finite() {
        return special(sum);
    }
    // The value of the last bit of a half. It is constant for subnormal numbers.
    let unit = 2f64.powi(exponent(sum).max(-14) - 10);
    let n = (sum.abs() / unit + 0.5).floor() * unit;
    // A number too large for a half becomes infinite.
    let n = if n > 65504.0 { f64::INFINITY } else { n };
    (n.copysign(sum) as f32).to_bits()
}

/// Returns the bits of a sum that is infinite or NaN. Every NaN becomes the one that an H200 returns for a mean.
fn special(sum: f64) -> u32 {
    if sum.is_nan() {
        0x7fff_ffff
    } else {
        (sum as f32).to_bits()
    }
}

/// Returns the mean of floats. As on an H200, summands are truncated to 27 bits below the largest of their plane; the
/// sum is exact, and rounded once, with ties away from zero. Subnormal numbers count as zero.
fn floats(planes: &[[WeightedTexel; 4]]) -> u32 {
    // The sum so far, and the biased exponent that gives its unit (see `round`).
    let mut total: Option<(i128, i32)> = None;
    let (mut special_sum, mut is_special, mut negative) = (0f64, false, true);
    for plane in planes {
        let parts = || plane.iter().filter(|part| part.0 != 0).map(flushed);
        let exponent = |bits: u32| (bits >> 23 & 0xff) as i32;
        let Some(most) = parts().map(|part| exponent(part.1)).max() else {
            continue;
        };
        let mut sum = 0i64;
        for (weight, bits) in parts() {
            negative &= bits >> 31 != 0;
            if exponent(bits) == 0xff {
                is_special = true;
                special_sum += f64::from(f32::from_bits(bits));
            } else if bits << 1 != 0 {
                let mantissa = i64::from(bits & 0x7f_ffff | 0x80_0000) << 4;
                // Truncate towards zero.
                let shift = (most - exponent(bits)).min(63);
                let cut = (mantissa >> shift) * i64::from(weight);
                sum += if bits >> 31 != 0 { -cut } else { cut };
            }
        }
        let sum = (i128::from(sum), most);
        total = Some(total.map_or(sum, |total| added(total, sum)));
    }
    match total {
        _ if is_special => special(special_sum),
        None => 0,
        Some((0, _)) if negative => 0x8000_0000,
        Some((0, _)) => 0,
        Some((sum, exponent)) => round(sum, exponent),
    }
}

/// Flushes a subnormal number to zero.
fn flushed(part: &WeightedTexel) -> WeightedTexel {
    if part.1 & 0x7f80_0000 == 0 {
        (part.0, part.1 & 0x8000_0000)
    } else {
        *part
    }
}

/// Adds two sums, in the unit of the lower one, unless that one is too small to matter.
fn added(a: (i128, i32), b: (i128, i32)) -> (i128, i32) {
    let (low, high) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    let distance = high.1 - low.1;
    if high.0 == 0 {
        low
    } else if distance > 70 || low.0 == 0 {
        high
    } else {
        ((high.0 << distance) + low.0, low.1)
    }
}

/// Rounds `sum` to the nearest f32, with ties away from zero. The unit of `sum` is 2^-35 times the leading bit of a
/// float with the biased exponent `exponent`. A subnormal result becomes a zero of its sign.
fn round(sum: i128, exponent: i32) -> u32 {
    let sign = if sum < 0 { 0x8000_0000 } else { 0 };
    let n = sum.unsigned_abs();
    let top = 127 - n.leading_zeros() as i32;
    // Below the leading bit there are 23 fraction bits of the float, 4 extra bits, and 8 bits of the weights.
    let mut biased = exponent + top - 35;
    let shift = top - 23;
    let mut mantissa = if shift > 0 {
        (n >> shift) + (n >> (shift - 1) & 1)
    } else {
        n << -shift
    };
    if mantissa >> 24 != 0 {
        mantissa >>= 1;
        biased += 1;
    }
    match biased {
        ..1 => sign,
        255.. => sign | 0x7f80_0000,
        _ => sign | (biased as u32) << 23 | (mantissa as u32 & 0x7f_ffff),
    }
}

/// Returns the value that `sust.p` stores in a channel: integers saturate, and halves are truncated.
pub fn store(channel: Channel, value: u32) -> u32 {
    let clamp = |least: i32, most: i32| (value as i32).clamp(least, most) as u32;
    match channel {
        Channel::U8 => value.min(0xff),
        Channel::U16 => value.min(0xffff),
        Channel::S8 => clamp(-128, 127) & 0xff,
        Channel::S16 => clamp(-32768, 32767) & 0xffff,
        Channel::Half => half_toward_zero(value),
        _ => value,
    }
}

/// Truncates an f32 to a half. A NaN keeps its upper bits, and becomes an infinity if they are 0.
fn half_toward_zero(bits: u32) -> u32 {
    let (sign, exponent, mantissa) = (bits >> 16 & 0x8000, bits >> 23 & 0xff, bits & 0x7f_ffff);
    let magnitude = match exponent {
        0xff => 0x7c00 | mantissa >> 13,
        // Numbers too large for a half.
        143.. => 0x7bff,
        113.. => (exponent - 112) << 10 | mantissa >> 13,
        102.. => (mantissa | 0x80_0000) >> (126 - exponent),
        _ => 0,
    };
    sign | magnitude
}

/// Converts a half to the bits of an f32. A NaN keeps its payload.
fn single(half: u32) -> u32 {
    let (sign, exponent, mantissa) = ((half & 0x8000) << 16, half >> 10 & 0x1f, half & 0x3ff);
    let magnitude = match exponent {
        0 => (mantissa as f32 / 16_777_216.0).to_bits(),
        0x1f => 0x7f80_0000 | mantissa << 13,
        _ => (exponent + 112) << 23 | mantissa << 13,
    };
    sign | magnitude
}

/// Rounds the bits of an f32 to the nearest half.
pub fn as_half(bits: u32) -> u16 {
    f32_to_f16(f32::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(channel: Channel, texels: [u32; 2], fraction: u32) -> u32 {
        let parts = texels.map(|t| channel.widen(t));
        mean(
            channel,
            Read::Normalized,
            0,
            &[[(256 - fraction, parts[0]), (fraction, parts[1]), (0, 0), (0, 0)]],
        )
    }

    #[test]
    fn means_of_floats() {
        let of = |a: u32, b: u32, f| linear(Channel::Float, [a, b], f);
        assert_eq!(of(0, 0x3f80_0000, 1), 0x3b80_0000);
        // The smaller number is truncated to 27 bits below the larger.
        assert_eq!(of(0x3a83_126f, 0x461c_4000, 1), 0x421c_40ff);
        assert_eq!(of(0x3a83_126f, 0x461c_4000, 3), 0x42ea_607f);
        assert_eq!(of(0x7f80_0000, 0x3f80_0000, 0), 0x7f80_0000);
        assert_eq!(of(0x3f80_0000, 0x7f80_0000, 0), 0x3f80_0000);
        assert_eq!(of(0x3f80_0000, 0x7fc0_0000, 1), 0x7fff_ffff);
        assert_eq!(of(0xff80_0000, 0x7f80_0000, 128), 0x7fff_ffff);
        assert_eq!(of(0x7f7f_ffff, 0xff7f_ffff, 1), 0x7f7d_ffff);
        assert_eq!(of(0x0001_16c2, 0x0001_16c2, 7), 0);
        assert_eq!(of(0x8000_0000, 0x8000_0000, 128), 0x8000_0000);
        assert_eq!(of(0x006c_e3ee, 0x00d9_c7dd, 255), 0x00d8_ee15);
    }

    #[test]
    fn means_of_integers_and_halves() {
        assert_eq!(linear(Channel::U8, [0, 255], 1), 0x3b80_0080);
        assert_eq!(linear(Channel::U8, [241, 113], 65), 0x3f51_51d1);
        assert_eq!(linear(Channel::U16, [58584, 14860], 32), 0x3f4f_7fcf);
        assert_eq!(linear(Channel::S16, [0, 0xffff], 128), 0);
        assert_eq!(linear(Channel::S16, [0, 0xffff], 129), 0xb800_0100);
        assert_eq!(linear(Channel::Half, [17639, 45903], 237), 0x3e1c_2000);
    }

    #[test]
    fn values_of_channels() {
        let read = |channel: Channel, bits| value(channel, Read::Normalized, 0, channel.widen(bits));
        assert_eq!(read(Channel::U8, 40), 0x3e20_a0a1);
        assert_eq!(read(Channel::S8, 0x80), 0xbf80_0000);
        assert_eq!(read(Channel::S8, 24), 0x3e41_8306);
        assert_eq!(read(Channel::Half, 0x7c01), 0x7f80_2000);
        assert_eq!(
            value(Channel::S8, Read::Element, 0, Channel::S8.widen(0x81)),
            0xffff_ff81
        );
        assert_eq!(value(Channel::U8, Read::Srgb, 0, 255), 0x3f80_0000);
        assert_eq!(value(Channel::U8, Read::Srgb, 3, 1), 0x3b80_8081);
    }

    #[test]
    fn stores_saturate_and_truncate() {
        for (bits, half) in [
            (0x477f_f000, 0x7bff),
            (0x3380_0000, 1),
            (0x3300_0000, 0),
            (0x7fff_ffff, 0x7fff),
            (0x7fc0_0000, 0x7e00),
            (0xffff_8000, 0xfffc),
            (0x3e99_999a, 0x34cc),
            (0x4049_0fdb, 0x4248),
            (0x8000_0000, 0x8000),
        ] {
            assert_eq!(store(Channel::Half, bits), half, "{bits:x}");
        }
        assert_eq!(store(Channel::U8, 0xffff_ffff), 0xff);
        assert_eq!(store(Channel::S8, 0x8000_0000), 0x80);
        assert_eq!(store(Channel::S16, 0x11170), 0x7fff);
    }
}
