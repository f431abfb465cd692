//! Events: points in the order of work, with a time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use super::capture::{self, Captured};
use super::context::{self, Context};
use super::error::{Error, Result};
use super::ipc::{self, Counts};
use super::pool;
use super::process::{check_sticky, driver, driver_in_host_function, observe_fault};
use super::stream::StreamRef;
use super::work::{NodeId, Work};
use super::workers::graph;

/// `CU_EVENT_DISABLE_TIMING`
const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`
const INTERPROCESS: u32 = 4;
/// `CU_EVENT_BLOCKING_SYNC`
const BLOCKING_SYNC: u32 = 1;

/// An event.
pub(crate) struct Event {
    context: Weak<Context>,
    flags: u32,
    record: Mutex<Option<Record>>,
    /// What other processes know of it, too.
    shared: Option<Counts>,
}

/// The last `cuEventRecord`.
enum Record {
    Work {
        node: NodeId,
        time: Arc<OnceLock<Instant>>,
    },
    /// On a stream that captured.
    Captured(Captured),
}

/// The living event of this handle in a living context.
pub(crate) fn get(handle: usize) -> Result<Arc<Event>> {
    // Also in host functions: what is not permitted there, the export refuses.
    let event = driver_in_host_function()?
        .events
        .get(handle)
        .map_err(|why| {
            host::log!("event {handle:#x} is {why:?}: a real driver may crash here");
            Error::INVALID_HANDLE
        })?;
    check_sticky()?;
    event.context()?;
    Ok(event)
}

/// `cuEventCreate`
pub(crate) fn create(flags: u32) -> Result<usize> {
    let context = context::current()?;
    let known = flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) == 0;
    if !known || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
        return Err(Error::INVALID_VALUE);
    }
    let shared = match flags & INTERPROCESS {
        0 => None,
        _ => Counts::new(),
    };
    keep(&context, flags, shared)
}

fn keep(context: &Arc<Context>, flags: u32, shared: Option<Counts>) -> Result<usize> {
    let mut created = 0;
    driver()?.events.insert_with(|handle| {
        created = handle;
        Event {
            context: Arc::downgrade(context),
            flags,
            record: Mutex::default(),
            shared,
        }
    });
    Ok(created)
}

/// `cuIpcOpenEventHandle`: an event of another process.
pub(crate) fn open(handle: &[u8; ipc::BYTES]) -> Result<usize> {
    let context = context::current()?;
    let counts = Counts::open(handle)?;
    keep(&context, INTERPROCESS | DISABLE_TIMING, Some(counts))
}

/// `cuEventDestroy`: returns at once; those who wait for it go on waiting.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    get(handle)?;
    driver()?
        .events
        .remove(handle)
        .map_err(|_| Error::INVALID_HANDLE)?;
    Ok(())
}

/// `cuEventElapsedTime` in milliseconds: 400 unrecorded or without timing, 600 while one of them is pending.
pub(crate) fn elapsed(start: usize, end: usize) -> Result<f32> {
    let (start, end) = (get(start)?, get(end)?);
    if *start.context()? != *end.context()? {
        return Err(Error::INVALID_HANDLE);
    }
    let (Some(from), Some(to)) = (start.time()?, end.time()?) else {
        return Err(Error::NOT_READY);
    };
    observe_fault()?;
    let milliseconds = match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -from.duration_since(to).as_secs_f64() * 1e3,
    };
    Ok(milliseconds as f32)
}

impl Event {
    fn context(&self) -> Result<Arc<Context>> {
        let alive = self.context.upgrade().filter(|c| c.is_alive());
        alive.ok_or(Error::CONTEXT_IS_DESTROYED)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Record>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuIpcGetEventHandle`
    pub(crate) fn export(&self) -> Result<[u8; ipc::BYTES]> {
        if self.flags & INTERPROCESS == 0 {
            return Err(Error::INVALID_HANDLE);
        }
        let shared = self.shared.as_ref().ok_or(Error::NOT_SUPPORTED)?;
        Ok(shared.export())
    }

    /// The node that it last recorded.
    pub(crate) fn node(&self) -> Option<NodeId> {
        if let Some(shared) = &self.shared {
            // Another process may have been the last to record it.
            return (!shared.are_done()).then(|| shared.node());
        }
        self.own_node()
    }

    /// The node that this process last recorded.
    fn own_node(&self) -> Option<NodeId> {
        match *self.lock() {
            Some(Record::Work { node, .. }) => Some(node),
            _ => None,
        }
    }

    /// What it carries if it was last recorded in a capture.
    pub(crate) fn captured(&self) -> Option<Captured> {
        match &*self.lock() {
            Some(Record::Captured(captured)) => Some(captured.clone()),
            _ => None,
        }
    }

    /// The host can neither ask about nor wait for what was captured.
    fn refuse_captured(&self, spoils: bool) -> Result<()> {
        match self.captured() {
            Some(captured) => capture::refuse_event(&captured, spoils),
            None => Ok(()),
        }
    }

    /// The time that it recorded; `None` while it is pending.
    fn time(&self) -> Result<Option<Instant>> {
        if self.flags & DISABLE_TIMING != 0 {
            return Err(Error::INVALID_HANDLE);
        }
        self.refuse_captured(false)?;
        match &*self.lock() {
            Some(Record::Work { time, .. }) => Ok(time.get().copied()),
            _ => Err(Error::INVALID_HANDLE),
        }
    }

    /// A launch of a graph has recorded it.
    pub(crate) fn set_recorded(&self, node: NodeId, time: Arc<OnceLock<Instant>>) {
        *self.lock() = Some(Record::Work { node, time });
    }

    /// `cuEventRecord`: of a stream of its own context.
    pub(crate) fn record(&self, stream: &StreamRef) -> Result<()> {
        if *self.context()? != *stream.context {
            return Err(Error::INVALID_HANDLE);
        }
        if let Some(captured) = capture::record(stream)? {
            *self.lock() = Some(Record::Captured(captured));
            return Ok(());
        }
        let mut record = self.lock();
        let time = Arc::new(OnceLock::new());
        let node = stream.submit(&[], self.record_work(&time), 0);
        *record = Some(Record::Work { node, time });
        Ok(())
    }

    /// `cuCtxRecordEvent`: all work of its context.
    pub(crate) fn record_context(&self, context: &Context) -> Result<()> {
        capture::check_unsafe()?;
        if *self.context()? != *context {
            return Err(Error::INVALID_HANDLE);
        }
        let mut record = self.lock();
        let time = Arc::new(OnceLock::new());
        let work = self.record_work(&time);
        let node = graph().submit(&context.lanes().all_tails(), work, 0);
        *record = Some(Record::Work { node, time });
        Ok(())
    }

    /// What records it.
    pub(crate) fn record_work(&self, time: &Arc<OnceLock<Instant>>) -> Work {
        match &self.shared {
            Some(shared) => shared.record(),
            None => Work::Stamp(time.clone()),
        }
    }

    /// Whether what it recorded is done.
    pub(crate) fn is_done(&self) -> bool {
        if let Some(shared) = &self.shared {
            // Asked first: somebody is to do what this process has recorded.
            let own = self.own_node();
            let own = own.is_none_or(|node| graph().are_done(&[node]));
            return own && (shared.are_done() || graph().fault().is_some());
        }
        self.node().is_none_or(|node| graph().are_done(&[node]))
    }

    /// `cuEventQuery`: 600 while what it recorded is pending; an event never recorded is done.
    pub(crate) fn query(&self) -> Result<()> {
        self.refuse_captured(true)?;
        capture::check_unsafe()?;
        let done = self.is_done();
        observe_fault()?;
        if done { Ok(()) } else { Err(Error::NOT_READY) }
    }

    /// `cuEventSynchronize`
    pub(crate) fn synchronize(&self) -> Result<()> {
        check_sticky()?;
        self.refuse_captured(true)?;
        capture::check_unsafe()?;
        if let Some(node) = self.node() {
            graph().wait(node);
        }
        pool::settle();
        observe_fault()
    }
}
