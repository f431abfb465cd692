//! Watches the calls of a small program, then runs it again once per call, with that call failing.
//!
//! On Linux, the driver is the system's if it has a device, otherwise the software driver, and
//! `CUDA_DRIVER=software|system|PATH` chooses another. On other systems, the driver is the system's.

use core::ptr;
use std::process::ExitCode;

use cuda_driver_hooks::{Counter, Fail, Watch};
use cuda_driver_sys::library::{Options, Source};
use cuda_driver_sys::*;

/// Creates a context, allocates 1 MiB, fills it and frees everything. The error is the first call that failed.
fn program(cuda: &Library) -> Result<(), (Function, CUresult)> {
    let check = |function, code| match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err((function, code)),
    };
    let (mut device, mut context, mut memory) = (0, ptr::null_mut(), 0);
    // SAFETY: the output pointers are valid, and the handles come from earlier calls.
    unsafe {
        check(Function::cuInit, cuda.cuInit(0))?;
        check(Function::cuDeviceGet, cuda.cuDeviceGet(&raw mut device, 0))?;
        check(Function::cuCtxCreate, cuda.cuCtxCreate(&raw mut context, 0, device))?;
        let filled = check(Function::cuMemAlloc, cuda.cuMemAlloc(&raw mut memory, 1 << 20)).and_then(|()| {
            let filled = check(Function::cuMemsetD8, cuda.cuMemsetD8(memory, 7, 1 << 20));
            filled.and(check(Function::cuMemFree, cuda.cuMemFree(memory)))
        });
        filled.and(check(Function::cuCtxDestroy, cuda.cuCtxDestroy(context)))
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let driver = driver()?;

    println!("\nEvery call with its arguments, result and duration:");
    let calls = Counter::new();
    let watched = Options::new()
        .hook(Watch::new(|call| println!("  {call}")))
        .hook(calls.clone());
    let library = Library::new(Source::library(driver), watched)?;
    program(library).map_err(|(function, code)| format!("{function}: {code:?}"))?;
    println!("{} calls", calls.total());

    println!("\nThe same program with its n-th call failing:");
    for n in 1.. {
        let fail = Fail::nth_of_all(n, CUresult::CUDA_ERROR_UNKNOWN);
        let library = Library::new(Source::library(driver), Options::new().hook(fail.clone()))?;
        let result = program(library);
        if fail.failed() == 0 {
            println!("  {n}: the program makes no further calls");
            break;
        }
        match result {
            Ok(()) => println!("  {n}: the program did not notice the failure"),
            Err((function, code)) => println!("  {n}: {function} failed with {code:?}"),
        }
    }
    Ok(())
}

/// Returns the driver to use.
#[cfg(target_os = "linux")]
fn driver() -> Result<&'static Library, Box<dyn std::error::Error>> {
    let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::System)?;
    println!("driver: {selection}");
    Ok(selection.library())
}

#[cfg(not(target_os = "linux"))]
fn driver() -> Result<&'static Library, Box<dyn std::error::Error>> {
    Ok(Library::load()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
