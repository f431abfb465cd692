//! Prints the exports that the software driver implements, one per line. `cargo xtask generate` runs this example, and
//! marks and counts these exports in API.md.

fn main() {
    for symbol in cuda_driver_soft::IMPLEMENTED {
        println!("{symbol}");
    }
}
