//! Exports of streams: create, query, wait for and destroy them, and submit host functions to them.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUgreenCtx, CUhostFn, CUmemAttach_flags, CUresult, CUstream,
    CUstreamCallback,
};

use super::args::set;
use super::exports;
use crate::call::{lookup, stream, submit, synchronize};
use crate::object::stream::NullStream;
use crate::object::{context, green, memory};
use crate::operation::HostFunction;
use crate::queue::capture;
use crate::state::error::{Error, Result};
use crate::state::gate;
use engine::memory::AllocationKind;

/// Submits a host function to a stream. Host functions may do so, too.
fn launch_host_function(
    hstream: CUstream,
    function: CUhostFn,
    data: *mut c_void,
    mode: NullStream,
    sync_mode: c_uint,
) -> Result<()> {
    gate::healthy()?;
    let node = host_node(function, data, sync_mode)?;
    let stream = stream::named(hstream as usize, mode)?;
    capture::check_legacy(stream.key())?;
    submit::host_function(node, &stream)
}

/// Makes an operation that calls a host function with its data. `sync_mode` is a `CUhostTaskSyncMode`.
pub(super) fn host_node(function: CUhostFn, data: *mut c_void, sync_mode: c_uint) -> Result<HostFunction> {
    let function = function.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    if sync_mode > 1 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let data = data as usize;
    Ok(HostFunction {
        // SAFETY: the program that passes a function to a stream or a graph keeps it and its data valid until it has
        // run, or until the graph and the executable graphs made from it are destroyed.
        call: Arc::new(move || unsafe { function(data as *mut c_void) }),
        function: function as usize,
        data,
        sync_mode,
    })
}

exports! {
    fn cuStreamCreate [c] (out: *mut CUstream, flags: c_uint) {
        lookup::healthy_if_current()?;
        let out = c.out(out)?;
        out.set(stream::create(flags, 0)? as CUstream);
        Ok(())
    }

    fn cuStreamCreateWithPriority [c] (out: *mut CUstream, flags: c_uint, priority: c_int) {
        lookup::healthy_if_current()?;
        let out = c.out(out)?;
        out.set(stream::create(flags, priority)? as CUstream);
        Ok(())
    }

    healthy fn cuStreamDestroy_v2 = cuStreamDestroy [c] (hstream: CUstream) {
        stream::destroy(hstream as usize)
    }

    inside fn cuStreamQuery | cuStreamQuery_ptsz [c, mode] (hstream: CUstream) {
        stream::query(&stream::named(hstream as usize, mode)?)
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz [c, mode] (hstream: CUstream) {
        let stream = stream::named(hstream as usize, mode)?;
        synchronize::stream(&stream)
    }

    inside fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz [c, mode] (
        hstream: CUstream,
        hevent: CUevent,
        flags: c_uint,
    ) {
        let stream = stream::named(hstream as usize, mode)?;
        stream::wait_event(&stream, hevent as usize, flags)
    }

    inside fn cuStreamAddCallback | cuStreamAddCallback_ptsz [c, mode] (
        hstream: CUstream,
        callback: CUstreamCallback,
        data: *mut c_void,
        flags: c_uint,
    ) {
        gate::healthy()?;
        let callback = callback.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let stream = stream::uncaptured(hstream as usize, mode)?;
        capture::check_legacy(stream.key())?;
        let (hstream, data) = (hstream as usize, data as usize);
        let call = move |fault: u32| {
            // SAFETY: the caller of cuStreamAddCallback keeps the function and its data valid until the function has
            // run.
            unsafe { callback(hstream as CUstream, CUresult(fault), data as *mut c_void) };
        };
        submit::callback(call, &stream);
        Ok(())
    }

    inside fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz [c, mode] (
        hstream: CUstream,
        function: CUhostFn,
        data: *mut c_void,
    ) {
        launch_host_function(hstream, function, data, mode, 0)
    }

    inside fn cuLaunchHostFunc_v2 | cuLaunchHostFunc_v2_ptsz [c, mode] (
        hstream: CUstream,
        function: CUhostFn,
        data: *mut c_void,
        sync_mode: c_uint,
    ) {
        launch_host_function(hstream, function, data, mode, sync_mode)
    }

    inside fn cuStreamGetPriority | cuStreamGetPriority_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut c_int,
    ) {
        let out = c.out(out)?;
        let stream = stream::named(hstream as usize, mode)?;
        out.set(stream.priority);
        Ok(())
    }

    inside fn cuStreamGetFlags | cuStreamGetFlags_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut c_uint,
    ) {
        let out = c.out(out)?;
        let stream = stream::uncaptured(hstream as usize, mode)?;
        out.set(stream.flags);
        Ok(())
    }

    inside fn cuStreamGetId | cuStreamGetId_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut c_ulonglong,
    ) {
        let out = c.out(out)?;
        let stream = stream::uncaptured(hstream as usize, mode)?;
        out.set(stream.id());
        Ok(())
    }

    inside fn cuStreamGetCtx | cuStreamGetCtx_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUcontext,
    ) {
        let context = stream::context_of(hstream as usize, mode)?;
        c.out(out)?.set(context as CUcontext);
        Ok(())
    }

    inside fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUcontext,
        green: *mut CUgreenCtx,
    ) {
        let context = stream::context_of(hstream as usize, mode)?;
        let of = green::of_context(context);
        // For a stream of a green context, this call returns the primary context.
        let context = of.as_ref().map_or(Ok(context), |_| context::by_handle(context).map(|c| c.handle))?;
        c.out(out)?.set(context as CUcontext);
        set(c.out_or_null(green), of.map_or(0, |of| of.handle) as CUgreenCtx);
        Ok(())
    }

    fn cuStreamGetGreenCtx [c, mode] (hstream: CUstream, out: *mut CUgreenCtx) {
        let context = stream::context_of(hstream as usize, mode)?;
        let green = green::of_context(context).map_or(0, |green| green.handle);
        c.out(out)?.set(green as CUgreenCtx);
        Ok(())
    }

    inside fn cuStreamGetDevice | cuStreamGetDevice_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUdevice,
    ) {
        let stream = stream::uncaptured(hstream as usize, mode)?;
        c.out(out)?.set(stream.context.device.ordinal);
        Ok(())
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz [c, mode] (
        hstream: CUstream,
        address: CUdeviceptr,
        length: usize,
        flags: c_uint,
    ) {
        // All streams can access managed memory at any time, so attaching it changes nothing.
        const GLOBAL: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
        const HOST: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_HOST.0;
        const SINGLE: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_SINGLE.0;
        stream::for_work(hstream as usize, mode)?;
        let found = memory::find(address);
        // The range must be a whole allocation, and `CU_MEM_ATTACH_SINGLE` needs another stream than NULL: driver 580
        // accepts the handles of the legacy and the per-thread stream.
        let whole = found.is_some_and(|a| {
            a.kind == AllocationKind::Managed
                && a.base == address
                && (length == 0 || length as u64 == a.bytes)
        });
        let right = match flags {
            SINGLE => !hstream.is_null(),
            GLOBAL..SINGLE => flags != GLOBAL | HOST,
            _ => false,
        };
        if whole && right {
            Ok(())
        } else {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }
}
