//! Exports of graphics resources. No graphics API can register one with this driver, so each handle is invalid.

use std::ffi::c_uint;

use cuda_driver_sys::{CUarray, CUdeviceptr, CUgraphicsResource, CUmipmappedArray, CUstream};

use super::exports;
use crate::call::lookup::current_context;
use crate::call::stream;
use crate::state::error::{Error, Result};

/// Returns the error of a call with this handle: `CUDA_ERROR_INVALID_HANDLE` if a context is current.
fn unregistered(resource: CUgraphicsResource) -> Result<()> {
    current_context()?;
    host::log!("{resource:p} is not a registered graphics resource");
    Err(Error::CUDA_ERROR_INVALID_HANDLE)
}

/// Returns the error of a call with these handles. Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for an empty list.
fn none_registered(count: c_uint, resources: *mut CUgraphicsResource) -> Result<()> {
    if count == 0 || resources.is_null() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Err(Error::CUDA_ERROR_INVALID_HANDLE)
}

exports! {
    healthy fn cuGraphicsUnregisterResource [_c] (resource: CUgraphicsResource) {
        unregistered(resource)
    }

    healthy fn cuGraphicsMapResources | cuGraphicsMapResources_ptsz [_c, mode] (
        count: c_uint,
        resources: *mut CUgraphicsResource,
        hstream: CUstream,
    ) {
        stream::named(hstream as usize, mode)?;
        none_registered(count, resources)
    }

    healthy fn cuGraphicsUnmapResources | cuGraphicsUnmapResources_ptsz [_c, mode] (
        count: c_uint,
        resources: *mut CUgraphicsResource,
        hstream: CUstream,
    ) {
        stream::named(hstream as usize, mode)?;
        none_registered(count, resources)
    }

    healthy fn cuGraphicsResourceSetMapFlags_v2 = cuGraphicsResourceSetMapFlags [_c] (
        resource: CUgraphicsResource,
        _flags: c_uint,
    ) {
        unregistered(resource)
    }

    healthy fn cuGraphicsSubResourceGetMappedArray [_c] (
        _out: *mut CUarray,
        resource: CUgraphicsResource,
        _index: c_uint,
        _level: c_uint,
    ) {
        unregistered(resource)
    }

    healthy fn cuGraphicsResourceGetMappedMipmappedArray [_c] (
        _out: *mut CUmipmappedArray,
        resource: CUgraphicsResource,
    ) {
        unregistered(resource)
    }

    healthy fn cuGraphicsResourceGetMappedPointer_v2 [_c] (
        _out: *mut CUdeviceptr,
        _size: *mut usize,
        resource: CUgraphicsResource,
    ) {
        unregistered(resource)
    }
}
