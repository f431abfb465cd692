//! Tests of stream capture: work on a capturing stream becomes nodes of a graph.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::graph_tools::{Steps, begin, edges, end, event, instantiate, kinds, nodes, status, stream};
use crate::{is, ok};

#[test]
fn work_is_done_when_the_graph_is_launched() {
    let s = Steps::new();
    begin(s.stream);
    s.step(s.stream, 1);
    s.step(s.stream, 2);
    s.step(s.stream, 3);
    let graph = end(s.stream);
    assert_eq!(s.value(0), 0, "work ran during the capture");
    assert_eq!(kinds(graph), [0, 0, 0]);
    assert_eq!(edges(graph), [(0, 1), (1, 2)]);
    let exec = instantiate(graph);
    ok!(cuGraphDestroy(graph));
    for _ in 0..2 {
        assert_eq!(s.run(exec), 123);
    }
    // Twice in a row, without waiting in between.
    s.clear();
    ok!(cuGraphLaunch(exec, s.stream));
    ok!(cuGraphLaunch(exec, s.stream));
    assert_eq!(s.value(0), 123_123);
    // On two streams: launches of one executable graph do not overlap.
    let other = stream(1);
    s.clear();
    ok!(cuGraphLaunch(exec, s.stream));
    ok!(cuGraphLaunch(exec, other));
    ok!(cuStreamSynchronize(other));
    assert_eq!(s.value(0), 123_123);
    // A pending launch continues after its executable graph is destroyed.
    s.clear();
    ok!(cuGraphLaunch(exec, s.stream));
    ok!(cuGraphExecDestroy(exec));
    assert_eq!(s.value(0), 123);
}

#[test]
fn forks_and_joins() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (a, b) = (s.stream, stream(1));
    let (fork, join) = (event(), event());
    begin(a);
    s.step(a, 1);
    is!(c, 0, cuEventRecord(fork, a));
    is!(c, 0, cuStreamWaitEvent(b, fork, 0));
    assert_eq!((status(a), status(b)), (1, 1));
    s.launch(s.step, b, s.data + 4, 7);
    s.step(a, 2);
    is!(c, 0, cuEventRecord(join, b));
    is!(c, 0, cuStreamWaitEvent(a, join, 0));

    let (mut state, mut id, mut other) = (CUstreamCaptureStatus(77), 0, 0);
    let (mut graph, mut after, mut count) = (ptr::null_mut(), ptr::null(), 99);
    is!(
        c,
        0,
        cuStreamGetCaptureInfo(
            b,
            &raw mut state,
            &raw mut other,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut()
        )
    );
    is!(
        c,
        0,
        cuStreamGetCaptureInfo(
            a,
            &raw mut state,
            &raw mut id,
            &raw mut graph,
            &raw mut after,
            &raw mut count
        )
    );
    // SAFETY: the driver keeps the array until the next call for the stream.
    let after = unsafe { std::slice::from_raw_parts(after, count) }.to_vec();
    let all = nodes(graph);
    assert_eq!(after, [all[2], all[1]], "the dependencies of the next node");
    assert!(id == other && id != 0);

    // The copy reads the results of both streams.
    is!(c, 0, cuMemcpyDtoDAsync(s.data + 8, s.data, 8, a));
    let captured = end(a);
    assert_eq!(captured, graph);
    assert_eq!((status(a), status(b)), (0, 0));
    assert_eq!(kinds(graph), [0, 0, 0, 1]);
    assert_eq!(edges(graph), [(0, 1), (0, 2), (1, 3), (2, 3)]);
    let exec = instantiate(graph);
    for _ in 0..3 {
        assert_eq!(s.run(exec), 12);
        assert_eq!(s.gpu.read::<u32>(s.data, 4), [12, 7, 12, 7]);
    }
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(graph));
}

