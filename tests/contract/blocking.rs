//! Tests of calls that wait for work in progress, and of calls that return immediately.
//!
//! In nearly all tests the work is a host function that waits for a gate: a call that returns while the gate is shut
//! did not wait. Each test runs in a process of its own, because contexts of other tests would make more calls wait.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version, needs, ptx};
use crate::{call, child, is, ok};

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn is_open(&self) -> bool {
        *self.open.lock().expect("no panic while locked")
    }

    fn open(&self) {
        *self.open.lock().expect("no panic while locked") = true;
        self.changed.notify_all();
    }

    fn wait(&self, limit: Duration) {
        let guard = self.open.lock().expect("no panic while locked");
        drop(self.changed.wait_timeout_while(guard, limit, |open| !*open));
    }
}

unsafe extern "system" fn wait_for_gate(data: *mut c_void) {
    // SAFETY: `waits` passes a gate that is never freed.
    unsafe { &*data.cast::<Gate>() }.wait(Duration::from_secs(90));
}

/// Returns true if `call` waited for the work that was queued in `stream` before it. A watchdog opens the gate after
/// `patience`, so that a call that waits returns.
pub(crate) fn waits(stream: CUstream, patience: Duration, call: impl FnOnce()) -> bool {
    // Leaked, because the host function still uses the gate if `call` panics.
    let gate: &'static Gate = Box::leak(Box::new(Gate::default()));
    ok!(cuLaunchHostFunc(
        stream,
        Some(wait_for_gate),
        ptr::from_ref(gate).cast_mut().cast()
    ));
    let watchdog = std::thread::spawn(move || {
        gate.wait(patience);
        gate.open();
    });
    call();
    let waited = gate.is_open();
    gate.open();
    watchdog.join().expect("the watchdog");
    ok!(cuCtxSynchronize());
    waited
}

const MIB: usize = 1 << 20;

pub(crate) const SHORT: Duration = Duration::from_millis(150);
/// Only a call that wrongly waits takes this long, so a busy machine does not matter.
const LONG: Duration = Duration::from_secs(60);

fn stream(flags: u32) -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, flags));
    stream
}

#[test]
fn calls_that_wait() {
    child!("calls_that_wait", { calls_that_wait_alone() });
}

fn calls_that_wait_alone() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let s = stream(0);
    let a = gpu.alloc(4096);
    let mut host = vec![0_u8; 4096];
    let pointer: *mut c_void = host.as_mut_ptr().cast();
    let mut pinned = ptr::null_mut();
    ok!(cuMemHostAlloc(&raw mut pinned, 4096, 0));
    let text = ptx("globals.ptx");
    let mut module = ptr::null_mut();
    ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    let freed = gpu.alloc(64);

    let mut check = |label: &str, call: &mut dyn FnMut() -> CUresult| {
        let mut code = CUresult(9999);
        let waited = waits(s, SHORT, || code = call());
        c.is(0, label, code.0);
        c.that(waited, || format!("{label} did not wait"));
    };
    check("cuStreamSynchronize", &mut || call!(cuStreamSynchronize(s)));
    check("cuCtxSynchronize", &mut || call!(cuCtxSynchronize()));
    check("cuMemcpyHtoD", &mut || call!(cuMemcpyHtoD(a, pointer, 64)));
    check("cuMemcpyDtoH", &mut || call!(cuMemcpyDtoH(pointer, a, 64)));
    check("cuMemcpyDtoHAsync to pageable memory", &mut || {
        call!(cuMemcpyDtoHAsync(pointer, a, 64, s))
    });
    let large = vec![1_u8; 64 << 20];
    let to = gpu.alloc(large.len());
    check("cuMemcpyHtoDAsync of 64 MiB", &mut || {
        call!(cuMemcpyHtoDAsync(to, large.as_ptr().cast(), large.len(), s))
    });
    check("cuMemFree", &mut || call!(cuMemFree(freed)));
    check("cuMemFreeHost", &mut || call!(cuMemFreeHost(pinned)));
    check("cuModuleUnload", &mut || call!(cuModuleUnload(module)));
    check("cuModuleLoadData with globals", &mut || {
        call!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()))
    });
    // Without the attribute, these calls return immediately.
    let (on, sync) = (1_u32, CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    ok!(cuPointerSetAttribute((&raw const on).cast(), sync, a));
    check("cuMemsetD8 with SYNC_MEMOPS", &mut || call!(cuMemsetD8(a, 0, 64)));
    check("cuMemsetD2D32 with SYNC_MEMOPS", &mut || {
        call!(cuMemsetD2D32(a, 64, 0, 4, 4))
    });
    check("cuMemcpyDtoD with SYNC_MEMOPS", &mut || call!(cuMemcpyDtoD(a, to, 64)));
}

