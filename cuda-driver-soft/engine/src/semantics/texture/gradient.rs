//! The footprint of gradients and its level of detail, as an H200 computes them: with floating-point numbers of ten
//! significant bits, and estimates of lengths and of the logarithm.
//!
//! Without anisotropic filtering, the level is the logarithm of the longest of four vectors: the two gradients `x` and
//! `y`, and 11/16 of their sum and of their difference, which estimate the axes of the ellipse that the gradients span.

use super::cube;

/// Fractional parts of the logarithm to base 2 in 1/256, for mantissas of eight bits.
const LOGARITHM: [u8; 256] = [
    0, 2, 4, 5, 6, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22, 23, 24, 26, 27, 28, 30, 31, 32, 34, 35, 36, 38, 39, 40,
    42, 43, 44, 45, 47, 48, 49, 50, 52, 53, 54, 55, 57, 58, 59, 60, 62, 63, 64, 65, 66, 68, 69, 70, 71, 72, 74, 75, 76,
    77, 78, 79, 81, 82, 83, 84, 85, 86, 88, 89, 90, 91, 92, 93, 94, 95, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106,
    107, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130,
    131, 132, 133, 135, 136, 137, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153,
    154, 155, 156, 157, 158, 159, 160, 161, 162, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 173, 174,
    175, 176, 177, 178, 179, 180, 181, 181, 182, 183, 184, 185, 186, 187, 188, 188, 189, 190, 191, 192, 193, 194, 195,
    195, 196, 197, 198, 199, 200, 200, 201, 202, 203, 204, 205, 205, 206, 207, 208, 209, 210, 210, 211, 212, 213, 214,
    214, 215, 216, 217, 218, 218, 219, 220, 221, 222, 222, 223, 224, 225, 226, 226, 227, 228, 229, 229, 230, 231, 232,
    233, 233, 234, 235, 236, 236, 237, 238, 239, 239, 240, 241, 242, 242, 243, 244, 245, 245, 246, 247, 248, 248, 249,
    250, 251, 251, 252, 253, 253, 254, 255, 255,
];

/// Truncates a number to ten significant bits.
fn cut(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !((1 << 43) - 1))
}

/// Returns the greatest power of two that is not greater than a positive normal number.
fn power(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

/// Returns 11/16 of a number of ten significant bits, rounded to 1/1024 of the number's power of two.
fn eleven_sixteenths(x: f64) -> f64 {
    let unit = power(x) / 1024.0;
    if unit > 0.0 {
        ((x / unit * 11.0 / 16.0) + 0.5).floor() * unit
    } else {
        0.0
    }
}

/// Estimates the length of a vector.
fn length(vector: [f64; 3]) -> f64 {
    let mut parts = vector.map(|part| cut(part.abs()));
    parts.sort_by(f64::total_cmp);
    let [least, middle, most] = parts;
    most + eleven_sixteenths(middle) / 2.0 + least / 4.0
}

/// Returns the logarithm of a length to base 2, as a multiple of 1/256; the negative infinity for zero or a NaN.
fn logarithm(length: f64) -> f32 {
    if length.is_nan() || length <= 0.0 {
        return f32::NEG_INFINITY;
    }
    let bits = length.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    (exponent * 256 + i32::from(LOGARITHM[(bits >> 44) as usize & 0xff])) as f32 / 256.0
}

/// The part of a texture that gradients span: an ellipse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// The level of detail for the length of the longer axis.
    pub longer: f32,
    /// The level of detail for the length of the shorter axis, which is minus infinity if that length is 0. `None` if
    /// the ellipse counts as a circle.
    pub shorter: Option<f32>,
    /// A vector along the longer axis.
    pub axis: [f64; 2],
}

/// Returns the footprint of gradients in texels.
///
/// An H200 estimates the length of the shorter axis by the area of the parallelogram that the gradients span, divided
/// by the length of the longer axis. It does so for one and two dimensions only: in three, the footprint counts as a
/// sphere.
pub fn footprint(x: [f32; 3], y: [f32; 3], axes: usize) -> Footprint {
    let [x, y] = [x, y].map(|gradient| gradient.map(f64::from));
    let (length, axis) = longest(x, y, true);
    let longer = logarithm(length);
    Footprint {
        longer,
        shorter: (axes < 3).then(|| logarithm(area(x, y)) - longer),
        axis,
    }
}

/// Returns the area of a parallelogram in the plane. An H200 rounds the products to ten significant bits.
fn area(x: [f64; 3], y: [f64; 3]) -> f64 {
    let product = |a: f64, b: f64| {
        let product = cut(a) * cut(b);
        // Half of the last bit is added before the rest is cut off.
        cut(product + product.signum() * power(product.abs()) / 1024.0)
    };
    (product(x[0], y[1]) - product(x[1], y[0])).abs()
}

/// Returns the greatest length of the two gradients and, if `diagonals` is true, of 11/16 of their sum and difference;
/// and the first two components of that vector.
fn longest(x: [f64; 3], y: [f64; 3], diagonals: bool) -> (f64, [f64; 2]) {
    let mut longest = (length(x), [x[0], x[1]]);
    let mut compare = |length: f64, vector: [f64; 3]| {
        if length > longest.0 || longest.0.is_nan() {
            longest = (length, [vector[0], vector[1]]);
        }
    };
    compare(length(y), y);
    if diagonals {
        let [x, y] = [x, y].map(|vector| vector.map(cut));
        for sign in [1.0, -1.0] {
            let both: [f64; 3] = std::array::from_fn(|i| x[i] + sign * y[i]);
            compare(length(both.map(|part| eleven_sixteenths(cut(part.abs())))), both);
        }
    }
    longest
}

