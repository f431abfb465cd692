//! The built-in vector types of CUDA C++, with the sizes and alignments that they have in device code: `float4` has 16 bytes
//! and an alignment of 16, `float3` 12 and 4, `double4` 32 and 16.
//!
//! Types and fields have the names of CUDA C++.

#![allow(non_camel_case_types)]

use core::ffi::{c_long, c_ulong};
use core::fmt;

use bytemuck::{Pod, Zeroable};

use crate::KernelArg;

macro_rules! vector {
    ($($name:ident, $element:ident, $align:tt, $count:literal $($field:ident)+;)*) => {
        $(
            #[doc = concat!("The vector type `", stringify!($name), "`.")]
            #[repr(C)]
            #[repr(align($align))]
            // The traits are not derived, because derives for sixty types take longer to compile.
            pub struct $name {
                $(
                    #[doc = concat!("The component `", stringify!($field), "`.")]
                    pub $field: $element,
                )+
            }

            impl $name {
                /// Returns the vector with these components.
                #[inline]
                #[must_use]
                pub const fn new($($field: $element),+) -> Self {
                    Self { $($field),+ }
                }
            }

            impl Copy for $name {}

            impl Clone for $name {
                #[inline]
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl PartialEq for $name {
                #[inline]
                fn eq(&self, other: &Self) -> bool {
                    $(self.$field == other.$field)&&+
                }
            }

            impl Default for $name {
                /// Returns the vector of zeros.
                #[inline]
                fn default() -> Self {
                    Self { $($field: 0 as $element),+ }
                }
            }

            impl fmt::Debug for $name {
                #[inline]
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    show(f, stringify!($name), &[$((stringify!($field), &self.$field)),+])
                }
            }

            impl From<[$element; $count]> for $name {
                #[inline]
                fn from([$($field),+]: [$element; $count]) -> Self {
                    Self { $($field),+ }
                }
            }

            impl From<$name> for [$element; $count] {
                #[inline]
                fn from(vector: $name) -> Self {
                    [$(vector.$field),+]
                }
            }

            // SAFETY: size and alignment are the same in device code.
            unsafe impl KernelArg for $name {}

            // SAFETY: zeros are valid numbers.
            unsafe impl Zeroable for $name {}

            // SAFETY: any bytes are valid numbers, and there is no padding, as asserted below.
            unsafe impl Pod for $name {}
        )*

        const _: () = {
            $(
                assert!(
                    size_of::<$name>() == size_of::<$element>() * $count
                        && align_of::<$name>() == $align
                );
            )*
        };
    };
}

/// Prints a vector as a struct.
#[inline]
fn show(f: &mut fmt::Formatter<'_>, name: &str, fields: &[(&str, &dyn fmt::Debug)]) -> fmt::Result {
    let mut vector = f.debug_struct(name);
    for (field, value) in fields {
        vector.field(field, value);
    }
    vector.finish()
}

vector! {
    char1, i8, 1, 1 x;
    char2, i8, 2, 2 x y;
    char3, i8, 1, 3 x y z;
    char4, i8, 4, 4 x y z w;
    uchar1, u8, 1, 1 x;
    uchar2, u8, 2, 2 x y;
    uchar3, u8, 1, 3 x y z;
    uchar4, u8, 4, 4 x y z w;
    short1, i16, 2, 1 x;
    short2, i16, 4, 2 x y;
    short3, i16, 2, 3 x y z;
    short4, i16, 8, 4 x y z w;
    ushort1, u16, 2, 1 x;
    ushort2, u16, 4, 2 x y;
    ushort3, u16, 2, 3 x y z;
    ushort4, u16, 8, 4 x y z w;
    int1, i32, 4, 1 x;
    int2, i32, 8, 2 x y;
    int3, i32, 4, 3 x y z;
    int4, i32, 16, 4 x y z w;
    uint1, u32, 4, 1 x;
    uint2, u32, 8, 2 x y;
    uint3, u32, 4, 3 x y z;
    uint4, u32, 16, 4 x y z w;
    longlong1, i64, 8, 1 x;
    longlong2, i64, 16, 2 x y;
    longlong3, i64, 8, 3 x y z;
    longlong4, i64, 16, 4 x y z w;
    ulonglong1, u64, 8, 1 x;
    ulonglong2, u64, 16, 2 x y;
    ulonglong3, u64, 8, 3 x y z;
    ulonglong4, u64, 16, 4 x y z w;
    float1, f32, 4, 1 x;
    float2, f32, 8, 2 x y;
    float3, f32, 4, 3 x y z;
    float4, f32, 16, 4 x y z w;
    double1, f64, 8, 1 x;
    double2, f64, 16, 2 x y;
    double3, f64, 8, 3 x y z;
    double4, f64, 16, 4 x y z w;
    // The variants with an explicit alignment, which CUDA 13 added.
    longlong4_16a, i64, 16, 4 x y z w;
    longlong4_32a, i64, 32, 4 x y z w;
    ulonglong4_16a, u64, 16, 4 x y z w;
    ulonglong4_32a, u64, 32, 4 x y z w;
    double4_16a, f64, 16, 4 x y z w;
    double4_32a, f64, 32, 4 x y z w;
}

// C's `long` has 8 bytes, except on Windows.
#[cfg(all(not(windows), target_pointer_width = "64"))]
vector! {
    long1, c_long, 8, 1 x;
    long2, c_long, 16, 2 x y;
    long3, c_long, 8, 3 x y z;
    long4, c_long, 16, 4 x y z w;
    long4_16a, c_long, 16, 4 x y z w;
    long4_32a, c_long, 32, 4 x y z w;
    ulong1, c_ulong, 8, 1 x;
    ulong2, c_ulong, 16, 2 x y;
    ulong3, c_ulong, 8, 3 x y z;
    ulong4, c_ulong, 16, 4 x y z w;
    ulong4_16a, c_ulong, 16, 4 x y z w;
    ulong4_32a, c_ulong, 32, 4 x y z w;
}

#[cfg(any(windows, not(target_pointer_width = "64")))]
vector! {
    long1, c_long, 4, 1 x;
    long2, c_long, 8, 2 x y;
    long3, c_long, 4, 3 x y z;
    long4, c_long, 16, 4 x y z w;
    long4_16a, c_long, 16, 4 x y z w;
    ulong1, c_ulong, 4, 1 x;
    ulong2, c_ulong, 8, 2 x y;
    ulong3, c_ulong, 4, 3 x y z;
    ulong4, c_ulong, 16, 4 x y z w;
    ulong4_16a, c_ulong, 16, 4 x y z w;
}