/// In a context with `CU_CTX_SYNC_MEMOPS`, synchronous copies within device memory and fills of it wait. In others,
/// they return immediately.
#[test]
fn a_context_that_waits() {
    child!("a_context_that_waits", { a_context_that_waits_alone() });
}

fn a_context_that_waits_alone() {
    if driver_version() < 12010 {
        return needs("a driver with CU_CTX_SYNC_MEMOPS, of CUDA 12.1 or later");
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let s = stream(0);
    let (a, b) = (gpu.alloc(4096), gpu.alloc(4096));
    ok!(cuCtxSetFlags(CUctx_flags::CU_CTX_SYNC_MEMOPS.0));
    let mut check = |label: &str, call: &mut dyn FnMut() -> CUresult| {
        let mut code = CUresult(9999);
        let waited = waits(s, SHORT, || code = call());
        c.is(0, label, code.0);
        c.that(waited, || format!("{label} did not wait"));
    };
    check("cuMemsetD8", &mut || call!(cuMemsetD8(a, 0, 64)));
    check("cuMemsetD2D32", &mut || call!(cuMemsetD2D32(a, 64, 0, 4, 4)));
    check("cuMemcpyDtoD", &mut || call!(cuMemcpyDtoD(a, b, 64)));
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: b,
        srcPitch: 64,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: a,
        dstPitch: 64,
        WidthInBytes: 4,
        Height: 4,
        ..Default::default()
    };
    check("cuMemcpy2D", &mut || call!(cuMemcpy2D(&raw const copy)));
    let mut code = CUresult(9999);
    let waited = waits(s, LONG, || code = call!(cuMemcpyDtoDAsync(a, b, 64, s)));
    c.is(0, "cuMemcpyDtoDAsync", code.0);
    c.that(!waited, || "cuMemcpyDtoDAsync waited".to_owned());
}

#[test]
fn calls_that_return_at_once() {
    child!("calls_that_return_at_once", { calls_that_return_at_once_alone() });
}

fn calls_that_return_at_once_alone() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let s = stream(0);
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 64]);
    let (a, b) = (gpu.alloc(4096), gpu.alloc(4096));
    let mut pinned = ptr::null_mut();
    ok!(cuMemHostAlloc(&raw mut pinned, 4096, 0));
    let word = 7_u32;
    let word: *const c_void = (&raw const word).cast();
    let mut arguments = crate::arguments![data, 64_u64];
    let mut pointers = arguments.pointers();
    let mut address = 0;
    let mut host = ptr::null_mut();
    let (mut other, mut e, mut new) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    ok!(cuEventCreate(&raw mut e, 0));

    let mut check = |label: &str, expected: u32, call: &mut dyn FnMut() -> CUresult| {
        let mut code = CUresult(9999);
        let waited = waits(s, LONG, || code = call());
        c.is(expected, label, code.0);
        c.that(!waited, || format!("{label} waited"));
    };
    check("cuStreamQuery", 600, &mut || call!(cuStreamQuery(s)));
    check("cuStreamQuery of the legacy stream", 600, &mut || {
        call!(cuStreamQuery(ptr::null_mut()))
    });
    check("cuMemAlloc", 0, &mut || call!(cuMemAlloc(&raw mut address, 1 << 20)));
    let mut free = 0;
    ok!(cuMemGetInfo(&raw mut free, ptr::null_mut()));
    let large = (1 << 30).min(free / 4);
    check(&format!("cuMemAlloc of {large} bytes"), 0, &mut || {
        call!(cuMemAlloc(&raw mut address, large))
    });
    check("cuMemAllocAsync", 0, &mut || {
        call!(cuMemAllocAsync(&raw mut address, 4096, s))
    });
    check("cuMemFreeAsync", 0, &mut || call!(cuMemFreeAsync(address, s)));
    check("cuMemHostAlloc", 0, &mut || {
        call!(cuMemHostAlloc(&raw mut host, 4096, 0))
    });
    check("cuStreamCreate", 0, &mut || call!(cuStreamCreate(&raw mut other, 0)));
    check("cuStreamDestroy", 0, &mut || call!(cuStreamDestroy(other)));
    check("cuEventCreate", 0, &mut || call!(cuEventCreate(&raw mut new, 0)));
    check("cuEventRecord", 0, &mut || call!(cuEventRecord(e, s)));
    check("cuMemcpyHtoDAsync of 4 bytes", 0, &mut || {
        call!(cuMemcpyHtoDAsync(a, word, 4, s))
    });
    check("cuMemcpyHtoDAsync of page-locked memory", 0, &mut || {
        call!(cuMemcpyHtoDAsync(a, pinned, 4096, s))
    });
    check("cuMemcpyDtoHAsync to page-locked memory", 0, &mut || {
        call!(cuMemcpyDtoHAsync(pinned, a, 4096, s))
    });
    check("cuMemcpyDtoD", 0, &mut || call!(cuMemcpyDtoD(b, a, 4096)));
    check("cuMemsetD8", 0, &mut || call!(cuMemsetD8(b, 1, 4096)));
    check("cuMemsetD32Async", 0, &mut || call!(cuMemsetD32Async(b, 1, 64, s)));
    check("cuLaunchKernel", 0, &mut || {
        call!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            64,
            1,
            1,
            0,
            s,
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        ))
    });
    if driver_version() >= 12040 {
        check("cuFuncLoad", 0, &mut || call!(cuFuncLoad(kernel)));
    } else {
        needs("a driver of CUDA 12.4 or later for cuFuncLoad");
    }
    check("cuStreamWaitEvent", 0, &mut || call!(cuStreamWaitEvent(s, e, 0)));
    check("cuEventDestroy", 0, &mut || call!(cuEventDestroy(e)));
}

