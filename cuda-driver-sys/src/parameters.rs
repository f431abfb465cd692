//! The parameters of every function, as data.

use core::ffi::*;
use core::fmt;

use crate::Function;
#[allow(clippy::wildcard_imports)]
use crate::{generated::enumerations::*, generated::records::*};

/// One parameter of a [`Function`].
#[derive(Clone, Copy)]
pub struct Parameter {
    name: &'static str,
    type_name: &'static str,
    show: unsafe fn(*const c_void, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl Parameter {
    /// Its name in `cuda.h`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        // Keywords of Rust have an underscore behind.
        self.name.strip_suffix('_').unwrap_or(self.name)
    }

    /// Its type in Rust, as the call of this crate has it: `*mut CUdeviceptr`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Prints a value of this parameter; what it points to is not looked at.
    ///
    /// # Safety
    /// There is a value of the parameter's type at the address.
    #[cfg_attr(not(any(feature = "loader", feature = "link")), allow(dead_code))]
    pub(crate) unsafe fn show(
        &self,
        value: *const c_void,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        // SAFETY: the table pairs the parameter with the function for its type.
        unsafe { (self.show)(value, f) }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.type_name)
    }
}

/// What an argument prints as.
pub(crate) trait Show {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

macro_rules! show_as_debug {
    ($($ty:ty)*) => {
        $(
            impl Show for $ty {
                fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(self, f)
                }
            }
        )*
    };
}
show_as_debug! { i8 u8 i16 u16 i32 u32 i64 u64 usize f32 f64 }

// Handles.
impl<T> Show for *mut T {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", *self)
    }
}

impl<T> Show for *const T {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", *self)
    }
}

/// Callbacks.
macro_rules! show_functions {
    ($(($($parameter:ident)*))*) => {
        $(
            impl<R, $($parameter),*> Show for Option<unsafe extern "system" fn($($parameter),*) -> R> {
                fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    match self {
                        Some(function) => write!(f, "{function:p}"),
                        None => f.write_str("0x0"),
                    }
                }
            }
        )*
    };
}
show_functions! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) }

/// # Safety
/// There is a pointer at the address.
unsafe fn show_pointer(value: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // SAFETY: the caller says so.
    write!(f, "{:p}", unsafe { value.cast::<*const c_void>().read() })
}

/// # Safety
/// There is a `T` at the address.
unsafe fn show<T: Show>(value: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // SAFETY: the caller says so.
    unsafe { &*value.cast::<T>() }.show(f)
}

macro_rules! parameter {
    ($name:ident: $ty:ty) => {
        Parameter {
            name: stringify!($name),
            type_name: stringify!($ty),
            show: if is_pointer(stringify!($ty)) {
                show_pointer
            } else if is_address(stringify!($ty)) {
                show_address
            } else {
                show::<$ty>
            },
        }
    };
}

/// Whether a type's text is that of a pointer: those need not all have a function of their own.
const fn is_pointer(type_name: &str) -> bool {
    matches!(type_name.as_bytes(), [b'*', ..])
}

/// Whether a type's text is that of an address on the device.
const fn is_address(type_name: &str) -> bool {
    matches!(type_name.as_bytes(), b"CUdeviceptr")
}

/// # Safety
/// There is an address on the device at the address.
unsafe fn show_address(value: *const c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // SAFETY: the caller says so.
    write!(f, "{:#x}", unsafe { value.cast::<CUdeviceptr>().read() })
}

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $opage:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $lpage:literal;)* }
        plain { $($plain:tt)* }
    ) => {
        /// Those of all functions, one behind the other.
        static PARAMETERS: &[Parameter] = &[
            $($(parameter!($op: $ot),)*)*
            $($(parameter!($lp: $lt),)*)*
        ];

        /// How many each function has, by [`Function::index`].
        static COUNTS: [usize; Function::COUNT] = [
            $(<[&str]>::len(&[$(stringify!($op)),*]),)*
            $(<[&str]>::len(&[$(stringify!($lp)),*]),)*
        ];
    };
}
api_table! { define; }

/// Where those of each function begin, and at last where they all end.
static STARTS: [u16; Function::COUNT + 1] = {
    let mut starts = [0; Function::COUNT + 1];
    let mut index = 0;
    while index < COUNTS.len() {
        starts[index + 1] = starts[index] + COUNTS[index] as u16;
        index += 1;
    }
    starts
};

impl Function {
    /// Its parameters, in order.
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        // In bounds: the tables are made from the list that the functions are.
        let (start, end) = (STARTS[self.index()], STARTS[self.index() + 1]);
        &PARAMETERS[usize::from(start)..usize::from(end)]
    }
}
