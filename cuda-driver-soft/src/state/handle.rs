//! Handles that can be validated.
//!
//! A handle is a number made of a kind and a serial number, not an address: it is looked up in a table and never
//! dereferenced, so forged, foreign and destroyed handles are detected. Serial numbers are not reused, so a destroyed
//! handle differs from an unknown one and never names a newer object.

use engine::id_map::IdMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The type of object that a handle names. It is part of the handle, so that a stream cannot be mistaken for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HandleKind {
    Context = 1,
    Module,
    Function,
    Stream,
    Event,
    Library,
    Kernel,
    Linker,
    Pool,
    Array,
    Mipmap,
    Reference,
    GenericAllocation,
    Graph,
    Node,
    GraphExec,
    UserObject,
    ResourceDescriptor,
    GreenContext,
    ExternalMemory,
    Notification,
}

impl HandleKind {
    /// Returns true if the kind in this handle is this one. The object may not exist.
    pub(crate) fn may_have(self, handle: usize) -> bool {
        handle as u64 >> 48 == encode(self, 0) as u64 >> 48
    }
}

/// Returns the value of a handle. The high bits are set to a pattern that no user-space address has.
pub(crate) fn encode(kind: HandleKind, serial: u64) -> usize {
    0x5C00_0000_0000_0000 | (kind as usize) << 48 | (serial as usize) << 4
}

/// The reason why a handle names no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The object was destroyed.
    Destroyed,
    /// No object ever had this handle.
    Unknown,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Destroyed => "is destroyed",
            Missing::Unknown => "does not exist",
        })
    }
}

/// The live objects of one kind. Each [`HandleKind`] has a static table, except graphs and their nodes, which one lock
/// protects together.
pub(crate) struct Table<T> {
    kind: HandleKind,
    next: AtomicU64,
    objects: RwLock<IdMap<usize, Arc<T>>>,
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: HandleKind) -> Self {
        Table {
            kind,
            next: AtomicU64::new(1),
            objects: RwLock::new(IdMap::with_hasher(BuildHasherDefault::new())),
        }
    }

    /// Creates an object that stores its own handle, and inserts it.
    pub(crate) fn insert_with(&self, make: impl FnOnce(usize) -> T) -> Arc<T> {
        let handle = encode(self.kind, self.next.fetch_add(1, Ordering::Relaxed));
        let object = Arc::new(make(handle));
        self.objects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(handle, object.clone());
        object
    }

    /// Returns a live object.
    pub(crate) fn get(&self, handle: usize) -> Result<Arc<T>, Missing> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&handle).cloned().ok_or_else(|| self.why(handle))
    }

    /// Removes an object. Its handle counts as destroyed from then on.
    pub(crate) fn remove(&self, handle: usize) -> Result<Arc<T>, Missing> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(&handle).ok_or_else(|| self.why(handle))
    }

    /// Returns all live objects in no particular order.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.objects
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Returns the reason why a handle is not in the table.
    fn why(&self, handle: usize) -> Missing {
        let given_out = self.next.load(Ordering::Relaxed);
        let serial = (handle >> 4) as u64 & 0xFFF_FFFF_FFFF;
        if (1..given_out).contains(&serial) && handle == encode(self.kind, serial) {
            Missing::Destroyed
        } else {
            Missing::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destroyed_forged_and_foreign_handles_are_distinguished() {
        let streams = Table::new(HandleKind::Stream);
        let events = Table::new(HandleKind::Event);
        let (mut first, mut event) = (0, 0);
        streams.insert_with(|h| first = h);
        events.insert_with(|h| event = h);
        assert!(streams.get(first).is_ok());
        assert_eq!(streams.get(event), Err(Missing::Unknown));
        assert_eq!(streams.get(0x10), Err(Missing::Unknown));
        assert_eq!(streams.get(first + 16), Err(Missing::Unknown));
        assert!(streams.remove(first).is_ok());
        assert_eq!(streams.get(first), Err(Missing::Destroyed));
        assert_eq!(streams.remove(first), Err(Missing::Destroyed));
        let mut second = 0;
        streams.insert_with(|h| second = h);
        assert_ne!(first, second);
    }
}
