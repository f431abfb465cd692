//! `cargo xtask headers`: fetches NVIDIA's header packages and a libclang from PyPI into `.cache/`.
//!
//! They are inputs of the generator and of tests, and are never committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{generate, root};

/// A package of PyPI at one version, and a file that must be in it.
struct Package {
    name: &'static str,
    version: &'static str,
    holds: &'static str,
}

/// The header that the bindings are made from.
const CURRENT: Package = Package {
    name: "nvidia-cuda-runtime",
    version: "13.5.37",
    holds: "nvidia/cu13/include/cuda.h",
};

/// The last header of CUDA 12, which says what the plain names mean.
const FROZEN: Package = Package {
    name: "nvidia-cuda-runtime-cu12",
    version: "12.9.79",
    holds: "nvidia/cuda_runtime/include/cuda.h",
};

/// A libclang that brings its own headers along.
const LIBCLANG: Package = Package {
    name: "libclang-ng",
    version: "22.1.4.2",
    holds: "clang/native/libclang.so",
};

/// Version of the header that the bindings are made from, as the first lines of generated files name it.
pub(crate) const CURRENT_VERSION: &str = CURRENT.version;

/// Fetches all of them.
pub(crate) fn run() -> Result<(), String> {
    for package in [&CURRENT, &FROZEN, &LIBCLANG] {
        println!("{}", fetch(package)?.display());
    }
    Ok(())
}

/// The folder of the 13.5 header.
pub(crate) fn current() -> Result<PathBuf, String> {
    folder_of(&CURRENT)
}

/// The folder of the last CUDA 12 header.
pub(crate) fn frozen() -> Result<PathBuf, String> {
    folder_of(&FROZEN)
}

/// What the generator reads, with the pinned libclang chosen.
pub(crate) fn generator_input() -> Result<generate::Input, String> {
    let native = folder_of(&LIBCLANG)?;
    // SAFETY: xtask has one thread, and none that reads the environment was started yet.
    unsafe { std::env::set_var("LIBCLANG_PATH", &native) };
    Ok(generate::Input {
        include: current()?,
        wrapper: root().join("cuda-driver-sys/wrapper.h"),
        clang_args: vec![
            "-resource-dir".to_owned(),
            native.join("resource").display().to_string(),
        ],
    })
}

fn folder_of(package: &Package) -> Result<PathBuf, String> {
    let file = fetch(package)?;
    file.parent()
        .map(Path::to_owned)
        .ok_or_else(|| format!("{} lies in no folder", file.display()))
}

/// The named file of a package, downloaded if it is not there; three tries.
fn fetch(package: &Package) -> Result<PathBuf, String> {
    let Package {
        name,
        version,
        holds,
    } = package;
    let folder = root().join(".cache").join(format!("{name}-{version}"));
    let file = folder.join(holds);
    if file.is_file() {
        return Ok(file);
    }
    let wheels = root()
        .join(".cache/wheels")
        .join(format!("{name}-{version}"));
    let pinned = format!("{name}=={version}");
    let mut failure = String::new();
    for _ in 0..3 {
        match download(&pinned, &wheels).and_then(|wheel| unpack(&wheel, &folder)) {
            Ok(()) if file.is_file() => return Ok(file),
            Ok(()) => return Err(format!("{pinned} holds no {holds}")),
            Err(error) => failure = error,
        }
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    Err(format!(
        "{pinned} could not be fetched in three tries: {failure}"
    ))
}

fn download(pinned: &str, into: &Path) -> Result<PathBuf, String> {
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--dest",
    ]);
    command(pip.arg(into).arg(pinned))?;
    let mut files = std::fs::read_dir(into).map_err(|e| format!("{}: {e}", into.display()))?;
    let wheel = files.find_map(|f| {
        f.ok()
            .map(|f| f.path())
            .filter(|p| p.extension().is_some_and(|e| e == "whl"))
    });
    wheel.ok_or_else(|| format!("pip left no wheel in {}", into.display()))
}

fn unpack(wheel: &Path, into: &Path) -> Result<(), String> {
    command(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(into),
    )
}

fn command(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}
