//! The environment variables of the driver. No other file reads one.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `CUDA_DRIVER` | the driver to choose: `software`, `system` or a path | the caller's preference |
//! | `CUDA_SOFT_LOG` | anything but `0`: log why calls fail | off |
//! | `CUDA_SOFT_DEVICES` | a number of devices, or their architectures: `sm_90,sm_80` | one of sm_90 |
//! | `CUDA_SOFT_VERSION` | CUDA version to report: `12.4` or `12040` | the version of the bindings |
//! | `CUDA_SOFT_MEMORY` | memory of each device, in bytes | an equal share of the memory that the process can have |
//! | `CUDA_SOFT_THREADS` | number of threads that run kernels and check long PTX texts; at most 1024 | number of processors |
//! | `CUDA_SOFT_PARALLEL` | `1`: blocks that see one another's atomics run on several threads | on one thread |
//! | `CUDA_SOFT_SLACK` | bytes past the end of an allocation, and of shared and local memory, that kernels may access; at most 65536 | 0 |
//! | `CUDA_SOFT_ENGINE` | `auto`: compile kernels to machine code once they have run often, where that makes them faster; `compiled`: compile all kernels where possible; `interpreter`: compile none; `leaving`: for tests, as `compiled`, but each check in the machine code counts as failed, so that the interpreter continues | `auto` |
//! | `CUDA_SOFT_ISA` | `baseline`: interpret all kernels, without AVX2, FMA and other extensions of this CPU | AVX2, FMA and others if the CPU has all of them |
//! | `CUDA_SOFT_TRACE` | file to append a trace to, in the Trace Event Format | no trace |
//! | `CUDA_SOFT_PROFILE` | count the work of kernels: `1` for a table on standard error at exit, or a file to write; `0`: off | off |
//! | `CUDA_SOFT_SUMMARY` | `1`: print a summary of calls, kernels and copies when the program exits | off |
//! | `CUDA_SOFT_STOP_AT` | `FILE:LINE[,block=X.Y.Z][,thread=X.Y.Z]`: report threads that are about to run the line | none |
//! | `CUDA_SOFT_PROGRESS` | `0`: do not show the progress of long kernels | shown if standard error is a terminal |
//! | `CUDA_SOFT_REGISTERS` | `1`: log the registers of the thread that raised a fault | off |
//! | `CUDA_SOFT_CHECK` | the checks to run: a comma-separated list of `memory`, `init`, `race`, `sync` and `leaks`, or `all` | none |
//! | `CUDA_SOFT_CHECK_REPORT` | file to which a line of JSON is appended for each finding of these checks | none |
//! | `CUDA_VISIBLE_DEVICES` | numbers of the devices to show, up to the first that is no device: `1,0`; no UUIDs | all |
//!
//! A variable whose value is empty counts as unset, except for `CUDA_VISIBLE_DEVICES`. [`ignored`] describes the
//! variables that are ignored because their value is not a number or not an engine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The name of the variable that chooses a driver.
pub const DRIVER: &str = "CUDA_DRIVER";

/// The name of the variable that names the file of the trace.
pub const TRACE: &str = "CUDA_SOFT_TRACE";

/// The name of the variable that asks for a summary.
pub const SUMMARY: &str = "CUDA_SOFT_SUMMARY";

/// Returns the value of a variable; `None` if it is unset, empty or not Unicode.
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the value of a variable as a number; `None` if it is not one.
fn number(name: &str) -> Option<u64> {
    text(name)?.trim().parse().ok()
}

/// The valid values of `CUDA_SOFT_ENGINE`.
const ENGINES: [&str; 4] = ["auto", "compiled", "interpreter", "leaving"];

/// Returns a message for each variable that is ignored because it is not a valid number or, for `CUDA_SOFT_ENGINE`, not
/// an engine.
pub fn ignored() -> Vec<String> {
    let wrong = |name: &str, expected: &str, is_right: &dyn Fn(&str) -> bool| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        let right = value.to_str().is_some_and(is_right);
        (!right).then(|| format!("{name}={} is ignored: it is not {expected}", value.display()))
    };
    let number = |name, expected, numbers: std::ops::RangeFrom<u64>| {
        wrong(name, expected, &|value| {
            value.trim().parse().is_ok_and(|n| numbers.contains(&n))
        })
    };
    let engine = wrong("CUDA_SOFT_ENGINE", "auto, compiled or interpreter", &|value| {
        ENGINES.contains(&value)
    });
    let all = [
        number("CUDA_SOFT_MEMORY", "a positive number", 1..),
        number("CUDA_SOFT_THREADS", "a positive number", 1..),
        number("CUDA_SOFT_SLACK", "a number", 0..),
        engine,
    ];
    all.into_iter().flatten().collect()
}

/// Returns `CUDA_DRIVER`, the driver to choose: `software`, `system` or a path. `None` if it is unset or empty.
pub fn driver() -> Option<OsString> {
    std::env::var_os(DRIVER).filter(|value| !value.is_empty())
}

/// Returns `CUDA_SOFT_VERSION`, the CUDA version to report, such as `12.4` or `12040`. Default: the version of the
/// bindings.
pub fn version() -> Option<String> {
    text("CUDA_SOFT_VERSION")
}

/// Returns `CUDA_SOFT_DEVICES`, the number of devices or a list of architectures such as `sm_90,sm_80`. Default: one
/// device of sm_90.
pub fn devices() -> Option<String> {
    text("CUDA_SOFT_DEVICES")
}

