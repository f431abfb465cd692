//! Tests of graphs: calls that crash NVIDIA's driver (most of them with destroyed handles), a capture that ends with
//! its context, the limit on graphs inside each other, and launches by many threads.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Context, Kernel, check, cuda, expect, lacks_software, software};
use crate::stream::{NON_BLOCKING, stream};
use cuda_driver_sys::*;

const THREAD_LOCAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

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
    if lacks_software() {
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
        // A graph handle is not a node handle, a node handle is not a graph handle, and an address is neither.
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
    if lacks_software() {
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
        check(cuda.cuStreamBeginCapture_v2(capturing, THREAD_LOCAL));
        check(cuda.cuMemsetD8Async(0x10, 0, 1, capturing));
        check(cuda.cuStreamGetCaptureInfo_v2(capturing, &mut status, null_mut(), &mut graph, null_mut(), null_mut()));
        drop(context);
        let _other = Context::new();
        if software() {
            let mut count = 0;
            expect(cuda.cuGraphGetNodes(graph, null_mut(), &mut count), 1);
            expect(cuda.cuStreamEndCapture(capturing, &mut graph), 709);
        }
        // The capture has ended, so it no longer forbids this call of the thread that began it.
        let mut memory = 0;
        check(cuda.cuMemAlloc(&mut memory, 4));
        check(cuda.cuMemFree(memory));
    }
}

/// A failed capture does not destroy the child graph to which it captures: the outer graph owns that graph.
#[test]
fn a_failed_capture_to_a_child_graph() {
    if lacks_software() {
        return; // NVIDIA's driver destroys the graph, which the outer graph destroys again.
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (outer, inner, s) = (graph(), graph(), stream(NON_BLOCKING));
    let (mut node, mut child, mut captured) = (null_mut(), null_mut(), null_mut());
    unsafe {
        check(cuda.cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner));
        check(cuda.cuGraphChildGraphNodeGetGraph(node, &mut child));
        check(cuda.cuStreamBeginCaptureToGraph(s, child, null(), null(), 0, THREAD_LOCAL));
        expect(cuda.cuStreamQuery(s), 900);
        expect(cuda.cuStreamEndCapture(s, &mut captured), 901);
        check(cuda.cuGraphChildGraphNodeGetGraph(node, &mut child));
        empty_node(child);
        check(cuda.cuGraphDestroy(outer));
        check(cuda.cuGraphDestroy(inner));
        check(cuda.cuStreamDestroy(s));
    }
}

/// Returns a graph with a node that allocates memory, and the address of the memory.
fn allocating() -> (CUgraph, CUdeviceptr) {
    let (g, mut node, mut params) = (graph(), null_mut(), CUDA_MEM_ALLOC_NODE_PARAMS::default());
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = 64;
    check(unsafe { cuda().cuGraphAddMemAllocNode(&mut node, g, null(), 0, &mut params) });
    (g, params.dptr)
}

#[test]
fn a_launch_that_fails_frees_no_memory() {
    if lacks_software() {
        return; // NVIDIA's driver crashes
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (g, memory) = allocating();
    let (own, mut node, mut exec) = (stream(NON_BLOCKING), null_mut(), null_mut());
    let other = Context::new();
    let text = c".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry none() { ret; }\n".to_owned();
    let params = CUDA_KERNEL_NODE_PARAMS {
        func: Kernel::from_ptx(&text, "none").function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        ..Default::default()
    };
    let auto_free = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    unsafe {
        check(cuda.cuGraphAddKernelNode(&mut node, g, null(), 0, &params));
        check(cuda.cuGraphInstantiateWithFlags(&mut exec, g, u64::from(auto_free.0)));
        check(cuda.cuGraphLaunch(exec, own));
        drop(other);
        expect(cuda.cuGraphLaunch(exec, own), 709);
        // The memory of the first launch is still allocated.
        check(cuda.cuMemsetD8Async(memory, 0, 64, own));
        check(cuda.cuMemFreeAsync(memory, own));
        check(cuda.cuStreamSynchronize(own));
        expect(cuda.cuMemFreeAsync(memory, own), 1);
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(g));
    }
}

