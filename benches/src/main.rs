//! Measures calls through each layer and through plain pointers, and loading, with a driver that does nothing.
//!
//! `cargo run --release -p cuda-driver-benches` prints nanoseconds per call, from many rounds in which all variants
//! take turns. Limits hold for an idle machine: a figure over its limit prints a warning, and a figure over twice the
//! limit makes the exit status 1. The figures with limits are differences; that of loading is the excess over the time
//! of `dlopen`.
//!
//! `cargo run --release -p cuda-driver-benches -- engine [--csv] [SECONDS] [KERNEL…]` measures kernels on the software
//! driver's engine; `-- checks [--csv] [SECONDS] [KERNEL…]` measures how much slower its checkers and counters make
//! them, and `-- start` the driver's start and the load of a large module.

mod kernels;
mod layers;
mod loading;
mod measure;
mod quiet;
mod start;

use std::process::ExitCode;

/// The limit of the time to load a driver and call `cuInit`: the excess over the time of `dlopen` alone, in percent.
const LOADING_LIMIT: f64 = 30.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let subcommand = match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("engine", rest)) => Some(kernels::run(rest)),
        Some(("checks", rest)) => Some(kernels::checks::run(rest)),
        Some(("start", rest)) => Some(start::run(rest)),
        Some((other, _)) => Some(Err(format!(
            "there is no benchmark `{other}`: give `engine`, `checks` or `start`, or nothing for the time of calls"
        )
        .into())),
        None => None,
    };
    if let Some(result) = subcommand {
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
            eprintln!("cannot build and load the empty driver, which needs a C compiler: {error}");
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
    // Differences in nanoseconds. A raw call must cost as much as a call through a pointer: half a nanosecond, one to
    // two cycles at 3 GHz, is noise. A checked call may cost a nanosecond more than a raw one.
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
            // Any function that makes a call and checks its code costs this much. It takes four to five cycles at
            // 3 GHz, because the inner call must return to it and cannot be a jump. The next comparison is with a
            // function that does only that.
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
            // This checked call must cost as much as the call in C: it only passes the array on and tests the code.
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
            let excess = 100.0 * (ours / alone - 1.0);
            let (passes, note) = verdict(excess, LOADING_LIMIT);
            ok &= passes;
            println!(
                "load and first cuInit: {ours:.1} us, {excess:+.1} % over dlopen, limit {LOADING_LIMIT:+.1} %{note}"
            );
        }
        Err(error) => {
            eprintln!("loading: {error}");
            ok = false;
        }
    }
    println!(
        "size of an `Error`: {} bytes; of a `Result<u64>`: {} bytes",
        size_of::<cuda_driver::Error>(),
        size_of::<cuda_driver::Result<u64>>()
    );
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares a figure with its limit. Returns false if the figure fails: if it is over twice the limit, or NaN because a
/// variant is missing. Also returns a note for the end of the output line, which is empty for a figure within the
/// limit.
fn verdict(figure: f64, limit: f64) -> (bool, &'static str) {
    if figure.is_nan() {
        (false, "  FAILED: not measured")
    } else if figure <= limit {
        (true, "")
    } else if figure <= 2.0 * limit {
        (true, "  warning: over the limit")
    } else {
        (false, "  FAILED: over twice the limit")
    }
}
