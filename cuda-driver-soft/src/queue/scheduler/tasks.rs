//! The tasks that are not done, and the rules by which threads take them. All of it is under the lock of the scheduler.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::queue::work::{Condition, Divisible, TaskId, WORTH_WAKING, Work};
use crate::state::error::Error;
use crate::state::hash::IdMap;

pub(super) struct Task {
    /// Somebody is about to report its fault, and to finish it.
    pub(super) failed: bool,
    pub(super) open: usize,
    pub(super) successors: Vec<TaskId>,
    pub(super) work: Option<Work>,
    /// A host function, also when it was taken to be run; or anything else that the host may hold up.
    pub(super) host: bool,
    pub(super) cost: u64,
}

impl Task {
    /// It takes no time: whoever finishes the last task before it finishes it too.
    pub(super) fn is_instant(&self) -> bool {
        matches!(self.work, None | Some(Work::Join | Work::Stamp(_)))
    }
}

#[derive(Default)]
pub(super) struct Tasks {
    pub(super) last: TaskId,
    /// Tasks that are not done.
    pub(super) tasks: IdMap<TaskId, Task>,
    /// Tasks that any thread may start.
    pub(super) ready: BTreeMap<TaskId, Work>,
    /// Host functions that may start.
    pub(super) host_ready: BTreeMap<TaskId, Work>,
    /// What waits for a condition. While somebody asks, it is not here.
    pub(super) conditions: BTreeMap<TaskId, Condition>,
    /// Kernels that were started and are not finished: any thread may help, unless work has failed.
    pub(super) running: VecDeque<Running>,
    /// A host function is being run.
    pub(super) in_host_function: bool,
    /// Code of the first fault.
    pub(super) fault: Option<Error>,
    pub(super) waiting: usize,
    pub(super) workers: Idle,
    /// What kernels have printed and nobody has written.
    pub(super) printed: Vec<u8>,
    /// There are kernels that print.
    pub(super) prints: bool,
    pub(super) unwanted: Unwanted,
}

/// What is to be dropped, but not under the lock: it may be large, and what it owns may want the lock.
#[derive(Default)]
pub(super) struct Unwanted {
    pub(super) work: Vec<Work>,
    pub(super) kernels: Vec<Arc<dyn Divisible>>,
}

/// A kernel that several threads may be at work on.
pub(super) struct Running {
    pub(super) id: TaskId,
    pub(super) kernel: Arc<dyn Divisible>,
    /// Threads that are in a piece of it: as long as there are any, it accesses memory.
    pub(super) inside: usize,
}

/// Who sleeps, so that nobody is woken in vain.
#[derive(Default)]
pub(super) struct Idle {
    pub(super) sleeping: usize,
    /// A worker looks every now and then whether work lies about.
    pub(super) watching: bool,
    pub(super) started: bool,
    /// The system gave no thread: those who wait or ask do the work.
    pub(super) refused: bool,
    pub(super) host: HostThread,
}

/// The thread for host functions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HostThread {
    #[default]
    NotStarted,
    Runs,
    /// The system did not give it: those who wait or ask run host functions.
    Refused,
}

/// What a thread took.
pub(super) enum Piece {
    Once(TaskId, Work),
    Some(TaskId, Arc<dyn Divisible>),
}

/// Whom a change concerns.
#[derive(Clone, Copy, Default)]
pub(super) struct Wake {
    pub(super) host: bool,
    pub(super) small: bool,
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

    /// The next piece of work: what is ready first, then a share in what runs, in turn.
    pub(super) fn take(&mut self) -> Option<Piece> {
        if let Some((id, work)) = self.ready.pop_first() {
            let work = if self.fault.is_some() {
                self.unwanted.work.push(work);
                Work::Join
            } else {
                work
            };
            return Some(Piece::Once(id, work));
        }
        if self.fault.is_some() {
            return None;
        }
        // Not one that is done: if threads went in and out of it, none of them would be the last to leave.
        let at = self.running.iter().position(|r| !r.kernel.finished())?;
        let mut running = self.running.remove(at)?;
        running.inside += 1;
        let piece = Piece::Some(running.id, running.kernel.clone());
        self.running.push_back(running);
        Some(piece)
    }

    /// A thread has left a kernel: how many are still inside. `None` if it is not among those that several threads share.
    pub(super) fn leave(&mut self, id: TaskId) -> Option<usize> {
        let running = self.running.iter_mut().find(|r| r.id == id)?;
        running.inside = running.inside.saturating_sub(1);
        Some(running.inside)
    }

    /// Takes over what a kernel has printed, if that is at least so many bytes.
    pub(super) fn keep_text(&mut self, kernel: &dyn Divisible, at_least: usize) {
        let text = kernel.take_text(at_least);
        self.prints |= !text.is_empty();
        self.printed.extend(text);
    }

    /// After a fault the device is lost to this process: kernels that run are given up as soon as no thread is inside, and
    /// conditions at once; what waits is dropped when its turn comes.
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
            self.unwanted.work.extend(conditions);
        }
        wake
    }

    /// The next host function, and the code of the fault that it is told. One at a time.
    pub(super) fn take_host_function(&mut self) -> Option<((TaskId, Work), u32)> {
        if self.in_host_function {
            return None;
        }
        let next = self.host_ready.pop_first()?;
        self.in_host_function = true;
        Some((next, self.fault.map_or(0, |code| code.0)))
    }

    /// The oldest work that anybody could do.
    pub(super) fn oldest(&self) -> Option<TaskId> {
        let ready = self.ready.first_key_value().map(|(id, _)| *id);
        self.running.iter().map(|r| r.id).chain(ready).min()
    }

    /// Whether anybody could still do this work.
    pub(super) fn lies_about(&self, id: TaskId) -> bool {
        self.ready.contains_key(&id) || self.running.iter().any(|r| r.id == id)
    }

    pub(super) fn has_large_work(&self) -> bool {
        !self.running.is_empty()
            || self
                .ready
                .keys()
                .take(8)
                .any(|id| self.tasks.get(id).is_some_and(|n| n.cost >= WORTH_WAKING))
    }

    /// A task has nothing left to wait for.
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
            Some(Work::Until(_)) if self.fault.is_some() => self.finish(id),
            Some(Work::Until(condition)) => {
                self.conditions.insert(id, condition);
                // Somebody is to ask.
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

    /// Takes a task out and releases those that waited for it. Without recursion: a chain of joins may be long.
    pub(super) fn finish(&mut self, id: TaskId) -> Wake {
        let mut wake = Wake::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let Some(task) = self.tasks.remove(&id) else {
                continue;
            };
            if let Some(Work::Stamp(time)) = task.work {
                time.get_or_init(Instant::now);
            }
            if let Some(at) = self.running.iter().position(|running| running.id == id)
                && let Some(given_up) = self.running.remove(at)
            {
                self.keep_text(&*given_up.kernel, 1);
                self.unwanted.kernels.push(given_up.kernel);
            }
            for next in task.successors {
                let Some(successor) = self.tasks.get_mut(&next) else {
                    continue;
                };
                successor.open -= 1;
                if successor.open > 0 {
                    continue;
                }
                if successor.is_instant() {
                    todo.push(next);
                } else {
                    wake.add(self.make_ready(next));
                }
            }
        }
        wake
    }
}
