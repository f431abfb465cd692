//! Tests of objects that are used while another context than their own, or none, is current.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{Context, Kernel, check, cuda, expect, in_child, lacks_software, ptr};
use cuda_driver_sys::*;

/// Kernels that store texel 1 of a texture object, and of a texture reference, in `out`.
const KERNELS: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.global .texref tr;\n\
    .visible .entry object(.param .u64 out, .param .u64 texture) { .reg .b64 %o, %t; .reg .b32 %r<4>, %x;\n\
    ld.param.u64 %o, [out]; ld.param.u64 %t, [texture]; mov.b32 %x, 1;\n\
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%x}]; st.global.u32 [%o], %r0; ret; }\n\
    .visible .entry reference(.param .u64 out) { .reg .b64 %o; .reg .b32 %r<4>, %x;\n\
    ld.param.u64 %o, [out]; mov.b32 %x, 1;\n\
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [tr, {%x}]; st.global.u32 [%o], %r0; ret; }\n";

const BYTES: usize = 64;
const U32: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;

/// Returns memory in which each word is `value`.
fn words(value: u32) -> CUdeviceptr {
    let mut memory = 0;
    unsafe {
        check(cuda().cuMemAlloc(&mut memory, BYTES));
        check(cuda().cuMemsetD32(memory, value, BYTES / 4));
    }
    memory
}

fn first_word(memory: CUdeviceptr) -> u32 {
    let mut word = 0_u32;
    check(unsafe { cuda().cuMemcpyDtoH((&raw mut word).cast(), memory, 4) });
    word
}

/// A host function that delays the kernel behind it, so that a call that does not wait for the kernel returns first.
unsafe extern "system" fn linger(_: *mut c_void) {
    std::thread::sleep(Duration::from_millis(200));
}

fn queue_linger() {
    check(unsafe { cuda().cuLaunchHostFunc(null_mut(), Some(linger), null_mut()) });
}

fn kernel(name: &str) -> Kernel {
    Kernel::from_ptx(&std::ffi::CString::new(KERNELS).unwrap(), name)
}

/// Runs a function while a new context is current.
fn in_another_context(run: impl FnOnce()) {
    let _other = Context::new();
    run();
}

#[test]
fn the_destruction_of_a_texture_waits_for_its_context() {
    if lacks_software() {
        return; // on a GPU the kernel may fault
    }
    let _context = Context::new();
    let kernel = kernel("object");
    let (mut out, memory, mut texture) = (words(0), words(7), 0);
    let resource = CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
        res: CUDA_RESOURCE_DESC_st__res {
            linear: CUDA_RESOURCE_DESC_st__res__linear {
                devPtr: memory,
                format: U32,
                numChannels: 1,
                sizeInBytes: BYTES,
            },
        },
        flags: 0,
    };
    let settings = CUDA_TEXTURE_DESC {
        flags: CU_TRSF_READ_AS_INTEGER,
        ..Default::default()
    };
    check(unsafe { cuda().cuTexObjectCreate(&mut texture, &resource, &settings, std::ptr::null()) });
    queue_linger();
    check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut out), ptr(&mut texture)]));
    in_another_context(|| check(unsafe { cuda().cuTexObjectDestroy(texture) }));
    assert_eq!(first_word(out), 7);
}

#[test]
fn a_new_binding_of_a_reference_waits_for_its_context() {
    if lacks_software() {
        return;
    }
    let _context = Context::new();
    let kernel = kernel("reference");
    let (mut out, old, new, mut reference) = (words(0), words(7), words(8), null_mut());
    unsafe {
        check(cuda().cuModuleGetTexRef(&mut reference, kernel.module, c"tr".as_ptr()));
        check(cuda().cuTexRefSetFormat(reference, U32, 1));
        check(cuda().cuTexRefSetFlags(reference, CU_TRSF_READ_AS_INTEGER));
        check(cuda().cuTexRefSetAddress(null_mut(), reference, old, BYTES));
    }
    queue_linger();
    check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut out)]));
    in_another_context(|| check(unsafe { cuda().cuTexRefSetAddress(null_mut(), reference, new, BYTES) }));
    assert_eq!(first_word(out), 7);
    check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut out)]));
    assert_eq!(first_word(out), 8);
}

/// Flags between a host function, which waits for a query, and the threads of the test.
#[derive(Default)]
struct Awaited {
    started: AtomicBool,
    queried: AtomicBool,
    seen: AtomicBool,
}

