//! Tests of virtual memory on the host, and of the host's access to virtual memory on the device.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, needs};
use crate::{arguments, child, is, ok};

const TWO_MIB: usize = 2 << 20;

fn location(kind: CUmemLocationType) -> CUmemLocation {
    CUmemLocation {
        type_: kind,
        ..Default::default()
    }
}

fn has(attribute: CUdevice_attribute) -> bool {
    let mut value = 0;
    // SAFETY: the output is live; a driver that does not know the attribute returns an error.
    let code = unsafe { cuDeviceGetAttribute(&raw mut value, attribute, 0) };
    code == CUresult::CUDA_SUCCESS && value == 1
}

#[test]
fn host_and_device_share_memory_of_a_numa_node() {
    // In a child process, because a host access that is not permitted ends the process.
    child!("host_and_device_share_memory_of_a_numa_node", {
        shared_with_the_host()
    });
}

fn shared_with_the_host() {
    let _gpu = Gpu::new();
    if !has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
        return needs("virtual memory on NUMA nodes of the host");
    }
    let node = location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA);
    let props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: node,
        ..Default::default()
    };
    let (mut handle, mut base) = (0, 0);
    ok!(cuMemCreate(&raw mut handle, TWO_MIB, &raw const props, 0));
    ok!(cuMemAddressReserve(&raw mut base, TWO_MIB, 0, 0, 0));
    ok!(cuMemMap(base, TWO_MIB, 0, handle, 0));
    let access = [CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, node.type_].map(|kind| CUmemAccessDesc {
        location: location(kind),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    });
    let (mut c, mut flags) = (Codes::new(), 7);
    is!(c, 0, cuMemGetAccess(&raw mut flags, &raw const node, base));
    assert_eq!(flags, 0);
    ok!(cuMemSetAccess(base, TWO_MIB, access.as_ptr(), access.len()));
    is!(c, 0, cuMemGetAccess(&raw mut flags, &raw const node, base));
    assert_eq!(flags, 3);
    ok!(cuMemsetD32(base, 7, TWO_MIB / 4));
    ok!(cuCtxSynchronize());
    let words = ptr::with_exposed_provenance_mut::<u32>(base as usize);
    // SAFETY: the memory is mapped for the host, and the device does not use it now.
    unsafe {
        assert_eq!(words.add(TWO_MIB / 4 - 1).read_volatile(), 7);
        words.add(1).write_volatile(12);
    }
    let mut read = [0_u32; 3];
    ok!(cuMemcpyDtoH(read.as_mut_ptr().cast(), base, 12));
    assert_eq!(read, [7, 12, 7]);
    let (mut kind, mut address) = (0_u32, 0_u64);
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    is!(c, 0, cuPointerGetAttribute((&raw mut kind).cast(), attribute, base));
    assert_eq!(kind, CUmemorytype::CU_MEMORYTYPE_HOST.0);
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER;
    is!(c, 0, cuPointerGetAttribute((&raw mut address).cast(), attribute, base));
    assert_eq!(address, base);
    is!(c, 0, cuMemHostGetDevicePointer(&raw mut address, words.cast(), 0));
    assert_eq!(address, base);
    let mut found = CUmemAllocationProp::default();
    ok!(cuMemGetAllocationPropertiesFromHandle(&raw mut found, handle));
    assert_eq!(found.location.type_, node.type_);
    ok!(cuMemUnmap(base, TWO_MIB));
    ok!(cuMemAddressFree(base, TWO_MIB));
    ok!(cuMemRelease(handle));
}

#[test]
fn copies_reach_memory_that_only_the_host_can_access() {
    // In a child process, because the kernel's access is a fault.
    child!("copies_reach_memory_that_only_the_host_can_access", {
        only_for_the_host()
    });
}

