//! Tests of virtual memory: reserved addresses, memory without addresses, and mappings.

use std::ffi::c_void;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version, needs};
use crate::{arguments, child, is, ok};

const GRANULE: usize = 2 << 20;
type Location = CUmemLocationType;

fn on_device(ordinal: i32) -> CUmemLocation {
    let mut location = CUmemLocation {
        type_: Location::CU_MEM_LOCATION_TYPE_DEVICE,
        ..Default::default()
    };
    location.anonymous1.id = ordinal;
    location
}

fn props() -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: on_device(0),
        ..Default::default()
    }
}

#[cfg(target_os = "linux")]
fn shareable() -> CUmemAllocationProp {
    CUmemAllocationProp {
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        ..props()
    }
}

fn device_access(flags: u32) -> CUmemAccessDesc {
    CUmemAccessDesc {
        location: on_device(0),
        flags: CUmemAccess_flags(flags),
    }
}

fn create(bytes: usize) -> u64 {
    let (mut handle, props) = (0, props());
    ok!(cuMemCreate(&raw mut handle, bytes, &raw const props, 0));
    handle
}

fn reserve(bytes: usize) -> CUdeviceptr {
    let mut base = 0;
    ok!(cuMemAddressReserve(&raw mut base, bytes, 0, 0, 0));
    assert_eq!(base % GRANULE as u64, 0);
    base
}

/// Sets the access of device 0 to a range.
fn set_access(base: CUdeviceptr, bytes: usize, flags: u32) {
    let access = device_access(flags);
    ok!(cuMemSetAccess(base, bytes, &raw const access, 1));
}

/// Sets the access of device 0 to a range after all copies are done: one from pageable memory may continue after its
/// call returns.
///
/// A copy whose range loses its access fails with `CUDA_ERROR_LAUNCH_FAILED`, also for all other contexts of the
/// process.
fn lower_access(base: CUdeviceptr, bytes: usize, flags: u32) {
    ok!(cuCtxSynchronize());
    set_access(base, bytes, flags);
}

fn used() -> usize {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo(&raw mut free, &raw mut total));
    total - free
}

#[test]
fn addresses_are_reserved() {
    // Alone in its process: another thread could be given freed addresses immediately.
    child!("addresses_are_reserved", { addresses_are_reserved_alone() });
}

fn addresses_are_reserved_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut base = 0;
    for bytes in [0, 4096, 65536, GRANULE + 4096] {
        is!(c, 1, cuMemAddressReserve(&raw mut base, bytes, 0, 0, 0));
    }
    is!(c, 1, cuMemAddressReserve(&raw mut base, GRANULE, 3 * GRANULE, 0, 0));
    is!(c, 1, cuMemAddressReserve(&raw mut base, GRANULE, 0, 0, 1));
    is!(c, 2, cuMemAddressReserve(&raw mut base, 1 << 48, 0, 0, 0));
    is!(c, 1, cuMemAddressReserve(std::ptr::null_mut(), GRANULE, 0, 0, 0));
    for align in [0, 1, 4096, GRANULE, 2 * GRANULE, 1 << 30] {
        ok!(cuMemAddressReserve(&raw mut base, GRANULE, align, 0, 0));
        assert_eq!(base % align.max(GRANULE) as u64, 0);
        is!(c, 0, cuMemAddressFree(base, GRANULE));
    }
    let base = reserve(4 * GRANULE);
    is!(c, 1, cuMemAddressFree(base, GRANULE));
    is!(c, 1, cuMemAddressFree(base + GRANULE as u64, GRANULE));
    is!(c, 0, cuMemAddressFree(base, 4 * GRANULE));
    is!(c, 1, cuMemAddressFree(base, 4 * GRANULE));
    // The driver grants a requested address if it is free. The process itself may have taken these addresses since
    // they were freed, so the test tries others, too.
    let (mut base, mut there, mut elsewhere) = (base, 0, 0);
    for _ in 0..10 {
        ok!(cuMemAddressReserve(&raw mut there, 2 * GRANULE, 0, base, 0));
        if there == base {
            break;
        }
        ok!(cuMemAddressFree(there, 2 * GRANULE));
        base = reserve(2 * GRANULE);
        ok!(cuMemAddressFree(base, 2 * GRANULE));
    }
    assert_eq!(there, base);
    ok!(cuMemAddressReserve(&raw mut elsewhere, 2 * GRANULE, 0, base, 0));
    assert_ne!(elsewhere, base);
    is!(c, 1, cuMemAddressReserve(&raw mut there, GRANULE, 0, base + 4096, 0));
    is!(c, 0, cuMemAddressFree(base, 2 * GRANULE));
    is!(c, 0, cuMemAddressFree(elsewhere, 2 * GRANULE));
}

