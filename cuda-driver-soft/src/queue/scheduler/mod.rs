//! The scheduler: all work of all devices, as one set of tasks for the whole process.
//!
//! A task is a piece of work that waits for other tasks. Streams, events and the rules of the legacy stream are only
//! dependencies between tasks. Threads take ready tasks in the order of their submission. A thread that waits for a
//! task runs ready work itself, because a hand-over to a sleeping thread and back costs more than most kernels. A pool
//! of workers ([`threads`]) takes large work, and small work that no thread has taken for a while. Host functions run
//! on one thread of their own.

use std::collections::HashSet;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::queue::order;
use crate::queue::scheduler::tasks::{HostThread, Task, Tasks};
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::gate;
use host::console;

mod conditions;
mod run;
mod tasks;
#[cfg(test)]
mod tests;
mod threads;

/// The tasks, and the threads that sleep until they change.
#[derive(Default)]
pub(crate) struct Scheduler {
    state: Mutex<Tasks>,
    /// Signalled when tasks have changed, for threads that wait for a task.
    done: Condvar,
    /// Signalled when there is work for workers.
    work: Condvar,
    /// Signalled when there is a host function to run.
    host: Condvar,
    /// Held while kernel output is written, so that outputs keep their order.
    writing: Mutex<()>,
}

/// Returns the scheduler of the process.
pub(crate) fn scheduler() -> &'static Scheduler {
    static SCHEDULER: OnceLock<Scheduler> = OnceLock::new();
    SCHEDULER.get_or_init(Scheduler::default)
}

/// Returns the fault of failed work, as a query or a synchronisation does. From then on, all calls that need a context
/// return it.
pub(crate) fn observe_fault() -> Result<()> {
    if let Some(code) = scheduler().fault() {
        let message = mem::take(&mut scheduler().lock().fault_message);
        if !message.is_empty() {
            host::messages::report(&message);
        }
        gate::report(code);
    }
    gate::healthy()
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task that waits for `after`. `cost` is its estimated duration in nanoseconds.
    pub(crate) fn submit(&self, after: &[TaskId], work: Work, cost: u64) -> TaskId {
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        if order::is_on() {
            order::submitted(id, after, &work);
        }
        let mut open = 0;
        for before in after {
            if let Some(task) = state.tasks.get_mut(before) {
                task.successors.push(id);
                open += 1;
            }
        }
        state.tasks.insert(
            id,
            Task {
                failed: false,
                open,
                successors: Vec::new(),
                host: matches!(work, Work::Host(_) | Work::Until(_)),
                work: Some(work),
                cost,
            },
        );
        if open == 0 {
            let wake = state.make_ready(id);
            self.unlock(state, wake);
        }
        id
    }

    /// Returns true if a task is done; its output may not be written yet.
    pub(crate) fn is_done(&self, id: TaskId) -> bool {
        id == 0 || !self.lock().tasks.contains_key(&id)
    }

    /// Returns true if all of these tasks are done, and then writes kernel output. If they are not, polls conditions
    /// and, without workers, does a piece of work.
    pub(crate) fn are_done(&self, ids: &[TaskId]) -> bool {
        let mut state = self.lock();
        if !state.are_done(ids) {
            if !state.conditions.is_empty() {
                drop(state);
                self.poll_conditions();
                state = self.lock();
            }
            state = self.help(state);
        }
        let done = state.are_done(ids);
        if done {
            self.write_printed(state);
        }
        done
    }

    /// Returns the tasks that wait for a host function or a condition, directly or through other tasks.
    pub(crate) fn behind_host_functions(&self) -> HashSet<TaskId> {
        let state = self.lock();
        let hosts = state.tasks.iter().filter(|(_, task)| task.host);
        let mut todo: Vec<TaskId> = hosts.map(|(&id, _)| id).collect();
        let mut behind = HashSet::new();
        while let Some(task) = todo.pop().and_then(|id| state.tasks.get(&id)) {
            let new = task.successors.iter().filter(|&&id| behind.insert(id));
            todo.extend(new);
        }
        behind
    }

    /// Does a piece of the pending work if the system refused the threads: otherwise the work would never be done for a
    /// program that only queries.
    fn help<'g>(&'g self, mut state: MutexGuard<'g, Tasks>) -> MutexGuard<'g, Tasks> {
        if state.workers.host == HostThread::Refused
            && let Some((function, fault)) = state.take_host_function()
        {
            drop(state);
            gate::as_host_function(|| self.run_host_function(function, fault));
            return self.lock();
        }
        if state.workers.refused
            && let Some(piece) = state.take()
        {
            drop(state);
            self.run(piece);
            return self.lock();
        }
        state
    }

    /// Writes the kernel output that was kept. The NVIDIA driver also writes it in the thread that queries or waits for
    /// the work.
    fn write_printed(&self, state: MutexGuard<'_, Tasks>) {
        let prints = state.prints;
        drop(state);
        if prints {
            // Taken even if another thread has the text: that thread may still be writing.
            let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let text = std::mem::take(&mut self.lock().printed);
            if !text.is_empty() {
                console::write(console::Stream::Output, &text);
            }
        }
    }

    /// Returns the result code of the first fault, if work has failed.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.lock().fault
    }

    /// Waits until a task is done, does ready work in the meantime, and writes kernel output.
    pub(crate) fn wait(&self, id: TaskId) {
        self.wait_all(&[id]);
    }

    /// Waits until all of these tasks are done, and writes kernel output.
    pub(crate) fn wait_all(&self, ids: &[TaskId]) {
        for &id in ids {
            self.wait_until_done(id);
        }
        if order::is_on() {
            order::waited(ids);
        }
        self.write_printed(self.lock());
    }

    fn wait_until_done(&self, id: TaskId) {
        let mut state = self.lock();
        let mut idle_turns = 0;
        while state.tasks.contains_key(&id) {
            // Host functions come first: a running kernel may wait for one.
            if state.workers.host == HostThread::Refused
                && let Some((function, fault)) = state.take_host_function()
            {
                drop(state);
                gate::as_host_function(|| self.run_host_function(function, fault));
                state = self.lock();
                continue;
            }
            if idle_turns <= state.running.len()
                && let Some(piece) = state.take()
            {
                drop(state);
                let progress = self.run(piece);
                state = self.lock();
                idle_turns = if progress { 0 } else { idle_turns + 1 };
                continue;
            }
            if !state.conditions.is_empty() {
                drop(state);
                let held = self.poll_conditions();
                state = self.lock();
                if held || !state.tasks.contains_key(&id) {
                    continue;
                }
            }
            state.waiting += 1;
            // The time limit is needed because no signal tells that blocks of a running kernel can be taken again.
            let (guard, _) = self
                .done
                .wait_timeout(state, Duration::from_millis(1))
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.waiting -= 1;
            idle_turns = 0;
        }
    }
}
