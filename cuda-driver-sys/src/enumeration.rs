//! The macros with which the generated files define types: C enumerations as newtypes, records with a zeroed default,
//! layout checks.

/// Defines C enumerations as newtypes of `u32`, with their values as associated constants. With a Rust `enum`, a value
/// newer than the bindings would be undefined behaviour.
macro_rules! enumerations {
    ($($kind:ident $name:ident $(= $tag:ident)? { $index:literal; $($value:ident = $number:literal,)* })*) => {
        /// The name and the index of each enumeration, with its values.
        #[cfg(test)]
        #[allow(clippy::type_complexity)]
        pub(crate) static NAMED: &[(&str, usize, &[(&str, u32)])] =
            &[$((stringify!($name), $index, &[$((stringify!($value), $number)),*])),*];

        $(
        operations! { $kind $name }

        /// A C enumeration. Values that these bindings do not know are also valid.
        #[repr(transparent)]
        // The other traits are written by hand: derived ones take longer to compile and more space in 123 types.
        #[derive(PartialEq)]
        #[must_use]
        pub struct $name(pub u32);

        $(
            /// The tag of the enumeration in C.
            pub type $tag = $name;
        )?

        #[allow(missing_docs)]
        impl $name {
            $(pub const $value: Self = Self($number);)*

            /// Returns the C name of this value, or `None` if these bindings do not know the value.
            ///
            /// If several names share a value, this is the first one in the header.
            #[inline]
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                crate::shape::Enumeration($index).name_of(self.0)
            }
        }

        impl Copy for $name {}

        impl Clone for $name {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl Eq for $name {}

        impl core::hash::Hash for $name {
            #[inline]
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                state.write_u32(self.0);
            }
        }

        impl Default for $name {
            /// The value 0.
            #[inline]
            fn default() -> Self {
                Self(0)
            }
        }

        impl core::fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                crate::shape::Enumeration($index).show(self.0, f)
            }
        }
        )*
    };
}
pub(crate) use enumerations;

/// Defines the operators of an enumeration of `flags`, whose values are bits.
macro_rules! operations {
    (enumeration $name:ident) => {};
    (flags $name:ident) => {
        impl $name {
            /// Returns true if every bit of `other` is set.
            #[inline]
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            #[inline]
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $name {
            #[inline]
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::ops::BitAnd for $name {
            type Output = Self;
            #[inline]
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl core::ops::Not for $name {
            type Output = Self;
            #[inline]
            fn not(self) -> Self {
                Self(!self.0)
            }
        }
    };
}
pub(crate) use operations;

/// Implements `Copy`, `Clone` and `Default` for records. The default is all zeros, which not every function accepts.
macro_rules! records {
    ($($name:ident)*) => {
        $(
            impl Copy for $name {}

            impl Clone for $name {
                #[inline]
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl Default for $name {
                /// All bytes zero.
                #[inline]
                fn default() -> Self {
                    // SAFETY: records of the C API consist of integers, floats, raw pointers, optional function
                    // pointers, and arrays, structs and unions of these, for which zeros are valid.
                    unsafe { core::mem::zeroed() }
                }
            }
        )*
    };
}
pub(crate) use records;

/// Implements [`Shown`](crate::shape::Shown) for the records that functions take by value.
macro_rules! shown_records {
    ($($name:ident)*) => {
        $(
            impl crate::shape::Shown for $name {
                const SHAPE: crate::shape::Shape = crate::shape::Shape::Record(&crate::shape::Record {
                    name: stringify!($name),
                });
            }
        )*
    };
}
pub(crate) use shown_records;

/// Defines setters and getters for members of unnamed unions, which C programs access directly on the outer record.
macro_rules! anonymous_members {
    ($($record:ident.$anonymous:ident { $($with:ident $member:ident: $ty:ty,)* })*) => {
        $(
            impl $record {
                $(
                    #[doc = concat!("Returns this record with the member `", stringify!($member), "` set; in C `record.", stringify!($member), "`.")]
                    #[inline]
                    #[must_use]
                    pub const fn $with(mut self, $member: $ty) -> Self {
                        self.$anonymous.$member = $member;
                        self
                    }

                    #[doc = concat!("Returns the member `", stringify!($member), "`; in C `record.", stringify!($member), "`.")]
                    ///
                    /// # Safety
                    /// The bytes of the union must be a valid value of this type, for instance because this member was
                    /// written.
                    #[inline]
                    #[must_use]
                    pub const unsafe fn $member(&self) -> $ty {
                        // SAFETY: upheld by the caller.
                        unsafe { self.$anonymous.$member }
                    }
                )*
            }
        )*
    };
}
pub(crate) use anonymous_members;

/// Asserts sizes, alignments and offsets in bytes at compile time, in tests and in builds with the feature `bindgen`.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
macro_rules! layout {
    ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal),* })*) => {
        const _: () = {
            $(
                crate::enumeration::same_layout(
                    concat!("the size, alignment or an offset of ", stringify!($name), " differs from cuda.h"),
                    &[size_of::<$name>(), align_of::<$name>(), $(core::mem::offset_of!($name, $field)),*],
                    &[$size, $align, $($offset),*],
                );
            )*
        };
    };
}
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
pub(crate) use layout;

/// Panics with `message` unless the numbers are equal. Called once for each record, because thousands of assertions
/// take long to compile.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
#[allow(dead_code)] // Rust 1.85 does not count uses in constants.
pub(crate) const fn same_layout(message: &str, ours: &[usize], theirs: &[usize]) {
    let mut at = 0;
    while at < theirs.len() {
        assert!(ours[at] == theirs[at], "{}", message);
        at += 1;
    }
}
