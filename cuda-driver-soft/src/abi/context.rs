//! Contexts.

use std::ffi::{c_int, c_uint, c_ulonglong};

use cuda_driver_sys::{
    CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUexecAffinityType, CUfunc_cache,
    CUlimit, CUsharedconfig,
};

use super::args::{Caller, set};
use super::exports;
use crate::driver::capture;
use crate::driver::context::{self, Context};
use crate::driver::error::{Error, Result};
use crate::driver::process::{driver, driver_without_fault};
use crate::driver::stream::PRIORITIES;
use std::sync::Arc;

/// The context of a handle; the current one for NULL.
fn given_or_current(handle: CUcontext) -> Result<Arc<Context>> {
    match handle as usize {
        0 => context::current_even_after_fault(),
        handle => {
            driver()?;
            context::by_handle(handle)
        }
    }
}

fn create(c: Caller, out: *mut CUcontext, flags: c_uint, device: CUdevice) -> Result<()> {
    driver_without_fault()?;
    crate::driver::device::get(device)?;
    let out = c.out(out)?;
    out.set(context::create(flags, device)? as CUcontext);
    Ok(())
}

/// `cuCtxEnablePeerAccess` and its like: the current context and another living one, on any device.
fn peer(handle: CUcontext) -> Result<(Arc<Context>, Arc<Context>)> {
    let current = context::current()?;
    if handle.is_null() {
        return Err(Error::INVALID_CONTEXT);
    }
    let peer = context::by_handle(handle as usize)?;
    Ok((current, peer))
}

