//! Tests of process-wide state: before initialisation, after a fork, and environment variables. Each test runs its body
//! in a process of its own.

use crate::common::{check, expect, in_child, lacks_software, library, software};
use cuda_driver_sys::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Returns the result codes of four calls: initialisation, device count, allocation, and driver version.
fn codes() -> [u32; 4] {
    let cuda = library();
    let (mut count, mut version, mut address) = (0, 0, 0);
    unsafe {
        [
            cuda.cuInit(0).0,
            cuda.cuDeviceGetCount(&mut count).0,
            cuda.cuMemAlloc(&mut address, 4).0,
            cuda.cuDriverGetVersion(&mut version).0,
        ]
    }
}

#[test]
fn before_initialisation() {
    in_child("process::before_initialisation", &[], || {
        let cuda = library();
        let (mut number, mut context, mut pointer, mut text) = (0, null_mut(), null_mut(), std::ptr::null());
        unsafe {
            expect(cuda.cuDeviceGetCount(&mut number), 3);
            expect(cuda.cuDeviceGetCount(null_mut()), 3);
            expect(cuda.cuCtxGetCurrent(&mut context), 3);
            expect(cuda.cuCtxDestroy(null_mut()), 3);
            expect(cuda.cuMemFree(0), 3);
            expect(cuda.cuModuleUnload(null_mut()), 3);
            expect(cuda.cuGraphDestroy(null_mut()), 3);
            check(cuda.cuDriverGetVersion(&mut number));
            if software() {
                assert_eq!(u32::try_from(number), Ok(cuda_driver_sys::CUDA_VERSION));
            }
            let newer = number + 10;
            expect(cuda.cuDriverGetVersion(null_mut()), 1);
            check(cuda.cuGetErrorName(CUresult(700), &mut text));
            assert_eq!(CStr::from_ptr(text), c"CUDA_ERROR_ILLEGAL_ADDRESS");
            expect(cuda.cuGetErrorName(CUresult(12345), &mut text), 1);
            assert!(text.is_null());
            if software() {
                expect(cuda.cuGetErrorName(CUresult(0), null_mut()), 1);
            }
            check(cuda.cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut pointer, 2000, 0, null_mut()));
            let symbol = cuda.symbol(c"cuInit").map(|s| s.as_ptr());
            assert_eq!(Some(pointer), symbol);
            if software() {
                let null = std::ptr::null();
                expect(cuda.cuGetProcAddress_v2(null, &mut pointer, 2000, 0, null_mut()), 1);
                let init = c"cuInit".as_ptr();
                expect(cuda.cuGetProcAddress_v2(init, null_mut(), 2000, 0, null_mut()), 1);
            }
            let mut status = CUdriverProcAddressQueryResult(9);
            let mut untouched = 0x10 as *mut _;
            expect(
                cuda.cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut untouched, newer, 0, &mut status),
                1,
            );
            assert_eq!((untouched as usize, status.0), (0x10, 9));
            check(cuda.cuGetProcAddress_v2(c"cuNothing".as_ptr(), &mut pointer, 12000, 0, &mut status));
            assert_eq!((pointer.is_null(), status.0), (true, 1));
            expect(cuda.cuInit(1), 1);
            expect(cuda.cuDeviceGetCount(&mut number), 3);
            check(cuda.cuInit(0));
            check(cuda.cuInit(0));
            check(cuda.cuDeviceGetCount(&mut number));
            assert_eq!(number, 1);
        }
    });
}

#[test]
fn an_older_version_has_no_attributes_of_clusters() {
    if lacks_software() {
        return; // other drivers do not have these settings
    }
    let settings = [("CUDA_SOFT_VERSION", "11.7")];
    in_child(
        "process::an_older_version_has_no_attributes_of_clusters",
        &settings,
        || {
            let cuda = library();
            let text = c".version 7.7\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
            let (mut context, mut module, mut kernel, mut value) = (null_mut(), null_mut(), null_mut(), 0);
            unsafe {
                check(cuda.cuInit(0));
                check(cuda.cuCtxCreate_v2(&mut context, 0, 0));
                check(cuda.cuModuleLoadData(&mut module, text.as_ptr().cast()));
                check(cuda.cuModuleGetFunction(&mut kernel, module, c"k".as_ptr()));
                for attribute in 10..=15 {
                    let attribute = CUfunction_attribute(attribute);
                    expect(cuda.cuFuncGetAttribute(&mut value, attribute, kernel), 1);
                    expect(cuda.cuFuncSetAttribute(kernel, attribute, 0), 1);
                }
                check(cuda.cuFuncGetAttribute(&mut value, CUfunction_attribute(9), kernel));
                check(cuda.cuCtxDestroy_v2(context));
            }
        },
    );
}

