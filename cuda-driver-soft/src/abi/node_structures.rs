//! Converts the C structures that describe the operations of graph nodes to operations, and back.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1,
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray, CUcontext, CUdeviceptr, CUevent, CUexternalSemaphore, CUfunction,
    CUkernel, CUmemorytype, CUstreamBatchMemOpParams,
};

use super::args::Caller;
use super::launch::ready;
use super::memory_operation::batch;
use super::rect::cuboid;
use super::stream::host_node;
use crate::call::event;
use crate::object::{context, graph_memory, library};
use crate::operation::copy::CopyOperation;
use crate::operation::fill::{self, Fill, FillValue};
use crate::operation::kernel::{Attributes, KernelLaunch};
use crate::operation::launch::LaunchShape;
use crate::operation::memory_operation::Batch;
use crate::operation::region::{Base, Side};
use crate::operation::{EventUse, HostFunction, Operation, SemaphoreUse};
use crate::state::error::{Error, Result};

/// The parameters of a kernel node, from any version of `CUDA_KERNEL_NODE_PARAMS`.
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

/// Converts one of the three versions of the structure to [`KernelParams`]; the first has no `kern` and `ctx`.
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

pub(super) fn kernel_params_v1(c: Caller, params: *const CUDA_KERNEL_NODE_PARAMS_v1) -> Result<KernelParams> {
    let p = c.read(params)?;
    Ok(kernel_params!(p, std::ptr::null_mut(), std::ptr::null_mut()))
}

pub(super) fn kernel_params_v2(c: Caller, params: *const CUDA_KERNEL_NODE_PARAMS) -> Result<KernelParams> {
    let p = c.read(params)?;
    Ok(kernel_params!(p, p.kern, p.ctx))
}

/// Makes a kernel operation with the attributes of its node.
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
    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for too many bytes of arguments here, unlike for a launch.
    let wrong = |error| match error {
        Error::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => Error::CUDA_ERROR_INVALID_VALUE,
        other => other,
    };
    let ready = ready(c, function, shape, &context, p.params, p.extra).map_err(wrong)?;
    let packed = p.params.is_null() && !p.extra.is_null();
    let launch = KernelLaunch::new(ready, attributes, packed);
    launch.ready.check_resident()?;
    Ok(Operation::Kernel(Arc::new(launch)))
}

pub(super) fn copy(c: Caller, params: *const CUDA_MEMCPY3D) -> Result<Operation> {
    let sides = cuboid(c, params)?;
    let node = CopyOperation::new(sides.to, sides.from, sides.extent, &c.host_at())?;
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

pub(super) fn host(c: Caller, params: *const CUDA_HOST_NODE_PARAMS) -> Result<Operation> {
    let params = c.read(params)?;
    host_node(params.fn_, params.userData, 0).map(Operation::Host)
}

pub(super) fn event_node(handle: CUevent) -> Result<EventUse> {
    let handle = handle as usize;
    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for NULL here, not `CUDA_ERROR_INVALID_HANDLE`.
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let event = event::get(handle)?;
    Ok(EventUse { handle, event })
}

/// Makes an operation from a batch of memory operations.
pub(super) fn operations(c: Caller, params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Operation> {
    let p = c.read(params)?;
    check_context(p.ctx)?;
    let all = batch(c, p.count, p.paramArray.cast_const(), p.flags)?;
    Ok(Operation::Operations(Batch::new(all)))
}

pub(super) fn batch_params(batch: &Batch) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    let (address, count) = batch.params();
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        count: count as c_uint,
        paramArray: address as *mut CUstreamBatchMemOpParams,
        ..CUDA_BATCH_MEM_OP_NODE_PARAMS::default()
    }
}

/// Makes an operation that frees the memory that an allocation node allocates at this address.
pub(super) fn free(address: CUdeviceptr) -> Result<Operation> {
    let memory = graph_memory::at(address);
    memory.map(Operation::Free).ok_or_else(|| {
        host::log!("no allocation node owns memory at {address:#x}: pass the dptr of an allocation node");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Returns the structure that describes a copy.
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
    // SAFETY: the number is the address of a function pointer of this type, which the program passed.
    let function = unsafe { std::mem::transmute::<usize, cuda_driver_sys::CUhostFn>(node.function) };
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
        kern: kernel.ready.function.library_kernel() as CUkernel,
        ctx: kernel.ready.context.handle as CUcontext,
    }
}

/// Checks that the context of a copy, a fill or a batch of memory operations is live or NULL. The context has no effect
/// on the operation.
pub(super) fn check_context(handle: CUcontext) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    context::by_handle(handle as usize).map(drop)
}

/// Returns the operation of a node that uses these semaphores.
pub(super) fn semaphores(
    c: Caller,
    kind: SemaphoreUse,
    semaphores: *const CUexternalSemaphore,
    count: c_uint,
) -> Result<Operation> {
    check_semaphores(c, semaphores, count)?;
    Ok(Operation::Semaphores(kind))
}

/// Returns `CUDA_ERROR_INVALID_HANDLE` if there are any semaphores: this driver creates none, so no handle is valid.
pub(super) fn check_semaphores(c: Caller, semaphores: *const CUexternalSemaphore, count: c_uint) -> Result<()> {
    let mut given = c.items(semaphores, count as usize)?;
    match given.next() {
        None => Ok(()),
        Some(handle) => {
            host::log!("{handle:p} is not an external semaphore: this driver cannot import any");
            Err(Error::CUDA_ERROR_INVALID_HANDLE)
        }
    }
}
