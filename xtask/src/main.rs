//! `cargo xtask …`: the only writer of committed generated files.

mod annotations;
mod api;
mod api_md;
mod bindings;
mod checked;
mod directions;
mod every_header;
// Written for the older compiler that the binding crates support, which has no let-chains.
#[allow(clippy::collapsible_if)]
#[path = "../../cuda-driver-sys/build/generate.rs"]
mod generate;
mod headers;
mod kernels;
#[cfg(test)]
mod merge_tests;
mod news;
#[cfg(feature = "bindgen")]
#[path = "../../cuda-driver-sys/build/pkg_config.rs"]
mod pkg_config;
mod plain_names;
mod ptx_md;
mod results;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A subcommand: its name, what it does, and the function that does it.
type Task = (&'static str, &'static str, fn() -> Result<(), String>);

const TASKS: &[Task] = &[
    (
        "headers",
        "fetch the pinned CUDA headers and libclang into .cache/",
        headers::run,
    ),
    (
        "every-header",
        "fetch the header package of every CUDA release since 11.7 into .cache/",
        every_header::run,
    ),
    (
        "api",
        "write cuda-driver-sys/api/functions.toml; with --check, check annotations.toml",
        api::run,
    ),
    (
        "api-md",
        "write API.md from the registry and the sources",
        api_md::run,
    ),
    (
        "directions",
        "compare annotations.toml with NVIDIA's Python bindings",
        directions::run,
    ),
    (
        "results",
        "compare the result codes of annotations.toml with the manual",
        results::run,
    ),
    (
        "bindings",
        "write cuda-driver-sys/src/generated/",
        bindings::run,
    ),
    (
        "checked",
        "write src/checked/generated/ from cuda-driver-sys/api/",
        checked::run,
    ),
    (
        "kernels",
        "compile tests/kernels/*.cu to PTX; with --check, compare",
        kernels::run,
    ),
    (
        "ptx-md",
        "write PTX.md: which PTX instructions the software driver runs",
        ptx_md::run,
    ),
];

/// The exit status when a download failed three times: EX_TEMPFAIL of `sysexits.h`.
const NOT_FETCHED: u8 = 75;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let Some((_, _, task)) = TASKS
        .iter()
        .find(|(name, _, _)| Some(*name) == wanted.as_deref())
    else {
        eprintln!("usage: cargo xtask <task>");
        for (name, what, _) in TASKS {
            eprintln!("  {name:10} {what}");
        }
        return ExitCode::from(2);
    };
    match task() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {}: {error}", wanted.unwrap_or_default());
            // A step that a failed download stopped is told apart from one that failed.
            if error.contains(headers::NOT_FETCHED) {
                ExitCode::from(NOT_FETCHED)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Writes a file only where its text changed, so that nothing is rebuilt for nothing.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let parent = path.parent().ok_or("a file without a folder")?;
    std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a text file; the error names it.
fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
