//! Loads PTX files as the software driver does: `ptx_load [--ir] [--sm N] FILE…` prints the errors, or the time that it
//! took and, with `--ir`, the intermediate representation.

use cuda_driver_soft::ptx::{self, Limits};
use std::time::Instant;

fn main() -> std::process::ExitCode {
    let mut limits = Limits::default();
    let mut show = false;
    let mut failed = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--ir" => show = true,
            "--sm" => {
                limits.sm = args
                    .next()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(limits.sm)
            }
            file => failed |= !load(file, &limits, show),
        }
    }
    std::process::ExitCode::from(u8::from(failed))
}

fn load(file: &str, limits: &Limits, show: bool) -> bool {
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
            true
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
