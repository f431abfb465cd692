//! Tests of conditional nodes: the choice of the body, values that kernels set, and the limits of graphs with such
//! nodes.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, architecture, driver_version, needs};
use crate::graph_tools::{Steps, copy_params, event, fill_params, graph, instantiate, kernel_params, stream};
use crate::{arguments, child, is, ok};

/// `count(handle, p, limit)`: increments `*p`, and sets the value of the handle to 1 if the result is less than the
/// limit, else to 0. `set(handle, value)` sets the value.
const PTX: &str = "
.version 6.4
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 handle, .param .u64 p, .param .u32 limit) {
    .reg .u64 %rd<3>; .reg .u32 %r<4>; .reg .pred %p;
    ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [p]; ld.param.u32 %r2, [limit];
    cvta.to.global.u64 %rd2, %rd2;
    ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;
    setp.lt.u32 %p, %r1, %r2; selp.u32 %r3, 1, 0, %p;
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1; st.param.b32 [b], %r3;
      call cudaGraphSetConditional, (a, b); }
    ret;
}
.visible .entry set(.param .u64 handle, .param .u32 value) {
    .reg .u64 %rd<2>; .reg .u32 %r<2>;
    ld.param.u64 %rd1, [handle]; ld.param.u32 %r1, [value];
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1; st.param.b32 [b], %r1;
      call cudaGraphSetConditional, (a, b); }
    ret;
}
";

const IF: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
const WHILE: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
const SWITCH: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH;

/// Returns true if the driver and the device have conditional nodes of every kind; else reports that the test needs
/// them.
fn has_conditional_nodes() -> bool {
    let has = driver_version() >= 12080 && architecture() >= 70;
    if !has {
        needs("a driver of CUDA 12.8 and a device of sm_70 or later for conditional nodes");
    }
    has
}

/// A context with the kernels of [`PTX`] and those of the other graph tests.
struct Conditionals {
    steps: Steps,
    count: CUfunction,
    set: CUfunction,
}

impl Conditionals {
    fn new() -> Self {
        let steps = Steps::new();
        let module = steps.gpu.text(PTX);
        Conditionals {
            count: steps.gpu.function(module, "count"),
            set: steps.gpu.function(module, "set"),
            steps,
        }
    }

    fn context(&self) -> CUcontext {
        self.steps.gpu.context
    }

    /// Creates a handle. If a value is given, each launch of the graph sets the handle to it.
    fn handle(&self, graph: CUgraph, value: Option<u32>) -> u64 {
        let mut handle = 0;
        let (number, flags) = (value.unwrap_or(0), u32::from(value.is_some()));
        ok!(cuGraphConditionalHandleCreate(
            &raw mut handle,
            graph,
            self.context(),
            number,
            flags
        ));
        handle
    }

