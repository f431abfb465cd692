//! `cargo xtask headers`: fetches NVIDIA's header packages and a libclang from PyPI into `.cache/`.
//!
//! They are inputs of the generator and of tests, and are never committed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bindings;
use crate::files::root;

/// A package of PyPI at one version, and a file that it must contain.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) holds: Cow<'static, str>,
    /// The SHA-256 of that file, if it is the same on every platform.
    pub(crate) sha256: Option<&'static str>,
}

/// Every release of `cuda.h` since CUDA 11.7, the current one last.
const RELEASES: &str = include_str!("../../cuda-driver-sys/api/headers.txt");

/// A libclang with its own headers.
const LIBCLANG: Package = Package {
    name: "libclang-ng",
    version: "22.1.4.2",
    holds: Cow::Borrowed("clang/native/libclang.so"),
    sha256: None,
};

/// The run-time compiler of CUDA 11.7. It emits PTX 7.7, which every supported driver accepts.
pub(crate) const NVRTC: Package = Package {
    name: "nvidia-cuda-nvrtc-cu11",
    version: "11.7.99",
    holds: Cow::Borrowed("nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2"),
    sha256: None,
};

/// The text in the error of a download that failed three times.
pub(crate) const NOT_FETCHED: &str = "could not be fetched in three tries";

/// Returns the header package of every CUDA release since 11.7, oldest first.
pub(crate) fn releases() -> Result<Vec<Package>, String> {
    let lines = RELEASES.lines().filter(|line| !line.starts_with('#'));
    lines.map(release).collect()
}

/// Reads one line of the list.
fn release(line: &'static str) -> Result<Package, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, version, sha256] = words[..] else {
        return Err(format!("headers.txt: {line:?} is not a name, a version and a SHA-256"));
    };
    let holds = match version.split('.').next() {
        Some("11" | "12") => Cow::Borrowed("nvidia/cuda_runtime/include/cuda.h"),
        major => Cow::Owned(format!("nvidia/cu{}/include/cuda.h", major.unwrap_or_default())),
    };
    Ok(Package {
        name,
        version,
        holds,
        sha256: Some(sha256),
    })
}

/// Returns the header that the bindings are made from.
fn current_package() -> Result<Package, String> {
    let none = "cuda-driver-sys/api/headers.txt names no release";
    releases()?.pop().ok_or_else(|| none.to_owned())
}

/// Returns the release before the newest one.
fn previous_package() -> Result<Package, String> {
    let before = releases()?.into_iter().rev().nth(1);
    before.ok_or_else(|| "cuda-driver-sys/api/headers.txt lists only one release".to_owned())
}

/// Returns the last header of CUDA 12, which defines the plain names.
fn frozen_package() -> Result<Package, String> {
    let mut from_newest = releases()?.into_iter().rev();
    let of_12 = from_newest.find(|release| release.version.starts_with("12."));
    let none = "cuda-driver-sys/api/headers.txt names no release of CUDA 12";
    of_12.ok_or_else(|| none.to_owned())
}

/// Returns the CUDA release that the bindings are made from, for instance `12.9`.
pub(crate) fn current_release() -> Result<String, String> {
    let package = current_package()?;
    let mut numbers = package.version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => Ok(format!("{major}.{minor}")),
        _ => Err(format!(
            "headers.txt: {} is not a version such as 12.9.79",
            package.version
        )),
    }
}

/// Fetches the newest header, the last one of CUDA 12 and libclang, and prints the variables with which the feature
/// `bindgen` of cuda-driver-sys finds the newest header and libclang, as shell commands:
/// `eval "$(cargo xtask headers)"`.
pub(crate) fn run() -> Result<(), String> {
    for package in [&current_package()?, &frozen_package()?, &LIBCLANG] {
        eprintln!("{}", fetch(package)?.display());
    }
    let include = current()?;
    let toolkit = include.parent().ok_or("the header is not in a toolkit")?;
    let native = folder_of(&LIBCLANG)?;
    println!("export CUDA_PATH='{}'", toolkit.display());
    println!("export LIBCLANG_PATH='{}'", native.display());
    // Quoted twice, because bindgen splits the variable as a shell does.
    println!(
        "export BINDGEN_EXTRA_CLANG_ARGS='-resource-dir \"{}\"'",
        native.join("resource").display()
    );
    Ok(())
}

/// Returns true if all inputs of the generator have been fetched.
#[cfg(test)]
pub(crate) fn are_fetched() -> bool {
    let (Ok(current), Ok(frozen)) = (current_package(), frozen_package()) else {
        return false;
    };
    [&current, &frozen, &LIBCLANG]
        .iter()
        .all(|package| folder(package).join(&*package.holds).is_file())
}

/// Returns the folder of an unpacked package.
pub(crate) fn folder(package: &Package) -> PathBuf {
    root()
        .join(".cache")
        .join(format!("{}-{}", package.name, package.version))
}

