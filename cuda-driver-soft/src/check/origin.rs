//! Finds the line of the program that made an allocation or an object, in a backtrace.

use std::backtrace::Backtrace;

use cuda_driver_sys::Function;

/// Returns the line of the program that called the driver, as `FILE:LINE`; `None` if the program has no line
/// information.
pub(super) fn of_call() -> Option<String> {
    caller(&Backtrace::force_capture().to_string())
}

/// The crates whose functions do not count as the program's, apart from [`SOFTWARE_DRIVER`]: those of the standard
/// library, and the crates of this project that call the driver.
const INNER: [&str; 6] = [
    "std",
    "core",
    "alloc",
    "cuda_driver",
    "cuda_driver_sys",
    "cuda_driver_hooks",
];

/// The beginning of the names of the software driver's crates.
const SOFTWARE_DRIVER: &str = "cuda_driver_soft";

/// Returns true if the name of a function, such as `core::ops::call` or `<cuda_driver::Stream as Drop>::drop`, shows
/// that it does not count as the program's.
fn is_inner(name: &str) -> bool {
    // The type of a method decides, not the trait.
    let words = name.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut words = words.filter(|word| !["", "mut", "const", "dyn"].contains(word));
    let first = words.next().unwrap_or(name);
    let is_export = || first == name && Function::by_symbol(first).is_some();
    INNER.contains(&first) || first.starts_with(SOFTWARE_DRIVER) || is_export()
}

/// The end of this file's path in a backtrace.
const THIS_FILE: &str = "cuda-driver-soft/src/check/origin.rs";

/// The folders of the driver and of the crates that call it, relative to the folder that contains them. Paths are
/// compared as well as names, because names have no crate if a program has line tables but no other debug information.
const FOLDERS: [&str; 4] = ["cuda-driver-hooks/", "cuda-driver-soft/", "cuda-driver-sys/", "src/"];

/// Returns the file and line of the first function in a backtrace that belongs to the program.
fn caller(trace: &str) -> Option<String> {
    let mut lines = trace.lines().map(str::trim).peekable();
    // The folder that contains `FOLDERS`.
    let mut root: Option<String> = None;
    while let Some(line) = lines.next() {
        let Some((number, name)) = line.split_once(": ") else {
            continue;
        };
        let is_frame = number.bytes().all(|b| b.is_ascii_digit());
        let Some(place) = lines.peek().and_then(|next| next.strip_prefix("at ")) else {
            continue;
        };
        // The column is not needed.
        let place = place.rsplit_once(':').map_or(place, |(line, _)| line);
        let path = place.replace('\\', "/");
        if root.is_none()
            && let Some(at) = path.find(THIS_FILE)
        {
            root = Some(path[..at].to_owned());
        }
        let of_driver = root.as_ref().and_then(|root| path.strip_prefix(root));
        let is_inner = is_inner(name)
            || of_driver.is_some_and(|rest| FOLDERS.iter().any(|folder| rest.starts_with(folder)))
            || path.starts_with("/rustc/");
        if is_frame && !is_inner {
            return Some(place.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{caller, is_inner};

    #[test]
    fn the_first_function_of_the_program_is_the_caller() {
        let trace = "   0: cuda_driver_soft::check::origin::of_call\n             at /a/origin.rs:9:5\n   \
                     1: cuMemAlloc_v2\n   2: cuda_driver::memory::Buffer::new\n             at ./src/memory.rs:3:1\n   \
                     3: tests::mine\n             at ./tests/mine.rs:12:9\n   4: main\n             at ./x.c:1\n";
        assert_eq!(caller(trace).as_deref(), Some("./tests/mine.rs:12"));
        assert_eq!(caller("   0: <unknown>\n"), None);
    }

    #[test]
    fn only_exports_and_our_crates_are_inner() {
        for inner in [
            "cuMemAlloc_v2",
            "cuStreamSynchronize_ptsz",
            "std::rt::lang_start",
            "cuda_driver::memory::Buffer::new",
            "cuda_driver_hooks::fail::Fail::nth",
            "cuda_driver_soft_engine::run",
            "<cuda_driver::Stream as core::ops::drop::Drop>::drop",
            "<&mut dyn core::ops::FnMut() as mine::Run>::run",
        ] {
            assert!(is_inner(inner), "{inner}");
        }
        for own in [
            "cube_root",
            "cuda_sum::main",
            "cuda_driver_user::main",
            "cuMemAlloc_v2::wrapper",
            "curl::easy::perform",
            "<mine::Buffer as core::ops::drop::Drop>::drop",
            "<&mine::Buffer as cuda_driver::Arguments>::pass",
            "standard::alloc",
        ] {
            assert!(!is_inner(own), "{own}");
        }
    }

    #[test]
    fn functions_without_a_crate_are_recognised_by_their_files() {
        let trace = "   0: of_call\n             at ./cuda-driver-soft/src/check/origin.rs:7:13\n   \
                     1: create\n             at ./cuda-driver-soft/src/abi/context.rs:35:13\n   \
                     2: call_once<f, ()>\n             at /rustc/59807/library/core/src/ops/function.rs:250:5\n   \
                     3: cuCtxCreate_v2\n             at ./cuda-driver-soft/src/abi/mod.rs:93:9\n   \
                     4: call\n             at ./cuda-driver-hooks/src/fail.rs:9:1\n   \
                     5: new\n             at ./src/context.rs:3:1\n   \
                     6: mine\n             at ./tests/mine.rs:12:9\n";
        assert_eq!(caller(trace).as_deref(), Some("./tests/mine.rs:12"));
        let windows = trace.replace("./", "C:\\work\\").replace('/', "\\");
        assert_eq!(caller(&windows).as_deref(), Some("C:\\work\\tests\\mine.rs:12"));
    }
}
