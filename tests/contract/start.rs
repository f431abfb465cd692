//! Tests of calls before `cuInit`, of CUDA_VISIBLE_DEVICES, and of forked children.

use std::ffi::{c_int, c_void};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, in_child, select_driver};
use crate::{child, is, test_path};

#[test]
fn calls_before_init() {
    child!("calls_before_init", {
        select_driver();
        let mut c = Codes::new();
        let (mut number, mut bytes, mut address) = (0, 0_usize, 0);
        let (mut context, mut module, mut stream, mut event) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let mut name = ptr::null();
        is!(c, 3, cuDeviceGetCount(&raw mut number));
        is!(c, 3, cuDeviceGet(&raw mut number, 0));
        is!(c, 3, cuDeviceTotalMem(&raw mut bytes, 0));
        is!(
            c,
            3,
            cuDeviceGetAttribute(&raw mut number, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
        );
        is!(c, 3, cuCtxCreate(&raw mut context, 0, 0));
        is!(c, 3, cuCtxGetCurrent(&raw mut context));
        is!(c, 3, cuCtxSetCurrent(ptr::null_mut()));
        is!(c, 3, cuCtxSynchronize());
        is!(c, 3, cuDevicePrimaryCtxRetain(&raw mut context, 0));
        is!(c, 3, cuModuleLoad(&raw mut module, c"/no/such/file".as_ptr()));
        is!(c, 3, cuModuleLoadData(&raw mut module, c"x".as_ptr().cast()));
        is!(c, 3, cuMemAlloc(&raw mut address, 4));
        is!(c, 3, cuMemFree(0));
        is!(c, 3, cuStreamCreate(&raw mut stream, 0));
        is!(c, 3, cuEventCreate(&raw mut event, 0));

        is!(c, 0, cuDriverGetVersion(&raw mut number));
        c.that(number >= 11070, || format!("version {number}, expected 11070 or later"));
        is!(c, 0, cuGetErrorName(CUresult(100), &raw mut name));
        c.that(!name.is_null(), || "no name of error 100".to_owned());
        let mut pointer: *mut c_void = ptr::null_mut();
        is!(
            c,
            0,
            cuGetProcAddress(c"cuInit".as_ptr(), &raw mut pointer, 2000, 0, ptr::null_mut())
        );
        c.that(!pointer.is_null(), || "no address of cuInit".to_owned());

        is!(c, 1, cuInit(1));
        is!(c, 3, cuDeviceGetCount(&raw mut number));
        is!(c, 0, cuInit(0));
        is!(c, 0, cuDeviceGetCount(&raw mut number));
        is!(c, 0, cuInit(0));
    });
}

/// Runs `cuInit` and `cuDeviceGetCount` in a child process with CUDA_VISIBLE_DEVICES set. Expects their codes to be
/// `init` and `then`, and the count of devices to be `count`, if given.
fn with_visible(test: &str, devices: &str, init: u32, then: u32, count: Option<c_int>) {
    in_child(test, &[("CUDA_VISIBLE_DEVICES", devices)], || {
        select_driver();
        let mut c = Codes::new();
        let mut found = 0;
        is!(c, init, cuInit(0));
        is!(c, then, cuDeviceGetCount(&raw mut found));
        if let Some(count) = count {
            c.that(found == count, || format!("{found} devices, expected {count}"));
        }
    });
}

#[test]
fn visible_devices_empty() {
    with_visible(&test_path!("visible_devices_empty"), "", 100, 3, None);
}

#[test]
fn visible_devices_minus_one() {
    with_visible(&test_path!("visible_devices_minus_one"), "-1", 100, 3, None);
}

#[test]
fn visible_devices_missing() {
    with_visible(&test_path!("visible_devices_missing"), "55", 100, 3, None);
}

#[test]
fn visible_devices_not_a_number() {
    with_visible(&test_path!("visible_devices_not_a_number"), "x", 100, 3, None);
}

#[test]
fn visible_devices_up_to_the_missing() {
    with_visible(&test_path!("visible_devices_up_to_the_missing"), "0,55", 0, 0, Some(1));
}

#[test]
fn visible_devices_repeated() {
    with_visible(&test_path!("visible_devices_repeated"), "0,0", 101, 3, None);
}

#[cfg(unix)]
#[test]
fn forked_child() {
    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    child!("forked_child", {
        crate::common::driver();
        // SAFETY: the child only calls the driver and `_exit`.
        let pid = unsafe { fork() };
        assert!(pid >= 0, "`fork` failed");
        if pid == 0 {
            let (mut number, mut context, mut address) = (0, ptr::null_mut(), 0);
            // SAFETY: the pointers are valid for the writes.
            let codes = unsafe {
                [
                    (cuInit(0).0, 3),
                    (cuDeviceGetCount(&raw mut number).0, 3),
                    (cuCtxCreate(&raw mut context, 0, 0).0, 3),
                    (cuMemAlloc(&raw mut address, 4).0, 3),
                    (cuDriverGetVersion(&raw mut number).0, 0),
                ]
            };
            let wrong = codes.iter().position(|(got, expected)| got != expected);
            // SAFETY: ends the forked process without running this program's exit handlers.
            unsafe { _exit(wrong.map_or(0, |i| i as c_int + 1)) };
        }
        let mut status = -1;
        // SAFETY: the pointer is valid for the write.
        let waited = unsafe { waitpid(pid, &raw mut status, 0) };
        assert_eq!(waited, pid);
        assert_eq!(
            status, 0,
            "the forked child's wait status: bits 8 to 15 are the number of the first call that differed"
        );
        // The parent is not affected.
        let mut c = Codes::new();
        let (mut number, mut address) = (0, 0);
        is!(c, 0, cuInit(0));
        is!(c, 0, cuDeviceGetCount(&raw mut number));
        is!(c, 201, cuMemAlloc(&raw mut address, 4));
        is!(c, 0, cuDriverGetVersion(&raw mut number));
    });
}
