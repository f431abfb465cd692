//! Tests of memory that graph nodes allocate and free.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::graph_tools::{Steps, begin, copy_params, end, graph, instantiate, kinds};
use crate::{is, ok};

fn alloc_params(bytes: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = bytes;
    params
}

/// Adds a node that allocates memory; returns the node and the address.
pub(crate) fn alloc(graph: CUgraph, bytes: usize) -> (CUgraphNode, CUdeviceptr) {
    let mut params = alloc_params(bytes);
    let mut node = ptr::null_mut();
    ok!(cuGraphAddMemAllocNode(
        &raw mut node,
        graph,
        ptr::null(),
        0,
        &raw mut params
    ));
    assert!(params.dptr != 0 && params.dptr % 512 == 0, "address {:#x}", params.dptr);
    (node, params.dptr)
}

#[test]
fn memory_that_outlives_the_launch() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let (node, memory) = alloc(g, 1000);
    let mut reported = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    is!(c, 0, cuGraphMemAllocNodeGetParams(node, &raw mut reported));
    assert_eq!((reported.dptr, reported.bytesize), (memory, 1000));
    is!(
        c,
        1,
        cuGraphAddMemAllocNode(&mut ptr::null_mut(), g, ptr::null(), 0, &mut alloc_params(0))
    );
    // Before a launch the address is reserved, but has no memory.
    let mut kind = 9_u32;
    is!(
        c,
        1,
        cuPointerGetAttribute(
            (&raw mut kind).cast::<c_void>(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            memory
        )
    );
    is!(c, 500, cuMemGetAddressRange(ptr::null_mut(), &mut 0, memory));
    is!(c, 1, cuMemFree(memory));
    let put = s.node(g, &[node], s.put, memory, 4);
    let copy = copy_params(s.data, memory, 4);
    is!(
        c,
        0,
        cuGraphAddMemcpyNode(
            &mut ptr::null_mut(),
            g,
            &raw const put,
            1,
            &raw const copy,
            s.gpu.context
        )
    );
    // A graph that allocates memory cannot be copied, and its nodes cannot be destroyed.
    is!(c, 801, cuGraphClone(&mut ptr::null_mut(), g));
    is!(
        c,
        801,
        cuGraphAddChildGraphNode(&mut ptr::null_mut(), graph(), ptr::null(), 0, g)
    );
    is!(c, 801, cuGraphDestroyNode(node));
    let exec = instantiate(g);
    is!(c, 801, cuGraphInstantiateWithFlags(&mut ptr::null_mut(), g, 0));
    assert_eq!(s.run(exec), 4);
    let mut value = 0_u32;
    is!(c, 0, cuMemcpyDtoH((&raw mut value).cast(), memory, 4));
    assert_eq!(value, 4);
    // The graph cannot allocate the memory again while it is allocated.
    is!(c, 1, cuGraphLaunch(exec, s.stream));
    is!(c, 0, cuMemFreeAsync(memory, s.stream));
    is!(c, 1, cuMemFreeAsync(memory, s.stream));
    assert_eq!(s.run(exec), 4);
    is!(c, 0, cuMemFree(memory));
    is!(c, 1, cuMemFree(memory));
    assert_eq!(s.run(exec), 4);
    // The memory outlives the executable graph.
    is!(c, 0, cuGraphExecDestroy(exec));
    let mut exec = ptr::null_mut();
    is!(c, 0, cuGraphInstantiateWithFlags(&raw mut exec, g, 1));
    is!(c, 0, cuMemFree(memory));
    // With the flag AUTO_FREE_ON_LAUNCH (1), a launch first frees the memory of the launch before.
    for _ in 0..3 {
        assert_eq!(s.run(exec), 4);
    }
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuMemcpyDtoH((&raw mut value).cast(), memory, 4));
    is!(c, 0, cuMemFree(memory));
}

