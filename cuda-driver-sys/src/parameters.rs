//! The parameters of every function.

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
    /// Offset of the name in [`NAMES`].
    name: u16,
    /// Length of the name.
    length: u16,
    /// Index of the type in [`TYPES`].
    of_type: u16,
}

/// A type of parameters.
pub(crate) struct Type(
    /// Offset of the name in [`TYPE_NAMES`].
    pub(crate) u16,
    /// Length of the name.
    pub(crate) u8,
    /// The representation of values, for printing.
    pub(crate) Shape,
);

impl Parameter {
    const fn of_type(self) -> &'static Type {
        // In bounds: both tables are generated together.
        &TYPES[self.of_type as usize]
    }

    /// Returns the parameter's name in `cuda.h`.
    #[inline]
    #[must_use]
    pub const fn name(&self) -> &'static str {
        let start = self.name as usize;
        piece(NAMES, start, start + self.length as usize)
    }

    /// Returns the parameter's Rust type in this crate, for instance `*mut CUdeviceptr`.
    #[inline]
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        let Type(start, length, _) = self.of_type();
        piece(TYPE_NAMES, *start as usize, *start as usize + *length as usize)
    }

    /// Prints a value of this parameter. A value that is a pointer is not dereferenced.
    ///
    /// # Safety
    /// `value` must point to a value of the parameter's type.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn show(&self, value: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the table pairs the parameter with the shape of its type.
        unsafe { self.of_type().2.show(value, f) }
    }

    /// Prints the value that an argument of this parameter points to. Prints nothing if the parameter is not a pointer,
    /// or if the value is a structure or of a type that no function takes by value.
    ///
    /// # Safety
    /// `target` must point to a value of the type that the parameter points to.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn show_target(&self, target: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.type_name();
        let Some(name) = name.strip_prefix("*mut ").or_else(|| name.strip_prefix("*const ")) else {
            return Ok(());
        };
        let named = |Type(start, length, _): &&Type| {
            let start = *start as usize;
            piece(TYPE_NAMES, start, start + *length as usize) == name
        };
        match TYPES.iter().find(named) {
            None | Some(Type(_, _, Shape::Record(_))) => Ok(()),
            // SAFETY: the caller guarantees a value of this type.
            Some(Type(_, _, shape)) => unsafe { shape.show(target, f) },
        }
    }
}

impl fmt::Debug for Parameter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.type_name())
    }
}

impl Function {
    /// Returns the function's parameters, in order.
    #[inline]
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        const NUMBERS: usize = size_of::<Parameter>() / size_of::<u16>();
        // In bounds: the table of functions ends with a row that only marks the end of the last function's parameters.
        let (start, end) = (self.first_parameter(0), self.first_parameter(1));
        let numbers = &PARAMETERS[start * NUMBERS..end * NUMBERS];
        // SAFETY: a `Parameter` is `repr(C)` and consists of `NUMBERS` numbers, and the slice has `end - start` of
        // them.
        unsafe { slice::from_raw_parts(numbers.as_ptr().cast(), end - start) }
    }
}
