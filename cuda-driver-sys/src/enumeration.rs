//! What the generated files are written with: C enumerations as newtypes, zeroed records, layout checks.

/// A C enumeration as a newtype over one fixed representation, with its values as associated constants.
///
/// A Rust `enum` would make a value newer than the bindings undefined behaviour.
macro_rules! enumeration {
    ($name:ident $(= $tag:ident)? { $($value:ident = $number:literal,)* }) => {
        /// A C enumeration. Values that these bindings do not know are data like any other.
        #[doc = concat!("\n\n`", stringify!($name), "` of `cuda.h`.")]
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[must_use]
        pub struct $name(pub u32);

        $(
            /// The tag of the enumeration in C.
            pub type $tag = $name;
        )?

        #[allow(missing_docs)]
        impl $name {
            $(pub const $value: Self = Self($number);)*

            const NAMES: &'static [(u32, &'static str)] = &[$(($number, stringify!($value)),)*];

            /// The C name of this value, or `None` if these bindings do not know it.
            ///
            /// Where several names share a value, the first of the header.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                crate::enumeration::find(Self::NAMES, self.0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                crate::enumeration::debug(f, stringify!($name), Self::NAMES, self.0)
            }
        }

        impl crate::parameters::Show for $name {
            fn show(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(self, f)
            }
        }
    };
}
pub(crate) use enumeration;

/// An enumeration whose values are bits that are or-ed together.
macro_rules! flags {
    ($name:ident $($rest:tt)*) => {
        crate::enumeration::enumeration! { $name $($rest)* }

        impl $name {
            /// Whether every bit of `other` is set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::ops::BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl core::ops::Not for $name {
            type Output = Self;
            fn not(self) -> Self {
                Self(!self.0)
            }
        }
    };
}
pub(crate) use flags;

/// The first name of a value.
pub(crate) const fn find(
    names: &'static [(u32, &'static str)],
    value: u32,
) -> Option<&'static str> {
    let mut at = 0;
    while at < names.len() {
        if names[at].0 == value {
            return Some(names[at].1);
        }
        at += 1;
    }
    None
}

/// Prints a value's name, and for an unknown value the type and the number.
pub(crate) fn debug(
    f: &mut core::fmt::Formatter<'_>,
    ty: &str,
    names: &'static [(u32, &'static str)],
    value: u32,
) -> core::fmt::Result {
    match find(names, value) {
        Some(name) => f.write_str(name),
        None => write!(f, "{ty}({value})"),
    }
}

/// What every record has: `Default` by zeros, which the driver takes as "not set", and how an argument is printed.
macro_rules! zeroed_default {
    ($($name:ident)*) => {
        $(
            impl Default for $name {
                /// All bytes zero.
                fn default() -> Self {
                    // SAFETY: a record of the C API is made of integers, floats, raw pointers, optional function
                    // pointers and arrays, structs and unions of these: zeros are a value of each.
                    unsafe { core::mem::zeroed() }
                }
            }

            impl crate::parameters::Show for $name {
                #[inline]
                fn show(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.write_str(concat!(stringify!($name), " { .. }"))
                }
            }
        )*
    };
}
pub(crate) use zeroed_default;

/// What a C program reaches without naming the union that it lies in: setters and getters on the record itself.
macro_rules! anonymous_members {
    ($($record:ident.$anonymous:ident { $($with:ident $member:ident: $ty:ty,)* })*) => {
        $(
            impl $record {
                $(
                    #[doc = concat!("This record with its `", stringify!($member), "` set, in C `record.", stringify!($member), "`.")]
                    #[must_use]
                    pub const fn $with(mut self, $member: $ty) -> Self {
                        self.$anonymous.$member = $member;
                        self
                    }

                    #[doc = concat!("In C `record.", stringify!($member), "`.")]
                    ///
                    /// # Safety
                    /// This is the member of the union that was written, or its bytes are a value of this type too.
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

/// Checks sizes, alignments and offsets, all in bytes, while the crate is compiled.
#[cfg(target_pointer_width = "64")]
macro_rules! layout {
    ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal),* })*) => {
        $(
            const _: () = {
                assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
                assert!(align_of::<$name>() == $align, concat!("alignment of ", stringify!($name)));
                $(
                    assert!(
                        core::mem::offset_of!($name, $field) == $offset,
                        concat!("offset of ", stringify!($name), "::", stringify!($field)),
                    );
                )*
            };
        )*
    };
}
#[cfg(target_pointer_width = "64")]
pub(crate) use layout;
