//! Arguments of exports: exports read and write through the caller's pointers with the methods of [`Caller`].

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;

use crate::state::error::{Error, Result};
use engine::memory::host::HostRange;

/// The caller's promise that an export's pointer arguments are as the manual requires. It gives access to the arguments
/// of that export only. NULL is an error or is ignored, and never causes a crash.
#[derive(Clone, Copy)]
pub(crate) struct Caller(());

impl Caller {
    /// Accepts the caller's promise.
    ///
    /// # Safety
    /// Must be called only in an export, whose own contract is that its pointers are valid. The result must be used
    /// only for that export's arguments.
    pub(super) unsafe fn new() -> Self {
        Caller(())
    }

    /// Returns a place for a result; NULL is `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn out<T>(self, pointer: *mut T) -> Result<Out<T>> {
        self.out_or_null(pointer).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns a place for an optional result; `None` for NULL.
    pub(crate) fn out_or_null<T>(self, pointer: *mut T) -> Option<Out<T>> {
        (!pointer.is_null()).then_some(Out(pointer))
    }

    /// Returns the value that a pointer points to; NULL is `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) fn read<T: Copy>(self, pointer: *const T) -> Result<T> {
        if pointer.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for reads by the caller's promise.
        Ok(unsafe { pointer.read_unaligned() })
    }

    /// Returns a copy of an array. NULL is `CUDA_ERROR_INVALID_VALUE`, unless the length is 0. Returns
    /// `CUDA_ERROR_OUT_OF_MEMORY` if the host has no memory for the copy.
    pub(crate) fn array<T: Copy>(self, pointer: *const T, length: usize) -> Result<Vec<T>> {
        if length == 0 {
            return Ok(Vec::new());
        }
        if pointer.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let mut values: Vec<T> = Vec::new();
        values.try_reserve_exact(length).map_err(|_| {
            host::log!("no host memory for a copy of the {length} elements at {pointer:p}: check the length");
            Error::CUDA_ERROR_OUT_OF_MEMORY
        })?;
        // SAFETY: the array is not NULL, so valid for reads by the caller's promise, and the vector has room for it.
        // Bytes are copied, because the array may be unaligned.
        unsafe {
            let bytes = length * size_of::<T>();
            std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), values.as_mut_ptr().cast::<u8>(), bytes);
            values.set_len(length);
        }
        Ok(values)
    }

    /// Returns the values of an array one by one: code that stops at the first invalid value does not read past it,
    /// even if the length is too large. NULL is `CUDA_ERROR_INVALID_VALUE`, unless the length is 0.
    pub(crate) fn items<T: Copy>(self, pointer: *const T, length: usize) -> Result<impl Iterator<Item = T>> {
        if length > 0 && pointer.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for `length` reads by the caller's promise.
        Ok((0..length).map(move |i| unsafe { pointer.wrapping_add(i).read_unaligned() }))
    }

    /// Writes a value into an array of results, unless the array is NULL.
    pub(crate) fn set_at<T>(self, pointer: *mut T, index: usize, value: T) {
        if !pointer.is_null() {
            // SAFETY: not NULL, so valid for writes by the caller's promise, which covers `index`.
            unsafe { pointer.add(index).write_unaligned(value) };
        }
    }

    /// Returns the bytes of a NUL-terminated string, without the NUL byte. NULL is `CUDA_ERROR_INVALID_VALUE`. Returns
    /// `CUDA_ERROR_OUT_OF_MEMORY` if the host has no memory for the copy.
    pub(crate) fn bytes(self, text: *const c_char) -> Result<Vec<u8>> {
        if text.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so NUL-terminated by the caller's promise.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        self.array(bytes.as_ptr(), bytes.len())
    }

    /// Returns the text of a NUL-terminated name. Invalid UTF-8 is replaced, and the result then matches no name of the
    /// driver.
    pub(crate) fn string(self, text: *const c_char) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(text)?).into_owned())
    }

    /// Returns the path in a NUL-terminated string: any bytes on Unix, UTF-8 on other systems.
    pub(crate) fn path(self, text: *const c_char) -> Result<PathBuf> {
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt;
            Ok(PathBuf::from(std::ffi::OsString::from_vec(self.bytes(text)?)))
        }
        #[cfg(not(unix))]
        self.string(text).map(PathBuf::from)
    }

    /// Returns memory of the program that a copy may use until it is done.
    pub(crate) fn host(self, pointer: *const c_void, bytes: usize) -> HostRange {
        // SAFETY: valid by the caller's promise, for as long as the manual requires.
        unsafe { HostRange::new(pointer as usize, bytes) }
    }

    /// Returns a function that turns an address and a length into memory of the program, as [`host`](Self::host) does.
    pub(crate) fn host_at(self) -> impl Fn(u64, u64) -> HostRange {
        move |address, bytes| self.host(address as *const c_void, bytes as usize)
    }

    /// Closes a file descriptor that the call takes from the program. A number that is not open is ignored. Does
    /// nothing on systems other than Unix.
    pub(crate) fn close(self, descriptor: c_int) {
        #[cfg(unix)]
        // SAFETY: the caller gives up the descriptor.
        unsafe {
            libc::close(descriptor);
        }
        #[cfg(not(unix))]
        let _ = descriptor;
    }

    /// Writes text into a buffer of `capacity` bytes, truncated if it is too long, and NUL-terminated. Does nothing if
    /// the buffer is NULL or has no bytes.
    pub(crate) fn set_text(self, buffer: *mut c_char, capacity: usize, text: &[u8]) {
        if buffer.is_null() || capacity == 0 {
            return;
        }
        let length = text.len().min(capacity - 1);
        for (i, byte) in text[..length].iter().chain([&0]).enumerate() {
            self.set_at(buffer.cast::<u8>(), i, *byte);
        }
    }
}

/// A place for a result, not NULL.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result.
    pub(crate) fn set(self, value: T) {
        // SAFETY: not NULL (see `Caller::out_or_null`), so valid for a write by the caller's promise.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Writes an optional result.
pub(crate) fn set<T>(out: Option<Out<T>>, value: T) {
    if let Some(out) = out {
        out.set(value);
    }
}
