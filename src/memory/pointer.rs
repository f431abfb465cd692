//! Device addresses.
#![forbid(unsafe_code)]

use core::fmt;

use crate::sys;

/// An address in device memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DevicePtr(sys::CUdeviceptr);

impl DevicePtr {
    /// The address 0.
    #[inline]
    #[must_use]
    pub const fn null() -> Self {
        Self(0)
    }

    /// An address from C.
    #[inline]
    #[must_use]
    pub const fn from_raw(address: sys::CUdeviceptr) -> Self {
        Self(address)
    }

    /// The address as C has it.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> sys::CUdeviceptr {
        self.0
    }

    /// The address so many bytes further; it wraps around at the end of the address space.
    #[inline]
    #[must_use]
    pub const fn byte_add(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl fmt::Debug for DevicePtr {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
