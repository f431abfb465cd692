//! Tests of `cuGetProcAddress` over all functions and versions: it returns the driver's own exports, and chooses the
//! newest one that is not newer than the requested version.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver, driver_version};
use crate::{child, is};

use cuda_driver::sys::CUdriverProcAddressQueryResult as Status;

/// Returns the address and the status for a name.
fn ask(name: &CStr, version: i32, flags: u64) -> (usize, u32) {
    let mut pointer = ptr::dangling_mut::<c_void>();
    let mut status = Status(0x7777);
    crate::ok!(cuGetProcAddress(
        name.as_ptr(),
        &raw mut pointer,
        version,
        flags,
        &raw mut status
    ));
    (pointer.addr(), status.0)
}

/// Returns the address of an export; 0 if the driver lacks it.
fn export(function: Function) -> usize {
    default_library()
        .symbol(function.symbol())
        .map_or(0, |address| address.addr().get())
}

/// Returns all functions that a driver of this version has, by their base names.
fn bases(version: i32) -> BTreeMap<CString, Vec<Function>> {
    let mut bases = BTreeMap::<_, Vec<_>>::new();
    for &function in Function::ALL {
        if i64::from(function.since()) <= i64::from(version) {
            let base = CString::new(function.base()).expect("no NUL byte in a name");
            bases.entry(base).or_default().push(function);
        }
    }
    bases
}

/// Returns the expected address and status: those of the newest of these functions that is not newer than the version,
/// or 0 and `CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT` (2) if all are newer.
fn newest(functions: impl Iterator<Item = Function>, version: i32) -> (usize, u32) {
    functions
        .filter(|function| i64::from(function.since()) <= i64::from(version))
        .max_by_key(|function| function.since())
        .map_or((0, 2), |function| (export(function), 0))
}

#[test]
fn a_driver_exports_the_functions_of_its_version() {
    let version = driver_version();
    let mut c = Codes::new();
    for &function in Function::ALL {
        let known = i64::from(function.since()) <= i64::from(version);
        c.that((export(function) != 0) == known, || {
            format!(
                "{} of CUDA {}: {:#x}",
                function.name(),
                function.since(),
                export(function)
            )
        });
    }
}

#[test]
fn every_name_at_every_version() {
    let version = driver_version();
    let mut c = Codes::new();
    let bases = bases(version);
    let versions: BTreeSet<i32> = bases.values().flatten().map(|f| f.since().cast_signed()).collect();
    let per_thread = |function: &Function| function.stream_mode() == StreamMode::PerThread;
    let mut asked = 0;
    for (base, functions) in &bases {
        let plain = || functions.iter().copied().filter(|f| !per_thread(f));
        let own = || functions.iter().copied().filter(per_thread);
        for &at in &versions {
            let expected = newest(plain(), at);
            // With flag 2, a name that has per-thread variants never returns its plain function, not even at versions
            // from before the first such variant.
            let of_thread = if own().next().is_some() {
                newest(own(), at)
            } else {
                expected
            };
            for (flags, expected) in [(0, expected), (1, expected), (2, of_thread)] {
                let got = ask(base, at, flags);
                c.that(got == expected, || {
                    format!("{base:?} at {at}, flags {flags}: {got:x?}, expected {expected:x?}")
                });
                asked += 1;
            }
        }
    }
    c.that(asked > 30_000, || format!("only {asked} requests"));
}

#[test]
fn addresses_do_not_change_with_the_initialisation() {
    child!("addresses_do_not_change_with_the_initialisation", {
        let version = driver_version();
        let all = || -> Vec<_> { bases(version).keys().map(|base| ask(base, version, 0)).collect() };
        let before = all();
        driver();
        assert_eq!(before, all());
    });
}

#[test]
fn unusual_versions_and_flags() {
    let version = driver_version();
    let mut c = Codes::new();
    // The driver treats version -1 as newer than every function.
    for base in [c"cuInit", c"cuMemAlloc", c"cuMemcpyHtoD"] {
        let (got, expected) = (ask(base, -1, 0), ask(base, version, 0));
        c.that(got == expected && got.1 == 0, || {
            format!("{base:?} at -1: {got:x?}, expected {expected:x?}")
        });
    }
    // Both flags together choose the per-thread function.
    let (both, per_thread) = (ask(c"cuMemcpyHtoD", version, 3), ask(c"cuMemcpyHtoD", version, 2));
    c.that(both == per_thread, || {
        format!("flags 3: {both:x?}, expected {per_thread:x?}")
    });
    // A function that is newer than the version is no error, even if the caller does not ask for the status.
    for (base, at) in [(c"cuMemAllocAsync", 11000), (c"cuInit", 1000)] {
        let mut pointer = ptr::dangling_mut::<c_void>();
        is!(
            c,
            0,
            cuGetProcAddress(base.as_ptr(), &raw mut pointer, at, 0, ptr::null_mut())
        );
        c.that(pointer.is_null(), || {
            format!("{base:?} at {at}: {pointer:?}, expected null")
        });
    }
    // Functions of the profiler are found, although `cuda.h` does not declare them.
    for base in [c"cuProfilerStart", c"cuProfilerStop"] {
        let (pointer, status) = ask(base, version, 0);
        c.that(pointer != 0 && status == 0, || format!("{base:?}: status {status}"));
    }
}
