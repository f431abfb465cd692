//! Writing to borrowed device memory.

use crate::{Borrowed, DeviceBuffer, Result, Stream, Upload};

/// Forwards the methods that need a mutable buffer, because [`Borrowed`] does not implement `DerefMut`.
macro_rules! forward {
    ($($(#[$attribute:meta])* [$($safety:ident)?] $name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl<T: Upload> Borrowed<'_, DeviceBuffer<T>> {
            $(
                #[doc = concat!("Calls [`DeviceBuffer::", stringify!($name), "`] on the borrowed memory.")]
                ///
                $(#[$attribute])*
                /// # Errors
                /// Returns the errors of that method, and `CUDA_ERROR_INVALID_CONTEXT` if no context is current.
                #[track_caller]
                pub $($safety)? fn $name(&mut self, $($arg: $ty),*) -> Result<()> {
                    forward!(@call [$($safety)?] self.object_mut().$name($($arg),*))
                }
            )*
        }
    };
    (@call [] $call:expr) => { $call };
    (@call [unsafe] $call:expr) => {
        // SAFETY: upheld by the caller.
        unsafe { $call }
    };
}

forward! {
    [] copy_from(values: &[T]);
    [] copy_from_at(index: usize, values: &[T]);
    [] copy_from_device(other: &DeviceBuffer<T>);
    [] fill_u8(value: u8);
    [] fill_u16(value: u16);
    [] fill_u32(value: u32);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] copy_from_async(values: &[T], stream: &Stream);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] copy_from_at_async(index: usize, values: &[T], stream: &Stream);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] copy_from_device_async(other: &DeviceBuffer<T>, stream: &Stream);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] fill_u8_async(value: u8, stream: &Stream);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] fill_u16_async(value: u16, stream: &Stream);
    /// # Safety
    /// Same as that method.
    ///
    [unsafe] fill_u32_async(value: u32, stream: &Stream);
}
