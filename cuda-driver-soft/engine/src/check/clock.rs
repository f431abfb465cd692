//! Vector clocks: the accesses of other threads that are ordered before the next access of a thread.
//!
//! All threads of a block share one counter, the time of the block, which advances whenever threads of the block
//! synchronise or run a fence. A moment is a value of this counter. A clock has entries for whole blocks, for whole
//! warps and for single threads, because barriers order many threads at once.

use std::sync::Arc;

/// The threads of an entry of a clock, encoded in a number: the block, the warp or all warps, the lane or all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Threads(u64);

/// The number that stands for all warps of a block, or all lanes of a warp.
const ALL: u64 = 0xff;

impl Threads {
    fn of(block: u32, warp: u64, lane: u64) -> Self {
        Threads(u64::from(block) << 16 | warp << 8 | lane)
    }
}

/// A thread by its block, warp and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadId {
    pub(super) block: u32,
    pub(super) warp: u8,
    pub(super) lane: u8,
}

/// Moments of other threads. All accesses of a thread up to its moment are ordered before the next access of the
/// clock's owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// Sorted by threads.
    entries: Vec<(Threads, u32)>,
}

/// A clock that threads share; `None` is the clock without entries.
pub(super) type SharedClock = Option<Arc<Clock>>;

impl Clock {
    /// Adds a moment of all threads of a block.
    pub(super) fn add_block(&mut self, block: u32, time: u32) {
        self.add(Threads::of(block, ALL, ALL), time);
    }

    /// Adds a moment of all lanes of a warp.
    pub(super) fn add_warp(&mut self, block: u32, warp: u8, time: u32) {
        self.add(Threads::of(block, warp.into(), ALL), time);
    }

    /// Adds a moment of a thread.
    pub(super) fn add_thread(&mut self, thread: ThreadId, time: u32) {
        self.add(Threads::of(thread.block, thread.warp.into(), thread.lane.into()), time);
    }

    fn add(&mut self, threads: Threads, time: u32) {
        if time == 0 {
            return;
        }
        match self.entries.binary_search_by_key(&threads, |entry| entry.0) {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(time),
            Err(at) => self.entries.insert(at, (threads, time)),
        }
    }

    /// Adds all entries of another clock.
    pub(super) fn join(&mut self, other: &Clock) {
        if self.contains(other) {
            return;
        }
        let (mut mine, mut theirs) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        let mut merged = Vec::with_capacity(self.entries.len() + other.entries.len());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let (first, time) = match a.0.cmp(&b.0) {
                std::cmp::Ordering::Less => (a.0, a.1),
                std::cmp::Ordering::Greater => (b.0, b.1),
                std::cmp::Ordering::Equal => (a.0, a.1.max(b.1)),
            };
            mine.next_if(|entry| entry.0 == first);
            theirs.next_if(|entry| entry.0 == first);
            merged.push((first, time));
        }
        merged.extend(mine.chain(theirs));
        self.entries = merged;
    }

    /// Returns true if joining the other clock would change nothing.
    fn contains(&self, other: &Clock) -> bool {
        let mut mine = self.entries.iter();
        other.entries.iter().all(|(threads, time)| {
            mine.by_ref()
                .find(|entry| entry.0 >= *threads)
                .is_some_and(|entry| entry.0 == *threads && entry.1 >= *time)
        })
    }

    /// Returns true if the clock has this moment of a thread, or a later one.
    pub(super) fn covers(&self, thread: ThreadId, time: u32) -> bool {
        let (warp, lane) = (thread.warp.into(), thread.lane.into());
        let known = |threads| {
            let found = self.entries.binary_search_by_key(&threads, |entry| entry.0);
            found.is_ok_and(|at| self.entries[at].1 >= time)
        };
        known(Threads::of(thread.block, ALL, ALL))
            || known(Threads::of(thread.block, warp, ALL))
            || known(Threads::of(thread.block, warp, lane))
    }
}

/// Returns both clocks joined. The result is one of them if that has all entries of the other.
pub(super) fn joined(a: &SharedClock, b: &SharedClock) -> SharedClock {
    match (a, b) {
        (None, only) | (only, None) => only.clone(),
        (Some(x), Some(y)) if Arc::ptr_eq(x, y) || x.contains(y) => Some(Arc::clone(x)),
        (Some(x), Some(y)) if y.contains(x) => Some(Arc::clone(y)),
        (Some(x), Some(y)) => {
            let mut clock = Clock::clone(x);
            clock.join(y);
            Some(Arc::new(clock))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, ThreadId, joined};
    use std::sync::Arc;

    const fn thread(block: u32, warp: u8, lane: u8) -> ThreadId {
        ThreadId { block, warp, lane }
    }

    #[test]
    fn entries_cover_a_thread_a_warp_or_a_block() {
        let mut clock = Clock::default();
        clock.add_thread(thread(1, 2, 3), 5);
        clock.add_warp(1, 4, 6);
        clock.add_block(7, 8);
        assert!(clock.covers(thread(1, 2, 3), 5));
        assert!(!clock.covers(thread(1, 2, 3), 6));
        assert!(!clock.covers(thread(1, 2, 4), 1));
        assert!(clock.covers(thread(1, 4, 31), 6));
        assert!(!clock.covers(thread(1, 5, 0), 1));
        assert!(clock.covers(thread(7, 9, 9), 8));
        assert!(!clock.covers(thread(7, 9, 9), 9));
    }

    #[test]
    fn joining_keeps_the_later_moment_of_each_entry() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.add_block(1, 5);
        a.add_block(3, 1);
        b.add_block(1, 4);
        b.add_block(2, 9);
        a.join(&b);
        for (block, time) in [(1, 5), (2, 9), (3, 1)] {
            assert!(a.covers(thread(block, 0, 0), time));
            assert!(!a.covers(thread(block, 0, 0), time + 1));
        }
        assert!(a.contains(&b));
        assert!(!b.contains(&a));
    }

    #[test]
    fn joining_a_part_gives_the_same_shared_clock() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.add_block(1, 5);
        a.add_block(2, 5);
        b.add_block(2, 3);
        let (a, b) = (Some(Arc::new(a)), Some(Arc::new(b)));
        for both in [joined(&a, &b), joined(&b, &a), joined(&a, &None)] {
            assert!(Arc::ptr_eq(both.as_ref().unwrap(), a.as_ref().unwrap()));
        }
    }
}
