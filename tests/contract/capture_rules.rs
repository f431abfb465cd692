//! Tests of calls that stream capture forbids, and of captures that fail.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver_version, needs};
use crate::graph_tools::{Steps, begin, edges, end, event, graph, instantiate, kinds, status, stream};
use crate::{call, child, is, ok};

unsafe extern "system" fn callback(_: CUstream, _: CUresult, _: *mut c_void) {}

/// Ends a capture, destroys its graph, and returns the code of ending the capture. If it is not 0, there must be no
/// graph.
fn end_code(stream: CUstream) -> u32 {
    let mut graph = ptr::without_provenance_mut(8);
    let code = crate::call!(cuStreamEndCapture(stream, &raw mut graph)).0;
    assert_eq!(graph.is_null(), code != 0, "{graph:?} with {code}");
    if code == 0 {
        ok!(cuGraphDestroy(graph));
    }
    code
}

/// Makes a call during a capture of this mode. Returns the call's code, the capture's status after it, and the code of
/// ending the capture.
pub(crate) fn during(flags: u32, mode: u32, call: &mut dyn FnMut(CUstream) -> CUresult) -> [u32; 3] {
    let stream = stream(flags);
    ok!(cuStreamBeginCapture(stream, CUstreamCaptureMode(mode)));
    let code = call(stream).0;
    let all = [code, status(stream), end_code(stream)];
    ok!(cuCtxSynchronize());
    ok!(cuStreamDestroy(stream));
    all
}

/// Returns the call's code in all modes (global, thread-local, relaxed), first with a capturing stream for which the
/// null stream waits, then with a non-blocking one.
pub(crate) fn in_all_modes(mut call: impl FnMut(CUstream) -> CUresult) -> [u32; 6] {
    let mut codes = [0; 6];
    for (index, code) in codes.iter_mut().enumerate() {
        let (flags, mode) = (index / 3, index % 3);
        let seen = during(flags as u32, mode as u32, &mut call);
        // A call that fails with an error of captures (900 and above) invalidates the capture.
        let invalidated = seen[0] >= 900;
        assert_eq!(seen[1..], if invalidated { [2, 901] } else { [1, 0] }, "{seen:?}");
        *code = seen[0];
    }
    codes
}

/// `assert_codes!([0, …], |s| cuStreamQuery(s))`: checks the codes that [`in_all_modes`] returns.
macro_rules! assert_codes {
    ($expected:expr, |$s:ident| $call:expr) => {{
        #[allow(unused_variables)]
        let got = $crate::capture_rules::in_all_modes(|$s| crate::call!($call));
        assert_eq!(got, $expected, "{}", stringify!($call));
    }};
}

pub(crate) use assert_codes;

/// The codes of calls that every mode forbids.
pub(crate) const ALWAYS: [u32; 6] = [900; 6];
/// The codes of calls that only relaxed mode allows.
pub(crate) const UNSAFE: [u32; 6] = [900, 900, 0, 900, 900, 0];
/// The codes of work in the null stream, which would wait for the capturing stream unless that is non-blocking.
pub(crate) const IMPLICIT: [u32; 6] = [906, 906, 906, 0, 0, 0];
/// The codes of calls that no mode forbids.
pub(crate) const NEVER: [u32; 6] = [0; 6];

/// Synchronous copies and fills in a default stream of the thread fail while the stream captures.
#[test]
fn calls_in_a_capturing_default_stream() {
    // In a process of its own, because a capture in global mode forbids some calls in all threads.
    child!("calls_in_a_capturing_default_stream", {
        let s = Steps::new();
        let (data, word) = (s.data, 0_u32);
        let from = (&raw const word).cast::<c_void>();
        let calls: [&dyn Fn() -> CUresult; 3] = [
            &|| call!(cuMemsetD32_v2_ptds(data, 1, 1)),
            &|| call!(cuMemcpyDtoD_v2_ptds(data, data + 8, 4)),
            &|| call!(cuMemcpyHtoD_v2_ptds(data, from, 4)),
        ];
        for mode in 0..3 {
            for (index, call) in calls.iter().enumerate() {
                ok!(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CUstreamCaptureMode(mode)));
                let codes = (call().0, end_code(CU_STREAM_PER_THREAD));
                assert_eq!(codes, (900, 901), "mode {mode}, call {index}");
            }
        }
        ok!(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    });
}

