//! Events: points in the order of work, with a time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use cuda_driver_sys::CUevent_flags;

use crate::object::context::Context;
use crate::object::ipc::{self, Counts};
use crate::queue::capture::Captured;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

static TABLE: Table<Event> = Table::new(HandleKind::Event);

/// An event.
pub(crate) struct Event {
    context: Weak<Context>,
    pub(crate) flags: u32,
    record: Mutex<Option<Record>>,
    /// What other processes know of it, too.
    shared: Option<Counts>,
}

/// The last `cuEventRecord`.
enum Record {
    Work {
        task: TaskId,
        time: Arc<OnceLock<Instant>>,
    },
    /// On a stream that captured.
    Captured(Captured),
}

/// The event of this handle, unless it is destroyed.
pub(crate) fn get(handle: usize) -> Result<Arc<Event>> {
    TABLE.get(handle).map_err(|why| {
        host::log!("event {handle:#x} is {why:?}: a real driver may crash here");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Makes an event; with `shared`, other processes know of it too.
pub(crate) fn create(context: &Arc<Context>, flags: u32, shared: Option<Counts>) -> usize {
    let mut created = 0;
    TABLE.insert_with(|handle| {
        created = handle;
        Event {
            context: Arc::downgrade(context),
            flags,
            record: Mutex::default(),
            shared,
        }
    });
    created
}

/// Takes out an event that is destroyed.
pub(crate) fn remove(handle: usize) -> Result<()> {
    let removed = TABLE.remove(handle);
    removed
        .map(drop)
        .map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)
}

impl Event {
    /// Its context, which must live.
    pub(crate) fn context(&self) -> Result<Arc<Context>> {
        let alive = self.context.upgrade().filter(|c| c.is_alive());
        alive.ok_or(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Record>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuIpcGetEventHandle`
    pub(crate) fn export(&self) -> Result<[u8; ipc::BYTES]> {
        if self.flags & CUevent_flags::CU_EVENT_INTERPROCESS.0 == 0 {
            return Err(Error::CUDA_ERROR_INVALID_HANDLE);
        }
        let shared = self
            .shared
            .as_ref()
            .ok_or(Error::CUDA_ERROR_NOT_SUPPORTED)?;
        Ok(shared.export())
    }

    /// The task that it last recorded.
    pub(crate) fn task(&self) -> Option<TaskId> {
        if let Some(shared) = &self.shared {
            // Another process may have been the last to record it.
            return (!shared.are_done()).then(|| shared.task());
        }
        self.own_task()
    }

    /// The task that this process last recorded.
    fn own_task(&self) -> Option<TaskId> {
        match *self.lock() {
            Some(Record::Work { task, .. }) => Some(task),
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

    /// The time that it recorded; `None` while it is pending.
    pub(crate) fn time(&self) -> Result<Option<Instant>> {
        match &*self.lock() {
            Some(Record::Work { time, .. }) => Ok(time.get().copied()),
            _ => Err(Error::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Records it with the task that `submit` makes of its work.
    pub(crate) fn record(&self, submit: impl FnOnce(Work) -> TaskId) {
        let mut record = self.lock();
        let time = Arc::new(OnceLock::new());
        let task = submit(self.record_work(&time));
        *record = Some(Record::Work { task, time });
    }

    /// Notes that it was recorded on a stream that captures.
    pub(crate) fn set_captured(&self, captured: Captured) {
        *self.lock() = Some(Record::Captured(captured));
    }

    /// A launch of a graph has recorded it.
    pub(crate) fn set_recorded(&self, task: TaskId, time: Arc<OnceLock<Instant>>) {
        *self.lock() = Some(Record::Work { task, time });
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
            let own = self.own_task();
            let own = own.is_none_or(|task| scheduler().are_done(&[task]));
            return own && (shared.are_done() || scheduler().fault().is_some());
        }
        self.task().is_none_or(|task| scheduler().are_done(&[task]))
    }
}
