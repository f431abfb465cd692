//! The hook that sees every call of a library.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::AtomicPtr;

use super::Library;
use super::resolve::Invoke;
use crate::{CUresult, Function};

/// Stands between the callers of a library and the driver: watches, counts, times, changes arguments and results,
/// hides functions, lets calls fail.
///
/// It is set with [`Options::interposer`](super::Options::interposer) when the library is made and costs nothing
/// where there is none. It does not see what other libraries of the process call, nor calls through pointers that
/// [`Library::get`] or `cuGetProcAddress` handed out. Calls that it makes itself to the same library go straight to
/// the driver.
pub trait Interposer: Send + Sync {
    /// A call is made; what this returns is what the caller gets. Called on the caller's thread, on many at once.
    fn call(&self, call: Call<'_>) -> CUresult {
        call.forward()
    }

    /// Whether the library shall look as if it did not export this function. Asked whenever it is looked up, which for a function
    /// that is not hidden is once.
    fn hides(&self, function: Function) -> bool {
        _ = function;
        false
    }
}

/// One call on its way to the driver.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) library: &'a Library,
    pub(crate) function: Function,
    pub(crate) arguments: &'a mut [*mut c_void],
    pub(crate) target: *const c_void,
    pub(crate) invoke: Invoke,
}

impl<'a> Call<'a> {
    /// The function, by the name that the caller used: in a per-thread library the driver's is its twin.
    #[must_use]
    pub fn function(&self) -> Function {
        self.function
    }

    /// The library that is called.
    #[must_use]
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// How many arguments the function takes.
    #[must_use]
    pub fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// An argument; `None` if there are not so many.
    ///
    /// # Safety
    /// `T` is the type that `cuda.h` gives this parameter of this function.
    #[must_use]
    pub unsafe fn argument<T: Copy>(&self, index: usize) -> Option<T> {
        // SAFETY: the pointers are to the caller's copies of the arguments; the caller vouches for the type.
        self.arguments
            .get(index)
            .map(|argument| unsafe { argument.cast::<T>().read() })
    }

    /// Changes an argument; whether there are so many.
    ///
    /// # Safety
    /// `T` is the type that `cuda.h` gives this parameter of this function, and the value one that the function may
    /// be called with.
    pub unsafe fn set_argument<T: Copy>(&mut self, index: usize, value: T) -> bool {
        match self.arguments.get(index) {
            // SAFETY: the pointers are to the caller's copies of the arguments; the caller vouches for the type.
            Some(argument) => unsafe { argument.cast::<T>().write(value) },
            None => return false,
        }
        true
    }

    /// Makes the call; 302 if the driver has no such function.
    pub fn forward(self) -> CUresult {
        if self.target.is_null() {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        }
        let _outside = Inside::set(ptr::null());
        // SAFETY: the target is the export that `invoke` is made for, the arguments are the caller's, who keeps the
        // contract of the call; it is made once.
        unsafe { (self.invoke)(self.target, self.arguments.as_ptr()) }
    }
}

/// A library's hook, and its own table of functions: the slots stay null so that every call passes by.
pub(crate) struct Interposed {
    pub(crate) hook: Box<dyn Interposer>,
    pub(crate) functions: Box<[AtomicPtr<c_void>]>,
}

impl Interposed {
    pub(crate) fn new(hook: Box<dyn Interposer>) -> Self {
        Self {
            hook,
            functions: (0..Function::COUNT)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
        }
    }
}

thread_local! {
    /// The library whose interposer runs on this thread right now.
    static INSIDE: Cell<*const Library> = const { Cell::new(ptr::null()) };
}

/// Marks the thread as inside a library's interposer, or outside, until it is dropped.
pub(crate) struct Inside(*const Library);

impl Inside {
    pub(crate) fn set(library: *const Library) -> Self {
        Self(INSIDE.replace(library))
    }

    /// Whether the interposer of this library runs on this thread.
    pub(crate) fn is(library: &Library) -> bool {
        ptr::eq(INSIDE.get(), library)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
