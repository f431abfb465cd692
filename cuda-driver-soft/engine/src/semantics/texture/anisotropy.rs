//! Anisotropic filtering: the mean of several samples along the longer axis of a
//! [footprint](super::gradient::Footprint), at a level of detail for the shorter axis.
//!
//! This is a model of an H200, fitted to its results. Samples are one texel of the level apart, and the outermost ones
//! have the weight of the part of the axis that is left for them. If two levels are mixed, this holds for the smaller
//! one. In the larger one, the number of samples depends only on the ratio of the axes. The samples cover the same axis
//! as those of the smaller level, so they are one to two texels apart.

use super::gradient::Footprint;

/// The settings of a texture whose `maxAnisotropy` is 2 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anisotropy {
    /// The logarithm to base 2 of the largest ratio of the axes, in 1/256.
    most: i32,
    /// Quarters by which the weight of the smaller of two levels increases with the level of detail.
    slope: i64,
    /// The fraction of the level of detail, in 1/256, up to which only the larger of two levels counts.
    start: i64,
}

impl Anisotropy {
    /// Returns the settings for `maxAnisotropy`; `None` for a number less than 2. The ratios are 2, 4, 6, 8, 10, 12
    /// and 16: other numbers count as the next lower one of these.
    pub fn new(most: u32) -> Option<Anisotropy> {
        // An H200 uses logarithms in 1/16.
        let (most, slope, start) = match most {
            0 | 1 => return None,
            2 | 3 => (256, 6, 42),
            4 | 5 => (512, 7, 54),
            6 | 7 => (656, 7, 54),
            8 | 9 => (768, 8, 64),
            10 | 11 => (848, 8, 64),
            12..=15 => (912, 8, 64),
            _ => (1024, 8, 64),
        };
        Some(Anisotropy { most, slope, start })
    }

    /// Returns a level of detail in 1/256 with a steeper transition from each level to the next.
    pub fn sharpened(self, lod: i64) -> i64 {
        let (level, fraction) = (lod >> 8, lod & 0xff);
        (level << 8) + (((fraction - self.start) * self.slope) >> 2).clamp(0, 256)
    }

    /// Returns the level of detail for a footprint, and the samples to take; `None` for a single one.
    pub fn samples(self, footprint: &Footprint) -> (f32, Option<Line>) {
        let Some(shorter) = footprint.shorter else {
            return (footprint.longer, None);
        };
        let most = self.most as f32 / 256.0;
        let lod = shorter.max(footprint.longer - most);
        // A shorter axis of less than a texel counts as one texel.
        let ratio = (footprint.longer - shorter.max(0.0)).min(most).exp2();
        let [x, y] = footprint.axis;
        let length = x.hypot(y);
        let line = Line {
            ratio: f64::from(ratio),
            direction: [x / length, y / length],
        };
        (
            lod,
            (ratio > 1.0 && line.direction.iter().all(|part| part.is_finite())).then_some(line),
        )
    }
}

/// Samples along the longer axis of a footprint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// A vector of length 1.
    direction: [f64; 2],
    /// The ratio of the axes, from 1 to 16.
    ratio: f64,
}

/// A sample of a [`Line`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The offset from the middle of the footprint, in texels of the level.
    pub offset: [f64; 2],
    /// The weight. The weights of all samples of a level have the sum 1.
    pub weight: f64,
}

impl Line {
    /// Returns the samples of the larger one of two levels. The smaller one has the weight `fraction` / 256.
    pub fn in_larger(self, fraction: u32) -> impl Iterator<Item = Sample> {
        self.samples(self.ratio, (f64::from(fraction) / 256.0).exp2())
    }

    /// Returns the samples of the smaller one of two levels, which has the weight `fraction` / 256.
    pub fn in_smaller(self, fraction: u32) -> impl Iterator<Item = Sample> {
        self.samples(self.ratio * (f64::from(fraction) / 256.0 - 1.0).exp2(), 1.0)
    }