#[test]
fn the_legacy_stream_and_the_others() {
    child!("the_legacy_stream_and_the_others", {
        the_legacy_stream_and_the_others_alone()
    });
}

fn the_legacy_stream_and_the_others_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (blocking, non_blocking) = (stream(0), stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0));
    // The legacy stream and a non-blocking stream do not wait for each other.
    let waited = waits(non_blocking, LONG, || {
        is!(c, 0, cuStreamQuery(ptr::null_mut()));
        is!(c, 0, cuStreamSynchronize(ptr::null_mut()));
        is!(c, 0, cuStreamSynchronize(blocking));
        is!(c, 600, cuStreamQuery(non_blocking));
    });
    c.that(!waited, || "the legacy stream waited for a non-blocking one".to_owned());
    let waited = waits(blocking, SHORT, || is!(c, 0, cuStreamSynchronize(ptr::null_mut())));
    c.that(waited, || {
        "the legacy stream did not wait for a blocking one".to_owned()
    });
    // Work in a blocking stream waits for the legacy stream; work in a non-blocking one does not.
    let waited = waits(ptr::null_mut(), SHORT, || {
        let mut e = ptr::null_mut();
        is!(c, 0, cuEventCreate(&raw mut e, 0));
        is!(c, 0, cuEventRecord(e, blocking));
        is!(c, 0, cuStreamSynchronize(blocking));
    });
    c.that(waited, || {
        "a blocking stream did not wait for the legacy stream".to_owned()
    });
    let waited = waits(ptr::null_mut(), LONG, || is!(c, 0, cuStreamSynchronize(non_blocking)));
    c.that(!waited, || {
        "a non-blocking stream waited for the legacy stream".to_owned()
    });
}

#[test]
fn events_of_pending_work() {
    child!("events_of_pending_work", { events_of_pending_work_alone() });
}

fn events_of_pending_work_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let s = stream(0);
    let (mut start, mut end) = (ptr::null_mut(), ptr::null_mut());
    ok!(cuEventCreate(&raw mut start, 0));
    ok!(cuEventCreate(&raw mut end, 0));
    is!(c, 0, cuEventRecord(start, s));
    let waited = waits(s, LONG, || {
        let mut time = 0.0;
        is!(c, 0, cuEventRecord(end, s));
        is!(c, 600, cuEventQuery(end));
        is!(c, 600, cuEventElapsedTime(&raw mut time, start, end));
    });
    c.that(!waited, || "recording and querying waited".to_owned());
    let waited = waits(s, SHORT, || {
        is!(c, 0, cuEventRecord(end, s));
        is!(c, 0, cuEventSynchronize(end));
    });
    c.that(waited, || "cuEventSynchronize did not wait".to_owned());
    let mut time = 0.0;
    is!(c, 0, cuEventElapsedTime(&raw mut time, start, end));
    c.that(time >= 100.0, || {
        format!("{time} ms across work of 150 ms, expected at least 100")
    });
}

