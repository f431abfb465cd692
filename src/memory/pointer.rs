//! Device addresses.

use core::fmt;

use bytemuck::{Pod, Zeroable};

use crate::sys;

/// A device address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DevicePtr(sys::CUdeviceptr);

impl DevicePtr {
    /// Returns the address 0.
    #[inline]
    #[must_use]
    pub const fn null() -> Self {
        Self(0)
    }

    /// Converts C's representation to an address.
    #[inline]
    #[must_use]
    pub const fn from_raw(address: sys::CUdeviceptr) -> Self {
        Self(address)
    }

    /// Converts the address to C's representation.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> sys::CUdeviceptr {
        self.0
    }

    /// Returns the address that is `bytes` bytes higher, wrapping around at the end of the address space.
    #[inline]
    #[must_use]
    pub const fn byte_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

// SAFETY: 0 is a valid value of this type.
unsafe impl Zeroable for DevicePtr {}

// SAFETY: any number is a valid value of this type, which has no padding.
unsafe impl Pod for DevicePtr {}

impl fmt::Debug for DevicePtr {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
