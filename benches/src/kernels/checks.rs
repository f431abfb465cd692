//! Measures how much slower checkers and counters make kernels:
//! `cargo run --release -p cuda-driver-benches -- checks [--csv] [SECONDS] [KERNEL…]`.
//!
//! All variants of a kernel take turns in one run; the shortest of many launches counts, in processor time of the host
//! thread. The first column is nanoseconds per thread of the kernel without observers. The others are the factors by
//! which a launch takes longer with each observer; `OBSERVERS` has their limits.

use super::cases::{self, Case};
use super::{Loaded, per_thread, processor_time};
use engine::Observers;
use engine::check::{Checker, Checks};
use engine::count::Profile;
use std::error::Error;
use std::time::{Duration, Instant};

/// The kernels that are measured if none are named.
const KERNELS: [&str; 12] = [
    "vector_add",
    "reduce",
    "matmul",
    "stencil_16x16",
    "stencil_32x8",
    "transpose",
    "blur_32x8",
    "histogram",
    "scan",
    "softmax",
    "collatz",
    "sort",
];

/// The names of the observers, and the limits of the factors by which they slow kernels down.
const OBSERVERS: [(&str, f64); 4] = [("memory", 1.0), ("profile", 3.0), ("init", 4.0), ("race", 10.0)];

/// Measures the kernels, and prints a row for each.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let csv = arguments.iter().any(|a| a == "--csv");
    let seconds = super::seconds(arguments)?;
    let named = super::named(arguments)?;
    let wanted = if named.is_empty() { &KERNELS[..] } else { &named };
    let [memory, profile, init, race] = OBSERVERS.map(|(name, _)| name);
    if csv {
        println!("kernel,plain_ns_per_thread,{memory},{profile},{init},{race}");
    } else {
        println!(
            "{:16} {:>10} {memory:>8} {profile:>8} {init:>8} {race:>8}",
            "kernel", "plain"
        );
    }
    let mut within = [0; OBSERVERS.len()];
    let mut count = 0;
    for case in cases::all().iter().filter(|case| wanted.contains(&case.name)) {
        let (plain, ratios) = measure(case, seconds)?;
        let figures = ratios.map(|ratio| {
            if csv {
                format!(",{ratio:.3}")
            } else {
                format!(" {ratio:8.2}")
            }
        });
        if csv {
            println!("{},{plain:.3}{}", case.name, figures.concat());
        } else {
            println!("{:16} {plain:10.2}{}", case.name, figures.concat());
        }
        for (within, (ratio, (_, limit))) in within.iter_mut().zip(ratios.iter().zip(OBSERVERS)) {
            // Two measurements of the same code may differ by 0.05.
            *within += u32::from(*ratio <= limit + 0.05);
        }
        count += 1;
    }
    if !csv {
        let figures = within.map(|within| format!(" {:>8}", format!("{within}/{count}")));
        println!("{:27}{}", "within the limit", figures.concat());
    }
    Ok(())
}

/// Returns nanoseconds per thread without observers, and the factor by which each observer slows the kernel down.
fn measure(case: &Case, seconds: f64) -> Result<(f64, [f64; OBSERVERS.len()]), Box<dyn Error>> {
    // Made before the buffers, because `init` tracks only memory that is allocated later.
    let checkers = [Checks::MEMORY, Checks::INIT, Checks::RACE].map(Checker::new);
    let profile = Profile::new();
    let mut loaded = Loaded::new(case)?;
    loaded.check()?;
    let [memory, init, race] = checkers.each_ref().map(Checker::observers);
    let variants = [Observers::default(), memory, profile.observers(), init, race];
    let mut best = [Duration::MAX; 1 + OBSERVERS.len()];
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        for (observers, best) in variants.iter().zip(&mut best) {
            loaded.launch.options.observers = observers.clone();
            let start = processor_time();
            loaded.run_on(loaded.launch.options.engine)?;
            *best = (processor_time() - start).min(*best);
            profile.take();
        }
    }
    if let Some(finding) = checkers.iter().flat_map(Checker::findings).next() {
        return Err(format!("{}: {finding}", case.name).into());
    }
    let [plain, observed @ ..] = best.map(|time| per_thread(case, time));
    Ok((plain, observed.map(|time| time / plain)))
}
