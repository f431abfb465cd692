//! Which texels a coordinate names.

/// What is beyond the ends of an axis.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    Wrap,
    Clamp,
    Mirror,
    Border,
}

impl Address {
    /// The mode where coordinates are not normalized: one of two, the others are these.
    pub fn unnormalized(self) -> Address {
        match self {
            Address::Border => Address::Border,
            _ => Address::Clamp,
        }
    }

    /// The texel that is meant by an index of an axis of `size` texels; `None` for the border.
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

/// Where a coordinate is along an axis of texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first of the two texels.
    pub first: i64,
    /// How much of the second, of 256 parts.
    pub fraction: u32,
}

/// What is left of a normalized coordinate: so many parts of an axis. As recorded; twice as many where the axis has a power
/// of two of texels.
const PARTS: f64 = (1 << 21) as f64;

/// No axis is longer than this, so that what is further out is the same.
const FAR: f64 = (1u64 << 40) as f64;

/// A coordinate in texels, as it stands before it is cut into texels.
///
/// What is normalized is first brought to where the mode repeats itself: that is exact, however large it is.
fn in_texels(coordinate: f32, size: u32, mode: Address, normalized: bool) -> f64 {
    let x = f64::from(coordinate);
    if x.is_nan() {
        return 0.0;
    }
    if !normalized {
        return x.clamp(-FAR, FAR);
    }
    let parts = if size.is_power_of_two() {
        2.0 * PARTS
    } else {
        PARTS
    };
    let x = (x * parts).floor() / parts;
    let x = match mode {
        Address::Wrap | Address::Mirror if x.is_infinite() => 0.0,
        Address::Wrap => x - x.floor(),
        Address::Mirror => x - 2.0 * (x / 2.0).floor(),
        Address::Clamp | Address::Border => x.clamp(-FAR, FAR),
    };
    (x * f64::from(size)).clamp(-FAR, FAR)
}

/// The texel at a coordinate.
pub fn nearest(coordinate: f32, size: u32, mode: Address, normalized: bool) -> i64 {
    in_texels(coordinate, size, mode, normalized).floor() as i64
}

/// The two texels around a coordinate.
pub fn around(coordinate: f32, size: u32, mode: Address, normalized: bool) -> Place {
    let x = in_texels(coordinate, size, mode, normalized);
    // Half a texel before the middle, to the nearest of 256 parts.
    let parts = (x * 256.0 - 127.5).floor() as i64;
    Place {
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
        assert_eq!(
            of(Address::Wrap),
            [4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]
        );
        assert_eq!(
            of(Address::Clamp),
            [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4]
        );
        assert_eq!(
            of(Address::Mirror),
            [4, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0]
        );
        assert_eq!(
            of(Address::Border),
            [
                -1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 4, -1, -1, -1, -1, -1, -1
            ]
        );
    }

    #[test]
    fn a_half_of_the_smallest_part_counts() {
        let place = |x: f32| around(x, 2, Address::Clamp, false);
        let is = |first, fraction| Place { first, fraction };
        assert_eq!(place(0.5), is(0, 0));
        assert_eq!(place(0.5 + 127.0 / 65536.0), is(0, 0));
        assert_eq!(place(0.5 + 128.0 / 65536.0), is(0, 1));
        assert_eq!(place(1.5 - 129.0 / 65536.0), is(0, 255));
        assert_eq!(place(1.5 - 128.0 / 65536.0), is(1, 0));
        assert_eq!(place(-0.25), is(-1, 64));
    }

    #[test]
    fn what_is_no_number_is_the_start() {
        for mode in [Address::Wrap, Address::Mirror] {
            assert_eq!(nearest(f32::NAN, 5, mode, true), 0);
            assert_eq!(nearest(f32::INFINITY, 5, mode, true), 0);
        }
        let clamp = |x| Address::Clamp.index(nearest(x, 5, Address::Clamp, true), 5);
        assert_eq!(clamp(f32::INFINITY), Some(4));
        assert_eq!(clamp(f32::NEG_INFINITY), Some(0));
        assert_eq!(clamp(1e20), Some(4));
    }

    #[test]
    fn a_normalized_coordinate_is_cut_before_it_is_scaled() {
        // As seen: 0.2 is a little more than a fifth as an f32, but not in 21 bits.
        assert_eq!(nearest(0.2, 5, Address::Clamp, true), 0);
        assert_eq!(nearest(0.25, 4, Address::Clamp, true), 1);
        assert_eq!(nearest(-3.8, 5, Address::Wrap, true), 0);
        assert_eq!(nearest(8_388_608.0 + 1.0, 5, Address::Wrap, true), 0);
        // Less than nothing is before the start, however little it is.
        assert_eq!(nearest(-1e-30, 5, Address::Wrap, true), 4);
    }
}
