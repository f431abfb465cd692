//! Arguments of kernels: the types that can be passed by value, and lists of them.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;

use super::config::Dim3;
use super::parameter::ParamInfo;
use crate::{DevicePtr, DeviceSlice, DeviceSliceMut, sys};

/// A type that can be passed to a kernel by value.
///
/// The driver copies the bytes, so the type must have the same size and alignment in Rust as the parameter in device
/// code. They are equal for numbers, addresses, the types of [`vector`](crate::vector), and `repr(C)` structs of these:
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
/// A [`CUtensorMap`](sys::CUtensorMap) has an alignment of 128 here and in CUDA 13's compilers, but of 64 in CUDA 12's.
/// In a tuple that makes no difference. In a [`ParamBuffer`](crate::ParamBuffer) it can change the offset:
/// [`Function::check_args`](crate::Function::check_args) finds a difference, and
/// [`push_bytes`](crate::ParamBuffer::push_bytes) takes an alignment.
///
/// A [`DeviceSlice`] or [`DeviceSliceMut`] is passed as its address. For a texture or surface, pass its `handle()`.
///
/// # Safety
/// Size, alignment and layout of the type must be the same in device code. If [`LAYOUT`](Self::LAYOUT) is not the
/// default, only the first `LAYOUT.size()` bytes of the type are passed and must match, and the alignment of the type
/// must be at least `LAYOUT.align()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    note = "for device memory pass its address, `buffer.ptr()`, or a view, such as `buffer.as_slice()`",
    note = "for a texture or surface pass its handle, `texture.handle()`",
    note = "for a number pass the number, not a reference to it",
    note = "for a `repr(C)` struct of kernel arguments write `unsafe impl KernelArg for TheStruct {{}}`"
)]
pub unsafe trait KernelArg: Sized {
    /// Size and alignment of the parameter; by default, of the type.
    const LAYOUT: Layout = Layout::new::<Self>();
}

macro_rules! kernel_arg {
    ($($ty:ty),* $(,)?) => {
        $(
            // SAFETY: the type has the same layout in device code.
            unsafe impl KernelArg for $ty {}
        )*
    };
}
kernel_arg!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64, bool);
kernel_arg!(DevicePtr, Dim3, sys::CUtensorMap);

// SAFETY: addresses have the same size in device code; the caller of a launch guarantees that they may be accessed.
unsafe impl<T: 'static> KernelArg for *const T {}
// SAFETY: as above.
unsafe impl<T: 'static> KernelArg for *mut T {}

// SAFETY: the address is the first field of the view, which is `repr(C)`.
unsafe impl<T> KernelArg for DeviceSlice<'_, T> {
    const LAYOUT: Layout = Layout::new::<DevicePtr>();
}

// SAFETY: the view is a `repr(transparent)` wrapper of a `DeviceSlice`.
unsafe impl<T> KernelArg for DeviceSliceMut<'_, T> {
    const LAYOUT: Layout = Layout::new::<DevicePtr>();
}

/// The arguments of a launch: a tuple of up to 32 [`KernelArg`] values, `()`, a `&ParamBuffer`, or `&[*mut c_void]`
/// with a pointer to each value.
///
/// # Safety
/// The pointers returned by [`pointers`](Self::pointers) must be valid as `kernelParams` and `extra` of
/// `cuLaunchKernel` as long as `self` and the storage are not moved.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    note = "pass a tuple with up to 32 `KernelArg` values: `(values.ptr(), 1000u32)`, and `(value,)` for one",
    note = "or pass `()`, `&ParamBuffer`, or `&[*mut c_void]` with a pointer to each value"
)]
pub unsafe trait KernelArgs {
    /// The storage of the pointers.
    type Storage;

    /// Returns the storage.
    fn storage(&self) -> Self::Storage;

    /// Returns `kernelParams` and `extra`, of which at least one is null.
    fn pointers(&self, storage: &mut Self::Storage) -> (*mut *mut c_void, *mut *mut c_void);

    /// Returns the offset and size of each argument; `None` if only pointers are known.
    fn layout(&self) -> Option<Vec<ParamInfo>>;

    /// Returns true if the arguments are packed, so that their offsets matter.
    #[inline]
    fn is_packed(&self) -> bool {
        false
    }
}

// SAFETY: a kernel without parameters needs no pointers.
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

// SAFETY: the caller of the launch guarantees that the array has a pointer to each argument.
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

/// A tuple of arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    label = "not a tuple of kernel arguments",
    note = "pass a tuple with up to 32 `KernelArg` values: `(values.ptr(), 1000u32)`, and `(value,)` for one",
    note = "or pass `()`, `&ParamBuffer`, or `&[*mut c_void]` with a pointer to each value"
)]
pub trait Tuple {
    /// An array with one pointer for each argument.
    type Pointers: AsMut<[*mut c_void]>;

    /// The layout of each argument.
    const LAYOUTS: &'static [Layout];

    /// Returns the address of each argument.
    fn addresses(&self) -> Self::Pointers;
}

// SAFETY: there is a pointer to each value, in order, and the driver only reads the values. `Tuple` cannot be
// implemented outside of this crate, because its module is private.
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
        // Places the arguments as a `ParamBuffer` does.
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

/// Implements [`Tuple`] for the given fields and for each shorter list. A field is given as its type, its index, and
/// the length of the tuple that ends with it. The generated code contains no calls: it takes the addresses of 528
/// fields in total, and that many calls would compile slowly.
macro_rules! tuples {
    ([$($done:tt)*]) => {};
    ([$($ty:ident $field:tt)*] $next:ident $at:tt $count:tt $($rest:tt)*) => {
        impl<$($ty: KernelArg,)* $next: KernelArg> Tuple for ($($ty,)* $next,) {
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
