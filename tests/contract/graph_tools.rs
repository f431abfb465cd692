//! Shared parts of the graph tests: kernels whose results show their order, and helpers that make nodes.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::{arguments, ok};

/// `step(p, v)`: `*p = 10 * *p + v`; `put(p, v)`: `*p = v`; `none()` does nothing.
pub(crate) const PTX: &str = "
.version 6.4
.target sm_52
.address_size 64
.visible .entry step(.param .u64 p, .param .u32 v) {
    .reg .u64 %rd<2>; .reg .u32 %r<3>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];
    cvta.to.global.u64 %rd1, %rd1;
    ld.global.u32 %r2, [%rd1]; mad.lo.u32 %r2, %r2, 10, %r1; st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry put(.param .u64 p, .param .u32 v) {
    .reg .u64 %rd<2>; .reg .u32 %r<2>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];
    cvta.to.global.u64 %rd1, %rd1; st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry none() { ret; }
";

/// A context with the kernels, some zeroed memory and a non-blocking stream.
pub(crate) struct Steps {
    pub(crate) gpu: Gpu,
    pub(crate) step: CUfunction,
    pub(crate) put: CUfunction,
    pub(crate) none: CUfunction,
    pub(crate) data: CUdeviceptr,
    pub(crate) stream: CUstream,
}

/// Creates a stream with these flags; 1 is `CU_STREAM_NON_BLOCKING`.
pub(crate) fn stream(flags: u32) -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, flags));
    stream
}

/// Creates an event without timing.
pub(crate) fn event() -> CUevent {
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, 2));
    event
}

/// Creates a graph.
pub(crate) fn graph() -> CUgraph {
    let mut graph = ptr::null_mut();
    ok!(cuGraphCreate(&raw mut graph, 0));
    graph
}

/// Instantiates a graph.
pub(crate) fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = ptr::null_mut();
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    exec
}

/// Returns the nodes of a graph.
pub(crate) fn nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    ok!(cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count));
    if count == 0 {
        return Vec::new();
    }
    let mut nodes = vec![ptr::null_mut(); count];
    ok!(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count));
    nodes
}

/// Returns the kinds of a graph's nodes, as numbers.
pub(crate) fn kinds(graph: CUgraph) -> Vec<u32> {
    let kind = |node| {
        let mut kind = CUgraphNodeType(99);
        ok!(cuGraphNodeGetType(node, &raw mut kind));
        kind.0
    };
    nodes(graph).into_iter().map(kind).collect()
}

/// Returns the edges of a graph, as indices of its nodes.
pub(crate) fn edges(graph: CUgraph) -> Vec<(usize, usize)> {
    let all = nodes(graph);
    let at = |node| all.iter().position(|n| *n == node).unwrap_or(usize::MAX);
    let mut count = 0;
    ok!(cuGraphGetEdges(graph, ptr::null_mut(), ptr::null_mut(), &raw mut count));
    let (mut from, mut to) = (vec![ptr::null_mut(); count], vec![ptr::null_mut(); count]);
    ok!(cuGraphGetEdges(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        &raw mut count
    ));
    from.into_iter().map(at).zip(to.into_iter().map(at)).collect()
}

/// Returns the parameters of a launch with one thread.
pub(crate) fn kernel_params(function: CUfunction, params: *mut *mut c_void) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: params,
        ..Default::default()
    }
}

/// Returns the parameters of a copy within device memory.
pub(crate) fn copy_params(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    }
}

/// Returns the parameters of a fill with 4-byte values.
pub(crate) fn fill_params(to: CUdeviceptr, value: u32, width: usize) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value,
        elementSize: 4,
        width,
        height: 1,
    }
}

impl Steps {
    pub(crate) fn new() -> Self {
        let gpu = Gpu::new();
        let module = gpu.text(PTX);
        let data = gpu.upload(&[0_u32; 64]);
        Self {
            step: gpu.function(module, "step"),
            put: gpu.function(module, "put"),
            none: gpu.function(module, "none"),
            stream: stream(1),
            data,
            gpu,
        }
    }

    /// Launches a kernel of one thread on a stream.
    pub(crate) fn launch(&self, function: CUfunction, stream: CUstream, address: CUdeviceptr, value: u32) {
        let mut arguments = arguments![address, value];
        let mut pointers = arguments.pointers();
        ok!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut()
        ));
    }

    /// Launches a kernel that appends a digit to the first value.
    pub(crate) fn step(&self, stream: CUstream, digit: u32) {
        self.launch(self.step, stream, self.data, digit);
    }

    /// Adds a node that launches a kernel.
    pub(crate) fn node(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        function: CUfunction,
        address: CUdeviceptr,
        value: u32,
    ) -> CUgraphNode {
        let mut arguments = arguments![address, value];
        let mut pointers = arguments.pointers();
        let params = kernel_params(function, pointers.as_mut_ptr());
        let mut node = ptr::null_mut();
        ok!(cuGraphAddKernelNode(
            &raw mut node,
            graph,
            after.as_ptr(),
            after.len(),
            &raw const params
        ));
        node
    }

    /// Adds a node that appends a digit to the first value.
    pub(crate) fn digit(&self, graph: CUgraph, after: &[CUgraphNode], digit: u32) -> CUgraphNode {
        self.node(graph, after, self.step, self.data, digit)
    }

    /// Zeroes the memory.
    pub(crate) fn clear(&self) {
        ok!(cuMemsetD32(self.data, 0, 64));
        ok!(cuCtxSynchronize());
    }

    /// Waits for the stream and returns the value with this index.
    pub(crate) fn value(&self, index: usize) -> u32 {
        ok!(cuStreamSynchronize(self.stream));
        let all: Vec<u32> = self.gpu.read(self.data, 64);
        all[index]
    }

    /// Launches an executable graph on zeroed memory and returns the first value.
    pub(crate) fn run(&self, exec: CUgraphExec) -> u32 {
        self.clear();
        ok!(cuGraphLaunch(exec, self.stream));
        self.value(0)
    }
}

/// Begins a relaxed capture, which does not forbid calls of other tests in other threads.
pub(crate) fn begin(stream: CUstream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuStreamBeginCapture(stream, mode));
}

/// Ends a capture and returns the captured graph.
pub(crate) fn end(stream: CUstream) -> CUgraph {
    let mut graph = ptr::null_mut();
    ok!(cuStreamEndCapture(stream, &raw mut graph));
    graph
}

/// Returns the capture status of a stream: 0 none, 1 active, 2 invalidated.
pub(crate) fn status(stream: CUstream) -> u32 {
    let mut status = CUstreamCaptureStatus(77);
    ok!(cuStreamIsCapturing(stream, &raw mut status));
    status.0
}