unsafe extern "system" fn nothing(_: *mut c_void) {}

#[test]
fn a_graph_with_a_destroyed_user_object_claims_nothing() {
    if lacks_software() {
        return; // NVIDIA's driver may use the destroyed object
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (g, _) = allocating();
    let (mut object, mut kept, mut exec) = (null_mut(), null_mut(), null_mut());
    unsafe {
        check(cuda.cuUserObjectCreate(&mut kept, null_mut(), Some(nothing), 1, 1));
        check(cuda.cuUserObjectCreate(&mut object, null_mut(), Some(nothing), 1, 1));
        check(cuda.cuGraphRetainUserObject(g, kept, 1, 0));
        check(cuda.cuGraphRetainUserObject(g, object, 1, 0));
        // The program releases the graph's reference, too.
        check(cuda.cuUserObjectRelease(object, 2));
        // The failed instantiation claims neither the graph's memory nor a reference to `kept`.
        expect(cuda.cuGraphInstantiateWithFlags(&mut exec, g, 0), 1);
        // The graph forgets the destroyed object although the call returns an error.
        expect(cuda.cuGraphReleaseUserObject(g, object, 1), 1);
        check(cuda.cuGraphInstantiateWithFlags(&mut exec, g, 0));
        check(cuda.cuGraphExecDestroy(exec));
        // Only the references of the program and of the graph are left.
        check(cuda.cuUserObjectRelease(kept, 2));
        expect(cuda.cuUserObjectRelease(kept, 1), 1);
        // A sum of references beyond 32 bits.
        check(cuda.cuUserObjectCreate(&mut object, null_mut(), Some(nothing), 1, 1));
        check(cuda.cuGraphRetainUserObject(g, object, u32::MAX, 1));
        expect(cuda.cuGraphRetainUserObject(g, object, 1, 1), 1);
    }
}

/// Limit of the software driver on graphs inside each other; the outermost graph counts, too.
const MOST_LEVELS: usize = 2000;

/// Runs a function on a thread whose stack is too small for a recursion through [`MOST_LEVELS`] graphs.
fn on_a_small_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread
        .spawn(test)
        .expect("a thread starts")
        .join()
        .expect("the test passes");
}

#[test]
fn graphs_in_graphs_have_a_limit() {
    if lacks_software() {
        return; // NVIDIA's driver crashes beyond its limit
    }
    on_a_small_stack(nested_child_graphs);
}

fn nested_child_graphs() {
    let (cuda, _context) = (cuda(), Context::new());
    let (mut outer, mut levels, mut node) = (graph(), 1, null_mut());
    let innermost = empty_node(outer);
    // Moves a graph into a new node of another graph, and returns the code.
    let moved = |into: CUgraph, child: CUgraph| {
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            ..Default::default()
        };
        params.anonymous1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
            graph: child,
            ownership: CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
        };
        let mut node = null_mut();
        unsafe { cuda.cuGraphAddNode_v2(&mut node, into, null(), null(), 0, &mut params) }.0
    };
    let refused = loop {
        let next = graph();
        match moved(next, outer) {
            0 => (outer, levels) = (next, levels + 1),
            _ => break next,
        }
    };
    assert_eq!(levels, MOST_LEVELS);
    let mut clone = null_mut();
    unsafe {
        expect(cuda.cuGraphAddChildGraphNode(&mut node, refused, null(), 0, outer), 1);
        // These calls work on a graph with as many levels as possible.
        check(cuda.cuGraphClone(&mut clone, outer));
        let exec = instantiate(outer);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        let mut info = CUgraphExecUpdateResultInfo::default();
        check(cuda.cuGraphExecUpdate_v2(exec, clone, &mut info));
        check(cuda.cuGraphLaunch(exec, null_mut()));
        // The node is found, but an empty node cannot be switched off.
        expect(cuda.cuGraphNodeSetEnabled(exec, innermost, 0), 1);
        check(cuda.cuGraphExecDestroy(exec));
        assert_eq!(printed_graphs("child-graphs", outer), MOST_LEVELS);
        for graph in [outer, clone, refused] {
            check(cuda.cuGraphDestroy(graph));
        }
    }
}