#[test]
fn calls_while_a_stream_captures() {
    // In a process of its own, because a capture in global mode forbids some calls in all threads.
    child!("calls_while_a_stream_captures", {
        let s = Steps::new();
        let other = stream(1);
        let null: CUstream = ptr::null_mut();
        let data = s.data;
        let done = event();
        ok!(cuEventRecord(done, other));
        ok!(cuStreamSynchronize(other));
        let mut page = [0_u8; 64];
        let host = page.as_mut_ptr().cast::<c_void>();

        assert_codes!(ALWAYS, |s| cuStreamQuery(s));
        assert_codes!(ALWAYS, |s| cuStreamSynchronize(s));
        assert_codes!(ALWAYS, |s| cuCtxSynchronize());
        assert_codes!(ALWAYS, |s| cuStreamAddCallback(s, Some(callback), null.cast(), 0));
        let (mut flags, mut id, mut priority) = (0, 0, 0);
        assert_codes!(ALWAYS, |s| cuStreamGetFlags(s, &raw mut flags));
        assert_codes!(ALWAYS, |s| cuStreamGetId(s, &raw mut id));
        assert_codes!(NEVER, |s| cuStreamGetPriority(s, &raw mut priority));
        assert_codes!([906, 906, 906, 900, 900, 0], |s| cuStreamQuery(null));
        assert_codes!([906, 906, 906, 900, 900, 0], |s| cuStreamSynchronize(null));
        assert_codes!(UNSAFE, |s| cuStreamQuery(other));
        assert_codes!(UNSAFE, |s| cuStreamSynchronize(other));
        assert_codes!(UNSAFE, |s| cuEventQuery(done));
        assert_codes!(UNSAFE, |s| cuEventSynchronize(done));

        let (mut memory, mut pinned) = (0, null.cast::<c_void>());
        assert_codes!(UNSAFE, |s| cuMemAlloc(&raw mut memory, 64));
        assert_codes!(UNSAFE, |s| cuMemFree(0));
        assert_codes!(UNSAFE, |s| cuMemHostAlloc(&raw mut pinned, 64, 0));
        assert_codes!(UNSAFE, |s| cuMemFreeHost(ptr::null_mut()));
        assert_codes!(UNSAFE, |s| cuMemAllocManaged(&raw mut memory, 64, 1));
        assert_codes!(UNSAFE, |s| cuMemAllocAsync(&raw mut memory, 64, other));
        assert_codes!(UNSAFE, |s| cuMemFreeAsync(0, other));
        assert_codes!(NEVER, |s| cuMemAllocAsync(&raw mut memory, 64, s));
        assert_codes!(UNSAFE, |s| cuProfilerStart());
        assert_codes!(UNSAFE, |s| cuProfilerStop());

        assert_codes!(IMPLICIT, |s| cuMemcpyHtoD(data, host, 64));
        assert_codes!(IMPLICIT, |s| cuMemcpyDtoH(host, data, 64));
        assert_codes!(IMPLICIT, |s| cuMemsetD8(data, 0, 64));
        assert_codes!(IMPLICIT, |s| cuMemsetD8Async(data, 0, 64, null));
        assert_codes!(IMPLICIT, |s| cuEventRecord(done, null));
        assert_codes!(IMPLICIT, |s| cuStreamWaitEvent(null, done, 0));
        assert_codes!(NEVER, |s| cuMemsetD8Async(data, 0, 64, other));
        assert_codes!(NEVER, |s| cuMemcpyHtoDAsync(data, host, 64, s));

        let (mut created, mut made) = (ptr::null_mut(), ptr::null_mut());
        assert_codes!(NEVER, |s| cuStreamCreate(&raw mut created, 0));
        assert_codes!(NEVER, |s| cuEventCreate(&raw mut made, 0));
        let mut exec = ptr::null_mut();
        let small = graph();
        assert_codes!(UNSAFE, |s| cuGraphInstantiateWithFlags(&raw mut exec, small, 0));
        let exec = instantiate(small);
        assert_codes!(ALWAYS, |s| cuGraphLaunch(exec, s));
        assert_codes!(NEVER, |s| cuGraphLaunch(exec, other));
        assert_codes!(IMPLICIT, |s| cuGraphLaunch(exec, null));

        // The stream waits for an event that was recorded outside the capture.
        assert_codes!([905; 6], |s| cuStreamWaitEvent(s, done, 0));
        // The program queries, and waits for, an event that the capture itself recorded.
        let inside = event();
        let recorded = |stream| {
            ok!(cuEventRecord(inside, stream));
            inside
        };
        assert_codes!([907; 6], |s| cuEventQuery(recorded(s)));
        assert_codes!([907; 6], |s| cuEventSynchronize(recorded(s)));
        // Waiting for an event that was never recorded does nothing.
        let never = event();
        assert_codes!(NEVER, |s| cuStreamWaitEvent(s, never, 0));
    });
}

