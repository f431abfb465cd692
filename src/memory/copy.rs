//! Types that can be copied to a device and back.

use super::pointer::DevicePtr;

/// A type whose values can be copied to a device and back byte for byte.
///
/// # Safety
/// Any bytes must be a valid value of the type, because a device may write any bytes: it must not contain `bool`, `char`,
/// references or enums. The type must have no padding, because all its bytes are read.
pub unsafe trait DeviceCopy: Copy + 'static {}

macro_rules! device_copy {
    ($($ty:ty),*) => {
        $(
            // SAFETY: any bytes are a valid number.
            unsafe impl DeviceCopy for $ty {}
        )*
    };
}
device_copy!(
    u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64, DevicePtr
);

// SAFETY: any bytes are valid for each element, and arrays have no padding.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {}
