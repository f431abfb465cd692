//! Attributes of streams, such as priority and access policy.

use super::Stream;
use crate::{Device, Result, checked, sys};
use sys::{CUstreamAttrID as Id, CUstreamAttrValue as Value};

impl Stream {
    /// Returns an attribute ([`cuStreamGetAttribute`](checked::stream_get_attribute)). Methods such as
    /// [`mem_sync_domain`](Self::mem_sync_domain) return a single attribute with its type.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an attribute that streams do not have.
    #[inline]
    #[doc(alias = "cuStreamGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, attribute: Id) -> Result<Value> {
        // SAFETY: the stream is live.
        unsafe { checked::stream_get_attribute(self.as_raw(), attribute) }
    }

    /// Sets an attribute for later work ([`cuStreamSetAttribute`](checked::stream_set_attribute)). Methods such as
    /// [`set_priority`](Self::set_priority) set a single attribute with its type, and are safe.
    ///
    /// # Safety
    /// Pointers and handles in the value must be valid as the manual requires for the attribute.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid value, and for an attribute that streams do not have.
    #[inline]
    #[doc(alias = "cuStreamSetAttribute")]
    #[track_caller]
    pub unsafe fn set_attribute(&self, attribute: Id, value: &Value) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_set_attribute(self.as_raw(), attribute, value) }
    }

    /// Copies all attributes of another stream of the same context
    /// ([`cuStreamCopyAttributes`](checked::stream_copy_attributes)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the streams belong to different contexts.
    #[inline]
    #[doc(alias = "cuStreamCopyAttributes")]
    #[track_caller]
    pub fn copy_attributes_from(&self, other: &Self) -> Result<()> {
        // SAFETY: both streams are live.
        unsafe { checked::stream_copy_attributes(self.as_raw(), other.as_raw()) }
    }

    /// Returns the access policy window: a range of memory, and the L2 cache policy for accesses of this stream's
    /// kernels to it.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[track_caller]
    pub fn access_policy_window(&self) -> Result<sys::CUaccessPolicyWindow> {
        let value = self.attribute(Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)?;
        // SAFETY: the driver wrote the field of this attribute.
        Ok(unsafe { value.accessPolicyWindow })
    }

    /// Sets the access policy window: a range of memory, and the L2 cache policy for accesses of this stream's kernels
    /// to it. The driver does not access that memory.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the ratio is not between 0 and 1, if the size is over the device's
    /// [limit](sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE), or if the property for
    /// misses is `CU_ACCESS_PROPERTY_PERSISTING`.
    #[inline]
    #[track_caller]
    pub fn set_access_policy_window(&self, window: &sys::CUaccessPolicyWindow) -> Result<()> {
        let mut value = Value::default();
        value.accessPolicyWindow = *window;
        // SAFETY: the driver does not access the memory of the window, so its address may be any number.
        unsafe { self.set_attribute(Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value) }
    }

    /// Returns the policy by which host threads wait for the stream, such as spinning or blocking. Until a policy is
    /// set, drivers return a number that is not a valid policy.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[track_caller]
    pub fn synchronization_policy(&self) -> Result<sys::CUsynchronizationPolicy> {
        let value = self.attribute(Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)?;
        // SAFETY: the driver wrote the field of this attribute.
        Ok(unsafe { value.syncPolicy })
    }

    /// Sets the policy by which host threads wait for the stream, such as spinning or blocking.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown policy.
    #[inline]
    #[track_caller]
    pub fn set_synchronization_policy(&self, policy: sys::CUsynchronizationPolicy) -> Result<()> {
        let mut value = Value::default();
        value.syncPolicy = policy;
        // SAFETY: the value has no pointers.
        unsafe { self.set_attribute(Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value) }
    }

    /// Sets the stream's priority; a lower number is a higher priority. A number outside of
    /// [`Context::stream_priority_range`](crate::Context::stream_priority_range) is clamped to that range.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[track_caller]
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        let mut value = Value::default();
        value.priority = priority;
        // SAFETY: the value has no pointers.
        unsafe { self.set_attribute(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) }
    }

    /// Returns the memory synchronisation domain of the stream's kernels.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 12.0.
    #[inline]
    #[track_caller]
    pub fn mem_sync_domain(&self) -> Result<sys::CUlaunchMemSyncDomain> {
        let value = self.attribute(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)?;
        // SAFETY: the driver wrote the field of this attribute.
        Ok(unsafe { value.memSyncDomain })
    }

    /// Sets the memory synchronisation domain of the stream's kernels.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown domain, and if the driver is older than CUDA 12.0.
    #[inline]
    #[track_caller]
    pub fn set_mem_sync_domain(&self, domain: sys::CUlaunchMemSyncDomain) -> Result<()> {
        let mut value = Value::default();
        value.memSyncDomain = domain;
        // SAFETY: the value has no pointers.
        unsafe { self.set_attribute(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value) }
    }

    /// Returns the numbers of the device's domains that stand for the default and the remote domain.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 12.0.
    #[inline]
    #[track_caller]
    pub fn mem_sync_domain_map(&self) -> Result<sys::CUlaunchMemSyncDomainMap> {
        let value = self.attribute(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)?;
        // SAFETY: the driver wrote the field of this attribute.
        Ok(unsafe { value.memSyncDomainMap })
    }

    /// Sets the numbers of the device's domains that stand for the default and the remote domain.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a number that the device does not have, and if the driver is older than
    /// CUDA 12.0.
    #[inline]
    #[track_caller]
    pub fn set_mem_sync_domain_map(&self, map: sys::CUlaunchMemSyncDomainMap) -> Result<()> {
        let mut value = Value::default();
        value.memSyncDomainMap = map;
        // SAFETY: the value has no pointers.
        unsafe { self.set_attribute(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value) }
    }

    /// Returns a number that no other stream of the process has, even after this one is destroyed
    /// ([`cuStreamGetId`](checked::stream_get_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.0.
    #[inline]
    #[doc(alias = "cuStreamGetId")]
    #[track_caller]
    pub fn id(&self) -> Result<u64> {
        // SAFETY: the stream is live.
        unsafe { checked::stream_get_id(self.as_raw()) }
    }

    /// Returns the device of the stream ([`cuStreamGetDevice`](checked::stream_get_device)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.8.
    #[inline]
    #[doc(alias = "cuStreamGetDevice")]
    #[track_caller]
    pub fn device(&self) -> Result<Device> {
        // SAFETY: the stream is live.
        let device = unsafe { checked::stream_get_device(self.as_raw()) }?;
        Ok(Device::from_raw(device))
    }
}
