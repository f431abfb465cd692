//! What the nodes of graphs do: making them, and asking and changing what they do.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUarray, CUcontext, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphEdgeData, CUgraphNode,
    CUgraphNodeParams, CUkernel, CUkernelNodeAttrID, CUkernelNodeAttrValue, CUlaunchAttribute,
    CUmemorytype, CUstreamBatchMemOpParams,
};

use super::args::Caller;
use super::exports;
use super::graph::edges_from;
use super::launch::{Asked, check_attribute, ready, words};
use super::memory_operation::batch;
use super::node_params::{action_of, give_params};
use super::pool::alloc_node;
use super::rect::cuboid;
use super::stream::host_node;
use crate::driver::context;
use crate::driver::copy::{Fill, Value};
use crate::driver::error::{Error, Result};
use crate::driver::event;
use crate::driver::function;
use crate::driver::graph::memory as graph_memory;
use crate::driver::graph::node::{
    Action, AllocNode, Attributes, Batch, CopyNode, EventNode, HostNode, KernelNode, check_fill,
};
use crate::driver::graph::{Edge, World, world_without_fault};
use crate::driver::launch::Shape;
use crate::driver::rect::{Base, Side};

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
pub(super) fn kernel(c: Caller, p: &KernelParams, attributes: Attributes) -> Result<Action> {
    let (func, kern) = (p.func as usize, p.kern as usize);
    let (function, context) = function::for_node(func, kern, p.ctx as usize)?;
    let function = function as CUfunction;
    let shape = Shape {
        grid: p.grid,
        block: p.block,
        shared: p.shared,
        cooperative: false,
        cluster: None,
    };
    // As recorded, more arguments than there are is a wrong argument here, not too much of something.
    let wrong = |error| match error {
        Error::LAUNCH_OUT_OF_RESOURCES => Error::INVALID_VALUE,
        other => other,
    };
    let ready = ready(c, function, shape, &context, p.params, p.extra).map_err(wrong)?;
    let packed = p.params.is_null() && !p.extra.is_null();
    let mut node = KernelNode::new(ready, attributes, packed);
    if func == 0 {
        node.library_kernel = kern;
    }
    Ok(Action::Kernel(Arc::new(node)))
}

/// The attributes of a node that launches a kernel.
pub(super) fn attributes_of(node: usize) -> Result<Attributes> {
    match &world_without_fault()?.node(node)?.action {
        Action::Kernel(kernel) => Ok(kernel.attributes.clone()),
        _ => Err(Error::INVALID_VALUE),
    }
}

pub(super) fn copy(c: Caller, params: *const CUDA_MEMCPY3D) -> Result<Action> {
    let sides = cuboid(c, params)?;
    let host = |address: u64, bytes: u64| c.host(address as *const c_void, bytes as usize);
    let node = CopyNode::new(sides.to, sides.from, sides.extent, &host)?;
    Ok(Action::Copy(Arc::new(node)))
}

pub(super) fn fill(params: &CUDA_MEMSET_NODE_PARAMS) -> Result<Action> {
    let value = match params.elementSize {
        1 => Value::U8(params.value as u8),
        2 => Value::U16(params.value as u16),
        4 => Value::U32(params.value),
        _ => return Err(Error::INVALID_VALUE),
    };
    let fill = Fill {
        address: params.dst,
        pitch: params.pitch as u64,
        value,
        width: params.width as u64,
        height: params.height as u64,
    };
    check_fill(&fill)?;
    Ok(Action::Fill(fill))
}

fn host(c: Caller, params: *const CUDA_HOST_NODE_PARAMS) -> Result<Action> {
    let params = c.read(params)?;
    host_node(params.fn_, params.userData, 0).map(Action::Host)
}

pub(super) fn event_node(handle: CUevent) -> Result<EventNode> {
    let handle = handle as usize;
    // As recorded, NULL is a wrong argument here.
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let event = event::get(handle)?;
    Ok(EventNode { handle, event })
}