    /// Returns samples that are `step` texels apart, or closer if there are only two.
    fn samples(self, ratio: f64, step: f64) -> impl Iterator<Item = Sample> {
        // Two samples for a ratio of up to 2, four for up to 4, and so on.
        let pairs = (ratio / 2.0).ceil().max(1.0);
        let count = 2.0 * pairs;
        let (step, inner, outer) = if ratio <= 1.0 {
            (0.0, 0.5, 0.5)
        } else if count == 2.0 {
            (2.0 * step * (1.0 - 1.0 / ratio), 0.5, 0.5)
        } else {
            (step, 1.0 / ratio, (1.0 - (count - 2.0) / ratio) / 2.0)
        };
        (0..count as usize).map(move |i| {
            let at = (i as f64 - (count - 1.0) / 2.0) * step;
            let is_outer = i == 0 || i + 1 == count as usize;
            Sample {
                offset: self.direction.map(|part| part * at),
                weight: if is_outer { outer } else { inner },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ellipse(longer: f32, shorter: f32) -> Footprint {
        Footprint {
            longer,
            shorter: Some(shorter),
            axis: [0.0, -2.0],
        }
    }

    #[test]
    fn levels_change_faster() {
        let lods = |most: u32| {
            let anisotropy = Anisotropy::new(most).expect("a ratio");
            [-300, 0, 83, 150, 207, 256, 339].map(|lod| anisotropy.sharpened(lod))
        };
        // The positive ones are results of an H200.
        assert_eq!(lods(2), [-257, 0, 61, 162, 247, 256, 317]);
        assert_eq!(lods(4), [-256, 0, 50, 168, 256, 256, 306]);
        assert_eq!(lods(8), [-256, 0, 38, 172, 256, 256, 294]);
        assert_eq!((Anisotropy::new(0), Anisotropy::new(1)), (None, None));
        assert_eq!(Anisotropy::new(u32::MAX), Anisotropy::new(16));
    }

    #[test]
    fn samples_cover_the_longer_axis() {
        let line = |most: u32, longer: f32, shorter: f32| {
            let (lod, line) = Anisotropy::new(most)
                .expect("a ratio")
                .samples(&ellipse(longer, shorter));
            (
                lod,
                line.map(|line| line.in_larger(0).map(|s| (s.offset[1], s.weight)).collect::<Vec<_>>()),
            )
        };
        // The ratios 1 and 2, and larger ones that are limited to 4 and to 16.
        assert_eq!(line(8, 1.0, 1.0), (1.0, None));
        assert_eq!(line(8, 1.0, 0.0), (0.0, Some(vec![(0.5, 0.5), (-0.5, 0.5)])));
        let four = [1.5, 0.5, -0.5, -1.5].map(|at| (at, 0.25)).to_vec();
        assert_eq!(line(4, 4.0, 1.0), (2.0, Some(four)));
        let (lod, sixteen) = line(16, 9.0, f32::NEG_INFINITY);
        assert_eq!((lod, sixteen.map(|samples| samples.len())), (5.0, Some(16)));
        // Ratio 3: the outer samples have half the weight of the inner ones.
        let (_, three) = line(16, 3f32.log2(), 0.0);
        let weights: Vec<f64> = three
            .into_iter()
            .flatten()
            .map(|sample| (sample.1 * 1000.0).round())
            .collect();
        assert_eq!(weights, [167.0, 333.0, 333.0, 167.0]);
    }

    #[test]
    fn the_smaller_level_has_fewer_samples() {
        let (_, line) = Anisotropy::new(16).expect("a ratio").samples(&ellipse(3.0, 0.5));
        let line = line.expect("samples");
        let extent = |samples: Vec<Sample>| (samples.len(), samples[0].offset[1]);
        let (larger, smaller) = (
            extent(line.in_larger(128).collect()),
            extent(line.in_smaller(128).collect()),
        );
        assert_eq!(larger.0, 6);
        assert!((larger.1 - 2.5 * 2f64.sqrt()).abs() < 1e-6, "{larger:?}");
        assert_eq!(smaller, (4, 1.5));
        // Weights of any ratio have the sum 1.
        for i in 0..200 {
            let ratio = 1.0 + f64::from(i) / 13.0;
            let line = Line { ratio, ..line };
            for samples in [line.in_larger(100).collect::<Vec<_>>(), line.in_smaller(100).collect()] {
                let sum: f64 = samples.iter().map(|sample| sample.weight).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{ratio}: {sum}");
            }
        }
    }

    #[test]
    fn footprints_without_size_have_one_sample() {
        let anisotropy = Anisotropy::new(8).expect("a ratio");
        for odd in [f32::NEG_INFINITY, f32::NAN, f32::INFINITY] {
            let (_, line) = anisotropy.samples(&Footprint {
                longer: odd,
                shorter: Some(odd - odd),
                axis: [0.0, 0.0],
            });
            assert_eq!(line, None);
        }
    }
}
