//! Passes the optimisation level to the crate, so that the driver can log a warning about a build without optimisation.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=CUDA_DRIVER_SOFT_OPT_LEVEL={level}");
}