#[test]
fn several_devices_and_an_older_version() {
    if lacks_software() {
        return; // other drivers do not have these settings
    }
    let settings = [("CUDA_SOFT_DEVICES", "sm_80,sm_90"), ("CUDA_SOFT_VERSION", "12.2")];
    in_child("process::several_devices_and_an_older_version", &settings, || {
        let cuda = library();
        let (mut number, mut name) = (0, [0i8; 64]);
        unsafe {
            check(cuda.cuInit(0));
            check(cuda.cuDriverGetVersion(&mut number));
            assert_eq!(number, 12020);
            check(cuda.cuDeviceGetCount(&mut number));
            assert_eq!(number, 2);
            for (device, sm) in [(0, 80), (1, 90)] {
                check(cuda.cuDeviceGetName(name.as_mut_ptr().cast(), 64, device));
                let name = CStr::from_ptr(name.as_ptr().cast()).to_str().unwrap();
                assert_eq!(name, format!("Software CUDA device (sm_{sm})"));
                check(cuda.cuDeviceGetAttribute(
                    &mut number,
                    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                    device,
                ));
                assert_eq!(number, sm / 10);
            }
            // Functions newer than 12.2 are missing, as in a driver of that version.
            assert!(!cuda.supports(Function::cuCtxCreate_v4));
            assert!(cuda.missing(Function::cuCtxCreate_v4).is_some());
            assert!(cuda.supports(Function::cuCtxCreate));
            // A version above the driver's own is not an error.
            let (mut newest, mut status) = (null_mut(), CUdriverProcAddressQueryResult(9));
            check(cuda.cuGetProcAddress(c"cuCtxCreate".as_ptr(), &mut newest, 13000, 0, &mut status));
            let own = cuda.get(Function::cuCtxCreate_v3).map(|address| address.as_ptr());
            assert_eq!((Some(newest), status.0), (own, 0));
            let mut module = null_mut();
            let mut context = null_mut();
            check(cuda.cuCtxCreate(&mut context, 0, 0));
            let newer = c".version 8.3\n.target sm_52\n.address_size 64\n";
            expect(cuda.cuModuleLoadData(&mut module, newer.as_ptr().cast()), 222);
        }
    });
}

#[test]
fn invalid_settings() {
    if lacks_software() {
        return; // other drivers do not have these settings
    }
    in_child("process::invalid_settings", &[("CUDA_SOFT_DEVICES", "sm_31")], || {
        assert_eq!(codes()[..2], [101, 3]);
    });
}

#[test]
fn ignored_settings() {
    if lacks_software() {
        return; // other drivers do not have these settings
    }
    let variables = [
        ("CUDA_SOFT_ENGINE", "compile"),
        ("CUDA_SOFT_THREADS", "many"),
        ("CUDA_SOFT_SLACK", "16"),
        ("CUDA_SOFT_MEMORY", "0"),
    ];
    let written = in_child("process::ignored_settings", &variables, || {
        assert_eq!(codes(), [0, 0, 201, 0]);
        assert_eq!(codes(), [0, 0, 201, 0]);
    });
    if let Some(text) = written {
        let count = |sentence: &str| text.matches(sentence).count();
        let engine = "CUDA_SOFT_ENGINE=compile is ignored: it is not auto, compiled or interpreter\n";
        assert_eq!(count(engine), 1, "{text}");
        for variable in ["CUDA_SOFT_THREADS=many", "CUDA_SOFT_MEMORY=0"] {
            let sentence = format!("{variable} is ignored: it is not a positive number\n");
            assert_eq!(count(&sentence), 1, "{text}");
        }
        assert_eq!(count("is ignored"), 3, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn the_log_can_be_read_after_a_fork() {
    if lacks_software() {
        return;
    }
    in_child("process::the_log_can_be_read_after_a_fork", &[], || {
        assert_eq!(codes(), [0, 0, 201, 0]);
        // SAFETY: the child only calls `_exit` and the driver, which then takes no lock that another thread may have
        // held.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut messages = 0;
            let code = unsafe { library().cuLogsCurrent(&mut messages, 0) }.0;
            unsafe { libc::_exit(if code == 0 { 42 } else { 1 }) };
        }
        let mut status = 0;
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 42));
    });
}
