//! Tests of calls for graphics resources, of which a program without a graphics API has none, and of registering
//! callbacks for notifications.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, needs};
use crate::is;

#[test]
fn graphics_resources_that_are_not_registered() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = CUstream::default();
    let mut none = CUgraphicsResource::default();
    for (count, resources, code) in [
        (0, ptr::null_mut(), 1),
        (0, &raw mut none, 1),
        (1, ptr::null_mut(), 1),
        (1, &raw mut none, 400),
    ] {
        is!(c, code, cuGraphicsMapResources(count, resources, stream));
        is!(c, code, cuGraphicsUnmapResources(count, resources, stream));
    }
    is!(c, 400, cuGraphicsUnregisterResource(none));
    is!(c, 400, cuGraphicsResourceSetMapFlags(none, 0));
    let (mut array, mut mipmap, mut address, mut size) = (CUarray::default(), CUmipmappedArray::default(), 0, 0);
    is!(c, 400, cuGraphicsSubResourceGetMappedArray(&raw mut array, none, 0, 0));
    is!(c, 400, cuGraphicsResourceGetMappedMipmappedArray(&raw mut mipmap, none));
    is!(
        c,
        400,
        cuGraphicsResourceGetMappedPointer(&raw mut address, &raw mut size, none)
    );
}

unsafe extern "system" fn ignore(_: *mut CUasyncNotificationInfo, _: *mut c_void, _: CUasyncCallbackHandle) {}

#[test]
fn callbacks_for_notifications() {
    let _gpu = Gpu::new();
    if !DEFAULT.supports(Function::cuDeviceRegisterAsyncNotification) {
        return needs("a driver of CUDA 12.4");
    }
    let mut c = Codes::new();
    let (mut one, mut other) = (CUasyncCallbackHandle::default(), CUasyncCallbackHandle::default());
    let data = ptr::null_mut();
    is!(
        c,
        0,
        cuDeviceRegisterAsyncNotification(0, Some(ignore), data, &raw mut one)
    );
    is!(
        c,
        0,
        cuDeviceRegisterAsyncNotification(0, Some(ignore), data, &raw mut other)
    );
    assert_ne!(one, other);
    let mut none = CUasyncCallbackHandle::default();
    is!(c, 1, cuDeviceRegisterAsyncNotification(0, None, data, &raw mut none));
    is!(
        c,
        101,
        cuDeviceRegisterAsyncNotification(9999, Some(ignore), data, &raw mut none)
    );
    is!(c, 0, cuDeviceUnregisterAsyncNotification(0, one));
    is!(c, 0, cuDeviceUnregisterAsyncNotification(0, other));
}
