//! `cargo xtask …`: the only writer of committed generated files.

fn main() {
    eprintln!("usage: cargo xtask bindings|api|checked|kernels|headers");
    std::process::exit(2);
}