/// Memory operations.
pub(super) fn operations(
    c: Caller,
    params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
) -> Result<Action> {
    let p = c.read(params)?;
    check_context(p.ctx)?;
    let all = batch(c, p.count, p.paramArray.cast_const(), p.flags)?;
    Ok(Action::Operations(Batch::new(all)))
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
pub(super) fn free(address: CUdeviceptr) -> Result<Action> {
    let memory = graph_memory::at(address);
    memory.map(Action::Free).ok_or_else(|| {
        host::log!("no node allocates memory at {address:#x}");
        Error::INVALID_VALUE
    })
}

/// Adds a node. `action` is asked for once the other arguments are known to be right.
fn add(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    count: usize,
    action: impl FnOnce() -> Result<Action>,
) -> Result<()> {
    add_with(c, out, graph, nodes, std::ptr::null(), count, || {
        let action = action()?;
        Ok(|world: &mut World, graph, after| world.add(graph, after, action))
    })
}

fn add_with<Add: FnOnce(&mut World, usize, Vec<Edge>) -> Result<usize>>(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    make: impl FnOnce() -> Result<Add>,
) -> Result<()> {
    let graph = graph as usize;
    let after = edges_from(c, nodes, data, count)?;
    world_without_fault()?.check_dependencies(graph, &after)?;
    let out = c.out(out)?;
    let add = make()?;
    let node = add(&mut *world_without_fault()?, graph, after)?;
    out.set(node as CUgraphNode);
    Ok(())
}

/// Changes what a node does to something of the same kind.
pub(super) fn change(node: CUgraphNode, action: impl FnOnce() -> Result<Action>) -> Result<()> {
    world_without_fault()?.node(node as usize)?;
    let action = action()?;
    let mut world = world_without_fault()?;
    let node = world.node_mut(node as usize)?;
    if node.action.kind() != action.kind() {
        return Err(Error::INVALID_VALUE);
    }
    let action = match (action, &node.action) {
        (Action::Kernel(new), Action::Kernel(old)) => match Arc::try_unwrap(new) {
            Ok(new) => Action::Kernel(Arc::new(new.replace(old))),
            Err(shared) => Action::Kernel(shared),
        },
        (action, _) => action,
    };
    let old = std::mem::replace(&mut node.action, action);
    drop(world);
    drop(old);
    Ok(())
}

/// What a node does, if it is of the kind that `pick` takes.
fn ask<R>(node: CUgraphNode, pick: impl FnOnce(&Action) -> Option<R>) -> Result<R> {
    let world = world_without_fault()?;
    pick(&world.node(node as usize)?.action).ok_or(Error::INVALID_VALUE)
}

macro_rules! pick {
    ($node:expr, $kind:ident) => {
        ask($node, |action| match action {
            Action::$kind(of) => Some(of.clone()),
            _ => None,
        })
    };
}

/// The structure of a copy.
pub(super) fn copy_params(node: &CopyNode) -> CUDA_MEMCPY3D {
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
            Value::U8(v) => v.into(),
            Value::U16(v) => v.into(),
            Value::U32(v) => v,
        },
        elementSize: fill.value.bytes() as c_uint,
        width: fill.width as usize,
        height: fill.height as usize,
    }
}

pub(super) fn host_params(node: &HostNode) -> CUDA_HOST_NODE_PARAMS {
    // SAFETY: the number is of a function pointer of this type, which the program gave.
    let function =
        unsafe { std::mem::transmute::<usize, cuda_driver_sys::CUhostFn>(node.function) };
    CUDA_HOST_NODE_PARAMS {
        fn_: function,
        userData: node.data as *mut c_void,
    }
}