#[test]
fn a_queued_copy_of_memory_that_another_context_frees() {
    child!("a_queued_copy_of_memory_that_another_context_frees", {
        a_queued_copy_of_memory_that_another_context_frees_alone()
    });
}

fn a_queued_copy_of_memory_that_another_context_frees_alone() {
    let owner = Gpu::new();
    let mut c = Codes::new();
    let values: Vec<u32> = (0..1024).collect();
    let (device, pinned) = (owner.upload(&values), {
        let mut pinned = ptr::null_mut();
        ok!(cuMemHostAlloc(&raw mut pinned, 4096, 0));
        // SAFETY: the memory has this size, and no work uses it.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), pinned.cast(), 1024) };
        pinned
    });
    let user = Gpu::new();
    let s = stream(0);
    let (first, second) = (user.alloc(4096), user.alloc(4096));
    waits(s, SHORT, || {
        is!(c, 0, cuMemcpyDtoDAsync(first, device, 4096, s));
        is!(c, 0, cuMemcpyHtoDAsync(second, pinned, 4096, s));
        is!(c, 0, cuCtxSetCurrent(owner.context));
        is!(c, 0, cuMemFree(device));
        is!(c, 0, cuMemFreeHost(pinned));
        is!(c, 0, cuCtxSetCurrent(user.context));
    });
    is!(c, 0, cuStreamSynchronize(s));
    assert_eq!(user.read::<u32>(first, 1024), values);
    assert_eq!(user.read::<u32>(second, 1024), values);
}

#[test]
fn a_module_is_loaded_after_a_waiting_stream() {
    child!("a_module_is_loaded_after_a_waiting_stream", {
        let _gpu = Gpu::new();
        let s = stream(0);
        let mut pinned = ptr::null_mut();
        ok!(cuMemHostAlloc(&raw mut pinned, 4, 0));
        // SAFETY: the allocation has 4 bytes, is aligned to a page, and lives as long as the context.
        let released = unsafe { &*pinned.cast::<AtomicU32>() };
        released.store(0, Ordering::SeqCst);
        let reached = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ.0;
        ok!(cuStreamWaitValue32(s, pinned.addr() as u64, 1, reached));
        let text = ptx("globals.ptx");
        let mut module = ptr::null_mut();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                Gate::default().wait(SHORT);
                released.store(1, Ordering::SeqCst);
            });
            ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
            assert_eq!(
                released.load(Ordering::SeqCst),
                1,
                "the call did not wait for the stream"
            );
        });
        ok!(cuCtxSynchronize());
    });
}

/// Copies and frees that wait for work also wait for the events that were passed to `cuCtxWaitEvent`, as new work does.
/// Synchronisations and queries of other streams do not.
#[test]
fn events_that_a_context_waits_for() {
    // CUDA 12.5 added cuCtxWaitEvent.
    if driver_version() < 12050 {
        return needs("a driver of CUDA 12.5 or later");
    }
    child!("events_that_a_context_waits_for", {
        events_that_a_context_waits_for_alone()
    });
}