    fn params(&self, handle: u64, kind: CUgraphConditionalNodeType, bodies: u32) -> CUgraphNodeParams {
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        params.anonymous1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: kind,
            size: bodies,
            phGraph_out: ptr::null_mut(),
            ctx: self.context(),
        };
        params
    }

    /// Adds a conditional node, and returns it with its bodies.
    fn node(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        handle: u64,
        (kind, bodies): (CUgraphConditionalNodeType, u32),
    ) -> (CUgraphNode, Vec<CUgraph>) {
        let mut params = self.params(handle, kind, bodies);
        let mut node = ptr::null_mut();
        let (from, count) = (after.as_ptr(), after.len());
        ok!(cuGraphAddNode_v2(
            &raw mut node,
            graph,
            from,
            ptr::null(),
            count,
            &raw mut params
        ));
        // SAFETY: the call above wrote the pointer to an array of this length, which lives as long as the node.
        let all = unsafe { std::slice::from_raw_parts(params.anonymous1.conditional.phGraph_out, bodies as usize) };
        (node, all.to_vec())
    }

    /// Adds a node that sets a word.
    fn fill(&self, graph: CUgraph, word: u64, value: u32) -> CUgraphNode {
        let mut node = ptr::null_mut();
        let params = fill_params(self.steps.data + 4 * word, value, 1);
        ok!(cuGraphAddMemsetNode(
            &raw mut node,
            graph,
            ptr::null(),
            0,
            &raw const params,
            self.context()
        ));
        node
    }

    /// Adds a launch of `count` on a word.
    fn count(&self, graph: CUgraph, after: &[CUgraphNode], handle: u64, (word, limit): (u64, u32)) -> CUgraphNode {
        let mut arguments = arguments![handle, self.steps.data + 4 * word, limit];
        self.kernel(graph, after, self.count, arguments.pointers().as_mut_ptr())
    }

    fn kernel(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        function: CUfunction,
        arguments: *mut *mut std::ffi::c_void,
    ) -> CUgraphNode {
        let mut node = ptr::null_mut();
        let params = kernel_params(function, arguments);
        let (from, count) = (after.as_ptr(), after.len());
        ok!(cuGraphAddKernelNode_v2(
            &raw mut node,
            graph,
            from,
            count,
            &raw const params
        ));
        node
    }

    /// Zeroes the words, launches the graph, and returns the words.
    fn run(&self, exec: CUgraphExec) -> Vec<u32> {
        let (data, stream) = (self.steps.data, self.steps.stream);
        ok!(cuMemsetD32Async(data, 0, 4, stream));
        ok!(cuGraphLaunch(exec, stream));
        ok!(cuStreamSynchronize(stream));
        self.steps.gpu.read(data, 4)
    }
}

#[test]
fn the_value_selects_the_body() {
    if !has_conditional_nodes() {
        return;
    }
    let conditionals = Conditionals::new();
    let cases = [
        (IF, 1, 1, [1, 0, 0]),
        (IF, 1, 5, [1, 0, 0]),
        (IF, 1, 0, [0, 0, 0]),
        (IF, 2, 1, [1, 0, 0]),
        (IF, 2, 0, [0, 2, 0]),
        (WHILE, 1, 0, [0, 0, 0]),
        (SWITCH, 3, 0, [1, 0, 0]),
        (SWITCH, 3, 2, [0, 0, 3]),
        (SWITCH, 3, 3, [0, 0, 0]),
        (SWITCH, 3, 5, [0, 0, 0]),
    ];
    for (kind, bodies, value, expected) in cases {
        let graph = graph();
        let handle = conditionals.handle(graph, Some(value));
        let (node, all) = conditionals.node(graph, &[], handle, (kind, bodies));
        let mut type_ = CUgraphNodeType(0);
        ok!(cuGraphNodeGetType(node, &raw mut type_));
        assert_eq!(type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL);
        for (body, number) in all.iter().zip(0..) {
            conditionals.fill(*body, number, number as u32 + 1);
        }
        let exec = instantiate(graph);
        for _ in 0..2 {
            assert_eq!(conditionals.run(exec)[..3], expected, "{kind:?} {bodies} {value}");
        }
        ok!(cuGraphDestroy(graph));
        // The executable graph has bodies and a value of its own.
        assert_eq!(conditionals.run(exec)[..3], expected);
        ok!(cuGraphExecDestroy(exec));
    }
}