fn only_for_the_host() {
    let gpu = Gpu::new();
    if !has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
        return needs("virtual memory on NUMA nodes of the host");
    }
    let mut c = Codes::new();
    let props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA),
        ..Default::default()
    };
    let map = |flags| {
        let (mut handle, mut base) = (0, 0);
        ok!(cuMemCreate(&raw mut handle, TWO_MIB, &raw const props, 0));
        ok!(cuMemAddressReserve(&raw mut base, TWO_MIB, 0, 0, 0));
        ok!(cuMemMap(base, TWO_MIB, 0, handle, 0));
        let access = CUmemAccessDesc {
            location: props.location,
            flags,
        };
        ok!(cuMemSetAccess(base, TWO_MIB, &raw const access, 1));
        base
    };
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    let base = map(CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    let zeros = map(CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ);
    let words = ptr::with_exposed_provenance_mut::<u32>(base as usize);
    let device = gpu.upload(&[7_u32; 4]);
    let mut read = [9_u32; 4];
    let (to, from) = (read.as_mut_ptr(), [1_u32, 2, 3, 4]);
    // SAFETY: the memory is mapped for the host, and no copy uses it now.
    let host = |i| unsafe { words.add(i).read_volatile() };
    is!(c, 0, cuMemcpyHtoD(base, from.as_ptr().cast(), 16));
    is!(c, 0, cuCtxSynchronize());
    assert_eq!([host(0), host(3)], [1, 4]);
    is!(c, 0, cuMemcpyDtoD(base, device, 16));
    is!(c, 0, cuCtxSynchronize());
    assert_eq!([host(0), host(3)], [7, 7]);
    is!(c, 0, cuMemcpyDtoH(to.cast(), zeros, 16));
    assert_eq!(read, [0; 4]);
    is!(c, 0, cuMemcpyDtoDAsync(device, zeros, 16, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(device, 4), [0; 4]);
    let address = to.expose_provenance() as u64;
    is!(c, 0, cuMemcpy(address, base, 8));
    assert_eq!(read, [7, 7, 0, 0]);
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: base,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: to.cast(),
        WidthInBytes: 16,
        Height: 1,
        ..Default::default()
    };
    is!(c, 0, cuMemcpy2D(&raw const copy));
    assert_eq!(read, [7; 4]);
    // Fills and kernels access the memory from the device, which is not permitted.
    is!(c, 1, cuMemsetD8(base, 1, 16));
    is!(c, 1, cuMemsetD32Async(base, 1, 4, stream));
    let kernel = gpu.kernel("faults.ptx", "fault_write");
    let mut arguments = arguments![base, 1_u32];
    let mut pointers = arguments.pointers();
    let (pointers, none) = (pointers.as_mut_ptr(), ptr::null_mut());
    ok!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, pointers, none));
    is!(c, 700, cuCtxSynchronize());
    assert_eq!(host(0), 7);
}

#[test]
fn locations_that_virtual_memory_can_have() {
    let _gpu = Gpu::new();
    if !has(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
        return needs("virtual memory on NUMA nodes of the host");
    }
    let mut c = Codes::new();
    let mut handle = 0;
    // The location, and the codes for memory that cannot and that can be exported.
    for (kind, id, code, shared) in [
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0, 0, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 7, 0, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0, 0),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 99, 1, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, -1, 1, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, 1, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE, 0, 1, 1),
        (CUmemLocationType(5), 0, 1, 1),
    ] {
        let mut props = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            location: location(kind),
            ..Default::default()
        };
        props.location.anonymous1.id = id;
        let files = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        for (types, code) in [
            (CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE, code),
            (files, shared),
        ] {
            props.requestedHandleTypes = types;
            is!(c, code, cuMemCreate(&raw mut handle, TWO_MIB, &raw const props, 0));
            if code == 0 {
                let mut found = CUmemAllocationProp::default();
                ok!(cuMemGetAllocationPropertiesFromHandle(&raw mut found, handle));
                assert_eq!(found.location.type_, CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA);
                ok!(cuMemRelease(handle));
            }
        }
    }
}

#[test]
fn the_host_has_no_access_to_memory_of_the_device() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE),
        ..Default::default()
    };
    let (mut handle, mut base) = (0, 0);
    ok!(cuMemCreate(&raw mut handle, TWO_MIB, &raw const props, 0));
    ok!(cuMemAddressReserve(&raw mut base, TWO_MIB, 0, 0, 0));
    ok!(cuMemMap(base, TWO_MIB, 0, handle, 0));
    // The kind of location (0 invalid, 1 a device, 2 the host, 3 a NUMA node, 4 the current NUMA node), the access flags
    // (3 is read and write), and the code.
    for (kind, flags, code) in [(0, 3, 1), (1, 3, 0), (2, 3, 801), (3, 3, 801), (4, 3, 1), (2, 0, 0)] {
        let access = CUmemAccessDesc {
            location: location(CUmemLocationType(kind)),
            flags: CUmemAccess_flags(flags),
        };
        is!(c, code, cuMemSetAccess(base, TWO_MIB, &raw const access, 1));
    }
    for (kind, code, access) in [(0, 101, 7), (1, 0, 3), (3, 0, 0), (4, 101, 7)] {
        let (mut flags, place) = (7, location(CUmemLocationType(kind)));
        is!(c, code, cuMemGetAccess(&raw mut flags, &raw const place, base));
        assert_eq!(flags, access, "location {kind}");
    }
    ok!(cuMemUnmap(base, TWO_MIB));
    ok!(cuMemAddressFree(base, TWO_MIB));
    ok!(cuMemRelease(handle));
}