fn events_that_a_context_waits_for_alone() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    // Nothing but the event makes work of the other streams wait for this one.
    let non_blocking = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
    let (s, other) = (stream(non_blocking), stream(non_blocking));
    let (a, freed, large) = (gpu.alloc(64), gpu.alloc(64), gpu.alloc(4 * MIB));
    let (mut host, many) = ([0_u8; 64], vec![0_u8; 4 * MIB]);
    let (pointer, source) = (host.as_mut_ptr().cast::<c_void>(), many.as_ptr().cast());
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    let mut check = |label: &str, code: u32, is_to_wait: bool, call: &mut dyn FnMut() -> CUresult| {
        let mut got = CUresult(9999);
        let waited = waits(s, if is_to_wait { SHORT } else { LONG }, || {
            ok!(cuEventRecord(event, s));
            ok!(cuCtxWaitEvent(gpu.context, event));
            got = call();
        });
        c.is(code, label, got.0);
        c.that(waited == is_to_wait, || format!("{label} waited: {waited}"));
    };
    check("cuMemcpyDtoH", 0, true, &mut || call!(cuMemcpyDtoH(pointer, a, 64)));
    check("cuMemcpyDtoHAsync to pageable memory", 0, true, &mut || {
        call!(cuMemcpyDtoHAsync(pointer, a, 64, other))
    });
    // Copies from pageable memory wait for the event only if they are too large to be staged.
    for (bytes, is_to_wait) in [(64, false), (2 * MIB, false), (4 * MIB, true)] {
        check(
            &format!("cuMemcpyHtoDAsync of {bytes} bytes"),
            0,
            is_to_wait,
            &mut || call!(cuMemcpyHtoDAsync(large, source, bytes, other)),
        );
        check(&format!("cuMemcpyHtoD of {bytes} bytes"), 0, is_to_wait, &mut || {
            call!(cuMemcpyHtoD(large, source, bytes))
        });
    }
    check("cuMemFree", 0, true, &mut || call!(cuMemFree(freed)));
    check("cuStreamSynchronize", 0, false, &mut || {
        call!(cuStreamSynchronize(other))
    });
    check("cuStreamSynchronize of the legacy stream", 0, false, &mut || {
        call!(cuStreamSynchronize(ptr::null_mut()))
    });
    check("cuStreamQuery", 0, false, &mut || call!(cuStreamQuery(other)));
    check("cuMemsetD8", 0, false, &mut || call!(cuMemsetD8(a, 0, 64)));
    check("cuEventQuery after a record", 600, false, &mut || {
        let mut later = ptr::null_mut();
        ok!(cuEventCreate(&raw mut later, 0));
        ok!(cuEventRecord(later, other));
        call!(cuEventQuery(later))
    });
}

/// A context that waits for an event of another context has pending work.
#[test]
fn events_of_another_context() {
    // CUDA 12.5 added cuCtxWaitEvent.
    if driver_version() < 12050 {
        return needs("a driver of CUDA 12.5 or later");
    }
    child!("events_of_another_context", { events_of_another_context_alone() });
}

fn events_of_another_context_alone() {
    let first = Gpu::new();
    let mut c = Codes::new();
    let s = stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0);
    let (mut event, mut later) = (ptr::null_mut(), ptr::null_mut());
    ok!(cuEventCreate(&raw mut event, 0));
    let second = Gpu::new();
    let freed = second.alloc(64);
    ok!(cuEventCreate(&raw mut later, 0));
    let mut check = |label: &str, code: u32, is_to_wait: bool, call: &mut dyn FnMut() -> CUresult| {
        let mut got = CUresult(9999);
        let waited = waits(s, if is_to_wait { SHORT } else { LONG }, || {
            ok!(cuEventRecord(event, s));
            ok!(cuCtxSetCurrent(second.context));
            ok!(cuCtxWaitEvent(second.context, event));
            got = call();
            ok!(cuCtxSetCurrent(first.context));
        });
        c.is(code, label, got.0);
        c.that(waited == is_to_wait, || format!("{label} waited: {waited}"));
    };
    check("cuCtxSynchronize", 0, true, &mut || call!(cuCtxSynchronize()));
    check("cuStreamSynchronize", 0, false, &mut || {
        call!(cuStreamSynchronize(ptr::null_mut()))
    });
    check("cuMemFree", 0, true, &mut || call!(cuMemFree(freed)));
    check("cuEventQuery after cuCtxRecordEvent", 600, false, &mut || {
        ok!(cuCtxRecordEvent(second.context, later));
        call!(cuEventQuery(later))
    });
}

/// Calls that free memory or destroy an array wait for copies of it by another context, also for those of graphs.
#[test]
fn copies_by_another_context() {
    child!("copies_by_another_context", { copies_by_another_context_alone() });
}

