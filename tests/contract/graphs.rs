//! Tests of graphs that are built node by node: dependencies, queries, clones, child graphs, launches and user objects.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::blocking::{SHORT, waits};
use crate::common::Codes;
use crate::graph_tools::{Steps, edges, event, fill_params, graph, instantiate, kinds, nodes, stream};
use crate::{child, is, ok};

#[test]
fn nodes_run_after_their_dependencies() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    // The nodes are added in another order than they run in.
    let last = s.digit(g, &[], 4);
    let first = s.digit(g, &[], 1);
    let left = s.digit(g, &[first], 2);
    let right = s.node(g, &[first], s.step, s.data + 4, 3);
    let both = [left, right];
    is!(c, 0, cuGraphAddDependencies(g, both.as_ptr(), [last, last].as_ptr(), 2));
    assert_eq!(edges(g), [(1, 2), (1, 3), (2, 0), (3, 0)]);
    let exec = instantiate(g);
    for _ in 0..3 {
        assert_eq!(s.run(exec), 124);
        assert_eq!(s.gpu.read::<u32>(s.data, 2), [124, 3]);
    }
    // A graph without nodes does nothing.
    let empty = instantiate(graph());
    is!(c, 0, cuGraphLaunch(empty, s.stream));
    is!(c, 0, cuGraphUpload(empty, s.stream));
    is!(c, 0, cuStreamSynchronize(s.stream));
    is!(c, 0, cuGraphExecDestroy(empty));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn handles_of_destroyed_graphs() {
    // In a process of its own, where no other test's graph gets the same handle.
    child!("handles_of_destroyed_graphs", {
        let s = Steps::new();
        let mut c = Codes::new();
        let g = graph();
        s.digit(g, &[], 1);
        let exec = instantiate(g);
        is!(c, 0, cuGraphExecDestroy(exec));
        is!(c, 1, cuGraphExecDestroy(exec));
        is!(c, 1, cuGraphLaunch(exec, s.stream));
        is!(c, 0, cuGraphDestroy(g));
        is!(c, 1, cuGraphDestroy(g));
    });
}

#[test]
fn queries_of_graphs_and_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let a = s.digit(g, &[], 1);
    let b = s.digit(g, &[a], 2);
    // `b` and `d` may run at once, so they have memory of their own.
    let d = s.node(g, &[a], s.step, s.data + 4, 3);
    let mut e = ptr::null_mut();
    is!(c, 0, cuGraphAddEmptyNode(&raw mut e, g, [b, d].as_ptr(), 2));
    assert_eq!(nodes(g), [a, b, d, e]);
    assert_eq!(kinds(g), [0, 0, 0, 5]);

    let filler = ptr::without_provenance_mut(8);
    let mut some = [filler; 6];
    let mut count = 1;
    is!(c, 0, cuGraphGetNodes(g, some.as_mut_ptr(), &raw mut count));
    assert_eq!((count, some[0], some[1]), (1, a, filler));
    count = 6;
    is!(c, 0, cuGraphGetNodes(g, some.as_mut_ptr(), &raw mut count));
    assert_eq!((count, some[4], some[5]), (4, ptr::null_mut(), ptr::null_mut()));
    count = 6;
    is!(c, 0, cuGraphGetRootNodes(g, some.as_mut_ptr(), &raw mut count));
    assert_eq!((count, some[0]), (1, a));
    count = 6;
    is!(c, 0, cuGraphNodeGetDependencies(e, some.as_mut_ptr(), &raw mut count));
    assert_eq!((count, &some[..2]), (2, &[b, d][..]));
    count = 6;
    is!(c, 0, cuGraphNodeGetDependentNodes(a, some.as_mut_ptr(), &raw mut count));
    assert_eq!((count, &some[..2]), (2, &[b, d][..]));
    is!(c, 1, cuGraphGetNodes(g, some.as_mut_ptr(), ptr::null_mut()));
    is!(c, 1, cuGraphNodeGetDependencies(e, ptr::null_mut(), ptr::null_mut()));
    is!(c, 1, cuGraphNodeGetType(a, ptr::null_mut()));
    is!(c, 1, cuGraphNodeGetType(ptr::null_mut(), &mut CUgraphNodeType(0)));

    // A clone has the same edges, and nodes of its own.
    let mut copy = ptr::null_mut();
    is!(c, 0, cuGraphClone(&raw mut copy, g));
    let mut inside = ptr::null_mut();
    is!(c, 0, cuGraphNodeFindInClone(&raw mut inside, d, copy));
    assert_eq!(inside, nodes(copy)[2]);
    is!(c, 1, cuGraphNodeFindInClone(&raw mut inside, d, g));
    is!(c, 0, cuGraphDestroyNode(b));
    assert_eq!((edges(g), kinds(g).len()), (vec![(0, 1), (1, 2)], 3));
    assert_eq!(edges(copy), [(0, 1), (0, 2), (1, 3), (2, 3)]);
    is!(c, 0, cuGraphDestroy(g));
    let exec = instantiate(copy);
    assert_eq!(s.run(exec), 12);
    assert_eq!(s.gpu.read::<u32>(s.data + 4, 1), [3]);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(copy));
}

