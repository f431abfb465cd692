//! Tests of the check for leaks: objects that the program does not destroy.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::{Context, check, cuda, in_child, lacks_software, ptx};
use cuda_driver_soft::Checks;
use cuda_driver_sys::*;

/// Objects of the kinds that a thread can leak. External memory, which needs Linux, has a test of its own.
struct Objects {
    stream: CUstream,
    event: CUevent,
    module: CUmodule,
    library: CUlibrary,
    linker: CUlinkState,
    pool: CUmemoryPool,
    array: CUarray,
    texture: u64,
    surface: u64,
    reference: CUtexref,
    graph: CUgraph,
    clone: CUgraph,
    captured: CUgraph,
    exec: CUgraphExec,
    user: CUuserObject,
    memory: CUmemGenericAllocationHandle,
    range: CUdeviceptr,
    context: CUcontext,
    green: CUgreenCtx,
}

const TWO_MIB: usize = 2 << 20;

unsafe extern "system" fn nothing(_: *mut c_void) {}

fn array_resource(array: CUarray) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        res: CUDA_RESOURCE_DESC_st__res {
            array: CUDA_RESOURCE_DESC_st__res__array { hArray: array },
        },
        flags: 0,
    }
}

fn device() -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..Default::default()
    }
}

impl Objects {
    fn make() -> Objects {
        let cuda = cuda();
        // SAFETY: zeros are a valid value of every member.
        let mut o: Objects = unsafe { std::mem::zeroed() };
        let image = ptx("check_race.sm_70.ptx");
        let image = image.as_ptr().cast();
        let shape = CUDA_ARRAY3D_DESCRIPTOR {
            Width: 16,
            Height: 16,
            Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
            NumChannels: 1,
            Flags: CUDA_ARRAY3D_SURFACE_LDST,
            ..Default::default()
        };
        let pinned = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        let of_pool = CUmemPoolProps {
            allocType: pinned,
            location: device(),
            ..Default::default()
        };
        let of_memory = CUmemAllocationProp {
            type_: pinned,
            location: device(),
            ..Default::default()
        };
        // SAFETY: zeros are a valid value of every member.
        let settings: CUDA_TEXTURE_DESC = unsafe { std::mem::zeroed() };
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        unsafe {
            check(cuda.cuStreamCreate(&mut o.stream, 0));
            check(cuda.cuEventCreate(&mut o.event, 0));
            check(cuda.cuModuleLoadData(&mut o.module, image));
            check(cuda.cuLibraryLoadData(
                &mut o.library,
                image,
                null_mut(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                0,
            ));
            check(cuda.cuLinkCreate(0, null_mut(), null_mut(), &mut o.linker));
            check(cuda.cuMemPoolCreate(&mut o.pool, &of_pool));
            check(cuda.cuArray3DCreate(&mut o.array, &shape));
            let resource = array_resource(o.array);
            check(cuda.cuTexObjectCreate(&mut o.texture, &resource, &settings, std::ptr::null()));
            check(cuda.cuSurfObjectCreate(&mut o.surface, &resource));
            check(cuda.cuTexRefCreate(&mut o.reference));
            check(cuda.cuGraphCreate(&mut o.graph, 0));
            check(cuda.cuGraphClone(&mut o.clone, o.graph));
            check(cuda.cuStreamBeginCapture(o.stream, relaxed));
            check(cuda.cuStreamEndCapture(o.stream, &mut o.captured));
            check(cuda.cuGraphInstantiate(&mut o.exec, o.graph, 0));
            check(cuda.cuUserObjectCreate(&mut o.user, null_mut(), Some(nothing), 1, 1));
            check(cuda.cuMemCreate(&mut o.memory, TWO_MIB, &of_memory, 0));
            check(cuda.cuMemAddressReserve(&mut o.range, TWO_MIB, 0, 0, 0));
            check(cuda.cuCtxCreate(&mut o.context, 0, 0));
            check(cuda.cuCtxPopCurrent(null_mut()));
            let (mut whole, mut description): (CUdevResource, _) = (std::mem::zeroed(), null_mut());
            let multiprocessors = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
            check(cuda.cuDeviceGetDevResource(0, &mut whole, multiprocessors));
            check(cuda.cuDevResourceGenerateDesc(&mut description, &mut whole, 1));
            check(cuda.cuGreenCtxCreate(&mut o.green, description, 0, 1));
        }
        o
    }

    fn destroy(self) {
        let cuda = cuda();
        unsafe {
            check(cuda.cuStreamDestroy(self.stream));
            check(cuda.cuEventDestroy(self.event));
            check(cuda.cuModuleUnload(self.module));
            check(cuda.cuLibraryUnload(self.library));
            check(cuda.cuLinkDestroy(self.linker));
            check(cuda.cuMemPoolDestroy(self.pool));
            check(cuda.cuTexObjectDestroy(self.texture));
            check(cuda.cuSurfObjectDestroy(self.surface));
            check(cuda.cuArrayDestroy(self.array));
            check(cuda.cuTexRefDestroy(self.reference));
            check(cuda.cuGraphDestroy(self.graph));
            check(cuda.cuGraphDestroy(self.clone));
            check(cuda.cuGraphDestroy(self.captured));
            check(cuda.cuGraphExecDestroy(self.exec));
            check(cuda.cuUserObjectRelease(self.user, 1));
            check(cuda.cuMemRelease(self.memory));
            check(cuda.cuMemAddressFree(self.range, TWO_MIB));
            check(cuda.cuCtxDestroy(self.context));
            check(cuda.cuGreenCtxDestroy(self.green));
        }
    }
}

#[test]
fn each_kind_of_object_is_a_leak_until_it_is_destroyed() {
    if lacks_software() {
        return;
    }
    // A green context retains the primary context, of which the process has only one.
    let name = "leaks::each_kind_of_object_is_a_leak_until_it_is_destroyed";
    in_child(name, &[], check_each_kind);
}

fn check_each_kind() {
    let _context = Context::new();
    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    Objects::make().destroy();
    assert_eq!(checks.finish(), []);

    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    let objects = Objects::make();
    let found = checks.finish();
    objects.destroy();
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    let kinds = [
        "stream",
        "event",
        "module",
        "library",
        "linker",
        "memory pool",
        "texture object",
        "surface object",
        "texture reference",
        "graph",
        "graph",
        "graph",
        "executable graph",
        "user object",
        "memory handle of cuMemCreate",
        "address range",
        "context",
        "green context",
    ];
    for kind in kinds {
        let start = format!("leak: {kind} 0x");
        let count = texts.iter().filter(|text| text.starts_with(&start)).count();
        let expected = kinds.iter().filter(|other| **other == kind).count();
        assert_eq!(count, expected, "{kind}: {texts:#?}");
    }
    let arrays = texts
        .iter()
        .filter(|text| text.contains("bytes were not freed"))
        .count();
    assert_eq!(arrays, 1, "{texts:#?}");
    assert_eq!(texts.len(), kinds.len() + arrays, "{texts:#?}");
}

/// Exports memory and imports it again as external memory, which is returned. The handle of the exported memory is
/// released.
#[cfg(target_os = "linux")]
fn external_memory() -> CUexternalMemory {
    let cuda = cuda();
    let descriptor_type = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: descriptor_type,
        location: device(),
        ..Default::default()
    };
    let mut described = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        type_: CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        size: TWO_MIB as u64,
        ..Default::default()
    };
    let (mut handle, mut descriptor, mut memory) = (0, -1_i32, null_mut());
    unsafe {
        check(cuda.cuMemCreate(&mut handle, TWO_MIB, &props, 0));
        let out = (&raw mut descriptor).cast();
        check(cuda.cuMemExportToShareableHandle(out, handle, descriptor_type, 0));
        described.handle.fd = descriptor;
        check(cuda.cuImportExternalMemory(&mut memory, &described));
        check(cuda.cuMemRelease(handle));
    }
    memory
}