fn copies_by_another_context_alone() {
    let first = Gpu::new();
    let mut c = Codes::new();
    let s = stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0);
    let target = first.alloc(4096);
    let mut pinned = ptr::null_mut();
    ok!(cuMemHostAlloc(&raw mut pinned, 4096, 0));
    let second = Gpu::new();
    let descriptor = CUDA_ARRAY_DESCRIPTOR {
        Width: 4096,
        Height: 1,
        Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: 1,
    };
    for (is_graph, is_array) in [(false, false), (false, true), (true, false), (true, true)] {
        ok!(cuCtxSetCurrent(second.context));
        let (memory, mut array) = (second.alloc(4096), ptr::null_mut());
        ok!(cuArrayCreate(&raw mut array, &raw const descriptor));
        ok!(cuCtxSetCurrent(first.context));
        let copy = || {
            if is_array {
                ok!(cuMemcpyAtoHAsync(pinned, array, 0, 4096, s));
            } else {
                ok!(cuMemcpyDtoDAsync(target, memory, 4096, s));
            }
        };
        let (mut graph, mut exec) = (ptr::null_mut(), ptr::null_mut());
        ok!(cuStreamBeginCapture(
            s,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
        ));
        copy();
        ok!(cuStreamEndCapture(s, &raw mut graph));
        ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
        let mut code = CUresult(9999);
        let waited = waits(s, SHORT, || {
            if is_graph {
                ok!(cuGraphLaunch(exec, s));
            } else {
                copy();
            }
            ok!(cuCtxSetCurrent(second.context));
            code = if is_array {
                call!(cuArrayDestroy(array))
            } else {
                call!(cuMemFree(memory))
            };
            ok!(cuCtxSetCurrent(first.context));
        });
        let label = format!("graph: {is_graph}, array: {is_array}");
        c.is(0, &label, code.0);
        c.that(waited, || format!("{label}: the call did not wait"));
        is!(c, 0, cuStreamSynchronize(s));
        ok!(cuGraphExecDestroy(exec));
        ok!(cuGraphDestroy(graph));
    }
}

/// An asynchronous copy of at most 2 MiB from pageable memory reads its source at once, whatever its stream waits for.
/// A copy of 4 MiB waits.
#[test]
fn staged_copies() {
    child!("staged_copies", { staged_copies_alone() });
}

fn staged_copies_alone() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (blocking, non_blocking) = (stream(0), stream(CUstream_flags::CU_STREAM_NON_BLOCKING.0));
    let legacy = ptr::null_mut();
    let memory = gpu.alloc(8 * MIB);
    // The stream with pending work, and the stream of the copy.
    for (label, busy, used) in [
        ("a busy stream", non_blocking, non_blocking),
        ("the busy legacy stream", legacy, legacy),
        ("a stream behind the legacy stream", legacy, blocking),
        ("the legacy stream behind another one", blocking, legacy),
    ] {
        for (bytes, is_to_wait) in [(64, false), (2 * MIB, false), (4 * MIB, true)] {
            for in_rows in [false, true] {
                let mut source = vec![1_u8; 2 * bytes];
                let rows = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    srcHost: source.as_ptr().cast(),
                    srcPitch: 128,
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    dstDevice: memory,
                    dstPitch: 96,
                    WidthInBytes: 64,
                    Height: bytes / 64,
                    ..Default::default()
                };
                ok!(cuMemsetD8(memory, 9, 8 * MIB));
                ok!(cuCtxSynchronize());
                let waited = waits(busy, if is_to_wait { SHORT } else { LONG }, || {
                    if in_rows {
                        ok!(cuMemcpy2DAsync(&raw const rows, used));
                    } else {
                        ok!(cuMemcpyHtoDAsync(memory, source.as_ptr().cast(), bytes, used));
                    }
                    source.fill(2);
                });
                c.that(waited == is_to_wait, || {
                    format!("{label}, {bytes} bytes, in rows: {in_rows}; waited: {waited}")
                });
                let pitch = if in_rows { 96 } else { 64 };
                let got = gpu.read::<u8>(memory, bytes / 64 * pitch);
                let is_right = |row: &[u8]| row[..64] == [1; 64] && row[64..].iter().all(|&byte| byte == 9);
                c.that(got.chunks(pitch).all(is_right), || {
                    format!("{label}, {bytes} bytes: wrong")
                });
            }
        }
    }
    // A synchronous copy waits, however small it is.
    let source = [1_u8; 64];
    for busy in [legacy, blocking] {
        let waited = waits(busy, SHORT, || ok!(cuMemcpyHtoD(memory, source.as_ptr().cast(), 64)));
        c.that(waited, || "cuMemcpyHtoD did not wait".to_owned());
    }
}

/// A copy between pageable host memory waits for the work that new work of its stream would wait for.
#[test]
fn copies_in_host_memory_wait_for_the_legacy_stream() {
    child!("copies_in_host_memory_wait_for_the_legacy_stream", {
        let _gpu = Gpu::new();
        let blocking = stream(0);
        let (from, mut to) = ([7_u8; 64], [0_u8; 64]);
        let (target, source) = (to.as_mut_ptr() as CUdeviceptr, from.as_ptr() as CUdeviceptr);
        let waited = waits(ptr::null_mut(), SHORT, || {
            ok!(cuMemcpyAsync(target, source, 64, blocking));
        });
        assert!(waited, "cuMemcpyAsync did not wait for the legacy stream");
        assert_eq!(to, from);
    });
}
