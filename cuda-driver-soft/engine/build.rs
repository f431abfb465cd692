//! Tells the crate how it is compiled, so that it can say so when that makes it slow.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=CUDA_DRIVER_SOFT_OPT_LEVEL={level}");
}
