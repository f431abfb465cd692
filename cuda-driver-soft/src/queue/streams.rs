//! The order of work within a context: the dependencies of a new task on a stream.
//!
//! Each stream is a queue of its own. The legacy stream waits for all blocking streams, and they wait for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine::id_map::IdMap;

use crate::queue::order;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};

/// A sequence of work in a context: a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum QueueId {
    /// The stream that NULL names in the plain functions.
    Legacy,
    /// The stream that NULL names in the `_ptds` and `_ptsz` functions: one per thread.
    PerThread(u64),
    /// A created stream, by its handle.
    Created(usize),
}

impl QueueId {
    /// Returns the calling thread's own stream.
    pub(crate) fn of_this_thread() -> QueueId {
        thread_local!(static ID: Cell<u64> = const { Cell::new(0) });
        static LAST: AtomicU64 = AtomicU64::new(0);
        order::note_several();
        if ID.get() == 0 {
            ID.set(LAST.fetch_add(1, Relaxed) + 1);
        }
        QueueId::PerThread(ID.get())
    }
}

/// The end of a queue.
#[derive(Clone, Copy)]
struct Tail {
    /// The last task; 0 for none.
    task: TaskId,
    /// True if this stream and the legacy stream wait for each other.
    blocking: bool,
}

/// The last task of each queue of a context.
#[derive(Default)]
pub(crate) struct Queues {
    /// The last task of the legacy stream; 0 for none.
    legacy: TaskId,
    tails: IdMap<QueueId, Tail>,
    /// The task that all new work waits for; 0 for none. Synchronisations and queries of a stream do not.
    gate: TaskId,
    /// Last tasks of destroyed streams.
    orphans: Vec<Tail>,
    /// The number of queues at which idle queues are removed.
    sweep_at: usize,
    /// The number of last tasks of destroyed streams at which those that are done are removed.
    sweep_orphans_at: usize,
}

/// Returns true if a task is done, and its place in the order of work is not needed.
pub(crate) fn is_forgettable(task: TaskId) -> bool {
    scheduler().is_done(task) && !order::is_open(task)
}

/// Below this number of queues, idle queues are kept.
const FEW: usize = 64;

impl Queues {
    /// Adds a stream that does not synchronise with the legacy stream.
    pub(crate) fn add_non_blocking(&mut self, queue: QueueId) {
        self.tails.insert(
            queue,
            Tail {
                task: 0,
                blocking: false,
            },
        );
    }

    /// Removes a destroyed stream; its queued work still runs.
    pub(crate) fn remove(&mut self, queue: QueueId) {
        if let Some(tail) = self.tails.remove(&queue) {
            // Not each time: many of them may be pending.
            if self.orphans.len() >= self.sweep_orphans_at.max(FEW) {
                self.orphans.retain(|o| !is_forgettable(o.task));
                self.sweep_orphans_at = 2 * self.orphans.len();
            }
            self.orphans.push(tail);
        }
    }

    /// Appends work to a queue; it also waits for the tasks `after`. `cost` is its estimated duration in nanoseconds.
    pub(crate) fn submit(&mut self, queue: QueueId, after: &[TaskId], work: Work, cost: u64) -> TaskId {
        let mut before = self.before(queue);
        before.extend_from_slice(after);
        if let QueueId::Legacy = queue {
            self.legacy = scheduler().submit(&before, work, cost);
            return self.legacy;
        }
        self.sweep();
        let tail = self.tails.entry(queue).or_insert(Tail {
            task: 0,
            blocking: true,
        });
        tail.task = scheduler().submit(&before, work, cost);
        tail.task
    }

    /// Makes all new work wait for a task.
    pub(crate) fn hold_until(&mut self, task: TaskId) {
        let before = [self.gate, task];
        self.gate = scheduler().submit(&before, Work::Join, 0);
    }

    /// Removes idle queues once there are many, because per-thread queues are not removed when their thread ends.
    /// Non-blocking queues are kept: a removed queue is created again as a blocking one.
    fn sweep(&mut self) {
        if self.tails.len() < self.sweep_at.max(FEW) {
            return;
        }
        self.tails
            .retain(|_, tail| !tail.blocking || !is_forgettable(tail.task));
        self.sweep_at = 2 * self.tails.len();
    }

