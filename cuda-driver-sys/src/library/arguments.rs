//! Arguments of calls, as interposers see them.

use core::ffi::c_void;
use core::fmt;

use crate::{CUresult, Function};

/// Calls a function of the driver with the arguments that the pointers point to. There is one such function for each
/// signature.
pub(crate) type Invoke = unsafe fn(*const c_void, *const *mut c_void) -> CUresult;

/// The arguments of one call. `Display` prints them with the names of parameters and enumeration values, and does not
/// dereference pointers: `dptr: 0x7ffd6e4c3a58, bytesize: 4096`.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    function: Function,
    /// For each argument a pointer to a local copy, which has the parameter's type in `cuda.h`.
    pointers: &'a [*mut c_void],
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// There must be one pointer for each parameter of `function`, to a value of its type that lives for `'a` and is
    /// not accessed otherwise.
    #[inline]
    pub(crate) const unsafe fn new(function: Function, pointers: &'a [*mut c_void]) -> Self {
        Self { function, pointers }
    }

    #[inline]
    pub(crate) const fn pointers(&self) -> *const *mut c_void {
        self.pointers.as_ptr()
    }

    #[inline]
    pub(crate) fn address(&self, index: usize) -> Option<*mut c_void> {
        self.pointers.get(index).copied()
    }

    /// Returns the number of arguments.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Returns true if the function has no parameters.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Returns an argument, or `None` if the index is out of range. [`Function::parameters`] lists the parameters.
    ///
    /// # Safety
    /// `T` must be the type of this parameter in `cuda.h`.
    #[inline]
    #[must_use]
    pub unsafe fn get<T: Copy>(&self, index: usize) -> Option<T> {
        // SAFETY: the pointers are to local copies of the arguments; the caller guarantees the type.
        self.address(index)
            .map(|argument| unsafe { argument.cast::<T>().read() })
    }
}

impl fmt::Display for Arguments<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.function.parameters();
        for (index, (parameter, argument)) in parameters.iter().zip(self.pointers).enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}: ", parameter.name())?;
            // SAFETY: the pointer is to a value of this parameter's type, which the caller of `new` guaranteed.
            unsafe { parameter.show(*argument, f)? };
        }
        Ok(())
    }
}

impl fmt::Debug for Arguments<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
