//! Tests of graphs with very many nodes, edges and events. If the work for a node grew with the size of its graph, only
//! the duration of these tests would show it.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::common::{Context, check, cuda, expect, lacks_software};
use crate::stream::{NON_BLOCKING, stream};
use cuda_driver_sys::*;

const MANY: usize = 20_000;

fn graph() -> CUgraph {
    let mut graph = null_mut();
    check(unsafe { cuda().cuGraphCreate(&mut graph, 0) });
    graph
}

fn empty_nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut nodes = vec![null_mut(); MANY];
    for node in &mut nodes {
        check(unsafe { cuda().cuGraphAddEmptyNode(node, graph, null(), 0) });
    }
    nodes
}

/// Returns the number of dependencies, and of dependents, of a node.
fn degrees(node: CUgraphNode) -> (usize, usize) {
    let (mut before, mut after) = (0, 0);
    unsafe {
        check(cuda().cuGraphNodeGetDependencies(node, null_mut(), &mut before));
        check(cuda().cuGraphNodeGetDependentNodes(node, null_mut(), &mut after));
    }
    (before, after)
}

#[test]
fn a_node_with_many_edges() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let graph = graph();
    let nodes = empty_nodes(graph);
    // All other nodes are before the last one.
    let (last, others) = nodes.split_last().unwrap();
    for from in others {
        check(unsafe { cuda.cuGraphAddDependencies(graph, from, last, 1) });
    }
    expect(unsafe { cuda.cuGraphAddDependencies(graph, &others[0], last, 1) }, 1);
    assert!(others.iter().all(|node| degrees(*node) == (0, 1)));
    assert_eq!(degrees(*last), (MANY - 1, 0));
    let (from, to) = (others[1..].to_vec(), vec![*last; MANY - 2]);
    unsafe {
        check(cuda.cuGraphRemoveDependencies(graph, from.as_ptr(), to.as_ptr(), MANY - 2));
        assert_eq!((degrees(*last), degrees(others[0])), ((1, 0), (0, 1)));
        expect(cuda.cuGraphRemoveDependencies(graph, from.as_ptr(), to.as_ptr(), 1), 1);
        // The first node before all others.
        check(cuda.cuGraphRemoveDependencies(graph, &others[0], last, 1));
        check(cuda.cuGraphAddDependencies(graph, vec![nodes[0]; MANY - 1].as_ptr(), nodes[1..].as_ptr(), MANY - 1));
        assert_eq!(degrees(nodes[0]), (0, MANY - 1));
        let (mut found, mut count) = (vec![null_mut(); MANY - 1], MANY - 1);
        check(cuda.cuGraphNodeGetDependentNodes(nodes[0], found.as_mut_ptr(), &mut count));
        assert_eq!(found, nodes[1..]);
        assert!(nodes[1..].iter().all(|node| degrees(*node) == (1, 0)));
        // Without the node, the edges are gone, also in a clone.
        let (mut clone, mut copied) = (null_mut(), null_mut());
        check(cuda.cuGraphClone(&mut clone, graph));
        check(cuda.cuGraphNodeFindInClone(&mut copied, nodes[0], clone));
        assert_eq!(degrees(copied), (0, MANY - 1));
        check(cuda.cuGraphDestroyNode(copied));
        let mut edges = 0;
        check(cuda.cuGraphGetEdges(clone, null_mut(), null_mut(), &mut edges));
        assert_eq!(edges, 0);
        check(cuda.cuGraphDestroy(clone));
        check(cuda.cuGraphDestroyNode(*last));
        assert_eq!(degrees(nodes[0]), (0, MANY - 2));
        check(cuda.cuGraphDestroy(graph));
    }
}

