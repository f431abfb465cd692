//! Generates the raw bindings from `cuda.h`.
//!
//! The crate `xtask` and, with the feature `bindgen`, `build.rs` include this file. bindgen reads the header;
//! `model` sorts its items into constants, enumerations, records, aliases and functions; `render` writes the Rust
//! source, which contains no comment of the header.

// Only build.rs reports errors of an incomplete clang.
#[cfg(feature = "bindgen")]
mod clang;
#[cfg(any(feature = "bindgen", test))]
pub(crate) mod committed;
mod facts;
#[cfg(feature = "bindgen")]
pub(crate) mod find;
pub(crate) mod merge;
pub(crate) mod model;
pub(crate) mod registry;
pub(crate) mod render;
mod signature;
mod unnamed;

use std::path::{Path, PathBuf};

pub(crate) use model::Model;

/// Macros for which bindgen chooses the wrong type; `src/constants.rs` defines them by hand.
const MISTYPED: &[&str] = &["CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY"];

/// The location of the header, and arguments for clang.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// The folder that contains `cuda.h` and, in most toolkits, `cudaTypedefs.h`.
    pub(crate) include: PathBuf,
    /// The path of `wrapper.h`.
    pub(crate) wrapper: PathBuf,
    /// Further arguments, for instance `-resource-dir …` for a libclang without its own headers.
    pub(crate) clang_args: Vec<String>,
}

/// Runs bindgen on the header and sorts its declarations.
///
/// # Errors
/// An error of bindgen, or output of bindgen that this generator does not know.
pub(crate) fn read_header(input: &Input) -> Result<Model, String> {
    let source = run_bindgen(input)?;
    let file = syn::parse_file(&source).map_err(|e| format!("bindgen's output does not parse: {e}"))?;
    Model::from_bindgen(&file)
}

/// Writes the committed bindings of a package, extended by the header in `include`, to `out`. `build.rs` calls this
/// with the feature `bindgen`.
///
/// # Errors
/// The differences between the header and the committed bindings, one line each; an error of [`read_header`]; or a file
/// that could not be read or written.
#[cfg(feature = "bindgen")]
pub(crate) fn write_merged(package: &Path, include: PathBuf, out: &Path) -> Result<(), String> {
    let input = Input {
        include,
        wrapper: package.join("wrapper.h"),
        clang_args: Vec::new(),
    };
    let header = clang::read(|| read_header(&input))?;
    let typedefs = std::fs::read_to_string(input.include.join("cudaTypedefs.h")).unwrap_or_default();
    let (committed, registry) = committed::read_folder(&package.join("src/generated"))?;
    let place = input.include.join("cuda.h");
    let stamp = format!(
        "the committed bindings and {} ({})",
        place.display(),
        merge::version(&header)
    );
    let left_out = merge::left_out(&committed, &registry, &header);
    if !left_out.is_empty() {
        println!(
            "cargo::warning={} declares functions that are not added to the bindings, because its CUDA version is not \
             newer than theirs: {}",
            place.display(),
            left_out.join(", ")
        );
    }
    let (model, registry) = merge::merge(committed, registry, &header, &typedefs).map_err(|differences| {
        format!(
            "{} differs from the committed bindings. Please report this, and switch the feature `bindgen` off: \
             the committed bindings need no header.\n{}",
            place.display(),
            differences.join("\n")
        )
    })?;
    for file in render::render(&model, &registry, &stamp) {
        let path = out.join(file.name);
        std::fs::write(&path, file.text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn run_bindgen(input: &Input) -> Result<String, String> {
    let mut builder = bindgen::Builder::default()
        .header(path_text(&input.wrapper)?)
        .clang_arg(format!("-I{}", path_text(&input.include)?))
        // With a standard before C11, the header drops the alignment of CUtensorMap. The macro makes the header declare
        // all variants of functions.
        .clang_args(["-x", "c", "-std=c17", "-D__CUDA_API_VERSION_INTERNAL"])
        .clang_args(&input.clang_args)
        .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|_| "bindgen does not know Rust 1.85".to_owned())?)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .use_core()
        // The header's comments are NVIDIA's, and must not be copied.
        .generate_comments(false)
        // A Rust enum would make a value newer than the header undefined behaviour.
        .default_enum_style(bindgen::EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        .allowlist_function("cu.*")
        .allowlist_type("(CU|cu|cl_).*")
        .allowlist_var("(CU|cu).*")
        .blocklist_type("PFN_.*")
        .override_abi(bindgen::Abi::System, ".*")
        .anon_fields_prefix(unnamed::ANONYMOUS)
        .formatter(bindgen::Formatter::None);
    for name in MISTYPED {
        builder = builder.blocklist_var(*name);
    }
    builder
        .generate()
        .map(|bindings| bindings.to_string())
        .map_err(|error| {
            format!(
                "bindgen could not read {}: {error}",
                input.include.join("cuda.h").display()
            )
        })
}

fn path_text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
