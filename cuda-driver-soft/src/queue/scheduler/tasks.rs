//! Unfinished tasks, and the rules by which threads take them. All of it is under the lock of the scheduler.

use engine::id_map::IdMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::queue::order;
use crate::queue::work::{Condition, Divisible, TaskId, WORTH_WAKING, Work};
use crate::state::error::Error;

/// An unfinished task.
pub(super) struct Task {
    /// True once a thread has begun to report a fault of the task.
    pub(super) failed: bool,
    /// Number of unfinished tasks that this task waits for.
    pub(super) open: usize,
    /// Tasks that wait for this task.
    pub(super) successors: Vec<TaskId>,
    /// `None` once the task is ready, because [`Tasks`] keeps the work of ready tasks elsewhere.
    pub(super) work: Option<Work>,
    /// True for work that the host may hold up: a host function, also while it runs, or a wait for a condition.
    pub(super) host: bool,
    /// Estimated duration in nanoseconds.
    pub(super) cost: u64,
}

impl Task {
    /// Returns true if the work takes no time: the thread that finishes its last dependency finishes it, too.
    pub(super) fn is_instant(&self) -> bool {
        matches!(self.work, None | Some(Work::Join | Work::Stamp(_)))
    }
}

/// The state of the scheduler, which its lock protects.
#[derive(Default)]
pub(super) struct Tasks {
    /// The last task that was submitted.
    pub(super) last: TaskId,
    /// Unfinished tasks.
    pub(super) tasks: IdMap<TaskId, Task>,
    /// Tasks that any thread may start.
    pub(super) ready: BTreeMap<TaskId, Work>,
    /// Host functions that may start.
    pub(super) host_ready: BTreeMap<TaskId, Work>,
    /// Tasks that wait for a condition, without those that a thread polls.
    pub(super) conditions: BTreeMap<TaskId, Condition>,
    /// Number of threads that poll conditions.
    pub(super) polling: usize,
    /// Kernels that are started and not finished: any thread may help, unless work has failed.
    pub(super) running: VecDeque<Running>,
    /// True while a host function runs.
    pub(super) in_host_function: bool,
    /// Result code of the first fault.
    pub(super) fault: Option<Error>,
    /// Description of the first fault, until a call reports it.
    pub(super) fault_message: String,
    /// Number of threads that sleep until a task is finished.
    pub(super) waiting: usize,
    pub(super) workers: WorkerState,
    /// Kernel output that is not yet written.
    pub(super) printed: Vec<u8>,
    /// True if any kernel has printed.
    pub(super) prints: bool,
    pub(super) discarded: Discarded,
}

/// Values to drop after the lock is released: they may be large, and their destructors may take the lock.
#[derive(Default)]
pub(super) struct Discarded {
    pub(super) work: Vec<Work>,
    pub(super) kernels: Vec<Arc<dyn Divisible>>,
}

/// A kernel that several threads may work on.
pub(super) struct Running {
    pub(super) id: TaskId,
    pub(super) kernel: Arc<dyn Divisible>,
    /// Number of threads that run a piece of it. The kernel may access memory until this is 0.
    pub(super) inside: usize,
}

/// The state of the worker threads and of the thread for host functions.
#[derive(Default)]
pub(super) struct WorkerState {
    /// Number of workers that sleep.
    pub(super) sleeping: usize,
    /// True if a sleeping worker wakes regularly to look for work that no thread has taken.
    pub(super) watching: bool,
    /// True once a thread has begun to start the workers.
    pub(super) started: bool,
    /// True if the system refused all worker threads: threads that wait or query do the work.
    pub(super) refused: bool,
    pub(super) host: HostThread,
}

/// The thread for host functions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HostThread {
    #[default]
    NotStarted,
    Runs,
    /// The system refused the thread: threads that wait or query run host functions.
    Refused,
}

/// Work that a thread has taken.
pub(super) enum TakenWork {
    /// A task that this thread alone runs or starts.
    Once(TaskId, Work),
    /// A share in a kernel that is running.
    Share(TaskId, Arc<dyn Divisible>),
}

/// The threads that a change concerns.
#[derive(Clone, Copy, Default)]
pub(super) struct Wake {
    /// The thread for host functions.
    pub(super) host: bool,
    /// The watcher, for small work and for conditions.
    pub(super) small: bool,
    /// All workers, for large work.
    pub(super) large: bool,
}

impl Wake {
    pub(super) fn add(&mut self, other: Wake) {
        self.host |= other.host;
        self.small |= other.small;
        self.large |= other.large;
    }
}

impl Tasks {
    pub(super) fn are_done(&self, ids: &[TaskId]) -> bool {
        ids.iter().all(|id| !self.tasks.contains_key(id))
    }

    /// Takes the next piece of work: a ready task first, else a share in a running kernel, in turn. After a fault,
    /// takes ready tasks only, without their work.
    pub(super) fn take(&mut self) -> Option<TakenWork> {
        if let Some((id, work)) = self.ready.pop_first() {
            let work = if self.fault.is_some() {
                self.discarded.work.push(work);
                Work::Join
            } else {
                work
            };
            return Some(TakenWork::Once(id, work));
        }
        if self.fault.is_some() {
            return None;
        }
        // Skips finished kernels: if threads kept entering and leaving one, no thread would be the last to leave.
        let at = self.running.iter().position(|r| !r.kernel.finished())?;
        let mut running = self.running.remove(at)?;
        running.inside += 1;
        let piece = TakenWork::Share(running.id, running.kernel.clone());
        self.running.push_back(running);
        Some(piece)
    }