#[test]
fn modes_and_threads() {
    child!("modes_and_threads", {
        let s = Steps::new();
        let context = s.gpu.context.addr();
        // Returns the code of an allocation by another thread with this capture mode.
        let elsewhere = |own: u32| {
            let alloc = move || {
                let mut mode = CUstreamCaptureMode(own);
                let mut memory = 0;
                ok!(cuCtxSetCurrent(ptr::with_exposed_provenance_mut(context)));
                ok!(cuThreadExchangeStreamCaptureMode(&raw mut mode));
                assert_eq!(mode.0, 0, "the mode of a new thread");
                crate::call!(cuMemAlloc(&raw mut memory, 64)).0
            };
            std::thread::spawn(alloc).join().unwrap_or(999)
        };
        let code = |mode, own| during(1, mode, &mut |_| CUresult(elsewhere(own)));
        // A capture forbids calls of another thread only if the capture and the thread are both in global mode.
        assert_eq!(code(0, 0), [900, 2, 901]);
        for (mode, own) in [(0, 1), (0, 2), (1, 0), (1, 1), (2, 0)] {
            assert_eq!(code(mode, own), [0, 1, 0], "{mode} {own}");
        }
        // The capturing thread may allow such calls by exchanging its mode.
        let relaxed = |_| {
            let mut mode = CUstreamCaptureMode(2);
            let mut memory = 0;
            ok!(cuThreadExchangeStreamCaptureMode(&raw mut mode));
            let code = crate::call!(cuMemAlloc(&raw mut memory, 64));
            ok!(cuThreadExchangeStreamCaptureMode(&raw mut mode));
            assert_eq!(mode.0, 2);
            code
        };
        assert_eq!(during(0, 0, &mut { relaxed }), [0, 1, 0]);
        // Only the thread that began a capture may end it, unless the capture is relaxed.
        for (mode, expected) in [(0, [908, 0, 401]), (1, [908, 0, 401]), (2, [0, 0, 401])] {
            let mut ended = |stream: CUstream| {
                let stream = stream.expose_provenance();
                let end = move || {
                    let mut graph = ptr::null_mut();
                    let stream = ptr::with_exposed_provenance_mut(stream);
                    crate::call!(cuStreamEndCapture(stream, &raw mut graph)).0
                };
                CUresult(std::thread::spawn(end).join().unwrap_or(999))
            };
            assert_eq!(during(1, mode, &mut ended), expected, "{mode}");
        }
    });
}