/// Returns `CUDA_VISIBLE_DEVICES`, the devices to show. An empty value hides all devices. Default: all devices.
pub fn visible_devices() -> Option<String> {
    std::env::var("CUDA_VISIBLE_DEVICES").ok()
}

/// Returns `CUDA_SOFT_MEMORY`, the memory of each device in bytes, if it is a positive number. Default: an equal share
/// of the [`memory`](crate::memory()) that the process can have.
pub fn memory() -> Option<u64> {
    number("CUDA_SOFT_MEMORY").filter(|&bytes| bytes > 0)
}

/// Returns `CUDA_SOFT_THREADS`, the number of threads that run kernels and that check a long PTX text, if it is a
/// positive number; at most 1024. Default: the number of processors.
pub fn threads() -> Option<usize> {
    number("CUDA_SOFT_THREADS").and_then(threads_of)
}

/// Returns the number of threads for a value of `CUDA_SOFT_THREADS`, if it is positive. The limit is far below the
/// number of threads that a system allows for a user.
fn threads_of(number: u64) -> Option<usize> {
    const MOST: u64 = 1024;
    (number > 0).then_some(number.min(MOST) as usize)
}

/// Returns `CUDA_SOFT_SLACK`, the number of bytes past the end of an allocation, and of shared and local memory, that
/// kernels may access, at most 64 KiB. Default: 0.
pub fn slack() -> u64 {
    const MOST: u64 = 64 << 10;
    static SLACK: OnceLock<u64> = OnceLock::new();
    *SLACK.get_or_init(|| number("CUDA_SOFT_SLACK").unwrap_or(0).min(MOST))
}

/// Returns true if `CUDA_SOFT_PARALLEL` is `1`: blocks that see one another's atomics run on several threads. Default:
/// false.
pub fn parallel() -> bool {
    static PARALLEL: OnceLock<bool> = OnceLock::new();
    *PARALLEL.get_or_init(|| text("CUDA_SOFT_PARALLEL").is_some_and(|value| value == "1"))
}

/// Returns `CUDA_SOFT_ENGINE`, the way in which kernels run: `auto`, `compiled`, `interpreter`, or, for tests,
/// `leaving`. The value is not checked: the engine treats all others as `auto`, which is the default.
pub fn engine() -> Option<&'static str> {
    static ENGINE: OnceLock<Option<String>> = OnceLock::new();
    ENGINE.get_or_init(|| text("CUDA_SOFT_ENGINE")).as_deref()
}

/// Returns true if `CUDA_SOFT_ISA` is `baseline`: all kernels are interpreted, without AVX2, FMA and other extensions
/// of this CPU. Default: false.
pub fn baseline_isa() -> bool {
    text("CUDA_SOFT_ISA").is_some_and(|value| value == "baseline")
}

/// Returns `CUDA_SOFT_TRACE`, the file to append a trace to. Default: no trace.
pub fn trace() -> Option<OsString> {
    std::env::var_os(TRACE).filter(|value| !value.is_empty())
}

/// Returns `CUDA_SOFT_PROFILE`: `1` for a table on standard error at exit, or the file to write the profile to. `None`
/// if it is unset, empty or `0`: nothing is counted.
pub fn profile() -> Option<OsString> {
    std::env::var_os("CUDA_SOFT_PROFILE").filter(|value| !value.is_empty() && value != "0")
}

/// Returns true if `CUDA_SOFT_SUMMARY` is `1`: the driver prints a summary when the program exits. Default: false.
pub fn summary() -> bool {
    text(SUMMARY).is_some_and(|value| value == "1")
}

/// Returns true unless `CUDA_SOFT_PROGRESS` is `0`: the driver shows the progress of long kernels on a terminal.
pub fn progress() -> bool {
    text("CUDA_SOFT_PROGRESS").is_none_or(|value| value != "0")
}

/// Returns true if `CUDA_SOFT_REGISTERS` is `1`: a fault logs the registers of its thread. Default: false.
pub fn registers() -> bool {
    static REGISTERS: OnceLock<bool> = OnceLock::new();
    *REGISTERS.get_or_init(|| text("CUDA_SOFT_REGISTERS").is_some_and(|value| value == "1"))
}

/// Returns `CUDA_SOFT_STOP_AT`, the source line at which threads are reported. Default: none.
pub fn stop_at() -> Option<String> {
    text("CUDA_SOFT_STOP_AT")
}

/// Returns `CUDA_SOFT_CHECK`, the list of checks to run. Default: none.
pub fn check() -> Option<String> {
    text("CUDA_SOFT_CHECK")
}

/// Returns `CUDA_SOFT_CHECK_REPORT`, the file for the findings of the checks. Default: none.
pub fn check_report() -> Option<PathBuf> {
    let path = std::env::var_os("CUDA_SOFT_CHECK_REPORT").filter(|value| !value.is_empty());
    path.map(PathBuf::from)
}

/// Returns true if `CUDA_SOFT_LOG` is set to anything but `0`: the driver logs why calls fail. Default: false.
pub fn log() -> bool {
    static LOG: OnceLock<bool> = OnceLock::new();
    *LOG.get_or_init(|| std::env::var_os("CUDA_SOFT_LOG").is_some_and(|value| !value.is_empty() && value != "0"))
}

#[cfg(test)]
mod tests {
    use super::threads_of;

    #[test]
    fn the_number_of_threads_has_a_limit() {
        assert_eq!(
            [0, 1, 8, u64::MAX].map(threads_of),
            [None, Some(1), Some(8), Some(1024)]
        );
    }
}
