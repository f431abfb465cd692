//! Tests of changes to executable graphs: of single nodes, and of the whole graph.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::graph_tools::{Steps, copy_params, fill_params, graph, instantiate, kernel_params, stream};
use crate::{arguments, is};

/// Adds one to the counter at the address.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the launches.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn single_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let context = s.gpu.context;
    let g = graph();
    let a = s.digit(g, &[], 1);
    s.digit(g, &[a], 2);
    let null = ptr::null_mut();
    let (mut fill, mut copy, mut host, mut child, mut empty) = (null, null, null, null, null);
    let p = fill_params(s.data + 64, 7, 2);
    is!(
        c,
        0,
        cuGraphAddMemsetNode(&raw mut fill, g, ptr::null(), 0, &raw const p, context)
    );
    let p = copy_params(s.data + 128, s.data + 64, 8);
    is!(
        c,
        0,
        cuGraphAddMemcpyNode(&raw mut copy, g, &raw const fill, 1, &raw const p, context)
    );
    let calls = [AtomicU32::new(0), AtomicU32::new(0)];
    let call = |index: usize| CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: (&raw const calls[index]).cast_mut().cast(),
    };
    let p = call(0);
    is!(c, 0, cuGraphAddHostNode(&raw mut host, g, ptr::null(), 0, &raw const p));
    let inner = graph();
    let inside = s.node(inner, &[], s.put, s.data + 192, 1);
    is!(c, 0, cuGraphAddChildGraphNode(&raw mut child, g, ptr::null(), 0, inner));
    is!(c, 0, cuGraphAddEmptyNode(&raw mut empty, g, ptr::null(), 0));
    let exec = instantiate(g);
    // Runs the graph; returns the digits, the first word of the fill, the word after its two words, the copy, and the
    // child graph's value.
    let run = || {
        s.run(exec);
        let all: Vec<u32> = s.gpu.read(s.data, 64);
        [all[0], all[16], all[18], all[32], all[48]]
    };
    assert_eq!(run(), [12, 7, 0, 7, 1]);

    let mut arguments = arguments![s.data, 8_u32];
    let mut pointers = arguments.pointers();
    let right = kernel_params(s.step, pointers.as_mut_ptr());
    is!(c, 0, cuGraphExecKernelNodeSetParams(exec, a, &raw const right));
    assert_eq!(run()[0], 82);
    let other = kernel_params(s.none, ptr::null_mut());
    is!(c, 0, cuGraphExecKernelNodeSetParams(exec, a, &raw const other));
    assert_eq!(run()[0], 2);
    let none = kernel_params(s.step, ptr::null_mut());
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, a, &raw const none));
    let flat = CUDA_KERNEL_NODE_PARAMS { gridDimX: 0, ..right };
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, a, &raw const flat));
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, fill, &raw const right));
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, inside, &raw const right));
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, null, &raw const right));
    is!(
        c,
        1,
        cuGraphExecKernelNodeSetParams(ptr::null_mut(), a, &raw const right)
    );
    is!(c, 1, cuGraphExecKernelNodeSetParams(exec, a, ptr::null()));
    is!(c, 0, cuGraphExecKernelNodeSetParams(exec, a, &raw const right));

    let p = fill_params(s.data + 64, 9, 4);
    is!(c, 0, cuGraphExecMemsetNodeSetParams(exec, fill, &raw const p, context));
    assert_eq!(run(), [82, 9, 9, 9, 1]);
    let p = CUDA_MEMSET_NODE_PARAMS {
        height: 2,
        pitch: 16,
        ..p
    };
    is!(c, 1, cuGraphExecMemsetNodeSetParams(exec, fill, &raw const p, context));
    let p = copy_params(s.data + 128, s.data, 4);
    is!(c, 0, cuGraphExecMemcpyNodeSetParams(exec, copy, &raw const p, context));
    // No edge orders the copy and the kernels, so the copy may read the word before, between or after the two kernels.
    let ran = run()[3];
    assert!([0, 8, 82].contains(&ran), "{ran}");
    let value = 77_u32;
    let from_host = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: (&raw const value).cast(),
        ..p
    };
    is!(
        c,
        1,
        cuGraphExecMemcpyNodeSetParams(exec, copy, &raw const from_host, context)
    );
    let rows = CUDA_MEMCPY3D {
        Height: 2,
        srcPitch: 16,
        dstPitch: 16,
        ..p
    };
    is!(
        c,
        1,
        cuGraphExecMemcpyNodeSetParams(exec, copy, &raw const rows, context)
    );
    let p = call(1);
    let before = calls[0].load(Ordering::SeqCst);
    is!(c, 0, cuGraphExecHostNodeSetParams(exec, host, &raw const p));
    run();
    assert_eq!(calls[0].load(Ordering::SeqCst), before);
    assert_eq!(calls[1].load(Ordering::SeqCst), 1);

    // Kernels, copies and fills can be disabled.
    for node in [a, fill, copy] {
        let mut enabled = 9;
        is!(c, 0, cuGraphNodeGetEnabled(exec, node, &raw mut enabled));
        assert_eq!(enabled, 1);
        is!(c, 0, cuGraphNodeSetEnabled(exec, node, 0));
    }
    for node in [host, child, empty] {
        is!(c, 1, cuGraphNodeGetEnabled(exec, node, &mut 9));
        is!(c, 1, cuGraphNodeSetEnabled(exec, node, 0));
    }
    assert_eq!(run(), [2, 0, 0, 0, 1]);
    is!(c, 0, cuGraphNodeSetEnabled(exec, a, 1));
    assert_eq!(run(), [82, 0, 0, 0, 1]);

    let same = graph();
    s.node(same, &[], s.put, s.data + 192, 5);
    is!(c, 0, cuGraphExecChildGraphNodeSetParams(exec, child, same));
    assert_eq!(run()[4], 5);
    s.node(same, &[], s.put, s.data + 196, 6);
    is!(c, 910, cuGraphExecChildGraphNodeSetParams(exec, child, same));
    assert_eq!(run()[4], 5);
    for graph in [same, inner, g] {
        is!(c, 0, cuGraphDestroy(graph));
    }
    assert_eq!(run()[4], 5);
    is!(c, 0, cuGraphExecDestroy(exec));
}

