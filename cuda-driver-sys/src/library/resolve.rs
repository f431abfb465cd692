//! The cold path of a call: finds the function, or asks the interposer, or answers a code.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;

use super::Library;
use super::error::LoadError;
use super::interposer::{Call, Inside};
use super::open::{Opened, Origin};
use crate::{CUresult, Function, cuuint64_t};

/// Calls a function of the driver with arguments behind pointers; made anew for every signature.
pub(crate) type Invoke = unsafe fn(*const c_void, *const *mut c_void) -> CUresult;

thread_local! {
    /// The library whose resolver runs on this thread right now.
    static RESOLVING: Cell<*const Library> = const { Cell::new(ptr::null()) };
}

/// Marks the thread until it is dropped.
struct Resolving(*const Library);

impl Drop for Resolving {
    fn drop(&mut self) {
        RESOLVING.set(self.0);
    }
}

impl Library {
    /// Opens the library if it is not open yet.
    pub(crate) fn opened(&self) -> Result<&Opened, &LoadError> {
        self.state.get(None)
    }

    /// A call through a null slot.
    ///
    /// # Safety
    /// `invoke` is made for `function`, and the arguments are that function's own, with its contract kept.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn call_unresolved(
        &self,
        function: Function,
        arguments: &mut [*mut c_void],
        invoke: Invoke,
    ) -> CUresult {
        let Ok(opened) = self.state.get(Some(function)) else {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
        };
        if ptr::eq(RESOLVING.get(), self) {
            // The resolver calls what it has yet to resolve: going on would never end.
            return CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
        }
        let asks_for_functions = function == Function::cuGetProcAddress_v2
            || function == crate::legacy::Function::cuGetProcAddress;
        if opened.per_thread && asks_for_functions {
            // SAFETY: the fourth parameter of both is the flags.
            unsafe { ask_for_per_thread(arguments) };
        }
        let target = self.find(opened, function);
        if let Some(interposed) = &opened.interposed {
            if !Inside::is(self) {
                let _inside = Inside::set(self);
                return interposed.hook.call(Call {
                    library: self,
                    function,
                    arguments,
                    target,
                    invoke,
                });
            }
        }
        if target.is_null() {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        }
        // The slot stays null where every call has to pass here.
        if opened.interposed.is_none() && !(opened.per_thread && asks_for_functions) {
            self.slots[function.index()].store(target.cast_mut(), Ordering::Release);
        }
        // SAFETY: the target is the export of that name, `invoke` is made for it, the caller vouches for the rest.
        unsafe { invoke(target, arguments.as_ptr()) }
    }

    /// The export that calls to `function` go to, or null.
    pub(crate) fn find(&self, opened: &Opened, function: Function) -> *const c_void {
        let known = opened
            .interposed
            .as_ref()
            .map(|interposed| &interposed.functions[function.index()]);
        let known = known.unwrap_or(&self.slots[function.index()]);
        let pointer = known.load(Ordering::Acquire);
        if !pointer.is_null() {
            return pointer;
        }
        if opened
            .interposed
            .as_ref()
            .is_some_and(|interposed| interposed.hook.hides(function))
        {
            return ptr::null();
        }
        let export = match function.per_thread() {
            Some(twin) if opened.per_thread => twin,
            _ => function,
        };
        let _resolving = match opened.origin {
            Origin::Resolver(_) => Some(Resolving(RESOLVING.replace(self))),
            Origin::Object(_) => None,
        };
        let found = opened.origin.symbol(export.symbol());
        if let (Some(interposed), false) = (&opened.interposed, found.is_null()) {
            interposed.functions[function.index()].store(found.cast_mut(), Ordering::Release);
        }
        found
    }
}

/// What the inline wrapper of `cuda.h` does in a per-thread program: unless the caller asks for one kind of default
/// stream, the functions found are those of the per-thread kind.
///
/// # Safety
/// The arguments are those of `cuGetProcAddress`.
unsafe fn ask_for_per_thread(arguments: &[*mut c_void]) {
    const LEGACY: cuuint64_t = 1;
    const PER_THREAD: cuuint64_t = 2;
    if let Some(flags) = arguments.get(3) {
        let flags = flags.cast::<cuuint64_t>();
        // SAFETY: the fourth argument of cuGetProcAddress is the flags, and it is the caller's copy.
        unsafe {
            if flags.read() & (LEGACY | PER_THREAD) == 0 {
                flags.write(flags.read() | PER_THREAD);
            }
        }
    }
}
