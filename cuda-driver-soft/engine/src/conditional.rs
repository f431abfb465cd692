//! The values of conditional graph nodes, by handle. The driver creates and tests them; kernels set them with
//! `cudaGraphSetConditional`.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

/// All handles are greater than this number, so that an arbitrary number is unlikely to be a handle.
const FIRST: u64 = 0x00C0_4D00_0000_0000;

/// A value that a conditional node tests. Its handle is valid as long as the value lives.
#[derive(Debug)]
pub struct ConditionalValue {
    handle: u64,
    value: AtomicU32,
    /// True once a graph that uses the value has been launched. Kernels cannot set the value before.
    launched: AtomicBool,
}

fn values() -> &'static RwLock<HashMap<u64, Weak<ConditionalValue>>> {
    static VALUES: OnceLock<RwLock<HashMap<u64, Weak<ConditionalValue>>>> = OnceLock::new();
    VALUES.get_or_init(RwLock::default)
}

impl ConditionalValue {
    /// Creates a value. Its handle is unique in the process.
    pub fn new(value: u32) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(FIRST);
        let made = Arc::new(ConditionalValue {
            handle: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            value: AtomicU32::new(value),
            launched: AtomicBool::new(false),
        });
        let mut values = values().write().unwrap_or_else(PoisonError::into_inner);
        values.insert(made.handle, Arc::downgrade(&made));
        made
    }

    /// Returns the number that kernels pass.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Returns the value.
    pub fn get(&self) -> u32 {
        self.value.load(Ordering::Acquire)
    }

    /// Records that a graph that uses the value is being launched: from now on, kernels can set the value.
    pub fn begin_launch(&self) {
        self.launched.store(true, Ordering::Release);
    }

    /// Sets the value.
    pub fn set(&self, value: u32) {
        self.value.store(value, Ordering::Release);
    }
}

impl Drop for ConditionalValue {
    fn drop(&mut self) {
        let mut values = values().write().unwrap_or_else(PoisonError::into_inner);
        values.remove(&self.handle);
    }
}

/// Sets the value with this handle. Returns false if there is none, or if no graph that uses it has been launched.
pub(crate) fn set(handle: u64, value: u32) -> bool {
    let found = values()
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&handle)
        .and_then(Weak::upgrade);
    let found = found.filter(|found| found.launched.load(Ordering::Acquire));
    found.is_some_and(|found| {
        found.set(value);
        true
    })
}

#[cfg(test)]
mod tests {
    use super::{ConditionalValue, set};

    #[test]
    fn a_handle_is_valid_as_long_as_its_value_lives() {
        let value = ConditionalValue::new(3);
        let handle = value.handle();
        assert_eq!(value.get(), 3);
        assert!(!set(handle, 7));
        value.begin_launch();
        assert!(set(handle, 7));
        assert_eq!(value.get(), 7);
        assert_ne!(ConditionalValue::new(0).handle(), handle);
        drop(value);
        assert!(!set(handle, 1));
    }
}
