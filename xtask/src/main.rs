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

use std::path::Path;
use std::process::ExitCode;

/// A task: its name, a description, and the function that runs it with the arguments after the name.
type Task = (&'static str, &'static str, Run);

enum Run {
    /// A task without arguments.
    Alone(fn() -> Result<(), String>),
    /// A task that takes `--check`: compare instead of writing.
    Check(fn(check: bool) -> Result<(), String>),
    /// A task that takes a file.
    File(fn(file: &Path) -> Result<(), String>),
}

impl Run {
    fn with(&self, arguments: &[String]) -> Result<(), String> {
        match (self, arguments) {
            (Self::Alone(run), []) => run(),
            (Self::Check(run), []) => run(false),
            (Self::Check(run), [check]) if check == "--check" => run(true),
            (Self::File(run), [file]) => run(file.as_ref()),
            _ => Err(format!("wrong arguments: {arguments:?}")),
        }
    }
}

const TASKS: &[Task] = &[
    (
        "generate",
        "write the generated files, except those of `directions` and `kernels`",
        Run::Alone(generate::run),
    ),
    (
        "news",
        "list the questions about a new header that only a person can answer",
        Run::Alone(news::run),
    ),
    (
        "headers",
        "fetch the generator's CUDA headers and libclang into .cache/",
        Run::Alone(headers::run),
    ),
    (
        "every-header",
        "fetch the header of every CUDA release since 11.7 into .cache/",
        Run::Alone(every_header::run),
    ),
    (
        "directions",
        "record the directions of NVIDIA's Python bindings; with --check, only compare",
        Run::Check(directions::run),
    ),
    (
        "results",
        "compare the result codes and deprecations of annotations.toml with the header",
        Run::Alone(results::run),
    ),
    (
        "kernels",
        "compile tests/kernels/*.cu to PTX; with --check, only compare",
        Run::Check(kernels::run),
    ),
    (
        "kernel",
        "compile one file to PTX and print it",
        Run::File(kernels::print),
    ),
];

/// The exit status when a download failed three times: EX_TEMPFAIL of `sysexits.h`.
const NOT_FETCHED: u8 = 75;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let arguments: Vec<String> = arguments.collect();
    let Some((_, _, task)) = TASKS.iter().find(|(name, _, _)| Some(*name) == wanted.as_deref()) else {
        eprintln!("usage: cargo xtask <task>");
        for (name, description, _) in TASKS {
            eprintln!("  {name:12} {description}");
        }
        return ExitCode::from(2);
    };
    match task.with(&arguments) {
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

#[cfg(test)]
mod tests {
    use super::Run;

    #[test]
    fn tasks_refuse_arguments_that_they_do_not_take() {
        let ask = |run: Run, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
            run.with(&arguments).is_ok()
        };
        let alone = || Run::Alone(|| Ok(()));
        assert!(ask(alone(), &[]));
        assert!(!ask(alone(), &["--check"]));
        let checks = || Run::Check(|check| if check { Ok(()) } else { Err("wrote".to_owned()) });
        assert!(!ask(checks(), &[]));
        assert!(ask(checks(), &["--check"]));
        for arguments in [&["--chekc"][..], &["--check", "--check"]] {
            assert!(!ask(checks(), arguments), "{arguments:?}");
        }
        assert!(!ask(Run::File(|_| Ok(())), &[]));
    }
}
