//! Runs examples of the software driver and returns their output.

use std::process::Command;

use crate::files::root;

/// Runs an example of a package of the software driver, and returns its output.
pub(crate) fn output_of_example(package: &str, name: &str) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", package, "--example", name])
        .current_dir(root())
        .output()
        .map_err(|e| format!("cargo run --example {name}: {e}"))?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("cargo run --example {name} failed:\n{}", text(&output.stderr)))
}
