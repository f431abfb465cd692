//! Runs random kernels in the interpreter and as machine code, and compares the results.
//!
//! `random_kernels [COUNT] [SEED] [--print]` runs `COUNT` kernels (1000 if not given), with the seeds from `SEED` on
//! (0 if not given). A kernel with a difference is reduced to a small one, which is printed as PTX; the exit status is
//! then 1. With `--print` the kernels are printed instead of being run.

mod generate;
mod operations;
mod reduce;
mod run;
mod text;
mod tree;

use run::{End, Tier};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut numbers, mut print) = (Vec::new(), false);
    for argument in std::env::args().skip(1) {
        match argument.parse::<u64>() {
            Ok(number) => numbers.push(number),
            Err(_) if argument == "--print" => print = true,
            Err(_) => {
                eprintln!("`{argument}` is neither a number nor --print");
                return ExitCode::FAILURE;
            }
        }
    }
    let count = numbers.first().copied().unwrap_or(1000);
    let first = numbers.get(1).copied().unwrap_or(0);
    let tiers = Tier::all();
    let (mut different, mut faulted) = (0, 0);
    for seed in first..first.saturating_add(count) {
        let kernel = generate::kernel(seed);
        if print {
            println!("// seed {seed}\n{}", text::ptx(&kernel));
            continue;
        }
        let difference = match run::compare(&kernel, &tiers) {
            Ok(end) => {
                faulted += u64::from(end == End::Faulted);
                continue;
            }
            Err(difference) => difference,
        };
        different += 1;
        println!("seed {seed}, {} statements: {difference}", kernel.size());
        let small = reduce::reduce(kernel, |kernel| run::compare(kernel, &tiers).is_err());
        let difference = run::compare(&small, &tiers).err().unwrap_or_default();
        println!(
            "reduced to {} statements, grid {}, block {} x {}: {difference}\n{}",
            small.size(),
            small.grid,
            small.block[0],
            small.block[1],
            text::ptx(&small)
        );
    }
    if !print {
        let ways = tiers.len();
        println!("{count} kernels, {ways} ways each: {different} differences, {faulted} ended with a fault");
    }
    ExitCode::from(u8::from(different > 0))
}
