//! Runs pieces of work, and signals the changes to other threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use crate::queue::order;
use crate::queue::scheduler::tasks::{HostThread, Running, TakenWork, Tasks, Wake};
use crate::queue::scheduler::{Scheduler, scheduler, threads};
use crate::queue::work::{Continuation, Divisible, Fault, TaskId, WORTH_WAKING, Work};
use crate::state::error::Error;
use crate::state::gate;
use host::console;

/// Kernel output of at least this many bytes is written immediately; less is kept until a thread waits, queries or runs
/// a host function.
const MUCH_TEXT: usize = 1 << 20;

/// Returns the fault of a task whose work has panicked.
pub(super) fn panic_fault() -> Fault {
    Fault {
        code: Error::CUDA_ERROR_UNKNOWN,
        message: "internal error: a panic in the driver's work; its message is on standard error".into(),
        details: Vec::new(),
        stderr: None,
    }
}

impl Scheduler {
    /// Runs a piece of work. Returns false if [`Divisible::piece`] did and the task is not finished. A panic inside
    /// becomes a fault: the task must end, or threads that wait for it would never return.
    pub(super) fn run(&self, piece: TakenWork) -> bool {
        let (TakenWork::Once(id, _) | TakenWork::Share(id, _)) = &piece;
        let id = *id;
        match catch_unwind(AssertUnwindSafe(|| self.run_piece(piece))) {
            Ok(progress) => progress,
            Err(_) => {
                self.report(id, panic_fault());
                let mut state = self.lock();
                let mut wake = Wake::default();
                // Other threads may be inside the same kernel: the last to leave finishes it.
                if state.leave(id).is_none() {
                    wake = state.finish(id);
                }
                wake.add(state.give_up());
                self.unlock(state, wake);
                true
            }
        }
    }

    /// Does the work of [`run`](Self::run), and may panic.
    pub(super) fn run_piece(&self, piece: TakenWork) -> bool {
        match piece {
            TakenWork::Once(id, Work::Run(task)) => {
                let failed = order::run(id, false, task).err();
                self.finish(id, failed);
                true
            }
            TakenWork::Once(id, Work::Then(decide)) => {
                match order::run(id, true, decide) {
                    Ok(rest) => self.continue_with(id, rest),
                    Err(fault) => self.finish(id, Some(fault)),
                }
                true
            }
            TakenWork::Once(id, Work::Kernel(start)) => {
                let kernel = order::run(id, false, start);
                // Small kernels are usually done in one piece; large ones are shared with other threads immediately.
                let mut state = self.lock();
                let shared = state.tasks.get(&id).is_some_and(|task| task.cost >= WORTH_WAKING);
                if shared {
                    state.running.push_back(Running {
                        id,
                        kernel: kernel.clone(),
                        inside: 1,
                    });
                    // Workers that the task woke may have found nothing and fallen asleep while the kernel was started.
                    let wake = Wake {
                        large: true,
                        ..Wake::default()
                    };
                    self.unlock(state, wake);
                } else {
                    drop(state);
                }
                let progress = kernel.piece();
                self.leave(id, kernel, progress) || progress
            }
            TakenWork::Once(id, Work::Join | Work::Stamp(_) | Work::Host(_) | Work::Until(_)) => {
                self.finish(id, None);
                true
            }
            TakenWork::Share(id, kernel) => {
                let progress = kernel.piece();
                self.leave(id, kernel, progress) || progress
            }
        }
    }

    /// Makes a task wait again, for tasks that its work has submitted.
    fn continue_with(&self, id: TaskId, rest: Continuation) {
        let mut state = self.lock();
        let mut open = 0;
        for before in rest.after {
            if let Some(task) = state.tasks.get_mut(&before) {
                task.successors.push(id);
                open += 1;
            }
        }
        if let Some(task) = state.tasks.get_mut(&id) {
            (task.open, task.work) = (open, Some(rest.work));
        }
        let wake = if open == 0 {
            state.make_ready(id)
        } else {
            Wake::default()
        };
        self.unlock(state, wake);
    }

    /// Leaves a kernel after a piece of it. The last thread to leave finishes the kernel if it is done; until then,
    /// other threads may still have output to add. Returns true if this thread has finished it.
    pub(super) fn leave(&self, id: TaskId, kernel: Arc<dyn Divisible>, progress: bool) -> bool {
        let mut state = self.lock();
        let inside = state.leave(id);
        let finished = inside.unwrap_or(0) == 0 && kernel.finished();
        if !progress && inside.is_some() && !finished && state.fault.is_none() {
            // Nothing changed, so no thread is woken: the threads would find no work and wake one another.
            return false;
        }
        let ends = finished || inside.is_none() && state.fault.is_some();
        state.keep_text(&*kernel, if ends { 1 } else { MUCH_TEXT });
        if finished {
            // No thread may enter the kernel any more.
            state.running.retain(|running| running.id != id);
            drop(state);
            self.finish(id, kernel.fault());
            return true;
        }
        let wake = match inside {
            Some(_) => {
                let mut wake = state.give_up();
                // This thread may go to another kernel next, and workers that found nothing in this one sleep.
                wake.large |= progress && state.running.len() > 1;
                wake
            }
            None if state.fault.is_some() => state.finish(id),
            None => {
                state.running.push_back(Running { id, kernel, inside: 0 });
                Wake {
                    large: true,
                    ..Wake::default()
                }
            }
        };
        let much_text = state.printed.len() >= MUCH_TEXT;
        self.unlock(state, wake);
        if much_text {
            self.write_printed(self.lock());
        }
        false
    }

