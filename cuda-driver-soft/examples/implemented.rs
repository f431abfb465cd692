//! Prints the exports that the software driver implements, one per line. `cargo xtask generate` puts them into API.md.

fn main() {
    for symbol in cuda_driver_soft::IMPLEMENTED {
        println!("{symbol}");
    }
}
