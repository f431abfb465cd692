//! Types that can be copied to a device and back.

use super::pointer::DevicePtr;

/// What may be copied to a device and back, byte for byte.
///
/// # Safety
/// Any bytes are a value of the type: a device writes what it likes. So no `bool`, `char`, reference or `enum` inside. And
/// all its bytes are initialised, for they are copied as they are: no padding.
pub unsafe trait DeviceCopy: Copy + 'static {}

macro_rules! device_copy {
    ($($ty:ty),*) => {
        $(
            // SAFETY: any bytes are a number.
            unsafe impl DeviceCopy for $ty {}
        )*
    };
}
device_copy!(
    u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64, DevicePtr
);

// SAFETY: any bytes are an array if they are each of its elements.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}
