//! Prints the plans of the kernels in a PTX file: the analyses that compilation uses.
//!
//! `ptx_plan [--lanes N] [--partial] [--kernel NAME] FILE…` prints basic blocks, loops, live registers, shapes for
//! groups of `N` lanes (16 if not given), and phases. With `--partial` the size of a block along x need not be a
//! multiple of `N`.
//!
//! `ptx_plan --code [--kernel NAME] FILE…` prints for each kernel the instructions that the interpreter runs when the
//! kernel is compiled, and how often each kind of them occurs in all files (in a loop, an instruction counts 8 times).
//!
//! Options apply to the files after them.

use cuda_driver_soft_engine::{Kernel, Launch, Options, Program};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let (mut lanes, mut whole, mut wanted) = (16, true, None);
    let mut code = None;
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
            "--code" => code = Some(BTreeMap::new()),
            "--kernel" => wanted = args.next(),
            file => match print(file, lanes, whole, wanted.as_deref(), code.as_mut()) {
                Ok(()) => {}
                Err(error) => {
                    eprintln!("{file}: {error}");
                    failed = true;
                }
            },
        }
    }
    let mut kinds: Vec<(String, u64)> = code.unwrap_or_default().into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (kind, count) in kinds {
        println!("{count:8} {kind}");
    }
    ExitCode::from(u8::from(failed))
}

/// The number of times that an instruction in a loop counts.
const IN_A_LOOP: u64 = 8;

/// Adds the lines of [`Launch::describe_code`] to the numbers of each kind of line.
fn count(kinds: &mut BTreeMap<String, u64>, lines: &str) {
    for line in lines.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (kind, times) = match columns.as_slice() {
            [how, nesting, op, _] => {
                let times = if *nesting == "0" { 1 } else { IN_A_LOOP };
                (format!("{how} {op}"), times)
            }
            _ => (line.split('[').next().unwrap_or(line).to_owned(), 1),
        };
        *kinds.entry(kind).or_default() += times;
    }
}

fn print(
    file: &str,
    lanes: u32,
    whole: bool,
    wanted: Option<&str>,
    mut code: Option<&mut BTreeMap<String, u64>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read(file)?;
    let loaded = ptx::load(&text, &ptx::Limits::default()).map_err(|failure| failure.log)?;
    let program = Program::load(loaded.module, 0)?;
    for kernel in program.kernels() {
        if wanted.is_none_or(|name| name == kernel.name()) {
            let text = match &mut code {
                Some(kinds) => {
                    let text = described(kernel);
                    count(kinds, &text);
                    text
                }
                None => kernel.describe_plan(lanes, whole),
            };
            println!("{}\n{text}", kernel.name());
        }
    }
    Ok(())
}

/// Returns the instructions of a kernel, in blocks of 256 threads, that the interpreter runs if the kernel is compiled.
fn described(kernel: &Arc<Kernel>) -> String {
    let launch = Launch {
        kernel: Arc::clone(kernel),
        grid: [1; 3],
        block: [256, 1, 1],
        dynamic_shared: 0,
        params: Box::default(),
        options: Options::default(),
    };
    launch.describe_code()
}
