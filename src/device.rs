//! Devices: finding them, and their names, attributes and identifiers.

mod attributes;
mod peer;

use core::fmt;
use std::ffi::CString;

pub use self::attributes::Attributes;
pub use self::peer::AtomicCapabilities;

use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Result, checked};

/// A device: a GPU, or a MIG instance of one.
///
/// ```
/// use cuda_driver::Device;
///
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// cuda_driver::init()?;
/// for device in Device::all()? {
///     println!("{}: {} bytes", device.name()?, device.total_mem()?);
/// }
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Device(sys::CUdevice);

impl Device {
    /// Returns the number of devices ([`cuDeviceGetCount`](checked::device_get_count)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuDeviceGetCount")]
    #[track_caller]
    pub fn count() -> Result<u32> {
        // SAFETY: no preconditions.
        let count = unsafe { checked::device_get_count() }?;
        Ok(count.unsigned_abs())
    }

    /// Returns the device with this ordinal, counted from 0 ([`cuDeviceGet`](checked::device_get)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGet")]
    #[track_caller]
    pub fn get(ordinal: u32) -> Result<Self> {
        // An ordinal that C's `int` cannot hold becomes `i32::MAX`, which the driver rejects.
        let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
        // SAFETY: the driver checks the ordinal.
        match unsafe { checked::device_get(ordinal) } {
            Ok(device) => Ok(Self(device)),
            Err(error) => Err(error),
        }
    }

    /// Returns the first device.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NO_DEVICE` if there is no device, with the message "There is no device supporting CUDA".
    #[inline]
    #[track_caller]
    pub fn first() -> Result<Self> {
        if Self::count()? == 0 {
            return Err(Error::unasked(
                CUresult::CUDA_ERROR_NO_DEVICE,
                Function::cuDeviceGetCount,
            ));
        }
        Self::get(0)
    }

