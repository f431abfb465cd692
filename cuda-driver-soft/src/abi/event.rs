//! Events.

use std::ffi::c_uint;

use cuda_driver_sys::{CUevent, CUstream};

use super::args::Caller;
use super::exports;
use crate::driver::error::{Error, Result};
use crate::driver::process::driver_without_fault;
use crate::driver::stream::Mode;
use crate::driver::{event, stream};

fn record(hevent: CUevent, hstream: CUstream, mode: Mode) -> Result<()> {
    driver_without_fault()?;
    let event = event::get(hevent as usize)?;
    event.record(&stream::for_work(hstream as usize, mode)?)
}

fn elapsed(c: Caller, milliseconds: *mut f32, start: CUevent, end: CUevent) -> Result<()> {
    driver_without_fault()?;
    // As recorded: NULL is 400 here, not 1.
    let out = c.out_or_null(milliseconds).ok_or(Error::INVALID_HANDLE)?;
    out.set(event::elapsed(start as usize, end as usize)?);
    Ok(())
}

exports! {
    fn cuEventCreate [c] (out: *mut CUevent, flags: c_uint) {
        driver_without_fault()?;
        let out = c.out(out)?;
        out.set(event::create(flags)? as CUevent);
        Ok(())
    }

    fn cuEventRecord | cuEventRecord_ptsz [c, mode] (hevent: CUevent, hstream: CUstream) {
        record(hevent, hstream, mode)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz [c, mode] (hevent: CUevent, hstream: CUstream, flags: c_uint) {
        if flags > 1 {
            return Err(Error::INVALID_VALUE);
        }
        record(hevent, hstream, mode)
    }

    fn cuEventQuery [c] (hevent: CUevent) {
        event::get(hevent as usize)?.query()
    }

    fn cuEventSynchronize [c] (hevent: CUevent) {
        event::get(hevent as usize)?.synchronize()
    }

    fn cuEventElapsedTime [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2 [c] (milliseconds: *mut f32, start: CUevent, end: CUevent) {
        elapsed(c, milliseconds, start, end)
    }

    fn cuEventDestroy_v2 = cuEventDestroy [c] (hevent: CUevent) {
        event::destroy(hevent as usize)
    }
}
