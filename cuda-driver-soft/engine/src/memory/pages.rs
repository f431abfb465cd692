//! Finds the allocation on the page of an address without a lock: a two-level table over 48 bits of address.

use super::record::Record;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a page. Every device allocation starts a new page.
pub(crate) const PAGE: u64 = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 16;
const LEAF_BITS: u32 = 16;
const ROOT_BITS: u32 = 48 - PAGE_BITS - LEAF_BITS;

type Leaf = [AtomicPtr<Record>; 1 << LEAF_BITS];

/// The entry of a page.
pub(super) enum Page {
    /// No allocation has bytes on the page.
    Empty,
    /// One allocation has bytes on the page.
    One(*const Record),
    /// Several allocations have, or had, bytes on the page. They are found in the index.
    Mixed,
}

/// A table of the allocations by page. Reads take no lock; the callers of all other methods hold the lock of the
/// address space.
pub(super) struct PageTable {
    root: Box<[AtomicPtr<Leaf>]>,
}

/// Returns the entry of a page that several allocations share. It is never dereferenced.
fn mixed() -> *mut Record {
    ptr::without_provenance_mut(1)
}

impl PageTable {
    pub(super) fn new() -> Self {
        PageTable {
            root: zeroed_pointers(1 << ROOT_BITS),
        }
    }

    /// Returns the indexes of the page in the root and in the leaf, or `None` if the table does not cover the address.
    fn split(address: u64) -> Option<(usize, usize)> {
        let page = address >> PAGE_BITS;
        let root = (page >> LEAF_BITS) as usize;
        (root < 1 << ROOT_BITS).then_some((root, (page & ((1 << LEAF_BITS) - 1)) as usize))
    }

    /// Returns the entry of the page of this address.
    #[inline]
    pub(super) fn get(&self, address: u64) -> Page {
        let Some((root, index)) = Self::split(address) else {
            return Page::Empty;
        };
        let leaf = self.root[root].load(Ordering::Acquire);
        if leaf.is_null() {
            return Page::Empty;
        }
        // SAFETY: leaves that were published in the root are never freed.
        let entry = unsafe { &(&*leaf)[index] }.load(Ordering::Acquire);
        if entry.is_null() {
            Page::Empty
        } else if entry == mixed() {
            Page::Mixed
        } else {
            Page::One(entry)
        }
    }

    /// Enters an allocation on all its pages. Returns false if the table does not cover its addresses.
    pub(super) fn insert(&self, start: u64, bytes: u64, record: *const Record) -> bool {
        let end = start.saturating_add(bytes.max(1)) - 1;
        if Self::split(end).is_none() {
            return false;
        }
        self.each_page(start, end, |entry| {
            let new = if entry.load(Ordering::Relaxed).is_null() {
                record.cast_mut()
            } else {
                mixed()
            };
            entry.store(new, Ordering::Release);
        });
        true
    }

    /// Replaces the record of an allocation that shares its pages with no other.
    pub(super) fn replace(&self, start: u64, bytes: u64, record: *const Record) {
        let end = start.saturating_add(bytes.max(1)) - 1;
        self.each_page(start, end, |entry| {
            entry.store(record.cast_mut(), Ordering::Release);
        });
    }

    /// Removes an allocation from all its pages. Mixed pages stay mixed, which is slower but not wrong.
    pub(super) fn remove(&self, start: u64, bytes: u64, record: *const Record) {
        let end = start.saturating_add(bytes.max(1)) - 1;
        self.each_page(start, end, |entry| {
            if ptr::eq(entry.load(Ordering::Relaxed), record) {
                entry.store(ptr::null_mut(), Ordering::Release);
            }
        });
    }

    fn each_page(&self, start: u64, end: u64, mut f: impl FnMut(&AtomicPtr<Record>)) {
        let mut page = start >> PAGE_BITS;
        let last = end >> PAGE_BITS;
        while page <= last {
            let Some((root, mut index)) = Self::split(page << PAGE_BITS) else {
                return;
            };
            let leaf = self.leaf(root);
            while page <= last && index < leaf.len() {
                f(&leaf[index]);
                index += 1;
                page += 1;
            }
        }
    }

    /// Returns a leaf, creating it on first use.
    fn leaf(&self, root: usize) -> &Leaf {
        let mut leaf = self.root[root].load(Ordering::Acquire);
        if leaf.is_null() {
            leaf = Box::into_raw(zeroed_pointers::<Record>(1 << LEAF_BITS)).cast::<Leaf>();
            self.root[root].store(leaf, Ordering::Release);
        }
        // SAFETY: leaves that were published in the root are never freed.
        unsafe { &*leaf }
    }
}

/// Returns null pointers in zeroed memory, which the system provides as it is touched.
fn zeroed_pointers<T>(n: usize) -> Box<[AtomicPtr<T>]> {
    // SAFETY: an `AtomicPtr` of zero bytes is a null pointer.
    unsafe { Box::<[AtomicPtr<T>]>::new_zeroed_slice(n).assume_init() }
}