exports! {
    fn cuCtxCreate_v2 = cuCtxCreate [c] (out: *mut CUcontext, flags: c_uint, device: CUdevice) {
        create(c, out, flags, device)
    }

    fn cuCtxCreate_v3 [c] (out: *mut CUcontext, params: *mut CUexecAffinityParam, count: c_int, flags: c_uint, device: CUdevice) {
        driver_without_fault()?;
        if count > 0 {
            let refused = if params.is_null() { Error::INVALID_VALUE } else { Error::UNSUPPORTED_EXEC_AFFINITY };
            return Err(refused);
        }
        create(c, out, flags, device)
    }

    fn cuCtxCreate_v4 [c] (out: *mut CUcontext, params: *mut CUctxCreateParams, flags: c_uint, device: CUdevice) {
        driver_without_fault()?;
        if !params.is_null() {
            let params = c.read(params)?;
            if params.numExecAffinityParams > 0 {
                return Err(Error::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.cigParams.is_null() {
                return Err(Error::NOT_SUPPORTED);
            }
        }
        create(c, out, flags, device)
    }

    fn cuCtxDestroy_v2 = cuCtxDestroy [c] (handle: CUcontext) {
        context::destroy(handle as usize)
    }

    fn cuCtxPushCurrent_v2 = cuCtxPushCurrent [c] (handle: CUcontext) {
        context::push(handle as usize)
    }

    fn cuCtxPopCurrent_v2 = cuCtxPopCurrent [c] (out: *mut CUcontext) {
        let popped = context::pop()?;
        set(c.out_or_null(out), popped as CUcontext);
        Ok(())
    }

    fn cuCtxSetCurrent [c] (handle: CUcontext) {
        context::set_current(handle as usize)
    }

    fn cuCtxGetCurrent [c] (out: *mut CUcontext) {
        driver()?;
        c.out(out)?.set(context::current_handle() as CUcontext);
        Ok(())
    }

    fn cuCtxAttach [c] (out: *mut CUcontext, flags: c_uint) {
        context::current_even_after_fault()?;
        let out = c.out(out)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        out.set(context::attach()? as CUcontext);
        Ok(())
    }

    fn cuCtxDetach [c] (handle: CUcontext) {
        context::detach(handle as usize)
    }

    fn cuCtxGetDevice [c] (out: *mut CUdevice) {
        driver()?;
        let out = c.out(out)?;
        out.set(context::current_or_destroyed()?.device.ordinal);
        Ok(())
    }

    fn cuCtxGetDevice_v2 [c] (out: *mut CUdevice, handle: CUcontext) {
        driver()?;
        let out = c.out(out)?;
        out.set(given_or_current(handle)?.device.ordinal);
        Ok(())
    }

    fn cuCtxGetFlags [c] (out: *mut c_uint) {
        driver()?;
        let out = c.out(out)?;
        out.set(context::current_or_destroyed()?.flags());
        Ok(())
    }

    fn cuCtxSetFlags [c] (flags: c_uint) {
        let context = context::current()?;
        context::check_flags(flags)?;
        context.set_flags(flags);
        Ok(())
    }

    fn cuCtxGetId [c] (handle: CUcontext, out: *mut c_ulonglong) {
        driver_without_fault()?;
        let out = c.out(out)?;
        out.set(given_or_current(handle)?.serial());
        Ok(())
    }

    fn cuCtxGetApiVersion [c] (handle: CUcontext, out: *mut c_uint) {
        // As recorded: 201 for a context that is not the current one and does not live.
        given_or_current(handle).map_err(|error| if handle.is_null() { error } else { Error::INVALID_CONTEXT })?;
        let out = c.out(out)?;
        // As recorded on a real driver: the version of the context interface, not of CUDA.
        out.set(3020);
        Ok(())
    }

    fn cuCtxSynchronize [c] () {
        context::current()?.synchronize()
    }

    fn cuCtxSynchronize_v2 [c] (handle: CUcontext) {
        driver_without_fault()?;
        given_or_current(handle)?.synchronize()
    }

    fn cuCtxGetLimit [c] (out: *mut usize, limit: CUlimit) {
        let context = context::current()?;
        let out = c.out(out)?;
        out.set(context.options().limits.get(limit.0)? as usize);
        Ok(())
    }

    fn cuCtxSetLimit [c] (limit: CUlimit, value: usize) {
        let context = context::current()?;
        capture::check_unsafe()?;
        context.options().limits.set(limit.0, value as u64)
    }

    fn cuCtxGetCacheConfig [c] (out: *mut CUfunc_cache) {
        let context = context::current()?;
        c.out(out)?.set(CUfunc_cache(context.options().cache_config));
        Ok(())
    }

    fn cuCtxSetCacheConfig [c] (config: CUfunc_cache) {
        let context = context::current()?;
        if config.0 > 3 {
            return Err(Error::INVALID_VALUE);
        }
        context.options().cache_config = config.0;
        Ok(())
    }

    fn cuCtxGetSharedMemConfig [c] (out: *mut CUsharedconfig) {
        let context = context::current()?;
        c.out(out)?.set(CUsharedconfig(context.options().shared_config));
        Ok(())
    }

    fn cuCtxSetSharedMemConfig [c] (config: CUsharedconfig) {
        // Banks of 4 bytes are all that the architectures here have; other sizes are taken and change nothing.
        context::current()?;
        if config.0 > 2 { Err(Error::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuCtxGetStreamPriorityRange [c] (least: *mut c_int, greatest: *mut c_int) {
        context::current()?;
        set(c.out_or_null(least), PRIORITIES.0);
        set(c.out_or_null(greatest), PRIORITIES.1);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache [c] () {
        context::current().map(|_| ())
    }

    fn cuCtxGetExecAffinity [c] (out: *mut CUexecAffinityParam, kind: CUexecAffinityType) {
        let device = context::current()?.device;
        let out = c.out(out)?;
        if kind.0 != 0 {
            return Err(Error::UNSUPPORTED_EXEC_AFFINITY);
        }
        let mut param = CUexecAffinityParam { type_: kind, ..CUexecAffinityParam::default() };
        param.param.smCount.val = device.limit(crate::driver::profile::MULTIPROCESSOR_COUNT);
        out.set(param);
        Ok(())
    }

    fn cuCtxEnablePeerAccess [c] (handle: CUcontext, flags: c_uint) {
        let (current, peer) = peer(handle)?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        if current.device.ordinal == peer.device.ordinal {
            return Err(Error::PEER_ACCESS_UNSUPPORTED);
        }
        if current.enable_peer(peer.id()) { Ok(()) } else { Err(Error::PEER_ACCESS_ALREADY_ENABLED) }
    }

    fn cuCtxDisablePeerAccess [c] (handle: CUcontext) {
        let (current, peer) = peer(handle)?;
        if current.disable_peer(peer.id()) { Ok(()) } else { Err(Error::PEER_ACCESS_NOT_ENABLED) }
    }
}
