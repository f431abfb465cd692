//! The hooks that see every call of a library.

use core::ffi::c_void;
use core::fmt;
use core::ptr;
use core::sync::atomic::AtomicPtr;

use super::arguments::{Arguments, Invoke};
use super::open::Opened;
use super::slots::Library;
use crate::{CUresult, Function};

/// Stands between the callers of a library and the driver: watches, counts, times, changes arguments and results,
/// hides functions, lets calls fail. A closure that takes a [`Call`] is one, and the crate
/// `cuda-driver-hooks` has ready-made ones.
///
/// It is set when the library is made, over any driver, and costs nothing where there is none: with
/// [`Options::hook`](super::Options::hook) if it is [`Faithful`], else with
/// [`Options::interposer`](super::Options::interposer), which is `unsafe`. Several form a chain: the one that was given
/// first sees a call first, and [`Call::forward`] hands it to the next.
///
/// # What it cannot see
/// - What other libraries of the process (cudart, NCCL, a framework) call: they have functions of their own.
/// - Calls through pointers that [`Library::get`], [`Library::symbol`], `cuGetProcAddress` or `cuGetExportTable` handed
///   out. What is hidden is hidden in the first three too, but a pointer that is handed out goes straight to the driver.
/// - What the driver does in itself, and the callbacks that it makes.
/// - Calls that a hook makes itself, on its own thread: they go straight to the driver.
///
/// Nor does it see a call that the program did not make: where a message will need the driver's version, the library asks
/// past it.
pub trait Interposer: Send + Sync {
    /// A call is made; what this returns is what the caller gets. Called on the caller's thread, on many at once. A panic
    /// goes on through the caller.
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        call.forward()
    }

    /// Whether the library shall look as if it did not export this function; `cuGetProcAddress` does not find it then
    /// either. Asked when the function is looked up, which for a function that is not hidden may be only once: the
    /// answer should not change.
    #[inline]
    fn hides(&self, function: Function) -> bool {
        _ = function;
        false
    }

    /// The CUDA version that the driver shall seem to support, 12020 for 12.2, in messages about functions that it lacks;
    /// `None` for the one that it does. What `cuDriverGetVersion` answers is up to [`call`](Self::call).
    fn version(&self) -> Option<u32> {
        None
    }
}

/// An interposer that tells the truth about each call, so that safe code may go on believing the library.
///
/// # Safety
/// - 0 is the answer only to a call that was [forwarded](Call::forward) and answered with 0, and its outputs are then
///   what was written to them, or what the driver could as well have written.
/// - Any other code is the answer only to a call that was not forwarded, or that was answered with this code.
/// - Arguments are not changed so that the call does something else than its caller asked for.
///
/// A hook that panics after it forwarded a call is faithful.
pub unsafe trait Faithful: Interposer {}

/// A closure sees every call and hides nothing.
impl<F: Fn(Call<'_>) -> CUresult + Send + Sync> Interposer for F {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        self(call)
    }
}

/// One call on its way to the driver. `Display` prints it as C would write it, with the parameters' names.
pub struct Call<'a> {
    pub(crate) library: &'a Library,
    pub(crate) opened: &'a Opened,
    pub(crate) function: Function,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) target: *const c_void,
    pub(crate) invoke: Invoke,
    /// The interposers that have not seen it yet.
    pub(crate) rest: &'a [Box<dyn Interposer>],
}

impl<'a> Call<'a> {
    /// The function, by the name that the caller used: in a per-thread library the driver's is its twin.
    #[inline]
    #[must_use]
    pub fn function(&self) -> Function {
        self.function
    }

    /// The library that is called.
    #[inline]
    #[must_use]
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// The arguments. They may be kept beyond [`forward`](Self::forward), to look at what came back.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> Arguments<'a> {
        self.arguments
    }

    /// How many arguments the function takes.
    #[inline]
    #[must_use]
    pub fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// An argument; `None` if there are not so many.
    ///
    /// # Safety
    /// As [`Arguments::get`].
    #[inline]
    #[must_use]
    pub unsafe fn argument<T: Copy>(&self, index: usize) -> Option<T> {
        // SAFETY: the caller keeps the contract.
        unsafe { self.arguments.get(index) }
    }

    /// Changes an argument; whether there are so many.
    ///
    /// # Safety
    /// `T` is the type that `cuda.h` gives this parameter of this function, and the value one that the function may
    /// be called with.
    #[inline]
    pub unsafe fn set_argument<T: Copy>(&mut self, index: usize, value: T) -> bool {
        match self.arguments.address(index) {
            // SAFETY: the pointers are to the caller's copies of the arguments; the caller vouches for the type.
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

/// A library's hooks, and its own table of functions: the slots stay null so that every call passes by.
pub(crate) struct Interposed {
    pub(crate) hooks: Box<[Box<dyn Interposer>]>,
    pub(crate) functions: Box<[AtomicPtr<c_void>]>,
}

impl Interposed {
    /// The table of a library; `None` without hooks.
    #[inline]
    pub(crate) fn new(hooks: Vec<Box<dyn Interposer>>) -> Option<Self> {
        (!hooks.is_empty()).then(|| Self {
            hooks: hooks.into_boxed_slice(),
            functions: (0..Function::COUNT)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
        })
    }

    pub(crate) fn version(&self) -> Option<u32> {
        self.hooks.iter().find_map(|hook| hook.version())
    }

    pub(crate) fn hides(&self, function: Function) -> bool {
        self.hooks.iter().any(|hook| hook.hides(function))
    }
}