#[test]
fn kernels_set_the_value() {
    if !has_conditional_nodes() {
        return;
    }
    let conditionals = Conditionals::new();
    // A loop, and a node after it.
    let g = graph();
    let handle = conditionals.handle(g, Some(1));
    let (node, bodies) = conditionals.node(g, &[], handle, (WHILE, 1));
    let first = conditionals.count(bodies[0], &[], handle, (0, 10));
    let arguments = &mut arguments![conditionals.steps.data + 4, 1u32];
    conditionals.kernel(
        bodies[0],
        &[first],
        conditionals.steps.step,
        arguments.pointers().as_mut_ptr(),
    );
    let arguments = &mut arguments![conditionals.steps.data, 7u32];
    conditionals.kernel(g, &[node], conditionals.steps.step, arguments.pointers().as_mut_ptr());
    let exec = instantiate(g);
    for _ in 0..2 {
        assert_eq!(conditionals.run(exec)[..2], [107, 1_111_111_111]);
    }
    // Many launches, without waiting in between. Each continues with the words that the one before it left.
    let mut words = [107_u32, 1_111_111_111];
    for _ in 0..20 {
        ok!(cuGraphLaunch(exec, conditionals.steps.stream));
        loop {
            words = [words[0].wrapping_add(1), words[1].wrapping_mul(10).wrapping_add(1)];
            if words[0] >= 10 {
                break;
            }
        }
        words[0] = words[0].wrapping_mul(10).wrapping_add(7);
    }
    ok!(cuStreamSynchronize(conditionals.steps.stream));
    assert_eq!(conditionals.steps.gpu.read::<u32>(conditionals.steps.data, 2), words);
    ok!(cuGraphExecDestroy(exec));
    // A kernel before the node sets the value.
    for (value, expected) in [(0, [0, 0, 0]), (3, [5, 0, 0])] {
        let g = graph();
        let handle = conditionals.handle(g, None);
        let mut arguments = arguments![handle, value];
        let kernel = conditionals.kernel(g, &[], conditionals.set, arguments.pointers().as_mut_ptr());
        let (_, bodies) = conditionals.node(g, &[kernel], handle, (IF, 1));
        conditionals.fill(bodies[0], 0, 5);
        assert_eq!(conditionals.run(instantiate(g))[..3], expected);
    }
}

#[test]
fn nodes_in_bodies() {
    if !has_conditional_nodes() {
        return;
    }
    let conditionals = Conditionals::new();
    // A loop of two rounds; in each of them an inner loop of four rounds.
    let g = graph();
    let outer = conditionals.handle(g, Some(1));
    let (_, bodies) = conditionals.node(g, &[], outer, (WHILE, 1));
    let inner = conditionals.handle(g, None);
    let zero = conditionals.fill(bodies[0], 1, 0);
    let mut arguments = arguments![inner, 1u32];
    let set = conditionals.kernel(bodies[0], &[zero], conditionals.set, arguments.pointers().as_mut_ptr());
    let (inside, inner_bodies) = conditionals.node(bodies[0], &[set], inner, (WHILE, 1));
    let count = conditionals.count(inner_bodies[0], &[], inner, (1, 4));
    let mut arguments = arguments![conditionals.steps.data + 8, 1u32];
    let child = graph();
    conditionals.kernel(child, &[], conditionals.steps.step, arguments.pointers().as_mut_ptr());
    let mut node = ptr::null_mut();
    ok!(cuGraphAddChildGraphNode(
        &raw mut node,
        inner_bodies[0],
        &raw const count,
        1,
        child
    ));
    let copy = copy_params(conditionals.steps.data + 12, conditionals.steps.data + 4, 4);
    let (graph, context) = (inner_bodies[0], conditionals.context());
    ok!(cuGraphAddMemcpyNode(
        &raw mut node,
        graph,
        &raw const count,
        1,
        &raw const copy,
        context
    ));
    conditionals.count(bodies[0], &[inside], outer, (0, 2));
    assert_eq!(conditionals.run(instantiate(g)), [2, 4, 11_111_111, 4]);
}

