//! Events: the calls that create, record, query, time and destroy them, and that make contexts wait for them.

use std::sync::Arc;
use std::time::Instant;

use cuda_driver_sys::CUevent_flags;

use crate::call::capture as capturing;
use crate::object::context::Context;
use crate::object::event::{self, Event};
use crate::object::ipc::{self, EventCounters};
use crate::object::stream::StreamRef;
use crate::operation::{EventUse, Operation};
use crate::queue::capture;
use crate::queue::scheduler::{observe_fault, scheduler};
use crate::state::error::{Error, Result};
use crate::state::gate;

const DISABLE_TIMING: u32 = CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
const INTERPROCESS: u32 = CUevent_flags::CU_EVENT_INTERPROCESS.0;
const BLOCKING_SYNC: u32 = CUevent_flags::CU_EVENT_BLOCKING_SYNC.0;

/// Returns the live event with this handle, if its context is live. After a fault was reported, returns the fault. Also
/// works in host functions: an export that they must not call is refused before its body runs.
pub(crate) fn get(handle: usize) -> Result<Arc<Event>> {
    let event = event::get(handle)?;
    gate::healthy()?;
    event.context()?;
    Ok(event)
}

/// `cuEventCreate`
pub(crate) fn create(context: &Arc<Context>, flags: u32) -> Result<usize> {
    let known = flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) == 0;
    if !known || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let shared = match flags & INTERPROCESS {
        0 => None,
        _ => EventCounters::new(),
    };
    Ok(event::create(context, flags, shared))
}

/// `cuIpcOpenEventHandle`: opens an event of another process.
pub(crate) fn open(context: &Arc<Context>, handle: &[u8; ipc::BYTES]) -> Result<usize> {
    let counts = EventCounters::open(handle)?;
    let flags = INTERPROCESS | DISABLE_TIMING;
    Ok(event::create(context, flags, Some(counts)))
}

/// `cuEventDestroy`: returns immediately; pending waits for the event are unaffected.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    get(handle)?;
    event::remove(handle)
}

/// `cuEventRecord` and `cuEventRecordWithFlags`
pub(crate) fn record(handle: usize, stream: &StreamRef, flags: u32) -> Result<()> {
    let event = get(handle)?;
    if capturing::is_external(flags, stream)? {
        return capturing::add(stream, Operation::Record(EventUse { handle, event }));
    }
    capture::check_legacy(stream.key())?;
    record_on(&event, stream)
}

/// Returns `CUDA_ERROR_INVALID_HANDLE` if the contexts of an event and a stream differ.
pub(crate) fn check_context(event: &Event, stream: &StreamRef) -> Result<()> {
    if *event.context()? == *stream.context {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_HANDLE)
    }
}

/// Records an event on a stream. Returns `CUDA_ERROR_INVALID_HANDLE` if their contexts differ.
pub(crate) fn record_on(event: &Event, stream: &StreamRef) -> Result<()> {
    check_context(event, stream)?;
    match capture::record(stream.key())? {
        Some(captured) => event.set_captured(captured),
        None => event.record(|work| stream.submit(&[], work, 0)),
    }
    Ok(())
}

/// `cuCtxRecordEvent`: records all work of the context. Returns `CUDA_ERROR_INVALID_HANDLE` for an event of another
/// context. If streams of the context capture, returns an error, and the captures become invalid.
pub(crate) fn record_context(event: &Event, context: &Context) -> Result<()> {
    record_all(event, context, || capture::check_context(context.id()))
}

