//! Exports that advise on, prefetch and query ranges of managed memory.

use std::ffi::{c_int, c_uint, c_void};

use cuda_driver_sys::{
    CUdevice, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUstream,
};

use super::args::Caller;
use super::exports;
use crate::call::lookup::current_context;
use crate::call::{stream, submit};
use crate::object::managed::{self, Advice, Location};
use crate::object::stream::NullStream;
use crate::state::error::{Error, Result};

fn advise(
    address: CUdeviceptr,
    bytes: usize,
    advice: CUmem_advise,
    location: impl FnOnce() -> Result<Location>,
) -> Result<()> {
    use CUmem_advise as Id;
    // Driver 580 requires a current context, and checks it before the device. Prefetching on a created stream needs
    // none.
    current_context()?;
    let advice = match advice {
        Id::CU_MEM_ADVISE_SET_READ_MOSTLY => Advice::ReadMostly(true),
        Id::CU_MEM_ADVISE_UNSET_READ_MOSTLY => Advice::ReadMostly(false),
        Id::CU_MEM_ADVISE_SET_PREFERRED_LOCATION => Advice::Preferred(Some(location()?)),
        Id::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION => Advice::Preferred(None),
        Id::CU_MEM_ADVISE_SET_ACCESSED_BY => Advice::AccessedBy(accessor(location()?)?, true),
        Id::CU_MEM_ADVISE_UNSET_ACCESSED_BY => Advice::AccessedBy(accessor(location()?)?, false),
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    managed::advise(address, bytes as u64, advice)
}

fn prefetch(address: CUdeviceptr, bytes: usize, location: Location, hstream: CUstream, mode: NullStream) -> Result<()> {
    let stream = stream::for_work(hstream as usize, mode)?;
    managed::prefetch(address, bytes as u64, location)?;
    submit::join(&stream);
    Ok(())
}

/// Returns the type and the number of a location.
pub(super) fn parts(location: &CUmemLocation) -> (CUmemLocationType, i32) {
    // SAFETY: all members of the union are integers, which are valid for any bits.
    (location.type_, unsafe { location.anonymous1.id })
}

pub(super) fn location_of(location: &CUmemLocation) -> Result<Location> {
    let (kind, id) = parts(location);
    match Location::of_type(kind.0, id)? {
        // The host has one node: `CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID` is 0.
        Location::HostNuma(1..) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        location => Ok(location),
    }
}

/// Returns the location of advice that names an accessor: a device or the host, but not a NUMA node.
fn accessor(location: Location) -> Result<Location> {
    match location {
        Location::HostNuma(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        location => Ok(location),
    }
}

fn write(
    c: Caller,
    common: &managed::CommonAdvice,
    data: *mut c_void,
    bytes: usize,
    attribute: CUmem_range_attribute,
) -> Result<()> {
    let values = common.attribute(attribute, bytes)?;
    let data = data.cast::<c_int>();
    c.out(data)?;
    for (index, value) in values.enumerate() {
        c.set_at(data, index, value);
    }
    Ok(())
}

exports! {
    fn cuMemAdvise [_c] (
        address: CUdeviceptr,
        bytes: usize,
        advice: CUmem_advise,
        device: CUdevice,
    ) {
        advise(address, bytes, advice, || Location::of_device(device))
    }

    fn cuMemAdvise_v2 [_c] (
        address: CUdeviceptr,
        bytes: usize,
        advice: CUmem_advise,
        location: CUmemLocation,
    ) {
        // Driver 580 returns this code for an invalid device, too, unlike `cuMemAdvise`.
        advise(address, bytes, advice, || {
            location_of(&location).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
        })
    }

    fn cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz [_c, mode] (
        address: CUdeviceptr,
        bytes: usize,
        device: CUdevice,
        hstream: CUstream,
    ) {
        prefetch(address, bytes, Location::of_device(device)?, hstream, mode)
    }

    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz [_c, mode] (
        address: CUdeviceptr,
        bytes: usize,
        location: CUmemLocation,
        flags: c_uint,
        hstream: CUstream,
    ) {
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        prefetch(address, bytes, location_of(&location)?, hstream, mode)
    }

    fn cuMemRangeGetAttribute [c] (
        data: *mut c_void,
        size: usize,
        attribute: CUmem_range_attribute,
        address: CUdeviceptr,
        bytes: usize,
    ) {
        current_context()?;
        write(
            c,
            &managed::common(address, bytes as u64)?,
            data,
            size,
            attribute,
        )
    }

    fn cuMemRangeGetAttributes [c] (
        data: *mut *mut c_void,
        sizes: *mut usize,
        attributes: *mut CUmem_range_attribute,
        count: usize,
        address: CUdeviceptr,
        bytes: usize,
    ) {
        if count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        current_context()?;
        let common = managed::common(address, bytes as u64)?;
        let data = c.items(data.cast_const(), count)?;
        let sizes = c.items(sizes.cast_const(), count)?;
        let attributes = c.items(attributes.cast_const(), count)?;
        for ((data, size), attribute) in data.zip(sizes).zip(attributes) {
            write(c, &common, data, size, attribute)?;
        }
        Ok(())
    }
}
