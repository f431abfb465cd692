//! Arguments of kernels, as values.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;

use super::config::Dim3;
use super::parameter::ParamInfo;
use crate::{DevicePtr, sys};

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
/// that makes no difference; for a [`ParamBuffer`](crate::ParamBuffer) see [`Function::check_args`](crate::Function::check_args) and
/// [`push_bytes`](crate::ParamBuffer::push_bytes).
///
/// # Safety
/// Size and alignment are those of the parameter on the device, and its bytes mean there what they mean here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to be what a kernel takes",
    note = "for a `repr(C)` struct of kernel arguments write `unsafe impl KernelArg for {Self} {{}}`"
)]
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    note = "it is a tuple with up to 32 `KernelArg` values: `(values.ptr(), 1000u32)`, and `(value,)` for one",
    note = "or `()`, `&ParamBuffer`, or `&[*mut c_void]` with a pointer to each value"
)]
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

/// [`KernelArg`] without what that asks for: the compiler would look through all of it for every field of every tuple.
pub trait Argument {
    /// Size and alignment.
    const LAYOUT: Layout;
}

impl<T: KernelArg> Argument for T {
    const LAYOUT: Layout = Layout::new::<T>();
}

/// Tuples of arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    label = "not a tuple of kernel arguments",
    note = "it is a tuple with up to 32 `KernelArg` values: `(values.ptr(), 1000u32)`, and `(value,)` for one",
    note = "or `()`, `&ParamBuffer`, or `&[*mut c_void]` with a pointer to each value"
)]
pub trait Tuple {
    /// As many pointers as there are arguments.
    type Pointers: AsMut<[*mut c_void]>;

    /// The layout of each argument.
    const LAYOUTS: &'static [Layout];

    /// The address of each argument.
    fn addresses(&self) -> Self::Pointers;
}

// SAFETY: a pointer to each value, in order; the driver only reads them. Nobody else implements `Tuple`, whose module is
// private.
unsafe impl<T: Tuple> KernelArgs for T {
    type Storage = T::Pointers;

    #[inline]
    fn storage(&self) -> Self::Storage {
        self.addresses()
    }

    #[inline]
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void) {
        (storage.as_mut().as_mut_ptr(), ptr::null_mut())
    }

    #[inline]
    fn layout(&self) -> Option<Vec<ParamInfo>> {
        let mut end = 0usize;
        // One behind another, as a `ParamBuffer` has them.
        let place = |argument: &Layout| {
            let offset = end.next_multiple_of(argument.align());
            end = offset + argument.size();
            ParamInfo {
                offset,
                size: argument.size(),
            }
        };
        Some(T::LAYOUTS.iter().map(place).collect())
    }
}

/// Implements [`Tuple`] for the given fields and for each shorter list. Behind each field stands how many there are with
/// it. There is no call in it: five hundred fields would make it dear to compile.
macro_rules! tuples {
    ([$($done:tt)*]) => {};
    ([$($ty:ident $field:tt)*] $next:ident $at:tt $count:tt $($rest:tt)*) => {
        impl<$($ty: Argument,)* $next: Argument> Tuple for ($($ty,)* $next,) {
            type Pointers = [*mut c_void; $count];

            const LAYOUTS: &'static [Layout] = &[$($ty::LAYOUT,)* $next::LAYOUT];

            #[inline]
            fn addresses(&self) -> Self::Pointers {
                [$(&raw const self.$field as *mut c_void,)* &raw const self.$at as *mut c_void]
            }
        }
        tuples!([$($ty $field)* $next $at] $($rest)*);
    };
}

#[rustfmt::skip]
tuples!([]
    A 0 1 B 1 2 C 2 3 D 3 4 E 4 5 F 5 6 G 6 7 H 7 8 I 8 9 J 9 10 K 10 11 L 11 12 M 12 13 N 13 14 O 14 15 P 15 16
    Q 16 17 R 17 18 S 18 19 T 19 20 U 20 21 V 21 22 W 22 23 X 23 24 Y 24 25 Z 25 26 Aa 26 27 Ab 27 28 Ac 28 29 Ad 29 30
    Ae 30 31 Af 31 32
);