    /// Finishes a task after reporting its fault, if it has failed.
    pub(super) fn finish(&self, id: TaskId, fault: Option<Fault>) {
        if let Some(fault) = fault {
            self.report(id, fault);
        }
        let mut state = self.lock();
        // The task ends even if another thread has reported a fault of it: that thread may not have ended it.
        let mut wake = state.finish(id);
        wake.add(state.give_up());
        let conditions = !state.conditions.is_empty();
        self.unlock(state, wake);
        if conditions {
            // This work may make a condition true.
            self.poll_conditions();
        }
    }

    /// Records a fault for the process and then prints it: without the lock, and before any thread that waits for the
    /// task returns. Does nothing if the task has ended, or if another thread has reported a fault of the same task.
    pub(super) fn report(&self, id: TaskId, fault: Fault) {
        let mut state = self.lock();
        match state.tasks.get_mut(&id) {
            Some(task) if !task.failed => task.failed = true,
            _ => return,
        }
        let is_first = state.fault.is_none();
        if is_first {
            state.fault = Some(fault.code);
            state.fault_message.clone_from(&fault.message);
        }
        drop(state);
        // Schedulers of tests have faults of their own.
        if is_first && std::ptr::eq(self, scheduler()) {
            gate::note_fault(fault.code);
        }
        if let Some(line) = &fault.stderr {
            console::write(console::Stream::Error, format!("{line}\n").as_bytes());
        }
        host::write_log_of_work(&fault.message);
        fault.details.iter().for_each(|line| host::write_detail(line));
    }

    pub(super) fn run_host_function(&self, (id, work): (TaskId, Work), fault: u32) {
        if let Work::Host(function) = work {
            // Writes the output of earlier kernels before the function can print.
            self.write_printed(self.lock());
            function(fault);
        }
        let mut state = self.lock();
        state.in_host_function = false;
        if !state.host_ready.is_empty() {
            self.host.notify_one();
        }
        drop(state);
        self.finish(id, None);
    }

    /// Wakes the threads that a change concerns, and releases the lock. Then drops discarded values and starts threads,
    /// which is slow.
    pub(super) fn unlock(&self, mut state: MutexGuard<'_, Tasks>, wake: Wake) {
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if wake.host {
            self.host.notify_one();
        }
        if wake.large && state.workers.sleeping > 0 {
            self.work.notify_all();
        } else if wake.small && !state.workers.watching && state.workers.sleeping > 0 {
            // Wakes all: only the watcher takes small work, and a signal to one thread may reach another worker.
            self.work.notify_all();
        }
        let any = wake.small || wake.large || wake.host;
        let start = any && !std::mem::replace(&mut state.workers.started, any);
        let start_host = wake.host && state.workers.host == HostThread::NotStarted;
        if start_host {
            state.workers.host = HostThread::Runs;
        }
        let discarded = std::mem::take(&mut state.discarded);
        drop(state);
        drop(discarded);
        if start && !threads::start(|is_watcher| scheduler().run_worker(is_watcher)) {
            self.lock().workers.refused = true;
        }
        if start_host && !threads::start_host(|| scheduler().run_host_thread()) {
            self.lock().workers.host = HostThread::Refused;
        }
    }

    /// The loop of a worker: takes large work immediately. The watcher also polls conditions, and takes small work that
    /// no thread has taken for a while.
    pub(super) fn run_worker(&self, is_watcher: bool) {
        const NAP: Duration = Duration::from_micros(100);
        const LONG_NAP: Duration = Duration::from_millis(1);
        const NAPS: u32 = 20;
        let mut state = self.lock();
        let mut naps = 0;
        let (mut idle_turns, mut neglected) = (0, false);
        let mut polls = 0_u32;
        loop {
            let wanted = neglected || state.has_large_work();
            if wanted
                && idle_turns <= state.running.len()
                && let Some(piece) = state.take()
            {
                drop(state);
                let progress = self.run(piece);
                state = self.lock();
                idle_turns = if progress { 0 } else { idle_turns + 1 };
                continue;
            }
            if is_watcher && !state.conditions.is_empty() {
                drop(state);
                let held = self.poll_conditions();
                state = self.lock();
                if held {
                    polls = 0;
                    continue;
                }
                polls += 1;
            }
            // No signal follows when another thread puts the conditions back that it polls.
            let conditions = !state.conditions.is_empty() || state.polling > 0;
            let pending = !state.ready.is_empty() || !state.running.is_empty();
            idle_turns = 0;
            state.workers.sleeping += 1;
            if is_watcher && (pending || conditions || naps < NAPS) {
                naps = if pending { 1 } else { naps + 1 };
                let oldest = state.oldest();
                state.workers.watching = true;
                // A condition that has not come true for a while is polled less often.
                let nap = match conditions && !pending && polls > NAPS {
                    true => LONG_NAP,
                    false => NAP,
                };
                state = self
                    .work
                    .wait_timeout(state, nap)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                state.workers.watching = false;
                // Looks at the oldest task only: other threads may finish tasks all the time without ever running
                // this one.
                neglected = oldest.is_some_and(|id| state.can_be_taken(id));
            } else {
                (naps, neglected) = (0, false);
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.workers.sleeping -= 1;
        }
    }

    /// The loop of the thread that runs host functions.
    pub(super) fn run_host_thread(&self) {
        let mut state = self.lock();
        loop {
            while let Some((function, fault)) = state.take_host_function() {
                drop(state);
                self.run_host_function(function, fault);
                state = self.lock();
            }
            state = self.host.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
