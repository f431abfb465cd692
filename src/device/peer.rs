//! Queries about the access of devices to each other's memory, and about native atomic operations.

use super::Device;
use crate::sys::{CUatomicOperation, CUdevice_P2PAttribute};
use crate::{Result, checked};

/// The kinds and sizes of values for which an atomic operation is native, as the bits of
/// `CUatomicOperationCapability`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AtomicCapabilities(pub u32);

impl Device {
    /// Returns true if contexts on this device can access the memory of contexts on `peer` after
    /// [`Context::enable_peer_access`](crate::Context::enable_peer_access)
    /// ([`cuDeviceCanAccessPeer`](checked::device_can_access_peer)). False for the device itself.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if one of the devices does not exist.
    #[inline]
    #[doc(alias = "cuDeviceCanAccessPeer")]
    #[track_caller]
    pub fn can_access_peer(self, peer: Self) -> Result<bool> {
        // SAFETY: the driver checks the devices.
        unsafe { checked::device_can_access_peer(self.as_raw(), peer.as_raw()) }
    }

    /// Returns an attribute of the link from this device to another
    /// ([`cuDeviceGetP2PAttribute`](checked::device_get_p2p_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if one of the devices does not exist or both are the same, and
    /// `CUDA_ERROR_INVALID_VALUE` for an unknown attribute.
    #[inline]
    #[doc(alias = "cuDeviceGetP2PAttribute")]
    #[track_caller]
    pub fn p2p_attribute(self, attribute: CUdevice_P2PAttribute, peer: Self) -> Result<i32> {
        // SAFETY: the driver checks the arguments.
        unsafe { checked::device_get_p2p_attribute(attribute, self.as_raw(), peer.as_raw()) }
    }

    /// Returns, for each operation, the kinds and sizes of values for which it is native on the memory of `peer`
    /// ([`cuDeviceGetP2PAtomicCapabilities`](checked::device_get_p2p_atomic_capabilities)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown operation, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuDeviceGetP2PAtomicCapabilities")]
    #[track_caller]
    pub fn p2p_atomic_capabilities(
        self,
        operations: &[CUatomicOperation],
        peer: Self,
    ) -> Result<Vec<AtomicCapabilities>> {
        let (here, there) = (self.as_raw(), peer.as_raw());
        // SAFETY: the driver checks the arguments.
        let found = unsafe { checked::device_get_p2p_atomic_capabilities(operations, here, there) }?;
        Ok(found.into_iter().map(AtomicCapabilities).collect())
    }

    /// Returns, for each operation, the kinds and sizes of values for which it is native on the host's memory
    /// ([`cuDeviceGetHostAtomicCapabilities`](checked::device_get_host_atomic_capabilities)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown operation, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuDeviceGetHostAtomicCapabilities")]
    #[track_caller]
    pub fn host_atomic_capabilities(self, operations: &[CUatomicOperation]) -> Result<Vec<AtomicCapabilities>> {
        // SAFETY: the driver checks the arguments.
        let found = unsafe { checked::device_get_host_atomic_capabilities(operations, self.as_raw()) }?;
        Ok(found.into_iter().map(AtomicCapabilities).collect())
    }
}
