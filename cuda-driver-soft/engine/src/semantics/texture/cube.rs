//! Cube maps: the face that a direction selects, and the neighbours of texels at the edges.

/// Returns the number of the face that a direction goes through, in the order +x, -x, +y, -y, +z, -z, and the
/// coordinates on it, from 0 to 1.
pub fn face(direction: [f32; 3]) -> (u32, [f32; 2]) {
    let [x, y, z] = direction;
    let size = |c: f32| if c.is_nan() { 0.0 } else { c.abs() };
    // Of components of equal size, z goes before y, and y before x.
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
        if ratio.is_nan() { 0.5 } else { ratio * 0.5 + 0.5 }
    };
    (face, [on_face(s), on_face(t)])
}

/// Returns the numbers of the two components of a direction that select the place on a face.
pub fn axes(face: u32) -> [usize; 2] {
    match face / 2 {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}

/// Returns a direction to another point in the plane of the same face: moved by these distances along the [axes] of the
/// face, which extends from -1 to 1 on both.
pub fn stepped(direction: [f32; 3], by: [f64; 2]) -> [f32; 3] {
    let (face, _) = face(direction);
    let major = f64::from(direction[(face / 2) as usize].abs());
    let mut to = direction.map(f64::from);
    for (axis, step) in axes(face).into_iter().zip(by) {
        to[axis] += step * major;
    }
    to.map(|part| part as f32)
}

/// Returns the face and the position of a texel whose indexes on a face may be beyond one edge, by one texel: then it
/// is on the adjacent face. Returns `None` beyond a corner. Faces have `edge` texels in each direction.
pub fn across(face_: u32, [x, y]: [i64; 2], edge: u32) -> Option<(u32, [u32; 2])> {
    let n = f64::from(edge);
    let inside = |i: i64| (0..i64::from(edge)).contains(&i);
    if inside(x) && inside(y) {
        return Some((face_, [x as u32, y as u32]));
    }
    if !inside(x) && !inside(y) {
        return None;
    }
    // Coordinates from -1 to 1, or slightly more beyond an edge.
    let coordinate = |i: i64| {
        if inside(i) {
            (i as f64 + 0.5) / n * 2.0 - 1.0
        } else if i < 0 {
            -1.000_001
        } else {
            1.000_001
        }
    };
    let (s, t) = (coordinate(x), coordinate(y));
    let direction = match face_ {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    };
    let (other, on_face) = face(direction.map(|c| c as f32));
    let index = |c: f32| ((f64::from(c) * n).floor().max(0.0) as u32).min(edge - 1);
    Some((other, on_face.map(index)))
}

#[cfg(test)]
mod tests {
    use super::{across, face};

    #[test]
    fn faces_meet_at_their_edges() {
        assert_eq!(across(4, [1, 2], 4), Some((4, [1, 2])));
        assert_eq!(across(4, [4, 2], 4), Some((0, [0, 2])));
        assert_eq!(across(4, [-1, 1], 4), Some((1, [3, 1])));
        assert_eq!(across(4, [1, -1], 4), Some((2, [1, 3])));
        assert_eq!(across(2, [4, 3], 4), Some((0, [0, 0])));
        assert_eq!(across(2, [4, -1], 4), None);
        // From the texel beyond an edge, one step leads back over the edge.
        for face_ in 0..6 {
            for i in 0..4 {
                for at in [[-1, i], [4, i], [i, -1], [i, 4]] {
                    let (other, place) = across(face_, at, 4).unwrap_or((9, [0; 2]));
                    assert!(other < 6 && other != face_);
                    let around = [[-1, 0], [1, 0], [0, -1], [0, 1]];
                    let back = around.iter().any(|step| {
                        let next = [i64::from(place[0]) + step[0], i64::from(place[1]) + step[1]];
                        let own = at.map(|c: i64| c.clamp(0, 3) as u32);
                        across(other, next, 4) == Some((face_, own))
                    });
                    assert!(back, "{face_} {at:?} {other} {place:?}");
                }
            }
        }
    }

    #[test]
    fn axes_go_through_the_middles_of_the_faces() {
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
