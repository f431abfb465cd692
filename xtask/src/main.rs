//! `cargo xtask …`: writes the committed generated files, and checks facts against outside sources.

mod annotations;
mod api_md;
// Written for Rust 1.85, which has no let-chains.
#[allow(clippy::collapsible_if)]
#[path = "../../cuda-driver-sys/build/generate.rs"]
mod bindings;
mod c_type;
mod checked;
mod checks;
mod directions;
mod every_header;
mod files;
mod functions_toml;
mod generate;
mod headers;
mod kernels;
mod kind;
#[cfg(test)]
mod merge_tests;
mod news;
#[cfg(feature = "bindgen")]
#[path = "../../cuda-driver-sys/build/pkg_config.rs"]
mod pkg_config;
mod plain_names;
mod ptx_md;
mod registry;
mod results;
mod software;
mod trace_table;

use std::process::ExitCode;

/// A task: its name, a description, and the function that runs it.
type Task = (&'static str, &'static str, fn() -> Result<(), String>);

const TASKS: &[Task] = &[
    (
        "generate",
        "write the generated files, except those of `directions` and `kernels`",
        generate::run,
    ),
    (
        "news",
        "list the questions about a new header that only a person can answer",
        news::run,
    ),
    (
        "headers",
        "fetch the generator's CUDA headers and libclang into .cache/",
        headers::run,
    ),
    (
        "every-header",
        "fetch the header of every CUDA release since 11.7 into .cache/",
        every_header::run,
    ),
    (
        "directions",
        "record the directions of NVIDIA's Python bindings; with --check, only compare",
        directions::run,
    ),
    (
        "results",
        "compare the result codes and deprecations of annotations.toml with the header",
        results::run,
    ),
    (
        "kernels",
        "compile tests/kernels/*.cu to PTX; with --check, only compare",
        kernels::run,
    ),
];

/// The exit status when a download failed three times: EX_TEMPFAIL of `sysexits.h`.
const NOT_FETCHED: u8 = 75;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let Some((_, _, task)) = TASKS.iter().find(|(name, _, _)| Some(*name) == wanted.as_deref()) else {
        eprintln!("usage: cargo xtask <task>");
        for (name, description, _) in TASKS {
            eprintln!("  {name:12} {description}");
        }
        return ExitCode::from(2);
    };
    match task() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {}: {error}", wanted.unwrap_or_default());
            // CI distinguishes a failed download from a failed step.
            if error.contains(headers::NOT_FETCHED) {
                ExitCode::from(NOT_FETCHED)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