/// Adds one to the counter that `data` points to.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the launches.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn all_kinds_of_work() {
    let s = Steps::new();
    let mut c = Codes::new();
    let mut source = [5_u32; 16];
    let mut result = [0_u32; 16];
    let calls = AtomicU32::new(0);
    let counter = (&raw const calls).cast_mut().cast();
    let mut temporary = 0;
    let a = s.stream;
    begin(a);
    is!(c, 0, cuMemcpyHtoDAsync(s.data, source.as_ptr().cast(), 64, a));
    is!(c, 0, cuMemsetD32Async(s.data, 9, 2, a));
    is!(c, 0, cuMemAllocAsync(&raw mut temporary, 64, a));
    is!(c, 0, cuMemcpyDtoDAsync(temporary, s.data, 64, a));
    s.launch(s.step, a, temporary, 1);
    is!(c, 0, cuLaunchHostFunc(a, Some(count), counter));
    is!(c, 0, cuMemcpyDtoHAsync(result.as_mut_ptr().cast(), temporary, 64, a));
    is!(c, 0, cuMemFreeAsync(temporary, a));
    // Work of no size makes no node, nor does freeing NULL.
    is!(c, 0, cuMemcpyDtoDAsync(s.data, s.data + 64, 0, a));
    is!(c, 0, cuMemsetD8Async(s.data, 1, 0, a));
    is!(c, 0, cuMemFreeAsync(0, a));
    // These calls with a wrong argument make no nodes either, and do not invalidate the capture.
    is!(c, 1, cuMemcpyDtoDAsync(s.data, 16, 64, a));
    is!(c, 1, cuLaunchHostFunc(a, None, ptr::null_mut()));
    is!(c, 1, cuMemFreeAsync(s.data, a));
    let graph = end(a);
    assert_eq!(kinds(graph), [1, 2, 10, 1, 0, 3, 1, 11]);
    let exec = instantiate(graph);
    for round in 1..4 {
        // The graph reads the program's memory when it runs, not when the copy is captured.
        source[3] = 100 * round;
        is!(c, 0, cuGraphLaunch(exec, a));
        is!(c, 0, cuStreamSynchronize(a));
        assert_eq!(result[..5], [91, 9, 5, 100 * round, 5]);
        assert_eq!(calls.load(Ordering::SeqCst), round);
    }
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(graph));
}

#[test]
fn parameters_of_captured_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    let page = [0_u8; 256];
    let host = page.as_ptr();
    begin(a);
    is!(c, 0, cuMemcpyHtoDAsync(s.data, host.cast(), 64, a));
    is!(c, 0, cuMemcpyAsync(s.data, host.addr() as u64, 8, a));
    let rows = CUDA_MEMCPY2D {
        srcXInBytes: 4,
        srcY: 1,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: host.cast(),
        srcPitch: 64,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: s.data,
        dstPitch: 64,
        WidthInBytes: 16,
        Height: 3,
        ..Default::default()
    };
    is!(c, 0, cuMemcpy2DAsync(&raw const rows, a));
    is!(c, 0, cuMemsetD16Async(s.data, 0x1234, 32, a));
    is!(c, 0, cuMemsetD2D32Async(s.data, 64, 9, 4, 3, a));
    s.step(a, 5);
    let graph = end(a);
    let all = nodes(graph);
    let copy = |node| {
        let mut p = CUDA_MEMCPY3D::default();
        ok!(cuGraphMemcpyNodeGetParams(node, &raw mut p));
        let extent = [p.WidthInBytes, p.Height, p.Depth];
        let from = (p.srcMemoryType.0, p.srcXInBytes, p.srcY, p.srcPitch);
        let to = (p.dstMemoryType.0, p.dstDevice, p.dstPitch);
        (extent, from, to, p.srcHost.addr(), p.srcDevice)
    };
    assert_eq!(copy(all[0]), ([64, 1, 1], (1, 0, 0, 0), (2, s.data, 0), host.addr(), 0));
    assert_eq!(
        copy(all[1]),
        ([8, 1, 1], (4, 0, 0, 0), (4, s.data, 0), 0, host.addr() as u64)
    );
    assert_eq!(
        copy(all[2]),
        ([16, 3, 1], (1, 4, 1, 64), (2, s.data, 64), host.addr(), 0)
    );
    let fill = |node| {
        let mut p = CUDA_MEMSET_NODE_PARAMS::default();
        ok!(cuGraphMemsetNodeGetParams(node, &raw mut p));
        (p.dst, p.pitch, p.value, p.elementSize, p.width, p.height)
    };
    assert_eq!(fill(all[3]), (s.data, 0, 0x1234, 2, 32, 1));
    assert_eq!(fill(all[4]), (s.data, 64, 9, 4, 4, 3));
    let mut p = CUDA_KERNEL_NODE_PARAMS::default();
    is!(c, 0, cuGraphKernelNodeGetParams(all[5], &raw mut p));
    assert_eq!(p.func, s.step);
    assert_eq!((p.gridDimX, p.blockDimX, p.sharedMemBytes), (1, 1, 0));
    assert!(p.extra.is_null() && p.kern.is_null());
    assert_eq!(p.ctx, s.gpu.context);
    // SAFETY: the driver keeps a node's arguments until the node is changed.
    let (address, value) = unsafe {
        let places = [p.kernelParams.read(), p.kernelParams.add(1).read()];
        (places[0].cast::<u64>().read(), places[1].cast::<u32>().read())
    };
    assert_eq!((address, value), (s.data, 5));
    // Queries for other kinds of nodes.
    is!(c, 1, cuGraphKernelNodeGetParams(all[0], &raw mut p));
    is!(c, 1, cuGraphMemcpyNodeGetParams(all[5], &mut CUDA_MEMCPY3D::default()));
    is!(c, 0, cuGraphDestroy(graph));
}

