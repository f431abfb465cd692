//! Events.

use std::ffi::c_uint;

use cuda_driver_sys::{CUcontext, CUevent, CUstream};

use super::args::Caller;
use super::exports;
use crate::driver::error::{Error, Result};
use crate::driver::graph::node::{Action, EventNode};
use crate::driver::stream::Mode;
use crate::driver::workers::in_host_function;
use crate::driver::{capture, context, event, stream};

fn record(hevent: CUevent, hstream: CUstream, mode: Mode, flags: c_uint) -> Result<()> {
    let stream = stream::named(hstream as usize, mode)?;
    let event = event::get(hevent as usize)?;
    if stream::is_external(flags, &stream)? {
        let node = EventNode {
            handle: hevent as usize,
            event,
        };
        return capture::add(&stream, Action::Record(node));
    }
    capture::check_legacy(&stream)?;
    event.record(&stream)
}

fn elapsed(c: Caller, milliseconds: *mut f32, start: CUevent, end: CUevent) -> Result<()> {
    // As recorded: NULL is 400 here, not 1.
    let out = c.out_or_null(milliseconds).ok_or(Error::INVALID_HANDLE)?;
    out.set(event::elapsed(start as usize, end as usize)?);
    Ok(())
}

exports! {
    fn cuEventCreate [c] (out: *mut CUevent, flags: c_uint) {
        context::current()?;
        let out = c.out(out)?;
        out.set(event::create(flags)? as CUevent);
        Ok(())
    }

    inside fn cuEventRecord | cuEventRecord_ptsz [c, mode] (hevent: CUevent, hstream: CUstream) {
        record(hevent, hstream, mode, 0)
    }

    inside fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz [c, mode] (hevent: CUevent, hstream: CUstream, flags: c_uint) {
        record(hevent, hstream, mode, flags)
    }

    inside fn cuEventQuery [c] (hevent: CUevent) {
        event::get(hevent as usize)?.query()
    }

    inside fn cuEventSynchronize [c] (hevent: CUevent) {
        let event = event::get(hevent as usize)?;
        // A host function that waits may wait for itself.
        if in_host_function() && !event.is_done() {
            return Err(Error::NOT_PERMITTED);
        }
        event.synchronize()
    }

    inside fn cuEventElapsedTime [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    inside fn cuEventElapsedTime_v2 [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    fn cuCtxRecordEvent [_c] (hcontext: CUcontext, hevent: CUevent) {
        let context = context::by_handle(hcontext as usize)?;
        event::get(hevent as usize)?.record_context(&context)
    }

    fn cuCtxWaitEvent [_c] (hcontext: CUcontext, hevent: CUevent) {
        let context = context::by_handle(hcontext as usize)?;
        if let Some(node) = event::get(hevent as usize)?.node() {
            context.lanes().hold_until(node);
        }
        Ok(())
    }

    fn cuEventDestroy_v2 = cuEventDestroy [c] (hevent: CUevent) {
        event::destroy(hevent as usize)
    }
}