#[test]
fn memory_without_an_address() {
    // Alone in its process: another thread could be given a released handle.
    child!("memory_without_an_address", { memory_without_an_address_alone() });
}

fn memory_without_an_address_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (props, mut handle, mut granule) = (props(), 0, 7);
    let options = CUmemAllocationGranularity_flags;
    for option in 0..2 {
        ok!(cuMemGetAllocationGranularity(
            &raw mut granule,
            &raw const props,
            options(option)
        ));
        assert_eq!(granule, GRANULE);
    }
    is!(
        c,
        1,
        cuMemGetAllocationGranularity(&raw mut granule, &raw const props, options(2))
    );
    for bytes in [0, 1, 65536, GRANULE - 1, GRANULE + 65536] {
        is!(c, 1, cuMemCreate(&raw mut handle, bytes, &raw const props, 0));
    }
    is!(c, 2, cuMemCreate(&raw mut handle, 1 << 40, &raw const props, 0));
    is!(c, 1, cuMemCreate(&raw mut handle, GRANULE, &raw const props, 1));
    is!(c, 1, cuMemCreate(std::ptr::null_mut(), GRANULE, &raw const props, 0));
    is!(c, 1, cuMemCreate(&raw mut handle, GRANULE, std::ptr::null(), 0));
    let mut other = props;
    other.location = on_device(99);
    is!(c, 101, cuMemCreate(&raw mut handle, GRANULE, &raw const other, 0));
    other = props;
    other.location.type_ = Location::CU_MEM_LOCATION_TYPE_INVALID;
    is!(c, 1, cuMemCreate(&raw mut handle, GRANULE, &raw const other, 0));
    other = props;
    other.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_INVALID;
    is!(c, 1, cuMemCreate(&raw mut handle, GRANULE, &raw const other, 0));

    // A handle can be released only once.
    let handle = create(GRANULE);
    is!(c, 0, cuMemRelease(handle));
    is!(c, 1, cuMemRelease(handle));
    is!(c, 1, cuMemRelease(0));
}

#[test]
fn memory_without_an_address_counts_as_used() {
    // In a separate process, because other tests also allocate memory. A GPU counts the memory of all processes, so
    // another process may disturb an attempt.
    child!("memory_without_an_address_counts_as_used", {
        let _gpu = Gpu::new();
        let counts = |_| {
            let before = used();
            let handle = create(32 * GRANULE);
            let during = used();
            ok!(cuMemRelease(handle));
            during == before + 32 * GRANULE && used() == before
        };
        assert!(
            (0..20).any(counts),
            "in 20 attempts, the used memory never grew by the bytes of the memory and shrank by them"
        );
    });
}