#[cfg(target_os = "linux")]
#[test]
fn external_memory_is_a_leak_until_it_is_destroyed() {
    if lacks_software() {
        return;
    }
    let context = Context::new();
    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    check(unsafe { cuda().cuDestroyExternalMemory(external_memory()) });
    assert_eq!(checks.finish(), []);

    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    let memory = external_memory();
    let found = checks.finish();
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1, "{texts:#?}");
    assert!(texts[0].starts_with("leak: external memory 0x"), "{texts:#?}");
    check(unsafe { cuda().cuDestroyExternalMemory(memory) });

    // External memory ends with its context.
    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    external_memory();
    drop(context);
    assert_eq!(checks.finish(), []);
}

#[test]
fn objects_end_with_their_context() {
    if lacks_software() {
        return;
    }
    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    let context = Context::new();
    let (mut stream, mut event) = (null_mut(), null_mut());
    check(unsafe { cuda().cuStreamCreate(&mut stream, 0) });
    check(unsafe { cuda().cuEventCreate(&mut event, 0) });
    drop(context);
    assert_eq!(checks.finish(), []);
}

#[test]
fn threads_and_sessions_see_their_own_objects() {
    if lacks_software() {
        return;
    }
    let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
    std::thread::spawn(|| std::mem::forget(Context::new())).join().unwrap();
    assert_eq!(checks.finish(), [], "another thread's context");

    let checks = cuda_driver_soft::check(Checks::RACE).unwrap();
    let context = Context::new();
    assert_eq!(checks.finish(), [], "leaks are not checked");
    drop(context);
}

