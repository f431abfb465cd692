//! Streams.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use cuda_driver_sys::{
    CUcontext, CUdevice, CUdeviceptr, CUgraph, CUgraphEdgeData, CUgraphNode, CUgreenCtx, CUhostFn,
    CUresult, CUstream, CUstreamCallback, CUstreamCaptureStatus, cuuint64_t,
};

use super::args::{Caller, set};
use super::exports;
use crate::driver::error::{Error, Result};
use crate::driver::process::driver_without_fault;
use crate::driver::stream::{self, Mode};
use crate::driver::work::Work;

/// Puts a host function on a stream. This is one of the calls that a host function may make.
fn launch_host_function(
    hstream: CUstream,
    function: CUhostFn,
    data: *mut c_void,
    mode: Mode,
) -> Result<()> {
    crate::driver::process::check_sticky()?;
    let function = function.ok_or(Error::INVALID_VALUE)?;
    let stream = stream::named(hstream as usize, mode)?;
    let data = data as usize;
    let call = move |fault: u32| {
        if fault == 0 {
            // SAFETY: the caller of cuLaunchHostFunc vouches for the function and its data until it has run.
            unsafe { function(data as *mut c_void) };
        }
    };
    stream.submit(&[], Work::Host(Box::new(call)), 0);
    Ok(())
}