/// Returns the folder of the header that the bindings are made from.
pub(crate) fn current() -> Result<PathBuf, String> {
    folder_of(&current_package()?)
}

/// Returns the folder of the header of the release before.
pub(crate) fn previous() -> Result<PathBuf, String> {
    folder_of(&previous_package()?)
}

/// Returns the folder of the last CUDA 12 header.
pub(crate) fn frozen() -> Result<PathBuf, String> {
    folder_of(&frozen_package()?)
}

/// Selects the pinned libclang, and returns the input of the generator.
pub(crate) fn generator_input() -> Result<bindings::Input, String> {
    static SELECTED: OnceLock<()> = OnceLock::new();
    let native = folder_of(&LIBCLANG)?;
    SELECTED.get_or_init(|| {
        // SAFETY: Rust's readers of the environment lock it. Only libclang reads it without that lock, and bindgen
        // loads libclang after this assignment, which happens once.
        unsafe { std::env::set_var("LIBCLANG_PATH", &native) };
    });
    Ok(bindings::Input {
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
        .ok_or_else(|| format!("{} has no parent folder", file.display()))
}

/// Returns the file of a package. Downloads the package if the file is missing, in up to three tries. Checks the file's
/// SHA-256 if the package has one.
pub(crate) fn fetch(package: &Package) -> Result<PathBuf, String> {
    let Package {
        name,
        version,
        holds,
        sha256,
    } = package;
    let folder = folder(package);
    let file = folder.join(&**holds);
    if !file.is_file() {
        // Each process uses its own folder, because several may fetch the same package.
        let process = std::process::id();
        let wheels = root().join(".cache/wheels").join(format!("{name}-{version}.{process}"));
        let pinned = format!("{name}=={version}");
        let mut failure = None;
        for pause in [0, 2, 10] {
            std::thread::sleep(std::time::Duration::from_secs(pause));
            let _ = std::fs::remove_dir_all(&wheels);
            let wheel = download(&pinned, &wheels);
            let unpacked = wheel.and_then(|wheel| unpack(&wheel, &folder, &file));
            let _ = std::fs::remove_dir_all(&wheels);
            match unpacked {
                Ok(()) => {
                    failure = None;
                    break;
                }
                Err(error) => failure = Some(error),
            }
        }
        if let Some(failure) = failure {
            return Err(format!("{pinned} {NOT_FETCHED}: {failure}"));
        }
        if !file.is_file() {
            return Err(format!("{pinned} does not contain {holds}"));
        }
    }
    let Some(expected) = sha256 else {
        return Ok(file);
    };
    let found = sha256_of(&file)?;
    if found == *expected {
        return Ok(file);
    }
    Err(format!(
        "{} has SHA-256 {found}, not {expected}: delete it and try again",
        file.display()
    ))
}

/// Returns the version and the start of the checksum of the header, for the first lines of generated files.
pub(crate) fn current_stamp() -> Result<String, String> {
    let current = current_package()?;
    let sum = current.sha256.unwrap_or_default();
    Ok(format!(
        "{}, SHA-256 {}",
        current.version,
        sum.get(..16).ok_or("the current header has no checksum")?
    ))
}

/// Returns the SHA-256 of a file, in hexadecimal digits.
fn sha256_of(file: &Path) -> Result<String, String> {
    const PROGRAM: &str = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
    let output = Command::new("python3").args(["-c", PROGRAM]).arg(file).output();
    let output = output.map_err(|e| format!("python3: {e}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "python3 cannot hash {}: {}: {errors}",
            file.display(),
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn download(pinned: &str, into: &Path) -> Result<PathBuf, String> {
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        // A package of sources would run its own code here.
        "--only-binary=:all:",
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

/// Unpacks a package and moves it into place in one step, because another process may be doing the same.
fn unpack(wheel: &Path, into: &Path, file: &Path) -> Result<(), String> {
    let fresh = wheel.with_extension("unpacked");
    command(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(&fresh),
    )?;
    // If another process has moved the package there, the folder is not empty, and the rename fails.
    if std::fs::rename(&fresh, into).is_ok() || file.is_file() {
        return Ok(());
    }
    // The folder lacks the file, so no process uses it.
    let _ = std::fs::remove_dir_all(into);
    match std::fs::rename(&fresh, into) {
        Err(error) if !file.is_file() => Err(format!("{}: {error}", into.display())),
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::{release, releases};

    #[test]
    fn malformed_lines_of_the_list_are_refused() {
        assert!(releases().is_ok_and(|all| all.len() > 16));
        for line in ["", "nvidia-cuda-runtime 13.6.1", "a 13.6.1 0 0"] {
            assert!(release(line).is_err_and(|error| error.contains(&format!("{line:?}"))));
        }
    }
}
