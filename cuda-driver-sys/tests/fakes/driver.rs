//! A fake driver, which tests build as a shared library. `--cfg` selects its behaviour: `stub` is a toolkit's stub,
//! `strange` a driver with an unknown result code, `no_init` a library that is not a driver, and `tool` a library for
//! `LD_PRELOAD`, which reports another CUDA version.
#![no_std]
#![crate_type = "cdylib"]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The result of all functions: a toolkit's stub returns `CUDA_ERROR_STUB_LIBRARY`, and a strange driver an unknown
/// code.
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
/// `version` must point to an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> u32 {
    // SAFETY: upheld by the caller.
    unsafe { version.write(if cfg!(tool) { 11080 } else { 12020 }) };
    ANSWER
}
