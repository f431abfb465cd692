//! Tests of external memory, which is imported from a file descriptor, and of external semaphores.

use std::ffi::{c_int, c_void};

use cuda_driver::sys::*;

#[cfg(target_os = "linux")]
use crate::blocking::{SHORT, waits};
#[cfg(target_os = "linux")]
use crate::child;
use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{is, ok};

const TWO_MIB: u64 = 2 << 20;

/// Creates memory that can be exported, and returns its handle and a descriptor of it.
fn exported(bytes: u64) -> (CUmemGenericAllocationHandle, c_int) {
    let mut props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (mut handle, mut descriptor) = (0, -1);
    ok!(cuMemCreate(&raw mut handle, bytes as usize, &raw const props, 0));
    ok!(cuMemExportToShareableHandle(
        (&raw mut descriptor).cast::<c_void>(),
        handle,
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        0
    ));
    (handle, descriptor)
}

fn described(kind: u32, descriptor: c_int, bytes: u64) -> CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    let mut desc = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        type_: CUexternalMemoryHandleType(kind),
        size: bytes,
        ..Default::default()
    };
    desc.handle.fd = descriptor;
    desc
}

fn import(descriptor: c_int, bytes: u64) -> CUexternalMemory {
    let (mut memory, desc) = (CUexternalMemory::default(), described(1, descriptor, bytes));
    ok!(cuImportExternalMemory(&raw mut memory, &raw const desc));
    memory
}

fn part(offset: u64, size: u64) -> CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
        offset,
        size,
        ..Default::default()
    }
}

fn map(memory: CUexternalMemory, offset: u64, size: u64) -> CUdeviceptr {
    let (mut address, desc) = (0, part(offset, size));
    ok!(cuExternalMemoryGetMappedBuffer(
        &raw mut address,
        memory,
        &raw const desc
    ));
    address
}

fn bytes(address: CUdeviceptr) -> [u8; 4] {
    let mut read = [0; 4];
    ok!(cuMemcpyDtoH(read.as_mut_ptr().cast::<c_void>(), address, 4));
    read
}

#[test]
#[cfg(target_os = "linux")]
fn imported_memory_is_mapped_more_than_once() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (handle, descriptor) = exported(2 * TWO_MIB);
    let memory = import(descriptor, 2 * TWO_MIB);
    let whole = map(memory, 0, 2 * TWO_MIB);
    let second = map(memory, TWO_MIB, 4096);
    let inside = map(memory, 100, 100);
    assert_eq!(inside.wrapping_sub(whole) % TWO_MIB, 100);
    assert_ne!(second, whole + TWO_MIB);
    let mut address = 0;
    for (offset, size, code) in [
        (2 * TWO_MIB, 4096, 1),
        (2 * TWO_MIB + 4096, 4096, 1),
        (0, 3 * TWO_MIB, 1),
        (0, 0, 1),
        // The sum of offset and size overflows.
        (0_u64.wrapping_sub(4096), 8192, 1),
        (4096, 0_u64.wrapping_sub(4096), 2),
    ] {
        let desc = part(offset, size);
        is!(
            c,
            code,
            cuExternalMemoryGetMappedBuffer(&raw mut address, memory, &raw const desc)
        );
    }
    // The mappings keep the memory allocated.
    is!(c, 0, cuMemRelease(handle));
    is!(c, 0, cuMemsetD8(whole, 7, 2 * TWO_MIB as usize));
    assert_eq!((bytes(second), bytes(inside)), ([7; 4], [7; 4]));
    is!(c, 0, cuMemsetD8(inside + 4, 9, 2));
    assert_eq!(bytes(whole + 102), [7, 7, 9, 9]);
    // The memory does not come from a call that allocates host memory.
    is!(c, 1, cuMemFreeHost(whole as *mut c_void));
    is!(c, 0, cuMemFree(whole));
    is!(c, 0, cuDestroyExternalMemory(memory));
    is!(c, 0, cuMemsetD8(inside, 6, 16));
    assert_eq!(bytes(inside), [6; 4]);
    is!(c, 0, cuMemFree(inside));
    is!(c, 0, cuMemFree(second));
}

