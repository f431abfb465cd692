//! Tests a C program that is compiled against NVIDIA's header and linked to `libcuda.so.1`, under `soft-cuda run`.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../../tests/common/needs.rs"]
mod needs;

/// Prints the missing requirement, and returns from the test.
macro_rules! skip {
    ($($arg:tt)*) => {
        return needs::needs(&format!($($arg)*))
    };
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a folder with `cuda.h`: a toolkit's, or the newest one that `cargo xtask` has fetched into `.cache/`.
fn include_folder() -> Option<PathBuf> {
    let toolkits = ["CUDA_PATH", "CUDA_HOME"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    let toolkits = toolkits
        .chain([PathBuf::from("/usr/local/cuda")])
        .map(|root| root.join("include"));
    // The list has the newest release at its end.
    let releases = std::fs::read_to_string(repository().join("cuda-driver-sys/api/headers.txt")).unwrap_or_default();
    let fetched = releases.lines().rev().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!(".cache/{}-{}", words.next()?, words.next()?))
    });
    let fetched = fetched.flat_map(|package| {
        let package = repository().join(package);
        ["nvidia/cu13/include", "nvidia/cuda_runtime/include"].map(|folder| package.join(folder))
    });
    toolkits.chain(fetched).find(|folder| folder.join("cuda.h").is_file())
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn an_unmodified_c_program_runs() {
    let Some(include) = include_folder() else {
        skip!("cuda.h: fetch it with `cargo xtask headers`, or set CUDA_PATH");
    };
    let folder = Command::new(env!("CARGO_BIN_EXE_soft-cuda"))
        .arg("path")
        .output()
        .unwrap();
    assert!(folder.status.success(), "{}", text(&folder));
    let driver = PathBuf::from(String::from_utf8(folder.stdout).unwrap().trim()).join("libcuda.so.1");
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = out.join("c_program");
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cc::Build::new();
    build
        .target(&target)
        .host(&target)
        .opt_level(1)
        .out_dir(&out)
        .cargo_metadata(false)
        .include(&include);
    let Ok(compiler) = build.try_get_compiler() else {
        skip!("a C compiler");
    };
    let mut compile = compiler.to_command();
    compile
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c"))
        .arg(&driver)
        .arg("-o")
        .arg(&program);
    // The program intentionally uses functions that the header marks as deprecated.
    compile.arg("-Wno-deprecated-declarations");
    let compiled = match compile.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => skip!("a C compiler"),
        compiled => compiled.unwrap(),
    };
    assert!(compiled.status.success(), "{}", text(&compiled));
    let kernels = repository().join("tests/kernels/generated/vector_add.ptx");
    let mut run = Command::new(env!("CARGO_BIN_EXE_soft-cuda"));
    let ran = run
        .arg("run")
        .arg(&program)
        .arg(&kernels)
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("CUDA_SOFT_DEVICES")
        .output()
        .unwrap();
    let printed = text(&ran);
    assert!(ran.status.success() && printed.contains("Result = PASS"), "{printed}");
    assert!(printed.contains("Software CUDA device (sm_90)"), "{printed}");
    // The program is linked by name, not by path: without soft-cuda it does not find this driver.
    let alone = Command::new(&program)
        .arg(&kernels)
        .env_remove("LD_LIBRARY_PATH")
        .env("LD_BIND_NOW", "1")
        .output()
        .unwrap();
    assert!(!text(&alone).contains("Software CUDA device"), "{}", text(&alone));
}
