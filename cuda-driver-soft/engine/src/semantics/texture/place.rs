//! Addressing along one axis: the texels that a coordinate selects in each address mode.

/// The address mode: the meaning of coordinates beyond the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// The texture repeats.
    Wrap,
    /// The texels at the ends continue.
    Clamp,
    /// The texture repeats, and every other copy is mirrored.
    Mirror,
    /// Texels beyond the ends have the border color.
    Border,
}

impl Address {
    /// Returns the mode that applies to coordinates that are not normalized: [`Border`](Self::Border) or else
    /// [`Clamp`](Self::Clamp).
    pub fn unnormalized(self) -> Address {
        match self {
            Address::Border => Address::Border,
            _ => Address::Clamp,
        }
    }

    /// Returns the texel for an index along an axis of `size` texels, or `None` for the border.
    pub fn index(self, index: i64, size: u32) -> Option<u32> {
        let n = i64::from(size.max(1));
        let inside = match self {
            Address::Border if !(0..n).contains(&index) => return None,
            Address::Border | Address::Clamp => index.clamp(0, n - 1),
            Address::Wrap => index.rem_euclid(n),
            Address::Mirror => {
                let place = index.rem_euclid(2 * n);
                place.min(2 * n - 1 - place)
            }
        };
        Some(inside as u32)
    }
}

/// Two consecutive texels along an axis that a filter mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelPair {
    /// The index of the first texel.
    pub first: i64,
    /// The weight of the second texel, as a multiple of 1/256.
    pub fraction: u32,
}

/// The precision of a normalized coordinate: an H200 truncates it to this many parts of the axis, or twice as many if
/// the number of texels is a power of two.
const PARTS: f64 = (1 << 21) as f64;

/// A limit for coordinates. No axis is longer.
const FAR: f64 = (1u64 << 40) as f64;

/// Returns a coordinate in texels, with its fraction.
///
/// A normalized coordinate is truncated and then reduced to the period of the mode before it is multiplied by the
/// size. So the reduction is exact for any size.
fn in_texels(coordinate: f32, size: u32, mode: Address, normalized: bool) -> f64 {
    let x = f64::from(coordinate);
    if x.is_nan() {
        return 0.0;
    }
    if !normalized {
        return x.clamp(-FAR, FAR);
    }
    let parts = if size.is_power_of_two() { 2.0 * PARTS } else { PARTS };
    let x = (x * parts).floor() / parts;
    let x = match mode {
        Address::Wrap | Address::Mirror if x.is_infinite() => 0.0,
        Address::Wrap => x - x.floor(),
        Address::Mirror => x - 2.0 * (x / 2.0).floor(),
        Address::Clamp | Address::Border => x.clamp(-FAR, FAR),
    };
    (x * f64::from(size)).clamp(-FAR, FAR)
}

/// Returns the index of the texel `shift` texels after a coordinate.
pub fn nearest(coordinate: f32, shift: f64, size: u32, mode: Address, normalized: bool) -> i64 {
    (in_texels(coordinate, size, mode, normalized) + shift).floor() as i64
}

/// Returns the two texels whose centers are on either side of the place `shift` texels after a coordinate.
pub fn around(coordinate: f32, shift: f64, size: u32, mode: Address, normalized: bool) -> TexelPair {
    let x = in_texels(coordinate, size, mode, normalized) + shift;
    // Half a texel less, rounded to the nearest 1/256.
    let parts = (x * 256.0 - 127.5).floor() as i64;
    TexelPair {
        first: parts >> 8,
        fraction: (parts & 0xff) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_at_and_beyond_the_ends() {
        let of = |mode: Address| {
            (-6..11)
                .map(|i| mode.index(i, 5).map_or(-1, i64::from))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Address::Wrap), [4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]);
        assert_eq!(of(Address::Clamp), [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(of(Address::Mirror), [4, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0]);
        assert_eq!(
            of(Address::Border),
            [-1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 4, -1, -1, -1, -1, -1, -1]
        );
    }

    #[test]
    fn fractions_are_rounded_half_up() {
        let place = |x: f32| around(x, 0.0, 2, Address::Clamp, false);
        let is = |first, fraction| TexelPair { first, fraction };
        assert_eq!(place(0.5), is(0, 0));
        assert_eq!(place(0.5 + 127.0 / 65536.0), is(0, 0));
        assert_eq!(place(0.5 + 128.0 / 65536.0), is(0, 1));
        assert_eq!(place(1.5 - 129.0 / 65536.0), is(0, 255));
        assert_eq!(place(1.5 - 128.0 / 65536.0), is(1, 0));
        assert_eq!(place(-0.25), is(-1, 64));
    }

    #[test]
    fn a_shift_moves_by_texels() {
        assert_eq!(nearest(0.5, 1.5, 8, Address::Wrap, true), 5);
        assert_eq!(nearest(0.5, -4.5, 8, Address::Wrap, true), -1);
        let moved = around(0.5, 0.25, 8, Address::Clamp, true);
        assert_eq!((moved.first, moved.fraction), (3, 192));
    }

    #[test]
    fn nan_and_infinity_are_clamped_or_the_start() {
        for mode in [Address::Wrap, Address::Mirror] {
            assert_eq!(nearest(f32::NAN, 0.0, 5, mode, true), 0);
            assert_eq!(nearest(f32::INFINITY, 0.0, 5, mode, true), 0);
        }
        let clamp = |x| Address::Clamp.index(nearest(x, 0.0, 5, Address::Clamp, true), 5);
        assert_eq!(clamp(f32::INFINITY), Some(4));
        assert_eq!(clamp(f32::NEG_INFINITY), Some(0));
        assert_eq!(clamp(1e20), Some(4));
    }

    #[test]
    fn a_normalized_coordinate_is_truncated_before_it_is_scaled() {
        // On an H200 this is texel 0: as an f32, 0.2 is a little more than a fifth, but not in 21 bits.
        assert_eq!(nearest(0.2, 0.0, 5, Address::Clamp, true), 0);
        assert_eq!(nearest(0.25, 0.0, 4, Address::Clamp, true), 1);
        assert_eq!(nearest(-3.8, 0.0, 5, Address::Wrap, true), 0);
        assert_eq!(nearest(8_388_608.0 + 1.0, 0.0, 5, Address::Wrap, true), 0);
        // Any negative number is before the start.
        assert_eq!(nearest(-1e-30, 0.0, 5, Address::Wrap, true), 4);
    }
}
