//! Keeps freed items until all work that was in flight when they were freed has ended.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex};

/// The work in flight, and the items that are dropped when it ends.
///
/// Each [`retire`](Self::retire) starts a new epoch. An item is dropped when no work of its epoch, or of an earlier
/// one, is in flight.
pub(super) struct Epochs<T> {
    ledger: Mutex<Ledger<T>>,
    /// Notified when work ends.
    ended: Condvar,
}

struct Ledger<T> {
    /// The current epoch.
    now: u64,
    /// The amount of work in flight, by the epoch in which it began.
    active: BTreeMap<u64, usize>,
    /// The retired items with their epochs, oldest first.
    retired: VecDeque<(u64, T)>,
    /// The number of threads in [`Epochs::wait`].
    waiting: usize,
}

impl<T> Epochs<T> {
    pub(super) fn new() -> Self {
        Epochs {
            ledger: Mutex::new(Ledger {
                now: 0,
                active: BTreeMap::new(),
                retired: VecDeque::new(),
                waiting: 0,
            }),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ledger<T>> {
        self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Marks the start of work, and returns its epoch. Items that are retired from now on are kept until
    /// [`leave`](Self::leave) is called with that epoch.
    pub(super) fn enter(&self) -> u64 {
        let mut ledger = self.lock();
        let now = ledger.now;
        *ledger.active.entry(now).or_insert(0) += 1;
        now
    }

    /// Marks the end of work that began in this epoch.
    pub(super) fn leave(&self, epoch: u64) {
        let mut ledger = self.lock();
        if let Some(count) = ledger.active.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                ledger.active.remove(&epoch);
            }
        }
        if ledger.waiting > 0 {
            self.ended.notify_all();
        }
        let done = ledger.take_done();
        drop(ledger);
        drop(done);
    }

    /// Drops `item` as soon as all work that is in flight now has ended. Returns the last epoch of that work.
    pub(super) fn retire(&self, item: T) -> u64 {
        let mut ledger = self.lock();
        let now = ledger.now;
        ledger.retired.push_back((now, item));
        ledger.now += 1;
        let done = ledger.take_done();
        drop(ledger);
        drop(done);
        now
    }

    /// Waits until all work that began in this epoch, or in an earlier one, has ended.
    pub(super) fn wait(&self, epoch: u64) {
        let mut ledger = self.lock();
        ledger.waiting += 1;
        while ledger
            .active
            .first_key_value()
            .is_some_and(|(oldest, _)| *oldest <= epoch)
        {
            ledger = self.ended.wait(ledger).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        ledger.waiting -= 1;
    }
}

impl<T> Ledger<T> {
    /// Removes the items that no work in flight can use. The caller drops them without the lock.
    fn take_done(&mut self) -> Vec<T> {
        let oldest = self.active.first_key_value().map_or(u64::MAX, |(epoch, _)| *epoch);
        let mut done = Vec::new();
        while self.retired.front().is_some_and(|(epoch, _)| *epoch < oldest) {
            done.extend(self.retired.pop_front().map(|(_, item)| item));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::Epochs;
    use std::rc::Rc;

    #[test]
    fn an_item_is_kept_until_the_work_in_flight_ends() {
        let epochs = Epochs::new();
        let item = Rc::new(());
        let first = epochs.enter();
        epochs.retire(item.clone());
        let second = epochs.enter();
        assert_eq!(Rc::strong_count(&item), 2, "retired while the first was in flight");
        epochs.leave(first);
        assert_eq!(Rc::strong_count(&item), 1, "the second began after the retirement");
        epochs.leave(second);
    }
}
