//! Tests of attributes of kernel nodes that change the shape of the launch: the attribute and the launch agree.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::{Context, Kernel, check, cuda, expect, lacks_software, ptr};
use cuda_driver_sys::*;

/// A kernel that stores the x size of its cluster in blocks, and then a number, which is not 0 in a cooperative launch.
const SHAPE: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry shape(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %rd<2>;\n\
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %cluster_nctaid.x;\n\
    mov.b32 %r2, %envreg1; mov.b32 %r3, %envreg2; or.b32 %r2, %r2, %r3;\n\
    st.global.v2.u32 [%rd1], {%r1, %r2}; ret; }\n";

const CLUSTER: CUlaunchAttributeID = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
const COOPERATIVE: CUlaunchAttributeID = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;

fn cluster([x, y, z]: [u32; 3]) -> CUlaunchAttributeValue {
    CUlaunchAttributeValue {
        clusterDim: CUlaunchAttributeValue_union__clusterDim { x, y, z },
    }
}

/// A node in a graph of its own, which launches the kernel [`SHAPE`].
struct Node {
    graph: CUgraph,
    node: CUgraphNode,
    out: CUdeviceptr,
}

fn params(kernel: &Kernel, grid: u32, pointers: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: kernel.function,
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: pointers.as_mut_ptr(),
        ..Default::default()
    }
}

impl Node {
    fn new(kernel: &Kernel, grid: u32) -> Node {
        let (mut graph, mut node, mut out) = (null_mut(), null_mut(), 0);
        unsafe {
            check(cuda().cuMemAlloc(&mut out, 8));
            check(cuda().cuGraphCreate(&mut graph, 0));
        }
        let mut pointers = [ptr(&mut out)];
        let params = params(kernel, grid, &mut pointers);
        check(unsafe { cuda().cuGraphAddKernelNode(&mut node, graph, null(), 0, &params) });
        Node { graph, node, out }
    }

    fn set(&self, id: CUlaunchAttributeID, value: CUlaunchAttributeValue) {
        check(unsafe { cuda().cuGraphKernelNodeSetAttribute(self.node, id, &value) });
    }

    fn set_grid(&self, kernel: &Kernel, grid: u32) {
        let mut out = self.out;
        let mut pointers = [ptr(&mut out)];
        let params = params(kernel, grid, &mut pointers);
        check(unsafe { cuda().cuGraphKernelNodeSetParams(self.node, &params) });
    }

    /// Returns the code of the instantiation.
    fn instantiate(&self) -> u32 {
        let mut exec = null_mut();
        let code = unsafe { cuda().cuGraphInstantiateWithFlags(&mut exec, self.graph, 0) };
        if code.0 == 0 {
            check(unsafe { cuda().cuGraphExecDestroy(exec) });
        }
        code.0
    }

    fn copy_from(&self, other: &Node) -> CUresult {
        unsafe { cuda().cuGraphKernelNodeCopyAttributes(self.node, other.node) }
    }

    /// Launches the graph; returns the x size of a cluster in blocks, and true if the launch is cooperative.
    fn run(&self) -> (u32, bool) {
        let (mut exec, mut shape) = (null_mut(), [0_u32; 2]);
        unsafe {
            check(cuda().cuGraphInstantiateWithFlags(&mut exec, self.graph, 0));
            check(cuda().cuGraphLaunch(exec, null_mut()));
            check(cuda().cuCtxSynchronize());
            check(cuda().cuMemcpyDtoH((&raw mut shape).cast(), self.out, 8));
            check(cuda().cuGraphExecDestroy(exec));
        }
        (shape[0], shape[1] != 0)
    }
}

