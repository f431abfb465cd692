//! Tests of streams: creation and destruction, order of work, host functions, null handles, and queries of a capture.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, is, ok};

fn stream(flags: u32) -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, flags));
    stream
}

#[test]
fn creation() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut s = ptr::null_mut();
    is!(c, 1, cuStreamCreate(ptr::null_mut(), 0));
    is!(c, 1, cuStreamCreate(&raw mut s, 99));
    let (plain, non_blocking) = (stream(0), stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0));
    let mut flags = 99;
    is!(c, 0, cuStreamGetFlags(plain, &raw mut flags));
    c.that(flags == 0, || format!("flags {flags}, expected 0"));
    is!(c, 0, cuStreamGetFlags(non_blocking, &raw mut flags));
    c.that(flags == 1, || format!("flags {flags}, expected 1"));
    is!(c, 1, cuStreamGetFlags(plain, ptr::null_mut()));

    let (mut least, mut greatest, mut priority) = (9, 9, 9);
    ok!(cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest));
    is!(c, 0, cuStreamCreateWithPriority(&raw mut s, 0, greatest));
    is!(c, 0, cuStreamGetPriority(s, &raw mut priority));
    c.that(priority == greatest, || {
        format!("priority {priority}, expected {greatest}")
    });
    is!(c, 0, cuStreamDestroy(s));
    // A priority out of range is clamped.
    is!(c, 0, cuStreamCreateWithPriority(&raw mut s, 0, greatest - 100));
    is!(c, 0, cuStreamGetPriority(s, &raw mut priority));
    c.that(priority == greatest, || {
        format!("priority {priority}, expected the limit {greatest}")
    });
    is!(c, 0, cuStreamDestroy(s));

    // A stream that no green context created has no green context.
    for s in [plain, ptr::null_mut()] {
        let mut green = ptr::dangling_mut();
        is!(c, 0, cuStreamGetGreenCtx(s, &raw mut green));
        c.that(green.is_null(), || format!("stream {s:?} has green context {green:?}"));
    }

    let mut context = ptr::null_mut();
    is!(c, 0, cuStreamGetCtx(plain, &raw mut context));
    c.that(context == gpu.context, || {
        "cuStreamGetCtx returned another context".to_owned()
    });
    let (mut one, mut two) = (0, 0);
    is!(c, 0, cuStreamGetId(plain, &raw mut one));
    is!(c, 0, cuStreamGetId(non_blocking, &raw mut two));
    c.that(one != two, || format!("two streams have the id {one}"));
    is!(c, 0, cuStreamQuery(plain));
    is!(c, 0, cuStreamSynchronize(plain));
    is!(c, 0, cuStreamDestroy(plain));
    is!(c, 0, cuStreamDestroy(non_blocking));
}

#[test]
fn null_handles() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    is!(c, 400, cuStreamDestroy(ptr::null_mut()));
    // The null stream and the handles of the two default streams are valid.
    is!(c, 0, cuStreamQuery(ptr::null_mut()));
    is!(c, 0, cuStreamSynchronize(ptr::null_mut()));
    is!(c, 0, cuStreamSynchronize(CU_STREAM_LEGACY));
    is!(c, 0, cuStreamSynchronize(CU_STREAM_PER_THREAD));
    is!(c, 400, cuStreamWaitEvent(ptr::null_mut(), ptr::null_mut(), 0));
}

/// Adds one to the counter that the pointer points to.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the stream's work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn host_functions_run_in_order() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    static SEEN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "system" fn step(data: *mut c_void) {
        // Each function runs in its turn: its number must be the previous one plus one.
        let mine = u32::try_from(data.addr()).unwrap_or(u32::MAX);
        let _ = SEEN.compare_exchange(mine, mine + 1, Ordering::SeqCst, Ordering::SeqCst);
    }
    let s = stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0);
    for i in 0..20 {
        is!(c, 0, cuLaunchHostFunc(s, Some(step), ptr::without_provenance_mut(i)));
    }
    is!(c, 0, cuStreamSynchronize(s));
    c.that(SEEN.load(Ordering::SeqCst) == 20, || {
        format!("{} functions ran in order, expected 20", SEEN.load(Ordering::SeqCst))
    });
    is!(c, 1, cuLaunchHostFunc(s, None, ptr::null_mut()));
    is!(c, 0, cuStreamDestroy(s));
    drop(gpu);
}

#[test]
fn host_functions_and_kernels_take_turns() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 64]);
    let s = stream(0);
    let counter = AtomicU32::new(0);
    for _ in 0..5 {
        let mut arguments = arguments![data, 64_u64];
        let mut pointers = arguments.pointers();
        is!(
            c,
            0,
            cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, s, pointers.as_mut_ptr(), ptr::null_mut())
        );
        is!(
            c,
            0,
            cuLaunchHostFunc(s, Some(count), (&raw const counter).cast_mut().cast())
        );
    }
    is!(c, 0, cuStreamSynchronize(s));
    c.that(counter.load(Ordering::SeqCst) == 5, || {
        format!("{counter:?} host functions ran, expected 5")
    });
    c.that(gpu.read::<f32>(data, 64) == [63.0; 64], || {
        "the values are not those of five launches".to_owned()
    });
    is!(c, 0, cuStreamDestroy(s));
}