/// Returns the footprint for gradients of a direction into a cube map whose faces have `edge` texels in each direction.
/// Its axis is in the [axes](cube::axes) of the direction's face.
///
/// An H200 compares the place on the cube of the direction with those of `direction + x` and `direction + y`. If one of
/// these is on another face, the sum and the difference of the gradients do not count, and the footprint counts as a
/// circle.
pub fn footprint_on_cube(direction: [f32; 3], x: [f32; 3], y: [f32; 3], edge: u32) -> Footprint {
    let (face, _) = cube::face(direction);
    let [on_x, on_y] = [x, y].map(|gradient| {
        let end: [f64; 3] = std::array::from_fn(|i| f64::from(direction[i]) + f64::from(gradient[i]));
        let (other, _) = cube::face(end.map(|part| part as f32));
        let (from, to) = (
            unfolded(direction.map(f64::from), face, face),
            unfolded(end, face, other),
        );
        let step = |i: usize| (to[i] - from[i]) * f64::from(edge) / 2.0;
        (other == face, [step(0), step(1), 0.0])
    });
    let on_one_face = on_x.0 && on_y.0;
    let (length, axis) = longest(on_x.1, on_y.1, on_one_face);
    let longer = logarithm(length);
    Footprint {
        longer,
        shorter: on_one_face.then(|| logarithm(area(on_x.1, on_y.1)) - longer),
        axis,
    }
}

/// Returns the place of a direction through `other` in the plane of `face`, which extends from -1 to 1 there. The
/// other faces are unfolded into the plane.
fn unfolded(direction: [f64; 3], face: u32, other: u32) -> [f64; 2] {
    let axis = |face: u32| (face / 2) as usize;
    let sign = |face: u32| if face & 1 == 0 { 1.0 } else { -1.0 };
    let major = direction[axis(other)].abs();
    cube::axes(face).map(|i| {
        if axis(other) == i {
            sign(other) * (2.0 - direction[axis(face)] * sign(face) / major)
        } else {
            // The opposite face continues behind an adjacent one.
            let behind = if axis(other) == axis(face) && other != face {
                4.0
            } else {
                0.0
            };
            behind + direction[i] / major
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(x: [f32; 3], y: [f32; 3]) -> f32 {
        footprint(x, y, 3).longer
    }

    fn level_of_cube(direction: [f32; 3], x: [f32; 3], y: [f32; 3], edge: u32) -> f32 {
        footprint_on_cube(direction, x, y, edge).longer
    }

    #[test]
    fn the_longest_vector_decides() {
        assert_eq!(level([4.0, 0.0, 0.0], [0.0, 2.0, 0.0]), 2.0);
        assert_eq!(level([0.0; 3], [0.0, 0.5, 0.0]), -1.0);
        assert_eq!(level([0.0; 3], [0.0; 3]), f32::NEG_INFINITY);
        // 3 and 11/32 of 4 are less than 4 and 11/32 of 3.
        assert_eq!(level([3.0, 4.0, 0.0], [0.0; 3]), 2.0 + LOGARITHM[66] as f32 / 256.0);
        // 11/16 of the sum is longer than the parts.
        assert_eq!(
            level([4.0, 0.0, 0.0], [4.0, 0.0, 0.0]),
            2.0 + LOGARITHM[96] as f32 / 256.0
        );
    }

    #[test]
    fn numbers_that_are_not_finite_have_levels() {
        for odd in [f32::NAN, f32::INFINITY, f32::MAX, 1e-45] {
            let _ = level([odd, 1.0, odd], [odd, 0.0, -1.0]);
            let _ = level_of_cube([1.0, odd, 0.5], [odd, 0.0, 0.0], [0.0, odd, odd], 64);
        }
        assert!(level([f32::INFINITY, 0.0, 0.0], [0.0; 3]) > 127.0);
    }

    #[test]
    fn gradients_go_over_the_edges_of_a_cube() {
        // From the middle of a face to the middle of an adjacent one: 64 texels.
        assert_eq!(level_of_cube([0.0, 0.0, 1.0], [1.0, 0.0, -1.0], [0.0; 3], 64), 6.0);
        assert_eq!(level_of_cube([-1.0, 0.0, 0.0], [0.0; 3], [1.0, -1.0, 0.0], 64), 6.0);
        // Inside of a face: half of it.
        assert_eq!(level_of_cube([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0; 3], 64), 5.0);
    }

    #[test]
    fn the_shorter_axis_is_the_area_through_the_longer_one() {
        let of = footprint([8.0, 0.0, 0.0], [0.0, 2.0, 0.0], 2);
        assert_eq!((of.longer, of.shorter, of.axis), (3.0, Some(1.0), [8.0, 0.0]));
        // Gradients in the same direction have no area.
        let of = footprint([0.0, 4.0, 0.0], [0.0, -4.0, 0.0], 2);
        assert_eq!(of.shorter, Some(f32::NEG_INFINITY));
        assert_eq!(of.axis, [0.0, 8.0]);
        assert_eq!(footprint([8.0, 0.0, 0.0], [0.0, 2.0, 0.0], 3).shorter, None);
        // On a cube only if both gradients stay on the face.
        let on_face = |x: f32| footprint_on_cube([0.0, 0.0, 1.0], [x, 0.0, 0.0], [0.0, 0.25, 0.0], 64);
        assert_eq!((on_face(0.5).longer, on_face(0.5).shorter), (4.0, Some(3.0)));
        assert_eq!(on_face(2.0).shorter, None);
    }
}