#[test]
fn wrong_dependencies() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (g, other) = (graph(), graph());
    let null = ptr::null_mut();
    let a = s.digit(g, &[], 1);
    let b = s.digit(g, &[a], 2);
    let foreign = s.digit(other, &[], 1);
    let mut new = null;
    let out = &raw mut new;
    is!(c, 1, cuGraphAddEmptyNode(out, g, [a, a].as_ptr(), 2));
    is!(c, 1, cuGraphAddEmptyNode(out, g, [foreign].as_ptr(), 1));
    is!(c, 1, cuGraphAddEmptyNode(out, g, [null].as_ptr(), 1));
    is!(c, 1, cuGraphAddEmptyNode(out, g, ptr::null(), 1));
    is!(c, 1, cuGraphAddEmptyNode(ptr::null_mut(), g, ptr::null(), 0));
    is!(c, 1, cuGraphAddEmptyNode(out, ptr::null_mut(), ptr::null(), 0));
    is!(c, 1, cuGraphAddDependencies(g, &raw const a, &raw const a, 1));
    is!(c, 1, cuGraphAddDependencies(g, &raw const a, &raw const b, 1));
    is!(c, 1, cuGraphAddDependencies(g, &raw const a, &raw const foreign, 1));
    let (from, to) = (s.digit(g, &[], 1), s.digit(g, &[], 2));
    let before = edges(g).len();
    is!(c, 1, cuGraphAddDependencies(g, [from; 2].as_ptr(), [to; 2].as_ptr(), 2));
    assert_eq!(edges(g).len(), before + 1, "the first of two equal edges is added");
    is!(c, 0, cuGraphDestroyNode(from));
    is!(c, 0, cuGraphDestroyNode(to));
    is!(c, 1, cuGraphAddDependencies(g, ptr::null(), ptr::null(), 1));
    is!(c, 0, cuGraphAddDependencies(g, ptr::null(), ptr::null(), 0));
    is!(
        c,
        1,
        cuGraphAddDependencies(ptr::null_mut(), &raw const a, &raw const b, 1)
    );
    is!(c, 1, cuGraphRemoveDependencies(g, &raw const b, &raw const a, 1));
    // A cycle is found when the graph is instantiated.
    let mut exec = ptr::null_mut();
    is!(c, 0, cuGraphAddDependencies(g, &raw const b, &raw const a, 1));
    is!(c, 1, cuGraphInstantiateWithFlags(&raw mut exec, g, 0));
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    is!(c, 1, cuGraphInstantiateWithParams(&raw mut exec, g, &raw mut params));
    let invalid = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    assert_eq!(params.result_out, invalid);
    // For a cycle of kernel nodes, driver 580 reports the first node; for a cycle of empty nodes, the last one. The
    // software driver always reports the last one.
    assert!([a, b].contains(&params.hErrNode_out));
    is!(c, 0, cuGraphRemoveDependencies(g, &raw const b, &raw const a, 1));
    let exec = instantiate(g);
    assert_eq!(s.run(exec), 12);
    is!(c, 1, cuGraphCreate(&mut new.cast(), 1));
    is!(c, 1, cuGraphCreate(ptr::null_mut(), 0));
    is!(c, 1, cuGraphDestroy(ptr::null_mut()));
    is!(c, 1, cuGraphDestroyNode(ptr::null_mut()));
    is!(c, 1, cuGraphClone(ptr::null_mut(), g));
    is!(c, 1, cuGraphClone(&mut new.cast(), ptr::null_mut()));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuGraphDestroy(other));
}

