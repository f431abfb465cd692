//! The memory that memory allocation nodes of graphs use on a device.

use core::ptr;

use crate::{Device, Result, checked, sys};

impl Device {
    /// Returns a number of bytes of the memory for graphs on the device
    /// ([`cuDeviceGetGraphMemAttribute`](checked::device_get_graph_mem_attribute)). The attribute selects the used or
    /// the reserved memory, and its current number or the highest one since the last reset.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown attribute.
    #[inline]
    #[doc(alias = "cuDeviceGetGraphMemAttribute")]
    #[track_caller]
    pub fn graph_memory(self, attribute: sys::CUgraphMem_attribute) -> Result<u64> {
        let mut value = 0_u64;
        // SAFETY: all attributes are 64-bit numbers.
        unsafe { checked::device_get_graph_mem_attribute(self.as_raw(), attribute, (&raw mut value).cast()) }?;
        Ok(value)
    }

    /// Resets a high-water mark, `CU_GRAPH_MEM_ATTR_USED_MEM_HIGH` or `CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH`, to the
    /// current number ([`cuDeviceSetGraphMemAttribute`](checked::device_set_graph_mem_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another attribute.
    #[inline]
    #[doc(alias = "cuDeviceSetGraphMemAttribute")]
    #[track_caller]
    pub fn reset_graph_memory_high(self, attribute: sys::CUgraphMem_attribute) -> Result<()> {
        // 0 is the only value that the driver accepts.
        let zero = 0_u64;
        let value = ptr::from_ref(&zero).cast_mut().cast();
        // SAFETY: all attributes are 64-bit numbers, and the driver only reads the value.
        unsafe { checked::device_set_graph_mem_attribute(self.as_raw(), attribute, value) }
    }

    /// Releases memory that is reserved for graphs on the device and not in use
    /// ([`cuDeviceGraphMemTrim`](checked::device_graph_mem_trim)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuDeviceGraphMemTrim")]
    #[track_caller]
    pub fn trim_graph_memory(self) -> Result<()> {
        // SAFETY: no preconditions.
        unsafe { checked::device_graph_mem_trim(self.as_raw()) }
    }
}
