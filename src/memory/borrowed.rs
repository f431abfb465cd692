//! Writing to device memory that belongs to someone else.

use crate::{Borrowed, DeviceBuffer, DeviceCopy, Result, Stream};

/// The methods of a buffer that need it mutably, for a borrowed one.
macro_rules! forward {
    ($($(#[$attribute:meta])* [$($safety:ident)?] $name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl<T: DeviceCopy> Borrowed<'_, DeviceBuffer<T>> {
            $(
                #[doc = concat!("[`DeviceBuffer::", stringify!($name), "`] of the borrowed memory.")]
                ///
                $(#[$attribute])*
                /// # Errors
                /// As there, and 201 if no context is current.
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
    /// As there.
    ///
    [unsafe] copy_from_async(values: &[T], stream: &Stream);
    /// # Safety
    /// As there.
    ///
    [unsafe] copy_from_at_async(index: usize, values: &[T], stream: &Stream);
    /// # Safety
    /// As there.
    ///
    [unsafe] copy_from_device_async(other: &DeviceBuffer<T>, stream: &Stream);
    /// # Safety
    /// As there.
    ///
    [unsafe] fill_u8_async(value: u8, stream: &Stream);
    /// # Safety
    /// As there.
    ///
    [unsafe] fill_u16_async(value: u16, stream: &Stream);
    /// # Safety
    /// As there.
    ///
    [unsafe] fill_u32_async(value: u32, stream: &Stream);
}
