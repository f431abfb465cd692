//! Conversions between Rust and C for the generated calls.

use core::alloc::Layout;
use core::ffi::{CStr, c_char};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::Location;
use core::ptr;
use std::alloc::alloc_zeroed;

use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Error, Result};

/// The size of a buffer for a text. The longest text that a driver writes is a device's name.
pub(super) const TEXT: usize = 256;

/// Returns a slice's address, or null if it is empty: Rust's empty slices have dangling addresses.
#[inline]
pub(super) const fn slice<T>(slice: &[T]) -> *const T {
    if slice.is_empty() { ptr::null() } else { slice.as_ptr() }
}

/// Same as [`slice()`], for a mutable slice.
#[inline]
pub(super) const fn slice_mut<T>(slice: &mut [T]) -> *mut T {
    if slice.is_empty() {
        ptr::null_mut()
    } else {
        slice.as_mut_ptr()
    }
}

/// Converts a length to the integer type of a C parameter.
#[inline]
#[track_caller]
pub(super) fn count<C: TryFrom<usize>>(length: usize, function: Function) -> Result<C> {
    match C::try_from(length) {
        Ok(count) => Ok(count),
        Err(_) => Err(Error::refused(
            CUresult::CUDA_ERROR_INVALID_VALUE,
            function,
            Refusal::Count,
        )),
    }
}

/// Returns an error unless two slices that share a count have the same length.
#[inline]
#[track_caller]
pub(super) fn same_length(one: usize, other: usize, function: Function) -> Result<()> {
    if one == other {
        Ok(())
    } else {
        Err(Error::refused(
            CUresult::CUDA_ERROR_INVALID_VALUE,
            function,
            Refusal::Lengths,
        ))
    }
}

/// Returns the value that a call wrote, if it succeeded.
///
/// # Safety
/// All zeros must be a valid `T`, and so must be the bytes that the driver wrote if the status is success.
#[inline]
#[track_caller]
pub(super) unsafe fn output<T>(value: MaybeUninit<T>, status: CUresult, function: Function) -> Result<T> {
    if status.0 == 0 {
        // SAFETY: upheld by the caller.
        return Ok(unsafe { value.assume_init() });
    }
    Err(Error::new(status, function, Location::caller()))
}

/// Allocates zeroed memory for `count` values, because an older driver does not write newer fields. The count comes
/// from the caller or the driver and may be too large, so a failed allocation is an error. Large zeroed
/// allocations take no memory until they are written.
#[inline]
#[track_caller]
pub(super) fn zeroed<T>(count: usize, function: Function) -> Result<Vec<MaybeUninit<T>>> {
    let layout = match Layout::array::<MaybeUninit<T>>(count) {
        Ok(layout) if layout.size() == 0 => return Ok(Vec::new()),
        Ok(layout) => layout,
        Err(_) => return Err(out_of_memory(function)),
    };
    // SAFETY: its size is not 0.
    let address = unsafe { alloc_zeroed(layout) };
    if address.is_null() {
        return Err(out_of_memory(function));
    }
    // SAFETY: the global allocator returned it for an array of this layout, and the bytes need not be a `T` yet.
    Ok(unsafe { Vec::from_raw_parts(address.cast(), count, count) })
}

#[cold]
#[inline]
#[track_caller]
fn out_of_memory(function: Function) -> Error {
    Error::refused(CUresult::CUDA_ERROR_OUT_OF_MEMORY, function, Refusal::HostMemory)
}

/// Converts values that the driver wrote.
///
/// # Safety
/// All zeros must be a valid `T`, and so must be the bytes that the driver wrote.
#[inline]
pub(super) unsafe fn filled<T>(values: Vec<MaybeUninit<T>>) -> Vec<T> {
    let mut values = ManuallyDrop::new(values);
    let (length, capacity) = (values.len(), values.capacity());
    // SAFETY: this is the same allocation, which was zeroed; the rest is upheld by the caller.
    unsafe { Vec::from_raw_parts(values.as_mut_ptr().cast(), length, capacity) }
}

/// Converts the first `count` values that the driver wrote.
///
/// # Safety
/// Same as [`filled`].
#[inline]
pub(super) unsafe fn filled_to<T>(mut values: Vec<MaybeUninit<T>>, count: usize) -> Vec<T> {
    values.truncate(count);
    // SAFETY: upheld by the caller.
    unsafe { filled(values) }
}

/// Copies values that the driver owns; none for null.
///
/// # Safety
/// `values` must be null or point to `count` values.
#[inline]
pub(super) unsafe fn copied<T: Copy>(values: *const T, count: usize) -> Vec<T> {
    if values.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: upheld by the caller.
    unsafe { core::slice::from_raw_parts(values, count) }.to_vec()
}

/// Copies a text that the driver owns; empty for null.
///
/// # Safety
/// `text` must be null or point to a C string.
#[inline]
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: upheld by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// Converts a text that the driver wrote to a buffer.
#[inline]
pub(super) fn string(buffer: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    String::from_utf8_lossy(text).into_owned()
}

/// Returns the result of an older function in place of a missing one. If both are missing, returns the error of the
/// newer one.
#[cold]
#[inline]
pub(super) fn or_older<T>(error: Error, older: Result<T>) -> Result<T> {
    match older {
        Err(older) if older.is_missing_function() => Err(error),
        answer => answer,
    }
}