#[test]
#[cfg(target_os = "linux")]
fn freeing_a_mapping_waits() {
    // Alone in its process, because contexts of other tests would make the calls wait.
    child!("freeing_a_mapping_waits", {
        let _gpu = Gpu::new();
        let (handle, descriptor) = exported(TWO_MIB);
        let memory = import(descriptor, TWO_MIB);
        let mut other = CUstream::default();
        ok!(cuStreamCreate(&raw mut other, 1));
        for stream in [std::ptr::null_mut(), other] {
            let address = map(memory, 0, 4096);
            let waited = waits(stream, SHORT, || {
                ok!(cuMemsetD8Async(address, 7, 4096, stream));
                ok!(cuMemFree(address));
            });
            assert!(waited, "{stream:?}");
        }
        ok!(cuStreamDestroy(other));
        ok!(cuDestroyExternalMemory(memory));
        ok!(cuMemRelease(handle));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn imported_memory_is_the_memory_of_its_handle() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (handle, descriptor) = exported(TWO_MIB);
    let memory = import(descriptor, TWO_MIB);
    let external = map(memory, 4096, 4096);
    is!(c, 0, cuDestroyExternalMemory(memory));
    let mut virtual_address = 0;
    ok!(cuMemAddressReserve(&raw mut virtual_address, TWO_MIB as usize, 0, 0, 0));
    ok!(cuMemMap(virtual_address, TWO_MIB as usize, 0, handle, 0));
    let mut access = CUmemAccessDesc {
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        ..Default::default()
    };
    access.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    ok!(cuMemSetAccess(virtual_address, TWO_MIB as usize, &raw const access, 1));
    is!(c, 0, cuMemsetD8(virtual_address + 4096, 5, 64));
    assert_eq!(bytes(external), [5; 4]);
    is!(c, 0, cuMemsetD8(external, 8, 64));
    is!(c, 0, cuMemFree(external));
    assert_eq!(bytes(virtual_address + 4096), [8; 4]);
    ok!(cuMemUnmap(virtual_address, TWO_MIB as usize));
    ok!(cuMemAddressFree(virtual_address, TWO_MIB as usize));
    is!(c, 0, cuMemRelease(handle));
}

#[test]
#[cfg(target_os = "linux")]
fn levels_of_arrays_are_mapped() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (handle, descriptor) = exported(2 * TWO_MIB);
    let memory = import(descriptor, 2 * TWO_MIB);
    let desc = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
        arrayDesc: CUDA_ARRAY3D_DESCRIPTOR {
            Width: 64,
            Height: 64,
            Format: CUarray_format::CU_AD_FORMAT_FLOAT,
            NumChannels: 1,
            ..Default::default()
        },
        numLevels: 1,
        ..Default::default()
    };
    let (mut mipmap, mut level) = (CUmipmappedArray::default(), CUarray::default());
    is!(
        c,
        0,
        cuExternalMemoryGetMappedMipmappedArray(&raw mut mipmap, memory, &raw const desc)
    );
    is!(c, 0, cuMipmappedArrayGetLevel(&raw mut level, mipmap, 0));
    let (texels, mut read): (Vec<u8>, _) = ((0..256).map(|i| i as u8).collect(), [0_u8; 256]);
    is!(c, 0, cuMemcpyHtoA(level, 0, texels.as_ptr().cast(), 256));
    is!(c, 0, cuMemcpyAtoH(read.as_mut_ptr().cast(), level, 0, 256));
    assert_eq!(read[..], texels[..]);
    let mut other = CUmipmappedArray::default();
    for (edge, levels, offset, code) in [
        (64, 3, 0, 0),
        (64, 7, 0, 0),
        (64, 8, 0, 1),
        (64, 1, 2 * TWO_MIB, 1),
        (512, 1, 65_536, 0),
        (512, 1, TWO_MIB, 0),
        (1024, 1, 0, 0),
        (1024, 2, 0, 1),
        (2048, 1, 0, 1),
    ] {
        let mut desc = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
            offset,
            numLevels: levels,
            ..desc
        };
        (desc.arrayDesc.Width, desc.arrayDesc.Height) = (edge, edge);
        is!(
            c,
            code,
            cuExternalMemoryGetMappedMipmappedArray(&raw mut other, memory, &raw const desc)
        );
        if code == 0 {
            is!(c, 0, cuMipmappedArrayDestroy(other));
        }
    }
    // The array has its memory, so it can be neither sparse nor mapped later. It may be a color attachment, to which a
    // graphics API draws.
    for (flags, code) in [
        (CUDA_ARRAY3D_SPARSE, 1),
        (CUDA_ARRAY3D_DEFERRED_MAPPING, 1),
        (CUDA_ARRAY3D_COLOR_ATTACHMENT, 0),
        (CUDA_ARRAY3D_SURFACE_LDST, 0),
    ] {
        let mut desc = desc;
        desc.arrayDesc.Flags = flags;
        is!(
            c,
            code,
            cuExternalMemoryGetMappedMipmappedArray(&raw mut other, memory, &raw const desc)
        );
        if code == 0 {
            is!(c, 0, cuMipmappedArrayDestroy(other));
        }
    }
    is!(c, 0, cuMipmappedArrayDestroy(mipmap));
    is!(c, 0, cuDestroyExternalMemory(memory));
    is!(c, 0, cuMemRelease(handle));
}

