//! Tests of failed calls on graphs, which must leave no claim on allocation nodes or conditional handles, and of graphs
//! that are moved into themselves.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, architecture, driver_version, is_software, needs};
use crate::graph_memory::alloc;
use crate::graph_tools::{Steps, begin, graph, instantiate, nodes, stream};
use crate::{is, ok};

/// Adds a node of the type that the parameters name. Returns the result code.
fn add_any(graph: CUgraph, params: &mut CUgraphNodeParams) -> u32 {
    let mut node = ptr::null_mut();
    let (none, plain) = (ptr::null(), ptr::null());
    crate::call!(cuGraphAddNode_v2(
        &raw mut node,
        graph,
        none,
        plain,
        0,
        &raw mut *params
    ))
    .0
}

/// Adds a conditional node, and returns its body.
fn add_conditional(s: &Steps, graph: CUgraph) -> CUgraph {
    let mut handle = 0;
    ok!(cuGraphConditionalHandleCreate(
        &raw mut handle,
        graph,
        s.gpu.context,
        0,
        1
    ));
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        ..Default::default()
    };
    params.anonymous1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
        size: 1,
        phGraph_out: ptr::null_mut(),
        ctx: s.gpu.context,
    };
    assert_eq!(add_any(graph, &mut params), 0);
    // SAFETY: the call above wrote the pointer to an array of one graph, which lives as long as the node.
    unsafe { *params.anonymous1.conditional.phGraph_out }
}

/// Adds a node that owns the graph `child`. Returns the result code.
fn move_into(graph: CUgraph, child: CUgraph) -> u32 {
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
        ..Default::default()
    };
    params.anonymous1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
        graph: child,
        ownership: CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
    };
    add_any(graph, &mut params)
}

/// Returns true if the driver can move graphs into nodes and the device has conditional nodes; otherwise reports that
/// one of them is missing.
fn has_moves() -> bool {
    let has = driver_version() >= 12090 && architecture() >= 70;
    if !has {
        needs("a driver of CUDA 12.9 or later, which moves child graphs, and a device of sm_70 or later");
    }
    has
}

#[test]
fn a_refused_instantiation_claims_nothing() {
    if !has_moves() {
        return;
    }
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    add_conditional(&s, g);
    let first = instantiate(g);
    alloc(g, 1000);
    let mut second = ptr::null_mut();
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut second, g, 0));
    is!(c, 0, cuGraphExecDestroy(first));
    is!(c, 0, cuGraphInstantiateWithFlags(&raw mut second, g, 0));
    is!(c, 0, cuGraphLaunch(second, s.stream));
    is!(c, 0, cuStreamSynchronize(s.stream));
}

#[test]
fn an_upload_that_fails_leaves_no_executable_graph() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    alloc(g, 1000);
    let capturing = stream(1);
    begin(capturing);
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: u64::from(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0),
        hUploadStream: capturing,
        ..Default::default()
    };
    let mut exec = ptr::null_mut();
    is!(c, 900, cuGraphInstantiateWithParams(&raw mut exec, g, &raw mut params));
    assert_eq!(
        params.result_out,
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR
    );
    let mut captured = ptr::null_mut();
    is!(c, 901, cuStreamEndCapture(capturing, &raw mut captured));
    is!(c, 0, cuGraphInstantiateWithFlags(&raw mut exec, g, 0));
    is!(c, 0, cuGraphLaunch(exec, s.stream));
    is!(c, 0, cuStreamSynchronize(s.stream));
}

/// Expects that `outer` cannot be instantiated, and that neither graph can be destroyed.
fn are_lost(c: &mut Codes, outer: CUgraph, inner: CUgraph) {
    let mut exec = ptr::null_mut();
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut exec, outer, 0));
    is!(c, 1, cuGraphDestroy(inner));
    is!(c, 1, cuGraphDestroy(outer));
}

#[test]
fn a_graph_that_is_moved_into_its_own_child_is_lost() {
    if !has_moves() {
        return;
    }
    let s = Steps::new();
    let mut c = Codes::new();

    let itself = graph();
    s.digit(itself, &[], 1);
    assert_eq!(move_into(itself, itself), 0);
    assert_eq!(nodes(itself).len(), 2);
    let mut exec = ptr::null_mut();
    is!(c, 801, cuGraphInstantiateWithFlags(&raw mut exec, itself, 0));

    let (outer, middle, inner) = (graph(), graph(), graph());
    s.digit(inner, &[], 1);
    assert_eq!(move_into(outer, middle), 0);
    assert_eq!(move_into(middle, inner), 0);
    assert_eq!(move_into(inner, outer), 0);
    assert_eq!([outer, middle, inner].map(|graph| nodes(graph).len()), [1, 1, 2]);
    are_lost(&mut c, outer, inner);
    if is_software() {
        // NVIDIA's driver crashes or does not return.
        let mut copy = ptr::null_mut();
        is!(c, 1, cuGraphClone(&raw mut copy, outer));
        is!(c, 1, cuGraphDebugDotPrint(outer, c"/dev/null".as_ptr(), 0));
        let mut node = ptr::null_mut();
        is!(
            c,
            1,
            cuGraphAddChildGraphNode(&raw mut node, graph(), ptr::null(), 0, outer)
        );
        assert_ne!(move_into(graph(), outer), 0);
    }
}

#[test]
fn a_graph_cannot_be_moved_into_its_own_body() {
    if !has_moves() {
        return;
    }
    let s = Steps::new();
    let mut c = Codes::new();
    let outer = graph();
    let body = add_conditional(&s, outer);
    assert_eq!(move_into(body, outer), 801);
    assert_eq!([outer, body].map(|graph| nodes(graph).len()), [1, 0]);
    // `cuGraphGetNodes` refuses an array without elements, even for a graph without nodes.
    let (mut none, mut count) = (Vec::<CUgraphNode>::new(), 0);
    is!(c, 1, cuGraphGetNodes(body, none.as_mut_ptr(), &raw mut count));
    let exec = instantiate(outer);
    is!(c, 0, cuGraphLaunch(exec, s.stream));
    is!(c, 0, cuStreamSynchronize(s.stream));
    is!(c, 1, cuGraphDestroy(body));
    is!(c, 0, cuGraphDestroy(outer));
}