/// Records all work of a context, if the check of captures succeeds.
pub(crate) fn record_all(event: &Event, context: &Context, check: impl FnOnce() -> Result<()>) -> Result<()> {
    capture::check_unsafe()?;
    if *event.context()? != *context {
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    check()?;
    event.record(|work| context.submit_after_all(work));
    Ok(())
}

/// `cuEventElapsedTime` in milliseconds: `CUDA_ERROR_INVALID_HANDLE` if the events are of different contexts or one of
/// them is unrecorded or without timing, `CUDA_ERROR_NOT_READY` while one is pending.
pub(crate) fn elapsed(start: usize, end: usize) -> Result<f32> {
    let (start, end) = (get(start)?, get(end)?);
    if *start.context()? != *end.context()? {
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    let (Some(from), Some(to)) = (time(&start)?, time(&end)?) else {
        return Err(Error::CUDA_ERROR_NOT_READY);
    };
    observe_fault()?;
    let milliseconds = match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -from.duration_since(to).as_secs_f64() * 1e3,
    };
    Ok(milliseconds as f32)
}

/// Returns the time that an event recorded; `None` while it is pending.
fn time(event: &Event) -> Result<Option<Instant>> {
    if event.flags & DISABLE_TIMING != 0 {
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    refuse_captured(event, false)?;
    event.time()
}

/// Returns an error if the event was recorded in a capture: the host can neither query such an event nor wait for it.
/// If `invalidates` is true, the capture becomes invalid.
pub(crate) fn refuse_captured(event: &Event, invalidates: bool) -> Result<()> {
    match event.captured() {
        Some(captured) => capture::refuse_event(&captured, invalidates, Error::CUDA_ERROR_CAPTURED_EVENT),
        None => Ok(()),
    }
}

/// `cuEventQuery`: `CUDA_ERROR_NOT_READY` while the recorded work is pending; success for an event that was never
/// recorded.
pub(crate) fn query(handle: usize) -> Result<()> {
    let event = get(handle)?;
    refuse_captured(&event, true)?;
    capture::check_unsafe()?;
    let (done, task) = event.check();
    if let Some(task) = task.filter(|_| done) {
        // The program may now rely on the work as if it had waited. This call returns immediately; it records the wait
        // for the check of races.
        scheduler().wait(task);
    }
    observe_fault()?;
    if done { Ok(()) } else { Err(Error::CUDA_ERROR_NOT_READY) }
}

/// `cuCtxWaitEvent`: all later work of a context waits for the work that the event last recorded. If streams of the
/// context capture, or if the event was recorded in a capture, returns an error, and the captures become invalid.
pub(crate) fn hold_context(context: &Context, handle: usize) -> Result<()> {
    hold_all(context, handle, || capture::check_context(context.id()))
}

/// Makes all later work of a context wait for an event, if the check of captures succeeds.
pub(crate) fn hold_all(context: &Context, handle: usize, check: impl FnOnce() -> Result<()>) -> Result<()> {
    let event = get(handle)?;
    check()?;
    if let Some(captured) = event.captured() {
        return capture::refuse_event(&captured, true, Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if let Some(task) = event.task() {
        context.queues().hold_until(task);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::object::context;
    use crate::queue::streams::QueueId;
    use crate::queue::work::Work;

    /// Another thread may record the event during a query. Here a condition records it, in the thread that queries.
    #[test]
    fn a_query_does_not_wait_for_a_record_made_meanwhile() {
        let context = context::for_test();
        let stream = StreamRef::of_default(context.clone(), QueueId::Legacy);
        let handle = create(&context, 0).unwrap();
        let (here, began) = (thread::current().id(), Instant::now());
        let later = Arc::new(AtomicU64::new(0));
        let submitted = later.clone();
        let other = StreamRef::of_default(context, QueueId::PerThread(u64::MAX));
        let condition = move || {
            if thread::current().id() != here {
                return Ok(false);
            }
            let wait = Work::Until(Box::new(move || Ok(began.elapsed() > Duration::from_secs(5))));
            submitted.store(other.submit(&[], wait, 0), SeqCst);
            record(handle, &other, 0).unwrap();
            Ok(true)
        };
        stream.submit(&[], Work::Until(Box::new(condition)), 0);
        record(handle, &stream, 0).unwrap();
        while later.load(SeqCst) == 0 {
            let _ = query(handle);
        }
        assert!(!scheduler().is_done(later.load(SeqCst)));
    }
}
