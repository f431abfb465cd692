//! The feature `link`: programs that start with the driver, and programs that do not ask for that.
#![cfg(target_os = "linux")]

mod fakes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuda_driver_sys::{CUresult, DEFAULT, Function};

/// The example that is linked against the driver.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("deps/ lies in the target folder");
    let example = folder.join("examples/linked");
    assert!(
        example.is_file(),
        "{} is not built: run `cargo build -p cuda-driver-sys --features link --example linked`",
        example.display()
    );
    example
}

fn run(library_path: &Path, preload: Option<&Path>) -> Output {
    let mut command = Command::new(example());
    command.env("LD_LIBRARY_PATH", library_path);
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    command.output().expect("the example is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// This very program has the feature, and calls the library without asking for the linked driver.
#[test]
fn who_does_not_ask_does_not_start_with_the_driver() {
    assert_eq!(Function::ALL.len(), Function::COUNT);
    let loaded = std::fs::read_to_string("/proc/self/maps").expect("Linux tells what is loaded");
    assert!(!loaded.contains("libcuda.so"), "{loaded}");
}

#[test]
fn default_library_is_searched_as_ever() {
    // SAFETY: cuInit takes no pointers.
    let code = unsafe { DEFAULT.cuInit(0) };
    if let Some(error) = DEFAULT.load_error() {
        assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
        let nobody = "nobody said where the CUDA driver is";
        let searched = !error.attempts().is_empty();
        assert_eq!(searched, cfg!(feature = "loader"), "{error}");
        assert_eq!(error.to_string().starts_with(nobody), !searched, "{error}");
    }
}

#[test]
fn program_starts_with_the_driver() {
    let Some(driver) = fakes::driver("linked/libcuda.so.1", &[]) else {
        return;
    };
    let output = run(driver.parent().expect("a folder"), None);
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
    let output = run(driver.parent().expect("a folder"), Some(&tool));
    let expected = format!("CUDA_SUCCESS: CUDA 11.8 from {}", tool.display());
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn program_does_not_start_without_a_driver() {
    let output = run(fakes::folder(), None);
    if output.status.success() {
        // This machine has a driver, so the program ran.
        assert!(
            text(&output.stdout).contains("libcuda.so"),
            "{}",
            text(&output.stdout)
        );
        return;
    }
    assert_eq!(output.status.code(), Some(127));
    let error = text(&output.stderr);
    assert!(
        error.contains("libcuda.so.1: cannot open shared object file"),
        "{error}"
    );
}
