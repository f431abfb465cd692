//! Nothing to build by default.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
