//! When a freed backing may be given back: not before all work that was in flight at the free has ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex};

/// Work in flight, and what waits for its end.
pub(super) struct Epochs<T> {
    state: Mutex<State<T>>,
    /// Work has ended.
    ended: Condvar,
}

struct State<T> {
    now: u64,
    /// Epoch in which work began → how many are still in flight.
    active: BTreeMap<u64, usize>,
    /// (epoch of the free, what to drop), oldest first.
    limbo: VecDeque<(u64, T)>,
    /// Threads in [`Epochs::wait`].
    waiting: usize,
}

impl<T> Epochs<T> {
    pub(super) fn new() -> Self {
        Epochs {
            state: Mutex::new(State {
                now: 0,
                active: BTreeMap::new(),
                limbo: VecDeque::new(),
                waiting: 0,
            }),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Work begins: nothing retired from now on is dropped before [`leave`](Self::leave) with the returned epoch.
    pub(super) fn enter(&self) -> u64 {
        let mut state = self.lock();
        let now = state.now;
        *state.active.entry(now).or_insert(0) += 1;
        now
    }

    /// Work that began in this epoch has ended.
    pub(super) fn leave(&self, epoch: u64) {
        let mut state = self.lock();
        if let Some(count) = state.active.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                state.active.remove(&epoch);
            }
        }
        if state.waiting > 0 {
            self.ended.notify_all();
        }
        let done = state.take_done();
        drop(state);
        drop(done);
    }

    /// Drops `item` as soon as no work is in flight that began before now. Gives the epoch of that work.
    pub(super) fn retire(&self, item: T) -> u64 {
        let mut state = self.lock();
        let now = state.now;
        state.limbo.push_back((now, item));
        state.now += 1;
        let done = state.take_done();
        drop(state);
        drop(done);
        now
    }

    /// Waits until no work is in flight that began in this epoch or before it.
    pub(super) fn wait(&self, epoch: u64) {
        let mut state = self.lock();
        state.waiting += 1;
        while state
            .active
            .first_key_value()
            .is_some_and(|(oldest, _)| *oldest <= epoch)
        {
            state = self
                .ended
                .wait(state)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.waiting -= 1;
    }
}

impl<T> State<T> {
    fn take_done(&mut self) -> Vec<T> {
        let oldest = self
            .active
            .first_key_value()
            .map_or(u64::MAX, |(epoch, _)| *epoch);
        let mut done = Vec::new();
        while self.limbo.front().is_some_and(|(epoch, _)| *epoch < oldest) {
            done.extend(self.limbo.pop_front().map(|(_, item)| item));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Epochs;
    use std::rc::Rc;

    #[test]
    fn an_item_outlives_the_work_that_was_in_flight_and_no_more() {
        let epochs = Epochs::new();
        let item = Rc::new(());
        let first = epochs.enter();
        epochs.retire(item.clone());
        let second = epochs.enter();
        assert_eq!(
            Rc::strong_count(&item),
            2,
            "retired while the first was in flight"
        );
        epochs.leave(first);
        assert_eq!(
            Rc::strong_count(&item),
            1,
            "the second began after the retirement"
        );
        epochs.leave(second);
    }
}
