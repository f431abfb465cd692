//! Tests of `cuGetProcAddress`: base names, versions and default-stream modes.

use std::ffi::{CStr, c_void};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver_version};
use crate::is;

use cuda_driver::sys::CUdriverProcAddressQueryResult as Status;

/// Returns the address and the status for a name; expects the code `CUDA_SUCCESS`.
fn ask(c: &mut Codes, name: &CStr, version: i32, flags: u64) -> (*mut c_void, u32) {
    let mut pointer = ptr::null_mut();
    let mut status = Status(0x7777);
    // SAFETY: the name is NUL-terminated and both outputs are valid for the writes.
    let code = unsafe { cuGetProcAddress(name.as_ptr(), &raw mut pointer, version, flags, &raw mut status) };
    c.is(0, &format!("cuGetProcAddress({name:?}, {version}, {flags})"), code.0);
    (pointer, status.0)
}

#[test]
fn versions_choose_the_variant() {
    let version = driver_version();
    let mut c = Codes::new();
    let (old, status) = ask(&mut c, c"cuMemAlloc", 2000, 0);
    c.that(!old.is_null() && status == 0, || {
        format!("cuMemAlloc at 2.0: {old:?}, status {status}")
    });
    let (new, _) = ask(&mut c, c"cuMemAlloc", 3020, 0);
    let (newest, _) = ask(&mut c, c"cuMemAlloc", version, 0);
    c.that(old != new && new == newest, || {
        "cuMemAlloc: 2.0 and 3.2 have one address, or 3.2 and the driver's version have two".to_owned()
    });
}

#[test]
fn unknown_names_and_versions() {
    let version = driver_version();
    let mut c = Codes::new();
    for name in [c"cuNoSuchFunction", c"", c"cuMemAlloc_v2"] {
        let (pointer, status) = ask(&mut c, name, version, 0);
        c.that(pointer.is_null() && status == 1, || {
            format!("{name:?}: {pointer:?}, status {status}, expected null and 1")
        });
    }
    let (pointer, status) = ask(&mut c, c"cuMemAllocAsync", 11000, 0);
    c.that(pointer.is_null() && status == 2, || {
        format!("cuMemAllocAsync at 11.0: {pointer:?}, status {status}, expected null and 2")
    });
    let (pointer, status) = ask(&mut c, c"cuInit", 0, 0);
    c.that(pointer.is_null() && status == 2, || {
        format!("cuInit at version 0: {pointer:?}, status {status}, expected null and 2")
    });

    // The status may be NULL.
    let mut pointer = ptr::dangling_mut::<c_void>();
    is!(
        c,
        0,
        cuGetProcAddress(
            c"cuNoSuchFunction".as_ptr(),
            &raw mut pointer,
            version,
            0,
            ptr::null_mut()
        )
    );
    c.that(pointer.is_null(), || {
        "the output for an unknown name is not null".to_owned()
    });
}

#[test]
fn a_version_above_the_drivers_own() {
    let version = driver_version();
    if version < 13000 {
        return crate::common::needs("a driver of CUDA 13.0 or later, which refuses versions above its own");
    }
    let mut c = Codes::new();
    for name in [c"cuInit", c"cuMemAlloc", c"cuNoSuchFunction"] {
        let mut pointer = ptr::dangling_mut::<c_void>();
        let mut status = Status(0x7777);
        is!(
            c,
            1,
            cuGetProcAddress(name.as_ptr(), &raw mut pointer, version + 10, 0, &raw mut status)
        );
        c.that(pointer == ptr::dangling_mut() && status.0 == 0x7777, || {
            format!("{name:?}: an output was written")
        });
    }
}

#[test]
fn flags() {
    let version = driver_version();
    let mut c = Codes::new();
    let (plain, _) = ask(&mut c, c"cuMemcpyHtoD", version, 0);
    let (legacy, _) = ask(&mut c, c"cuMemcpyHtoD", version, 1);
    let (per_thread, _) = ask(&mut c, c"cuMemcpyHtoD", version, 2);
    c.that(plain == legacy, || {
        "flag 1 does not choose the plain function".to_owned()
    });
    c.that(!per_thread.is_null() && per_thread != plain, || {
        "flag 2 does not choose a function of its own".to_owned()
    });
    // For a function without a per-thread variant, flag 2 chooses the plain one.
    let (init, _) = ask(&mut c, c"cuInit", version, 2);
    let (same, _) = ask(&mut c, c"cuInit", version, 0);
    c.that(init == same, || "flag 2 chooses another cuInit".to_owned());
    // A version from before the first per-thread variant has none.
    let (early, status) = ask(&mut c, c"cuMemcpyHtoD", 6000, 2);
    c.that(early.is_null() && status == 2, || {
        format!("cuMemcpyHtoD at 6.0 with flag 2: {early:?}, status {status}, expected null and 2")
    });

    let mut pointer = ptr::dangling_mut::<c_void>();
    for flags in [4, 99] {
        is!(
            c,
            1,
            cuGetProcAddress(c"cuInit".as_ptr(), &raw mut pointer, version, flags, ptr::null_mut())
        );
        c.that(pointer == ptr::dangling_mut(), || {
            format!("flags {flags}: the output was written")
        });
    }
}

#[test]
fn the_first_variant_returns_a_code_instead_of_a_status() {
    let version = driver_version();
    let mut c = Codes::new();
    let untouched = ptr::without_provenance_mut(0x77);
    let first = |name: &CStr, version: i32| {
        let mut pointer: *mut c_void = untouched;
        // SAFETY: the name is NUL-terminated and the output is valid for the write.
        let code = unsafe {
            DEFAULT
                .legacy()
                .cuGetProcAddress(name.as_ptr(), &raw mut pointer, version, 0)
        };
        (code.0, pointer)
    };
    let (found, _) = ask(&mut c, c"cuMemAlloc", version, 0);
    let (code, pointer) = first(c"cuMemAlloc", version);
    c.is(0, "cuGetProcAddress of CUDA 11.3, cuMemAlloc", code);
    c.that(pointer == found, || "the variants differ on cuMemAlloc".to_owned());
    for (name, version) in [
        (c"cuNoSuchThing", version),
        (c"cuMemAlloc_v2", version),
        (c"cuInit", 1000),
    ] {
        let (code, pointer) = first(name, version);
        c.is(
            500,
            &format!("cuGetProcAddress of CUDA 11.3, {name:?} at {version}"),
            code,
        );
        c.that(pointer == untouched, || format!("{name:?}: the output was written"));
    }
}
