//! Where the other state spaces lie in the generic address space: beyond every address that a host process can have.

/// Bits above which the window's number is; offsets inside a window are below.
pub(crate) const WINDOW_BITS: u32 = 48;

/// Generic address of offset 0 of the block's shared memory.
pub(crate) const SHARED: u64 = 1 << WINDOW_BITS;

/// Generic address of offset 0 of the thread's local memory.
pub(crate) const LOCAL: u64 = 2 << WINDOW_BITS;

/// Generic address of offset 0 of the launch's parameters.
pub(crate) const PARAM: u64 = 3 << WINDOW_BITS;

/// What addresses of functions start with.
const CODE: u64 = 4 << WINDOW_BITS;
const CODE_STEP: u64 = 16;

/// The address of a function of a module, by its index.
pub(crate) fn function_address(index: u32) -> u64 {
    CODE + (u64::from(index) + 1) * CODE_STEP
}

/// The index of the function at this address, if it can be one.
pub(crate) fn function_index(address: u64) -> Option<u32> {
    let offset = address.checked_sub(CODE)?;
    if offset == 0 || !offset.is_multiple_of(CODE_STEP) {
        return None;
    }
    u32::try_from(offset / CODE_STEP - 1).ok()
}