#[test]
fn captures_that_fail() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (a, b) = (s.stream, stream(1));
    let (fork, join) = (event(), event());
    // A fork that is not joined. Afterwards no stream captures.
    begin(a);
    is!(c, 0, cuEventRecord(fork, a));
    is!(c, 0, cuStreamWaitEvent(b, fork, 0));
    s.step(b, 1);
    assert_eq!(end_code(a), 904);
    assert_eq!((status(a), status(b)), (0, 0));
    // A fork without work of its own need not be joined.
    begin(a);
    s.step(a, 1);
    is!(c, 0, cuEventRecord(fork, a));
    is!(c, 0, cuStreamWaitEvent(b, fork, 0));
    assert_eq!(end_code(a), 0);
    assert_eq!(status(b), 0);
    // A capture ends on the stream on which it began.
    begin(a);
    is!(c, 0, cuEventRecord(fork, a));
    is!(c, 0, cuStreamWaitEvent(b, fork, 0));
    assert_eq!(end_code(b), 903);
    assert_eq!((status(a), status(b)), (2, 2));
    is!(c, 901, cuEventRecord(join, b));
    is!(c, 901, cuStreamWaitEvent(a, join, 0));
    is!(c, 901, cuMemsetD8Async(s.data, 1, 1, a));
    assert_eq!(end_code(a), 901);
    assert_eq!((status(a), status(b)), (0, 0));
    // Two captures cannot be merged.
    begin(a);
    begin(b);
    is!(c, 401, cuStreamBeginCapture(b, CUstreamCaptureMode(2)));
    s.step(b, 1);
    is!(c, 0, cuEventRecord(join, b));
    is!(c, 902, cuStreamWaitEvent(a, join, 0));
    assert_eq!((status(a), status(b)), (2, 2));
    assert_eq!((end_code(a), end_code(b)), (901, 901));
    // An event of a capture that has ended.
    begin(a);
    is!(c, 1, cuStreamWaitEvent(a, join, 0));
    assert_eq!(end_code(a), 901);
    // A stream is destroyed: one on which a capture began, and one that joined a capture.
    let destroyed = stream(1);
    begin(destroyed);
    is!(c, 0, cuStreamDestroy(destroyed));
    let destroyed = stream(1);
    begin(a);
    is!(c, 0, cuEventRecord(fork, a));
    is!(c, 0, cuStreamWaitEvent(destroyed, fork, 0));
    s.step(destroyed, 1);
    is!(c, 0, cuStreamDestroy(destroyed));
    assert_eq!(end_code(a), 904);
    // A wait for NULL invalidates the capture.
    begin(a);
    is!(c, 400, cuStreamWaitEvent(a, ptr::null_mut(), 0));
    assert_eq!((status(a), end_code(a)), (2, 901));
    // Other failing calls do not invalidate the capture.
    begin(a);
    let (mut address, nothing) = (0, ptr::null_mut());
    is!(
        c,
        400,
        cuLaunchKernel(ptr::null_mut(), 1, 1, 1, 1, 1, 1, 0, a, nothing, ptr::null_mut())
    );
    is!(
        c,
        1,
        cuLaunchKernel(s.step, 1, 1, 1, 1, 1, 1, 0, a, nothing, ptr::null_mut())
    );
    is!(c, 1, cuMemsetD32Async(s.data + 1, 0, 1, a));
    is!(c, 1, cuMemAllocAsync(ptr::null_mut(), 64, a));
    is!(c, 2, cuMemAllocAsync(&raw mut address, 1 << 50, a));
    assert_eq!((status(a), end_code(a)), (1, 0));
    // Ending a capture that did not begin, and beginning captures that are not possible.
    assert_eq!(end_code(a), 401);
    is!(c, 1, cuStreamBeginCapture(a, CUstreamCaptureMode(3)));
    is!(c, 900, cuStreamBeginCapture(ptr::null_mut(), CUstreamCaptureMode(2)));
    is!(c, 1, cuStreamIsCapturing(a, ptr::null_mut()));
    // The caller does not want the graph.
    begin(a);
    is!(c, 0, cuStreamEndCapture(a, ptr::null_mut()));
    assert_eq!(status(a), 0);
    assert_eq!(s.value(0), 0, "work ran during the capture");
}

#[test]
fn the_null_stream_during_a_capture() {
    let s = Steps::new();
    let mut c = Codes::new();
    let blocking = stream(0);
    let fork = event();
    let null: CUstream = ptr::null_mut();
    begin(blocking);
    let mut state = CUstreamCaptureStatus(77);
    is!(c, 906, cuStreamIsCapturing(null, &raw mut state));
    assert_eq!(status(CU_STREAM_PER_THREAD), 0);
    assert_eq!(status(blocking), 1, "a query does not invalidate the capture");
    is!(c, 0, cuEventRecord(fork, blocking));
    is!(c, 906, cuStreamWaitEvent(null, fork, 0));
    assert_eq!(end_code(blocking), 901);
    // The per-thread stream captures like any other.
    let own = CU_STREAM_PER_THREAD;
    begin(own);
    s.step(own, 4);
    let graph = end(own);
    assert_eq!(kinds(graph), [0]);
    let exec = instantiate(graph);
    assert_eq!(s.run(exec), 4);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(graph));
}

#[test]
fn capture_to_an_existing_graph() {
    // CUDA 12.3 added cuStreamBeginCaptureToGraph.
    if driver_version() < 12030 {
        return needs("a driver of CUDA 12.3");
    }
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    let into = graph();
    let first = s.digit(into, &[], 1);
    let relaxed = CUstreamCaptureMode(2);
    is!(
        c,
        0,
        cuStreamBeginCaptureToGraph(a, into, &raw const first, ptr::null(), 1, relaxed)
    );
    // Another stream cannot capture to the graph until the first capture has ended.
    let b = stream(1);
    is!(
        c,
        401,
        cuStreamBeginCaptureToGraph(b, into, ptr::null(), ptr::null(), 0, relaxed)
    );
    assert_eq!(status(b), 0);
    s.step(a, 2);
    is!(c, 401, cuGraphDestroy(into));
    assert_eq!(end(a), into);
    is!(
        c,
        0,
        cuStreamBeginCaptureToGraph(b, into, ptr::null(), ptr::null(), 0, relaxed)
    );
    assert_eq!(end(b), into);
    assert_eq!(edges(into), [(0, 1)]);
    let exec = instantiate(into);
    assert_eq!(s.run(exec), 12);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(
        c,
        1,
        cuStreamBeginCaptureToGraph(a, ptr::null_mut(), ptr::null(), ptr::null(), 0, relaxed)
    );
    is!(c, 0, cuGraphDestroy(into));
}
