//! A small program that is watched, and then run again and again, each time with another of its calls failing.
//!
//! The driver is the system's if it has a device, else the software driver; `CUDA_DRIVER=software|system|PATH` says
//! which. The program's calls are the free functions, so that the same works for whatever is built on these.

use core::ptr;
use std::process::ExitCode;

use cuda_driver_sys::library::hooks::{Counter, Fail, Watch};
use cuda_driver_sys::library::{Options, Source};
use cuda_driver_sys::*;

/// Creates a context, allocates 1 MiB, fills it and frees everything; the first code that is no success.
fn program(cuda: &Library) -> Result<(), (Function, CUresult)> {
    let check = |function, code| match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err((function, code)),
    };
    let (mut device, mut context, mut memory) = (0, ptr::null_mut(), 0);
    // SAFETY: the pointers are to what is written, the handles are those that the calls gave.
    unsafe {
        check(Function::cuInit, cuda.cuInit(0))?;
        check(Function::cuDeviceGet, cuda.cuDeviceGet(&raw mut device, 0))?;
        check(
            Function::cuCtxCreate,
            cuda.cuCtxCreate(&raw mut context, 0, device),
        )?;
        let filled = check(
            Function::cuMemAlloc,
            cuda.cuMemAlloc(&raw mut memory, 1 << 20),
        )
        .and_then(|()| {
            let filled = check(Function::cuMemsetD8, cuda.cuMemsetD8(memory, 7, 1 << 20));
            filled.and(check(Function::cuMemFree, cuda.cuMemFree(memory)))
        });
        filled.and(check(Function::cuCtxDestroy, cuda.cuCtxDestroy(context)))
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let driver = driver()?;

    println!("\nEvery call, its arguments, what it answered and how long it took:");
    let calls = Counter::new();
    let watched = Options::new()
        .hook(Watch::new(|call| println!("  {call}")))
        .hook(calls.clone());
    let library = Library::new(Source::library(driver), watched)?;
    program(library).map_err(|(function, code)| format!("{function}: {code:?}"))?;
    println!("{} calls", calls.total());

    println!("\nThe same program when its n-th call fails:");
    for n in 1.. {
        let fail = Fail::nth_of_all(n, CUresult::CUDA_ERROR_UNKNOWN);
        let library = Library::new(Source::library(driver), Options::new().hook(fail.clone()))?;
        let result = program(library);
        if fail.failed() == 0 {
            println!("  {n}: it makes no more calls");
            break;
        }
        match result {
            Ok(()) => println!("  {n}: nobody noticed"),
            Err((function, code)) => println!("  {n}: {function} failed with {code:?}"),
        }
    }
    Ok(())
}

/// The driver that serves this program.
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
