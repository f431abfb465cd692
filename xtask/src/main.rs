//! `cargo xtask …`: the only writer of committed generated files.

mod kernels;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((command, rest)) if command == "kernels" => kernels::run(rest),
        _ => {
            eprintln!("usage: cargo xtask bindings|api|checked|kernels|headers");
            ExitCode::from(2)
        }
    }
}
