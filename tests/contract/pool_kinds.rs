//! Tests of pools of host memory and managed memory, of pools that are exported and imported, and of the attribute that
//! makes operations on an address synchronous.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::{CUmemAllocationType as Type, CUmemLocationType as Location, *};

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version, is_software, needs};
use crate::{arguments, is, ok};

/// Returns true if the driver has the pools of CUDA 13; otherwise reports that the test needs such a driver.
fn has_kinds() -> bool {
    let has = driver_version() >= 13000;
    if !has {
        needs("a driver of CUDA 13.0 or later");
    }
    has
}

fn location(kind: Location) -> CUmemLocation {
    CUmemLocation {
        type_: kind,
        ..Default::default()
    }
}

fn props(kind: Location, memory: Type) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: memory,
        location: location(kind),
        ..Default::default()
    }
}

fn stream() -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    stream
}

fn attribute(address: CUdeviceptr, attribute: CUpointer_attribute) -> u64 {
    let mut value = 0_u64;
    ok!(cuPointerGetAttribute(
        (&raw mut value).cast::<c_void>(),
        attribute,
        address
    ));
    value
}

#[test]
fn locations_and_types_of_pools() {
    if !has_kinds() {
        return;
    }
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (none, pinned, managed) = (Type(0), Type(1), Type(2));
    // The number of a kind of location, the type of memory, and the expected codes: of `cuMemPoolCreate`, and of both
    // queries.
    for (place, memory, made, asked) in [
        (0, none, 1, 1),
        (0, pinned, 1, 1),
        (0, managed, 0, 0),
        (1, none, 1, 1),
        (1, pinned, 0, 0),
        (1, managed, 0, 0),
        (2, none, 1, 1),
        (2, pinned, 0, 0),
        (2, managed, 0, 0),
        (3, pinned, 0, 0),
        (3, managed, 0, 0),
        (4, none, 1, 801),
        (4, pinned, 1, 801),
        (4, managed, 0, 801),
    ] {
        let (mut pool, mut first) = (ptr::null_mut(), ptr::null_mut());
        let props = props(Location(place), memory);
        let mut at = location(Location(place));
        let label = format!("location {place}, {memory:?}");
        // SAFETY: the pointers are to this test's variables.
        let codes = unsafe {
            (
                cuMemPoolCreate(&raw mut pool, &raw const props).0,
                cuMemGetDefaultMemPool(&raw mut first, &raw mut at, memory).0,
                cuMemGetMemPool(&raw mut first, &raw mut at, memory).0,
            )
        };
        c.that(codes == (made, asked, asked), || {
            format!("{label}: {codes:?}, expected {made} and twice {asked}")
        });
        if made == 0 {
            is!(c, 0, cuMemPoolDestroy(pool));
        }
    }
}

/// Allocates from a pool of host memory or managed memory: a kernel writes the memory, and the host reads it. The
/// attribute of the memory's type must be `memory_type`.
fn check_host_access(kind: Location, memory: Type, memory_type: u64) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let (stream, props) = (stream(), props(kind, memory));
    let (mut pool, mut address) = (ptr::null_mut(), 0);
    ok!(cuMemPoolCreate(&raw mut pool, &raw const props));
    let mut device = location(Location::CU_MEM_LOCATION_TYPE_DEVICE);
    let mut flags = CUmemAccess_flags(9);
    ok!(cuMemPoolGetAccess(&raw mut flags, pool, &raw mut device));
    assert_eq!(flags.0, 0);
    let access = CUmemAccessDesc {
        location: device,
        flags: CUmemAccess_flags(3),
    };
    is!(c, 0, cuMemPoolSetAccess(pool, &raw const access, 1));
    ok!(cuMemAllocFromPoolAsync(&raw mut address, 4096, pool, stream));
    ok!(cuMemsetD8Async(address, 7, 4096, stream));
    ok!(cuStreamSynchronize(stream));
    gpu.launch(write, [1; 3], [1; 3], 0, &mut arguments![address + 8, 4711_u32]);
    // SAFETY: the host can read the memory, and only this test uses it.
    let words = unsafe { std::slice::from_raw_parts(address as *const u32, 4) };
    assert_eq!(words, [0x0707_0707, 0x0707_0707, 4711, 0x0707_0707]);
    type Attribute = CUpointer_attribute;
    let found_type = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    assert_eq!(found_type, memory_type);
    let host = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER);
    assert_eq!(host, address);
    let context = attribute(address, Attribute::CU_POINTER_ATTRIBUTE_CONTEXT);
    assert_eq!(context, 0);
    let mut used = 0_u64;
    ok!(cuMemPoolGetAttribute(
        pool,
        CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        (&raw mut used).cast::<c_void>()
    ));
    assert_eq!(used, 4096);
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuMemPoolDestroy(pool));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn pools_of_the_host() {
    if has_kinds() {
        check_host_access(
            Location::CU_MEM_LOCATION_TYPE_HOST,
            Type::CU_MEM_ALLOCATION_TYPE_PINNED,
            1,
        );
    }
}