#[test]
fn a_node_runs_with_its_attributes() {
    if lacks_software() {
        return; // NVIDIA's driver may treat a cluster size of zeros differently
    }
    let _context = Context::new();
    let kernel = Kernel::from_ptx(&std::ffi::CString::new(SHAPE).unwrap(), "shape");
    let (node, plain) = (Node::new(&kernel, 4), Node::new(&kernel, 4));
    node.set(CLUSTER, cluster([2, 1, 1]));
    assert_eq!(node.run(), (2, false));
    node.set(CLUSTER, cluster([0; 3]));
    assert_eq!(node.run(), (1, false));
    node.set(CLUSTER, cluster([4, 1, 1]));
    node.set(COOPERATIVE, CUlaunchAttributeValue { cooperative: 1 });
    assert_eq!(node.run(), (4, true));
    check(plain.copy_from(&node));
    assert_eq!(plain.run(), (4, true));
    let empty = Node::new(&kernel, 4);
    check(node.copy_from(&empty));
    assert_eq!(node.run(), (1, false));
    plain.set(COOPERATIVE, CUlaunchAttributeValue { cooperative: 0 });
    assert_eq!(plain.run(), (4, false));
    // A copied cluster size must divide the grid, like one that is set.
    let three = Node::new(&kernel, 3);
    expect(three.copy_from(&plain), 912);
    assert_eq!(three.run(), (1, false));
}

/// A kernel that requires a cluster size is launched with it, whatever attributes its node has.
#[test]
fn a_required_cluster_size_stays() {
    if lacks_software() {
        return;
    }
    let _context = Context::new();
    let text = SHAPE.replace("(.param .u64 out) {", "(.param .u64 out) .reqnctapercluster 2,1,1 {");
    let kernel = Kernel::from_ptx(&std::ffi::CString::new(text).unwrap(), "shape");
    let node = Node::new(&kernel, 4);
    assert_eq!(node.run(), (2, false));
    node.set(CLUSTER, cluster([0; 3]));
    node.set(COOPERATIVE, CUlaunchAttributeValue { cooperative: 1 });
    assert_eq!(node.run(), (2, true));
}

/// The grid and the cluster size are set one after the other, so they are checked together when the graph is
/// instantiated, and when an executable graph that was changed is launched.
#[test]
fn a_cluster_size_must_suit_a_later_grid() {
    if lacks_software() {
        return; // the moment of a GPU's check is not known
    }
    let _context = Context::new();
    let kernel = Kernel::from_ptx(&std::ffi::CString::new(SHAPE).unwrap(), "shape");
    let node = Node::new(&kernel, 4);
    node.set(CLUSTER, cluster([2, 1, 1]));
    node.set_grid(&kernel, 3);
    assert_eq!(node.instantiate(), 912);
    node.set_grid(&kernel, 6);
    assert_eq!(node.run(), (2, false));
    // The same for an executable graph.
    let (mut exec, mut out) = (null_mut(), node.out);
    let mut pointers = [ptr(&mut out)];
    let params = params(&kernel, 3, &mut pointers);
    unsafe {
        check(cuda().cuGraphInstantiateWithFlags(&mut exec, node.graph, 0));
        check(cuda().cuGraphExecKernelNodeSetParams(exec, node.node, &params));
        expect(cuda().cuGraphLaunch(exec, null_mut()), 912);
        check(cuda().cuGraphExecDestroy(exec));
    }
}

/// A node whose blocks cannot all be resident at once cannot become cooperative. It is still usable.
#[test]
fn a_cooperative_node_must_fit_the_device() {
    if lacks_software() {
        return; // on a GPU, the contract tests check this
    }
    let _context = Context::new();
    let kernel = Kernel::from_ptx(&std::ffi::CString::new(SHAPE).unwrap(), "shape");
    let node = Node::new(&kernel, 1 << 20);
    let cooperative = CUlaunchAttributeValue { cooperative: 1 };
    let refused = unsafe { cuda().cuGraphKernelNodeSetAttribute(node.node, COOPERATIVE, &cooperative) };
    expect(refused, 720);
    node.set_grid(&kernel, 4);
    assert_eq!(node.run(), (1, false));
    node.set(COOPERATIVE, cooperative);
    assert_eq!(node.run(), (1, true));
}
