//! The built-in vector types of CUDA C++, with the sizes and alignments that they have in device code: `float4` has 16
//! bytes and an alignment of 16, `float3` 12 and 4, `double4` 32 and 16.
//!
//! Types and fields have the names of CUDA C++. Vectors with the same number and type of components and the same
//! alignment are one type in Rust: on 64-bit Linux, `long2` is `longlong2`.
//!
//! ```
//! use cuda_driver::vector::float4;
//!
//! let mut color = float4::new(0.25, 0.5, 0.75, 1.0);
//! color.x += 0.25;
//! assert_eq!(color, float4::from([0.5, 0.5, 0.75, 1.0]));
//! ```

#![allow(non_camel_case_types)]

use core::ffi::{c_long, c_ulong};
use core::fmt;

use bytemuck::{Pod, Zeroable};

use crate::KernelArg;

/// The type of a vector's components.
///
/// # Safety
/// The type must be a number. Each alignment must be the vector's in device code, and the size of the vector must be a
/// multiple of it.
pub unsafe trait Component: Pod + PartialEq + fmt::Debug {
    /// The name in CUDA C++, as in `float4`.
    const NAME: &'static str;
    /// A type with the alignment of vectors with one or three components.
    type One: Pod;
    /// A type with the alignment of vectors with two components.
    type Two: Pod;
    /// A type with the alignment of vectors with four components.
    type Four: Pod;
}

/// A component type of 8 bytes: vectors of four such components can be aligned to 32 bytes.
///
/// # Safety
/// The type must have 8 bytes.
pub unsafe trait Wide: Component {}

macro_rules! vectors {
    ($($doc:literal $name:ident<$bound:ident>, $align:ty, $count:literal $suffix:literal: $($field:ident)+;)*) => {
        $(
            #[doc = $doc]
            // The types are generic and the traits are not derived, because sixty separate types take longer to
            // compile.
            #[repr(C)]
            pub struct $name<T: $bound> {
                align: [$align; 0],
                $(
                    #[doc = concat!("The component `", stringify!($field), "`.")]
                    pub $field: T,
                )+
            }

            impl<T: $bound> $name<T> {
                /// Returns the vector with these components.
                #[inline]
                #[must_use]
                pub const fn new($($field: T),+) -> Self {
                    Self { align: [], $($field),+ }
                }
            }

            impl<T: $bound> Copy for $name<T> {}

            impl<T: $bound> Clone for $name<T> {
                #[inline]
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T: $bound> PartialEq for $name<T> {
                #[inline]
                fn eq(&self, other: &Self) -> bool {
                    $(self.$field == other.$field)&&+
                }
            }

            impl<T: $bound> Default for $name<T> {
                /// Returns the vector of zeros.
                #[inline]
                fn default() -> Self {
                    Self::zeroed()
                }
            }

            impl<T: $bound> fmt::Debug for $name<T> {
                #[inline]
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(&format!("{}{}", T::NAME, $suffix))
                        $(.field(stringify!($field), &self.$field))+
                        .finish()
                }
            }

            impl<T: $bound> From<[T; $count]> for $name<T> {
                #[inline]
                fn from([$($field),+]: [T; $count]) -> Self {
                    Self::new($($field),+)
                }
            }

            impl<T: $bound> From<$name<T>> for [T; $count] {
                #[inline]
                fn from(vector: $name<T>) -> Self {
                    [$(vector.$field),+]
                }
            }

            // SAFETY: size and alignment are the same in device code, as `Component` guarantees.
            unsafe impl<T: $bound> KernelArg for $name<T> {}

            // SAFETY: zeros are valid components.
            unsafe impl<T: $bound> Zeroable for $name<T> {}

            // SAFETY: any bytes are valid components, and there is no padding, as `Component` guarantees.
            unsafe impl<T: $bound> Pod for $name<T> {}
        )*
    };
}

vectors! {
    "A vector with one component." Vector1<Component>, T::One, 1 "1": x;
    "A vector with two components." Vector2<Component>, T::Two, 2 "2": x y;
    "A vector with three components." Vector3<Component>, T::One, 3 "3": x y z;
    "A vector with four components." Vector4<Component>, T::Four, 4 "4": x y z w;
    "A vector with four components and an alignment of 32 bytes." Vector4Align32<Wide>, Align32, 4 "4_32a": x y z w;
}

