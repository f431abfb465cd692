//! Links programs against the driver's library, for the feature `link`.
//!
//! Linking needs only the library's name and one symbol: functions are looked up at run time. So any `libcuda.so` of
//! the target is enough, including the toolkit's stub; if there is none, a stub with that symbol is built. On Windows
//! `raw-dylib` needs no file.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pkg_config;

/// Environment variables that name a toolkit, in order of precedence.
const TOOLKIT: &[&str] = &["CUDA_PATH", "CUDA_HOME"];

/// Other environment variables that the result depends on.
const VARIABLES: &[&str] = &[
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_ALLOW_CROSS",
    "PKG_CONFIG_SYSROOT_DIR",
];

/// The file name that the linker looks for.
const FILE: &str = "libcuda.so";

/// The source of a library with the driver's name and the one symbol that programs are linked against.
const STUB: &str = "\
#![no_std]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
/// Returns CUDA_ERROR_STUB_LIBRARY, as the stub of a toolkit does.
#[unsafe(no_mangle)]
pub extern \"C\" fn cuInit(_flags: u32) -> u32 {
    34
}
";

/// Prints the linker arguments for cargo.
///
/// # Errors
/// A variable that cargo did not set, a file that could not be written, or a stub that could not be built.
pub(crate) fn link() -> Result<(), String> {
    for variable in TOOLKIT.iter().chain(VARIABLES) {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if variable("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    let folders = from_pkg_config()?.into_iter().chain(usual(&arch));
    let found = folders
        .into_iter()
        .map(|folder| folder.join(FILE))
        .find(|file| fits(file, &arch));
    // Every dependent program is linked with this folder in its search path. A folder of the toolkit or the system
    // could change which other libraries these programs find, so this folder contains nothing else.
    let out = PathBuf::from(variable("OUT_DIR")?);
    let folder = out.join("linked");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let there = folder.join(FILE);
    // An earlier build may have made a link there, whose target must not be overwritten.
    if let Err(error) = std::fs::remove_file(&there) {
        if error.kind() != std::io::ErrorKind::NotFound {
            return Err(format!("{}: {error}", there.display()));
        }
    }
    match found {
        Some(file) => {
            // If the file is removed, the link to it is dangling, and another folder may contain the library.
            println!("cargo::rerun-if-changed={}", file.display());
            provide(&file, &there).map_err(|error| format!("{} as {}: {error}", file.display(), there.display()))?;
        }
        None => stub(&out, &there)?,
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=dylib=cuda");
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// Returns the folders that pkg-config names. If the target is not this machine, returns none unless pkg-config is
/// configured for cross-compiling.
fn from_pkg_config() -> Result<Vec<PathBuf>, String> {
    let cross = variable("TARGET")? != variable("HOST")?;
    let for_cross = ["PKG_CONFIG_ALLOW_CROSS", "PKG_CONFIG_SYSROOT_DIR"];
    if cross && !for_cross.iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for name in pkg_config::names() {
        let Ok(output) = Command::new("pkg-config").args(["--libs-only-L", &name]).output() else {
            break;
        };
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            folders.extend(
                text.split_whitespace()
                    .filter_map(|flag| flag.strip_prefix("-L"))
                    .map(PathBuf::from),
            );
        }
    }
    Ok(folders)
}

/// Returns the folders of toolkits and distributions that may contain the file.
fn usual(arch: &str) -> Vec<PathBuf> {
    let toolkits = TOOLKIT
        .iter()
        .filter_map(std::env::var_os)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .chain(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    let targets: &[&str] = match arch {
        "aarch64" => &["aarch64-linux", "sbsa-linux"],
        "powerpc64" => &["ppc64le-linux"],
        _ => &["x86_64-linux"],
    };
    let mut folders = Vec::new();
    for toolkit in toolkits {
        folders.extend(["lib64/stubs", "lib/stubs"].map(|folder| toolkit.join(folder)));
        folders.extend(
            targets
                .iter()
                .map(|target| toolkit.join("targets").join(target).join("lib/stubs")),
        );
    }
    folders.extend(["/usr/lib64", "/usr/lib"].map(PathBuf::from));
    // Debian's name. The driver supports only little-endian PowerPC, which Rust and Debian name differently.
    let debian = match arch {
        "powerpc64" => "powerpc64le",
        arch => arch,
    };
    folders.push(Path::new("/usr/lib").join(format!("{debian}-linux-gnu")));
    folders
}

/// Returns true if a file is a library for the target, according to the machine in its ELF header.
fn fits(file: &Path, arch: &str) -> bool {
    const START: usize = 20;
    const MACHINE: std::ops::Range<usize> = 18..START;
    let machine: u16 = match arch {
        "x86_64" => 62,
        "aarch64" => 183,
        "powerpc64" => 21,
        _ => return false,
    };
    let mut start = [0; START];
    let is_read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    is_read.is_ok() && start.starts_with(b"\x7fELF") && start[MACHINE] == machine.to_le_bytes()
}

/// Makes a file available under another name.
fn provide(file: &Path, there: &Path) -> std::io::Result<()> {
    let file = std::fs::canonicalize(file)?;
    #[cfg(unix)]
    return std::os::unix::fs::symlink(file, there);
    #[cfg(not(unix))]
    return std::fs::copy(file, there).map(drop);
}

/// Builds a stub with the compiler that builds this crate.
fn stub(out: &Path, there: &Path) -> Result<(), String> {
    let source = out.join("stub.rs");
    std::fs::write(&source, STUB).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=cuda"])
        .args(["-Cpanic=abort", "-Copt-level=1", "-Clink-arg=-Wl,-soname,libcuda.so.1"])
        .args(["--target", &variable("TARGET")?])
        .args(linker());
    rustc.arg("-o").arg(there).arg(&source);
    let output = rustc.output().map_err(|error| format!("{rustc:?}: {error}"))?;
    // For a target without dynamic libraries, rustc only warns.
    if output.status.success() && there.is_file() {
        return Ok(());
    }
    Err(format!(
        "the feature `link` found no libcuda.so for this target, and could not make a stub of one; set CUDA_PATH to a \
         toolkit's folder. {rustc:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

/// Returns the flags for the linker that cargo uses, and those in `RUSTFLAGS` on which linking depends. On musl,
/// `-Ctarget-feature=-crt-static` makes dynamic libraries possible.
fn linker() -> Vec<String> {
    const OPTIONS: &[&str] = &["linker", "link-self-contained", "target-feature"];
    let mut flags = Vec::new();
    if let Ok(linker) = variable("RUSTC_LINKER") {
        flags.push(format!("-Clinker={linker}"));
    }
    let all = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let all: Vec<&str> = all.split('\x1f').collect();
    for (index, flag) in all.iter().enumerate() {
        let option = match *flag {
            "-C" | "--codegen" => all.get(index + 1).copied().unwrap_or_default(),
            flag => flag
                .strip_prefix("-C")
                .or(flag.strip_prefix("--codegen="))
                .unwrap_or_default(),
        };
        if OPTIONS.iter().any(|known| option.starts_with(known)) {
            flags.push(format!("-C{option}"));
        }
    }
    flags
}
