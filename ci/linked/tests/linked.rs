//! Tests of the feature `link`: a program that is linked against the driver, and one that is not.
#![cfg(target_os = "linux")]

#[path = "../../../cuda-driver-sys/tests/fakes/mod.rs"]
mod fakes;

use std::path::Path;
use std::process::{Command, Output};

/// The example of cuda-driver-sys, which asks for the linked driver.
const ASKS: &str = env!("CARGO_BIN_EXE_linked");
const DOES_NOT_ASK: &str = env!("CARGO_BIN_EXE_silent");

fn run(program: &str, library_path: &Path, preload: Option<&Path>) -> Output {
    let mut command = Command::new(program);
    command
        .env("LD_LIBRARY_PATH", library_path)
        .env_remove("CUDA_DRIVER_LIBRARY");
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    command.output().expect("the program is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[test]
fn program_starts_with_the_driver() {
    let Some(driver) = fakes::driver("linked/libcuda.so.1", &[]) else {
        return;
    };
    let output = run(ASKS, driver.parent().expect("a folder"), None);
    let expected = format!("CUDA_SUCCESS: CUDA 12.2 from {}", driver.display());
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn tool_before_the_driver_is_found_first() {
    let Some(driver) = fakes::driver("preloaded/libcuda.so.1", &[]) else {
        return;
    };
    let Some(tool) = fakes::driver("preloaded/tool.so", &["tool"]) else {
        return;
    };
    let output = run(ASKS, driver.parent().expect("a folder"), Some(&tool));
    let expected = format!("CUDA_SUCCESS: CUDA 11.8 from {}", tool.display());
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn program_does_not_start_without_a_driver() {
    let output = run(ASKS, fakes::folder(), None);
    if output.status.success() {
        println!("{}", text(&output.stdout));
        fakes::needs("a machine without a CUDA driver");
        return;
    }
    assert_eq!(output.status.code(), Some(127));
    let error = text(&output.stderr);
    let missing = "libcuda.so.1: cannot open shared object file";
    assert!(error.contains(missing), "{error}");
}

/// The program starts without a driver, and searches for one as it would without the feature `link`.
#[test]
fn program_that_does_not_ask_is_not_linked() {
    let output = run(DOES_NOT_ASK, fakes::folder(), None);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    if !cfg!(feature = "loader") {
        let why = "no CUDA driver was chosen, and the feature `loader`, which searches for one, is off";
        assert!(printed.contains(why), "{printed}");
    } else if !printed.starts_with("CUDA_SUCCESS") {
        assert!(
            printed.contains("no CUDA driver could be loaded: libcuda.so.1"),
            "{printed}"
        );
    }
}
