//! The build script. By default, it only prints directives for cargo. With the feature `bindgen`, it runs the generator
//! on the user's `cuda.h`; with `link` on Linux, it gives the linker a library to link against.

#[cfg(feature = "bindgen")]
#[path = "build/generate.rs"]
mod generate;

#[cfg(feature = "link")]
#[path = "build/link.rs"]
mod link;

#[cfg(any(feature = "bindgen", feature = "link"))]
#[path = "build/pkg_config.rs"]
mod pkg_config;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(docsrs)");
    #[cfg(feature = "bindgen")]
    report(from_header());
    #[cfg(feature = "link")]
    report(link::link());
}

/// Reports an error to cargo.
#[cfg(any(feature = "bindgen", feature = "link"))]
fn report(outcome: Result<(), String>) {
    if let Err(error) = outcome {
        for line in error.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Checks the user's header against the committed bindings and writes the merged bindings to `OUT_DIR`.
#[cfg(feature = "bindgen")]
fn from_header() -> Result<(), String> {
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-changed=src/generated");
    let target = std::env::var("TARGET").unwrap_or_default();
    // bindgen also reads this variable with the target as a suffix, in two spellings.
    let arguments = "BINDGEN_EXTRA_CLANG_ARGS";
    let for_target = [target.clone(), target.replace('-', "_")].map(|t| format!("{arguments}_{t}"));
    for variable in generate::find::VARIABLES
        .iter()
        .copied()
        .chain(for_target.iter().map(String::as_str))
        .chain([
            arguments,
            "LIBCLANG_PATH",
            "LLVM_CONFIG_PATH",
            "CLANG_PATH",
            "PKG_CONFIG_PATH",
            "PKG_CONFIG_LIBDIR",
            "PKG_CONFIG_SYSROOT_DIR",
        ])
    {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    generate::find::include_folder().and_then(|include| {
        // With a missing file in this list, cargo would rerun the script in every build.
        for file in ["cuda.h", "cudaTypedefs.h"].map(|name| include.join(name)) {
            if file.is_file() {
                println!("cargo::rerun-if-changed={}", file.display());
            }
        }
        let package = std::env::var("CARGO_MANIFEST_DIR").map_err(|e| format!("CARGO_MANIFEST_DIR: {e}"))?;
        let out = std::env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?;
        generate::write_merged(package.as_ref(), include, out.as_ref())
    })
}