/// Updates an executable graph from a new graph that `make` fills. Returns the code, the result, and the kind of the
/// reported node.
fn update(exec: CUgraphExec, make: impl FnOnce(CUgraph)) -> (u32, u32, Option<u32>) {
    let with = graph();
    make(with);
    let mut info = CUgraphExecUpdateResultInfo::default();
    let code = crate::call!(cuGraphExecUpdate(exec, with, &raw mut info)).0;
    let mut kind = CUgraphNodeType(99);
    let named = !info.errorNode.is_null();
    if named {
        crate::ok!(cuGraphNodeGetType(info.errorNode, &raw mut kind));
    }
    crate::ok!(cuGraphDestroy(with));
    (code, info.result.0, named.then_some(kind.0))
}

#[test]
fn all_nodes_at_once() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let a = s.digit(g, &[], 1);
    s.digit(g, &[a], 2);
    let exec = instantiate(g);
    let done = (0, 0, None);
    assert_eq!(s.run(exec), 12);
    let got = update(exec, |g| {
        let a = s.digit(g, &[], 3);
        s.digit(g, &[a], 4);
    });
    assert_eq!((got, s.run(exec)), (done, 34));
    // Another function, and nodes added in another order.
    let got = update(exec, |g| {
        let b = s.digit(g, &[], 6);
        let a = s.node(g, &[], s.put, s.data, 5);
        crate::ok!(cuGraphAddDependencies(g, &raw const a, &raw const b, 1));
    });
    assert_eq!((got, s.run(exec)), (done, 56));
    // An update from a graph with another topology, or with a node of another kind, fails and changes nothing.
    assert_eq!(update(exec, |_| ()), (910, 2, None));
    let got = update(exec, |g| {
        s.digit(g, &[], 7);
    });
    assert_eq!(got, (910, 2, None));
    let got = update(exec, |g| {
        let a = s.digit(g, &[], 7);
        let b = s.digit(g, &[a], 7);
        s.digit(g, &[b], 7);
    });
    assert_eq!(got, (910, 2, None));
    let got = update(exec, |g| {
        s.digit(g, &[], 7);
        s.digit(g, &[], 7);
    });
    assert_eq!(got, (910, 2, Some(0)));
    let fill = |g: CUgraph, after: &[CUgraphNode], params: CUDA_MEMSET_NODE_PARAMS| {
        let (mut node, params) = (ptr::null_mut(), &raw const params);
        let (before, many) = (after.as_ptr(), after.len());
        crate::ok!(cuGraphAddMemsetNode(
            &raw mut node,
            g,
            before,
            many,
            params,
            s.gpu.context
        ));
    };
    let got = update(exec, |g| {
        let a = s.digit(g, &[], 7);
        fill(g, &[a], fill_params(s.data, 1, 1));
    });
    assert_eq!(got, (910, 3, Some(2)));
    assert_eq!(s.run(exec), 56);
    is!(c, 1, cuGraphExecUpdate(exec, ptr::null_mut(), ptr::null_mut()));
    is!(c, 1, cuGraphExecUpdate(ptr::null_mut(), g, ptr::null_mut()));
    is!(c, 0, cuGraphExecUpdate(exec, g, ptr::null_mut()));
    assert_eq!(s.run(exec), 12);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));

    // Updates cannot change a fill of one row to several rows, or the kind of memory that a copy reads.
    let g = graph();
    let right = fill_params(s.data, 1, 4);
    fill(g, &[], right);
    let exec = instantiate(g);
    assert_eq!(update(exec, |g| fill(g, &[], fill_params(s.data, 2, 8))), done);
    assert_eq!(s.run(exec), 2);
    let rows = CUDA_MEMSET_NODE_PARAMS {
        height: 2,
        pitch: 64,
        ..right
    };
    assert_eq!(update(exec, |g| fill(g, &[], rows)), (910, 5, Some(2)));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));

    let g = graph();
    let copy = |g: CUgraph, params: CUDA_MEMCPY3D| {
        let (mut node, params) = (ptr::null_mut(), &raw const params);
        crate::ok!(cuGraphAddMemcpyNode(
            &raw mut node,
            g,
            ptr::null(),
            0,
            params,
            s.gpu.context
        ));
    };
    let right = copy_params(s.data, s.data + 64, 16);
    copy(g, right);
    let exec = instantiate(g);
    assert_eq!(update(exec, |g| copy(g, copy_params(s.data, s.data + 128, 8))), done);
    let value = 77_u32;
    let from_host = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: (&raw const value).cast(),
        WidthInBytes: 4,
        ..right
    };
    assert_eq!(update(exec, |g| copy(g, from_host)), (910, 5, Some(1)));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

