//! Tests of graphs with calls that crash NVIDIA's driver (destroyed handles), and with many threads.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Context, check, cuda, expect, software};
use crate::stream::{NON_BLOCKING, stream};
use cuda_driver_sys::*;

const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

fn graph() -> CUgraph {
    let mut graph = null_mut();
    check(unsafe { cuda().cuGraphCreate(&mut graph, 0) });
    graph
}

fn empty_node(graph: CUgraph) -> CUgraphNode {
    let mut node = null_mut();
    check(unsafe { cuda().cuGraphAddEmptyNode(&mut node, graph, null(), 0) });
    node
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    check(unsafe { cuda().cuGraphInstantiateWithFlags(&mut exec, graph, 0) });
    exec
}

#[test]
fn destroyed_handles_are_errors() {
    if !software() {
        return; // NVIDIA's driver crashes
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (g, other) = (graph(), graph());
    let node = empty_node(g);
    let (mut kind, mut count, mut new) = (CUgraphNodeType(0), 0, null_mut());
    unsafe {
        check(cuda.cuGraphDestroyNode(node));
        expect(cuda.cuGraphDestroyNode(node), 1);
        expect(cuda.cuGraphNodeGetType(node, &mut kind), 1);
        expect(cuda.cuGraphAddEmptyNode(&mut new, g, &node, 1), 1);
        let node = empty_node(g);
        check(cuda.cuGraphDestroy(g));
        expect(cuda.cuGraphNodeGetType(node, &mut kind), 1);
        expect(cuda.cuGraphGetNodes(g, null_mut(), &mut count), 1);
        expect(cuda.cuGraphAddEmptyNode(&mut new, g, null(), 0), 1);
        // A graph handle is not a node handle, a node handle is not a graph handle, and neither is an address.
        expect(cuda.cuGraphNodeGetType(other.cast(), &mut kind), 1);
        expect(cuda.cuGraphDestroy(node.cast()), 1);
        expect(cuda.cuGraphDestroy((&raw mut new).cast()), 1);
        expect(cuda.cuGraphLaunch(other.cast(), null_mut()), 1);
        expect(cuda.cuUserObjectRelease(other.cast(), 1), 1);
        // Adding a graph to itself adds a copy of it.
        check(cuda.cuGraphAddChildGraphNode(&mut new, other, null(), 0, other));
        let exec = instantiate(other);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        check(cuda.cuGraphDestroy(other));
        check(cuda.cuGraphExecDestroy(exec));
    }
}

#[test]
fn a_destroyed_event_stays_in_the_graph() {
    if !software() {
        return; // NVIDIA's driver crashes
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (mut event, mut node) = (null_mut(), null_mut());
    let g = graph();
    unsafe {
        check(cuda.cuEventCreate(&mut event, 0));
        check(cuda.cuGraphAddEventRecordNode(&mut node, g, null(), 0, event));
        check(cuda.cuGraphAddEventWaitNode(&mut node, g, &node.clone(), 1, event));
        check(cuda.cuEventDestroy(event));
        let exec = instantiate(g);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(g));
    }
}

#[test]
fn a_capture_ends_with_its_context() {
    let cuda = cuda();
    let context = Context::new();
    let (capturing, mut graph, mut status) = (stream(CUstream_flags(0)), null_mut(), CUstreamCaptureStatus(9));
    unsafe {
        check(cuda.cuStreamBeginCapture_v2(capturing, RELAXED));
        check(cuda.cuMemsetD8Async(0x10, 0, 1, capturing));
        check(cuda.cuStreamGetCaptureInfo_v2(capturing, &mut status, null_mut(), &mut graph, null_mut(), null_mut()));
        drop(context);
        let _other = Context::new();
        if software() {
            let mut count = 0;
            expect(cuda.cuGraphGetNodes(graph, null_mut(), &mut count), 1);
            expect(cuda.cuStreamEndCapture(capturing, &mut graph), 709);
        }
        // The capture has ended, so it no longer forbids these calls.
        check(cuda.cuStreamIsCapturing(null_mut(), &mut status));
        check(cuda.cuCtxSynchronize());
    }
}

/// Adds one, slowly enough that overlapping launches would lose an addition.
unsafe extern "system" fn add_slowly(data: *mut c_void) {
    let counter = unsafe { &*data.cast::<AtomicU32>() };
    let seen = counter.load(Ordering::Relaxed);
    std::thread::yield_now();
    counter.store(seen + 1, Ordering::Relaxed);
}

#[test]
fn launches_of_many_threads_do_not_overlap() {
    const THREADS: u32 = 4;
    const LAUNCHES: u32 = 50;
    let (cuda, context) = (cuda(), Context::new());
    let counter = AtomicU32::new(0);
    let params = CUDA_HOST_NODE_PARAMS {
        fn_: Some(add_slowly),
        userData: (&raw const counter).cast_mut().cast(),
    };
    let g = graph();
    let mut node = null_mut();
    check(unsafe { cuda.cuGraphAddHostNode(&mut node, g, null(), 0, &params) });
    check(unsafe { cuda.cuGraphAddHostNode(&mut node, g, &node.clone(), 1, &params) });
    let exec = instantiate(g).addr();
    let current = context.0.addr();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || unsafe {
                check(cuda.cuCtxSetCurrent(current as CUcontext));
                let own = stream(NON_BLOCKING);
                for _ in 0..LAUNCHES {
                    check(cuda.cuGraphLaunch(exec as CUgraphExec, own));
                }
                check(cuda.cuStreamSynchronize(own));
            });
        }
    });
    assert_eq!(counter.load(Ordering::Relaxed), 2 * THREADS * LAUNCHES);
    check(unsafe { cuda.cuGraphExecDestroy(exec as CUgraphExec) });
    check(unsafe { cuda.cuGraphDestroy(g) });
}
