//! Finds the user's `cuda.h`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pkg_config;

/// Environment variables that name a toolkit, in order of precedence.
pub(crate) const VARIABLES: &[&str] = &["CUDA_PATH", "CUDA_HOME"];

/// Returns the folder that contains `cuda.h`. If `CUDA_PATH` or `CUDA_HOME` is set, searches only the toolkit that it
/// names. Otherwise searches the folders that pkg-config names, then the usual folders, then the header packages that
/// pip installed.
///
/// # Errors
/// A list of every place that was searched.
pub(crate) fn include_folder() -> Result<PathBuf, String> {
    let mut tried = Vec::new();
    for variable in VARIABLES {
        let Some(toolkit) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
            continue;
        };
        let toolkit = Path::new(&toolkit);
        let mut folders = vec![toolkit.join("include")];
        // Toolkits for other processors and conda's have a folder for each target; its headers are the same for all.
        let targets = ["x86_64-linux", "aarch64-linux", "sbsa-linux"];
        folders.extend(targets.map(|target| toolkit.join("targets").join(target).join("include")));
        // The variable may name the include folder itself.
        folders.push(toolkit.to_owned());
        return holds_header(&folders, &mut tried).ok_or_else(|| {
            format!(
                "{variable} is set, but there is no cuda.h in {}; set it to the folder of a toolkit, or switch the feature \
                 `bindgen` off: the committed bindings need no header",
                tried.join(" or ")
            )
        });
    }
    let from_pkg_config = from_pkg_config();
    if from_pkg_config.is_empty() {
        tried.push("the packages of pkg-config (which is missing or has no CUDA package)".to_owned());
    }
    let found = holds_header(&from_pkg_config, &mut tried)
        .or_else(|| holds_header(&usual(), &mut tried))
        .or_else(|| holds_header(&from_pip(), &mut tried));
    found.ok_or_else(|| {
        format!(
            "the feature `bindgen` needs cuda.h; set CUDA_PATH to a toolkit's folder, or `pip install \
             nvidia-cuda-runtime`, or switch the feature off: the committed bindings need no header. Looked in {}",
            tried.join(", ")
        )
    })
}

/// Returns the first of these folders that contains the header; adds the folders before it to `tried`.
fn holds_header(folders: &[PathBuf], tried: &mut Vec<String>) -> Option<PathBuf> {
    for folder in folders {
        if folder.join("cuda.h").is_file() {
            return Some(folder.clone());
        }
        tried.push(folder.display().to_string());
    }
    None
}

/// Returns the include folders of the CUDA packages that pkg-config knows.
fn from_pkg_config() -> Vec<PathBuf> {
    let names = pkg_config::names();
    names
        .iter()
        .filter_map(|name| output("pkg-config", &["--variable=includedir", name]))
        .collect()
}

/// Returns the include folders of toolkits and distributions.
fn usual() -> Vec<PathBuf> {
    let fixed = [
        "/usr/local/cuda/include",
        "/opt/cuda/include",
        "/usr/lib/cuda/include",
        "/usr/include",
    ];
    fixed.iter().map(PathBuf::from).collect()
}

/// Returns the include folders in which pip installs NVIDIA's header packages.
fn from_pip() -> Vec<PathBuf> {
    // Without permission to write to the first folder, pip installs into the second one.
    const PROGRAM: &str =
        "import site, sysconfig; print(sysconfig.get_path('purelib'), site.getusersitepackages(), sep='\\n')";
    let Some(sites) = output("python3", &["-c", PROGRAM]) else {
        return Vec::new();
    };
    let sites = sites.to_string_lossy();
    let places = ["nvidia/cu13/include", "nvidia/cuda_runtime/include"];
    sites
        .lines()
        .flat_map(|site| places.map(|place| Path::new(site).join(place)))
        .collect()
}

/// Returns the output of a program as a path; `None` if it fails or prints nothing.
fn output(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then(|| PathBuf::from(text))
}
