//! What a call costs through each layer, over a driver that does nothing, beside C that calls through pointers.
//!
//! `cargo run --release -p cuda-driver-benches` prints nanoseconds a call, from many rounds in which all variants
//! take turns. It ends with status 1 if a layer costs more than it may.

mod layers;
mod measure;
mod quiet;

use std::process::ExitCode;

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
    // A raw call tests its slot, which C does not: three cycles. A checked call may cost one nanosecond more.
    let limits = [
        ("raw call over C", "version: raw", "version: C", 1.2),
        (
            "raw launch over C",
            "launch: raw, array made once",
            "launch: C, array made once",
            1.2,
        ),
        (
            "checked call over raw",
            "version: checked",
            "version: raw",
            1.0,
        ),
        (
            "checked allocation over C",
            "alloc: checked",
            "alloc: C",
            2.2,
        ),
        (
            "tuple launch over C",
            "launch: tuple",
            "launch: C, array made each time",
            1.6,
        ),
        (
            "packed launch over raw",
            "launch: packed, filled once",
            "launch: raw, array made once",
            1.2,
        ),
    ];
    let mut ok = true;
    println!();
    for (what, ours, other, limit) in limits {
        let more = of(ours) - of(other);
        // A variant that is missing is no number, and fits nothing.
        let fits = more <= limit;
        ok &= fits;
        let verdict = if fits { "" } else { "  TOO MUCH" };
        println!("{what}: {more:+.2} ns, may be {limit:+.2}{verdict}");
    }
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
