//! Resources of devices: the multiprocessors and work queues of green contexts.

use core::fmt;

use crate::refusal::Refusal;
use crate::sys::{self, CUdevResource, CUdevResourceType, CUresult, Function};
use crate::{Context, Device, Error, Result, Stream, checked};

/// A resource of a device: a set of multiprocessors, or work queues. Needs CUDA 12.4.
///
/// [`Device::resource`] returns a whole resource of a device, and splits return parts of it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct DeviceResource(CUdevResource);

// SAFETY: a resource is a description, which may be used on any thread.
unsafe impl Send for DeviceResource {}
// SAFETY: as above.
unsafe impl Sync for DeviceResource {}

/// The parts of a resource.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Split {
    /// The requested groups. [`split_by_count`](DeviceResource::split_by_count) returns fewer if the resource is too
    /// small.
    pub groups: Vec<DeviceResource>,
    /// The rest; `None` if nothing is left.
    pub remainder: Option<DeviceResource>,
}

impl Split {
    #[inline]
    fn new(groups: Vec<CUdevResource>, remainder: CUdevResource) -> Self {
        let is_rest = remainder.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID;
        Self {
            groups: groups.into_iter().map(DeviceResource).collect(),
            remainder: is_rest.then_some(DeviceResource(remainder)),
        }
    }
}

impl DeviceResource {
    #[inline]
    pub(super) const fn new(raw: CUdevResource) -> Self {
        Self(raw)
    }

    /// Returns the kind of the resource.
    #[inline]
    pub const fn kind(&self) -> CUdevResourceType {
        self.0.type_
    }

    /// Returns the number of multiprocessors; `None` for a resource of another kind.
    #[inline]
    #[must_use]
    pub fn sm_count(&self) -> Option<u32> {
        // SAFETY: the driver writes this member for this kind; any number is valid.
        (self.kind() == CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM).then(|| unsafe { self.0.sm() }.smCount)
    }

    /// Splits multiprocessors into at most `groups` groups of at least `min_count` multiprocessors each
    /// ([`cuDevSmResourceSplitByCount`](checked::dev_sm_resource_split_by_count)). The flags are 0 or
    /// `CU_DEV_SM_RESOURCE_SPLIT_…`. The driver rounds the size of a group up: on compute capability 9.0 without flags,
    /// to a multiple of 8.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for 0 groups and for invalid flags, `CUDA_ERROR_INVALID_RESOURCE_TYPE` for a
    /// resource of another kind, and `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for more multiprocessors than there
    /// are, or if this resource is itself a part of a split.
    #[inline]
    #[doc(alias = "cuDevSmResourceSplitByCount")]
    #[track_caller]
    pub fn split_by_count(&self, groups: u32, min_count: u32, flags: u32) -> Result<Split> {
        require_groups(groups as usize, Function::cuDevSmResourceSplitByCount)?;
        let mut parts = vec![CUdevResource::default(); (groups as usize).min(MAX_GROUPS)];
        let whole = self.0;
        // SAFETY: the resource was written by the driver, which checks the rest. The driver may write to the padding of
        // this copy, which no other thread reads.
        let split = unsafe { checked::dev_sm_resource_split_by_count(&mut parts, &whole, flags, min_count) }?;
        parts.truncate(split.nb_groups as usize);
        Ok(Split::new(parts, split.remainder))
    }

    /// Splits multiprocessors into parts of given sizes ([`cuDevSmResourceSplit`](checked::dev_sm_resource_split)). For
    /// a size of 0, the driver chooses a size and writes it to the parameters.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_RESOURCE_TYPE` for a resource of another kind, `CUDA_ERROR_INVALID_VALUE` for
    /// no parts, for unknown flags, and for a size that is odd or not a multiple of `coscheduledSmCount`,
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for more multiprocessors than there are and for an empty part, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuDevSmResourceSplit")]
    #[track_caller]
    pub fn split(&self, parts: &mut [sys::CU_DEV_SM_RESOURCE_GROUP_PARAMS]) -> Result<Split> {
        require_groups(parts.len(), Function::cuDevSmResourceSplit)?;
        let mut groups = vec![CUdevResource::default(); parts.len()];
        let whole = self.0;
        // SAFETY: as above.
        let remainder = unsafe { checked::dev_sm_resource_split(Some(&mut groups), &whole, 0, parts) }?;
        Ok(Split::new(groups, remainder))
    }

    /// Returns C's record.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &CUdevResource {
        &self.0
    }

    /// Returns the resource for C's record.
    ///
    /// # Safety
    /// The record must have been written by the driver.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: CUdevResource) -> Self {
        Self(raw)
    }
}

/// Returns an error if no groups are requested: `called` would take an empty list as a query, and write no remainder.
#[inline]
#[track_caller]
fn require_groups(count: usize, called: Function) -> Result<()> {
    if count == 0 {
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        return Err(Error::refused(code, called, Refusal::NoGroups));
    }
    Ok(())
}

/// The largest number of groups that `split_by_count` returns: more than any device has multiprocessors.
const MAX_GROUPS: usize = 4096;

impl fmt::Debug for DeviceResource {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceResource")
            .field("kind", &self.kind())
            .field("sm_count", &self.sm_count())
            .finish_non_exhaustive()
    }
}

impl Device {
    /// Returns the device's whole resource of a kind ([`cuDeviceGetDevResource`](checked::device_get_dev_resource)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_RESOURCE_TYPE` for a kind that the device does not have, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuDeviceGetDevResource")]
    #[track_caller]
    pub fn resource(self, kind: CUdevResourceType) -> Result<DeviceResource> {
        // SAFETY: the driver checks both arguments.
        unsafe { checked::device_get_dev_resource(self.as_raw(), kind) }.map(DeviceResource)
    }
}

impl Context {
    /// Returns the resource of a kind that the context can use
    /// ([`cuCtxGetDevResource`](checked::ctx_get_dev_resource)).
    ///
    /// # Errors
    /// Same as [`Device::resource`].
    #[inline]
    #[doc(alias = "cuCtxGetDevResource")]
    #[track_caller]
    pub fn resource(&self, kind: CUdevResourceType) -> Result<DeviceResource> {
        // SAFETY: the handle is live, and the driver checks the kind.
        unsafe { checked::ctx_get_dev_resource(self.as_raw(), kind) }.map(DeviceResource)
    }
}

impl Stream {
    /// Returns the resource of a kind that the stream can use
    /// ([`cuStreamGetDevResource`](checked::stream_get_dev_resource)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1,
    /// and the errors of [`Device::resource`].
    #[inline]
    #[doc(alias = "cuStreamGetDevResource")]
    #[track_caller]
    pub fn resource(&self, kind: CUdevResourceType) -> Result<DeviceResource> {
        // SAFETY: the handle is live, and the driver checks the kind.
        unsafe { checked::stream_get_dev_resource(self.as_raw(), kind) }.map(DeviceResource)
    }
}
