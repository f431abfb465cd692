//! Takes the place of the module `enumeration` of cuda-driver-sys: defines the one macro that the generated table of
//! layouts uses.

use std::any::type_name;

/// A field of a record: its offset in bytes, its size, and its Rust type.
pub(crate) type Field = (usize, usize, &'static str);

pub(crate) fn field<T>(offset: usize, _: *const T) -> Field {
    (offset, size_of::<T>(), type_name::<T>())
}

/// Defines a function that returns the fields of a record, or `None` if no record has this name.
macro_rules! layout {
    ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal),* })*) => {
        pub(super) fn fields(record: &str) -> Option<Vec<crate::enumeration::Field>> {
            match record {
                $(stringify!($name) => {
                    let record = std::mem::MaybeUninit::<$name>::uninit();
                    let at: *const $name = record.as_ptr();
                    // SAFETY: the addresses are inside a record on the stack, and nothing is read.
                    Some(vec![$(crate::enumeration::field($offset, unsafe { &raw const (*at).$field })),*])
                })*
                _ => None,
            }
        }
    };
}
pub(crate) use layout;
