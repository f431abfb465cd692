//! Selects the levels of a mipmap that are sampled for a level of detail.

use super::anisotropy::Anisotropy;

/// Two consecutive levels that are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The number of the first level, whose image is the larger one.
    pub first: u32,
    /// The weight of the second level, as a multiple of 1/256.
    pub fraction: u32,
}

/// The properties of a texture that select levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// True if two levels are mixed.
    pub linear: bool,
    /// The bias that is added to the level of detail.
    pub bias: f32,
    /// The lowest and the highest level of detail.
    pub clamp: [f32; 2],
    /// The number of levels.
    pub count: u32,
    /// The settings for anisotropic filtering, which change the mixture of two levels.
    pub anisotropy: Option<Anisotropy>,
}

/// Returns the levels for a level of detail.
pub fn levels(lod: f32, choice: &Choice) -> Levels {
    // An H200 truncates the level of detail, the bias and the limits to multiples of 1/256.
    let parts = |level: f32| (f64::from(level) * 256.0).clamp(-1e9, 1e9) as i64;
    let most = i64::from(choice.count.saturating_sub(1)) << 8;
    let lod = parts(lod) + parts(choice.bias);
    let lod = choice.anisotropy.map_or(lod, |anisotropy| anisotropy.sharpened(lod));
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
            anisotropy: None,
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
        // The level is sharpened between the bias and the clamp.
        choice.linear = true;
        choice.anisotropy = Anisotropy::new(8);
        choice.clamp = [1.25, 10.0];
        assert_eq!(levels(1.25, &choice), is(1, 64));
        assert_eq!(levels(1.375, &choice), is(1, 64));
        choice.bias = 0.25;
        assert_eq!(levels(1.125, &choice), is(1, 64));
        assert_eq!(levels(1.375, &choice), is(1, 192));
    }
}
