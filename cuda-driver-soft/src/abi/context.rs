//! Exports of contexts: create, destroy, make current, configure, query and synchronise them, and enable peer access.

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::Arc;

use cuda_driver_sys::CUdevice_attribute as Attribute;
use cuda_driver_sys::{
    CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUexecAffinityType, CUfunc_cache, CUlimit,
    CUsharedconfig,
};

use super::args::{Caller, set};
use super::exports;
use crate::call::lookup::current_context;
use crate::call::{synchronize, teardown};
use crate::object::context::{self, Context};
use crate::object::device;
use crate::object::stream::PRIORITIES;
use crate::queue::capture;
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Returns the context of a handle; the current one for NULL.
fn given_or_current(handle: CUcontext) -> Result<Arc<Context>> {
    match handle as usize {
        0 => context::current(),
        handle => context::by_handle(handle),
    }
}

fn create(c: Caller, out: *mut CUcontext, flags: c_uint, device: CUdevice) -> Result<()> {
    gate::healthy()?;
    device::get(device)?;
    let out = c.out(out)?;
    out.set(context::create(flags, device)? as CUcontext);
    Ok(())
}

/// Returns the current context and the live context of a handle, on any device, for peer access.
fn peer(handle: CUcontext) -> Result<(Arc<Context>, Arc<Context>)> {
    let current = current_context()?;
    if handle.is_null() {
        return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
    }
    let peer = context::by_handle(handle as usize)?;
    Ok((current, peer))
}

