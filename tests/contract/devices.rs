//! Tests of device queries with valid and invalid arguments.

use std::ffi::{CStr, c_int};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver};
use crate::{is, ok};

fn attribute(which: CUdevice_attribute) -> c_int {
    let mut value = -1;
    ok!(cuDeviceGetAttribute(&raw mut value, which, 0));
    value
}

#[test]
fn count_and_handles() {
    driver();
    let mut c = Codes::new();
    let (mut count, mut device) = (0, -7);
    is!(c, 0, cuDeviceGetCount(&raw mut count));
    c.that(count >= 1, || format!("{count} devices"));
    is!(c, 1, cuDeviceGetCount(ptr::null_mut()));
    for ordinal in 0..count {
        is!(c, 0, cuDeviceGet(&raw mut device, ordinal));
        c.that(device == ordinal, || {
            format!("device {ordinal} has the handle {device}")
        });
    }
    is!(c, 101, cuDeviceGet(&raw mut device, count));
    is!(c, 101, cuDeviceGet(&raw mut device, -1));
    is!(c, 1, cuDeviceGet(ptr::null_mut(), 0));
}

#[test]
fn missing_devices() {
    driver();
    let mut c = Codes::new();
    let mut name = [0; 16];
    let (mut bytes, mut number, mut uuid, mut context) = (0_usize, 0, CUuuid { bytes: [0; 16] }, ptr::null_mut());
    let (mut flags, mut active) = (0, 0);
    for device in [-1, 99] {
        is!(c, 101, cuDeviceGetName(name.as_mut_ptr(), 16, device));
        is!(c, 101, cuDeviceTotalMem(&raw mut bytes, device));
        is!(c, 101, cuDeviceGetUuid(&raw mut uuid, device));
        is!(
            c,
            101,
            cuDeviceGetAttribute(
                &raw mut number,
                CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                device
            )
        );
        is!(c, 101, cuCtxCreate(&raw mut context, 0, device));
        is!(c, 101, cuDevicePrimaryCtxRetain(&raw mut context, device));
        is!(c, 101, cuDevicePrimaryCtxRelease(device));
        is!(
            c,
            101,
            cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active)
        );
    }
}

