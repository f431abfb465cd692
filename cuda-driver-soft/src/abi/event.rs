//! Exports of events: create, record, query, wait for, time and destroy them.

use std::ffi::c_uint;

use cuda_driver_sys::{CUcontext, CUevent, CUstream};

use super::args::Caller;
use super::exports;
use crate::call::lookup::current_context;
use crate::call::{event, stream, synchronize};
use crate::object::context;
use crate::object::stream::NullStream;
use crate::state::error::{Error, Result};

fn record(hevent: CUevent, hstream: CUstream, mode: NullStream, flags: c_uint) -> Result<()> {
    let stream = stream::named(hstream as usize, mode)?;
    event::record(hevent as usize, &stream, flags)
}

fn elapsed(c: Caller, milliseconds: *mut f32, start: CUevent, end: CUevent) -> Result<()> {
    // Driver 580 returns `CUDA_ERROR_INVALID_HANDLE` for NULL here.
    let out = c.out_or_null(milliseconds).ok_or(Error::CUDA_ERROR_INVALID_HANDLE)?;
    out.set(event::elapsed(start as usize, end as usize)?);
    Ok(())
}

exports! {
    fn cuEventCreate [c] (out: *mut CUevent, flags: c_uint) {
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(event::create(&context, flags)? as CUevent);
        Ok(())
    }

    inside fn cuEventRecord | cuEventRecord_ptsz [c, mode] (hevent: CUevent, hstream: CUstream) {
        record(hevent, hstream, mode, 0)
    }

    inside fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz [c, mode] (
        hevent: CUevent,
        hstream: CUstream,
        flags: c_uint,
    ) {
        record(hevent, hstream, mode, flags)
    }

    inside fn cuEventQuery [c] (hevent: CUevent) {
        event::query(hevent as usize)
    }

    inside fn cuEventSynchronize [c] (hevent: CUevent) {
        synchronize::event(hevent as usize)
    }

    inside fn cuEventElapsedTime [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    inside fn cuEventElapsedTime_v2 [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    fn cuCtxRecordEvent [_c] (hcontext: CUcontext, hevent: CUevent) {
        let context = context::by_handle(hcontext as usize)?;
        event::record_context(&*event::get(hevent as usize)?, &context)
    }

    fn cuCtxWaitEvent [_c] (hcontext: CUcontext, hevent: CUevent) {
        let context = context::by_handle(hcontext as usize)?;
        event::hold_context(&context, hevent as usize)
    }

    fn cuEventDestroy_v2 = cuEventDestroy [c] (hevent: CUevent) {
        event::destroy(hevent as usize)
    }
}
