//! What `cuGetProcAddress` answers where an interposer hides functions, or the library is a per-thread one.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::arguments::Arguments;
use super::open::Opened;
use super::slots::Library;
use crate::{CUdriverProcAddressQueryResult as Status, CUresult, Function, StreamMode, cuuint64_t};

const LEGACY: cuuint64_t = 1;
const PER_THREAD: cuuint64_t = 2;

/// Whether a function is one of the two that hand functions out by name.
pub(crate) fn is_asked_by(function: Function) -> bool {
    function == Function::cuGetProcAddress_v2
        || function == crate::legacy::function::cuGetProcAddress
}

/// What the inline wrapper of `cuda.h` does in a per-thread program: unless the caller asks for one kind of default
/// stream, the functions found are those of the per-thread kind.
///
/// # Safety
/// The arguments are those of `cuGetProcAddress`.
pub(crate) unsafe fn ask_for_per_thread(arguments: Arguments<'_>) {
    if let Some(flags) = arguments.address(3) {
        let flags = flags.cast::<cuuint64_t>();
        // SAFETY: the fourth argument of both variants is the flags, and it is the caller's copy.
        unsafe {
            if flags.read() & (LEGACY | PER_THREAD) == 0 {
                flags.write(flags.read() | PER_THREAD);
            }
        }
    }
}

/// Takes a hidden function out of an answer, and puts in what a driver without it would give: the newest variant that
/// the asked version has and that is not hidden, or nothing. What `cuGetProcAddress` then returns.
///
/// # Safety
/// The arguments are those of a call of `cuGetProcAddress` that returned success.
pub(crate) unsafe fn hide(
    library: &Library,
    opened: &Opened,
    arguments: Arguments<'_>,
) -> CUresult {
    let done = CUresult::CUDA_SUCCESS;
    let Some(interposed) = &opened.interposed else {
        return done;
    };
    // SAFETY: these are the types of the parameters in both variants; the older one has no status.
    let (name, answer, version, flags, status) = unsafe {
        (
            arguments.get::<*const c_char>(0),
            arguments.get::<*mut *mut c_void>(1),
            arguments.get::<c_int>(2),
            arguments.get::<cuuint64_t>(3),
            arguments.get::<*mut Status>(4),
        )
    };
    let (Some(name), Some(answer), Some(version), Some(flags)) = (name, answer, version, flags)
    else {
        return done;
    };
    if name.is_null() || answer.is_null() {
        return done;
    }
    // SAFETY: the driver read a string there and wrote a pointer there.
    let (name, given) = unsafe { (CStr::from_ptr(name), answer.read()) };
    if given.is_null() {
        return done;
    }
    let is_given =
        |function: Function| library.look_up(opened, function.symbol()) == given.cast_const();
    // What is handed out need not be what is exported. It is then what was asked for.
    let asked = || {
        newest_variant(name, |function| {
            let wanted = (function.stream_mode() == StreamMode::PerThread)
                == (flags & PER_THREAD != 0 && has_per_thread(name));
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
        None if newest_variant(name, is_left).is_none() => (
            core::ptr::null(),
            Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        ),
        None => (
            core::ptr::null(),
            Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
        ),
    };
    // SAFETY: the driver wrote there; the status may be NULL.
    unsafe {
        answer.write(pointer.cast_mut());
        match status {
            Some(status) if !status.is_null() => status.write(outcome),
            Some(_) => {}
            // Without a status, the code says it; the driver itself would not have written NULL, but what it wrote is
            // hidden.
            None if pointer.is_null() => return CUresult::CUDA_ERROR_NOT_FOUND,
            None => {}
        }
    }
    done
}

/// Whether a base name has per-thread forms at all.
fn has_per_thread(base: &CStr) -> bool {
    newest_variant(base, |function| {
        function.stream_mode() == StreamMode::PerThread
    })
    .is_some()
}

/// The newest export of a base name that is as wanted.
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
