//! Loads PTX files as the software driver does.
//!
//! `ptx_load [--ir] [--run] [--sm N] FILE…` prints the errors of each file or, if there are none, the times of loading
//! and lowering, and the warnings.
//!
//! Options apply to the files after them: `--ir` prints the intermediate representation, `--run` the instructions that
//! cannot be run, and `--sm` sets the device's architecture.

use cuda_driver_soft_engine::Program;
use ptx::Limits;
use ptx::ir::{Module, Op};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

fn main() -> std::process::ExitCode {
    let mut limits = Limits::default();
    let (mut show, mut run) = (false, false);
    let mut failed = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--ir" => show = true,
            "--run" => run = true,
            "--sm" => match args.next().and_then(|n| n.parse().ok()) {
                Some(sm) => limits.sm = sm,
                None => {
                    eprintln!("--sm needs the number of an architecture, such as 90");
                    return std::process::ExitCode::FAILURE;
                }
            },
            file => failed |= !load(file, &limits, show, run),
        }
    }
    std::process::ExitCode::from(u8::from(failed))
}

fn load(file: &str, limits: &Limits, show: bool, run: bool) -> bool {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return false;
        }
    };
    let start = Instant::now();
    match ptx::load(&text, limits) {
        Ok(loaded) => {
            let load = start.elapsed();
            let start = Instant::now();
            let bodies = loaded
                .module
                .functions
                .iter()
                .filter_map(|f| f.body().map(|body| (f, body)));
            let insts: usize = bodies.clone().map(|(_, body)| body.insts.len()).sum();
            let lower = start.elapsed();
            let speed = text.len() as f64 / 1e6 / load.as_secs_f64();
            println!(
                "{file}: {} bytes, load {load:.1?} ({speed:.0} MB/s), lower {lower:.1?}, {insts} instructions",
                text.len()
            );
            for diagnostic in &loaded.diagnostics {
                println!("{file}:{diagnostic}");
            }
            if show {
                print!("{}", loaded.module);
            }
            !run || runs(file, &loaded.module)
        }
        Err(failure) => {
            for diagnostic in &failure.diagnostics {
                eprintln!("{file}:{diagnostic}");
            }
            eprintln!("{}", failure.log);
            false
        }
    }
}

/// Returns true if every instruction can be run; prints the others and how often they occur.
fn runs(file: &str, module: &Arc<Module>) -> bool {
    let bodies = module.functions.iter().filter_map(|f| f.body());
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for inst in bodies.flat_map(|body| &body.insts) {
        if let Op::Unsupported { opcode } = &inst.op {
            *refused.entry(opcode.clone()).or_default() += 1;
        }
    }
    for (opcode, count) in &refused {
        println!("{file}: unsupported: {opcode} ({count} times)");
    }
    let program = match Program::load(module.clone(), 0) {
        Ok(program) => program,
        Err(error) => {
            println!("{file}: {error:?}");
            return false;
        }
    };
    let mut all = refused.is_empty();
    for kernel in program.kernels() {
        if let Some(why) = kernel.unsupported() {
            println!("{file}: `{}`: unsupported instruction {why}", kernel.name());
            all = false;
        }
    }
    all
}
