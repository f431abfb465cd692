//! The generator of the raw bindings: `cuda.h` in, Rust source out.
//!
//! `cargo xtask bindings` and, with the feature `bindgen`, `build.rs` both include this file, so that there is one
//! generator. bindgen reads the header; `model` sorts what it found into constants, enumerations, records, aliases
//! and functions; `render` writes these down again in the form that is committed, without a word of the header's text.

// What only build.rs needs.
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

/// Written into the first line of every generated file.
pub(crate) const GENERATOR: &str = "cuda-driver-sys/build/generate.rs (bindgen 0.73.2)";

/// The macros whose value bindgen types wrongly; `src/constants.rs` has them by hand.
const MISTYPED: &[&str] = &["CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY"];

/// What fields without a name are called, with a number behind.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Where the header is, and what clang is told besides.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// The folder that holds `cuda.h` and `cudaTypedefs.h`.
    pub(crate) include: PathBuf,
    /// `wrapper.h`.
    pub(crate) wrapper: PathBuf,
    /// For instance `-resource-dir …` where libclang comes without its own headers.
    pub(crate) clang_args: Vec<String>,
}

/// Runs bindgen over the header and sorts what it declares.
///
/// # Errors
/// What bindgen or the reader of its output objects to.
pub(crate) fn read_header(input: &Input) -> Result<Model, String> {
    let source = run_bindgen(input)?;
    let file =
        syn::parse_file(&source).map_err(|e| format!("bindgen's output does not parse: {e}"))?;
    Model::from_bindgen(&file)
}

/// What `build.rs` does with the feature `bindgen`: the committed bindings of a package, with what the header in
/// `include` adds, are written to `out`.
///
/// # Errors
/// What the header says otherwise than the committed bindings, one line each, or what could not be read.
#[cfg(feature = "bindgen")]
pub(crate) fn write_merged(package: &Path, include: PathBuf, out: &Path) -> Result<(), String> {
    let input = Input {
        include,
        wrapper: package.join("wrapper.h"),
        clang_args: Vec::new(),
    };
    let header = clang::read(|| read_header(&input))?;
    let typedefs =
        std::fs::read_to_string(input.include.join("cudaTypedefs.h")).unwrap_or_default();
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
            "cargo::warning={} has functions that the bindings are left without, since only a header of a newer CUDA \
             version than theirs adds any: {}",
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
        // Without C11 the header drops the alignment of CUtensorMap; the second option declares all 685 exports.
        .clang_args(["-x", "c", "-std=c17", "-D__CUDA_API_VERSION_INTERNAL"])
        .clang_args(&input.clang_args)
        .rust_target(
            bindgen::RustTarget::stable(85, 0)
                .map_err(|_| "bindgen does not know Rust 1.85".to_owned())?,
        )
        .rust_edition(bindgen::RustEdition::Edition2024)
        .use_core()
        // The header's comments are NVIDIA's.
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
        .anon_fields_prefix(ANONYMOUS)
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
    path.to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
