//! The parameters of every function, as data.

use core::ffi::c_void;
use core::{fmt, slice};

use crate::Function;
use crate::generated::facts::{NAMES, PARAMETERS, TYPE_NAMES, TYPES};
use crate::shape::Shape;
use crate::text::piece;

/// One parameter of a [`Function`].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Parameter {
    /// Where its name begins.
    name: u16,
    /// How long that is.
    length: u16,
    /// The place of its type.
    of_type: u16,
}

/// One type of parameters.
pub(crate) struct Type(
    /// Where its name begins.
    pub(crate) u16,
    /// How long that is.
    pub(crate) u8,
    /// How a value is printed.
    pub(crate) Shape,
);

impl Parameter {
    const fn of_type(self) -> &'static Type {
        // In bounds: both tables are written together.
        &TYPES[self.of_type as usize]
    }

    /// Its name in `cuda.h`.
    #[inline]
    #[must_use]
    pub const fn name(&self) -> &'static str {
        let start = self.name as usize;
        piece(NAMES, start, start + self.length as usize)
    }

    /// Its type in Rust, as the call of this crate has it: `*mut CUdeviceptr`.
    #[inline]
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        let Type(start, length, _) = self.of_type();
        piece(
            TYPE_NAMES,
            *start as usize,
            *start as usize + *length as usize,
        )
    }

    /// Prints a value of this parameter; what it points to is not looked at.
    ///
    /// # Safety
    /// There is a value of the parameter's type at the address.
    #[inline]
    #[cfg_attr(not(any(feature = "loader", feature = "link")), allow(dead_code))]
    pub(crate) unsafe fn show(
        &self,
        value: *const c_void,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // SAFETY: the table pairs the parameter with the shape of its type.
        unsafe { self.of_type().2.show(value, f) }
    }
}

impl fmt::Debug for Parameter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.type_name())
    }
}

impl Function {
    /// Its parameters, in order.
    #[inline]
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        const NUMBERS: usize = size_of::<Parameter>() / size_of::<u16>();
        // In bounds: each function has the place of its first, and behind the last stands the place of their end.
        let (start, end) = (self.first_parameter(0), self.first_parameter(1));
        let numbers = &PARAMETERS[start * NUMBERS..end * NUMBERS];
        // SAFETY: a parameter is so many of these numbers.
        unsafe { slice::from_raw_parts(numbers.as_ptr().cast(), end - start) }
    }
}
