//! Streams: queues of work on a device.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use cuda_driver_sys::CUstream_flags;

use crate::object::context::{self, Context};
use crate::object::green::{self, GreenContext};
use crate::object::leak;
use crate::queue::capture::{self, StreamKey};
use crate::queue::scheduler::scheduler;
use crate::queue::streams::QueueId;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::gate::in_host_function;
use crate::state::handle::{HandleKind, Table};

/// Least and greatest priority, as returned by `cuCtxGetStreamPriorityRange`.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);

/// `CU_STREAM_LEGACY`
pub(crate) const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`
pub(crate) const PER_THREAD: usize = 2;
pub(crate) const NON_BLOCKING: u32 = CUstream_flags::CU_STREAM_NON_BLOCKING.0;

/// The stream that NULL refers to in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullStream {
    /// The legacy stream, in plain functions.
    Legacy,
    /// The calling thread's stream, in the `_ptds` and `_ptsz` functions.
    PerThread,
}

static TABLE: Table<Stream> = Table::new(HandleKind::Stream);

/// A stream created by the program.
pub(crate) struct Stream {
    handle: usize,
    pub(crate) context: Weak<Context>,
    /// Handle of the context that the stream was created in: for a green context, the green context's own.
    pub(crate) context_handle: usize,
    /// ID of the context that owns the stream's work: the primary context for a green context.
    pub(crate) owner: u64,
    /// Handle of the green context that the stream was created in; 0 if none.
    pub(crate) green: usize,
    flags: u32,
    priority: AtomicI32,
}

/// A stream named by a call: created, legacy or per-thread.
#[derive(Clone, Debug)]
pub(crate) struct StreamRef {
    pub(crate) context: Arc<Context>,
    /// Handle of the stream's green context; 0 if none.
    pub(crate) green: usize,
    pub(crate) queue: QueueId,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
}

/// Returns the stream with this handle. The legacy and the per-thread stream, which NULL can name, too, need a current
/// context, so host functions cannot use them (`CUDA_ERROR_NOT_PERMITTED`); a created stream needs none.
pub(crate) fn resolve(handle: usize, mode: NullStream) -> Result<StreamRef> {
    let default = |queue| {
        if in_host_function() {
            // Host functions have no current context.
            return Err(Error::CUDA_ERROR_NOT_PERMITTED);
        }
        let context = context::current_exactly()?;
        Ok(StreamRef {
            green: green::of(&context).map_or(0, |green| green.handle),
            context: context.owner()?,
            queue,
            flags: 0,
            priority: PRIORITIES.0,
        })
    };
    match (handle, mode) {
        (LEGACY, _) | (0, NullStream::Legacy) => default(QueueId::Legacy),
        (PER_THREAD, _) | (0, NullStream::PerThread) => default(QueueId::of_this_thread()),
        _ => {
            let stream = created(handle)?;
            let alive = stream.context.upgrade().filter(|c| c.is_alive());
            let context = alive.ok_or(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
            if stream.green != 0 {
                green::get(stream.green)?;
            }
            Ok(StreamRef {
                context,
                green: stream.green,
                queue: QueueId::Created(handle),
                flags: stream.flags,
                priority: stream.priority.load(Relaxed),
            })
        }
    }
}

/// Returns the created stream with this handle.
pub(crate) fn created(handle: usize) -> Result<Arc<Stream>> {
    TABLE.get(handle).map_err(|missing| {
        host::log!("stream {handle:#x} {missing}; the NVIDIA driver may crash here");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Returns true if this queue is that of a stream created in the green context.
pub(crate) fn is_in_green(queue: QueueId, green: &GreenContext) -> bool {
    match queue {
        QueueId::Created(handle) => TABLE.get(handle).is_ok_and(|stream| stream.green == green.handle),
        _ => false,
    }
}

/// Creates a stream, with the priority clamped to the valid range. If the stream is created in a green context,
/// `context` is its primary context.
pub(crate) fn create(context: &Arc<Context>, green: Option<&GreenContext>, flags: u32, priority: i32) -> usize {
    let stream = TABLE.insert_with(|handle| Stream {
        handle,
        context: Arc::downgrade(context),
        owner: context.id(),
        context_handle: green.map_or(context.handle, |green| green.context.handle),
        green: green.map_or(0, |green| green.handle),
        flags,
        priority: AtomicI32::new(priority.clamp(PRIORITIES.1, PRIORITIES.0)),
    });
    if flags & NON_BLOCKING != 0 {
        let queue = QueueId::Created(stream.handle);
        context.queues().add_non_blocking(queue);
    }
    leak::note("stream", &TABLE, stream.handle, Some(context));
    stream.handle
}

/// Removes a stream that is being destroyed. Its queued work still runs.
pub(crate) fn remove(stream: &Stream) -> Result<()> {
    if let Some(context) = stream.context.upgrade() {
        context.queues().remove(QueueId::Created(stream.handle));
    }
    let removed = TABLE.remove(stream.handle);
    removed.map(drop).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)
}

impl StreamRef {
    /// Returns the legacy or the per-thread stream of a context, for a test.
    #[cfg(test)]
    pub(crate) fn of_default(context: Arc<Context>, queue: QueueId) -> Self {
        Self {
            context,
            green: 0,
            queue,
            flags: 0,
            priority: 0,
        }
    }

    /// Appends work to the stream; it also runs after `after`. `cost` estimates its duration in nanoseconds.
    pub(crate) fn submit(&self, after: &[TaskId], work: Work, cost: u64) -> TaskId {
        self.context.queues().submit(self.queue, after, work, cost)
    }

    /// Returns an error if another thread has destroyed the stream or ended its context or green context since the
    /// stream was looked up.
    pub(crate) fn check_live(&self) -> Result<()> {
        if let QueueId::Created(handle) = self.queue {
            created(handle)?;
        }
        if self.green != 0 {
            green::get(self.green)?;
        }
        self.context.check_alive()
    }

    /// Returns true if the stream is capturing.
    pub(crate) fn is_capturing(&self) -> bool {
        capture::is_capturing(self.key())
    }

    /// Returns the key of the stream in captures.
    pub(crate) fn key(&self) -> StreamKey {
        StreamKey {
            context: self.context.id(),
            queue: self.queue,
            blocking: self.is_blocking(),
        }
    }

    /// Returns true for the legacy stream.
    pub(crate) fn is_legacy(&self) -> bool {
        self.queue == QueueId::Legacy
    }

    /// Returns true if the stream and the legacy stream synchronise with each other.
    pub(crate) fn is_blocking(&self) -> bool {
        self.queue != QueueId::Legacy && self.flags & NON_BLOCKING == 0
    }

    /// Sets the priority of a created stream, clamped to the valid range. Has no effect on other streams.
    pub(crate) fn set_priority(&self, priority: i32) {
        if let QueueId::Created(handle) = self.queue
            && let Ok(stream) = created(handle)
        {
            let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
            stream.priority.store(priority, Relaxed);
        }
    }

    /// Returns a number that no other stream of the process has.
    pub(crate) fn id(&self) -> u64 {
        match self.queue {
            QueueId::Legacy => self.context.id() << 8 | LEGACY as u64,
            QueueId::PerThread(thread) => (self.context.id() << 8 | PER_THREAD as u64).wrapping_add(thread << 32),
            QueueId::Created(handle) => handle as u64,
        }
    }

    /// Returns the tasks that must be done for the stream to be idle.
    pub(crate) fn tails(&self) -> Vec<TaskId> {
        self.context.queues().tails(self.queue)
    }

    /// Returns true if new work of the stream would not wait for other work.
    pub(crate) fn starts_at_once(&self) -> bool {
        let before = self.context.queues().before(self.queue);
        scheduler().are_done(&before)
    }

    /// Waits for all work of the stream and ignores its faults.
    pub(crate) fn drain(&self) {
        scheduler().wait_all(&self.tails());
    }
}