exports! {
    fn cuCtxCreate_v2 = cuCtxCreate [c] (out: *mut CUcontext, flags: c_uint, device: CUdevice) {
        create(c, out, flags, device)
    }

    healthy fn cuCtxCreate_v3 [c] (
        out: *mut CUcontext,
        params: *mut CUexecAffinityParam,
        count: c_int,
        flags: c_uint,
        device: CUdevice,
    ) {
        if count > 0 {
            let refused = if params.is_null() {
                Error::CUDA_ERROR_INVALID_VALUE
            } else {
                Error::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
            };
            return Err(refused);
        }
        create(c, out, flags, device)
    }

    healthy fn cuCtxCreate_v4 [c] (
        out: *mut CUcontext,
        params: *mut CUctxCreateParams,
        flags: c_uint,
        device: CUdevice,
    ) {
        if !params.is_null() {
            let params = c.read(params)?;
            if params.numExecAffinityParams > 0 {
                return Err(Error::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.cigParams.is_null() {
                return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
            }
        }
        create(c, out, flags, device)
    }

    fn cuCtxDestroy_v2 = cuCtxDestroy [c] (handle: CUcontext) {
        teardown::destroy(handle as usize)
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
        c.out(out)?.set(context::current_handle() as CUcontext);
        Ok(())
    }

    fn cuCtxAttach [c] (out: *mut CUcontext, flags: c_uint) {
        context::current()?;
        let out = c.out(out)?;
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(context::attach()? as CUcontext);
        Ok(())
    }

    fn cuCtxDetach [c] (handle: CUcontext) {
        teardown::detach(handle as usize)
    }

    fn cuCtxGetDevice [c] (out: *mut CUdevice) {
        let out = c.out(out)?;
        out.set(context::current_or_destroyed()?.device.ordinal);
        Ok(())
    }

    fn cuCtxGetDevice_v2 [c] (out: *mut CUdevice, handle: CUcontext) {
        let out = c.out(out)?;
        // The device of a destroyed context can be queried while the context is current.
        let context = if !handle.is_null() && context::current_handle() == handle as usize {
            context::current_or_destroyed()
        } else {
            given_or_current(handle)
        };
        out.set(context?.device.ordinal);
        Ok(())
    }

    fn cuCtxGetFlags [c] (out: *mut c_uint) {
        let out = c.out(out)?;
        out.set(context::current_or_destroyed()?.flags());
        Ok(())
    }

    fn cuCtxSetFlags [c] (flags: c_uint) {
        let context = current_context()?;
        context::check_flags(flags)?;
        context.set_flags(flags);
        Ok(())
    }

    // Even after a fault, driver 580 returns the ID of a context that is given by its handle.
    fn cuCtxGetId [c] (handle: CUcontext, out: *mut c_ulonglong) {
        let out = c.out(out)?;
        let context = match handle as usize {
            0 => {
                gate::healthy()?;
                context::current_exactly()?
            }
            handle => context::exactly(handle)?,
        };
        out.set(context.serial());
        Ok(())
    }

    fn cuCtxGetApiVersion [c] (handle: CUcontext, out: *mut c_uint) {
        // Driver 580 returns `CUDA_ERROR_INVALID_CONTEXT` for the handle of a destroyed context.
        given_or_current(handle).map_err(|error| {
            if handle.is_null() {
                error
            } else {
                Error::CUDA_ERROR_INVALID_CONTEXT
            }
        })?;
        let out = c.out(out)?;
        // Driver 580 returns the version of the context interface, not of CUDA.
        out.set(3020);
        Ok(())
    }

    fn cuCtxSynchronize [c] () {
        synchronize::context(&*current_context()?)
    }

    healthy fn cuCtxSynchronize_v2 [c] (handle: CUcontext) {
        synchronize::context(&*given_or_current(handle)?)
    }

    fn cuCtxGetLimit [c] (out: *mut usize, limit: CUlimit) {
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(context.options().limits.get(limit)? as usize);
        Ok(())
    }

    fn cuCtxSetLimit [c] (limit: CUlimit, value: usize) {
        let context = current_context()?;
        capture::check_unsafe()?;
        context.options().limits.set(limit, value as u64)
    }

    fn cuCtxGetCacheConfig [c] (out: *mut CUfunc_cache) {
        let context = current_context()?;
        c.out(out)?
            .set(CUfunc_cache(context.options().cache_config));
        Ok(())
    }

    fn cuCtxSetCacheConfig [c] (config: CUfunc_cache) {
        let context = current_context()?;
        if config.0 > 3 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        context.options().cache_config = config.0;
        Ok(())
    }

    fn cuCtxGetSharedMemConfig [c] (out: *mut CUsharedconfig) {
        current_context()?;
        c.out(out)?.set(CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
        Ok(())
    }

    fn cuCtxSetSharedMemConfig [c] (config: CUsharedconfig) {
        // The architectures here have only banks of 4 bytes; other sizes are accepted without effect.
        current_context()?;
        if config.0 > 2 {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    fn cuCtxGetStreamPriorityRange [c] (least: *mut c_int, greatest: *mut c_int) {
        current_context()?;
        set(c.out_or_null(least), PRIORITIES.0);
        set(c.out_or_null(greatest), PRIORITIES.1);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache [c] () {
        current_context().map(|_| ())
    }

    fn cuCtxGetExecAffinity [c] (out: *mut CUexecAffinityParam, kind: CUexecAffinityType) {
        let device = current_context()?.device;
        let out = c.out(out)?;
        // The only type is `CU_EXEC_AFFINITY_TYPE_SM_COUNT`, which is 0.
        if kind.0 != 0 {
            return Err(Error::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
        }
        let mut param = CUexecAffinityParam {
            type_: kind,
            ..CUexecAffinityParam::default()
        };
        param.param.smCount.val = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        out.set(param);
        Ok(())
    }

    fn cuCtxEnablePeerAccess [c] (handle: CUcontext, flags: c_uint) {
        let (current, peer) = peer(handle)?;
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        if current.device.ordinal == peer.device.ordinal {
            return Err(Error::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        if current.enable_peer(peer.id()) {
            Ok(())
        } else {
            Err(Error::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    fn cuCtxDisablePeerAccess [c] (handle: CUcontext) {
        let (current, peer) = peer(handle)?;
        capture::check_unsafe()?;
        if current.disable_peer(peer.id()) {
            Ok(())
        } else {
            Err(Error::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
        }
    }
}
