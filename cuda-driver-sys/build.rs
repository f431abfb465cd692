//! Nothing to build by default. With the feature `bindgen`, the generator reads the user's `cuda.h`; with `link`, the
//! linker is told where the driver's library is.

#[cfg(feature = "bindgen")]
#[path = "build/generate.rs"]
mod generate;

#[cfg(feature = "link")]
#[path = "build/link.rs"]
mod link;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(docsrs)");
    #[cfg(feature = "bindgen")]
    report(from_header());
    #[cfg(feature = "link")]
    report(link::link());
}

/// Makes what went wrong an error of the build.
#[cfg(any(feature = "bindgen", feature = "link"))]
fn report(outcome: Result<(), String>) {
    if let Err(error) = outcome {
        for line in error.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Checks the user's header against the committed bindings and writes both together into `OUT_DIR`.
#[cfg(feature = "bindgen")]
fn from_header() -> Result<(), String> {
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-changed=src/generated");
    for variable in generate::find::VARIABLES.iter().chain(&[
        "LIBCLANG_PATH",
        "BINDGEN_EXTRA_CLANG_ARGS",
        "PKG_CONFIG_PATH",
    ]) {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    generate::find::include_folder().and_then(|include| {
        println!(
            "cargo::rerun-if-changed={}",
            include.join("cuda.h").display()
        );
        let package =
            std::env::var("CARGO_MANIFEST_DIR").map_err(|e| format!("CARGO_MANIFEST_DIR: {e}"))?;
        let out = std::env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?;
        generate::write_merged(package.as_ref(), include, out.as_ref())
    })
}
