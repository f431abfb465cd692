//! Exports that launch kernels: with pointers to arguments, a packed buffer, or the functions of CUDA 2.0.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC, CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC,
    CUDA_LAUNCH_PARAMS, CUfunction, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
    CUstream, CUtexref,
};

use super::args::Caller;
use super::exports;
use crate::call::lookup::{self, current_context};
use crate::call::{event, stream, submit};
use crate::object::context::Context;
use crate::object::device;
use crate::object::event::Event;
use crate::object::function::Function;
use crate::object::stream::{LEGACY, NullStream, PER_THREAD, StreamRef};
use crate::operation::kernel::{Attributes, COOPERATIVE, check_window};
use crate::operation::launch::{self, CheckedLaunch, LaunchShape, ReadyLaunch};
use crate::queue::capture;
use crate::state::error::{Error, Result};
use crate::state::{gate, settings};

/// The largest size of the arguments of a launch, for any architecture, in bytes.
const MOST_PARAMS: usize = 32764;

/// Returns the parameter buffer of a launch.
fn arguments(c: Caller, launch: &CheckedLaunch, params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<Vec<u8>> {
    let layout = launch.params();
    let packed = if extra.is_null() { None } else { packed(c, extra)? };
    match packed {
        Some(_) if !params.is_null() => Err(Error::CUDA_ERROR_INVALID_VALUE),
        // Driver 580 pads a short buffer with zeros, but returns `CUDA_ERROR_INVALID_VALUE` for an empty one.
        Some(buffer) if buffer.is_empty() && !layout.is_empty() => Err(Error::CUDA_ERROR_INVALID_VALUE),
        Some(buffer) => Ok(buffer),
        None if layout.is_empty() => Ok(Vec::new()),
        None if params.is_null() => Err(Error::CUDA_ERROR_INVALID_VALUE),
        None => {
            let pointers = c.array(params.cast_const(), layout.len())?;
            let mut buffer = vec![0; launch.param_bytes()];
            for (pointer, (offset, size)) in pointers.into_iter().zip(layout) {
                let value = c.array(pointer.cast_const().cast::<u8>(), size)?;
                buffer[offset..offset + size].copy_from_slice(&value);
            }
            Ok(buffer)
        }
    }
}

/// Returns the buffer of an `extra` list: pairs of a key and a pointer, ended by a NULL key. Driver 580 ignores a list
/// that is empty or has no size.
fn packed(c: Caller, extra: *mut *mut c_void) -> Result<Option<Vec<u8>>> {
    const POINTER: usize = CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize;
    const SIZE: usize = CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize;
    let (mut buffer, mut size) = (None, None);
    let mut at = extra.cast_const();
    loop {
        match c.read(at)? as usize {
            0 => break,
            POINTER => buffer = Some(c.read(at.wrapping_add(1))?),
            SIZE => size = Some(c.read(c.read(at.wrapping_add(1))?.cast_const().cast::<usize>())?),
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
        at = at.wrapping_add(2);
    }
    match (buffer, size) {
        (_, None) => Ok(None),
        (Some(buffer), Some(size)) if size <= MOST_PARAMS => c.array(buffer.cast_const().cast::<u8>(), size).map(Some),
        (Some(_), Some(_)) => Err(Error::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Checks a launch and reads its arguments: an array of pointers, or a packed buffer.
pub(super) fn ready(
    c: Caller,
    function: CUfunction,
    shape: LaunchShape,
    context: &Arc<Context>,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<ReadyLaunch> {
    let checked = launch::check(function as usize, shape, context, None)?;
    let arguments = arguments(c, &checked, params, extra)?;
    checked.with(arguments)
}

/// Launches a kernel on a stream, or captures the launch. Records the events on the stream after it.
#[allow(clippy::too_many_arguments)] // like the exports
fn launch(
    c: Caller,
    function: CUfunction,
    shape: LaunchShape,
    hstream: CUstream,
    mode: NullStream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    attributes: Attributes,
    events: &[Arc<Event>],
) -> Result<()> {
    let stream = stream::for_capture(hstream as usize, mode)?;
    // An event of another context is refused before the kernel is launched.
    events
        .iter()
        .try_for_each(|event| event::check_context(event, &stream))?;
    let checked = launch::check_on(function as usize, shape, &stream);
    let checked = capture::invalidate_on_error(stream.key(), checked)?;
    check_window(&attributes, stream.context.device)?;
    let arguments = arguments(c, &checked, params, extra)?;
    let packed = params.is_null() && !extra.is_null();
    submit::launch(checked.with(arguments)?, attributes, packed, &stream)?;
    events.iter().try_for_each(|event| event::record_on(event, &stream))
}

/// The attributes of a launch, decoded.
struct DecodedAttributes {
    cooperative: bool,
    cluster: Option<[u32; 3]>,
    kept: Attributes,
    events: Vec<Arc<Event>>,
}

/// Decodes the attributes of `cuLaunchKernelEx`. Hints are accepted without effect; an attribute that would change the
/// result and is not implemented is an error. All attributes are kept for a node of a graph.
fn attributes(c: Caller, list: *const CUlaunchAttribute, count: c_uint) -> Result<DecodedAttributes> {
    let (mut cooperative, mut cluster, mut events) = (false, None, Vec::new());
    let mut kept = Attributes::new();
    for attribute in c.items(list, count as usize)? {
        kept.insert(attribute.id.0, words(&attribute.value));
        match check_attribute(&attribute)? {
            AttributeEffect::Cooperative(asked) => cooperative = asked,
            AttributeEffect::Cluster(asked) => cluster = asked,
            AttributeEffect::Event(event) => events.push(event),
            AttributeEffect::Nothing => {}
        }
    }
    Ok(DecodedAttributes {
        cooperative,
        cluster,
        kept,
        events,
    })
}

/// Returns the value of an attribute as raw words.
pub(super) fn words(value: &CUlaunchAttributeValue) -> [u64; 8] {
    // SAFETY: the union consists of plain data and has this size; callers' values come from C and have all bytes set.
    unsafe { std::ptr::from_ref(value).cast::<[u64; 8]>().read_unaligned() }
}

/// The effect of an attribute on a launch.
pub(super) enum AttributeEffect {
    Nothing,
    Cooperative(bool),
    /// Blocks per cluster, if there are clusters.
    Cluster(Option<[u32; 3]>),
    /// An event to record at the end of the launch. On a GPU, the kernel can trigger it earlier; the end is the latest
    /// possible time.
    Event(Arc<Event>),
}

/// Checks and decodes an attribute of a launch.
pub(super) fn check_attribute(attribute: &CUlaunchAttribute) -> Result<AttributeEffect> {
    use CUlaunchAttributeID as Id;
    // SAFETY: both members consist of integers, which are valid for any bits; the id decides if one of them is used.
    let (flag, cluster) = unsafe { (attribute.value.cooperative, attribute.value.clusterDim) };
    match attribute.id {
        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => return Ok(AttributeEffect::Cooperative(flag != 0)),
        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
            let cluster = [cluster.x, cluster.y, cluster.z];
            return Ok(AttributeEffect::Cluster((cluster != [0; 3]).then_some(cluster)));
        }
        Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT | Id::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
            // SAFETY: both members begin with the event, a pointer that is looked up and not dereferenced.
            let event = unsafe { attribute.value.programmaticEvent.event };
            return Ok(AttributeEffect::Event(event::get(event as usize)?));
        }
        // Driver 580 returns `CUDA_ERROR_INVALID_CLUSTER_SIZE` if only some dimensions of this hint are 0.
        Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
            let cluster = [cluster.x, cluster.y, cluster.z];
            if cluster != [0; 3] && cluster.contains(&0) {
                return Err(Error::CUDA_ERROR_INVALID_CLUSTER_SIZE);
            }
        }
        // Driver 580 accepts only 0 and 1 for these attributes.
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN | Id::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
            if !matches!(flag, 0 | 1) =>
        {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        // This attribute is for streams, not for launches.
        Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Id::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE | Id::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE
            if settings::version() < 13020 =>
        {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        known if known.name().is_some() => {}
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
    Ok(AttributeEffect::Nothing)
}

/// Decodes a launch configuration: its shape, all its attributes, and the events that it records.
pub(super) fn described(c: Caller, config: &CUlaunchConfig) -> Result<(LaunchShape, Attributes, Vec<Arc<Event>>)> {
    let asked = attributes(c, config.attrs, config.numAttrs)?;
    let shape = LaunchShape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared: config.sharedMemBytes,
        cooperative: asked.cooperative,
        cluster: asked.cluster,
    };
    Ok((shape, asked.kept, asked.events))
}

fn launch_ex(
    c: Caller,
    config: *const CUlaunchConfig,
    function: CUfunction,
    mode: NullStream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<()> {
    gate::healthy()?;
    let config = c.read(config)?;
    let (shape, kept, events) = described(c, &config)?;
    launch(c, function, shape, config.hStream, mode, params, extra, kept, &events)
}

/// Launches a kernel on several devices at once. Each entry has a created stream of a different device.
fn launch_on_devices(c: Caller, list: *const CUDA_LAUNCH_PARAMS, count: c_uint, flags: c_uint) -> Result<()> {
    const FLAGS: c_uint = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC
        | CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    gate::healthy()?;
    let count = count as usize;
    if flags & !FLAGS != 0 || count == 0 || count > device::all().len() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut launches: Vec<(ReadyLaunch, StreamRef)> = Vec::with_capacity(count);
    for entry in c.items(list, count)? {
        if matches!(entry.hStream as usize, 0 | LEGACY | PER_THREAD) {
            return Err(Error::CUDA_ERROR_INVALID_HANDLE);
        }
        let stream = stream::for_work(entry.hStream as usize, NullStream::Legacy)?;
        let shape = LaunchShape {
            grid: [entry.gridDimX, entry.gridDimY, entry.gridDimZ],
            block: [entry.blockDimX, entry.blockDimY, entry.blockDimZ],
            shared: entry.sharedMemBytes,
            cooperative: true,
            cluster: None,
        };
        let checked = launch::check_on(entry.function as usize, shape, &stream)?;
        let arguments = arguments(c, &checked, entry.kernelParams, std::ptr::null_mut())?;
        let ready = checked.with(arguments)?;
        let suits = |(other, used): &(ReadyLaunch, StreamRef)| {
            let is_same_kernel = other.function.kernel.name() == ready.function.kernel.name();
            is_same_kernel && other.shape == ready.shape && used.context.device.ordinal != stream.context.device.ordinal
        };
        if !launches.iter().all(suits) {
            host::log!(
                "launch of `{}` on several devices: the entries must have the same kernel, grid, block and shared \
                 memory, and streams of different devices",
                ready.function.kernel.name()
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        launches.push((ready, stream));
    }
    let joins = |skipped: c_uint| count > 1 && flags & skipped == 0;
    submit::launch_on_devices(
        &launches,
        joins(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC),
        joins(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC),
    )
}

/// Returns the function for a call of CUDA 2.0, which needs a current context.
fn old_function(function: CUfunction) -> Result<Arc<Function>> {
    current_context()?;
    lookup::function(function as usize)
}

/// Returns the range of a parameter; it must be within the largest size of a launch's arguments.
fn param_range(offset: c_int, bytes: usize) -> Result<(usize, usize)> {
    let offset = usize::try_from(offset).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
    let end = offset.checked_add(bytes);
    let end = end.filter(|&end| end <= MOST_PARAMS);
    Ok((offset, end.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?))
}

/// Writes into the parameter buffer that a function keeps for the CUDA 2.0 interface.
fn set_param(function: CUfunction, offset: c_int, value: &[u8]) -> Result<()> {
    let function = old_function(function)?;
    let (offset, end) = param_range(offset, value.len())?;
    let mut old = function.old();
    if old.params.len() < end {
        old.params.resize(end, 0);
    }
    old.params[offset..end].copy_from_slice(value);
    Ok(())
}

/// Launches through the CUDA 2.0 interface, with the block, the shared memory and the arguments that were set before.
fn launch_old(function: CUfunction, width: c_int, height: c_int, hstream: CUstream) -> Result<()> {
    let stream = stream::for_capture(hstream as usize, NullStream::Legacy)?;
    let mut old = lookup::function(function as usize)?.old().clone();
    old.params.resize(old.size, 0);
    let dimension = |n: c_int| c_uint::try_from(n).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE);
    let shape = LaunchShape {
        grid: [dimension(width)?, dimension(height)?, 1],
        block: old.block,
        shared: old.shared,
        cooperative: false,
        cluster: None,
    };
    let checked = launch::check_on(function as usize, shape, &stream)?;
    let ready = checked.with(old.params)?;
    submit::launch(ready, Attributes::new(), false, &stream)
}

exports! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz [c, mode] (
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        hstream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        let shape = LaunchShape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            cooperative: false,
            cluster: None,
        };
        launch(
            c,
            function,
            shape,
            hstream,
            mode,
            params,
            extra,
            Attributes::new(),
            &[],
        )
    }

    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz [c, mode] (
        config: *const CUlaunchConfig,
        function: CUfunction,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) {
        launch_ex(c, config, function, mode, params, extra)
    }

    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz [c, mode] (
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        hstream: CUstream,
        params: *mut *mut c_void,
    ) {
        let shape = LaunchShape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            cooperative: true,
            cluster: None,
        };
        let kept = Attributes::from([(COOPERATIVE, [1, 0, 0, 0, 0, 0, 0, 0])]);
        launch(
            c,
            function,
            shape,
            hstream,
            mode,
            params,
            std::ptr::null_mut(),
            kept,
            &[],
        )
    }

    fn cuLaunchCooperativeKernelMultiDevice [c] (list: *mut CUDA_LAUNCH_PARAMS, count: c_uint, flags: c_uint) {
        launch_on_devices(c, list, count, flags)
    }

    fn cuFuncSetBlockShape [c] (function: CUfunction, x: c_int, y: c_int, z: c_int) {
        let function = old_function(function)?;
        let block = [x, y, z].map(|n| u32::try_from(n).unwrap_or(0));
        launch::check_block(block, &function, function.device()?)?;
        function.old().block = block;
        Ok(())
    }

    fn cuFuncSetSharedSize [c] (function: CUfunction, bytes: c_uint) {
        let function = old_function(function)?;
        if bytes > function.max_dynamic_shared() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        function.old().shared = bytes;
        Ok(())
    }

    fn cuParamSetSize [c] (function: CUfunction, bytes: c_uint) {
        let function = old_function(function)?;
        if bytes as usize > MOST_PARAMS {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        function.old().size = bytes as usize;
        Ok(())
    }

    fn cuParamSeti [c] (function: CUfunction, offset: c_int, value: c_uint) {
        set_param(function, offset, &value.to_ne_bytes())
    }

    fn cuParamSetf [c] (function: CUfunction, offset: c_int, value: f32) {
        set_param(function, offset, &value.to_ne_bytes())
    }

    fn cuParamSetv [c] (function: CUfunction, offset: c_int, value: *mut c_void, bytes: c_uint) {
        old_function(function)?;
        param_range(offset, bytes as usize)?;
        if value.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        set_param(
            function,
            offset,
            &c.array(value.cast_const().cast::<u8>(), bytes as usize)?,
        )
    }

    fn cuParamSetTexRef [c] (function: CUfunction, _unit: c_int, _reference: CUtexref) {
        old_function(function)?;
        Err(Error::CUDA_ERROR_NOT_SUPPORTED)
    }

    fn cuLaunch [c] (function: CUfunction) {
        launch_old(function, 1, 1, std::ptr::null_mut())
    }

    fn cuLaunchGrid [c] (function: CUfunction, width: c_int, height: c_int) {
        launch_old(function, width, height, std::ptr::null_mut())
    }

    fn cuLaunchGridAsync [c] (
        function: CUfunction,
        width: c_int,
        height: c_int,
        hstream: CUstream,
    ) {
        launch_old(function, width, height, hstream)
    }
}
