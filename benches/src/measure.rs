//! Times all variants in turn, round after round, and returns the tenth percentile of each.

use std::time::Instant;

/// A named function that makes a given number of calls.
pub(crate) struct Variant {
    name: &'static str,
    run: Box<dyn Fn(usize)>,
}

impl Variant {
    pub(crate) fn new(name: &'static str, run: impl Fn(usize) + 'static) -> Self {
        Self {
            name,
            run: Box::new(run),
        }
    }
}

/// Returns nanoseconds per call: the tenth percentile of the rounds. Other work on the machine only slows rounds down,
/// so the result is a fast round; the fastest round would be an outlier.
pub(crate) fn all(variants: Vec<Variant>) -> Vec<(&'static str, f64)> {
    const CALLS: usize = 50_000;
    const ROUNDS: usize = 400;
    let mut times = vec![Vec::with_capacity(ROUNDS); variants.len()];
    for _ in 0..ROUNDS {
        for (variant, times) in variants.iter().zip(&mut times) {
            let start = Instant::now();
            (variant.run)(CALLS);
            times.push(start.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
        }
    }
    let fast = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 10]
    };
    variants
        .iter()
        .map(|variant| variant.name)
        .zip(times.into_iter().map(fast))
        .collect()
}
