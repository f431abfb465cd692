//! Streams: looks them up for calls, and creates, destroys and queries them.

use crate::call::{capture as capturing, event, lookup};
use crate::object::stream::{self, LEGACY, NON_BLOCKING, NullStream, PER_THREAD, StreamRef};
use crate::object::{context, green, stream_attribute};
use crate::operation::copy::Waits;
use crate::operation::{EventUse, Operation};
use crate::queue::capture;
use crate::queue::order;
use crate::queue::scheduler::{observe_fault, scheduler};
use crate::queue::streams::{QueueId, is_forgettable};
use crate::queue::work::Work;
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Returns the stream that a call names. After a fault was reported, returns the fault. A default stream needs a
/// current context: without one, returns `CUDA_ERROR_INVALID_CONTEXT`, even after a fault.
pub(crate) fn named(handle: usize, mode: NullStream) -> Result<StreamRef> {
    let is_default = matches!(handle, 0 | LEGACY | PER_THREAD);
    if is_default && !gate::in_host_function() {
        lookup::healthy_if_current()?;
    } else {
        gate::healthy()?;
    }
    stream::resolve(handle, mode)
}

/// Returns the stream for an operation that cannot be captured; an error if the stream captures.
pub(crate) fn for_work(handle: usize, mode: NullStream) -> Result<StreamRef> {
    let stream = for_capture(handle, mode)?;
    capture::refuse(stream.key(), Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
    Ok(stream)
}

/// Returns the stream for an operation that becomes a node of a graph if the stream captures.
pub(crate) fn for_capture(handle: usize, mode: NullStream) -> Result<StreamRef> {
    let stream = named(handle, mode)?;
    capture::check_legacy(stream.key())?;
    Ok(stream)
}

/// Returns the stream for a copy. Only asynchronous copies can be captured.
pub(crate) fn for_copy(handle: usize, mode: NullStream, waits: Waits) -> Result<StreamRef> {
    match waits {
        Waits::Synchronous => for_work(handle, mode),
        Waits::Asynchronous | Waits::UntilRead => for_capture(handle, mode),
    }
}

/// Returns the stream for a call that is an error while the stream captures, and that invalidates the capture. Unlike
/// [`for_work`], does not check captures that forbid the legacy stream.
pub(crate) fn uncaptured(handle: usize, mode: NullStream) -> Result<StreamRef> {
    let stream = named(handle, mode)?;
    capture::refuse(stream.key(), Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
    Ok(stream)
}

/// `cuStreamCreate` and `cuStreamCreateWithPriority`: clamps the priority to the valid range.
pub(crate) fn create(flags: u32, priority: i32) -> Result<usize> {
    if flags & !NON_BLOCKING != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let context = context::current_exactly()?;
    let green = green::of(&context);
    order::note_several();
    Ok(stream::create(&context.owner()?, green.as_deref(), flags, priority))
}

/// `cuStreamDestroy`: returns immediately; queued work on the stream still runs.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    if matches!(handle, LEGACY | PER_THREAD) {
        // Like all calls with one of these streams, this one needs a current context. The streams cannot be destroyed.
        context::current()?;
    }
    let stream = stream::created(handle)?;
    // Removed first: another thread that has looked up the stream must not begin a capture afterwards.
    stream::remove(&stream)?;
    capturing::forget(stream.owner, QueueId::Created(handle));
    stream_attribute::forget(stream.owner, QueueId::Created(handle));
    Ok(())
}

/// `cuStreamGetCtx`: returns the context's handle, even if the context is destroyed.
pub(crate) fn context_of(handle: usize, mode: NullStream) -> Result<usize> {
    gate::healthy()?;
    match handle {
        0 | LEGACY | PER_THREAD => {
            let stream = stream::resolve(handle, mode)?;
            Ok(if stream.green == 0 {
                stream.context.handle
            } else {
                context::current_handle()
            })
        }
        _ => Ok(stream::created(handle)?.context_handle),
    }
}

/// `cuStreamQuery`: `CUDA_ERROR_NOT_READY` while work is pending.
pub(crate) fn query(stream: &StreamRef) -> Result<()> {
    refuse_while_capturing(stream)?;
    // Looked up once: another thread may submit work after the check, and this call must not wait for it.
    let tasks = stream.tails();
    let idle = scheduler().are_done(&tasks);
    if idle {
        // The program may now rely on the work as if it had waited. This call returns immediately; it records the wait
        // for the check of races.
        scheduler().wait_all(&tasks);
    }
    observe_fault()?;
    if idle { Ok(()) } else { Err(Error::CUDA_ERROR_NOT_READY) }
}

/// Returns an error if the host may not query the stream or wait for it: if it captures, if it is the legacy stream and
/// waits for a capturing stream, or if a capture forbids calls that may wait for the device.
pub(crate) fn refuse_while_capturing(stream: &StreamRef) -> Result<()> {
    capture::refuse(stream.key(), Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)?;
    capture::check_legacy(stream.key())?;
    capture::check_unsafe()
}

/// `cuStreamWaitEvent`: later work waits for the work that the event last recorded.
pub(crate) fn wait_event(stream: &StreamRef, handle: usize, flags: u32) -> Result<()> {
    let key = stream.key();
    if capturing::is_external(flags, stream)? {
        let event = event::get(handle)?;
        // Driver 580 returns an error for an event that was recorded in a capture that has ended.
        let captured = event.captured();
        if captured.is_some_and(|captured| capture::is_over(&captured)) {
            return capture::invalidate_on_error(key, Err(Error::CUDA_ERROR_INVALID_VALUE));
        }
        return capturing::add(stream, Operation::Wait(EventUse { handle, event }));
    }
    let event = match event::get(handle) {
        Ok(event) => event,
        // On driver 580, an invalid event invalidates the stream's capture.
        Err(error) => return capture::refuse(key, error).and(Err(error)),
    };
    match event.captured() {
        Some(captured) => return capture::join(key, &captured),
        // A capture cannot wait for work outside of it.
        None if event.task().is_some() => {
            capture::refuse(key, Error::CUDA_ERROR_STREAM_CAPTURE_ISOLATION)?;
        }
        // An event that was never recorded needs no wait.
        None => capture::check_valid(key)?,
    }
    capture::check_legacy(key)?;
    if let Some(task) = event.task().filter(|&task| !is_forgettable(task)) {
        stream.submit(&[task], Work::Join, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Another thread may submit work during a query. Here a condition submits it, in the thread that queries.
    #[test]
    fn a_query_does_not_wait_for_work_submitted_meanwhile() {
        let stream = StreamRef::of_default(context::for_test(), QueueId::Legacy);
        let (context, queue) = (stream.context.clone(), stream.queue);
        let (here, began) = (thread::current().id(), Instant::now());
        let later = Arc::new(AtomicU64::new(0));
        let submitted = later.clone();
        let condition = move || {
            if thread::current().id() != here {
                return Ok(false);
            }
            let wait = Work::Until(Box::new(move || Ok(began.elapsed() > Duration::from_secs(5))));
            submitted.store(context.queues().submit(queue, &[], wait, 0), SeqCst);
            Ok(true)
        };
        stream.submit(&[], Work::Until(Box::new(condition)), 0);
        while query(&stream).is_err() {}
        assert!(!scheduler().is_done(later.load(SeqCst)));
    }
}