/// A host function that waits until another thread has queried a reference, but at most ten seconds.
unsafe extern "system" fn await_query(awaited: *mut c_void) {
    let awaited = unsafe { &*awaited.cast::<Awaited>() };
    awaited.started.store(true, SeqCst);
    let start = Instant::now();
    while !awaited.queried.load(SeqCst) && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    awaited.seen.store(awaited.queried.load(SeqCst), SeqCst);
}

#[test]
fn a_reference_is_queried_while_a_change_waits() {
    if lacks_software() {
        return;
    }
    let _context = Context::new();
    let kernel = kernel("reference");
    let mut reference = null_mut();
    check(unsafe { cuda().cuModuleGetTexRef(&mut reference, kernel.module, c"tr".as_ptr()) });
    let (mut context, awaited, address) = (null_mut(), Awaited::default(), reference as usize);
    check(unsafe { cuda().cuCtxGetCurrent(&mut context) });
    let context = context as usize;
    check(unsafe { cuda().cuLaunchHostFunc(null_mut(), Some(await_query), (&raw const awaited).cast_mut().cast()) });
    std::thread::scope(|scope| {
        scope.spawn(|| unsafe {
            while !awaited.started.load(SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(200)); // the change waits by now
            check(cuda().cuCtxSetCurrent(context as CUcontext));
            let mut flags = 0;
            check(cuda().cuTexRefGetFlags(&mut flags, address as CUtexref));
            awaited.queried.store(true, SeqCst);
            assert_eq!(flags & CU_TRSF_READ_AS_INTEGER, 0);
        });
        check(unsafe { cuda().cuTexRefSetFlags(reference, CU_TRSF_READ_AS_INTEGER) });
    });
    assert!(awaited.seen.load(SeqCst), "the query waited for the change");
    let mut flags = 0;
    check(unsafe { cuda().cuTexRefGetFlags(&mut flags, reference) });
    assert_eq!(flags & CU_TRSF_READ_AS_INTEGER, CU_TRSF_READ_AS_INTEGER);
}

#[test]
fn all_references_of_a_module_end_with_it() {
    if lacks_software() {
        return; // NVIDIA's driver crashes
    }
    let context = Context::new();
    let module = kernel("reference").module;
    let mut references = [null_mut(); 3];
    check(unsafe { cuda().cuCtxPopCurrent(null_mut()) });
    for reference in &mut references {
        check(unsafe { cuda().cuModuleGetTexRef(reference, module, c"tr".as_ptr()) });
    }
    check(unsafe { cuda().cuCtxPushCurrent(context.0) });
    let mut flags = 0;
    for reference in references {
        check(unsafe { cuda().cuTexRefGetFlags(&mut flags, reference) });
    }
    check(unsafe { cuda().cuModuleUnload(module) });
    for reference in references {
        expect(unsafe { cuda().cuTexRefGetFlags(&mut flags, reference) }, 709);
    }
}

#[test]
fn a_reset_primary_context_has_no_peer_access() {
    if lacks_software() {
        return;
    }
    let name = "other_contexts::a_reset_primary_context_has_no_peer_access";
    in_child(name, &[("CUDA_SOFT_DEVICES", "2")], || unsafe {
        let cuda = cuda();
        check(cuda.cuInit(0));
        let (mut primary, mut other) = (null_mut(), null_mut());
        check(cuda.cuCtxCreate(&mut other, 0, 1));
        check(cuda.cuDevicePrimaryCtxRetain(&mut primary, 0));
        check(cuda.cuCtxSetCurrent(primary));
        check(cuda.cuCtxEnablePeerAccess(other, 0));
        expect(cuda.cuCtxEnablePeerAccess(other, 0), 704);
        check(cuda.cuDevicePrimaryCtxReset(0));
        check(cuda.cuDevicePrimaryCtxRetain(&mut primary, 0));
        check(cuda.cuCtxSetCurrent(primary));
        check(cuda.cuCtxEnablePeerAccess(other, 0));
    });
}

/// Copies the first bytes of an array to page-locked memory in a stream of the current context, after [`linger`].
fn queue_copy_of(array: CUarray, to: *mut u32) {
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: array,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: to.cast(),
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    queue_linger();
    check(unsafe { cuda().cuMemcpy3DAsync(&copy, null_mut()) });
}