/// No stream captures: cuStreamBeginCapture is not supported yet.
fn not_capturing(
    c: Caller,
    hstream: CUstream,
    mode: Mode,
    out: *mut CUstreamCaptureStatus,
) -> Result<()> {
    let out = c.out(out)?;
    stream::named(hstream as usize, mode)?;
    out.set(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    Ok(())
}

exports! {
    fn cuStreamCreate [c] (out: *mut CUstream, flags: c_uint) {
        driver_without_fault()?;
        let out = c.out(out)?;
        out.set(stream::create(flags, 0)? as CUstream);
        Ok(())
    }

    fn cuStreamCreateWithPriority [c] (out: *mut CUstream, flags: c_uint, priority: c_int) {
        driver_without_fault()?;
        let out = c.out(out)?;
        out.set(stream::create(flags, priority)? as CUstream);
        Ok(())
    }

    fn cuStreamDestroy_v2 = cuStreamDestroy [c] (hstream: CUstream) {
        stream::destroy(hstream as usize)
    }

    inside fn cuStreamQuery | cuStreamQuery_ptsz [c, mode] (hstream: CUstream) {
        stream::named(hstream as usize, mode)?.query()
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz [c, mode] (hstream: CUstream) {
        stream::for_work(hstream as usize, mode)?.synchronize()
    }

    inside fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz [c, mode] (hstream: CUstream, hevent: cuda_driver_sys::CUevent, flags: c_uint) {
        let stream = stream::named(hstream as usize, mode)?;
        stream::check_external(flags)?;
        stream.wait_event(hevent as usize)
    }

    inside fn cuStreamAddCallback | cuStreamAddCallback_ptsz [c, mode] (hstream: CUstream, callback: CUstreamCallback, data: *mut c_void, flags: c_uint) {
        crate::driver::process::check_sticky()?;
        let callback = callback.ok_or(Error::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let stream = stream::named(hstream as usize, mode)?;
        let (hstream, data) = (hstream as usize, data as usize);
        let call = move |fault: u32| {
            // SAFETY: the caller of cuStreamAddCallback vouches for the function and its data until it has run.
            unsafe { callback(hstream as CUstream, CUresult(fault), data as *mut c_void) };
        };
        stream.submit(&[], Work::Host(Box::new(call)), 0);
        Ok(())
    }

    inside fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz [c, mode] (hstream: CUstream, function: CUhostFn, data: *mut c_void) {
        launch_host_function(hstream, function, data, mode)
    }

    inside fn cuLaunchHostFunc_v2 | cuLaunchHostFunc_v2_ptsz [c, mode] (hstream: CUstream, function: CUhostFn, data: *mut c_void, sync_mode: c_uint) {
        if sync_mode > 1 {
            return Err(Error::INVALID_VALUE);
        }
        launch_host_function(hstream, function, data, mode)
    }

    inside fn cuStreamGetPriority | cuStreamGetPriority_ptsz [c, mode] (hstream: CUstream, out: *mut c_int) {
        let out = c.out(out)?;
        let stream = stream::named(hstream as usize, mode)?;
        out.set(stream.priority);
        Ok(())
    }

    inside fn cuStreamGetFlags | cuStreamGetFlags_ptsz [c, mode] (hstream: CUstream, out: *mut c_uint) {
        let out = c.out(out)?;
        let stream = stream::named(hstream as usize, mode)?;
        out.set(stream.flags);
        Ok(())
    }

    inside fn cuStreamGetId | cuStreamGetId_ptsz [c, mode] (hstream: CUstream, out: *mut c_ulonglong) {
        let out = c.out(out)?;
        let stream = stream::named(hstream as usize, mode)?;
        out.set(stream.id());
        Ok(())
    }

    inside fn cuStreamGetCtx | cuStreamGetCtx_ptsz [c, mode] (hstream: CUstream, out: *mut CUcontext) {
        let context = stream::context_of(hstream as usize, mode)?;
        c.out(out)?.set(context as CUcontext);
        Ok(())
    }

    inside fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz [c, mode] (hstream: CUstream, out: *mut CUcontext, green: *mut CUgreenCtx) {
        let context = stream::context_of(hstream as usize, mode)?;
        c.out(out)?.set(context as CUcontext);
        set(c.out_or_null(green), std::ptr::null_mut());
        Ok(())
    }

    inside fn cuStreamGetDevice | cuStreamGetDevice_ptsz [c, mode] (hstream: CUstream, out: *mut CUdevice) {
        let stream = stream::named(hstream as usize, mode)?;
        c.out(out)?.set(stream.context.device.ordinal);
        Ok(())
    }

    inside fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz [c, mode] (hstream: CUstream, out: *mut CUstreamCaptureStatus) {
        not_capturing(c, hstream, mode, out)
    }

    // What a capture has made is told of one that is going on only.
    inside fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz [c, mode] (hstream: CUstream, out: *mut CUstreamCaptureStatus, _id: *mut cuuint64_t) {
        not_capturing(c, hstream, mode, out)
    }

    inside fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz [c, mode] (
        hstream: CUstream, out: *mut CUstreamCaptureStatus, _id: *mut cuuint64_t, _graph: *mut CUgraph, _nodes: *mut *const CUgraphNode, _count: *mut usize,
    ) {
        not_capturing(c, hstream, mode, out)
    }

    inside fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz [c, mode] (
        hstream: CUstream, out: *mut CUstreamCaptureStatus, _id: *mut cuuint64_t, _graph: *mut CUgraph, _nodes: *mut *const CUgraphNode,
        _edges: *mut *const CUgraphEdgeData, _count: *mut usize,
    ) {
        not_capturing(c, hstream, mode, out)
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz [c, mode] (hstream: CUstream, address: CUdeviceptr, length: usize, flags: c_uint) {
        // Managed memory is reachable from everywhere at any time, so attaching it changes nothing.
        const GLOBAL: c_uint = 1;
        const SINGLE: c_uint = 4;
        let stream = stream::for_work(hstream as usize, mode)?;
        let found = crate::driver::memory::find(address);
        // All of an allocation, and a single stream that was created.
        let whole = found.is_some_and(|a| {
            a.kind == crate::memory::Kind::Managed && a.base == address && (length == 0 || length as u64 == a.bytes)
        });
        let right = match flags {
            SINGLE => stream.is_created(),
            GLOBAL..SINGLE => flags != GLOBAL | 2,
            _ => false,
        };
        if whole && right { Ok(()) } else { Err(Error::INVALID_VALUE) }
    }
}
