//! The weights of eight texels in a filtered value.

/// Divides by 256 and rounds to nearest, with ties up.
fn up(parts: i64) -> i64 {
    (parts + 128) >> 8
}

/// Divides by 256 and rounds to nearest, with ties down.
fn down(parts: i64) -> i64 {
    -((128 - parts) >> 8)
}

/// Distributes a weight of `parts` / 256 over eight texels: the first and the second along each axis, where `x`, `y`
/// and `z` are the fractions of the second ones. In the index of a texel, x is the lowest bit and z the highest. An
/// axis that is not filtered has the fraction 0.
///
/// As on an H200, the weight is distributed by z, x and y, in this order. Each step gives multiples of 1/256 and keeps
/// the sum.
pub fn weights(parts: u32, x: u32, y: u32, z: u32) -> [u32; 8] {
    let (x, y) = (i64::from(x), i64::from(y));
    let parts = i64::from(parts);
    let far = up(parts * i64::from(z));
    let mut all = [0; 8];
    for (near, plane) in [(0, parts - far), (4, far)] {
        let second = up(plane * x);
        for (at, column) in [(near, plane - second), (near + 1, second)] {
            let below = if at & 1 == 0 { down(column * y) } else { up(column * y) };
            all[at] = (column - below) as u32;
            all[at + 2] = below as u32;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_an_h200() {
        for (at, expected) in [
            ((224, 45, 0), [26, 185, 6, 39, 0, 0, 0, 0]),
            ((36, 224, 0), [28, 4, 192, 32, 0, 0, 0, 0]),
            ((201, 148, 0), [23, 85, 32, 116, 0, 0, 0, 0]),
            ((108, 45, 197), [28, 21, 6, 4, 94, 68, 20, 15]),
            ((233, 64, 24), [16, 158, 5, 53, 2, 16, 0, 6]),
            ((8, 16, 144), [101, 4, 7, 0, 130, 5, 9, 0]),
            ((28, 72, 96), [102, 13, 40, 5, 61, 8, 24, 3]),
        ] {
            assert_eq!(weights(256, at.0, at.1, at.2), expected, "{at:?}");
        }
    }

    #[test]
    fn the_sum_of_the_weights_is_kept() {
        for i in 0..256u32 {
            for j in 0..256 {
                let all = weights(256, i, j, (i * 7 + j * 13) & 0xff);
                assert_eq!(all.iter().sum::<u32>(), 256);
                assert_eq!(weights(i, j, 3, 0).iter().sum::<u32>(), i);
            }
        }
    }
}