pub(super) fn kernel_node_params(kernel: &KernelNode) -> CUDA_KERNEL_NODE_PARAMS {
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
        add(c, out, graph, nodes, count, || Ok(Action::Empty))
    }

    fn cuGraphAddEventRecordNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, event: CUevent) {
        add(c, out, graph, nodes, count, || event_node(event).map(Action::Record))
    }

    fn cuGraphAddEventWaitNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, event: CUevent) {
        add(c, out, graph, nodes, count, || event_node(event).map(Action::Wait))
    }

    fn cuGraphAddChildGraphNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, child: CUgraph) {
        let child = child as usize;
        add_with(c, out, graph, nodes, std::ptr::null(), count, || {
            Ok(|world: &mut World, graph, after| world.add_child(graph, after, child))
        })
    }

    fn cuGraphAddMemAllocNode [c] (out: *mut CUgraphNode, graph: CUgraph, nodes: *const CUgraphNode, count: usize, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let mut asked = c.read(params.cast_const())?;
        let mut address = 0;
        add(c, out, graph, nodes, count, || {
            let node = alloc_node(c, &asked.poolProps, asked.accessDescs, asked.accessDescCount, asked.bytesize)?;
            address = node.memory.address;
            Ok(Action::Alloc(node))
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
        change(node, || event_node(event).map(Action::Record))
    }

    fn cuGraphEventWaitNodeGetEvent [c] (node: CUgraphNode, out: *mut CUevent) {
        let event = pick!(node, Wait)?;
        c.out(out)?.set(event.handle as CUevent);
        Ok(())
    }

    fn cuGraphEventWaitNodeSetEvent [_c] (node: CUgraphNode, event: CUevent) {
        change(node, || event_node(event).map(Action::Wait))
    }

    fn cuGraphChildGraphNodeGetGraph [c] (node: CUgraphNode, out: *mut CUgraph) {
        let child = pick!(node, Child)?;
        c.out(out)?.set(child as CUgraph);
        Ok(())
    }

    fn cuGraphMemAllocNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let alloc: AllocNode = pick!(node, Alloc)?;
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
        let bytes = attribute_bytes(id.0).ok_or(Error::INVALID_VALUE)?;
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
            return Err(Error::INVALID_VALUE);
        }
        let asked = check_attribute(&CUlaunchAttribute { id, value, ..CUlaunchAttribute::default() })?;
        match asked {
            Asked::Cluster(cluster) => kernel.ready.check_cluster(cluster)?,
            Asked::Event(_) => return Err(Error::NOT_SUPPORTED),
            Asked::Cooperative(_) | Asked::Nothing => {}
        }
        let mut attributes = kernel.attributes.clone();
        attributes.insert(id.0, words(&value));
        change(node, || Ok(Action::Kernel(Arc::new(kernel.with_attributes(attributes)))))
    }

    fn cuGraphKernelNodeCopyAttributes [_c] (to: CUgraphNode, from: CUgraphNode) {
        let kernel = pick!(to, Kernel)?;
        let attributes = attributes_of(from as usize)?;
        change(to, || Ok(Action::Kernel(Arc::new(kernel.with_attributes(attributes)))))
    }

    fn cuGraphNodeSetParams [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeSetParams_v2 [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeGetParams [c] (node: CUgraphNode, out: *mut CUgraphNodeParams) {
        let action = ask(node, |action| Some(action.clone()))?;
        give_params(c, &action, out)
    }
}

fn set_any(c: Caller, node: CUgraphNode, params: *const CUgraphNodeParams) -> Result<()> {
    change(node, || {
        let params = c.read(params)?;
        if params.type_.0 != ask(node, |action| Some(action.kind()))? {
            return Err(Error::INVALID_VALUE);
        }
        let attributes = attributes_of(node as usize).unwrap_or_default();
        action_of(c, &params, attributes)
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
    const GRAPH: u32 = 4;
    const ALLOC: u32 = 10;
    let asked = c.read(params.cast_const())?;
    if asked.type_.0 == GRAPH {
        // SAFETY: the member that the type selects; of a pointer and an enumeration any bits are a value.
        let child = unsafe { asked.anonymous1.graph };
        let graph_of = child.graph as usize;
        return add_with(c, out, graph, nodes, data, count, || {
            let moves = match child.ownership.0 {
                0 => false,
                1 => true,
                _ => return Err(Error::NOT_SUPPORTED),
            };
            Ok(move |world: &mut World, graph, after| match moves {
                false => world.add_child(graph, after, graph_of),
                true => world.move_child(graph, after, graph_of),
            })
        });
    }
    let mut address = 0;
    add_with(c, out, graph, nodes, data, count, || {
        let action = action_of(c, &asked, Attributes::new())?;
        if let Action::Alloc(alloc) = &action {
            address = alloc.memory.address;
        }
        Ok(|world: &mut World, graph, after| world.add(graph, after, action))
    })?;
    if asked.type_.0 == ALLOC {
        let mut told = asked;
        told.anonymous1.alloc.dptr = address;
        c.out(params)?.set(told);
    }
    Ok(())
}