#[test]
fn mappings_of_one_memory_share_its_contents() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let base = reserve(16 * GRANULE);
    let (first, second) = (create(4 * GRANULE), create(4 * GRANULE));
    let at = |n: usize| base + (n * GRANULE) as u64;
    ok!(cuMemMap(base, 4 * GRANULE, 0, first, 0));
    is!(c, 1, cuMemMap(base, 4 * GRANULE, 0, second, 0));
    is!(c, 1, cuMemMap(at(2), 4 * GRANULE, 0, second, 0));
    is!(c, 1, cuMemMap(at(4) + 65536, 4 * GRANULE, 0, second, 0));
    for (bytes, offset) in [(2 * GRANULE, 0), (2 * GRANULE, 2 * GRANULE), (8 * GRANULE, 0)] {
        is!(c, 801, cuMemMap(at(4), bytes, offset, second, 0));
    }
    is!(c, 1, cuMemMap(at(4), 0, 0, second, 0));
    is!(c, 1, cuMemMap(at(4), 4 * GRANULE, 0, second, 1));
    is!(c, 1, cuMemMap(at(4), 4 * GRANULE, 0, 0, 0));
    ok!(cuMemMap(at(4), 4 * GRANULE, 0, second, 0));
    ok!(cuMemMap(at(8), 4 * GRANULE, 0, first, 0));
    let access = device_access(3);
    is!(c, 1, cuMemSetAccess(base, 16 * GRANULE, &raw const access, 1));
    is!(c, 1, cuMemSetAccess(at(12), 4 * GRANULE, &raw const access, 1));
    is!(c, 1, cuMemSetAccess(base, 0, &raw const access, 1));
    set_access(base, 12 * GRANULE, 3);

    // A kernel's writes through one address are visible at the other.
    gpu.launch(write, [1; 3], [1; 3], 0, &mut arguments![at(1) + 8, 4711_u32]);
    assert_eq!(gpu.read::<u32>(at(9) + 8, 1), [4711]);
    assert_eq!(gpu.read::<u32>(at(5) + 8, 1), [0]);
    // Copies and fills continue from one mapping to the next.
    let pattern: Vec<u32> = (0..2 * GRANULE as u32 / 4).map(|i| i.wrapping_mul(77)).collect();
    gpu.write(at(3), &pattern);
    assert_eq!(gpu.read::<u32>(at(3), pattern.len()), pattern);
    assert_eq!(gpu.read::<u32>(at(11), GRANULE / 4), pattern[..GRANULE / 4]);
    ok!(cuMemcpyDtoD(at(6), at(3), 2 * GRANULE));
    assert_eq!(gpu.read::<u32>(at(6), pattern.len()), pattern);
    ok!(cuMemsetD32(at(3), 0x1234_5678, 2 * GRANULE / 4));
    assert_eq!(gpu.read::<u32>(at(11) + 4, 1), [0x1234_5678]);
    assert_eq!(gpu.read::<u32>(at(5) - 4, 1), [0x1234_5678]);
    assert_eq!(gpu.read::<u32>(at(5), 1), [0]);
    let mut word = 0_u32;
    let to = (&raw mut word).cast::<c_void>();
    is!(c, 1, cuMemcpyDtoH(to, at(13), 4));
    is!(c, 1, cuMemcpyDtoH(to, at(12) - 2, 4));
    is!(c, 1, cuMemFree(base));

    // A mapping does not need its handle.
    let mut again = 0;
    ok!(cuMemRetainAllocationHandle(
        &raw mut again,
        (at(9) + 12345) as *mut c_void
    ));
    assert_eq!(again, first);
    for handle in [first, again, second] {
        is!(c, 0, cuMemRelease(handle));
    }
    gpu.launch(write, [1; 3], [1; 3], 0, &mut arguments![at(8), 99_u32]);
    assert_eq!(gpu.read::<u32>(base, 1), [99]);
    is!(c, 1, cuMemAddressFree(base, 16 * GRANULE));
    is!(c, 1, cuMemUnmap(base, 2 * GRANULE));
    is!(c, 0, cuMemUnmap(base, 4 * GRANULE));
    is!(c, 1, cuMemcpyDtoH(to, base, 4));
    assert_eq!(gpu.read::<u32>(at(8), 1), [99]);
    is!(c, 0, cuMemUnmap(at(4), 8 * GRANULE));
    is!(c, 0, cuMemAddressFree(base, 16 * GRANULE));
}

#[test]
fn access_is_set_and_queried() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (base, handle) = (reserve(4 * GRANULE), create(2 * GRANULE));
    ok!(cuMemMap(base, 2 * GRANULE, 0, handle, 0));
    let (location, mut flags) = (on_device(0), 9);
    is!(c, 0, cuMemGetAccess(&raw mut flags, &raw const location, base));
    assert_eq!(flags, 0);
    let mut word = 5_u32;
    let host = (&raw mut word).cast::<c_void>();
    is!(c, 1, cuMemcpyHtoD(base, host, 4));
    is!(c, 1, cuMemsetD32(base, 5, 1));
    let access = device_access(3);
    is!(c, 1, cuMemSetAccess(base, 2 * GRANULE, &raw const access, 0));
    is!(c, 1, cuMemSetAccess(base, 2 * GRANULE, std::ptr::null(), 1));
    for flags in [2, 7] {
        let access = device_access(flags);
        is!(c, 1, cuMemSetAccess(base, 2 * GRANULE, &raw const access, 1));
    }
    set_access(base, 2 * GRANULE, 3);
    ok!(cuMemGetAccess(&raw mut flags, &raw const location, base + 5));
    assert_eq!(flags, 3);
    is!(c, 0, cuMemcpyHtoD(base + 4, host, 4));
    lower_access(base, 2 * GRANULE, 1);
    ok!(cuMemGetAccess(&raw mut flags, &raw const location, base));
    assert_eq!(flags, 1);
    // Copies and fills of read-only memory fail, and the context stays usable.
    let plain = gpu.alloc(4);
    is!(c, 1, cuMemcpyHtoD(base + 4, host, 4));
    is!(c, 1, cuMemcpyDtoD(base + 4, plain, 4));
    is!(c, 1, cuMemsetD32(base + 4, 7, 1));
    is!(c, 0, cuMemcpyDtoD(plain, base + 4, 4));
    assert_eq!(gpu.read::<u32>(plain, 1), [5]);
    word = 0;
    is!(c, 0, cuMemcpyDtoH(host, base + 4, 4));
    assert_eq!(word, 5);
    is!(c, 0, cuMemUnmap(base, 2 * GRANULE));
    // A new mapping has no access.
    ok!(cuMemMap(base, 2 * GRANULE, 0, handle, 0));
    is!(c, 0, cuMemGetAccess(&raw mut flags, &raw const location, base));
    assert_eq!(flags, 0);
    is!(c, 0, cuMemUnmap(base, 2 * GRANULE));
    is!(c, 0, cuMemRelease(handle));
    is!(c, 0, cuMemAddressFree(base, 4 * GRANULE));
}

