//! Changes to `cuGetProcAddress` for libraries with per-thread default streams or with interposers that hide functions.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::arguments::Arguments;
use super::open::Opened;
use super::slots::Library;
use crate::{CUdriverProcAddressQueryResult as Status, CUresult, Function, StreamMode, cuuint64_t};

/// The flag `CU_GET_PROC_ADDRESS_LEGACY_STREAM`.
const LEGACY: cuuint64_t = 1;
/// The flag `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: cuuint64_t = 2;

/// Returns true for both variants of `cuGetProcAddress`.
pub(crate) fn is_get_proc_address(function: Function) -> bool {
    function == Function::cuGetProcAddress_v2 || function == crate::legacy::function::cuGetProcAddress
}

/// Requests per-thread functions unless the caller requests a kind of default stream. The inline wrapper in `cuda.h`
/// does the same in a per-thread program.
///
/// # Safety
/// The arguments must be those of a call of `cuGetProcAddress`.
pub(crate) unsafe fn request_per_thread(arguments: Arguments<'_>) {
    if let Some(flags) = arguments.address(3) {
        let flags = flags.cast::<cuuint64_t>();
        // SAFETY: the fourth parameter of both variants is the flags, and the pointer is to a local copy.
        unsafe {
            if flags.read() & (LEGACY | PER_THREAD) == 0 {
                flags.write(flags.read() | PER_THREAD);
            }
        }
    }
}

/// Replaces a hidden function in the outputs of `cuGetProcAddress` with the one that a driver without it returns: the
/// newest variant up to the requested version that is not hidden, or NULL. Returns the new result of the call.
///
/// # Safety
/// The arguments must be those of a call of `cuGetProcAddress` that returned `CUDA_SUCCESS`.
pub(crate) unsafe fn replace_hidden(library: &Library, opened: &Opened, arguments: Arguments<'_>) -> CUresult {
    let done = CUresult::CUDA_SUCCESS;
    let Some(interposed) = &opened.interposed else {
        return done;
    };
    // SAFETY: these are the parameter types of both variants; the older one has no status.
    let (name, answer, version, flags, status) = unsafe {
        (
            arguments.get::<*const c_char>(0),
            arguments.get::<*mut *mut c_void>(1),
            arguments.get::<c_int>(2),
            arguments.get::<cuuint64_t>(3),
            arguments.get::<*mut Status>(4),
        )
    };
    let (Some(name), Some(answer), Some(version), Some(flags)) = (name, answer, version, flags) else {
        return done;
    };
    if name.is_null() || answer.is_null() {
        return done;
    }
    // SAFETY: the driver read the string and wrote the pointer.
    let (name, given) = unsafe { (CStr::from_ptr(name), answer.read()) };
    if given.is_null() {
        return done;
    }
    let is_given = |function: Function| library.look_up(opened, function.symbol()) == given.cast_const();
    // A driver may return an address that none of its exports has. The function is then the one that was requested.
    let asked = || {
        newest_variant(name, |function| {
            let wanted =
                (function.stream_mode() == StreamMode::PerThread) == (flags & PER_THREAD != 0 && has_per_thread(name));
            wanted && i64::from(function.since()) <= i64::from(version)
        })
    };
    let Some(found) = newest_variant(name, is_given).or_else(asked) else {
        return done;
    };
    if !interposed.hides(found) {
        return done;
    }

    let per_thread = found.stream_mode() == StreamMode::PerThread;
    let is_left = |function: Function| {
        (function.stream_mode() == StreamMode::PerThread) == per_thread
            && !interposed.hides(function)
            && !library.look_up(opened, function.symbol()).is_null()
    };
    let older = newest_variant(name, |function| {
        i64::from(function.since()) <= i64::from(version) && is_left(function)
    });
    let (pointer, outcome) = match older {
        Some(function) => (
            library.look_up(opened, function.symbol()),
            Status::CU_GET_PROC_ADDRESS_SUCCESS,
        ),
        None if newest_variant(name, is_left).is_none() => {
            (core::ptr::null(), Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        }
        None => (core::ptr::null(), Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
    };
    // SAFETY: the driver wrote to these pointers; the status may be NULL.
    unsafe {
        answer.write(pointer.cast_mut());
        match status {
            Some(status) if !status.is_null() => status.write(outcome),
            Some(_) => {}
            // The older variant has no status and reports a missing function as an error. A driver leaves the pointer
            // unchanged in that case, but here it has already written the pointer of the hidden function.
            None if pointer.is_null() => return CUresult::CUDA_ERROR_NOT_FOUND,
            None => {}
        }
    }
    done
}

/// Returns true if a base name has per-thread variants.
fn has_per_thread(base: &CStr) -> bool {
    newest_variant(base, |function| function.stream_mode() == StreamMode::PerThread).is_some()
}

/// Returns the newest export of a base name that satisfies `wanted`.
fn newest_variant(base: &CStr, wanted: impl Fn(Function) -> bool) -> Option<Function> {
    let mut newest: Option<Function> = None;
    for &function in Function::ALL {
        let is_newer = newest.is_none_or(|newest| newest.since() < function.since());
        if is_newer && function.base().as_bytes() == base.to_bytes() && wanted(function) {
            newest = Some(function);
        }
    }
    newest
}