#[test]
fn streams_and_events_in_a_host_function() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    struct Given {
        stream: CUstream,
        event: CUevent,
        codes: [u32; 11],
    }
    unsafe extern "system" fn call(data: *mut c_void) {
        // SAFETY: the address of a `Given` that outlives the stream's work and is not accessed before the stream is
        // synchronised.
        let given = unsafe { &mut *data.cast::<Given>() };
        let (mut status, mut flags, mut priority) = (CUstreamCaptureStatus(77), 0, 0);
        let mut context = ptr::null_mut();
        let null: CUstream = ptr::null_mut();
        let Given { stream, event, .. } = *given;
        // SAFETY: the outputs are valid for the writes, and stream and event are live.
        let codes = unsafe {
            [
                cuStreamIsCapturing(stream, &raw mut status),
                cuStreamGetFlags(stream, &raw mut flags),
                cuStreamGetPriority(stream, &raw mut priority),
                cuStreamGetCtx(stream, &raw mut context),
                cuEventQuery(event),
                cuStreamWaitEvent(stream, event, 0),
                // The null stream belongs to the current context, which host functions cannot use.
                cuStreamIsCapturing(null, &raw mut status),
                cuStreamQuery(null),
                cuLaunchHostFunc(null, Some(call), data),
                cuStreamSynchronize(null),
                // The event was never recorded, so it counts as completed.
                cuEventSynchronize(event),
            ]
        };
        given.codes = codes.map(|code| code.0);
    }
    let mut given = Given {
        stream: stream(1),
        event: ptr::null_mut(),
        codes: [9999; 11],
    };
    ok!(cuEventCreate(&raw mut given.event, 0));
    let s = given.stream;
    is!(c, 0, cuLaunchHostFunc(s, Some(call), (&raw mut given).cast()));
    is!(c, 0, cuStreamSynchronize(s));
    let expected = [0, 0, 0, 0, 0, 0, 800, 800, 800, 800, 0];
    c.that(given.codes == expected, || {
        format!("{:?}, expected {expected:?}", given.codes)
    });
    is!(c, 0, cuEventDestroy(given.event));
    is!(c, 0, cuStreamDestroy(s));
}

#[test]
fn driver_calls_in_a_host_function() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    static CODES: [AtomicU32; 6] = [const { AtomicU32::new(9999) }; 6];
    unsafe extern "system" fn call(data: *mut c_void) {
        let (mut address, mut number) = (0, 0);
        let (mut context, mut event) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the outputs are valid for the writes.
        let codes = unsafe {
            [
                cuMemAlloc(&raw mut address, 4),
                cuCtxSynchronize(),
                cuCtxGetCurrent(&raw mut context),
                cuDeviceGetCount(&raw mut number),
                cuEventCreate(&raw mut event, 0),
                cuStreamQuery(data.cast()),
            ]
        };
        for (slot, code) in CODES.iter().zip(codes) {
            slot.store(code.0, Ordering::SeqCst);
        }
    }
    let s = stream(0);
    is!(c, 0, cuLaunchHostFunc(s, Some(call), s.cast()));
    is!(c, 0, cuStreamSynchronize(s));
    let names = [
        "cuMemAlloc",
        "cuCtxSynchronize",
        "cuCtxGetCurrent",
        "cuDeviceGetCount",
        "cuEventCreate",
    ];
    for (slot, name) in CODES.iter().zip(names) {
        c.is(800, name, slot.load(Ordering::SeqCst));
    }
    c.is(600, "cuStreamQuery of its own stream", CODES[5].load(Ordering::SeqCst));
    is!(c, 0, cuStreamDestroy(s));
}

#[test]
fn a_stream_is_destroyed_with_work_in_it() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let spin = gpu.kernel("spin.ptx", "spin");
    let out = gpu.upload(&[0_u64]);
    let s = stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0);
    let mut arguments = arguments![out, 1_u64, 20_000_u64];
    let mut pointers = arguments.pointers();
    is!(
        c,
        0,
        cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, pointers.as_mut_ptr(), ptr::null_mut())
    );
    is!(c, 0, cuStreamDestroy(s));
    is!(c, 0, cuCtxSynchronize());
    let expected = (0..20_000).fold(1_u64, |x, _| {
        x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407)
    });
    c.that(gpu.read::<u64>(out, 1) == [expected], || {
        "the work was not finished".to_owned()
    });
}

#[test]
fn a_stream_that_captures_nothing() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let own = stream(0);
    for stream in [own, ptr::null_mut()] {
        let none = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut status = CUstreamCaptureStatus(77);
        is!(
            c,
            0,
            cuStreamGetCaptureInfo(
                stream,
                &raw mut status,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut()
            )
        );
        c.that(status == none, || format!("{status:?}, expected {none:?}"));
    }
    is!(c, 0, cuStreamDestroy(own));
}