#[test]
fn every_node_of_an_executable_graph_is_changed() {
    if lacks_software() {
        return;
    }
    unsafe extern "system" fn add(sum: *mut c_void) {
        unsafe { &*sum.cast::<AtomicU32>() }.fetch_add(1, SeqCst);
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (sums, outer, inner) = ([AtomicU32::new(0), AtomicU32::new(0)], graph(), graph());
    let params = |sum: &AtomicU32| CUDA_HOST_NODE_PARAMS {
        fn_: Some(add),
        userData: (&raw const *sum).cast_mut().cast(),
    };
    let [old, new] = [params(&sums[0]), params(&sums[1])];
    let (mut nodes, mut child, mut embedded, mut exec) = (vec![null_mut(); MANY], null_mut(), null_mut(), null_mut());
    unsafe {
        // Half of the nodes are in a child graph.
        for (i, node) in nodes.iter_mut().enumerate() {
            let graph = if i < MANY / 2 { outer } else { inner };
            check(cuda.cuGraphAddHostNode(node, graph, null(), 0, &old));
        }
        check(cuda.cuGraphAddChildGraphNode(&mut child, outer, null(), 0, inner));
        check(cuda.cuGraphChildGraphNodeGetGraph(child, &mut embedded));
        for node in &mut nodes[MANY / 2..] {
            let original = *node;
            check(cuda.cuGraphNodeFindInClone(node, original, embedded));
        }
        check(cuda.cuGraphInstantiateWithFlags(&mut exec, outer, 0));
        for node in &nodes {
            check(cuda.cuGraphExecHostNodeSetParams(exec, *node, &new));
        }
        let mut foreign = null_mut();
        check(cuda.cuGraphAddHostNode(&mut foreign, inner, null(), 0, &old));
        expect(cuda.cuGraphExecHostNodeSetParams(exec, foreign, &new), 1);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        assert_eq!(sums.map(AtomicU32::into_inner), [0, MANY as u32]);
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(outer));
        check(cuda.cuGraphDestroy(inner));
    }
}

/// Each event is recorded and waited for in the graph.
#[test]
fn a_graph_with_many_events() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (graph, mut exec, mut node) = (graph(), null_mut(), null_mut());
    let mut events = vec![null_mut(); MANY];
    unsafe {
        for event in &mut events {
            check(cuda.cuEventCreate(event, CUevent_flags::CU_EVENT_DISABLE_TIMING.0));
        }
        for event in &events {
            check(cuda.cuGraphAddEventRecordNode(&mut node, graph, null(), 0, *event));
        }
        for event in &events {
            let before = node;
            check(cuda.cuGraphAddEventWaitNode(&mut node, graph, &before, 1, *event));
        }
        check(cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(graph));
        for event in events {
            check(cuda.cuEventQuery(event));
            check(cuda.cuEventDestroy(event));
        }
    }
}

#[test]
fn a_capture_with_many_branches() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let mut event = null_mut();
    check(unsafe { cuda.cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DISABLE_TIMING.0) });
    let streams: Vec<CUstream> = (0..MANY).map(|_| stream(NON_BLOCKING)).collect();
    unsafe extern "system" fn nothing(_: *mut c_void) {}
    let capture = |joins: bool| unsafe {
        let mut graph = null_mut();
        check(cuda.cuStreamBeginCapture(streams[0], CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED));
        for pair in streams.windows(2) {
            check(cuda.cuLaunchHostFunc(pair[0], Some(nothing), null_mut()));
            check(cuda.cuEventRecord(event, pair[0]));
            check(cuda.cuStreamWaitEvent(pair[1], event, 0));
        }
        if joins {
            check(cuda.cuEventRecord(event, streams[MANY - 1]));
            check(cuda.cuStreamWaitEvent(streams[0], event, 0));
        }
        (cuda.cuStreamEndCapture(streams[0], &mut graph), graph)
    };
    expect(capture(false).0, 904);
    let (ended, graph) = capture(true);
    check(ended);
    unsafe {
        check(cuda.cuGraphDestroy(graph));
        check(cuda.cuEventDestroy(event));
        for stream in streams {
            check(cuda.cuStreamDestroy(stream));
        }
    }
}
