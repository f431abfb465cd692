//! Drivers of a few functions, built as shared libraries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A folder for this run's files.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("cuda-driver-sys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        folder.canonicalize().expect("it was just made")
    })
}

/// Builds the fake driver with some `--cfg`s; `None`, said aloud, where there is no compiler.
pub fn driver(path: &str, cfgs: &[&str]) -> Option<PathBuf> {
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