/// Writes with a kernel at `offset` bytes from the start of a mapping that has this access, and expects `code` from
/// the synchronisation.
fn kernel_writes(access: u32, offset: usize, code: u32) {
    let gpu = Gpu::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let (base, handle) = (reserve(2 * GRANULE), create(GRANULE));
    ok!(cuMemMap(base, GRANULE, 0, handle, 0));
    if access != 0 {
        set_access(base, GRANULE, access);
    }
    let mut arguments = arguments![base + offset as u64, 1_u32];
    let mut pointers = arguments.pointers();
    ok!(cuLaunchKernel(
        write,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        std::ptr::null_mut(),
        pointers.as_mut_ptr(),
        std::ptr::null_mut()
    ));
    let mut c = Codes::new();
    is!(c, code, cuCtxSynchronize());
}

#[test]
fn kernel_without_access() {
    child!("kernel_without_access", { kernel_writes(0, 0, 700) });
}

#[test]
fn kernel_writes_to_read_only_memory() {
    child!("kernel_writes_to_read_only_memory", { kernel_writes(1, 0, 700) });
}

#[test]
fn kernel_writes_beyond_the_mapping() {
    child!("kernel_writes_beyond_the_mapping", { kernel_writes(3, GRANULE, 700) });
}

#[test]
fn kernel_reads_read_only_memory() {
    let gpu = Gpu::new();
    let read = gpu.kernel("faults.ptx", "fault_read");
    let (base, handle, out) = (reserve(GRANULE), create(GRANULE), gpu.alloc(4));
    ok!(cuMemMap(base, GRANULE, 0, handle, 0));
    set_access(base, GRANULE, 3);
    gpu.write(base + 64, &[1234_u32]);
    lower_access(base, GRANULE, 1);
    gpu.launch(read, [1; 3], [1; 3], 0, &mut arguments![base + 64, out]);
    assert_eq!(gpu.read::<u32>(out, 1), [1234]);
    ok!(cuMemUnmap(base, GRANULE));
    ok!(cuMemRelease(handle));
    ok!(cuMemAddressFree(base, GRANULE));
}

