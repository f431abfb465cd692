//! Tests of graph nodes: parameters, attributes and kinds.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver_version, needs};
use crate::graph_tools::{
    PTX, Steps, begin, copy_params, end, fill_params, graph, instantiate, kernel_params, kinds, nodes,
};
use crate::{arguments, is};

/// A host function that does nothing.
unsafe extern "system" fn nothing(_: *mut c_void) {}

#[test]
fn wrong_parameters() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let mut new = ptr::null_mut();
    let mut arguments = arguments![s.data, 3_u32];
    let mut pointers = arguments.pointers();
    let mut kernel = |params: CUDA_KERNEL_NODE_PARAMS| {
        crate::call!(cuGraphAddKernelNode(&raw mut new, g, ptr::null(), 0, &raw const params)).0
    };
    let right = kernel_params(s.step, pointers.as_mut_ptr());
    assert_eq!(kernel(right), 0);
    assert_eq!(kernel(kernel_params(s.step, ptr::null_mut())), 1);
    assert_eq!(kernel(kernel_params(ptr::null_mut(), pointers.as_mut_ptr())), 400);
    assert_eq!(kernel(CUDA_KERNEL_NODE_PARAMS { gridDimX: 0, ..right }), 1);
    assert_eq!(
        kernel(CUDA_KERNEL_NODE_PARAMS {
            blockDimX: 2000,
            ..right
        }),
        1
    );
    assert_eq!(
        kernel(CUDA_KERNEL_NODE_PARAMS {
            sharedMemBytes: 1 << 20,
            ..right
        }),
        1
    );
    assert_eq!(kernel(kernel_params(s.none, ptr::null_mut())), 0);
    is!(c, 1, cuGraphAddKernelNode(&raw mut new, g, ptr::null(), 0, ptr::null()));

    let context = s.gpu.context;
    let mut copy = |params: CUDA_MEMCPY3D| {
        let params = &raw const params;
        crate::call!(cuGraphAddMemcpyNode(&raw mut new, g, ptr::null(), 0, params, context)).0
    };
    let right = copy_params(s.data, s.data + 64, 16);
    assert_eq!(copy(right), 0);
    assert_eq!(copy(copy_params(s.data, s.data + 64, 0)), 1);
    assert_eq!(copy(copy_params(s.data, s.data + 64, 1 << 30)), 1);
    assert_eq!(copy(copy_params(s.data, 16, 16)), 1);
    assert_eq!(copy(CUDA_MEMCPY3D { Height: 0, ..right }), 1);

    let mut fill = |params: CUDA_MEMSET_NODE_PARAMS| {
        let params = &raw const params;
        crate::call!(cuGraphAddMemsetNode(&raw mut new, g, ptr::null(), 0, params, context)).0
    };
    let right = fill_params(s.data, 1, 4);
    assert_eq!(fill(right), 0);
    for (size, code) in [(0, 1), (1, 0), (2, 0), (3, 1), (8, 1)] {
        let params = CUDA_MEMSET_NODE_PARAMS {
            elementSize: size,
            ..right
        };
        assert_eq!(fill(params), code, "elements of {size} bytes");
    }
    assert_eq!(
        fill(CUDA_MEMSET_NODE_PARAMS {
            value: 300,
            elementSize: 1,
            ..right
        }),
        0
    );
    assert_eq!(fill(CUDA_MEMSET_NODE_PARAMS { width: 0, ..right }), 1);
    assert_eq!(fill(CUDA_MEMSET_NODE_PARAMS { height: 0, ..right }), 1);
    assert_eq!(
        fill(CUDA_MEMSET_NODE_PARAMS {
            height: 2,
            pitch: 8,
            ..right
        }),
        1
    );
    assert_eq!(fill(fill_params(s.data, 1, 1 << 30)), 1);
    assert_eq!(fill(fill_params(16, 1, 4)), 1);
    assert_eq!(fill(fill_params(s.data + 2, 1, 4)), 1);

    let mut host = CUDA_HOST_NODE_PARAMS::default();
    is!(
        c,
        1,
        cuGraphAddHostNode(&raw mut new, g, ptr::null(), 0, &raw const host)
    );
    is!(c, 1, cuGraphAddHostNode(&raw mut new, g, ptr::null(), 0, ptr::null()));
    host.fn_ = Some(nothing);
    is!(
        c,
        0,
        cuGraphAddHostNode(&raw mut new, g, ptr::null(), 0, &raw const host)
    );
    is!(
        c,
        1,
        cuGraphAddEventRecordNode(&raw mut new, g, ptr::null(), 0, ptr::null_mut())
    );
    is!(
        c,
        1,
        cuGraphAddEventWaitNode(&raw mut new, g, ptr::null(), 0, ptr::null_mut())
    );
    is!(
        c,
        1,
        cuGraphAddChildGraphNode(&raw mut new, g, ptr::null(), 0, ptr::null_mut())
    );
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn attributes_of_launches() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let (a, b) = (s.digit(g, &[], 1), s.digit(g, &[], 2));
    let get = |node, id| {
        let mut value = CUlaunchAttributeValue::default();
        let code = crate::call!(cuGraphKernelNodeGetAttribute(node, id, &raw mut value)).0;
        // SAFETY: the member is a number, for which any bits are a valid value.
        (code, unsafe { value.priority })
    };
    let priority = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    assert_eq!(get(a, priority), (0, 0));
    let mut value = CUlaunchAttributeValue::default();
    value.priority = -3;
    is!(c, 0, cuGraphKernelNodeSetAttribute(a, priority, &raw const value));
    is!(c, 0, cuGraphKernelNodeCopyAttributes(b, a));
    assert_eq!([get(a, priority), get(b, priority)], [(0, -3); 2]);
    // Attributes that a kernel node does not have.
    for id in [0, 3, 6, 7, 11, 12] {
        assert_eq!(get(a, CUlaunchAttributeID(id)).0, 1, "attribute {id}");
    }
    // A captured launch has its stream's priority.
    let mut fast = ptr::null_mut();
    is!(c, 0, cuStreamCreateWithPriority(&raw mut fast, 1, -4));
    begin(fast);
    s.step(fast, 3);
    let captured = end(fast);
    assert_eq!(get(nodes(captured)[0], priority), (0, -4));
    is!(c, 0, cuGraphDestroy(captured));
    // An update accepts a node with another priority, but not one made cooperative.
    let exec = instantiate(g);
    value.priority = -2;
    is!(c, 0, cuGraphKernelNodeSetAttribute(a, priority, &raw const value));
    is!(c, 0, cuGraphExecUpdate(exec, g, ptr::null_mut()));
    value.cooperative = 1;
    let cooperative = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    is!(c, 0, cuGraphKernelNodeSetAttribute(a, cooperative, &raw const value));
    let mut info = CUgraphExecUpdateResultInfo::default();
    is!(c, 910, cuGraphExecUpdate(exec, g, &raw mut info));
    assert_eq!((info.result.0, info.errorNode), (8, a));
    is!(c, 0, cuGraphExecDestroy(exec));
    // A grid whose blocks cannot all be resident at once is refused when the node becomes cooperative, and when a
    // cooperative node gets it.
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    is!(c, 0, cuGraphKernelNodeGetParams(a, &raw mut params));
    let grid = params.gridDimX;
    params.gridDimX = 1 << 20;
    is!(c, 720, cuGraphKernelNodeSetParams(a, &raw const params));
    value.cooperative = 0;
    is!(c, 0, cuGraphKernelNodeSetAttribute(a, cooperative, &raw const value));
    is!(c, 0, cuGraphKernelNodeSetParams(a, &raw const params));
    value.cooperative = 1;
    is!(c, 720, cuGraphKernelNodeSetAttribute(a, cooperative, &raw const value));
    params.gridDimX = grid;
    is!(c, 0, cuGraphKernelNodeSetParams(a, &raw const params));
    is!(c, 0, cuGraphKernelNodeSetAttribute(a, cooperative, &raw const value));
    let exec = instantiate(g);
    params.gridDimX = 1 << 20;
    is!(c, 720, cuGraphExecKernelNodeSetParams(exec, a, &raw const params));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn kernels_of_libraries() {
    let s = Steps::new();
    let mut c = Codes::new();
    let text = std::ffi::CString::new(PTX).unwrap_or_default();
    let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    let no_function = ptr::null_mut();
    is!(
        c,
        0,
        cuLibraryLoadData(
            &raw mut library,
            text.as_ptr().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0
        )
    );
    is!(c, 0, cuLibraryGetKernel(&raw mut kernel, library, c"put".as_ptr()));
    let mut arguments = arguments![s.data, 9_u32];
    let mut pointers = arguments.pointers();
    let params = CUDA_KERNEL_NODE_PARAMS {
        kern: kernel,
        ctx: s.gpu.context,
        ..kernel_params(no_function, pointers.as_mut_ptr())
    };
    let g = graph();
    let mut node = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddKernelNode(&raw mut node, g, ptr::null(), 0, &raw const params)
    );
    let mut reported = CUDA_KERNEL_NODE_PARAMS::default();
    is!(c, 0, cuGraphKernelNodeGetParams(node, &raw mut reported));
    assert_eq!((reported.kern, reported.ctx), (kernel, s.gpu.context));
    // A node reports both the function and its kernel, whichever of them it was made with.
    let mut of_kernel = ptr::null_mut();
    is!(c, 0, cuKernelGetFunction(&raw mut of_kernel, kernel));
    assert_eq!(reported.func, of_kernel);
    for (func, kern) in [(of_kernel, ptr::null_mut()), (of_kernel, kernel)] {
        let params = CUDA_KERNEL_NODE_PARAMS {
            kern,
            ..kernel_params(func, pointers.as_mut_ptr())
        };
        let mut other = ptr::null_mut();
        is!(
            c,
            0,
            cuGraphAddKernelNode(&raw mut other, g, ptr::null(), 0, &raw const params)
        );
        is!(c, 0, cuGraphKernelNodeGetParams(other, &raw mut reported));
        assert_eq!((reported.func, reported.kern), (of_kernel, kernel));
        is!(c, 0, cuGraphDestroyNode(other));
    }
    // A kernel handle is not accepted as a function.
    let params = kernel_params(kernel.cast(), pointers.as_mut_ptr());
    is!(
        c,
        400,
        cuGraphAddKernelNode(&mut ptr::null_mut(), g, ptr::null(), 0, &raw const params)
    );
    let exec = instantiate(g);
    assert_eq!(s.run(exec), 9);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn nodes_of_any_kind_from_one_call() {
    // CUDA 12.2 added cuGraphAddNode.
    if driver_version() < 12020 {
        return needs("a driver of CUDA 12.2");
    }
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let mut arguments = arguments![s.data, 3_u32];
    let mut pointers = arguments.pointers();
    let mut node = ptr::null_mut();
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
        ..Default::default()
    };
    let p = &raw mut params;
    let mut add = |params: *mut CUgraphNodeParams, after: &[CUgraphNode]| {
        let (before, many) = (after.as_ptr(), after.len());
        let code = crate::call!(cuGraphAddNode(&raw mut node, g, before, many, params)).0;
        (code, node)
    };
    let (code, empty) = add(p, &[]);
    assert_eq!(code, 0);
    // SAFETY: the structure belongs to this test, and the driver reads it only during the calls.
    unsafe {
        (*p).reserved0[0] = 1;
        assert_eq!(add(p, &[]).0, 1);
        (*p).reserved0[0] = 0;
        (*p).type_ = CUgraphNodeType(77);
        assert_eq!(add(p, &[]).0, 1);
        (*p).type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
        let of = kernel_params(s.step, pointers.as_mut_ptr());
        let kernel = &mut (*p).anonymous1.kernel;
        kernel.func = of.func;
        (kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ) = (1, 1, 1);
        (kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ) = (1, 1, 1);
        kernel.kernelParams = of.kernelParams;
    }
    let (code, kernel) = add(p, &[empty]);
    assert_eq!(code, 0);
    is!(c, 1, cuGraphNodeSetParams(empty, p));
    is!(c, 0, cuGraphNodeSetParams(kernel, p));
    let exec = instantiate(g);
    assert_eq!(s.run(exec), 3);
    is!(c, 0, cuGraphExecNodeSetParams(exec, kernel, p));
    is!(c, 1, cuGraphExecNodeSetParams(exec, empty, p));
    if driver_version() < 12090 {
        return needs("a driver of CUDA 12.9, which moves child graphs");
    }
    // The node takes ownership of the inner graph.
    let inner = graph();
    s.digit(inner, &[], 4);
    let mut moved = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
        ..Default::default()
    };
    moved.anonymous1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
        graph: inner,
        ownership: CUgraphChildGraphNodeOwnership(1),
    };
    let mut own = ptr::null_mut();
    let m = &raw mut moved;
    let mut child = ptr::null_mut();
    // SAFETY: as above.
    unsafe { (*m).reserved2 = 1 };
    is!(c, 1, cuGraphAddNode(&raw mut child, g, &raw const kernel, 1, m));
    // SAFETY: as above.
    unsafe { (*m).reserved2 = 0 };
    is!(c, 0, cuGraphAddNode(&raw mut child, g, &raw const kernel, 1, m));
    is!(c, 0, cuGraphChildGraphNodeGetGraph(child, &raw mut own));
    assert_eq!(own, inner);
    is!(c, 1, cuGraphDestroy(inner));
    is!(c, 0, cuGraphExecDestroy(exec));
    let exec = instantiate(g);
    assert_eq!(s.run(exec), 34);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn arguments_as_one_buffer() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let mut buffer = [0_u8; 12];
    buffer[..8].copy_from_slice(&s.data.to_ne_bytes());
    buffer[8..].copy_from_slice(&7_u32.to_ne_bytes());
    let mut size = buffer.len();
    let mut extra = [
        ptr::without_provenance_mut(1),
        buffer.as_mut_ptr().cast(),
        ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        ptr::null_mut(),
    ];
    let params = CUDA_KERNEL_NODE_PARAMS {
        extra: extra.as_mut_ptr(),
        ..kernel_params(s.put, ptr::null_mut())
    };
    let mut node = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddKernelNode(&raw mut node, g, ptr::null(), 0, &raw const params)
    );
    // The node has copied the arguments.
    buffer.fill(0);
    size = 0;
    let exec = instantiate(g);
    assert_eq!(s.run(exec), 7);
    let mut reported = CUDA_KERNEL_NODE_PARAMS::default();
    is!(c, 0, cuGraphKernelNodeGetParams(node, &raw mut reported));
    assert!(reported.kernelParams.is_null() && !reported.extra.is_null());
    // Parameters that the driver returned can be set again.
    is!(c, 0, cuGraphKernelNodeSetParams(node, &raw const reported));
    let again = instantiate(g);
    assert_eq!(s.run(again), 7);
    assert_eq!(size, 0);
    is!(c, 0, cuGraphExecDestroy(again));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn memory_operations() {
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    // Each captured operation becomes a node.
    begin(a);
    is!(c, 0, cuStreamWriteValue32(a, s.data, 4, 0));
    is!(c, 0, cuStreamWaitValue32(a, s.data, 4, 1));
    s.step(a, 5);
    let captured = end(a);
    assert_eq!(kinds(captured), [12, 12, 0]);
    let exec = instantiate(captured);
    for _ in 0..2 {
        assert_eq!(s.run(exec), 45);
    }
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(captured));
    // A node that is added to a graph may hold several operations.
    let write = |address, value| {
        let mut params = CUstreamBatchMemOpParams::default();
        params.writeValue.operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
        params.writeValue.address = address;
        params.writeValue.anonymous1.value = value;
        params
    };
    let mut both = [write(s.data, 1), write(s.data + 4, 2)];
    let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: s.gpu.context,
        count: 2,
        paramArray: both.as_mut_ptr(),
        flags: 0,
    };
    let g = graph();
    let mut node = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddBatchMemOpNode(&raw mut node, g, ptr::null(), 0, &raw const params)
    );
    // The node has copied the operations.
    both.fill(write(s.data, 9));
    let exec = instantiate(g);
    s.run(exec);
    assert_eq!(s.gpu.read::<u32>(s.data, 2), [1, 2]);
    let mut reported = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    is!(c, 0, cuGraphBatchMemOpNodeGetParams(node, &raw mut reported));
    assert_eq!(reported.count, 2);
    // SAFETY: the driver keeps the array until the node is changed; both operations are writes.
    let second = unsafe { (*reported.paramArray.add(1)).writeValue };
    assert_eq!(second.address, s.data + 4);
    // An executable graph accepts only the same number of operations.
    let mut others = [write(s.data, 3), write(s.data + 4, 4)];
    for (count, code) in [(1, 1), (2, 0)] {
        let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            count,
            paramArray: others.as_mut_ptr(),
            ..params
        };
        is!(
            c,
            code,
            cuGraphExecBatchMemOpNodeSetParams(exec, node, &raw const params)
        );
    }
    s.run(exec);
    assert_eq!(s.gpu.read::<u32>(s.data, 2), [3, 4]);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}