#[test]
fn nodes_that_free() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let (first, memory) = alloc(g, 1000);
    let put = s.node(g, &[first], s.put, memory, 5);
    let copy = copy_params(s.data, memory, 4);
    let (mut last, mut free) = (ptr::null_mut(), ptr::null_mut());
    let out = &raw mut free;
    let context = s.gpu.context;
    is!(
        c,
        0,
        cuGraphAddMemcpyNode(&raw mut last, g, &raw const put, 1, &raw const copy, context)
    );
    is!(c, 1, cuGraphAddMemFreeNode(out, g, &raw const last, 1, memory + 16));
    is!(c, 1, cuGraphAddMemFreeNode(out, g, &raw const last, 1, s.data));
    is!(c, 0, cuGraphAddMemFreeNode(out, g, &raw const last, 1, memory));
    is!(
        c,
        1,
        cuGraphAddMemFreeNode(&mut ptr::null_mut(), g, &raw const last, 1, memory)
    );
    let mut freed = 0;
    is!(c, 0, cuGraphMemFreeNodeGetParams(free, &raw mut freed));
    assert_eq!(freed, memory);
    // Nodes and edges of a graph with allocation nodes cannot be removed.
    is!(
        c,
        801,
        cuGraphRemoveDependencies(g, &raw const first, &raw const put, 1)
    );
    is!(c, 801, cuGraphDestroyNode(last));
    let exec = instantiate(g);
    for _ in 0..3 {
        assert_eq!(s.run(exec), 5);
    }
    is!(c, 1, cuMemFree(memory));
    is!(c, 1, cuMemFreeAsync(memory, s.stream));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn one_graph_allocates_and_another_frees() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (allocates, frees) = (graph(), graph());
    let (node, memory) = alloc(allocates, 100);
    s.node(allocates, &[node], s.put, memory, 7);
    let mut free = ptr::null_mut();
    is!(
        c,
        0,
        cuGraphAddMemFreeNode(&raw mut free, frees, ptr::null(), 0, memory)
    );
    let (one, two) = (instantiate(allocates), instantiate(frees));
    is!(c, 1, cuGraphLaunch(two, s.stream));
    for _ in 0..2 {
        s.clear();
        is!(c, 0, cuGraphLaunch(one, s.stream));
        is!(c, 0, cuMemcpyDtoDAsync(s.data, memory, 4, s.stream));
        is!(c, 0, cuGraphLaunch(two, s.stream));
        is!(c, 1, cuGraphLaunch(two, s.stream));
        assert_eq!(s.value(0), 7);
    }
    // The memory outlives both graphs.
    is!(c, 0, cuGraphLaunch(one, s.stream));
    for exec in [one, two] {
        is!(c, 0, cuGraphExecDestroy(exec));
    }
    for graph in [allocates, frees] {
        is!(c, 0, cuGraphDestroy(graph));
    }
    is!(c, 0, cuMemcpyDtoDAsync(s.data + 4, memory, 4, s.stream));
    is!(c, 0, cuMemFreeAsync(memory, s.stream));
    assert_eq!(s.value(1), 7);
    is!(c, 1, cuMemcpyDtoDAsync(s.data, memory, 4, s.stream));
}

#[test]
fn memory_of_a_capture() {
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    let mut memory = 0;
    begin(a);
    is!(c, 0, cuMemAllocAsync(&raw mut memory, 64, a));
    s.launch(s.put, a, memory, 6);
    let g = end(a);
    assert_eq!(kinds(g), [10, 0]);
    let exec = instantiate(g);
    for _ in 0..3 {
        // The memory is used and freed outside of the graph, in stream order.
        let mut value = 0_u32;
        is!(c, 0, cuGraphLaunch(exec, a));
        is!(c, 0, cuMemcpyDtoHAsync((&raw mut value).cast(), memory, 4, a));
        is!(c, 0, cuMemFreeAsync(memory, a));
        is!(c, 0, cuStreamSynchronize(a));
        assert_eq!(value, 6);
    }
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 1, cuMemFree(memory));
}

#[test]
fn counts_of_a_device() {
    let mut c = Codes::new();
    let _s = Steps::new();
    let used = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
    let high = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    let mut value = u64::MAX;
    let place = (&raw mut value).cast::<c_void>();
    is!(c, 0, cuDeviceGetGraphMemAttribute(0, used, place));
    // Graphs of other tests use some of the device's memory; `graph_checks` looks at the numbers.
    assert_ne!(value, u64::MAX);
    is!(c, 1, cuDeviceGetGraphMemAttribute(0, CUgraphMem_attribute(9), place));
    is!(c, 101, cuDeviceGetGraphMemAttribute(1000, used, place));
    // Only the high-water mark can be written, and only with 0, which resets it to the current value.
    let set =
        |attribute, mut value: u64| crate::call!(cuDeviceSetGraphMemAttribute(0, attribute, (&raw mut value).cast())).0;
    assert_eq!([set(high, 1), set(high, 0)], [1, 0]);
    assert_eq!([set(used, 1), set(used, 0)], [1, 1]);
    is!(c, 0, cuDeviceGraphMemTrim(0));
    is!(c, 101, cuDeviceGraphMemTrim(1000));
}
