//! Prints the plans of the kernels in a PTX file: the analyses that compilation uses.
//!
//! `ptx_plan [--lanes N] [--partial] [--kernel NAME] FILE…` prints basic blocks, loops, live registers, shapes for
//! groups of `N` lanes (16 if not given), and phases. With `--partial` the size of a block need not be a multiple of
//! `N`.

use cuda_driver_soft_engine::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut lanes, mut whole, mut wanted) = (16, true, None);
    let mut args = std::env::args().skip(1);
    let mut failed = false;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--lanes" => match args.next().and_then(|n| n.parse::<u32>().ok()) {
                Some(n) if n.is_power_of_two() && n <= 32 => lanes = n,
                _ => {
                    eprintln!("--lanes needs 1, 2, 4, 8, 16 or 32");
                    return ExitCode::FAILURE;
                }
            },
            "--partial" => whole = false,
            "--kernel" => wanted = args.next(),
            file => match print(file, lanes, whole, wanted.as_deref()) {
                Ok(()) => {}
                Err(error) => {
                    eprintln!("{file}: {error}");
                    failed = true;
                }
            },
        }
    }
    ExitCode::from(u8::from(failed))
}

fn print(file: &str, lanes: u32, whole: bool, wanted: Option<&str>) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read(file)?;
    let loaded = ptx::load(&text, &ptx::Limits::default()).map_err(|failure| failure.log)?;
    let program = Program::load(loaded.module, 0)?;
    for kernel in program.kernels() {
        if wanted.is_none_or(|name| name == kernel.name()) {
            println!("{}\n{}", kernel.name(), kernel.describe_plan(lanes, whole));
        }
    }
    Ok(())
}
