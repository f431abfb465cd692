//! The names that the CUDA driver's library may have in pkg-config on this machine.

use std::process::Command;

/// Returns `cuda`, the name in distributions, then NVIDIA's names such as `cuda-12.4`, newest first.
pub(crate) fn names() -> Vec<String> {
    let listed = Command::new("pkg-config").arg("--list-all").output();
    let text = listed.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    let mut versions: Vec<(u32, u32)> = text.lines().filter_map(version).collect();
    versions.sort_unstable();
    let versions = versions.iter().rev();
    std::iter::once("cuda".to_owned())
        .chain(versions.map(|(major, minor)| format!("cuda-{major}.{minor}")))
        .collect()
}

/// Returns the version in a line such as `cuda-12.4   description`.
fn version(line: &str) -> Option<(u32, u32)> {
    let name = line.split_whitespace().next()?;
    let (major, minor) = name.strip_prefix("cuda-")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