/// Adds one to the counter at the address.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives all graphs and user objects that use it.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn host_functions_and_events_in_a_graph() {
    let s = Steps::new();
    let mut c = Codes::new();
    let calls = AtomicU32::new(0);
    let params = CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: (&raw const calls).cast_mut().cast(),
    };
    let g = graph();
    let (mut host, mut record, mut wait, mut after) =
        (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let (made, wanted, passed) = (event(), event(), event());
    is!(c, 0, cuGraphAddEventWaitNode(&raw mut wait, g, ptr::null(), 0, wanted));
    is!(
        c,
        0,
        cuGraphAddEventRecordNode(&raw mut after, g, &raw const wait, 1, passed)
    );
    is!(
        c,
        0,
        cuGraphAddHostNode(&raw mut host, g, &raw const wait, 1, &raw const params)
    );
    is!(
        c,
        0,
        cuGraphAddEventRecordNode(&raw mut record, g, &raw const host, 1, made)
    );
    let mut reported = CUDA_HOST_NODE_PARAMS::default();
    is!(c, 0, cuGraphHostNodeGetParams(host, &raw mut reported));
    assert_eq!(reported.userData, params.userData);
    let exec = instantiate(g);
    // The host function runs after the other stream's work, because its node depends on one that waits for the event.
    // A driver may call all host functions in one thread, so the end of the wait is also seen from an event.
    let other = stream(1);
    for round in 1..3 {
        let waited = waits(other, SHORT, || {
            is!(c, 0, cuEventRecord(wanted, other));
            is!(c, 0, cuGraphLaunch(exec, s.stream));
            assert_eq!(calls.load(Ordering::SeqCst), round - 1);
            is!(c, 0, cuEventSynchronize(passed));
        });
        assert!(waited, "round {round}: the graph did not wait for the event");
        is!(c, 0, cuEventSynchronize(made));
        assert_eq!(calls.load(Ordering::SeqCst), round);
    }
    is!(c, 1, cuGraphEventRecordNodeSetEvent(record, ptr::null_mut()));
    is!(c, 1, cuGraphEventWaitNodeSetEvent(record, wanted));
    is!(c, 0, cuGraphEventWaitNodeSetEvent(wait, made));
    let mut event = ptr::null_mut();
    is!(c, 0, cuGraphEventWaitNodeGetEvent(wait, &raw mut event));
    assert_eq!(event, made);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn graphs_in_graphs() {
    let s = Steps::new();
    let mut c = Codes::new();
    let inner = graph();
    let one = s.digit(inner, &[], 5);
    s.digit(inner, &[one], 6);
    let outer = graph();
    let before = s.digit(outer, &[], 1);
    let mut child = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddChildGraphNode(&raw mut child, outer, &raw const before, 1, inner)
    );
    s.digit(outer, &[child], 2);
    assert_eq!(kinds(outer), [0, 4, 0]);
    // The node owns a copy of the inner graph.
    let mut own = ptr::null_mut();
    is!(c, 0, cuGraphChildGraphNodeGetGraph(child, &raw mut own));
    assert_ne!(own, inner);
    is!(c, 0, cuGraphDestroy(inner));
    assert_eq!(edges(own), [(0, 1)]);
    is!(c, 1, cuGraphDestroy(own));
    let mut exec = ptr::null_mut();
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut exec, own, 0));
    let exec = instantiate(outer);
    assert_eq!(s.run(exec), 1562);
    // Changes to the copy take effect at the next instantiation.
    s.digit(own, &[nodes(own)[1]], 7);
    assert_eq!(s.run(exec), 1562);
    is!(c, 0, cuGraphExecDestroy(exec));
    let exec = instantiate(outer);
    assert_eq!(s.run(exec), 15672);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(outer));
}