    /// Returns the device with a PCI address, such as `0000:17:00.0`, `17:00.0` or `0000:17:00`
    /// ([`cuDeviceGetByPCIBusId`](checked::device_get_by_pci_bus_id)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no device with this address, and `CUDA_ERROR_INVALID_VALUE` if
    /// the text is not an address.
    #[inline]
    #[doc(alias = "cuDeviceGetByPCIBusId")]
    #[track_caller]
    pub fn by_pci_bus_id(address: &str) -> Result<Self> {
        let Ok(address) = CString::new(address) else {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                Function::cuDeviceGetByPCIBusId,
                Refusal::NulByte,
            ));
        };
        // SAFETY: the driver checks the text.
        unsafe { checked::device_get_by_pci_bus_id(&address) }.map(Self)
    }

    /// Returns the device with an [identifier](Self::uuid).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if no device has it.
    #[inline]
    #[track_caller]
    pub fn by_uuid(uuid: Uuid) -> Result<Self> {
        for device in Self::all()? {
            if device.uuid()? == uuid {
                return Ok(device);
            }
        }
        Err(Error::unasked(
            CUresult::CUDA_ERROR_INVALID_DEVICE,
            Function::cuDeviceGetUuid_v2,
        ))
    }

    /// Returns the device with a [LUID](Self::luid).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if no device has it.
    #[inline]
    #[track_caller]
    pub fn by_luid(luid: [u8; 8]) -> Result<Self> {
        for device in Self::all()? {
            // Only Windows has LUIDs.
            if device.luid().is_ok_and(|has| has.luid == luid) {
                return Ok(device);
            }
        }
        Err(Error::unasked(
            CUresult::CUDA_ERROR_INVALID_DEVICE,
            Function::cuDeviceGetLuid,
        ))
    }

    /// Returns all devices, in the order of their ordinals.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[track_caller]
    pub fn all() -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for ordinal in 0..Self::count()? {
            all.push(Self::get(ordinal)?);
        }
        Ok(all)
    }

    /// Returns the device's name ([`cuDeviceGetName`](checked::device_get_name)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetName")]
    #[track_caller]
    pub fn name(self) -> Result<String> {
        // SAFETY: the driver checks the device.
        unsafe { checked::device_get_name(self.0) }
    }

    /// Returns the device's identifier, or the instance's with MIG
    /// ([`cuDeviceGetUuid_v2`](checked::device_get_uuid_v2)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetUuid_v2")]
    #[track_caller]
    pub fn uuid(self) -> Result<Uuid> {
        // SAFETY: the driver checks the device.
        let uuid = unsafe { checked::device_get_uuid_v2(self.0) }?;
        Ok(Uuid(uuid.bytes.map(|byte| byte.to_ne_bytes()[0])))
    }

    /// Returns the identifier of the whole GPU, also for a MIG instance
    /// ([`cuDeviceGetUuid`](checked::device_get_uuid)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetUuid")]
    #[track_caller]
    pub fn gpu_uuid(self) -> Result<Uuid> {
        // SAFETY: the driver checks the device.
        let uuid = unsafe { checked::device_get_uuid(self.0) }?;
        Ok(Uuid(uuid.bytes.map(|byte| byte.to_ne_bytes()[0])))
    }

    /// Returns the fabric cliques that the device belongs to
    /// ([`cuDeviceGetCliqueCount`](checked::device_get_clique_count),
    /// [`cuDeviceGetCliqueInfo`](checked::device_get_clique_info)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for a device without a fabric, and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 13.4.
    #[inline]
    #[doc(alias = "cuDeviceGetCliqueCount")]
    #[doc(alias = "cuDeviceGetCliqueInfo")]
    #[track_caller]
    pub fn cliques(self) -> Result<Vec<sys::CUcliqueInfo>> {
        // SAFETY: the driver checks the device.
        let count = unsafe { checked::device_get_clique_count(self.0) }?;
        let mut cliques = vec![sys::CUcliqueInfo::default(); count];
        // SAFETY: as above.
        let count = unsafe { checked::device_get_clique_info(&mut cliques, self.0) }?;
        cliques.truncate(count);
        Ok(cliques)
    }

    /// Returns the identifier of the fabric cluster that the device belongs to
    /// ([`cuDeviceGetFabricClusterUuid`](checked::device_get_fabric_cluster_uuid)).
    ///
    /// # Errors
    /// Same as [`cliques`](Self::cliques).
    #[inline]
    #[doc(alias = "cuDeviceGetFabricClusterUuid")]
    #[track_caller]
    pub fn fabric_cluster_uuid(self) -> Result<Uuid> {
        // SAFETY: the driver checks the device.
        let uuid = unsafe { checked::device_get_fabric_cluster_uuid(self.0) }?;
        Ok(Uuid(uuid.bytes.map(|byte| byte.to_ne_bytes()[0])))
    }

    /// Returns the device's identifier in Direct3D and Vulkan on Windows, and its node mask
    /// ([`cuDeviceGetLuid`](checked::device_get_luid)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` on other systems.
    #[inline]
    #[doc(alias = "cuDeviceGetLuid")]
    #[track_caller]
    pub fn luid(self) -> Result<checked::DeviceGetLuid> {
        // SAFETY: the driver checks the device.
        unsafe { checked::device_get_luid(self.0) }
    }

    /// Returns the size of the device's memory in bytes ([`cuDeviceTotalMem`](checked::device_total_mem)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceTotalMem")]
    #[track_caller]
    pub fn total_mem(self) -> Result<usize> {
        // SAFETY: the driver checks the device.
        unsafe { checked::device_total_mem(self.0) }
    }

    /// Returns the device's attributes by name, with their types.
    ///
    /// ```
    /// # use cuda_driver::Device;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// let attributes = Device::first()?.attributes();
    /// assert_eq!(attributes.warp_size()?, 32);
    /// assert!(attributes.unified_addressing()?);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn attributes(self) -> Attributes {
        Attributes(self)
    }

    /// Returns true if contexts on the device can be limited to a number of multiprocessors with
    /// [`ContextOptions::sm_count`](crate::ContextOptions::sm_count)
    /// ([`cuDeviceGetExecAffinitySupport`](checked::device_get_exec_affinity_support)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetExecAffinitySupport")]
    #[track_caller]
    pub fn supports_sm_affinity(self) -> Result<bool> {
        let kind = sys::CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT;
        // SAFETY: the driver checks the device.
        unsafe { checked::device_get_exec_affinity_support(kind, self.0) }
    }

    /// Returns a device attribute ([`cuDeviceGetAttribute`](checked::device_get_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown attribute, and `CUDA_ERROR_INVALID_DEVICE` if there is no such
    /// device.
    #[inline]
    #[doc(alias = "cuDeviceGetAttribute")]
    #[track_caller]
    pub fn attribute(self, attribute: sys::CUdevice_attribute) -> Result<i32> {
        // SAFETY: the driver checks both arguments.
        unsafe { checked::device_get_attribute(attribute, self.0) }
    }

    /// Returns the major and minor compute capability: (9, 0) is `sm_90`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[track_caller]
    pub fn compute_capability(self) -> Result<(i32, i32)> {
        let major = self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    /// Returns the device's PCI bus ID, such as `0000:17:00.0`
    /// ([`cuDeviceGetPCIBusId`](checked::device_get_pci_bus_id)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDeviceGetPCIBusId")]
    #[track_caller]
    pub fn pci_bus_id(self) -> Result<String> {
        // SAFETY: the driver checks the device.
        unsafe { checked::device_get_pci_bus_id(self.0) }
    }

    /// Returns the raw handle: a number, which the driver checks in every call.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> sys::CUdevice {
        self.0
    }

    /// Returns the device for a raw handle.
    #[inline]
    #[must_use]
    pub const fn from_raw(device: sys::CUdevice) -> Self {
        Self(device)
    }
}

/// A device's 16-byte identifier; displayed as `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
