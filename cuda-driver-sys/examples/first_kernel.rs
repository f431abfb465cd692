//! Runs a kernel with raw calls, line for line as a C program for CUDA 12 or earlier. In CUDA 13, C's `cuCtxCreate`
//! has one more parameter.
//!
//! The free functions of this crate call the default library. On Linux, this example chooses it with
//! `cuda_driver_soft`: the system's driver if it has a device, otherwise the software driver;
//! `CUDA_DRIVER=software|system|PATH` chooses another. On other systems, it is the system's driver.
//!
//! `my_kernel(float* data, size_t N)` computes `data[i] = data[i] * 2 + 1` in place. Its PTX is read from the program's
//! folder, the current folder or the source tree.

use core::ffi::{CStr, c_char, c_uint, c_void};
use core::ptr;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cuda_driver_sys::*;

/// Checks a result like the macros of C programs: on an error, prints file, line, call, and the code's name and text,
/// and ends the program.
macro_rules! check {
    ($call:expr) => {
        // SAFETY: the arguments of the calls below are valid as the manual requires.
        let code = unsafe { $call };
        if code != CUresult::CUDA_SUCCESS {
            eprintln!("{}:{}: {}: {}", file!(), line!(), stringify!($call), describe(code));
            return ExitCode::FAILURE;
        }
    };
}

/// Returns the name and text of a code, from the driver if there is one.
fn describe(code: CUresult) -> String {
    if let Some(error) = DEFAULT.load_error() {
        return format!("{code:?} ({}): {error}", code.0);
    }
    let ask = |function: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: both functions write a pointer to a constant string, or null for an unknown code.
        let code = unsafe { function(code, &raw mut text) };
        if code != CUresult::CUDA_SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: the driver wrote a pointer to a constant string.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    };
    let name = ask(cuGetErrorName).unwrap_or_else(|| format!("{code:?}"));
    let text = ask(cuGetErrorString).unwrap_or_else(|| "no text".to_owned());
    format!("{name} ({}): {text}", code.0)
}

/// Returns the path of the kernel's PTX: in the program's folder, the current folder or the source tree.
fn my_kernel() -> Result<PathBuf, String> {
    const FILE: &str = "my_kernel.ptx";
    let program = std::env::current_exe().map_err(|e| format!("this program's path is unknown: {e}"))?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/kernels/generated")
        .join(FILE);
    let places = [program.with_file_name(FILE), PathBuf::from(FILE), source];
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| format!("{FILE} was not found: tried {places:?}"))
}

/// Chooses the driver that the free functions call.
#[cfg(target_os = "linux")]
fn choose_driver() -> Result<(), Box<dyn std::error::Error>> {
    let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::System)?;
    println!("Driver: {selection}");
    Ok(selection.install()?)
}

/// Does nothing: on other systems this example is built without the software driver.
#[cfg(not(target_os = "linux"))]
fn choose_driver() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

fn main() -> ExitCode {
    const COUNT: usize = 1024;

    if let Err(error) = choose_driver() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let ptx = match my_kernel() {
        Ok(path) => path,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let Ok(ptx) = CString::new(ptx.into_os_string().into_encoded_bytes()) else {
        eprintln!("the path of my_kernel.ptx contains a NUL byte");
        return ExitCode::FAILURE;
    };

    let mut device: CUdevice = 0;
    let mut context: CUcontext = ptr::null_mut();
    let mut module: CUmodule = ptr::null_mut();
    let mut kernel: CUfunction = ptr::null_mut();
    let mut d_data: CUdeviceptr = 0;
    let mut h_data: Vec<f32> = (0..COUNT).map(|i| i as f32).collect();
    let bytes = size_of_val(h_data.as_slice());

    // Initialise the driver, get the first device and create a context on it.
    check!(cuInit(0));
    check!(cuDeviceGet(&raw mut device, 0));
    check!(cuCtxCreate(&raw mut context, 0, device));

    // Load the module and find the kernel.
    check!(cuModuleLoad(&raw mut module, ptx.as_ptr()));
    check!(cuModuleGetFunction(&raw mut kernel, module, c"my_kernel".as_ptr()));

    // Allocate device memory and copy the data to it.
    check!(cuMemAlloc(&raw mut d_data, bytes));
    check!(cuMemcpyHtoD(d_data, h_data.as_ptr().cast::<c_void>(), bytes));

    // The kernel's arguments, a pointer and a 64-bit count, are passed by address.
    let mut n: u64 = COUNT as u64;
    let mut args = [(&raw mut d_data).cast::<c_void>(), (&raw mut n).cast::<c_void>()];
    let (blocks, threads): (c_uint, c_uint) = (4, 256);
    check!(cuLaunchKernel(
        kernel,
        blocks,
        1,
        1,
        threads,
        1,
        1,
        0,
        ptr::null_mut(),
        args.as_mut_ptr(),
        ptr::null_mut()
    ));

    // The copy waits for the kernel: both are on the default stream.
    check!(cuMemcpyDtoH(h_data.as_mut_ptr().cast::<c_void>(), d_data, bytes));

    check!(cuMemFree(d_data));
    check!(cuModuleUnload(module));
    check!(cuCtxDestroy(context));

    for (i, value) in h_data.iter().enumerate() {
        let expected = i as f32 * 2.0 + 1.0;
        if *value != expected {
            eprintln!("data[{i}] is {value}, not {expected}");
            println!("Result = FAIL");
            return ExitCode::FAILURE;
        }
    }
    println!("{COUNT} elements are correct");
    println!("Result = PASS");
    ExitCode::SUCCESS
}
