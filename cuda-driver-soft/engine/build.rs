//! Passes the optimisation level to the crate, so that it can warn about slow builds.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=CUDA_DRIVER_SOFT_OPT_LEVEL={level}");
}
