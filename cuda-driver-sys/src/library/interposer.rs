//! Interposers: hooks between the callers of a library and its driver.

use core::ffi::c_void;
use core::fmt;
use core::ptr;
use core::sync::atomic::AtomicPtr;

use super::arguments::{Arguments, Invoke};
use super::open::Opened;
use super::slots::Library;
use crate::{CUresult, Function};

/// A hook between the callers of a library and the driver. It can watch calls, change arguments and results, make calls
/// fail and hide functions. Closures that take a [`Call`] are interposers, and the crate `cuda-driver-hooks` has
/// ready-made ones.
///
/// Interposers are set when a library is made, over any driver: with [`Options::hook`](super::Options::hook) if they
/// are [`Faithful`], otherwise with [`Options::interposer`](super::Options::interposer), which is `unsafe`. Several
/// form a chain: the one added first sees a call first, and [`Call::forward`] passes it to the next. A library without
/// interposers has no overhead.
///
/// # Calls that an interposer does not see
/// - Calls that other libraries of the process make, such as the CUDA runtime, NCCL or a framework: they do not call
///   through the [`Library`].
/// - Calls through pointers returned by [`Library::get`], [`Library::symbol`], `cuGetProcAddress` or
///   `cuGetExportTable`. The first three do not return hidden functions, but calls through a returned pointer go
///   directly to the driver.
/// - Work inside the driver, and callbacks from the driver.
/// - Calls that an interposer of the same library makes on the same thread: they go directly to the driver.
/// - The library's own query of the driver's version for an error message.
pub trait Interposer: Send + Sync {
    /// Handles a call and returns the result for the caller. This method runs on the caller's thread, possibly on
    /// several threads at once. A panic unwinds through the caller.
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        call.forward()
    }

    /// Returns true to hide a function, as if the driver did not export it; `cuGetProcAddress` does not find it either.
    /// This method is called when the function is looked up, for a visible function possibly only once, so its answer
    /// should not change.
    #[inline]
    fn hides(&self, function: Function) -> bool {
        _ = function;
        false
    }

    /// Returns the CUDA version to claim in messages about missing functions, for instance 12020 for CUDA 12.2, or
    /// `None` to leave the driver's own. The result of `cuDriverGetVersion` is changed in [`call`](Self::call) instead.
    fn version(&self) -> Option<u32> {
        None
    }
}

/// An interposer that reports the real outcome of each call, so that safe code can rely on the library.
///
/// # Safety
/// - The interposer must return `CUDA_SUCCESS` only for a call that it [forwarded](Call::forward) and that returned
///   `CUDA_SUCCESS`. The outputs must be those that the driver wrote, or others that the driver could have written.
/// - It must return any other code only for a call that it did not forward, or that returned this code.
/// - It must not change arguments so that the call has another effect than the caller requested.
///
/// An interposer that panics after forwarding a call satisfies this contract.
pub unsafe trait Faithful: Interposer {}

/// A closure sees every call and hides nothing.
impl<F: Fn(Call<'_>) -> CUresult + Send + Sync> Interposer for F {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        self(call)
    }
}

/// A call on its way to the driver. `Display` prints it in C's form, with the names of the parameters.
pub struct Call<'a> {
    pub(crate) library: &'a Library,
    pub(crate) opened: &'a Opened,
    pub(crate) function: Function,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) target: *const c_void,
    pub(crate) invoke: Invoke,
    /// The interposers that have not seen the call yet.
    pub(crate) rest: &'a [Box<dyn Interposer>],
}

impl<'a> Call<'a> {
    /// Returns the function under the name that the caller used. In a per-thread library, the driver's function may be
    /// its per-thread twin.
    #[inline]
    #[must_use]
    pub fn function(&self) -> Function {
        self.function
    }

    /// Returns the called library.
    #[inline]
    #[must_use]
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// Returns the arguments. They stay valid after [`forward`](Self::forward), to read outputs.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> Arguments<'a> {
        self.arguments
    }

    /// Returns the number of arguments.
    #[inline]
    #[must_use]
    pub fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// Returns an argument, or `None` if the index is out of range.
    ///
    /// # Safety
    /// Same as [`Arguments::get`].
    #[inline]
    #[must_use]
    pub unsafe fn argument<T: Copy>(&self, index: usize) -> Option<T> {
        // SAFETY: upheld by the caller.
        unsafe { self.arguments.get(index) }
    }

    /// Changes an argument. Returns false if the index is out of range.
    ///
    /// # Safety
    /// `T` must be the type of this parameter in `cuda.h`, and the function must accept the value.
    #[inline]
    pub unsafe fn set_argument<T: Copy>(&mut self, index: usize, value: T) -> bool {
        match self.arguments.address(index) {
            // SAFETY: the pointers are to local copies of the arguments; the caller guarantees the type.
            Some(argument) => unsafe { argument.cast::<T>().write(value) },
            None => return false,
        }
        true
    }
}

impl fmt::Display for Call<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.function, self.arguments)
    }
}

impl fmt::Debug for Call<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A library's interposers, with a table of resolved functions. The library's own slots stay null, so that every call
/// takes the cold path.
pub(crate) struct Interposed {
    pub(crate) hooks: Box<[Box<dyn Interposer>]>,
    pub(crate) functions: Box<[AtomicPtr<c_void>]>,
}

impl Interposed {
    /// Returns `None` if there are no interposers.
    #[inline]
    pub(crate) fn new(hooks: Vec<Box<dyn Interposer>>) -> Option<Self> {
        (!hooks.is_empty()).then(|| Self {
            hooks: hooks.into_boxed_slice(),
            functions: (0..Function::COUNT).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
        })
    }

    pub(crate) fn version(&self) -> Option<u32> {
        self.hooks.iter().find_map(|hook| hook.version())
    }

    pub(crate) fn hides(&self, function: Function) -> bool {
        self.hooks.iter().any(|hook| hook.hides(function))
    }
}