/// The host keeps its access to a pool of host memory. A device has none at first, and copies and fills, which run on
/// it, fail.
#[test]
fn host_memory_without_access_of_the_device() {
    if !has_kinds() {
        return;
    }
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    for kind in [
        Location::CU_MEM_LOCATION_TYPE_HOST,
        Location::CU_MEM_LOCATION_TYPE_HOST_NUMA,
    ] {
        let props = props(kind, Type::CU_MEM_ALLOCATION_TYPE_PINNED);
        let (mut pool, mut address, mut word) = (ptr::null_mut(), 0, 5_u32);
        ok!(cuMemPoolCreate(&raw mut pool, &raw const props));
        for (flags, code) in [(0, 801), (1, 801), (3, 0)] {
            let access = CUmemAccessDesc {
                location: props.location,
                flags: CUmemAccess_flags(flags),
            };
            is!(c, code, cuMemPoolSetAccess(pool, &raw const access, 1));
        }
        ok!(cuMemAllocFromPoolAsync(&raw mut address, 4096, pool, stream));
        ok!(cuStreamSynchronize(stream));
        if is_software() {
            needs("a driver that checks the access of a device to a pool of the host");
        } else {
            let host = (&raw mut word).cast::<c_void>();
            is!(c, 1, cuMemcpyDtoH(host, address, 4));
            is!(c, 1, cuMemcpyHtoD(address, host, 4));
            is!(c, 1, cuMemsetD8(address, 7, 4));
        }
        is!(c, 0, cuMemFreeAsync(address, stream));
        is!(c, 0, cuStreamSynchronize(stream));
        is!(c, 0, cuMemPoolDestroy(pool));
    }
    ok!(cuStreamDestroy(stream));
}

