//! Green contexts: the calls that create and destroy them, create their streams, and record and wait for events.

use std::sync::Arc;

use crate::call::{capture as capturing, event, teardown};
use crate::object::green::{self, GreenContext};
use crate::object::resource::{self, Multiprocessors};
use crate::object::stream::{self, NON_BLOCKING};
use crate::object::{context, device, primary};
use crate::queue::capture;
use crate::state::error::{Error, Result};

/// `CU_GREEN_CTX_DEFAULT_STREAM`
const DEFAULT_STREAM: u32 = cuda_driver_sys::CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;

/// `cuGreenCtxCreate`: retains the primary context. The descriptor 0 (NULL) means the whole device.
pub(crate) fn create(descriptor: usize, ordinal: i32, flags: u32) -> Result<usize> {
    device::get(ordinal)?;
    if flags != DEFAULT_STREAM {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let whole = resource::of_device(ordinal)?;
    let (part, numbers) = match descriptor {
        0 => (whole, (0..whole.count).collect()),
        handle => {
            let descriptor = resource::descriptor(handle)?;
            if descriptor.device != ordinal {
                return Err(Error::CUDA_ERROR_INVALID_DEVICE);
            }
            let part = Multiprocessors {
                count: descriptor.multiprocessors,
                ..whole
            };
            (part, Arc::clone(&descriptor.numbers))
        }
    };
    let primary = context::by_handle(primary::retain(ordinal)?)?;
    Ok(green::create(&primary, part, numbers))
}

/// `cuGreenCtxDestroy`: releases the primary context. Queued work still runs, but the streams become invalid.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    // Removed first: another thread that has looked up a stream must not begin a capture afterwards.
    let green = green::remove(handle)?;
    capturing::forget_green(&green);
    teardown::primary_release(green.resource.device)
}

/// `cuGreenCtxStreamCreate`: accepts only the flag for non-blocking streams.
pub(crate) fn create_stream(green: &GreenContext, flags: u32, priority: i32) -> Result<usize> {
    if flags != NON_BLOCKING {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let primary = context::by_handle(green.context.handle)?;
    Ok(stream::create(&primary, Some(green), flags, priority))
}

/// `cuGreenCtxRecordEvent`: records all work of the primary context, which includes the green context's streams. As
/// documented, captures of the green context's streams become invalid.
pub(crate) fn record(green: &GreenContext, handle: usize) -> Result<()> {
    let primary = context::by_handle(green.context.handle)?;
    event::record_all(&*event::get(handle)?, &primary, || check_streams(green))
}

/// `cuGreenCtxWaitEvent`: makes later work of the primary context, which includes the green context's streams, wait for
/// the event. As documented, captures of the green context's streams become invalid.
pub(crate) fn hold(green: &GreenContext, handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    let primary = context::by_handle(green.context.handle)?;
    event::hold_all(&primary, handle, || check_streams(green))
}

/// Returns an error, and invalidates the captures, if streams of the green context capture.
fn check_streams(green: &GreenContext) -> Result<()> {
    capture::check_streams(|_, queue| stream::is_in_green(queue, green))
}
