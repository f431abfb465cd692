//! The environment variables of the driver. No other file reads one.

use std::ffi::OsString;
use std::sync::OnceLock;

/// The variable that chooses a driver: `software`, `system` or a path.
pub const DRIVER: &str = "CUDA_DRIVER";

/// Returns the value of a variable; `None` if it is unset, empty or not Unicode.
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the number that a variable holds; `None` if it holds none.
fn number(name: &str) -> Option<u64> {
    text(name)?.trim().parse().ok()
}

/// Returns the value of [`DRIVER`]; `None` if it is unset or empty.
pub fn driver() -> Option<OsString> {
    std::env::var_os(DRIVER).filter(|value| !value.is_empty())
}

/// Returns `CUDA_SOFT_VERSION`, the CUDA version to report.
pub fn version() -> Option<String> {
    text("CUDA_SOFT_VERSION")
}

/// Returns `CUDA_SOFT_DEVICES`, the devices to offer.
pub fn devices() -> Option<String> {
    text("CUDA_SOFT_DEVICES")
}

/// Returns `CUDA_VISIBLE_DEVICES`. An empty value hides every device.
pub fn visible_devices() -> Option<String> {
    std::env::var("CUDA_VISIBLE_DEVICES").ok()
}

/// Returns `CUDA_SOFT_MEMORY`, the memory of each device in bytes, if it is a positive number.
pub fn memory() -> Option<u64> {
    number("CUDA_SOFT_MEMORY").filter(|&bytes| bytes > 0)
}

/// Returns `CUDA_SOFT_THREADS`, the number of threads that run kernels, if it is a positive number.
pub fn threads() -> Option<usize> {
    usize::try_from(number("CUDA_SOFT_THREADS")?)
        .ok()
        .filter(|&threads| threads > 0)
}

/// Returns `CUDA_SOFT_SLACK`: bytes past the end of an allocation that kernels may touch; 0 if unset.
pub fn slack() -> u64 {
    number("CUDA_SOFT_SLACK").unwrap_or(0)
}

/// Returns true if `CUDA_SOFT_PARALLEL=1`: blocks that see one another's atomics run on several threads.
pub fn parallel() -> bool {
    static PARALLEL: OnceLock<bool> = OnceLock::new();
    *PARALLEL.get_or_init(|| text("CUDA_SOFT_PARALLEL").is_some_and(|value| value == "1"))
}

/// Returns true if `CUDA_SOFT_ISA=baseline`: the interpreter uses no vector extensions of this CPU.
pub fn baseline_isa() -> bool {
    text("CUDA_SOFT_ISA").is_some_and(|value| value == "baseline")
}

/// Returns true if `CUDA_SOFT_LOG` is set to something other than `0`.
pub fn log() -> bool {
    static LOG: OnceLock<bool> = OnceLock::new();
    *LOG.get_or_init(|| {
        std::env::var_os("CUDA_SOFT_LOG").is_some_and(|value| !value.is_empty() && value != "0")
    })
}