    /// Returns the tasks that must be done for a queue to be idle. For the legacy stream, this includes the tasks of
    /// blocking streams. Its last task waits for all older tasks of blocking streams, so those are left out: otherwise
    /// many streams with pending work would take memory for each pair of them.
    pub(crate) fn tails(&self, queue: QueueId) -> Vec<TaskId> {
        match queue {
            QueueId::Legacy => {
                let blocking = self
                    .tails
                    .values()
                    .chain(&self.orphans)
                    .filter(|t| t.blocking && t.task > self.legacy);
                blocking
                    .map(|t| t.task)
                    .chain((self.legacy != 0).then_some(self.legacy))
                    .collect()
            }
            _ => {
                let tail = self.tails.get(&queue).map(|t| t.task);
                tail.filter(|&task| task != 0).into_iter().collect()
            }
        }
    }

    /// Returns the task that all new work waits for, or 0.
    pub(crate) fn gate(&self) -> TaskId {
        self.gate
    }

    /// Returns the tasks that new work of a queue waits for.
    pub(crate) fn before(&self, queue: QueueId) -> Vec<TaskId> {
        let mut before = self.tails(queue);
        let is_blocking = self.tails.get(&queue).is_none_or(|tail| tail.blocking);
        if queue != QueueId::Legacy && is_blocking {
            before.push(self.legacy);
        }
        before.push(self.gate);
        before.retain(|&task| task != 0);
        before
    }

    /// Returns the last tasks of all queues and of destroyed streams, and the gate.
    pub(crate) fn all_tails(&self) -> Vec<TaskId> {
        let all = self
            .tails
            .values()
            .chain(&self.orphans)
            .map(|t| t.task)
            .chain([self.legacy, self.gate]);
        all.filter(|&task| task != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_legacy_stream_waits_only_for_newer_tasks() {
        static RELEASED: AtomicBool = AtomicBool::new(false);
        let mut queues = Queues::default();
        let wait = || Work::Until(Box::new(|| Ok(RELEASED.load(Relaxed))));
        for stream in 0..100 {
            let queue = QueueId::Created(stream);
            let first = queues.submit(queue, &[], wait(), 0);
            assert!(queues.tails(QueueId::Legacy).contains(&first));
            let legacy = queues.submit(QueueId::Legacy, &[], Work::Join, 0);
            assert_eq!(queues.tails(QueueId::Legacy), [legacy]);
            assert!(!scheduler().is_done(legacy));
        }
        RELEASED.store(true, Relaxed);
        scheduler().wait_all(&queues.all_tails());
    }

    #[test]
    fn many_destroyed_streams_with_pending_work_are_kept_until_it_is_done() {
        const MANY: usize = 50_000;
        static RELEASED: AtomicBool = AtomicBool::new(false);
        let mut queues = Queues::default();
        let wait = Work::Until(Box::new(|| Ok(RELEASED.load(Relaxed))));
        let held = queues.submit(QueueId::PerThread(1), &[], wait, 0);
        for stream in 0..MANY {
            let queue = QueueId::Created(stream);
            queues.submit(queue, &[held], Work::Join, 0);
            queues.remove(queue);
        }
        assert_eq!(queues.orphans.len(), MANY);
        RELEASED.store(true, Relaxed);
        scheduler().wait_all(&queues.all_tails());
        for stream in 0..2 * MANY {
            let queue = QueueId::Created(stream);
            let task = queues.submit(queue, &[], Work::Join, 0);
            scheduler().wait(task);
            queues.remove(queue);
        }
        assert!(queues.orphans.len() <= FEW, "{}", queues.orphans.len());
    }

    #[test]
    fn idle_queues_of_ended_threads_are_removed() {
        let mut queues = Queues::default();
        queues.add_non_blocking(QueueId::Created(1));
        for thread in 0..10_000 {
            let task = queues.submit(QueueId::PerThread(thread), &[], Work::Join, 0);
            scheduler().wait(task);
        }
        assert!(queues.tails.len() <= 2 * FEW, "{}", queues.tails.len());
        assert!(queues.tails.get(&QueueId::Created(1)).is_some_and(|t| !t.blocking));
    }
}
