//! The parameters of every function, as data.

use core::ffi::*;
use core::fmt;

use crate::Function;
use crate::shape::{Shape, Shown};
use crate::text::piece;
#[allow(clippy::wildcard_imports)]
use crate::{generated::enumerations::*, generated::records::*};

/// One parameter of a [`Function`].
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Where its name ends in [`NAMES`], and how long it is.
    name: (u16, u8),
    /// Where its type ends in [`TYPES`], and how long it is.
    type_name: (u16, u8),
    shape: Shape,
}

/// What ends there and is so long.
const fn part(text: &'static str, (end, length): (u16, u8)) -> &'static str {
    piece(text, end as usize - length as usize, end as usize)
}

impl Parameter {
    /// Its name in `cuda.h`.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'static str {
        let name = part(NAMES, self.name);
        // Keywords of Rust have an underscore behind.
        name.strip_suffix('_').unwrap_or(name)
    }

    /// Its type in Rust, as the call of this crate has it: `*mut CUdeviceptr`.
    #[inline]
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        part(TYPES, self.type_name)
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
        unsafe { self.shape.show(value, f) }
    }
}

impl fmt::Debug for Parameter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.type_name())
    }
}

/// A parameter, with the lengths of its texts only; [`place`] then says where these end.
macro_rules! parameter {
    ($name:ident: $ty:ty) => {
        Parameter {
            name: (0, stringify!($name).len() as u8),
            type_name: (0, stringify!($ty).len() as u8),
            shape: if is_address(stringify!($ty)) {
                Shape::Address
            } else {
                <$ty>::SHAPE
            },
        }
    };
}

/// Adds the lengths up.
#[inline]
const fn place<const COUNT: usize>(mut parameters: [Parameter; COUNT]) -> [Parameter; COUNT] {
    let (mut at, mut name, mut type_name) = (0, 0, 0);
    while at < COUNT {
        let parameter = &mut parameters[at];
        name += parameter.name.1 as u16;
        type_name += parameter.type_name.1 as u16;
        (parameter.name.0, parameter.type_name.0) = (name, type_name);
        at += 1;
    }
    parameters
}

/// Whether a type's text is that of an address on the device: to the compiler it is an integer.
#[inline]
const fn is_address(type_name: &str) -> bool {
    matches!(type_name.as_bytes(), b"CUdeviceptr")
}

macro_rules! one {
    ($parameter:ident) => {
        1
    };
}

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $oat:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lat:literal;)* }
        plain { $($plain:tt)* }
    ) => {
        /// All names, one behind the other: texts with an address each take far more room.
        static NAMES: &str = concat!($($(stringify!($op),)*)* $($(stringify!($lp),)*)*);

        /// All types, one behind the other.
        static TYPES: &str = concat!($($(stringify!($ot),)*)* $($(stringify!($lt),)*)*);

        /// The parameters of all functions, one behind the other.
        static PARAMETERS: &[Parameter] = &place([
            $($(parameter!($op: $ot),)*)*
            $($(parameter!($lp: $lt),)*)*
        ]);

        /// How many each function has, by [`Function::index`].
        static COUNTS: [u8; Function::COUNT] = [
            $(0 $(+ one!($op))*,)*
            $(0 $(+ one!($lp))*,)*
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
    #[inline]
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        // In bounds: the tables are made from the list that the functions are.
        let (start, end) = (STARTS[self.index()], STARTS[self.index() + 1]);
        &PARAMETERS[usize::from(start)..usize::from(end)]
    }
}
