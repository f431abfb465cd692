//! Events: points in the order of work that calls and streams can wait for, with the time at which work reached them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use cuda_driver_sys::CUevent_flags;

use crate::object::context::Context;
use crate::object::ipc::{self, EventCounters};
use crate::object::leak;
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
    record: Mutex<Option<EventRecord>>,
    /// Counters shared with other processes, for an interprocess event.
    shared: Option<EventCounters>,
}

/// The last record of an event.
enum EventRecord {
    Work {
        task: TaskId,
        time: Arc<OnceLock<Instant>>,
    },
    /// Recorded on a capturing stream.
    Captured(Captured),
}

/// Returns the event with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Event>> {
    TABLE.get(handle).map_err(|missing| {
        host::log!("event {handle:#x} {missing}; the NVIDIA driver may crash here");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Creates an event; with `shared`, an interprocess one.
pub(crate) fn create(context: &Arc<Context>, flags: u32, shared: Option<EventCounters>) -> usize {
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
    leak::note("event", &TABLE, created, Some(context));
    created
}

/// Removes an event that is being destroyed.
pub(crate) fn remove(handle: usize) -> Result<()> {
    let removed = TABLE.remove(handle);
    removed.map(drop).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)
}

impl Event {
    /// Returns the event's context, or `CUDA_ERROR_CONTEXT_IS_DESTROYED` if it is not live.
    pub(crate) fn context(&self) -> Result<Arc<Context>> {
        let alive = self.context.upgrade().filter(|c| c.is_alive());
        alive.ok_or(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<EventRecord>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuIpcGetEventHandle`
    pub(crate) fn export(&self) -> Result<[u8; ipc::BYTES]> {
        if self.flags & CUevent_flags::CU_EVENT_INTERPROCESS.0 == 0 {
            return Err(Error::CUDA_ERROR_INVALID_HANDLE);
        }
        let shared = self.shared.as_ref().ok_or(Error::CUDA_ERROR_NOT_SUPPORTED)?;
        Ok(shared.export())
    }

    /// Returns a task that is done when the last record is, or `None` if there is nothing to wait for.
    pub(crate) fn task(&self) -> Option<TaskId> {
        if let Some(shared) = &self.shared {
            // Another process may have recorded the event last.
            return (!shared.are_done()).then(|| shared.task());
        }
        self.own_task()
    }

    /// Returns the task of this process's last record.
    fn own_task(&self) -> Option<TaskId> {
        match *self.lock() {
            Some(EventRecord::Work { task, .. }) => Some(task),
            _ => None,
        }
    }

    /// Returns the captured dependencies if the event was last recorded on a capturing stream.
    pub(crate) fn captured(&self) -> Option<Captured> {
        match &*self.lock() {
            Some(EventRecord::Captured(captured)) => Some(captured.clone()),
            _ => None,
        }
    }

    /// Returns the recorded time, or `None` while the record is pending. Returns `CUDA_ERROR_INVALID_HANDLE` if the
    /// event was not recorded, or was last recorded on a capturing stream.
    pub(crate) fn time(&self) -> Result<Option<Instant>> {
        match &*self.lock() {
            Some(EventRecord::Work { time, .. }) => Ok(time.get().copied()),
            _ => Err(Error::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Records the event with the task that `submit` creates from its work.
    pub(crate) fn record(&self, submit: impl FnOnce(Work) -> TaskId) {
        let mut record = self.lock();
        let time = Arc::new(OnceLock::new());
        let task = submit(self.record_work(&time));
        *record = Some(EventRecord::Work { task, time });
    }

    /// Sets the record of a capturing stream.
    pub(crate) fn set_captured(&self, captured: Captured) {
        *self.lock() = Some(EventRecord::Captured(captured));
    }

    /// Sets the record made by a graph launch.
    pub(crate) fn set_recorded(&self, task: TaskId, time: Arc<OnceLock<Instant>>) {
        *self.lock() = Some(EventRecord::Work { task, time });
    }

    /// Returns the work that records the event and stores the time in `time`. An interprocess event has no time.
    pub(crate) fn record_work(&self, time: &Arc<OnceLock<Instant>>) -> Work {
        match &self.shared {
            Some(shared) => shared.record(),
            None => Work::Stamp(time.clone()),
        }
    }

    /// Returns true if the last record is done, or if there is none. Also returns the task of this process that was
    /// checked: another thread may record the event after the check.
    pub(crate) fn check(&self) -> (bool, Option<TaskId>) {
        // This process's task is checked first, also for an interprocess event: the check makes the scheduler run it.
        let own = self.own_task();
        let own_done = own.is_none_or(|task| scheduler().are_done(&[task]));
        let done = match &self.shared {
            // After a fault, the record may be complete only later: when the scheduler drops the work.
            Some(shared) => own_done && (shared.are_done() || scheduler().fault().is_some()),
            None => own_done,
        };
        (done, own)
    }
}
