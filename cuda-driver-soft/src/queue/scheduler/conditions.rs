//! Work that waits until a place in memory has a certain value. Nothing signals the change, so the condition is polled: by threads that
//! wait, query or finish other work, and by the watcher (one of the workers).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::queue::scheduler::Scheduler;
use crate::queue::scheduler::run::panic_fault;
use crate::queue::scheduler::tasks::Wake;

impl Scheduler {
    /// Polls all conditions, and ends the task of each that holds or fails. Returns true if there was one.
    pub(super) fn poll_conditions(&self) -> bool {
        // Takes the conditions out and releases the lock before it polls, because a condition may take other locks.
        let mut state = self.lock();
        let polled = std::mem::take(&mut state.conditions);
        state.polling += 1;
        drop(state);
        let mut not_yet = BTreeMap::new();
        let mut ended = Vec::new();
        for (id, mut condition) in polled {
            // A panic that left this function would lose all conditions that are taken.
            let polled = catch_unwind(AssertUnwindSafe(&mut condition)).unwrap_or_else(|_| Err(panic_fault()));
            match polled {
                Ok(false) => {
                    not_yet.insert(id, condition);
                }
                Ok(true) => ended.push(id),
                Err(fault) => {
                    self.report(id, fault);
                    ended.push(id);
                }
            }
        }
        let mut state = self.lock();
        state.polling -= 1;
        state.conditions.append(&mut not_yet);
        let mut wake = Wake::default();
        for id in &ended {
            wake.add(state.finish(*id));
        }
        wake.add(state.give_up());
        self.unlock(state, wake);
        !ended.is_empty()
    }
}
