//! From an address to the allocation on its page, without a lock: a two-level table over 48 bits of address.

use super::Record;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a page. Every device allocation starts its own page.
pub(super) const PAGE: u64 = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 16;
const LEAF_BITS: u32 = 16;
const ROOT_BITS: u32 = 48 - PAGE_BITS - LEAF_BITS;

type Leaf = [AtomicPtr<Record>; 1 << LEAF_BITS];

/// What the table says about a page.
pub(super) enum Page {
    /// No allocation touches it.
    Empty,
    /// The only allocation that touches it.
    One(*const Record),
    /// Several allocations touch it: ask the ordered map.
    Mixed,
}

/// The table.
pub(super) struct PageTable {
    root: Box<[AtomicPtr<Leaf>]>,
}

/// Marks a page that several allocations touch. Never dereferenced.
fn mixed() -> *mut Record {
    ptr::without_provenance_mut(1)
}

impl PageTable {
    pub(super) fn new() -> Self {
        PageTable {
            root: zeroed_pointers(1 << ROOT_BITS),
        }
    }

    fn split(address: u64) -> Option<(usize, usize)> {
        let page = address >> PAGE_BITS;
        let root = (page >> LEAF_BITS) as usize;
        (root < 1 << ROOT_BITS).then_some((root, (page & ((1 << LEAF_BITS) - 1)) as usize))
    }

    /// What touches the page of this address.
    #[inline]
    pub(super) fn get(&self, address: u64) -> Page {
        let Some((root, index)) = Self::split(address) else {
            return Page::Empty;
        };
        let leaf = self.root[root].load(Ordering::Acquire);
        if leaf.is_null() {
            return Page::Empty;
        }
        // SAFETY: a leaf, once published in the root, is never freed while the table lives.
        let entry = unsafe { &(&*leaf)[index] }.load(Ordering::Acquire);
        if entry.is_null() {
            Page::Empty
        } else if entry == mixed() {
            Page::Mixed
        } else {
            Page::One(entry)
        }
    }

    /// Enters an allocation on all its pages. The caller holds the space's lock. False if the addresses are beyond
    /// what the table covers.
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

    /// Puts another allocation on all pages of one that has them for itself. The caller holds the space's lock.
    pub(super) fn replace(&self, start: u64, bytes: u64, record: *const Record) {
        let end = start.saturating_add(bytes.max(1)) - 1;
        self.each_page(start, end, |entry| {
            entry.store(record.cast_mut(), Ordering::Release);
        });
    }

    /// Takes an allocation off all its pages. Mixed pages stay mixed: that is slower, never wrong.
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

    /// The leaf, made when first needed. The caller holds the space's lock.
    fn leaf(&self, root: usize) -> &Leaf {
        let mut leaf = self.root[root].load(Ordering::Acquire);
        if leaf.is_null() {
            leaf = Box::into_raw(zeroed_pointers::<Record>(1 << LEAF_BITS)).cast::<Leaf>();
            self.root[root].store(leaf, Ordering::Release);
        }
        // SAFETY: published leaves live as long as the table.
        unsafe { &*leaf }
    }
}

/// Null pointers, from zeroed memory that the system provides page by page as it is touched.
fn zeroed_pointers<T>(n: usize) -> Box<[AtomicPtr<T>]> {
    // SAFETY: all bits zero is a null `AtomicPtr`.
    unsafe { Box::<[AtomicPtr<T>]>::new_zeroed_slice(n).assume_init() }
}