#[test]
fn dependencies_can_be_changed_during_a_capture() {
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    begin(a);
    s.step(a, 1);
    let (mut state, mut graph) = (CUstreamCaptureStatus(77), ptr::null_mut());
    let (mut after, mut count) = (ptr::null(), 0);
    is!(
        c,
        0,
        cuStreamGetCaptureInfo(
            a,
            &raw mut state,
            ptr::null_mut(),
            &raw mut graph,
            &raw mut after,
            &raw mut count
        )
    );
    assert_eq!(count, 1);
    // SAFETY: the driver keeps the array until the next call for the stream.
    let first = unsafe { after.read() };
    let mut own = s.digit(graph, &[first], 5);
    is!(c, 0, cuStreamUpdateCaptureDependencies(a, &raw mut own, 1, 1));
    s.step(a, 2);
    let mut more = s.node(graph, &[], s.step, s.data + 4, 7);
    is!(c, 0, cuStreamUpdateCaptureDependencies(a, &raw mut more, 1, 0));
    s.step(a, 3);
    is!(c, 1, cuStreamUpdateCaptureDependencies(a, &raw mut more, 1, 2));
    is!(c, 1, cuStreamUpdateCaptureDependencies(a, ptr::null_mut(), 1, 0));
    is!(c, 0, cuStreamUpdateCaptureDependencies(a, ptr::null_mut(), 0, 1));
    s.launch(s.step, a, s.data + 8, 9);
    is!(c, 401, cuGraphDestroy(graph));
    assert_eq!(end(a), graph);
    is!(c, 401, cuStreamUpdateCaptureDependencies(a, &raw mut more, 1, 0));
    assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 4), (3, 4)]);
    let exec = instantiate(graph);
    assert_eq!(s.run(exec), 1523);
    assert_eq!(s.gpu.read::<u32>(s.data, 3), [1523, 7, 9]);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(graph));
}

#[test]
fn events_as_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (a, b) = (s.stream, stream(1));
    let (made, wanted) = (event(), event());
    is!(c, 401, cuEventRecordWithFlags(made, a, 1));
    is!(c, 401, cuStreamWaitEvent(a, made, 1));
    s.launch(s.step, b, s.data + 4, 4);
    is!(c, 0, cuEventRecord(wanted, b));
    begin(a);
    is!(c, 0, cuStreamWaitEvent(a, wanted, 1));
    s.step(a, 1);
    is!(c, 0, cuEventRecordWithFlags(made, a, 1));
    is!(c, 1, cuEventRecordWithFlags(made, a, 2));
    let graph = end(a);
    assert_eq!(kinds(graph), [6, 0, 7]);
    let mut event = ptr::null_mut();
    is!(c, 0, cuGraphEventWaitNodeGetEvent(nodes(graph)[0], &raw mut event));
    assert_eq!(event, wanted);
    is!(c, 0, cuGraphEventRecordNodeGetEvent(nodes(graph)[2], &raw mut event));
    assert_eq!(event, made);
    // An event that the graph records orders work outside of the graph.
    let exec = instantiate(graph);
    is!(c, 0, cuGraphLaunch(exec, a));
    is!(c, 0, cuStreamWaitEvent(b, made, 0));
    s.step(b, 2);
    is!(c, 0, cuStreamSynchronize(b));
    is!(c, 0, cuEventQuery(made));
    assert_eq!(s.value(0), 12);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(graph));
}
