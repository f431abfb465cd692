//! A driver of a few functions, built as a shared library by the loader's tests. `--cfg` chooses what it is.
#![no_std]
#![crate_type = "cdylib"]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The stub of a toolkit answers 34 to everything; a strange driver a code that nobody knows.
const ANSWER: u32 = if cfg!(stub) {
    34
} else if cfg!(strange) {
    12345
} else {
    0
};

#[cfg(not(no_init))]
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: u32) -> u32 {
    ANSWER
}

/// # Safety
/// `version` points to an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> u32 {
    // SAFETY: the caller says so.
    unsafe { version.write(if cfg!(tool) { 11080 } else { 12020 }) };
    ANSWER
}