/// Returns the number of graphs that `cuGraphDebugDotPrint` prints. `test` becomes part of the name of a temporary file.
fn printed_graphs(test: &str, graph: CUgraph) -> usize {
    let path = std::env::temp_dir().join(format!("cuda-driver-soft-{test}-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().expect("the path is UTF-8")).expect("the path has no NUL");
    check(unsafe { cuda().cuGraphDebugDotPrint(graph, name.as_ptr(), 0) });
    let text = std::fs::read_to_string(&path).expect("the file was written");
    let _ = std::fs::remove_file(path);
    assert_eq!(text.matches("\n}").count(), text.matches("{\n").count());
    text.matches("subgraph cluster_").count()
}

#[test]
fn bodies_in_bodies_have_a_limit() {
    if lacks_software() {
        return; // NVIDIA's driver crashes beyond its limit
    }
    on_a_small_stack(nested_bodies);
}

fn nested_bodies() {
    let (cuda, context) = (cuda(), Context::new());
    let outer = graph();
    // Adds a conditional node to a graph, and returns the body of the node.
    let add = |graph: CUgraph| unsafe {
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        let (mut handle, mut node) = (0, null_mut());
        check(cuda.cuGraphConditionalHandleCreate(&mut handle, graph, context.0, 1, 1));
        params.anonymous1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
            size: 1,
            phGraph_out: null_mut(),
            ctx: context.0,
        };
        match cuda.cuGraphAddNode_v2(&mut node, graph, null(), null(), 0, &mut params) {
            CUresult::CUDA_SUCCESS => Ok(*params.anonymous1.conditional.phGraph_out),
            failed => Err(failed),
        }
    };
    let mut inner = outer;
    for _ in 1..MOST_LEVELS {
        inner = add(inner).expect("the limit is not reached");
    }
    let (mut memory, mut node, mut value) = (0, null_mut(), 0u32);
    unsafe {
        check(cuda.cuMemAlloc(&mut memory, 4));
        check(cuda.cuMemsetD32(memory, 0, 1));
        let params = CUDA_MEMSET_NODE_PARAMS {
            dst: memory,
            value: 7,
            elementSize: 4,
            width: 1,
            height: 1,
            ..Default::default()
        };
        check(cuda.cuGraphAddMemsetNode(&mut node, inner, null(), 0, &params, context.0));
        let exec = instantiate(outer);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuMemcpyDtoH((&raw mut value).cast(), memory, 4));
        assert_eq!(value, 7);
        check(cuda.cuGraphExecDestroy(exec));
        assert_eq!(printed_graphs("bodies", outer), MOST_LEVELS);
        assert_eq!(add(inner), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
        check(cuda.cuGraphDestroy(outer));
        check(cuda.cuMemFree(memory));
    }
}

/// Each level of the graph has two empty child graphs, which depend on both of the level before.
#[test]
fn levels_of_empty_child_graphs_are_launched() {
    if lacks_software() {
        return; // NVIDIA's driver may need very long
    }
    const LEVELS: usize = 64;
    let (cuda, _context) = (cuda(), Context::new());
    let (outer, empty) = (graph(), graph());
    let mut level = vec![empty_node(outer)];
    for _ in 0..LEVELS {
        let add = |_| {
            let mut node = null_mut();
            check(unsafe { cuda.cuGraphAddChildGraphNode(&mut node, outer, level.as_ptr(), level.len(), empty) });
            node
        };
        level = (0..2).map(add).collect();
    }
    unsafe {
        let exec = instantiate(outer);
        check(cuda.cuGraphLaunch(exec, null_mut()));
        check(cuda.cuCtxSynchronize());
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(outer));
        check(cuda.cuGraphDestroy(empty));
    }
}

/// Adds 1, so slowly that overlapping launches could lose additions.
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