#[test]
fn graphs_with_conditional_nodes() {
    if !has_conditional_nodes() {
        return;
    }
    let conditionals = Conditionals::new();
    let mut c = Codes::new();
    let g = graph();
    let handle = conditionals.handle(g, Some(1));
    // A graph with a handle cannot be cloned, even if no node uses the handle.
    let mut copy = ptr::null_mut();
    is!(c, 801, cuGraphClone(&raw mut copy, g));
    let (node, bodies) = conditionals.node(g, &[], handle, (IF, 2));
    let inside = conditionals.fill(bodies[0], 0, 3);
    let mut exec = ptr::null_mut();
    is!(c, 801, cuGraphClone(&raw mut copy, g));
    is!(c, 801, cuGraphClone(&raw mut copy, bodies[0]));
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut exec, bodies[0], 0));
    is!(c, 1, cuGraphDestroy(bodies[0]));
    let mut params = conditionals.params(handle, IF, 2);
    is!(c, 801, cuGraphNodeSetParams(node, &raw mut params));
    let first = instantiate(g);
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut exec, g, 0));
    is!(c, 0, cuGraphExecDestroy(first));
    let first = instantiate(g);
    assert_eq!(conditionals.run(first)[0], 3);
    // The nodes of a body can be changed.
    let new = fill_params(conditionals.steps.data, 4, 1);
    is!(c, 0, cuGraphMemsetNodeSetParams(inside, &raw const new));
    assert_eq!(conditionals.run(first)[0], 3);
    is!(c, 0, cuGraphExecDestroy(first));
    let first = instantiate(g);
    assert_eq!(conditionals.run(first)[0], 4);
    is!(c, 0, cuGraphExecDestroy(first));
    // The handle of a destroyed node is free again.
    is!(c, 0, cuGraphDestroyNode(node));
    let (_, bodies) = conditionals.node(g, &[], handle, (IF, 1));
    conditionals.fill(bodies[0], 0, 6);
    let first = instantiate(g);
    assert_eq!(conditionals.run(first)[0], 6);
    // An update takes over the nodes of the bodies.
    let other = graph();
    let handle = conditionals.handle(other, Some(1));
    let (_, bodies) = conditionals.node(other, &[], handle, (IF, 1));
    conditionals.fill(bodies[0], 0, 7);
    let mut info = CUgraphExecUpdateResultInfo::default();
    is!(c, 0, cuGraphExecUpdate_v2(first, other, &raw mut info));
    assert_eq!(conditionals.run(first)[0], 7);
    // A capture adds nodes to a body.
    let g = graph();
    let handle = conditionals.handle(g, Some(1));
    let (_, bodies) = conditionals.node(g, &[], handle, (IF, 1));
    let (none, mut captured) = (ptr::null(), ptr::null_mut());
    // A capture in global mode would forbid calls of other tests in other threads.
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let s = stream(1);
    is!(
        c,
        0,
        cuStreamBeginCaptureToGraph(s, bodies[0], none, ptr::null(), 0, mode)
    );
    is!(c, 0, cuMemsetD32Async(conditionals.steps.data, 9, 1, s));
    is!(c, 0, cuStreamEndCapture(s, &raw mut captured));
    assert_eq!(captured, bodies[0]);
    // The program has the body's handle, so it need not ask for it at the end of a capture.
    is!(
        c,
        0,
        cuStreamBeginCaptureToGraph(s, bodies[0], none, ptr::null(), 0, mode)
    );
    is!(c, 0, cuMemsetD32Async(conditionals.steps.data + 4, 8, 1, s));
    is!(c, 0, cuStreamEndCapture(s, ptr::null_mut()));
    assert_eq!(conditionals.run(instantiate(g))[..2], [9, 8]);
}

#[test]
fn wrong_handles_and_nodes() {
    if !has_conditional_nodes() {
        return;
    }
    let conditionals = Conditionals::new();
    let mut c = Codes::new();
    let (g, context) = (graph(), conditionals.context());
    let mut handle = 0;
    is!(
        c,
        1,
        cuGraphConditionalHandleCreate(&raw mut handle, ptr::null_mut(), context, 1, 1)
    );
    is!(c, 1, cuGraphConditionalHandleCreate(&raw mut handle, g, context, 1, 2));
    is!(
        c,
        201,
        cuGraphConditionalHandleCreate(&raw mut handle, g, ptr::null_mut(), 1, 1)
    );
    let handle = conditionals.handle(g, Some(1));
    let mut node = ptr::null_mut();
    let mut add = |g, handle, kind, bodies| {
        let mut params = conditionals.params(handle, kind, bodies);
        let call = cuGraphAddNode_v2;
        crate::call!(call(&raw mut node, g, ptr::null(), ptr::null(), 0, &raw mut params)).0
    };
    for (kind, bodies) in [(IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0)] {
        c.is(
            1,
            &format!("{kind:?} with {bodies} bodies"),
            add(g, handle, kind, bodies),
        );
    }
    let mut params = conditionals.params(handle, IF, 1);
    params.anonymous1.conditional.ctx = ptr::null_mut();
    let mut node = ptr::null_mut();
    is!(
        c,
        201,
        cuGraphAddNode_v2(&raw mut node, g, ptr::null(), ptr::null(), 0, &raw mut params)
    );
    c.is(1, "unknown kind", add(g, handle, CUgraphConditionalNodeType(9), 1));
    c.is(1, "unknown handle", add(g, 0x0123_4567, IF, 1));
    c.is(1, "handle of another graph", add(graph(), handle, IF, 1));
    c.is(0, "the right handle", add(g, handle, IF, 1));
    c.is(1, "handle of another node", add(g, handle, IF, 1));
}