#[test]
fn pools_of_managed_memory() {
    if has_kinds() {
        check_host_access(
            Location::CU_MEM_LOCATION_TYPE_HOST,
            Type::CU_MEM_ALLOCATION_TYPE_MANAGED,
            2,
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pools_are_exported_and_imported() {
    use std::os::fd::{FromRawFd, OwnedFd};

    let gpu = Gpu::new();
    let mut c = Codes::new();
    let descriptor = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let mut props = props(
        Location::CU_MEM_LOCATION_TYPE_DEVICE,
        Type::CU_MEM_ALLOCATION_TYPE_PINNED,
    );
    props.handleTypes = descriptor;
    let (mut pool, mut imported, stream) = (ptr::null_mut(), ptr::null_mut(), stream());
    ok!(cuMemPoolCreate(&raw mut pool, &raw const props));
    let mut fd = -1_i32;
    let out = (&raw mut fd).cast::<c_void>();
    ok!(cuMemPoolExportToShareableHandle(out, pool, descriptor, 0));
    // SAFETY: the export opened this descriptor for its caller.
    let exported = unsafe { OwnedFd::from_raw_fd(fd) };
    let number = fd as usize as *mut c_void;
    ok!(cuMemPoolImportFromShareableHandle(
        &raw mut imported,
        number,
        descriptor,
        0
    ));
    drop(exported);
    // The handle of descriptor 0 is a null pointer, which the driver refuses even if the descriptor is open.
    let mut other = ptr::null_mut();
    is!(
        c,
        1,
        cuMemPoolImportFromShareableHandle(&raw mut other, ptr::null_mut(), descriptor, 0)
    );
    let (mut first, mut second) = (0, 0);
    ok!(cuMemAllocFromPoolAsync(&raw mut first, 4096, pool, stream));
    ok!(cuMemsetD32Async(first, 41, 1024, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(
        attribute(first, CUpointer_attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES),
        1
    );
    let mut data = CUmemPoolPtrExportData::default();
    ok!(cuMemPoolExportPointer(&raw mut data, first));
    // Pointers of a pool can be exported only after the pool was exported.
    let (mut hidden, mut address) = (ptr::null_mut(), 0);
    ok!(cuMemPoolCreate(&raw mut hidden, &raw const props));
    ok!(cuMemAllocFromPoolAsync(&raw mut address, 64, hidden, stream));
    is!(
        c,
        1,
        cuMemPoolExportPointer(&mut CUmemPoolPtrExportData::default(), address)
    );
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuMemPoolDestroy(hidden));
    // A pointer can be imported only into an import of its own pool.
    let mut strange = ptr::null_mut();
    ok!(cuMemPoolCreate(&raw mut hidden, &raw const props));
    ok!(cuMemPoolExportToShareableHandle(
        (&raw mut fd).cast(),
        hidden,
        descriptor,
        0
    ));
    // SAFETY: the export opened this descriptor for its caller.
    let exported = unsafe { OwnedFd::from_raw_fd(fd) };
    let number = fd as usize as *mut c_void;
    ok!(cuMemPoolImportFromShareableHandle(
        &raw mut strange,
        number,
        descriptor,
        0
    ));
    drop(exported);
    for wrong in [hidden, strange, pool] {
        is!(c, 1, cuMemPoolImportPointer(&raw mut second, wrong, &raw mut data));
    }
    is!(c, 0, cuMemPoolDestroy(strange));
    is!(c, 0, cuMemPoolDestroy(hidden));
    ok!(cuMemPoolImportPointer(&raw mut second, imported, &raw mut data));
    // The allocation and its import are the same memory at two addresses.
    assert_ne!(first, second);
    assert_eq!(gpu.read::<u32>(second, 1024), [41; 1024]);
    gpu.write(second + 64, &[43_u32]);
    assert_eq!(gpu.read::<u32>(first + 64, 1), [43]);
    let mut more = 0;
    is!(c, 1, cuMemAllocFromPoolAsync(&raw mut more, 64, imported, stream));
    is!(c, 0, cuMemFreeAsync(second, stream));
    is!(c, 0, cuMemFreeAsync(first, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuMemPoolDestroy(imported));
    is!(c, 0, cuMemPoolDestroy(pool));
    let plain = gpu.alloc(64);
    is!(c, 1, cuMemPoolExportPointer(&raw mut data, plain));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn the_sync_memops_attribute() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let sync = CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    let (memory, mut managed) = (gpu.alloc(64), 0);
    ok!(cuMemAllocManaged(&raw mut managed, 64, 1));
    assert_eq!(attribute(memory, sync), 0);
    assert_eq!(attribute(managed, sync), 1);
    let on = 1_u32;
    let value = (&raw const on).cast::<c_void>();
    is!(c, 0, cuPointerSetAttribute(value, sync, memory));
    assert_eq!(attribute(memory, sync), 1);
    ok!(cuMemFree(managed));
    // Memory that `cuMemMap` maps cannot have the attribute.
    let props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            ..Default::default()
        },
        ..Default::default()
    };
    let (mut handle, mut mapped, bytes) = (0, 0, 2 << 20);
    ok!(cuMemCreate(&raw mut handle, bytes, &raw const props, 0));
    ok!(cuMemAddressReserve(&raw mut mapped, bytes, 0, 0, 0));
    ok!(cuMemMap(mapped, bytes, 0, handle, 0));
    is!(c, 801, cuPointerSetAttribute(value, sync, mapped));
    assert_eq!(attribute(mapped, sync), 0);
    ok!(cuMemUnmap(mapped, bytes));
    ok!(cuMemAddressFree(mapped, bytes));
    ok!(cuMemRelease(handle));
}