#[test]
fn ways_to_instantiate() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    s.digit(g, &[], 3);
    let mut exec = ptr::null_mut();
    for (flags, code, reported) in [(0, 0, 0), (1, 0, 1), (2, 1, 0), (8, 0, 0), (16, 1, 0)] {
        is!(c, code, cuGraphInstantiateWithFlags(&raw mut exec, g, flags));
        if code == 0 {
            let mut got = 99;
            is!(c, 0, cuGraphExecGetFlags(exec, &raw mut got));
            assert_eq!(got, reported, "flags {flags}");
            is!(c, 0, cuGraphExecDestroy(exec));
        }
    }
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: 2,
        hUploadStream: s.stream,
        ..Default::default()
    };
    is!(c, 0, cuGraphInstantiateWithParams(&raw mut exec, g, &raw mut params));
    assert_eq!(params.result_out.0, 0);
    assert_eq!(s.run(exec), 3);
    is!(c, 0, cuGraphExecDestroy(exec));
    params.flags = 64;
    is!(c, 1, cuGraphInstantiateWithParams(&raw mut exec, g, &raw mut params));
    assert_eq!(params.result_out.0, 1);
    is!(c, 1, cuGraphInstantiateWithParams(&raw mut exec, g, ptr::null_mut()));
    is!(c, 1, cuGraphInstantiateWithFlags(ptr::null_mut(), g, 0));
    is!(c, 1, cuGraphInstantiateWithFlags(&raw mut exec, ptr::null_mut(), 0));
    is!(c, 1, cuGraphLaunch(ptr::null_mut(), s.stream));
    is!(c, 1, cuGraphExecDestroy(ptr::null_mut()));
    // A graph with a fill of freed memory cannot be instantiated.
    let freed = s.gpu.alloc(64);
    let mut node = ptr::null_mut();
    let fill = fill_params(freed, 1, 4);
    is!(
        c,
        0,
        cuGraphAddMemsetNode(&raw mut node, g, ptr::null(), 0, &raw const fill, s.gpu.context)
    );
    ok!(cuMemFree(freed));
    is!(c, 1, cuGraphInstantiateWithFlags(&raw mut exec, g, 0));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn user_objects_live_as_long_as_their_references() {
    let s = Steps::new();
    let mut c = Codes::new();
    let ended = AtomicU32::new(0);
    let data = (&raw const ended).cast_mut().cast();
    // The driver calls the destructor on a thread of its own.
    let wait = |expected: u32| {
        for _ in 0..60_000 {
            if ended.load(Ordering::SeqCst) == expected {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!(
            "{} objects destroyed, expected {expected}",
            ended.load(Ordering::SeqCst)
        );
    };
    let mut object = ptr::null_mut();
    is!(c, 1, cuUserObjectCreate(&raw mut object, data, Some(count), 1, 0));
    is!(c, 1, cuUserObjectCreate(&raw mut object, data, None, 1, 1));
    is!(c, 1, cuUserObjectCreate(&raw mut object, data, Some(count), 0, 1));
    is!(c, 0, cuUserObjectCreate(&raw mut object, data, Some(count), 1, 1));
    is!(c, 0, cuUserObjectRetain(object, 2));
    is!(c, 0, cuUserObjectRelease(object, 2));
    is!(c, 1, cuUserObjectRetain(object, 0));
    is!(c, 1, cuUserObjectRelease(object, 0));
    let g = graph();
    s.digit(g, &[], 1);
    is!(c, 0, cuGraphRetainUserObject(g, object, 1, 0));
    is!(c, 1, cuGraphRetainUserObject(g, object, 1, 5));
    is!(c, 1, cuGraphRetainUserObject(g, ptr::null_mut(), 1, 0));
    is!(c, 1, cuGraphReleaseUserObject(g, object, 0));
    is!(c, 0, cuUserObjectRelease(object, 1));
    let exec = instantiate(g);
    let mut copy = ptr::null_mut();
    is!(c, 0, cuGraphClone(&raw mut copy, g));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuGraphDestroy(copy));
    assert_eq!(s.run(exec), 1);
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    is!(c, 0, cuGraphExecDestroy(exec));
    wait(1);
    // The graph takes over the caller's reference.
    is!(c, 0, cuUserObjectCreate(&raw mut object, data, Some(count), 1, 1));
    let g = graph();
    is!(c, 0, cuGraphRetainUserObject(g, object, 1, 1));
    is!(c, 0, cuGraphDestroy(g));
    wait(2);
    // An update replaces the objects of the executable graph by those of the graph.
    let [old, new] = [3, 4].map(|_| {
        is!(c, 0, cuUserObjectCreate(&raw mut object, data, Some(count), 1, 1));
        let g = graph();
        s.digit(g, &[], 1);
        is!(c, 0, cuGraphRetainUserObject(g, object, 1, 1));
        g
    });
    let exec = instantiate(old);
    is!(c, 0, cuGraphDestroy(old));
    is!(
        c,
        0,
        cuGraphExecUpdate(exec, new, &mut CUgraphExecUpdateResultInfo::default())
    );
    wait(3);
    is!(c, 0, cuGraphDestroy(new));
    assert_eq!(s.run(exec), 1);
    assert_eq!(ended.load(Ordering::SeqCst), 3);
    is!(c, 0, cuGraphExecDestroy(exec));
    wait(4);
}
