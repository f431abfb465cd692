//! What the nodes of graphs do: making them, and asking and changing what they do.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUarray, CUcontext, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphChildGraphNodeOwnership,
    CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUkernel, CUkernelNodeAttrID,
    CUkernelNodeAttrValue, CUlaunchAttribute, CUmemorytype, CUstreamBatchMemOpParams,
};

use super::args::Caller;
use super::exports;
use super::graph::edges_from;
use super::launch::{Asked, check_attribute, ready, words};
use super::memory_operation::batch;
use super::node_params::{give_params, operation_of};
use super::pool::alloc_node;
use super::rect::cuboid;
use super::stream::host_node;
use crate::call::event;
use crate::call::graph as call;
use crate::call::lookup::graphs;
use crate::object::context;
use crate::object::graph_memory;
use crate::object::library;
use crate::operation::EventUse;
use crate::operation::GraphAllocation;
use crate::operation::HostFunction;
use crate::operation::Operation;
use crate::operation::copy::CopyOperation;
use crate::operation::fill;
use crate::operation::fill::Fill;
use crate::operation::fill::FillValue;
use crate::operation::kernel::Attributes;
use crate::operation::kernel::KernelLaunch;
use crate::operation::launch::LaunchShape;
use crate::operation::memory_operation::Batch;
use crate::operation::region::Base;
use crate::operation::region::Side;
use crate::queue::edge::Edge;
use crate::state::error::Error;
use crate::state::error::Result;

/// The parameters of a kernel, as the newer structures have them.
pub(super) struct KernelParams {
    pub(super) func: CUfunction,
    pub(super) kern: CUkernel,
    pub(super) ctx: CUcontext,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u32,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
}

/// Those of one of the three structures.
macro_rules! kernel_params {
    ($p:expr, $kern:expr, $ctx:expr) => {
        KernelParams {
            func: $p.func,
            kern: $kern,
            ctx: $ctx,
            grid: [$p.gridDimX, $p.gridDimY, $p.gridDimZ],
            block: [$p.blockDimX, $p.blockDimY, $p.blockDimZ],
            shared: $p.sharedMemBytes,
            params: $p.kernelParams,
            extra: $p.extra,
        }
    };
}
pub(super) use kernel_params;

fn older(c: Caller, params: *const CUDA_KERNEL_NODE_PARAMS_v1) -> Result<KernelParams> {
    let p = c.read(params)?;
    Ok(kernel_params!(
        p,
        std::ptr::null_mut(),
        std::ptr::null_mut()
    ))
}

fn newer(c: Caller, params: *const CUDA_KERNEL_NODE_PARAMS) -> Result<KernelParams> {
    let p = c.read(params)?;
    Ok(kernel_params!(p, p.kern, p.ctx))
}

/// A launch, with the attributes of the node that it is for.
pub(super) fn kernel(c: Caller, p: &KernelParams, attributes: Attributes) -> Result<Operation> {
    let (func, kern) = (p.func as usize, p.kern as usize);
    let (function, context) = library::function_for_node(func, kern, p.ctx as usize)?;
    let function = function as CUfunction;
    let shape = LaunchShape {
        grid: p.grid,
        block: p.block,
        shared: p.shared,
        cooperative: false,
        cluster: None,
    };
    // As recorded, more arguments than there are is a wrong argument here, not too much of something.
    let wrong = |error| match error {
        Error::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => Error::CUDA_ERROR_INVALID_VALUE,
        other => other,
    };
    let ready = ready(c, function, shape, &context, p.params, p.extra).map_err(wrong)?;
    let packed = p.params.is_null() && !p.extra.is_null();
    let mut node = KernelLaunch::new(ready, attributes, packed);
    if func == 0 {
        node.library_kernel = kern;
    }
    Ok(Operation::Kernel(Arc::new(node)))
}

