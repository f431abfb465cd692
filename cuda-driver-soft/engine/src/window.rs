//! Windows of the generic address space in which the shared, local and parameter spaces and functions have their
//! addresses. They begin above every address that a host process can have.

#![forbid(unsafe_code)]

/// Bits of an offset inside a window; the window's number is above them.
pub(crate) const WINDOW_BITS: u32 = 48;

/// Generic address of offset 0 of the block's shared memory.
pub(crate) const SHARED: u64 = 1 << WINDOW_BITS;

/// Generic address of offset 0 of the thread's local memory.
pub(crate) const LOCAL: u64 = 2 << WINDOW_BITS;

/// Generic address of offset 0 of the launch's parameters.
pub(crate) const PARAM: u64 = 3 << WINDOW_BITS;

/// Start of the window for functions.
const CODE: u64 = 4 << WINDOW_BITS;
/// Distance between the addresses of two functions.
const CODE_STEP: u64 = 16;

/// Returns the address of a function of a module, by its index.
pub(crate) fn function_address(index: u32) -> u64 {
    CODE + (u64::from(index) + 1) * CODE_STEP
}

/// Returns the index of the function at this address; `None` if the address cannot be a function's.
pub(crate) fn function_index(address: u64) -> Option<u32> {
    let offset = address.checked_sub(CODE)?;
    if offset == 0 || !offset.is_multiple_of(CODE_STEP) {
        return None;
    }
    u32::try_from(offset / CODE_STEP - 1).ok()
}
