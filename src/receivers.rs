//! Closures that the driver calls back until they are unregistered.
#![forbid(unsafe_code)]

use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Closures by number. The driver gets a number instead of a pointer, so that a call that arrives while the closure is
/// being unregistered on another thread finds no closure instead of a freed one.
#[derive(Debug)]
pub(crate) struct Receivers<F: ?Sized>(Mutex<Vec<(usize, Arc<F>)>>);

/// The number of the newest closure of all [`Receivers`].
static LAST_NUMBER: AtomicUsize = AtomicUsize::new(0);

impl<F: ?Sized> Receivers<F> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Adds a closure and returns its number, which is not 0.
    #[inline]
    pub(crate) fn add(&self, receiver: Arc<F>) -> usize {
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.push((number, receiver));
        number
    }

    /// Removes and drops a closure. One that is running is dropped when it returns.
    #[inline]
    pub(crate) fn remove(&self, number: usize) {
        let removed = {
            let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = receivers.iter().position(|(other, _)| *other == number);
            at.map(|at| receivers.swap_remove(at))
        };
        // Dropped after the lock is released, because dropping the closure may take the lock.
        drop(removed);
    }

    /// Passes the closure with this number to `call`, or does nothing if there is none. A panic must not unwind through
    /// the driver, so it is ignored.
    #[inline]
    pub(crate) fn with(&self, number: usize, call: impl FnOnce(&F)) {
        let receiver = {
            let receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = receivers.iter().find(|(other, _)| *other == number);
            found.map(|(_, receiver)| Arc::clone(receiver))
        };
        let Some(receiver) = receiver else {
            return;
        };
        let run = AssertUnwindSafe(move || {
            call(&receiver);
            drop(receiver);
        });
        if let Err(payload) = catch_unwind(run) {
            // Leaked, because dropping the payload may panic, too.
            mem::forget(payload);
        }
    }
}
