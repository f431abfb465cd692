//! What the generated calls pass to C and take from it.

use core::alloc::Layout;
use core::ffi::{CStr, c_char};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::Location;
use core::ptr;
use std::alloc::alloc_zeroed;

use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Error, Result};

/// Bytes that are offered for a text: the longest that a driver gives is a device's name.
pub(super) const TEXT: usize = 256;

/// A slice's address, or null for an empty one: Rust's empty slices point nowhere.
#[inline]
pub(super) const fn slice<T>(slice: &[T]) -> *const T {
    if slice.is_empty() {
        ptr::null()
    } else {
        slice.as_ptr()
    }
}

/// The same for a slice that is written.
#[inline]
pub(super) const fn slice_mut<T>(slice: &mut [T]) -> *mut T {
    if slice.is_empty() {
        ptr::null_mut()
    } else {
        slice.as_mut_ptr()
    }
}

/// A length as the type that C counts with.
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

/// Slices that share a count must be of one length.
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

/// What a call gave, if it succeeded.
///
/// # Safety
/// All zeros is a `T`, and so is what the driver wrote where the status is success.
#[inline]
#[track_caller]
pub(super) unsafe fn given<T>(
    value: MaybeUninit<T>,
    status: CUresult,
    function: Function,
) -> Result<T> {
    if status.0 == 0 {
        // SAFETY: the caller's.
        return Ok(unsafe { value.assume_init() });
    }
    Err(Error::new(status, function, Location::caller()))
}

/// Room for so many values, zeroed: an older driver leaves fields that it does not know as they are. The count is the
/// caller's or the driver's word, so there may be no such room; and the system's own zeros take none until they are written.
#[track_caller]
pub(super) fn zeroed<T>(count: usize, function: Function) -> Result<Vec<MaybeUninit<T>>> {
    let layout = match Layout::array::<MaybeUninit<T>>(count) {
        Ok(layout) if layout.size() == 0 => return Ok(Vec::new()),
        Ok(layout) => layout,
        Err(_) => return Err(no_room(function)),
    };
    // SAFETY: its size is not 0.
    let address = unsafe { alloc_zeroed(layout) };
    if address.is_null() {
        return Err(no_room(function));
    }
    // SAFETY: the global allocator gave it for an array of so many, and bytes need not be a `T` yet.
    Ok(unsafe { Vec::from_raw_parts(address.cast(), count, count) })
}

#[cold]
#[track_caller]
fn no_room(function: Function) -> Error {
    Error::refused(
        CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        function,
        Refusal::HostMemory,
    )
}

/// Values that the driver wrote.
///
/// # Safety
/// All zeros is a `T`, and what the driver wrote is.
pub(super) unsafe fn filled<T>(values: Vec<MaybeUninit<T>>) -> Vec<T> {
    let mut values = ManuallyDrop::new(values);
    let (length, capacity) = (values.len(), values.capacity());
    // SAFETY: the same allocation, zeroed when it was made; the caller says that the rest holds.
    unsafe { Vec::from_raw_parts(values.as_mut_ptr().cast(), length, capacity) }
}

/// The first so many values that the driver wrote.
///
/// # Safety
/// As [`filled`].
pub(super) unsafe fn filled_to<T>(mut values: Vec<MaybeUninit<T>>, count: usize) -> Vec<T> {
    values.truncate(count);
    // SAFETY: the caller's.
    unsafe { filled(values) }
}

/// Values that the driver owns, copied; none for null.
///
/// # Safety
/// `values` is null or points to so many.
pub(super) unsafe fn copied<T: Copy>(values: *const T, count: usize) -> Vec<T> {
    if values.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's.
    unsafe { core::slice::from_raw_parts(values, count) }.to_vec()
}

/// A text that the driver owns, copied; empty for null.
///
/// # Safety
/// `text` is null or a C string.
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// A text that the driver wrote into a buffer.
pub(super) fn string(buffer: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    String::from_utf8_lossy(text).into_owned()
}

/// What an older function gave in place of one that is missing. Where that is missing too, the first error says more.
#[cold]
pub(super) fn or_older<T>(error: Error, older: Result<T>) -> Result<T> {
    match older {
        Err(older) if older.is_missing_function() => Err(error),
        answer => answer,
    }
}
