//! What the generated files are written with: C enumerations as newtypes, zeroed records, layout checks.

/// C enumerations as newtypes over one fixed representation, with their values as associated constants.
///
/// A Rust `enum` would make a value newer than the bindings undefined behaviour.
macro_rules! enumerations {
    ($($kind:ident $name:ident $(= $tag:ident)? { $($value:ident = $number:literal,)* })*) => {$(
        operations! { $kind $name }

        /// A C enumeration. Values that these bindings do not know are data like any other.
        #[repr(transparent)]
        // The other traits by hand: what is derived costs more time and room in 121 types.
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

            const ENUMERATION: &crate::shape::Enumeration = &crate::shape::Enumeration {
                name: stringify!($name),
                values: &[$($number),*],
                names: concat!($(stringify!($value), "\0"),*),
            };

            /// The C name of this value, or `None` if these bindings do not know it.
            ///
            /// Where several names share a value, the first of the header.
            #[inline]
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                Self::ENUMERATION.name_of(self.0)
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
                Self::ENUMERATION.show(self.0, f)
            }
        }

        impl crate::shape::Shown for $name {
            const SHAPE: crate::shape::Shape =
                crate::shape::Shape::Enumeration(Self::ENUMERATION);
        }
    )*};
}
pub(crate) use enumerations;

/// What can be done with the values: those of `flags` are bits that are or-ed together.
macro_rules! operations {
    (enumeration $name:ident) => {};
    (flags $name:ident) => {
        impl $name {
            /// Whether every bit of `other` is set.
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

/// What every record has: copies, and `Default` by zeros, which not every driver takes as "not set".
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
                    // SAFETY: a record of the C API is made of integers, floats, raw pointers, optional function
                    // pointers and arrays, structs and unions of these: zeros are a value of each.
                    unsafe { core::mem::zeroed() }
                }
            }
        )*
    };
}
pub(crate) use records;

/// The records that functions take by value: what they are called when a call is printed.
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

/// What a C program reaches without naming the union that it lies in: setters and getters on the record itself.
macro_rules! anonymous_members {
    ($($record:ident.$anonymous:ident { $($with:ident $member:ident: $ty:ty,)* })*) => {
        $(
            impl $record {
                $(
                    #[doc = concat!("This record with its `", stringify!($member), "` set, in C `record.", stringify!($member), "`.")]
                    #[inline]
                    #[must_use]
                    pub const fn $with(mut self, $member: $ty) -> Self {
                        self.$anonymous.$member = $member;
                        self
                    }

                    #[doc = concat!("In C `record.", stringify!($member), "`.")]
                    ///
                    /// # Safety
                    /// This is the member of the union that was written, or its bytes are a value of this type too.
                    #[inline]
                    #[must_use]
                    pub const unsafe fn $member(&self) -> $ty {
                        // SAFETY: the caller says that the bytes are a value of this type.
                        unsafe { self.$anonymous.$member }
                    }
                )*
            }
        )*
    };
}
pub(crate) use anonymous_members;

/// Checks sizes, alignments and offsets, all in bytes, while the crate is compiled for its tests or with another header.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
macro_rules! layout {
    ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal),* })*) => {
        const _: () = {
            $(
                crate::enumeration::same_layout(
                    concat!("the layout of ", stringify!($name), " is not that of cuda.h: size, alignment or an offset"),
                    &[size_of::<$name>(), align_of::<$name>(), $(core::mem::offset_of!($name, $field)),*],
                    &[$size, $align, $($offset),*],
                );
            )*
        };
    };
}
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
pub(crate) use layout;

/// Fails with `message` unless the numbers are the same. One call a record: thousands of assertions take long to compile.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
#[allow(dead_code)] // To Rust 1.85, what only constants call is never used.
pub(crate) const fn same_layout(message: &str, ours: &[usize], theirs: &[usize]) {
    let mut at = 0;
    while at < theirs.len() {
        assert!(ours[at] == theirs[at], "{}", message);
        at += 1;
    }
}
