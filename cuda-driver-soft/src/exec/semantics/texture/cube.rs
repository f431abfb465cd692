//! Which face of a cube a direction goes through.

/// The face (+x, -x, +y, -y, +z, -z) and where on it, from 0 to 1.
pub fn face(direction: [f32; 3]) -> (u32, [f32; 2]) {
    let [x, y, z] = direction;
    let size = |c: f32| if c.is_nan() { 0.0 } else { c.abs() };
    // Of equal ones z goes before y, and y before x.
    let (face, s, t, major) = if size(z) >= size(x) && size(z) >= size(y) {
        if z.is_sign_negative() {
            (5, -x, -y, z)
        } else {
            (4, x, -y, z)
        }
    } else if size(y) >= size(x) {
        if y.is_sign_negative() {
            (3, x, -z, y)
        } else {
            (2, x, z, y)
        }
    } else if x.is_sign_negative() {
        (1, z, -y, x)
    } else {
        (0, -z, -y, x)
    };
    let on_face = |c: f32| {
        let ratio = c / major.abs();
        if ratio.is_nan() {
            0.5
        } else {
            ratio * 0.5 + 0.5
        }
    };
    (face, [on_face(s), on_face(t)])
}

#[cfg(test)]
mod tests {
    use super::face;

    #[test]
    fn axes_are_the_middles_of_the_faces() {
        for (direction, number) in [
            ([1.0, 0.0, 0.0], 0),
            ([-1.0, 0.0, 0.0], 1),
            ([0.0, 1.0, 0.0], 2),
            ([0.0, -1.0, 0.0], 3),
            ([0.0, 0.0, 1.0], 4),
            ([0.0, 0.0, -1.0], 5),
        ] {
            assert_eq!(face(direction), (number, [0.5, 0.5]));
        }
        assert_eq!(face([1.0, 0.5, -0.25]), (0, [0.625, 0.25]));
        assert_eq!(face([0.5, -1.0, 0.25]), (3, [0.75, 0.375]));
    }
}
