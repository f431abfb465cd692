//! Measures the time to load a driver and call `cuInit`, against the time of `dlopen` alone.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cuda_driver::sys::{self, CUresult};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The number of repetitions. The system loads a file only once, so each load has its own copy of the driver. A copy
/// has just been written, so the system still has it in memory, and loading it does not wait for the disk.
const TIMES: usize = 200;

/// Returns the tenth percentile, in microseconds, of two times: of `dlopen` alone, and of loading a
/// [`sys::Library`] and calling `cuInit`.
pub(crate) fn measure(driver: &Path) -> Result<(f64, f64), String> {
    let copies = driver.with_extension("copies");
    std::fs::create_dir_all(&copies).map_err(|error| error.to_string())?;
    let result = take_turns(driver, &copies);
    // The libraries stay loaded; they no longer need their files.
    let _ = std::fs::remove_dir_all(&copies);
    result
}

fn take_turns(driver: &Path, folder: &Path) -> Result<(f64, f64), String> {
    let copy = |number: usize| -> Result<PathBuf, String> {
        let path = folder.join(format!("libquiet-{number}.so"));
        std::fs::copy(driver, &path).map_err(|error| error.to_string())?;
        Ok(path)
    };
    let (mut alone, mut ours) = (Vec::new(), Vec::new());
    for number in 0..TIMES {
        let (one, other) = (copy(2 * number)?, copy(2 * number + 1)?);
        let start = Instant::now();
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::open(Some(&one), RTLD_NOW | RTLD_LOCAL) };
        alone.push(start.elapsed().as_secs_f64() * 1e6);
        // Stays loaded, as the library below does.
        std::mem::forget(library.map_err(|error| error.to_string())?);

        let start = Instant::now();
        // SAFETY: the functions of `quiet.c` that are called have the types that `cuda.h` declares.
        let library = unsafe { sys::Library::load_from(&other) };
        let library = library.map_err(|error| error.to_string())?;
        // SAFETY: cuInit takes no pointers.
        let code = unsafe { library.cuInit(0) };
        ours.push(start.elapsed().as_secs_f64() * 1e6);
        if code != CUresult::CUDA_SUCCESS {
            return Err(format!("cuInit: {code:?}"));
        }
    }
    let fast = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 10]
    };
    Ok((fast(alone), fast(ours)))
}
