//! Streams.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use super::capture;
use super::context::{self, Context};
use super::error::{Error, Result};
use super::event;
use super::lanes::Lane;
use super::pool;
use super::process::{
    check_sticky, driver, driver_in_host_function, driver_without_fault, observe_fault,
};
use super::stream_attribute;
use super::work::{NodeId, Work};
use super::workers::{graph, in_host_function};

/// Least and greatest priority, as `cuCtxGetStreamPriorityRange` gives them.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);

/// `CU_STREAM_LEGACY`
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`
const PER_THREAD: usize = 2;
/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: u32 = 1;

/// What the NULL stream means in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The plain functions: the legacy stream.
    Legacy,
    /// The `_ptds` and `_ptsz` functions: the calling thread's own.
    PerThread,
}

/// A created stream.
pub(crate) struct Stream {
    handle: usize,
    context: Weak<Context>,
    context_handle: usize,
    flags: u32,
    priority: AtomicI32,
}

/// A stream that a call may use: created, legacy or per-thread.
#[derive(Clone, Debug)]
pub(crate) struct StreamRef {
    pub(crate) context: Arc<Context>,
    pub(crate) lane: Lane,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
}

/// The stream that a handle names. NULL, legacy and per-thread need a current context; a created stream needs none.
pub(crate) fn resolve(handle: usize, mode: Mode) -> Result<StreamRef> {
    let default = |lane| {
        if in_host_function() {
            // There is no current context.
            return Err(Error::NOT_PERMITTED);
        }
        let context = match context::current_handle() {
            0 => Err(Error::INVALID_CONTEXT),
            handle => context::by_handle(handle),
        }?;
        Ok(StreamRef {
            context,
            lane,
            flags: 0,
            priority: PRIORITIES.0,
        })
    };
    match (handle, mode) {
        (LEGACY, _) | (0, Mode::Legacy) => default(Lane::Legacy),
        (PER_THREAD, _) | (0, Mode::PerThread) => default(Lane::of_this_thread()),
        _ => {
            let stream = created(handle)?;
            let alive = stream.context.upgrade().filter(|c| c.is_alive());
            let context = alive.ok_or(Error::CONTEXT_IS_DESTROYED)?;
            Ok(StreamRef {
                context,
                lane: Lane::Stream(handle),
                flags: stream.flags,
                priority: stream.priority.load(Relaxed),
            })
        }
    }
}

/// The stream that a call names which host functions may make: refused after a fault.
pub(crate) fn named(handle: usize, mode: Mode) -> Result<StreamRef> {
    driver_in_host_function()?;
    check_sticky()?;
    resolve(handle, mode)
}

/// The flags of `cuStreamWaitEvent` and `cuEventRecordWithFlags`: whether a node is asked for, which is made in a capture
/// only.
pub(crate) fn is_external(flags: u32, stream: &StreamRef) -> Result<bool> {
    const EXTERNAL: u32 = 1;
    match flags {
        0 => Ok(false),
        EXTERNAL if stream.is_capturing() => Ok(true),
        EXTERNAL => Err(Error::ILLEGAL_STATE),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// The stream that a call puts work on which cannot be captured: refused after a fault, and in host functions.
pub(crate) fn for_work(handle: usize, mode: Mode) -> Result<StreamRef> {
    let stream = for_capture(handle, mode)?;
    capture::refuse(&stream, Error::STREAM_CAPTURE_UNSUPPORTED)?;
    Ok(stream)
}

/// The stream that a call puts work on, which becomes a node of a graph if the stream captures.
pub(crate) fn for_capture(handle: usize, mode: Mode) -> Result<StreamRef> {
    driver_without_fault()?;
    let stream = resolve(handle, mode)?;
    capture::check_legacy(&stream)?;
    Ok(stream)
}

fn created(handle: usize) -> Result<Arc<Stream>> {
    driver_in_host_function()?
        .streams
        .get(handle)
        .map_err(|why| {
            host::log!("stream {handle:#x} is {why:?}: a real driver may crash here");
            Error::INVALID_HANDLE
        })
}

/// `cuStreamCreateWithPriority`: the priority is brought into its range.
pub(crate) fn create(flags: u32, priority: i32) -> Result<usize> {
    driver_without_fault()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let context = context::current()?;
    let stream = driver()?.streams.insert_with(|handle| Stream {
        handle,
        context: Arc::downgrade(&context),
        context_handle: context.handle,
        flags,
        priority: AtomicI32::new(priority.clamp(PRIORITIES.1, PRIORITIES.0)),
    });
    if flags & NON_BLOCKING != 0 {
        context
            .lanes()
            .add_non_blocking(Lane::Stream(stream.handle));
    }
    Ok(stream.handle)
}

/// `cuStreamDestroy`: returns at once; work that is on it goes on.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    let driver = driver_without_fault()?;
    if matches!(handle, LEGACY | PER_THREAD) {
        // They need a context like any call on them, and are never destroyed.
        context::current()?;
    }
    let stream = created(handle)?;
    capture::forget(stream.context_handle as u64, Lane::Stream(handle));
    if let Some(context) = stream.context.upgrade() {
        context.lanes().remove(Lane::Stream(handle));
    }
    stream_attribute::forget(handle as u64);
    driver
        .streams
        .remove(handle)
        .map_err(|_| Error::INVALID_HANDLE)?;
    Ok(())
}

/// `cuStreamGetCtx`: the context's handle, even of a destroyed one.
pub(crate) fn context_of(handle: usize, mode: Mode) -> Result<usize> {
    check_sticky()?;
    match handle {
        0 | LEGACY | PER_THREAD => Ok(resolve(handle, mode)?.context.handle),
        _ => Ok(created(handle)?.context_handle),
    }
}

impl StreamRef {
    /// Puts work at the end of the stream, also after `after`. `cost` is a guess of its duration in nanoseconds.
    pub(crate) fn submit(&self, after: &[NodeId], work: Work, cost: u64) -> NodeId {
        self.context.lanes().submit(self.lane, after, work, cost)
    }

    /// Whether it is the legacy stream.
    pub(crate) fn is_legacy(&self) -> bool {
        self.lane == Lane::Legacy
    }

    /// Whether it and the legacy stream wait for each other.
    pub(crate) fn is_blocking(&self) -> bool {
        self.lane != Lane::Legacy && self.flags & NON_BLOCKING == 0
    }

    /// Whether it was made by `cuStreamCreate`.
    pub(crate) fn is_created(&self) -> bool {
        matches!(self.lane, Lane::Stream(_))
    }

    /// Sets the priority of a created stream, brought into its range; others keep theirs.
    pub(crate) fn set_priority(&self, priority: i32) {
        if let Lane::Stream(handle) = self.lane
            && let Ok(stream) = created(handle)
        {
            let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
            stream.priority.store(priority, Relaxed);
        }
    }

    /// A number that no other stream of the process has.
    pub(crate) fn id(&self) -> u64 {
        match self.lane {
            Lane::Legacy => self.context.id() << 8 | LEGACY as u64,
            Lane::PerThread(thread) => {
                (self.context.id() << 8 | PER_THREAD as u64).wrapping_add(thread << 48)
            }
            Lane::Stream(handle) => handle as u64,
        }
    }

    /// Whether all its work is done.
    pub(crate) fn is_idle(&self) -> bool {
        let tails = self.context.lanes().tails(self.lane);
        graph().are_done(&tails)
    }

    /// Waits until all its work is done; what failed is not looked at.
    pub(crate) fn drain(&self) {
        let tails = self.context.lanes().tails(self.lane);
        graph().wait_all(&tails);
    }

    /// `cuStreamQuery`: 600 while work is pending.
    pub(crate) fn query(&self) -> Result<()> {
        self.refuse_while_capturing()?;
        let idle = self.is_idle();
        observe_fault()?;
        if idle { Ok(()) } else { Err(Error::NOT_READY) }
    }

    /// The host can neither ask about nor wait for a stream that captures, or that waits for one that does; nor, in most
    /// modes, for any other.
    fn refuse_while_capturing(&self) -> Result<()> {
        capture::refuse(self, Error::STREAM_CAPTURE_UNSUPPORTED)?;
        capture::check_legacy(self)?;
        capture::check_unsafe()
    }

    /// `cuStreamSynchronize`
    pub(crate) fn synchronize(&self) -> Result<()> {
        check_sticky()?;
        self.refuse_while_capturing()?;
        self.drain();
        pool::settle();
        observe_fault()
    }

    /// `cuStreamWaitEvent`: work that comes later waits for what the event last recorded.
    pub(crate) fn wait_event(&self, event: usize) -> Result<()> {
        let event = match event::get(event) {
            Ok(event) => event,
            // As recorded, this spoils a capture.
            Err(error) => return capture::refuse(self, error).and(Err(error)),
        };
        match event.captured() {
            Some(captured) => return capture::join(self, &captured),
            // One that was never recorded is nothing to wait for.
            None if event.node().is_some() => {
                capture::refuse(self, Error::STREAM_CAPTURE_ISOLATION)?
            }
            None => capture::check_valid(self)?,
        }
        capture::check_legacy(self)?;
        if let Some(node) = event.node().filter(|&n| !graph().is_done(n)) {
            self.submit(&[node], Work::Join, 0);
        }
        Ok(())
    }
}
