//! Which level of a mipmap is sampled.

/// Two levels, and how much of the second, of 256 parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The larger one.
    pub first: u32,
    /// Of the one after it.
    pub fraction: u32,
}

/// What a texture says of its levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Two levels are mixed.
    pub linear: bool,
    /// Added to the level.
    pub bias: f32,
    /// The lowest and the highest level that may be asked for.
    pub clamp: [f32; 2],
    /// How many levels there are.
    pub count: u32,
}

/// The levels for a level of detail.
pub fn levels(lod: f32, choice: &Choice) -> Levels {
    // As recorded: all of them in whole parts of 256, cut off towards zero.
    let parts = |level: f32| (f64::from(level) * 256.0).clamp(-1e9, 1e9) as i64;
    let most = i64::from(choice.count.saturating_sub(1)) << 8;
    let lod = parts(lod) + parts(choice.bias);
    let lod = lod.max(parts(choice.clamp[0])).min(parts(choice.clamp[1]));
    let parts = lod.clamp(0, most) as u32;
    let (first, fraction) = (parts >> 8, parts & 0xff);
    if choice.linear {
        Levels { first, fraction }
    } else {
        Levels {
            first: (parts + 128) >> 8,
            fraction: 0,
        }
    }
}

/// The level of detail for gradients in texels: how long the ellipse is that they span.
///
/// A GPU estimates that, and was seen to be some hundredths of a level away from it.
pub fn of_gradients(x: [f32; 3], y: [f32; 3]) -> f32 {
    let dot = |a: [f32; 3], b: [f32; 3]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(b))
            .sum()
    };
    let (xx, xy, yy) = (dot(x, x), dot(x, y), dot(y, y));
    let square = (xx + yy) / 2.0 + (((xx - yy) / 2.0).powi(2) + xy * xy).sqrt();
    if square > 0.0 {
        (square.log2() / 2.0) as f32
    } else {
        f32::NEG_INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_clamped_and_mixed() {
        let mut choice = Choice {
            linear: true,
            bias: 0.0,
            clamp: [0.0, 10.0],
            count: 5,
        };
        let is = |first, fraction| Levels { first, fraction };
        assert_eq!(levels(-2.0, &choice), is(0, 0));
        assert_eq!(levels(1.25, &choice), is(1, 64));
        assert_eq!(levels(7.0, &choice), is(4, 0));
        choice.bias = 0.3;
        assert_eq!(levels(-0.25, &choice), is(0, 12));
        choice.bias = -0.7;
        assert_eq!(levels(0.75, &choice), is(0, 13));
        choice.bias = 0.0;
        choice.linear = false;
        assert_eq!(levels(1.25, &choice), is(1, 0));
        assert_eq!(levels(1.75, &choice), is(2, 0));
    }

    #[test]
    fn the_longer_axis_decides() {
        assert_eq!(of_gradients([4.0, 0.0, 0.0], [0.0, 2.0, 0.0]), 2.0);
        assert_eq!(of_gradients([0.0; 3], [0.0, 0.5, 0.0]), -1.0);
        assert_eq!(of_gradients([3.0, 0.0, 0.0], [4.0, 0.0, 0.0]), 5f32.log2());
    }
}