#[test]
fn null_outputs() {
    driver();
    let mut c = Codes::new();
    is!(c, 1, cuDeviceGetName(ptr::null_mut(), 16, 0));
    is!(c, 1, cuDeviceTotalMem(ptr::null_mut(), 0));
    is!(c, 1, cuDeviceGetUuid(ptr::null_mut(), 0));
    is!(
        c,
        1,
        cuDeviceGetAttribute(ptr::null_mut(), CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
    );
    is!(c, 1, cuDriverGetVersion(ptr::null_mut()));
}

#[test]
fn name_and_size() {
    driver();
    let mut c = Codes::new();
    let mut name = [0x7f; 64];
    is!(c, 0, cuDeviceGetName(name.as_mut_ptr(), 64, 0));
    // SAFETY: the driver terminates the name within the 64 bytes of the buffer.
    let long = unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned();
    c.that(!long.is_empty(), || "an empty name".to_owned());

    // A short buffer receives the beginning, NUL-terminated.
    let mut short = [0x7f; 5];
    is!(c, 0, cuDeviceGetName(short.as_mut_ptr(), 5, 0));
    let start: Vec<u8> = short.iter().map(|b| b.to_ne_bytes()[0]).collect();
    c.that(start[..4] == long.as_bytes()[..4] && start[4] == 0, || {
        format!("{start:?} of {long:?}")
    });

    let mut bytes = 0;
    is!(c, 0, cuDeviceTotalMem(&raw mut bytes, 0));
    c.that(bytes >= 256 << 20, || format!("{bytes} bytes of memory"));
    let mut uuid = CUuuid { bytes: [0; 16] };
    is!(c, 0, cuDeviceGetUuid(&raw mut uuid, 0));
    c.that(uuid.bytes.iter().any(|b| *b != 0), || "a UUID of zeros".to_owned());
}

#[test]
fn attributes_that_programs_rely_on() {
    driver();
    let mut c = Codes::new();
    type A = CUdevice_attribute;
    let exact = [
        (A::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
        (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
        (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fff_ffff),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
        (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535),
        (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152),
        (A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536),
        (A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
    ];
    for (which, expected) in exact {
        let value = attribute(which);
        c.that(value == expected, || {
            format!("{which:?} is {value}, expected {expected}")
        });
    }
    let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    c.that((5..=20).contains(&major), || format!("compute capability {major}"));
    let processors = attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    c.that(processors >= 1, || format!("{processors} multiprocessors"));
}

#[test]
fn pci_addresses() {
    driver();
    let mut c = Codes::new();
    let mut id = [0x7f_i8; 32];
    let mut device = -1;
    // An address like `0000:00:00.0` and a NUL byte are 13 bytes.
    is!(c, 0, cuDeviceGetPCIBusId(id.as_mut_ptr().cast(), 13, 0));
    // SAFETY: the driver terminates the text within the 13 bytes of the buffer.
    let text = unsafe { CStr::from_ptr(id.as_ptr().cast()) }.to_owned();
    c.that(text.count_bytes() == 12, || format!("{text:?}"));
    is!(c, 0, cuDeviceGetByPCIBusId(&raw mut device, text.as_ptr()));
    c.that(device == 0, || format!("device {device}"));
    let lower = std::ffi::CString::new(text.to_bytes().to_ascii_lowercase()).expect("no NUL byte");
    is!(c, 0, cuDeviceGetByPCIBusId(&raw mut device, lower.as_ptr()));
    // Without the domain.
    let short = &text.as_bytes_with_nul()[5..];
    is!(c, 0, cuDeviceGetByPCIBusId(&raw mut device, short.as_ptr().cast()));
    // Numbers may have spaces before them, a sign and a prefix; nothing may follow the last one.
    let text = text.to_str().expect("an ASCII text");
    let (domain, rest) = text.split_once(':').expect("a domain");
    let (bus, slot) = rest.split_once(':').expect("a bus");
    for (same, code) in [
        (format!(" {text}"), 0),
        (format!("0000{text}"), 0),
        (format!("+0x{domain}:0x{bus}:0x{slot}"), 0),
        (format!("{text} "), 1),
        (format!("{text}xyz"), 1),
        (format!("{domain}:{bus}:0:0"), 1),
    ] {
        let same = std::ffi::CString::new(same).expect("no NUL byte");
        device = -1;
        is!(c, code, cuDeviceGetByPCIBusId(&raw mut device, same.as_ptr()));
        c.that(device == if code == 0 { 0 } else { -1 }, || {
            format!("{same:?}: device {device}")
        });
    }
    for (wrong, code) in [
        (c"junk", 1),
        (c"", 1),
        (c"FE:00", 1),
        (c"0000:FE:00.0", 101),
        (c"FE:00.0", 101),
        // `0x` without digits is read as 0.
        (c"0000:FE:00.0x", 101),
    ] {
        is!(c, code, cuDeviceGetByPCIBusId(&raw mut device, wrong.as_ptr()));
    }
    // A buffer that is too short receives the beginning, and the call fails.
    is!(c, 1, cuDeviceGetPCIBusId(id.as_mut_ptr().cast(), 4, 0));
    c.that(id[..4] == [0x30, 0x30, 0x30, 0], || format!("{:?}", &id[..4]));
}

#[test]
fn unknown_attributes() {
    driver();
    let mut c = Codes::new();
    let mut value = 0;
    // Attributes of a later CUDA version than the driver's are unknown.
    for (number, since) in [(148, 13010), (151, 13030), (149, 13040), (161, 13040), (159, 13050)] {
        let code = u32::from(crate::common::driver_version() < since);
        is!(
            c,
            code,
            cuDeviceGetAttribute(&raw mut value, CUdevice_attribute(number), 0)
        );
    }
    is!(c, 1, cuDeviceGetAttribute(&raw mut value, CUdevice_attribute(0), 0));
    is!(
        c,
        1,
        cuDeviceGetAttribute(&raw mut value, CUdevice_attribute(100_000), 0)
    );
}
