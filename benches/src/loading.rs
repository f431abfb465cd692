//! What finding the driver costs: a library made and its first call, beside `dlopen` of the same driver alone.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cuda_driver::sys::{self, CUresult};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// How often each is done. A file is loaded once only, so that each time has a copy of its own, in memory by then.
const TIMES: usize = 200;

/// Microseconds for `dlopen` alone, and for a library with the first `cuInit`: of the fast tenth of all.
pub(crate) fn measure(driver: &Path) -> Result<(f64, f64), String> {
    let copies = driver.with_extension("copies");
    std::fs::create_dir_all(&copies).map_err(|error| error.to_string())?;
    let result = take_turns(driver, &copies);
    // The files stay loaded.
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
        // Ours stays loaded too.
        std::mem::forget(library.map_err(|error| error.to_string())?);

        let start = Instant::now();
        // SAFETY: its functions have the types of the exports whose names they have, as far as they are called.
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
