//! Descriptions of the API's types at run time, so that one function can print a value of any of them.

use core::ffi::{CStr, c_void};
use core::fmt;

use crate::generated::facts::{ENUMERATIONS, VALUE_NAMES, VALUES};
use crate::text::part;

/// The representation of a parameter's type.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Usize,
    F32,
    F64,
    /// A device address.
    Address,
    /// A pointer, a handle or a callback.
    Pointer,
    /// A C enumeration.
    Enumeration(Enumeration),
    /// A struct or union.
    Record(&'static Record),
}

/// An enumeration: its index in the table [`ENUMERATIONS`].
///
/// The values and names of all enumerations are stored in one list and one string, because separate constants would
/// make up a good part of the crate's size.
#[derive(Clone, Copy)]
pub(crate) struct Enumeration(pub(crate) usize);

/// A struct or union.
pub(crate) struct Record {
    pub(crate) name: &'static str,
}

/// A type whose values can be printed.
pub(crate) trait Shown {
    const SHAPE: Shape;
}

macro_rules! values {
    ($($ty:ident $shape:ident)*) => {
        $(impl Shown for $ty { const SHAPE: Shape = Shape::$shape; })*
    };
}
values! { i8 I8 u8 U8 i16 I16 u16 U16 i32 I32 u32 U32 i64 I64 u64 U64 usize Usize f32 F32 f64 F64 }

impl<T> Shown for *mut T {
    const SHAPE: Shape = Shape::Pointer;
}

impl<T> Shown for *const T {
    const SHAPE: Shape = Shape::Pointer;
}

macro_rules! callbacks {
    ($(($($parameter:ident)*))*) => {
        $(
            impl<R, $($parameter),*> Shown for Option<unsafe extern "system" fn($($parameter),*) -> R> {
                const SHAPE: Shape = Shape::Pointer;
            }
        )*
    };
}
// Callbacks of CUDA 13.5 have at most five parameters; newer headers may have more.
callbacks! {
    () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) (A B C D E F G H I)
    (A B C D E F G H I J)
}

impl Shape {
    /// Prints the value at an address. A value that is a pointer is not dereferenced.
    ///
    /// # Safety
    /// `value` must point to a value of this shape.
    #[inline]
    pub(crate) unsafe fn show(self, value: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! print {
            ($form:literal, $ty:ty) => {
                // SAFETY: the caller guarantees a value of this type.
                write!(f, $form, unsafe { value.cast::<$ty>().read() })
            };
        }
        match self {
            Self::I8 => print!("{}", i8),
            Self::U8 => print!("{}", u8),
            Self::I16 => print!("{}", i16),
            Self::U16 => print!("{}", u16),
            Self::I32 => print!("{}", i32),
            Self::U32 => print!("{}", u32),
            Self::I64 => print!("{}", i64),
            Self::U64 => print!("{}", u64),
            Self::Usize => print!("{}", usize),
            Self::F32 => print!("{:?}", f32),
            Self::F64 => print!("{:?}", f64),
            Self::Address => print!("{:#x}", u64),
            Self::Pointer => print!("{:p}", *const c_void),
            Self::Enumeration(enumeration) => {
                // SAFETY: every enumeration is a `u32`, and the caller guarantees a value.
                let value = unsafe { value.cast::<u32>().read() };
                enumeration.show(value, f)
            }
            Self::Record(record) => write!(f, "{} {{ .. }}", record.name),
        }
    }
}

impl Enumeration {
    /// Returns the first name of a value.
    pub(crate) const fn name_of(self, value: u32) -> Option<&'static str> {
        match self.c_name_of(value) {
            Some(name) => match name.to_str() {
                Ok(name) => Some(name),
                // The names are ASCII.
                Err(_) => None,
            },
            None => None,
        }
    }

    /// Returns the first name of a value as a C string.
    pub(crate) const fn c_name_of(self, value: u32) -> Option<&'static CStr> {
        let [first, count, names] = ENUMERATIONS[self.0];
        let mut at = 0;
        while at < count {
            if VALUES[(first + at) as usize] == value {
                // The name of the enumeration comes before the names of its values.
                return part(VALUE_NAMES, names as usize, at + 1);
            }
            at += 1;
        }
        None
    }

    /// Prints a value's name, or the type and the number of an unknown value.
    #[inline]
    pub(crate) fn show(self, value: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name_of(value) {
            return f.write_str(name);
        }
        let [_, _, names] = ENUMERATIONS[self.0];
        let own = part(VALUE_NAMES, names as usize, 0).and_then(|name| name.to_str().ok());
        write!(f, "{}({value})", own.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::Enumeration;
    use crate::generated::enumerations::NAMED;
    use crate::generated::facts::ENUMERATIONS;

    /// The definitions of the enumerations and the table of their names are two generated files.
    #[test]
    fn enumerations_have_their_own_names() {
        assert_eq!(NAMED.len(), ENUMERATIONS.len());
        for (expected, (name, index, values)) in NAMED.iter().enumerate() {
            assert_eq!(*index, expected, "{name}");
            let enumeration = Enumeration(*index);
            for (value, number) in *values {
                let first = values
                    .iter()
                    .find(|(_, other)| other == number)
                    .map(|(first, _)| *first);
                assert_eq!(enumeration.name_of(*number), first, "{name}::{value}");
            }
            let unknown = (0..).find(|number| values.iter().all(|(_, known)| known != number));
            assert_eq!(enumeration.name_of(unknown.unwrap_or_default()), None, "{name}");
        }
    }
}
