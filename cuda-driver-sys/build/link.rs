//! Makes the driver a library that programs are linked against, for the feature `link`.
//!
//! Only its name and one symbol are needed of it: whatever the program calls is looked up when it runs. So any
//! `libcuda.so` of the target will do, the toolkit's stub too, and where there is none a stub with that one symbol is
//! made. On Windows `raw-dylib` needs no file at all.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pkg_config;

/// Environment variables that name a toolkit, in the order in which they are asked.
const TOOLKIT: &[&str] = &["CUDA_PATH", "CUDA_HOME"];

/// Others that this depends on.
const VARIABLES: &[&str] = &[
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_ALLOW_CROSS",
    "PKG_CONFIG_SYSROOT_DIR",
];

/// What the linker looks for.
const FILE: &str = "libcuda.so";

/// A library with the driver's name and the one symbol that is referred to.
const STUB: &str = "\
#![no_std]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
/// Answers as the stub of a toolkit does: CUDA_ERROR_STUB_LIBRARY.
#[unsafe(no_mangle)]
pub extern \"C\" fn cuInit(_flags: u32) -> u32 {
    34
}
";

/// Tells cargo what to link with. The error says what was tried.
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
    // Every program above is linked with this folder in its path. One of the toolkit or of the system would have them find
    // other libraries there than without it, so it is one that holds nothing else.
    let out = PathBuf::from(variable("OUT_DIR")?);
    let folder = out.join("linked");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let there = folder.join(FILE);
    // It may be a link of an earlier build, which must not be written through.
    if let Err(error) = std::fs::remove_file(&there) {
        if error.kind() != std::io::ErrorKind::NotFound {
            return Err(format!("{}: {error}", there.display()));
        }
    }
    match found {
        Some(file) => {
            // Without it the link leads nowhere; another version may lie elsewhere.
            println!("cargo::rerun-if-changed={}", file.display());
            provide(&file, &there)
                .map_err(|error| format!("{} as {}: {error}", file.display(), there.display()))?;
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

/// What this machine's pkg-config knows is of use for another target only if it is set up for that.
fn from_pkg_config() -> Result<Vec<PathBuf>, String> {
    let cross = variable("TARGET")? != variable("HOST")?;
    let for_cross = ["PKG_CONFIG_ALLOW_CROSS", "PKG_CONFIG_SYSROOT_DIR"];
    if cross
        && !for_cross
            .iter()
            .any(|name| std::env::var_os(name).is_some())
    {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for name in pkg_config::names() {
        let Ok(output) = Command::new("pkg-config")
            .args(["--libs-only-L", &name])
            .output()
        else {
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

/// Where toolkits and distributions keep the file.
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
    folders.push(Path::new("/usr/lib").join(format!("{arch}-linux-gnu")));
    folders
}

/// Whether a file is a library for the target: the machine in its ELF header says so.
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

/// Makes a file found under another name too.
fn provide(file: &Path, there: &Path) -> std::io::Result<()> {
    let file = std::fs::canonicalize(file)?;
    #[cfg(unix)]
    return std::os::unix::fs::symlink(file, there);
    #[cfg(not(unix))]
    return std::fs::copy(file, there).map(drop);
}

/// Makes a stub with the compiler that builds this crate.
fn stub(out: &Path, there: &Path) -> Result<(), String> {
    let source = out.join("stub.rs");
    std::fs::write(&source, STUB).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=cuda"])
        .args([
            "-Cpanic=abort",
            "-Copt-level=1",
            "-Clink-arg=-Wl,-soname,libcuda.so.1",
        ])
        .args(["--target", &variable("TARGET")?])
        .args(linker());
    rustc.arg("-o").arg(there).arg(&source);
    let output = rustc
        .output()
        .map_err(|error| format!("{rustc:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "the feature `link` found no libcuda.so for this target, and could not make a stub of one; set CUDA_PATH to a \
         toolkit's folder. {rustc:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

/// The linker that cargo was told to use, and the flags that choose one.
fn linker() -> Vec<String> {
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
        if option.starts_with("linker") || option.starts_with("link-self-contained") {
            flags.push(format!("-C{option}"));
        }
    }
    flags
}
