//! A program that is linked against the driver, like a C program with `-lcuda`: it only starts if the system has
//! `libcuda.so.1` or `nvcuda.dll`. Building it needs neither the driver nor a toolkit.

use std::process::ExitCode;

use cuda_driver_sys::library::Source;
use cuda_driver_sys::*;

fn main() -> ExitCode {
    if let Err(error) = set_default(Source::linked()) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let mut version = 0;
    // SAFETY: the pointer is to an integer.
    let code = unsafe { cuDriverGetVersion(&raw mut version) };
    if let Some(error) = DEFAULT.load_error() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let path = DEFAULT
        .path()
        .map_or("an unknown file".into(), |path| path.display().to_string());
    println!("{code:?}: CUDA {}.{} from {path}", version / 1000, version % 1000 / 10);
    ExitCode::SUCCESS
}
