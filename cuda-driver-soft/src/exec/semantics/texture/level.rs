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
    let most = f64::from(choice.count.saturating_sub(1));
    let lod = if lod.is_nan() { 0.0 } else { f64::from(lod) } + f64::from(choice.bias);
    let (low, high) = (f64::from(choice.clamp[0]), f64::from(choice.clamp[1]));
    let lod = lod.max(low).min(high).clamp(0.0, most);
    let parts = (lod * 256.0 + 0.5).floor() as u32;
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

/// The level of detail for gradients in texels: the longer of the two decides.
pub fn of_gradients(x: [f32; 3], y: [f32; 3]) -> f32 {
    let square = |v: [f32; 3]| v.iter().map(|c| f64::from(*c).powi(2)).sum::<f64>();
    let longest = square(x).max(square(y));
    if longest > 0.0 {
        (longest.log2() / 2.0) as f32
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
        choice.linear = false;
        assert_eq!(levels(1.25, &choice), is(1, 0));
        assert_eq!(levels(1.75, &choice), is(2, 0));
    }

    #[test]
    fn the_longer_gradient_decides() {
        assert_eq!(of_gradients([4.0, 0.0, 0.0], [0.0, 2.0, 0.0]), 2.0);
        assert_eq!(of_gradients([0.0; 3], [0.0, 0.5, 0.0]), -1.0);
    }
}