/// The attributes of a node that launches a kernel.
pub(super) fn attributes_of(node: usize) -> Result<Attributes> {
    match &graphs()?.node(node)?.operation {
        Operation::Kernel(kernel) => Ok(kernel.attributes.clone()),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

pub(super) fn copy(c: Caller, params: *const CUDA_MEMCPY3D) -> Result<Operation> {
    let sides = cuboid(c, params)?;
    let host = |address: u64, bytes: u64| c.host(address as *const c_void, bytes as usize);
    let node = CopyOperation::new(sides.to, sides.from, sides.extent, &host)?;
    Ok(Operation::Copy(Arc::new(node)))
}

pub(super) fn fill(params: &CUDA_MEMSET_NODE_PARAMS) -> Result<Operation> {
    let value = match params.elementSize {
        1 => FillValue::U8(params.value as u8),
        2 => FillValue::U16(params.value as u16),
        4 => FillValue::U32(params.value),
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    let fill = Fill {
        address: params.dst,
        pitch: params.pitch as u64,
        value,
        width: params.width as u64,
        height: params.height as u64,
    };
    fill::check(&fill)?;
    Ok(Operation::Fill(fill))
}

fn host(c: Caller, params: *const CUDA_HOST_NODE_PARAMS) -> Result<Operation> {
    let params = c.read(params)?;
    host_node(params.fn_, params.userData, 0).map(Operation::Host)
}

pub(super) fn event_node(handle: CUevent) -> Result<EventUse> {
    let handle = handle as usize;
    // As recorded, NULL is a wrong argument here.
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let event = event::get(handle)?;
    Ok(EventUse { handle, event })
}

/// Memory operations.
pub(super) fn operations(
    c: Caller,
    params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
) -> Result<Operation> {
    let p = c.read(params)?;
    check_context(p.ctx)?;
    let all = batch(c, p.count, p.paramArray.cast_const(), p.flags)?;
    Ok(Operation::Operations(Batch::new(all)))
}

pub(super) fn batch_params(batch: &Batch) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    let (address, count) = batch.told();
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        count: count as c_uint,
        paramArray: address as *mut CUstreamBatchMemOpParams,
        ..CUDA_BATCH_MEM_OP_NODE_PARAMS::default()
    }
}

/// Frees what some node allocates at this address.
pub(super) fn free(address: CUdeviceptr) -> Result<Operation> {
    let memory = graph_memory::at(address);
    memory.map(Operation::Free).ok_or_else(|| {
        host::log!("no node allocates memory at {address:#x}");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Adds a node. `make` is asked for its operation once the other arguments are known to be right.
fn add(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    count: usize,
    make: impl FnOnce() -> Result<Operation>,
) -> Result<()> {
    add_with(
        c,
        out,
        graph,
        nodes,
        std::ptr::null(),
        count,
        |graph, after| call::add(graph, after, make()?),
    )
}

fn add_with(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    add: impl FnOnce(usize, Vec<Edge>) -> Result<usize>,
) -> Result<()> {
    let graph = graph as usize;
    let after = edges_from(c, nodes, data, count)?;
    graphs()?.check_dependencies(graph, &after)?;
    let out = c.out(out)?;
    out.set(add(graph, after)? as CUgraphNode);
    Ok(())
}

/// Changes what a node does to something of the same kind.
fn change(node: CUgraphNode, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
    call::set_operation(node as usize, make)
}

/// What a node does, if it is of the kind that `pick` takes.
fn ask<R>(node: CUgraphNode, pick: impl FnOnce(&Operation) -> Option<R>) -> Result<R> {
    let world = graphs()?;
    pick(&world.node(node as usize)?.operation).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

macro_rules! pick {
    ($node:expr, $kind:ident) => {
        ask($node, |operation| match operation {
            Operation::$kind(of) => Some(of.clone()),
            _ => None,
        })
    };
}

/// The structure of a copy.
pub(super) fn copy_params(node: &CopyOperation) -> CUDA_MEMCPY3D {
    let host = |side: &Side| match side.base {
        Base::Host(address) => address,
        _ => 0,
    };
    let device = |side: &Side| match side.base {
        Base::Device(address) | Base::Unified(address) => address,
        _ => 0,
    };
    let kind = |side: &Side| match side.base {
        Base::Host(_) => CUmemorytype::CU_MEMORYTYPE_HOST,
        Base::Unified(_) => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        Base::Array(..) => CUmemorytype::CU_MEMORYTYPE_ARRAY,
        _ => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    };
    let array = |side: &Side| match side.base {
        Base::Array(handle, _) => handle as CUarray,
        _ => std::ptr::null_mut(),
    };
    let (to, from) = (&node.to, &node.from);
    CUDA_MEMCPY3D {
        srcXInBytes: from.offset[0] as usize,
        srcY: from.offset[1] as usize,
        srcZ: from.offset[2] as usize,
        srcMemoryType: kind(from),
        srcHost: host(from) as *const c_void,
        srcDevice: device(from),
        srcArray: array(from),
        srcPitch: from.pitch as usize,
        srcHeight: from.rows as usize,
        dstXInBytes: to.offset[0] as usize,
        dstY: to.offset[1] as usize,
        dstZ: to.offset[2] as usize,
        dstMemoryType: kind(to),
        dstHost: host(to) as *mut c_void,
        dstDevice: device(to),
        dstArray: array(to),
        dstPitch: to.pitch as usize,
        dstHeight: to.rows as usize,
        WidthInBytes: node.extent.width as usize,
        Height: node.extent.height as usize,
        Depth: node.extent.depth as usize,
        ..CUDA_MEMCPY3D::default()
    }
}

pub(super) fn fill_params(fill: &Fill) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: fill.address,
        pitch: fill.pitch as usize,
        value: match fill.value {
            FillValue::U8(v) => v.into(),
            FillValue::U16(v) => v.into(),
            FillValue::U32(v) => v,
        },
        elementSize: fill.value.bytes() as c_uint,
        width: fill.width as usize,
        height: fill.height as usize,
    }
}

pub(super) fn host_params(node: &HostFunction) -> CUDA_HOST_NODE_PARAMS {
    // SAFETY: the number is of a function pointer of this type, which the program gave.
    let function =
        unsafe { std::mem::transmute::<usize, cuda_driver_sys::CUhostFn>(node.function) };
    CUDA_HOST_NODE_PARAMS {
        fn_: function,
        userData: node.data as *mut c_void,
    }
}

pub(super) fn kernel_node_params(kernel: &KernelLaunch) -> CUDA_KERNEL_NODE_PARAMS {
    let shape = &kernel.ready.shape;
    let (params, extra) = kernel.arguments();
    CUDA_KERNEL_NODE_PARAMS {
        func: kernel.ready.function.handle as CUfunction,
        gridDimX: shape.grid[0],
        gridDimY: shape.grid[1],
        gridDimZ: shape.grid[2],
        blockDimX: shape.block[0],
        blockDimY: shape.block[1],
        blockDimZ: shape.block[2],
        sharedMemBytes: shape.shared,
        kernelParams: params as *mut *mut c_void,
        extra: extra as *mut *mut c_void,
        kern: kernel.library_kernel as CUkernel,
        ctx: kernel.ready.context.handle as CUcontext,
    }
}

/// The bytes of an attribute that a node can be asked for.
fn attribute_bytes(id: u32) -> Option<Vec<usize>> {
    Some(match id {
        1 => (0..28).collect(),
        2 | 5 | 8 | 10 | 14 => (0..4).collect(),
        4 => (0..12).collect(),
        9 => (0..2).collect(),
        13 => (0..4).chain(8..16).collect(),
        _ => return None,
    })
}

/// Whether an attribute of a node can be set.
fn can_be_set(id: u32) -> bool {
    matches!(id, 1 | 2 | 4 | 5 | 8..=10 | 14 | 16)
}

/// What a node has that nobody has set.
fn default_attribute(id: u32) -> [u64; 8] {
    let mut value = [0; 8];
    value[0] = match id {
        // Clusters are spread over the device; the remote domain is the second.
        5 => 1,
        9 => 0x0100,
        _ => 0,
    };
    value
}

/// Checks the context of a copy or a fill, which says nothing more here.
pub(super) fn check_context(handle: CUcontext) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    context::by_handle(handle as usize).map(drop)
}

exports! {
    fn cuGraphAddKernelNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        add(c, out, graph, nodes, count, || kernel(c, &older(c, params)?, Attributes::new()))
    }

    fn cuGraphAddKernelNode_v2 [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_KERNEL_NODE_PARAMS) {
        add(c, out, graph, nodes, count, || kernel(c, &newer(c, params)?, Attributes::new()))
    }

    fn cuGraphAddMemcpyNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_MEMCPY3D, ctx: CUcontext) {
        add(c, out, graph, nodes, count, || {
            check_context(ctx)?;
            copy(c, params)
        })
    }

    fn cuGraphAddMemsetNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) {
        add(c, out, graph, nodes, count, || {
            check_context(ctx)?;
            fill(&c.read(params)?)
        })
    }

    fn cuGraphAddHostNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_HOST_NODE_PARAMS) {
        add(c, out, graph, nodes, count, || host(c, params))
    }

    fn cuGraphAddEmptyNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize) {
        add(c, out, graph, nodes, count, || Ok(Operation::Empty))
    }

    fn cuGraphAddEventRecordNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, event: CUevent) {
        add(c, out, graph, nodes, count, || event_node(event).map(Operation::Record))
    }

    fn cuGraphAddEventWaitNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, event: CUevent) {
        add(c, out, graph, nodes, count, || event_node(event).map(Operation::Wait))
    }

    fn cuGraphAddChildGraphNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, child: CUgraph) {
        let child = child as usize;
        add_with(c, out, graph, nodes, std::ptr::null(), count, |graph, after| {
            call::add_child(graph, after, child)
        })
    }

    fn cuGraphAddMemAllocNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let mut asked = c.read(params.cast_const())?;
        let mut address = 0;
        add(c, out, graph, nodes, count, || {
            let node = alloc_node(c, &asked.poolProps, asked.accessDescs, asked.accessDescCount, asked.bytesize)?;
            address = node.memory.address;
            Ok(Operation::Alloc(node))
        })?;
        asked.dptr = address;
        c.out(params)?.set(asked);
        Ok(())
    }

    fn cuGraphAddMemFreeNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, address: CUdeviceptr) {
        add(c, out, graph, nodes, count, || free(address))
    }

    fn cuGraphAddBatchMemOpNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        add(c, out, graph, nodes, count, || operations(c, params))
    }

    fn cuGraphBatchMemOpNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        let batch = pick!(node, Operations)?;
        c.out(out)?.set(batch_params(&batch));
        Ok(())
    }

    fn cuGraphBatchMemOpNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        change(node, || operations(c, params))
    }

    fn cuGraphAddNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *mut CUgraphNodeParams) {
        add_any(c, out, graph, nodes, std::ptr::null(), count, params)
    }

    fn cuGraphAddNode_v2 [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize, params: *mut CUgraphNodeParams) {
        add_any(c, out, graph, nodes, data, count, params)
    }

    fn cuGraphAddNode_v3 [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, data: *const CUgraphEdgeData, count: usize, params: *mut CUgraphNodeParams) {
        add_any(c, out, graph, nodes, data, count, params)
    }

    fn cuGraphKernelNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS_v1) {
        let kernel = pick!(node, Kernel)?;
        let p = kernel_node_params(&kernel);
        c.out(out)?.set(CUDA_KERNEL_NODE_PARAMS_v1 {
            func: p.func,
            gridDimX: p.gridDimX,
            gridDimY: p.gridDimY,
            gridDimZ: p.gridDimZ,
            blockDimX: p.blockDimX,
            blockDimY: p.blockDimY,
            blockDimZ: p.blockDimZ,
            sharedMemBytes: p.sharedMemBytes,
            kernelParams: p.kernelParams,
            extra: p.extra,
        });
        Ok(())
    }

    fn cuGraphKernelNodeGetParams_v2 [c] (node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS) {
        let kernel = pick!(node, Kernel)?;
        c.out(out)?.set(kernel_node_params(&kernel));
        Ok(())
    }

    fn cuGraphKernelNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) {
        change(node, || kernel(c, &older(c, params)?, attributes_of(node as usize)?))
    }

    fn cuGraphKernelNodeSetParams_v2 [c] (node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS) {
        change(node, || kernel(c, &newer(c, params)?, attributes_of(node as usize)?))
    }

    fn cuGraphMemcpyNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEMCPY3D) {
        let copy = pick!(node, Copy)?;
        c.out(out)?.set(copy_params(&copy));
        Ok(())
    }

    fn cuGraphMemcpyNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_MEMCPY3D) {
        change(node, || copy(c, params))
    }

    fn cuGraphMemsetNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEMSET_NODE_PARAMS) {
        let fill = pick!(node, Fill)?;
        c.out(out)?.set(fill_params(&fill));
        Ok(())
    }

    fn cuGraphMemsetNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS) {
        change(node, || fill(&c.read(params)?))
    }

    fn cuGraphHostNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_HOST_NODE_PARAMS) {
        let host = pick!(node, Host)?;
        c.out(out)?.set(host_params(&host));
        Ok(())
    }

    fn cuGraphHostNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        change(node, || host(c, params))
    }

    fn cuGraphEventRecordNodeGetEvent [c] (node: CUgraphNode, out: *mut CUevent) {
        let event = pick!(node, Record)?;
        c.out(out)?.set(event.handle as CUevent);
        Ok(())
    }

    fn cuGraphEventRecordNodeSetEvent [_c] (node: CUgraphNode, event: CUevent) {
        change(node, || event_node(event).map(Operation::Record))
    }

    fn cuGraphEventWaitNodeGetEvent [c] (node: CUgraphNode, out: *mut CUevent) {
        let event = pick!(node, Wait)?;
        c.out(out)?.set(event.handle as CUevent);
        Ok(())
    }

    fn cuGraphEventWaitNodeSetEvent [_c] (node: CUgraphNode, event: CUevent) {
        change(node, || event_node(event).map(Operation::Wait))
    }

    fn cuGraphChildGraphNodeGetGraph [c] (node: CUgraphNode, out: *mut CUgraph) {
        let child = pick!(node, Child)?;
        c.out(out)?.set(child as CUgraph);
        Ok(())
    }

    fn cuGraphMemAllocNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let alloc: GraphAllocation = pick!(node, Alloc)?;
        c.out(out)?.set(super::pool::alloc_params(&alloc));
        Ok(())
    }

    fn cuGraphMemFreeNodeGetParams [c] (node: CUgraphNode, out: *mut CUdeviceptr) {
        let memory = pick!(node, Free)?;
        c.out(out)?.set(memory.address);
        Ok(())
    }

    fn cuGraphKernelNodeGetAttribute [c] (node: CUgraphNode, id: CUkernelNodeAttrID, out: *mut CUkernelNodeAttrValue) {
        let kernel = pick!(node, Kernel)?;
        c.read(out.cast_const().cast::<u8>())?;
        let bytes = attribute_bytes(id.0).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        let value = kernel.attributes.get(&id.0).copied();
        let value = value.unwrap_or_else(|| default_attribute(id.0));
        for at in bytes {
            c.set_at(out.cast::<u8>(), at, value[at / 8].to_ne_bytes()[at % 8]);
        }
        Ok(())
    }

    fn cuGraphKernelNodeSetAttribute [c] (node: CUgraphNode, id: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue) {
        let kernel = pick!(node, Kernel)?;
        let value = c.read(value)?;
        if !can_be_set(id.0) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let asked = check_attribute(&CUlaunchAttribute { id, value, ..CUlaunchAttribute::default() })?;
        match asked {
            Asked::Cluster(cluster) => kernel.ready.check_cluster(cluster)?,
            Asked::Event(_) => return Err(Error::CUDA_ERROR_NOT_SUPPORTED),
            Asked::Cooperative(_) | Asked::Nothing => {}
        }
        let mut attributes = kernel.attributes.clone();
        attributes.insert(id.0, words(&value));
        change(node, || Ok(Operation::Kernel(Arc::new(kernel.with_attributes(attributes)))))
    }

    fn cuGraphKernelNodeCopyAttributes [_c] (to: CUgraphNode, from: CUgraphNode) {
        let kernel = pick!(to, Kernel)?;
        let attributes = attributes_of(from as usize)?;
        change(to, || Ok(Operation::Kernel(Arc::new(kernel.with_attributes(attributes)))))
    }

    fn cuGraphNodeSetParams [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeSetParams_v2 [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeGetParams [c] (node: CUgraphNode, out: *mut CUgraphNodeParams) {
        let operation = ask(node, |operation| Some(operation.clone()))?;
        give_params(c, &operation, out)
    }
}

fn set_any(c: Caller, node: CUgraphNode, params: *const CUgraphNodeParams) -> Result<()> {
    change(node, || {
        let params = c.read(params)?;
        if params.type_ != ask(node, |operation| Some(operation.kind()))? {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let attributes = attributes_of(node as usize).unwrap_or_default();
        operation_of(c, &params, attributes)
    })
}

fn add_any(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    params: *mut CUgraphNodeParams,
) -> Result<()> {
    let asked = c.read(params.cast_const())?;
    if asked.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
        use CUgraphChildGraphNodeOwnership as Ownership;
        // SAFETY: the member that the type selects; of a pointer and an enumeration any bits are a value.
        let child = unsafe { asked.anonymous1.graph };
        let graph_of = child.graph as usize;
        return add_with(
            c,
            out,
            graph,
            nodes,
            data,
            count,
            |graph, after| match child.ownership {
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => {
                    call::add_child(graph, after, graph_of)
                }
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => {
                    call::move_child(graph, after, graph_of)
                }
                _ => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
            },
        );
    }
    let mut address = 0;
    add_with(c, out, graph, nodes, data, count, |graph, after| {
        let operation = operation_of(c, &asked, Attributes::new())?;
        if let Operation::Alloc(alloc) = &operation {
            address = alloc.memory.address;
        }
        call::add(graph, after, operation)
    })?;
    if asked.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC {
        let mut told = asked;
        told.anonymous1.alloc.dptr = address;
        c.out(params)?.set(told);
    }
    Ok(())
}
