//! Finds files of driver libraries in known folders of installers and in those that environment variables name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cuda_driver::sys::library::is_stub;

use super::surroundings::Surroundings;
use super::{elf, paths};
use crate::findings::{LibraryFile, LibraryRole};
use crate::library_version::library_version;

/// Folders of drivers and toolkits. `*` stands for the rest of a name.
const FOLDERS: [&str; 26] = [
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/x86_64-linux-gnu/stubs",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/stubs",
    "/usr/lib/powerpc64le-linux-gnu",
    "/usr/lib/i386-linux-gnu",
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/lib32",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/usr/local/cuda*/compat",
    "/usr/local/cuda*/lib64/stubs",
    "/usr/local/cuda*/targets/x86_64-linux/lib/stubs",
    "/usr/local/cuda*/targets/sbsa-linux/lib/stubs",
    "/usr/local/cuda*/targets/ppc64le-linux/lib/stubs",
    "/opt/cuda/lib64/stubs",
    "/opt/cuda/targets/x86_64-linux/lib/stubs",
    "/.singularity.d/libs",
];

const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Finds the libraries: each file once, by the first path that leads to it.
pub(super) fn find(surroundings: &Surroundings) -> Vec<LibraryFile> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for folder in folders(surroundings) {
        for name in NAMES {
            let path = folder.join(name);
            let Ok(real) = path.canonicalize() else {
                continue;
            };
            if real.is_file() && seen.insert(real.clone()) {
                found.push(describe(&surroundings.root, &path, &real));
            }
        }
    }
    found
}

fn folders(surroundings: &Surroundings) -> Vec<PathBuf> {
    let root = &surroundings.root;
    let mut folders = Vec::new();
    for folder in surroundings.variable("LD_LIBRARY_PATH").unwrap_or_default().split(':') {
        if folder.starts_with('/') {
            folders.push(paths::below(root, folder));
        }
    }
    for (variable, folder) in [
        ("CONDA_PREFIX", "lib/stubs"),
        ("CUDA_PATH", "lib64/stubs"),
        ("CUDA_HOME", "lib64/stubs"),
    ] {
        if let Some(prefix) = surroundings.variable(variable) {
            folders.push(paths::below(root, prefix).join(folder));
        }
    }
    for folder in FOLDERS {
        match folder.split_once('*') {
            None => folders.push(paths::below(root, folder)),
            Some((before, after)) => {
                let (parent, start) = before.rsplit_once('/').unwrap_or_default();
                let names = paths::names(root, parent)
                    .into_iter()
                    .filter(|name| name.starts_with(start));
                folders.extend(names.map(|name| paths::below(root, &format!("{parent}/{name}{after}"))));
            }
        }
    }
    folders
}

fn describe(root: &Path, path: &Path, real: &Path) -> LibraryFile {
    let role = if is_stub(path) || is_stub(real) {
        LibraryRole::Stub
    } else if path.parent().is_some_and(|folder| folder.ends_with("compat")) {
        LibraryRole::Compatibility
    } else {
        LibraryRole::Driver
    };
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let real_path = paths::display(&real_root, real);
    let path = paths::display(root, path);
    LibraryFile {
        version: library_version(real),
        elf: elf::read(real),
        real_path: Some(real_path).filter(|real| *real != path),
        role,
        path,
    }
}
