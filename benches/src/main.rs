//! Measures calls through each layer and through plain pointers, and loading, with a driver that does nothing.
//!
//! `cargo run --release -p cuda-driver-benches` prints nanoseconds per call, from many rounds in which all variants
//! take turns. Limits hold for an idle machine: a figure over its limit prints a warning, a figure over twice the limit
//! makes the exit status 1.
//!
//! `cargo run --release -p cuda-driver-benches -- engine [--csv]` measures kernels on the software driver's engine;
//! `-- checks [--csv]` measures how much slower its checkers and counters make them, and `-- start` the driver's start
//! and the load of a large module.

mod kernels;
mod layers;
mod loading;
mod measure;
mod quiet;
mod start;

use std::process::ExitCode;

/// The limit of the time to load a driver and call `cuInit`, as a multiple of the time of `dlopen` alone. The run fails
/// if the excess over 1 is more than twice that of the limit.
const LOADING: f64 = 1.3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let kernels = match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("engine", rest)) => Some(kernels::run(rest)),
        Some(("checks", rest)) => Some(kernels::checks::run(rest)),
        Some(("start", rest)) => Some(start::run(rest)),
        _ => None,
    };
    if let Some(result) = kernels {
        return match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let quiet = match quiet::build() {
        Ok(quiet) => quiet,
        Err(error) => {
            eprintln!("needs a C compiler: {error}");
            return ExitCode::FAILURE;
        }
    };
    let results = measure::all(layers::all(&quiet));
    for (name, nanoseconds) in &results {
        println!("{nanoseconds:8.2} ns  {name}");
    }
    let of = |wanted: &str| {
        results
            .iter()
            .find(|(name, _)| *name == wanted)
            .map_or(f64::NAN, |(_, time)| *time)
    };
    // Differences in nanoseconds. A raw call must cost as much as a call through a pointer: half a nanosecond, about two
    // cycles, is noise. A checked call may cost a nanosecond more than a raw one.
    let limits = [
        ("raw call over a pointer", "version: raw", "version: pointer", 0.5),
        (
            "raw launch over a pointer",
            "launch: raw, array made once",
            "launch: pointer, array made once",
            0.5,
        ),
        ("checked call over raw", "version: checked", "version: raw", 1.0),
        (
            "checked call out of line over raw",
            "version: checked, out of line",
            "version: raw",
            // Any function that makes a call and checks its code costs this much. It takes four to five cycles, because
            // the inner call must return to it and cannot be a jump. The next comparison is with a function that does
            // only that.
            1.6,
        ),
        (
            "checked call out of line over a raw one, tested",
            "synchronize: checked, out of line",
            "synchronize: raw and tested, out of line",
            0.5,
        ),
        (
            "checked allocation over a pointer",
            "alloc: checked",
            "alloc: pointer",
            1.0,
        ),
        (
            "tuple launch over a pointer",
            "launch: tuple",
            "launch: pointer, array made each time",
            1.0,
        ),
        (
            "launch of an array over a pointer",
            "launch: array made once",
            "launch: pointer, array made once",
            0.5,
        ),
        (
            "packed launch over raw",
            "launch: packed, filled once",
            "launch: raw, array made once",
            1.0,
        ),
    ];
    let mut ok = true;
    println!();
    for (comparison, ours, other, limit) in limits {
        let more = of(ours) - of(other);
        let (passes, note) = verdict(more, limit);
        ok &= passes;
        println!("{comparison}: {more:+.2} ns, limit {limit:+.2}{note}");
    }
    match loading::measure(quiet.path()) {
        Ok((alone, ours)) => {
            let ratio = ours / alone;
            let (passes, note) = verdict(ratio - 1.0, LOADING - 1.0);
            ok &= passes;
            println!("load and first cuInit: {ours:.1} us, {ratio:.2} times dlopen alone, limit {LOADING}{note}");
        }
        Err(error) => {
            eprintln!("loading: {error}");
            ok = false;
        }
    }
    println!(
        "an error has {} bytes, a result with 64 bits {}",
        size_of::<cuda_driver::Error>(),
        size_of::<cuda_driver::Result<u64>>()
    );
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares a figure with its limit; returns false and a text if it fails. A missing variant is NaN, which always
/// fails.
fn verdict(figure: f64, limit: f64) -> (bool, &'static str) {
    if figure <= limit {
        (true, "")
    } else if figure <= 2.0 * limit {
        (true, "  warning: over the limit")
    } else {
        (false, "  FAILED: over twice the limit")
    }
}