#[test]
fn arrays_are_destroyed_after_copies_by_another_context() {
    if lacks_software() {
        return; // the behaviour of a GPU is not known
    }
    let cuda = cuda();
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 16,
        Height: 16,
        Format: U32,
        NumChannels: 1,
        ..Default::default()
    };
    let word = 0xABCD_u32;
    let mut pinned = null_mut();
    type End = fn(CUarray, CUmipmappedArray, CUcontext);
    let ends: [End; 3] = [
        |array, _, _| check(unsafe { crate::common::cuda().cuArrayDestroy(array) }),
        |_, mipmap, _| check(unsafe { crate::common::cuda().cuMipmappedArrayDestroy(mipmap) }),
        |_, _, context| check(unsafe { crate::common::cuda().cuCtxDestroy(context) }),
    ];
    let _context = Context::new();
    check(unsafe { cuda.cuMemHostAlloc(&mut pinned, 4, 0) });
    for (number, end) in ends.into_iter().enumerate() {
        let (mut other, mut array, mut mipmap, mut level) = (null_mut(), null_mut(), null_mut(), null_mut());
        unsafe {
            check(cuda.cuCtxCreate(&mut other, 0, 0));
            check(cuda.cuArray3DCreate(&mut array, &descriptor));
            check(cuda.cuMipmappedArrayCreate(&mut mipmap, &descriptor, 1));
            check(cuda.cuMipmappedArrayGetLevel(&mut level, mipmap, 0));
            for array in [array, level] {
                let copy = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    srcHost: (&raw const word).cast(),
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
                    dstArray: array,
                    WidthInBytes: 4,
                    Height: 1,
                    ..Default::default()
                };
                check(cuda.cuMemcpy2D(&copy));
            }
            check(cuda.cuCtxPopCurrent(null_mut()));
            pinned.cast::<u32>().write(0);
        }
        queue_copy_of(if number == 1 { level } else { array }, pinned.cast());
        end(array, mipmap, other);
        unsafe {
            check(cuda.cuCtxSynchronize());
            assert_eq!(pinned.cast::<u32>().read(), word, "end {number}");
        }
    }
}

/// The longest wait for another thread.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host function that waits for a message. The test fails if none comes.
unsafe extern "system" fn await_message(messages: *mut c_void) {
    let messages = unsafe { &*messages.cast::<Receiver<()>>() };
    _ = messages.recv_timeout(PATIENCE);
}

#[test]
fn a_library_is_unloaded_from_all_contexts_even_if_a_capture_begins() {
    if lacks_software() {
        return;
    }
    // In a child: the capture forbids calls in all threads of the process.
    let test = "other_contexts::a_library_is_unloaded_from_all_contexts_even_if_a_capture_begins";
    in_child(test, &[], || {
        let (cuda, text) = (cuda(), std::ffi::CString::new(KERNELS).unwrap());
        let (mut library, mut kernel) = (null_mut(), null_mut());
        let (captures, capturing) = channel();
        let (unloads, unloading) = channel();
        let contexts = [Context::new(), Context::new()];
        let mut modules = [null_mut(); 2];
        unsafe {
            let (none, image) = (null_mut(), text.as_ptr().cast());
            check(cuda.cuLibraryLoadData(&mut library, image, none, null_mut(), 0, null_mut(), null_mut(), 0));
            check(cuda.cuLibraryGetKernel(&mut kernel, library, c"object".as_ptr()));
            for (module, context) in modules.iter_mut().zip(&contexts).rev() {
                check(cuda.cuCtxSetCurrent(context.0));
                check(cuda.cuLibraryGetModule(module, library));
            }
            let messages = (&raw const capturing).cast_mut().cast();
            check(cuda.cuLaunchHostFunc(null_mut(), Some(await_message), messages));
        }
        let (context, kernel) = (contexts[0].0 as usize, kernel as usize);
        std::thread::scope(|scope| {
            scope.spawn(move || unsafe {
                let (mut stream, mut graph) = (null_mut(), null_mut());
                check(cuda.cuCtxSetCurrent(context as CUcontext));
                check(cuda.cuStreamCreate(&mut stream, 1));
                // Once the kernel is gone, the unloading call has checked that no capture forbids it.
                let (start, mut name) = (Instant::now(), null());
                while cuda.cuKernelGetName(&mut name, kernel as CUkernel).0 == 0 {
                    assert!(start.elapsed() < PATIENCE, "the library was not unloaded");
                    std::thread::yield_now();
                }
                check(cuda.cuStreamBeginCapture(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL));
                captures.send(()).unwrap();
                unloading.recv_timeout(PATIENCE).unwrap();
                check(cuda.cuStreamEndCapture(stream, &mut graph));
            });
            let unloaded = unsafe { cuda.cuLibraryUnload(library) };
            unloads.send(()).unwrap();
            check(unloaded);
        });
        for module in modules {
            let mut function = null_mut();
            expect(
                unsafe { cuda.cuModuleGetFunction(&mut function, module, c"object".as_ptr()) },
                400,
            );
        }
    });
}
