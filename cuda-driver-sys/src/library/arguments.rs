//! The arguments of a call, as an interposer sees them.

use core::ffi::c_void;
use core::fmt;

use crate::{CUresult, Function};

/// Calls a function of the driver with arguments behind pointers; made anew for every signature.
pub(crate) type Invoke = unsafe fn(*const c_void, *const *mut c_void) -> CUresult;

/// The arguments of one call. `Display` prints them with their names, enumerations by name:
/// `dptr: 0x7ffd6e4c3a58, bytesize: 4096`. What pointers point to is not looked at.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    function: Function,
    /// For each a pointer to the caller's copy, of the type that `cuda.h` gives the parameter.
    pointers: &'a [*mut c_void],
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// The pointers are to the arguments of a call of `function`, one for each, live as long as `'a` says, and nobody
    /// else reads or writes behind them.
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

    /// How many there are.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Whether the function takes none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// An argument; `None` if there are not so many. [`Function::parameters`] says which is which.
    ///
    /// # Safety
    /// `T` is the type that `cuda.h` gives this parameter of this function.
    #[inline]
    #[must_use]
    pub unsafe fn get<T: Copy>(&self, index: usize) -> Option<T> {
        // SAFETY: the pointers are to the caller's copies of the arguments; the caller vouches for the type.
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
            // SAFETY: the pointer is to an argument of this parameter, as `new` was promised.
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