#[test]
#[cfg(target_os = "linux")]
fn other_descriptors_are_refused() {
    use std::fs::File;
    use std::os::fd::{AsRawFd, IntoRawFd};

    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let file = File::open("/dev/null").expect("a file");
    let foreign = file.as_raw_fd();
    let mut memory = CUexternalMemory::default();
    // `cuImportExternalMemory` closes every descriptor that it inspects, so this one must have no other owner.
    let taken = File::open("/dev/null").expect("a file").into_raw_fd();
    let desc = described(1, taken, 4096);
    is!(c, 999, cuImportExternalMemory(&raw mut memory, &raw const desc));
    let desc = described(1, -1, 4096);
    is!(c, 999, cuImportExternalMemory(&raw mut memory, &raw const desc));
    let desc = described(1, foreign, 0);
    is!(c, 1, cuImportExternalMemory(&raw mut memory, &raw const desc));
    // Other types: handles of Windows (2 to 7), NvSciBuf objects (8), DMA buffers (9), and types that do not exist.
    for (kind, code) in [
        (0, 1),
        (2, 801),
        (3, 801),
        (4, 801),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 801),
        (9, 801),
        (99, 1),
    ] {
        for descriptor in [foreign, -1] {
            // A DMA buffer is imported from a descriptor, which cannot be negative.
            let code = if (kind, descriptor) == (9, -1) { 1 } else { code };
            let desc = described(kind, descriptor, 4096);
            is!(c, code, cuImportExternalMemory(&raw mut memory, &raw const desc));
        }
        let desc = described(kind, foreign, 0);
        is!(c, 1, cuImportExternalMemory(&raw mut memory, &raw const desc));
    }
    is!(c, 1, cuDestroyExternalMemory(CUexternalMemory::default()));
    let mut semaphore = CUexternalSemaphore::default();
    for kind in 0..12 {
        let mut desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: CUexternalSemaphoreHandleType(kind),
            ..Default::default()
        };
        for descriptor in [foreign, -1] {
            // Opaque semaphores (1) and timeline semaphores (9) are imported from file descriptors.
            let code = match kind {
                1 => 999,
                9 if descriptor >= 0 => 999,
                0 | 9 | 11 => 1,
                _ => 801,
            };
            desc.handle.fd = descriptor;
            is!(c, code, cuImportExternalSemaphore(&raw mut semaphore, &raw const desc));
        }
        desc.handle.fd = foreign;
        desc.flags = 1;
        is!(c, 1, cuImportExternalSemaphore(&raw mut semaphore, &raw const desc));
    }
    is!(c, 1, cuDestroyExternalSemaphore(CUexternalSemaphore::default()));
    assert!(
        file.metadata().is_ok(),
        "a call closed a descriptor that it must not inspect"
    );
}

#[test]
fn calls_and_nodes_without_semaphores() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut stream = CUstream::default();
    ok!(cuStreamCreate(&raw mut stream, 1));
    let none = CUexternalSemaphore::default();
    let (signal, wait) = (
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default(),
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default(),
    );
    is!(
        c,
        1,
        cuSignalExternalSemaphoresAsync(&raw const none, &raw const signal, 0, stream)
    );
    is!(
        c,
        1,
        cuWaitExternalSemaphoresAsync(&raw const none, &raw const wait, 0, stream)
    );
    let (no_semaphores, no_params) = (std::ptr::null(), std::ptr::null());
    is!(
        c,
        1,
        cuSignalExternalSemaphoresAsync(no_semaphores, no_params, 0, stream)
    );
    let (mut graph, mut first, mut second) = (CUgraph::default(), CUgraphNode::default(), CUgraphNode::default());
    ok!(cuGraphCreate(&raw mut graph, 0));
    let (signal, wait) = (
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::default(),
        CUDA_EXT_SEM_WAIT_NODE_PARAMS::default(),
    );
    is!(
        c,
        0,
        cuGraphAddExternalSemaphoresSignalNode(&raw mut first, graph, std::ptr::null(), 0, &raw const signal)
    );
    is!(
        c,
        0,
        cuGraphAddExternalSemaphoresWaitNode(&raw mut second, graph, &raw const first, 1, &raw const wait)
    );
    let mut exec = CUgraphExec::default();
    is!(c, 0, cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    is!(c, 0, cuGraphLaunch(exec, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    ok!(cuStreamDestroy(stream));
}