macro_rules! alignments {
    ($($name:ident $align:literal)*) => {
        $(
            /// A type without bytes, for its alignment.
            #[derive(Debug, Clone, Copy)]
            #[repr(align($align))]
            pub struct $name;

            // SAFETY: there are no bytes.
            unsafe impl Zeroable for $name {}

            // SAFETY: as above.
            unsafe impl Pod for $name {}
        )*
    };
}
alignments! { Align8 8 Align16 16 Align32 32 }

macro_rules! aliases {
    ($($name:ident = $vector:ty;)*) => {
        $(
            #[doc = concat!("The vector type `", stringify!($name), "`.")]
            pub type $name = $vector;
        )*
    };
}

macro_rules! components {
    ($($ty:ident $name:literal $one:ident $two:ident $four:ident: $v1:ident $v2:ident $v3:ident $v4:ident;)*) => {
        $(
            // SAFETY: the alignments are the same as in CUDA C++, and the sizes are asserted below.
            unsafe impl Component for $ty {
                const NAME: &'static str = $name;
                type One = $one;
                type Two = $two;
                type Four = $four;
            }

            const _: () = assert!(
                size_of::<$v1>() == size_of::<$ty>()
                    && size_of::<$v2>() == size_of::<$ty>() * 2
                    && size_of::<$v3>() == size_of::<$ty>() * 3
                    && size_of::<$v4>() == size_of::<$ty>() * 4
            );

            aliases! { $v1 = Vector1<$ty>; $v2 = Vector2<$ty>; $v3 = Vector3<$ty>; $v4 = Vector4<$ty>; }
        )*
    };
}

components! {
    i8 "char" u8 u16 u32: char1 char2 char3 char4;
    u8 "uchar" u8 u16 u32: uchar1 uchar2 uchar3 uchar4;
    i16 "short" u16 u32 Align8: short1 short2 short3 short4;
    u16 "ushort" u16 u32 Align8: ushort1 ushort2 ushort3 ushort4;
    i32 "int" u32 Align8 Align16: int1 int2 int3 int4;
    u32 "uint" u32 Align8 Align16: uint1 uint2 uint3 uint4;
    i64 "longlong" Align8 Align16 Align16: longlong1 longlong2 longlong3 longlong4;
    u64 "ulonglong" Align8 Align16 Align16: ulonglong1 ulonglong2 ulonglong3 ulonglong4;
    f32 "float" u32 Align8 Align16: float1 float2 float3 float4;
    f64 "double" Align8 Align16 Align16: double1 double2 double3 double4;
}

// SAFETY: these types have 8 bytes.
unsafe impl Wide for i64 {}
// SAFETY: as above.
unsafe impl Wide for u64 {}
// SAFETY: as above.
unsafe impl Wide for f64 {}

aliases! {
    long1 = Vector1<c_long>;
    long2 = Vector2<c_long>;
    long3 = Vector3<c_long>;
    long4 = Vector4<c_long>;
    ulong1 = Vector1<c_ulong>;
    ulong2 = Vector2<c_ulong>;
    ulong3 = Vector3<c_ulong>;
    ulong4 = Vector4<c_ulong>;
    // CUDA 13 added these variants with an explicit alignment.
    long4_16a = Vector4<c_long>;
    ulong4_16a = Vector4<c_ulong>;
    longlong4_16a = Vector4<i64>;
    longlong4_32a = Vector4Align32<i64>;
    ulonglong4_16a = Vector4<u64>;
    ulonglong4_32a = Vector4Align32<u64>;
    double4_16a = Vector4<f64>;
    double4_32a = Vector4Align32<f64>;
}

// C's `long` has 8 bytes on 64-bit systems, except on Windows.
#[cfg(all(not(windows), target_pointer_width = "64"))]
aliases! {
    long4_32a = Vector4Align32<c_long>;
    ulong4_32a = Vector4Align32<c_ulong>;
}
