//! What a call costs through each layer, over a driver that does nothing, beside calls through plain pointers; and what
//! loading that driver costs.
//!
//! `cargo run --release -p cuda-driver-benches` prints nanoseconds a call, from many rounds in which all variants
//! take turns. Limits are those of an idle machine: over one there is a warning, over twice as much it ends with status 1.

mod layers;
mod loading;
mod measure;
mod quiet;

use std::process::ExitCode;

/// How many times as long as `dlopen` alone loading may take, with the first call.
const LOADING: f64 = 1.3;

fn main() -> ExitCode {
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
    // A raw call costs what a call through a pointer costs; half a nanosecond, two cycles, is noise. A checked one may cost a
    // nanosecond more.
    let limits = [
        (
            "raw call over a pointer",
            "version: raw",
            "version: pointer",
            0.5,
        ),
        (
            "raw launch over a pointer",
            "launch: raw, array made once",
            "launch: pointer, array made once",
            0.5,
        ),
        (
            "checked call over raw",
            "version: checked",
            "version: raw",
            1.0,
        ),
        (
            "checked call out of line over raw",
            "version: checked, out of line",
            "version: raw",
            // Any function that makes a call and looks at its code costs this: four to five cycles for a call and return
            // of its own, which cannot be a jump. The next line compares with one that does no more.
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
            "packed launch over raw",
            "launch: packed, filled once",
            "launch: raw, array made once",
            1.0,
        ),
    ];
    let mut ok = true;
    println!();
    for (what, ours, other, limit) in limits {
        let more = of(ours) - of(other);
        let (passes, verdict) = judged(more, limit);
        ok &= passes;
        println!("{what}: {more:+.2} ns, may be {limit:+.2}{verdict}");
    }
    match loading::measure(quiet.path()) {
        Ok((alone, ours)) => {
            let ratio = ours / alone;
            let (passes, verdict) = judged(ratio - 1.0, LOADING - 1.0);
            ok &= passes;
            println!(
                "load and first cuInit: {ours:.1} us, {ratio:.2} times dlopen alone, may be {LOADING}{verdict}"
            );
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
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether a figure passes, and what is said behind it. A variant that is missing is no number, and passes nothing.
fn judged(figure: f64, limit: f64) -> (bool, &'static str) {
    if figure <= limit {
        (true, "")
    } else if figure <= 2.0 * limit {
        (true, "  warning: over the limit")
    } else {
        (false, "  TOO MUCH")
    }
}