/// A pending launch keeps its parameters.
#[test]
fn changes_while_a_launch_is_pending() {
    unsafe extern "system" fn wait(opened: *mut c_void) {
        // SAFETY: the pointer is to a flag that outlives the streams' work.
        let opened = unsafe { &*opened.cast::<AtomicBool>() };
        for _ in 0..60_000 {
            if opened.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let opened = AtomicBool::new(false);
    let slow = CUDA_HOST_NODE_PARAMS {
        fn_: Some(wait),
        userData: (&raw const opened).cast_mut().cast(),
    };
    let mut first = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddHostNode(&raw mut first, g, ptr::null(), 0, &raw const slow)
    );
    let digit = s.digit(g, &[first], 1);
    let exec = instantiate(g);
    let other = stream(1);
    is!(c, 0, cuGraphLaunch(exec, s.stream));
    let mut arguments = arguments![s.data, 2_u32];
    let mut pointers = arguments.pointers();
    let params = kernel_params(s.step, pointers.as_mut_ptr());
    is!(c, 0, cuGraphExecKernelNodeSetParams(exec, digit, &raw const params));
    is!(c, 0, cuGraphLaunch(exec, other));
    is!(c, 600, cuStreamQuery(other));
    opened.store(true, Ordering::SeqCst);
    is!(c, 0, cuStreamSynchronize(s.stream));
    is!(c, 0, cuStreamSynchronize(other));
    assert_eq!(s.value(0), 12);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}