/// Copies with attributes to read-only memory fail, also those that read their source during the call.
#[test]
fn copies_with_attributes_to_read_only_memory() {
    if driver_version() < 13020 {
        return needs("a driver with cuMemcpyWithAttributesAsync, of CUDA 13.2 or later");
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (base, handle, from) = (reserve(GRANULE), create(GRANULE), gpu.alloc(64));
    ok!(cuMemMap(base, GRANULE, 0, handle, 0));
    set_access(base, GRANULE, 1);
    let mut stream = std::ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    for order in [
        CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
    ] {
        let mut attributes = CUmemcpyAttributes {
            srcAccessOrder: order,
            ..Default::default()
        };
        is!(
            c,
            1,
            cuMemcpyWithAttributesAsync(base, from, 64, &raw mut attributes, stream)
        );
    }
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy(stream));
    ok!(cuMemUnmap(base, GRANULE));
    ok!(cuMemRelease(handle));
    ok!(cuMemAddressFree(base, GRANULE));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_exported_and_imported() {
    use std::os::fd::{FromRawFd, OwnedFd};

    let gpu = Gpu::new();
    let mut c = Codes::new();
    let descriptor = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let (props, mut handle, mut fd) = (shareable(), 0, -1_i32);
    ok!(cuMemCreate(&raw mut handle, GRANULE, &raw const props, 0));
    let out = (&raw mut fd).cast::<c_void>();
    ok!(cuMemExportToShareableHandle(out, handle, descriptor, 0));
    assert!(fd >= 0);
    // SAFETY: the caller owns the descriptor that the export returned.
    let exported = unsafe { OwnedFd::from_raw_fd(fd) };
    is!(c, 1, cuMemExportToShareableHandle(out, handle, descriptor, 1));
    let none = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE;
    is!(c, 1, cuMemExportToShareableHandle(out, handle, none, 0));
    let plain = create(GRANULE);
    is!(c, 1, cuMemExportToShareableHandle(out, plain, descriptor, 0));
    let mut imported = 0;
    let number = fd as usize as *mut c_void;
    ok!(cuMemImportFromShareableHandle(&raw mut imported, number, descriptor));
    drop(exported);
    // Descriptor 0 would be passed as a null pointer, which the driver refuses even if descriptor 0 is open.
    let mut other = 0;
    is!(
        c,
        1,
        cuMemImportFromShareableHandle(&raw mut other, std::ptr::null_mut(), descriptor)
    );
    let base = reserve(2 * GRANULE);
    ok!(cuMemMap(base, GRANULE, 0, handle, 0));
    ok!(cuMemMap(base + GRANULE as u64, GRANULE, 0, imported, 0));
    set_access(base, 2 * GRANULE, 3);
    gpu.write(base + 4, &[0xCAFE_u32]);
    assert_eq!(gpu.read::<u32>(base + GRANULE as u64 + 4, 1), [0xCAFE]);
    ok!(cuMemUnmap(base, 2 * GRANULE));
    for handle in [handle, imported, plain] {
        ok!(cuMemRelease(handle));
    }
    ok!(cuMemAddressFree(base, 2 * GRANULE));
}

#[test]
fn pointer_attributes_of_mapped_addresses() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let base = reserve(4 * GRANULE);
    let at = base + GRANULE as u64 + 4096;
    let ask = |attribute: CUpointer_attribute| {
        let mut value = 0_u64;
        let to = (&raw mut value).cast::<c_void>();
        // SAFETY: no attribute in this test has more than 8 bytes.
        (unsafe { cuPointerGetAttribute(to, attribute, at) }.0, value)
    };
    type Attribute = CUpointer_attribute;
    let context = Attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    let mut range = (0, 0);
    assert_eq!(ask(context).0, 1, "nothing is mapped");
    is!(c, 500, cuMemGetAddressRange(&raw mut range.0, &raw mut range.1, at));
    let handle = create(2 * GRANULE);
    ok!(cuMemMap(base + GRANULE as u64, 2 * GRANULE, 0, handle, 0));
    is!(c, 500, cuMemGetAddressRange(&raw mut range.0, &raw mut range.1, at));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER), (1, 0));
    set_access(base + GRANULE as u64, 2 * GRANULE, 3);
    ok!(cuMemGetAddressRange(&raw mut range.0, &raw mut range.1, at));
    assert_eq!(range, (base + GRANULE as u64, 2 * GRANULE));
    for (attribute, value) in [
        (context, 0),
        (Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2),
        (Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at),
        (Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, 0),
        (Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0),
        (Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, base),
        (Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, 4 * GRANULE as u64),
        (Attribute::CU_POINTER_ATTRIBUTE_MAPPED, 1),
        (Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 3),
        (Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 2 * GRANULE as u64),
        (Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, base + GRANULE as u64),
    ] {
        let got = ask(attribute);
        c.that(got == (0, value), || {
            format!("{attribute:?}: {got:x?}, expected {value:x}")
        });
    }
    let mut props = CUmemAllocationProp::default();
    ok!(cuMemGetAllocationPropertiesFromHandle(&raw mut props, handle));
    assert_eq!(props.location.type_, Location::CU_MEM_LOCATION_TYPE_DEVICE);
    ok!(cuMemRelease(handle));
    // The memory stays mapped after the release: its handle can be queried and mapped again.
    is!(c, 0, cuMemGetAllocationPropertiesFromHandle(&raw mut props, handle));
    let free = reserve(2 * GRANULE);
    is!(c, 0, cuMemMap(free, 2 * GRANULE, 0, handle, 0));
    ok!(cuMemUnmap(free, 2 * GRANULE));
    ok!(cuMemAddressFree(free, 2 * GRANULE));
    ok!(cuMemUnmap(base + GRANULE as u64, 2 * GRANULE));
    ok!(cuMemAddressFree(base, 4 * GRANULE));
}
