//! Drivers of a few functions, built as shared libraries.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A folder for this run's files.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("cuda-driver-sys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        folder.canonicalize().expect("it was just made")
    })
}

/// What cargo's environment says about this target where it is not the machine's own: how to link for it (`LINKER`),
/// and what runs its programs (`RUNNER`).
pub(crate) fn configured(what: &str) -> Option<OsString> {
    let name = format!(
        "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_{what}",
        ARCH.to_uppercase()
    );
    std::env::var_os(name)
}

/// Builds the fake driver with some `--cfg`s; `None`, said aloud, where there is no compiler.
pub(crate) fn driver(path: &str, cfgs: &[&str]) -> Option<PathBuf> {
    let library = folder().join(path);
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("a folder for the fake");
    let source = library.with_extension("rs");
    std::fs::write(&source, include_str!("driver.rs")).expect("a file for its source");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition=2024",
        "-Cpanic=abort",
        "-Copt-level=1",
        "--crate-name=fake",
    ]);
    if let Some(linker) = configured("LINKER") {
        rustc.arg(format!("--target={ARCH}-unknown-linux-gnu"));
        rustc
            .arg("-C")
            .arg([OsStr::new("linker="), &linker].join(OsStr::new("")));
    }
    rustc.arg(source).arg("-o").arg(&library);
    for cfg in cfgs {
        rustc.args(["--cfg", cfg]);
    }
    match rustc.output() {
        Err(error) => {
            println!("needs rustc: {error}");
            None
        }
        Ok(output) => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(library)
        }
    }
}