#[test]
fn the_process_reports_objects_and_primary_contexts_at_exit() {
    if lacks_software() || cfg!(windows) {
        return;
    }
    let variables = [("CUDA_SOFT_CHECK", "leaks")];
    let name = "leaks::the_process_reports_objects_and_primary_contexts_at_exit";
    let written = in_child(name, &variables, || {
        let mut primary = null_mut();
        // The release ends the first activation of the primary context, which is therefore not a leak.
        check(unsafe { cuda().cuDevicePrimaryCtxRetain(&mut primary, 0) });
        check(unsafe { cuda().cuDevicePrimaryCtxRelease(0) });
        check(unsafe { cuda().cuDevicePrimaryCtxRetain(&mut primary, 0) });
        check(unsafe { cuda().cuCtxSetCurrent(primary) });
        let mut stream = null_mut();
        check(unsafe { cuda().cuStreamCreate(&mut stream, 0) });
    });
    let Some(written) = written else { return };
    assert_eq!(written.matches("leak: primary context 0x").count(), 1, "{written}");
    assert_eq!(written.matches("leak: stream 0x").count(), 1, "{written}");
    assert_eq!(written.matches("leak: ").count(), 2, "{written}");
}

#[test]
fn a_session_reports_objects_that_the_process_reports_too() {
    if lacks_software() || cfg!(windows) {
        return;
    }
    let name = "leaks::a_session_reports_objects_that_the_process_reports_too";
    let written = in_child(name, &[("CUDA_SOFT_CHECK", "leaks")], || {
        let context = Context::new();
        let mut stream = null_mut();
        let checks = cuda_driver_soft::check(Checks::LEAKS).unwrap();
        check(unsafe { cuda().cuStreamCreate(&mut stream, 0) });
        let found = checks.finish();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().starts_with("leak: stream 0x"), "{found:?}");
        std::mem::forget(context);
    });
    let Some(written) = written else { return };
    assert_eq!(written.matches("leak: stream 0x").count(), 1, "{written}");
}

/// A forked child has copies of its parent's objects. They are not its leaks.
#[cfg(unix)]
#[test]
fn a_forked_child_reports_no_leaks() {
    if lacks_software() {
        return;
    }
    let written = in_child(
        "leaks::a_forked_child_reports_no_leaks",
        &[("CUDA_SOFT_CHECK", "leaks")],
        || {
            let context = Context::new();
            // SAFETY: the child only runs the exit handlers, which then take no lock that another thread may have held.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: as above.
                unsafe { libc::exit(0) };
            }
            let mut status = 0;
            // SAFETY: the child is ours, and the pointer is valid for the write.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFEXITED(status), "{status:#x}");
            drop(context);
        },
    );
    let Some(written) = written else { return };
    assert!(!written.contains("leak: "), "{written}");
}
