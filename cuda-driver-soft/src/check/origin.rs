//! The place in the program that made an allocation or an object.

use std::backtrace::Backtrace;

/// Returns the line of the program that called the driver, if the program has line information.
pub(super) fn of_call() -> Option<String> {
    caller(&Backtrace::force_capture().to_string())
}

/// Names of functions that are between a program's own and the driver.
const INNER: [&str; 9] = [
    "std::",
    "core::",
    "alloc::",
    "<",
    "cuda_driver::",
    "cuda_driver_sys::",
    "cuda_driver_soft::",
    "cuda_driver_soft_",
    "cu",
];

/// Returns file and line of the first function in a backtrace that belongs to the program.
fn caller(trace: &str) -> Option<String> {
    let mut lines = trace.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((number, name)) = line.split_once(": ") else {
            continue;
        };
        let is_frame = number.bytes().all(|b| b.is_ascii_digit());
        let place = lines.peek().and_then(|next| next.strip_prefix("at "));
        if let Some(place) = place
            && is_frame
            && !INNER.iter().any(|inner| name.starts_with(inner))
        {
            // The column says nothing more.
            return Some(place.rsplit_once(':').map_or(place, |(line, _)| line).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::caller;

    #[test]
    fn the_first_function_of_the_program_is_the_caller() {
        let trace = "   0: cuda_driver_soft::check::origin::of_call\n             at /a/origin.rs:9:5\n   \
                     1: cuMemAlloc_v2\n   2: cuda_driver::memory::Buffer::new\n             at ./src/memory.rs:3:1\n   \
                     3: tests::mine\n             at ./tests/mine.rs:12:9\n   4: main\n             at ./x.c:1\n";
        assert_eq!(caller(trace).as_deref(), Some("./tests/mine.rs:12"));
        assert_eq!(caller("   0: <unknown>\n"), None);
    }
}