    /// Records that a thread has left a kernel, and returns the number of threads still inside. `None` if the kernel is
    /// not shared between threads.
    pub(super) fn leave(&mut self, id: TaskId) -> Option<usize> {
        let running = self.running.iter_mut().find(|r| r.id == id)?;
        running.inside = running.inside.saturating_sub(1);
        Some(running.inside)
    }

    /// Moves a kernel's printed text here, if there are at least `at_least` bytes of it.
    pub(super) fn keep_text(&mut self, kernel: &dyn Divisible, at_least: usize) {
        let text = kernel.take_text(at_least);
        self.prints |= !text.is_empty();
        self.printed.extend(text);
    }

    /// Abandons work after a fault, when this process cannot use the device any more: running kernels as soon as no
    /// thread is inside, and conditions immediately. Tasks that are not started are finished without running when they
    /// are taken.
    pub(super) fn give_up(&mut self) -> Wake {
        let mut wake = Wake::default();
        if self.fault.is_some() {
            let empty = self.running.iter().filter(|r| r.inside == 0);
            let given_up: Vec<TaskId> = empty.map(|r| r.id).collect();
            let conditions = std::mem::take(&mut self.conditions);
            for id in given_up.into_iter().chain(conditions.keys().copied()) {
                wake.add(self.finish(id));
            }
            let conditions = conditions.into_values().map(Work::Until);
            self.discarded.work.extend(conditions);
        }
        wake
    }

    /// Takes the next host function, with the result code of the fault that it receives. Only one runs at a time.
    pub(super) fn take_host_function(&mut self) -> Option<((TaskId, Work), u32)> {
        if self.in_host_function {
            return None;
        }
        let next = self.host_ready.pop_first()?;
        self.in_host_function = true;
        Some((next, self.fault.map_or(0, |code| code.0)))
    }

    /// Returns the oldest task that a thread could work on.
    pub(super) fn oldest(&self) -> Option<TaskId> {
        let ready = self.ready.first_key_value().map(|(id, _)| *id);
        self.running.iter().map(|r| r.id).chain(ready).min()
    }

    /// Returns true if a thread could still take this task or a share in it.
    pub(super) fn can_be_taken(&self, id: TaskId) -> bool {
        self.ready.contains_key(&id) || self.running.iter().any(|r| r.id == id)
    }

    /// Returns true if there is a running kernel, or a task of [`WORTH_WAKING`] or more among the first 8 ready tasks.
    pub(super) fn has_large_work(&self) -> bool {
        !self.running.is_empty()
            || self
                .ready
                .keys()
                .take(8)
                .any(|id| self.tasks.get(id).is_some_and(|n| n.cost >= WORTH_WAKING))
    }

    /// Makes a task ready whose dependencies are all done. A task that takes no time and, after a fault, a task that
    /// waits for a condition are finished instead.
    pub(super) fn make_ready(&mut self, id: TaskId) -> Wake {
        let Some(task) = self.tasks.get_mut(&id) else {
            return Wake::default();
        };
        if task.is_instant() {
            return self.finish(id);
        }
        let large = task.cost >= WORTH_WAKING;
        match task.work.take() {
            None => self.finish(id),
            Some(work @ Work::Host(_)) => {
                self.host_ready.insert(id, work);
                Wake {
                    host: true,
                    ..Wake::default()
                }
            }
            Some(work @ Work::Until(_)) if self.fault.is_some() => {
                self.discarded.work.push(work);
                self.finish(id)
            }
            Some(Work::Until(condition)) => {
                self.conditions.insert(id, condition);
                // Wakes the watcher, which polls the condition.
                Wake {
                    small: true,
                    ..Wake::default()
                }
            }
            Some(work) => {
                self.ready.insert(id, work);
                Wake {
                    small: true,
                    large,
                    ..Wake::default()
                }
            }
        }
    }

    /// Removes a task and makes the tasks ready that waited only for it. Iterative, because a chain of joins may be
    /// long, and after a fault also a chain of waits for conditions.
    pub(super) fn finish(&mut self, id: TaskId) -> Wake {
        let failed = self.fault.is_some();
        let mut wake = Wake::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let Some(task) = self.tasks.remove(&id) else {
                continue;
            };
            if order::is_on() {
                order::ended(id);
            }
            match task.work {
                Some(Work::Stamp(time)) => {
                    time.get_or_init(Instant::now);
                }
                Some(condition @ Work::Until(_)) => self.discarded.work.push(condition),
                _ => {}
            }
            if let Some(at) = self.running.iter().position(|running| running.id == id)
                && let Some(given_up) = self.running.remove(at)
            {
                self.keep_text(&*given_up.kernel, 1);
                self.discarded.kernels.push(given_up.kernel);
            }
            for next in task.successors {
                let Some(successor) = self.tasks.get_mut(&next) else {
                    continue;
                };
                successor.open -= 1;
                if successor.open > 0 {
                    continue;
                }
                if successor.is_instant() || failed && matches!(successor.work, Some(Work::Until(_))) {
                    todo.push(next);
                } else {
                    wake.add(self.make_ready(next));
                }
            }
        }
        wake
    }
}
