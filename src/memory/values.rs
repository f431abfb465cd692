//! Macros that define the methods that the buffers in device memory share.

/// Defines the methods that return the address and the length of an owner with the fields `raw` and `len`.
macro_rules! device_values {
    ($owner:ident) => {
        impl<T> $owner<T> {
            /// Returns the number of values.
            #[inline]
            #[must_use]
            pub const fn len(&self) -> usize {
                self.len
            }

            /// Returns true if there are no values.
            #[inline]
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns the size in bytes.
            #[inline]
            #[must_use]
            pub const fn size_bytes(&self) -> usize {
                self.len * size_of::<T>()
            }

            /// Returns the address of the first value, which is valid as long as `self`.
            #[inline]
            #[must_use]
            pub const fn ptr(&self) -> $crate::DevicePtr {
                $crate::DevicePtr::from_raw(self.raw)
            }

            /// Returns the raw address, which is valid as long as `self`.
            #[inline]
            #[must_use]
            pub const fn as_raw(&self) -> $crate::sys::CUdeviceptr {
                self.raw
            }
        }
    };
}
pub(crate) use device_values;

/// Defines the methods that return the views and the context of an owner with the fields `raw`, `len` and `context`.
/// The owner must have `len` values at `raw` as long as it lives.
macro_rules! device_views {
    ($owner:ident) => {
        impl<T> $owner<T> {
            /// Returns a view of all values.
            #[inline]
            #[must_use]
            pub const fn as_slice(&self) -> $crate::DeviceSlice<'_, T> {
                // SAFETY: the memory has `len` values, and the view borrows it.
                unsafe { $crate::DeviceSlice::from_raw_parts(self.ptr(), self.len, Some(&self.context)) }
            }

            /// Returns a view of all values that can be written.
            #[inline]
            #[must_use]
            pub const fn as_mut_slice(&mut self) -> $crate::DeviceSliceMut<'_, T> {
                // SAFETY: as above.
                unsafe { $crate::DeviceSliceMut::from_raw_parts(self.ptr(), self.len, Some(&self.context)) }
            }

            /// Returns the context in which the memory is used.
            #[inline]
            #[must_use]
            pub const fn context(&self) -> &$crate::Context {
                &self.context
            }
        }

        impl<'a, T> From<&'a $owner<T>> for $crate::DeviceSlice<'a, T> {
            #[inline]
            fn from(buffer: &'a $owner<T>) -> Self {
                buffer.as_slice()
            }
        }
    };
}
pub(crate) use device_views;
