//! Arguments of kernels, as values.

use core::ffi::c_void;
use core::ptr;

use super::{Dim3, ParamBuffer};
use crate::{DevicePtr, ParamInfo, sys};

/// What can be passed to a kernel by value.
///
/// The driver copies the bytes; Rust's size and alignment must be those that the device's compiler gives the parameter.
/// They are for numbers, addresses, the types of [`vector`](crate::vector), and `repr(C)` structs of these:
///
/// ```
/// use cuda_driver::{KernelArg, vector::float4};
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Ray {
///     origin: float4,
///     length: f32,
/// }
///
/// // SAFETY: `repr(C)`, and every field is a kernel argument.
/// unsafe impl KernelArg for Ray {}
/// ```
///
/// A [`CUtensorMap`](sys::CUtensorMap) is aligned to 128 here and by CUDA 13's compilers, but to 64 by CUDA 12's. In a tuple
/// that makes no difference; for a [`ParamBuffer`] see [`Function::check_args`](crate::Function::check_args) and
/// [`push_bytes`](ParamBuffer::push_bytes).
///
/// # Safety
/// Size and alignment are those of the parameter on the device, and its bytes mean there what they mean here.
pub unsafe trait KernelArg: Copy + 'static {}

macro_rules! kernel_arg {
    ($($ty:ty),* $(,)?) => {
        $(
            // SAFETY: the device's compiler lays this type out as the host's does.
            unsafe impl KernelArg for $ty {}
        )*
    };
}
kernel_arg!(
    u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64, bool
);
kernel_arg!(DevicePtr, Dim3, sys::CUtensorMap);

// SAFETY: addresses have one size; what the device may read there is the caller's promise at the launch.
unsafe impl<T: 'static> KernelArg for *const T {}
// SAFETY: as above.
unsafe impl<T: 'static> KernelArg for *mut T {}

/// The arguments of a launch: a tuple of [`KernelArg`] values with up to 32 of them, `()`, a `&ParamBuffer`, or
/// `&[*mut c_void]` with a pointer to each value.
///
/// # Safety
/// What [`pointers`](Self::pointers) gives is what `cuLaunchKernel` takes as `kernelParams` and `extra`, and is good as
/// long as `self` and the storage are where they are.
pub unsafe trait KernelArgs {
    /// What the pointers are kept in.
    type Storage;

    /// Makes the storage.
    fn storage(&self) -> Self::Storage;

    /// The pointer array, or else the packed list; the other is null.
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void);

    /// Offset and size of each argument; `None` if only pointers are known.
    fn layout(&self) -> Option<Vec<ParamInfo>>;

    /// Whether the arguments are packed, so that their offsets matter.
    fn is_packed(&self) -> bool {
        false
    }
}

// SAFETY: no parameters need no pointers.
unsafe impl KernelArgs for () {
    type Storage = ();

    #[inline]
    fn storage(&self) {}

    #[inline]
    fn pointers(&self, (): &mut ()) -> (*mut *mut c_void, *mut *mut c_void) {
        (ptr::null_mut(), ptr::null_mut())
    }

    #[inline]
    fn layout(&self) -> Option<Vec<ParamInfo>> {
        Some(Vec::new())
    }
}

// SAFETY: the buffer makes its list of its own bytes, which it keeps where they are while it is borrowed.
unsafe impl KernelArgs for &ParamBuffer {
    type Storage = [*mut c_void; 5];

    #[inline]
    fn storage(&self) -> Self::Storage {
        self.extra()
    }

    #[inline]
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void) {
        if self.is_empty() {
            // A driver takes a list that is too short as it is. It refuses to run a kernel that has parameters with
            // nothing at all.
            return (ptr::null_mut(), ptr::null_mut());
        }
        (ptr::null_mut(), storage.as_mut_ptr())
    }

    #[inline]
    fn layout(&self) -> Option<Vec<ParamInfo>> {
        Some(self.parameters().to_vec())
    }

    #[inline]
    fn is_packed(&self) -> bool {
        true
    }
}

// SAFETY: the array is what the caller of the launch says it is.
unsafe impl KernelArgs for &[*mut c_void] {
    type Storage = ();

    #[inline]
    fn storage(&self) {}

    #[inline]
    fn pointers(&self, (): &mut ()) -> (*mut *mut c_void, *mut *mut c_void) {
        // The driver only reads the array.
        (self.as_ptr().cast_mut(), ptr::null_mut())
    }

    #[inline]
    fn layout(&self) -> Option<Vec<ParamInfo>> {
        None
    }
}

macro_rules! tuple {
    ($($ty:ident $field:tt),*) => {
        // SAFETY: a pointer to each value, in order; the driver only reads them.
        unsafe impl<$($ty: KernelArg),*> KernelArgs for ($($ty,)*) {
            type Storage = [*mut c_void; [$(stringify!($ty)),*].len()];

            #[inline]
            fn storage(&self) -> Self::Storage {
                [$(ptr::from_ref(&self.$field).cast_mut().cast::<c_void>()),*]
            }

            #[inline]
            fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void) {
                (storage.as_mut_ptr(), ptr::null_mut())
            }

            fn layout(&self) -> Option<Vec<ParamInfo>> {
                let mut buffer = ParamBuffer::new();
                $(buffer.push(self.$field);)*
                Some(buffer.parameters().to_vec())
            }
        }
    };
}

/// Calls `tuple!` with the given fields and with each shorter list.
macro_rules! tuples {
    ([$($done:tt)*]) => {};
    ([] $ty:ident $field:tt $($rest:tt)*) => {
        tuple!($ty $field);
        tuples!([$ty $field] $($rest)*);
    };
    ([$($done:tt)+] $ty:ident $field:tt $($rest:tt)*) => {
        tuple_of!($($done)+ $ty $field);
        tuples!([$($done)+ $ty $field] $($rest)*);
    };
}

macro_rules! tuple_of {
    ($($ty:ident $field:tt)*) => {
        tuple!($($ty $field),*);
    };
}

tuples!([]
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15
    Q 16 R 17 S 18 T 19 U 20 V 21 W 22 X 23 Y 24 Z 25 Aa 26 Ab 27 Ac 28 Ad 29 Ae 30 Af 31
);
