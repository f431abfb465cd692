//! Advice, prefetches and queries of ranges of managed memory.

use core::ffi::{c_int, c_void};
use core::ops::RangeBounds;

use super::ManagedBuffer;
use crate::sys::{self, CUmem_range_attribute as Attribute, CUmemLocationType as LocationType};
use crate::{Device, Result, Stream, checked};

/// The attributes of a range of managed memory. A location is a device ordinal, `CU_DEVICE_CPU` (−1) for the host, or
/// `CU_DEVICE_INVALID` (−2) if the range has no location or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeAttributes {
    /// True if the whole range is advised to be mostly read.
    pub read_mostly: bool,
    /// The preferred location of the whole range.
    pub preferred_location: i32,
    /// The location that the whole range was last prefetched to.
    pub last_prefetch_location: i32,
}

impl<T> ManagedBuffer<T> {
    /// Advises the driver about the use of a range of values, rounded to pages
    /// ([`cuMemAdvise_v2`](checked::mem_advise_v2)). Drivers before CUDA 12.2 accept devices and the host only
    /// ([`cuMemAdvise`](checked::mem_advise)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a range that is not inside the buffer and for unknown advice. If the
    /// advice has a location and it is invalid, returns `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE`.
    /// Returns a [missing-function error](crate::Error::is_missing_function) for a location that an older driver does
    /// not accept.
    #[inline]
    #[doc(alias = "cuMemAdvise")]
    #[doc(alias = "cuMemAdvise_v2")]
    #[track_caller]
    pub fn advise(
        &self,
        range: impl RangeBounds<usize>,
        advice: sys::CUmem_advise,
        location: sys::CUmemLocation,
    ) -> Result<()> {
        let part = self.as_slice().slice(range)?;
        if part.size_bytes() == 0 {
            return Ok(());
        }
        let (raw, bytes) = (part.ptr().as_raw(), part.size_bytes());
        let _current = self.context.enter()?;
        // SAFETY: the range is managed memory.
        let result = unsafe { checked::mem_advise_v2(raw, bytes, advice, location) };
        match (&result, ordinal(&location)) {
            // SAFETY: as above.
            (Err(error), Some(device)) if error.is_missing_function() => unsafe {
                checked::mem_advise(raw, bytes, advice, device)
            },
            _ => result,
        }
    }

    /// Queues the migration of a range of values, rounded to pages, to a location
    /// ([`cuMemPrefetchAsync_v2`](checked::mem_prefetch_async_v2)). Drivers before CUDA 12.2 accept devices and the
    /// host only ([`cuMemPrefetchAsync`](checked::mem_prefetch_async)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a range that is not inside the buffer and for an invalid location other
    /// than a device, `CUDA_ERROR_INVALID_DEVICE` for an invalid device and for one that lacks
    /// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`, and a
    /// [missing-function error](crate::Error::is_missing_function) for a location that an older driver does not accept.
    #[inline]
    #[doc(alias = "cuMemPrefetchAsync")]
    #[doc(alias = "cuMemPrefetchAsync_v2")]
    #[track_caller]
    pub fn prefetch(
        &self,
        range: impl RangeBounds<usize>,
        location: sys::CUmemLocation,
        stream: &Stream,
    ) -> Result<()> {
        let part = self.as_slice().slice(range)?;
        if part.size_bytes() == 0 {
            return Ok(());
        }
        let (raw, bytes, stream) = (part.ptr().as_raw(), part.size_bytes(), stream.as_raw());
        let _current = self.context.enter()?;
        // SAFETY: the range is managed memory, and freeing it waits for the work of the context.
        let result = unsafe { checked::mem_prefetch_async_v2(raw, bytes, location, 0, stream) };
        match (&result, ordinal(&location)) {
            // SAFETY: as above.
            (Err(error), Some(device)) if error.is_missing_function() => unsafe {
                checked::mem_prefetch_async(raw, bytes, device, stream)
            },
            _ => result,
        }
    }

    /// Returns an attribute of a range of values ([`cuMemRangeGetAttribute`](checked::mem_range_get_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a range that is empty or not inside the buffer, and for an attribute that
    /// the driver does not have.
    #[inline]
    #[doc(alias = "cuMemRangeGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, range: impl RangeBounds<usize>, attribute: Attribute) -> Result<i32> {
        let part = self.as_slice().slice(range)?;
        let mut value = [0_i32];
        let _current = self.context.enter()?;
        // SAFETY: the range is managed memory, and the driver checks attribute and size.
        unsafe { checked::mem_range_get_attribute(&mut value, attribute, part.ptr().as_raw(), part.size_bytes()) }?;
        Ok(value[0])
    }

    /// Returns the locations for which `CU_MEM_ADVISE_SET_ACCESSED_BY` is set on a whole range of values: ordinals of
    /// devices, or `CU_DEVICE_CPU` (−1) for the host ([`cuMemRangeGetAttribute`](checked::mem_range_get_attribute)).
    ///
    /// # Errors
    /// Same as [`attribute`](Self::attribute).
    #[inline]
    #[doc(alias = "cuMemRangeGetAttribute")]
    #[track_caller]
    pub fn accessed_by(&self, range: impl RangeBounds<usize>) -> Result<Vec<i32>> {
        let part = self.as_slice().slice(range)?;
        // The host takes one more place.
        let mut devices = vec![sys::CU_DEVICE_INVALID; Device::count()? as usize + 1];
        let attribute = Attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
        let _current = self.context.enter()?;
        // SAFETY: the range is managed memory, and the driver checks the size.
        unsafe { checked::mem_range_get_attribute(&mut devices, attribute, part.ptr().as_raw(), part.size_bytes()) }?;
        devices.retain(|device| *device != sys::CU_DEVICE_INVALID);
        Ok(devices)
    }

    /// Returns the attributes of a range of values in one call
    /// ([`cuMemRangeGetAttributes`](checked::mem_range_get_attributes)).
    ///
    /// # Errors
    /// Same as [`attribute`](Self::attribute).
    #[inline]
    #[doc(alias = "cuMemRangeGetAttributes")]
    #[track_caller]
    pub fn attributes(&self, range: impl RangeBounds<usize>) -> Result<RangeAttributes> {
        let part = self.as_slice().slice(range)?;
        let asked = [
            Attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
            Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
            Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
        ];
        let mut values = [0 as c_int; 3];
        let places = values
            .each_mut()
            .map(|value| core::ptr::from_mut(value).cast::<c_void>());
        let _current = self.context.enter()?;
        // SAFETY: the range is managed memory, and each place has the size that is given.
        unsafe {
            let sizes = [size_of::<c_int>(); 3];
            checked::mem_range_get_attributes(&places, &sizes, &asked, part.ptr().as_raw(), part.size_bytes())
        }?;
        Ok(RangeAttributes {
            read_mostly: values[0] == 1,
            preferred_location: values[1],
            last_prefetch_location: values[2],
        })
    }
}

/// Returns the number of a location for the functions that take a device ordinal or `CU_DEVICE_CPU`; `None` for other
/// locations, which these functions do not accept.
#[inline]
fn ordinal(location: &sys::CUmemLocation) -> Option<c_int> {
    match location.type_ {
        // SAFETY: the number is an integer, and any bits are valid.
        LocationType::CU_MEM_LOCATION_TYPE_DEVICE => Some(unsafe { location.id() }),
        LocationType::CU_MEM_LOCATION_TYPE_HOST => Some(sys::CU_DEVICE_CPU),
        _ => None,
    }
}