/// Instantiates a graph that must be refused, and returns the result and the node that the driver names.
fn refused(graph: CUgraph) -> (CUgraphInstantiateResult, CUgraphNode) {
    let (mut params, mut exec) = (CUDA_GRAPH_INSTANTIATE_PARAMS::default(), ptr::null_mut());
    let code = crate::call!(cuGraphInstantiateWithParams(&raw mut exec, graph, &raw mut params));
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
    (params.result_out, params.hErrNode_out)
}

#[test]
fn nodes_that_no_body_can_have() {
    if !has_conditional_nodes() {
        return;
    }
    extern "system" fn nothing(_: *mut std::ffi::c_void) {}
    let conditionals = Conditionals::new();
    let unsupported = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    for kind in 0..4 {
        let g = graph();
        let handle = conditionals.handle(g, Some(1));
        let (_, bodies) = conditionals.node(g, &[], handle, (IF, 1));
        let (mut node, none, body) = (ptr::null_mut(), ptr::null(), bodies[0]);
        let mut expected = unsupported;
        let value = 5u32;
        match kind {
            0 => {
                let params = CUDA_HOST_NODE_PARAMS {
                    fn_: Some(nothing),
                    userData: ptr::null_mut(),
                };
                ok!(cuGraphAddHostNode(&raw mut node, body, none, 0, &raw const params));
            }
            1 => ok!(cuGraphAddEventRecordNode(&raw mut node, body, none, 0, event())),
            2 => {
                let device = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                let mut array = ptr::null_mut();
                let descriptor = CUDA_ARRAY_DESCRIPTOR {
                    Width: 4,
                    Height: 4,
                    Format: CUarray_format::CU_AD_FORMAT_FLOAT,
                    NumChannels: 1,
                };
                ok!(cuArrayCreate_v2(&raw mut array, &raw const descriptor));
                let mut params = copy_params(0, conditionals.steps.data, 4);
                assert_eq!(params.dstMemoryType, device);
                (params.dstMemoryType, params.dstArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, array);
                ok!(cuGraphAddMemcpyNode(
                    &raw mut node,
                    body,
                    none,
                    0,
                    &raw const params,
                    conditionals.context()
                ));
            }
            _ => {
                let mut params = copy_params(conditionals.steps.data, 0, 4);
                params.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
                params.srcHost = (&raw const value).cast();
                ok!(cuGraphAddMemcpyNode(
                    &raw mut node,
                    body,
                    none,
                    0,
                    &raw const params,
                    conditionals.context()
                ));
                expected = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
            }
        }
        assert_eq!(refused(g), (expected, node), "{kind}");
    }
}

#[test]
fn a_handle_that_no_graph_has() {
    child!("a_handle_that_no_graph_has", {
        if !has_conditional_nodes() {
            return;
        }
        let conditionals = Conditionals::new();
        let mut arguments = arguments![0x1234_5678_u64, 1u32];
        let g = graph();
        conditionals.kernel(g, &[], conditionals.set, arguments.pointers().as_mut_ptr());
        ok!(cuGraphLaunch(instantiate(g), conditionals.steps.stream));
        let code = crate::call!(cuStreamSynchronize(conditionals.steps.stream));
        assert_eq!(code, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    });
}
