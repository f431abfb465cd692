//! Tracks the initialised bytes of device memory, for the checker of uninitialised reads.
//!
//! Bytes are tracked only while a checker is in use, and only in device memory (as from `cuMemAlloc`) and in the heap
//! of kernels. All other memory counts as written: memory that was allocated before, memory that the host can write
//! without a call of the driver, mappings, variables and arrays.

#![forbid(unsafe_code)]

use super::allocation::AllocationKind;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A bit for each byte of a range.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Box<[AtomicU64]>,
}

impl Bits {
    /// Returns bits that are not set.
    pub(crate) fn new(count: u64) -> Self {
        let words = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0));
        Bits { words: words.collect() }
    }

    /// Calls `visit` with each word of a range and the mask of its bits, until that returns false. Returns true if it
    /// never did. Bits beyond the last one are skipped.
    fn all(&self, range: Range<u64>, mut visit: impl FnMut(&AtomicU64, u64) -> bool) -> bool {
        let mut at = range.start;
        while at < range.end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(range.end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            match self.words.get(word as usize) {
                Some(word) if !visit(word, mask) => return false,
                _ => {}
            }
            at += count;
        }
        true
    }

    /// Sets the bits of a range.
    #[inline]
    pub(crate) fn set(&self, range: Range<u64>) {
        self.all(range, |word, mask| {
            // Most words are set already, and a load is cheaper.
            if word.load(Relaxed) & mask != mask {
                word.fetch_or(mask, Relaxed);
            }
            true
        });
    }

    /// Returns true if a bit of a range is set.
    #[inline]
    pub(crate) fn any(&self, range: Range<u64>) -> bool {
        !self.all(range, |word, mask| word.load(Relaxed) & mask == 0)
    }

    /// Returns true if all bits of a range are set.
    #[inline]
    pub(crate) fn every(&self, range: Range<u64>) -> bool {
        self.all(range, |word, mask| word.load(Relaxed) & mask == mask)
    }

    /// Returns the first bit of a range that is not set, or the end of the range. Bits beyond the last one count as
    /// set.
    fn first_unset(&self, range: Range<u64>) -> u64 {
        let mut at = range.start;
        while at < range.end
            && let Some(word) = self.words.get((at / 64) as usize)
        {
            let unset = !word.load(Relaxed) >> (at % 64);
            if unset != 0 {
                return (at + u64::from(unset.trailing_zeros())).min(range.end);
            }
            at = (at / 64 + 1) * 64;
        }
        range.end
    }

    /// Returns the position after the last bit of a range that is not set, or the start of the range.
    fn last_unset(&self, range: Range<u64>) -> u64 {
        let mut at = range.end;
        while at > range.start {
            let first = (at - 1) / 64 * 64;
            let unset = self
                .words
                .get((first / 64) as usize)
                .map_or(0, |word| !word.load(Relaxed));
            let unset = unset & u64::MAX >> (64 - (at - first));
            if unset != 0 {
                return (first + 64 - u64::from(unset.leading_zeros())).max(range.start);
            }
            at = first;
        }
        range.start
    }

    /// Clears all bits.
    pub(crate) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
    }

    fn assign(&self, bit: u64, value: bool) {
        if let Some(word) = self.words.get((bit / 64) as usize) {
            if value {
                word.fetch_or(1 << (bit % 64), Relaxed);
            } else {
                word.fetch_and(!(1 << (bit % 64)), Relaxed);
            }
        }
    }
}

/// A range whose bits are known to be set, so that most accesses need not read the bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRange(Range<u64>);

impl KnownRange {
    /// The most bits between the known range and another one that are checked to join them.
    const GAP: u64 = 1 << 20;

    /// Returns true if all bits of a range are set.
    #[inline]
    pub(crate) fn covers(&mut self, bits: &Bits, range: Range<u64>) -> bool {
        (self.0.start <= range.start && range.end <= self.0.end) || self.reach(bits, range)
    }

    #[inline(never)]
    fn reach(&mut self, bits: &Bits, range: Range<u64>) -> bool {
        let known = &mut self.0;
        if (known.start..known.end.saturating_add(Self::GAP)).contains(&range.start) {
            known.end = bits.first_unset(known.end..range.end.max(known.end));
        } else if (range.start..range.end.saturating_add(Self::GAP)).contains(&known.start) {
            known.start = bits.last_unset(range.start..known.start);
        }
        if known.start <= range.start && range.end <= known.end {
            return true;
        }
        if bits.first_unset(range.clone()) < range.end {
            return false;
        }
        *known = range;
        true
    }
}

/// An allocation with the bytes of it that were written.
#[derive(Debug)]
pub(crate) struct WrittenMap {
    base: u64,
    bytes: u64,
    bits: Bits,
    /// Number of copies that may have cleared bits.
    clearings: AtomicU64,
    /// True once the allocation was freed.
    freed: AtomicBool,
}

impl WrittenMap {
    /// Returns the offsets of an access, if it is inside the allocation.
    #[inline]
    pub(crate) fn offsets(&self, address: u64, bytes: u64) -> Option<Range<u64>> {
        let offset = address.checked_sub(self.base)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some(offset..end)
    }

    /// Returns the number of copies that may have cleared bits. A [`KnownRange`] from before the last one is invalid.
    #[inline]
    pub(crate) fn clearings(&self) -> u64 {
        self.clearings.load(Relaxed)
    }

    /// Returns true if the allocation was freed. Another one may be at its address.
    #[inline]
    pub(crate) fn is_freed(&self) -> bool {
        self.freed.load(Relaxed)
    }

    /// Returns the bits, one per byte of the allocation.
    #[inline]
    pub(crate) fn bits(&self) -> &Bits {
        &self.bits
    }
}

/// The allocations that are tracked.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Number of checkers that need the bits.
    users: AtomicU64,
    maps: RwLock<BTreeMap<u64, Arc<WrittenMap>>>,
    /// By first address of an allocation, the place in the program that made it.
    origins: Mutex<HashMap<u64, String>>,
    /// True once an origin was recorded.
    notes_origins: AtomicBool,
}

impl Written {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<WrittenMap>>> {
        self.maps.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Arc<WrittenMap>>> {
        self.maps.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to track new allocations for a checker.
    pub(super) fn begin(&self) {
        self.users.fetch_add(1, Relaxed);
    }

    /// Ends the tracking for a checker. After the last one, all memory counts as written: kernels without an observer
    /// do not set bits.
    pub(super) fn end(&self) {
        // Under the lock, so that maps of a checker that begins meanwhile are not cleared.
        let mut maps = self.write();
        if self.users.fetch_sub(1, Relaxed) == 1 {
            maps.clear();
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.users.load(Relaxed) > 0
    }

    /// Returns the bits for [`track`](Self::track) of a new allocation; `None` if it need not be tracked. Large ones
    /// take long to make, so call this without the locks of the address space.
    pub(super) fn bits_for(&self, kind: AllocationKind, bytes: u64) -> Option<Bits> {
        // Mappings are not tracked, because several may show the same bytes.
        let tracked = self.is_active() && matches!(kind, AllocationKind::Device | AllocationKind::Heap);
        tracked.then(|| Bits::new(bytes))
    }

    /// Tracks a new allocation.
    pub(super) fn track(&self, base: u64, bytes: u64, bits: Bits) {
        let map = WrittenMap {
            base,
            bytes,
            bits,
            clearings: AtomicU64::new(0),
            freed: AtomicBool::new(false),
        };
        let mut maps = self.write();
        // The last checker may have ended.
        if self.is_active() {
            maps.insert(base, Arc::new(map));
        }
    }

    /// Removes an allocation.
    pub(super) fn forget(&self, base: u64) {
        if self.is_active()
            && let Some(map) = self.write().remove(&base)
        {
            map.freed.store(true, Relaxed);
        }
        if self.notes_origins.load(Relaxed) {
            self.origins().remove(&base);
        }
    }

    /// Returns the tracked allocation that contains an address.
    pub(super) fn find(&self, address: u64) -> Option<Arc<WrittenMap>> {
        let maps = self.read();
        let (_, map) = maps.range(..=address).next_back()?;
        (address - map.base < map.bytes).then(|| Arc::clone(map))
    }

    /// Records a write of the host.
    pub(super) fn mark(&self, address: u64, bytes: u64) {
        if self.is_active()
            && let Some(map) = self.find(address)
            && let Some(range) = map.offsets(address, bytes)
        {
            map.bits.set(range);
        }
    }

    /// Records a copy: a byte of the target counts as written if its source byte does. The ranges may overlap.
    pub(super) fn copy(&self, to: u64, from: u64, bytes: u64) {
        if !self.is_active() {
            return;
        }
        let Some(target) = self.find(to) else { return };
        let Some(range) = target.offsets(to, bytes) else {
            return;
        };
        let source = self.find(from);
        // Memory that is not tracked counts as written.
        let Some((source, sources)) = source.and_then(|map| map.offsets(from, bytes).map(|offsets| (map, offsets)))
        else {
            return target.bits.set(range);
        };
        if source.bits.every(sources.clone()) {
            return target.bits.set(range);
        }
        let values: Vec<bool> = sources.map(|bit| source.bits.any(bit..bit + 1)).collect();
        for (bit, value) in range.zip(values) {
            target.bits.assign(bit, value);
        }
        target.clearings.fetch_add(1, Relaxed);
    }

    /// Returns the parts of a range that do not count as written, as offsets from its start.
    pub(super) fn gaps(&self, address: u64, bytes: u64) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        if self.is_active()
            && let Some(map) = self.find(address)
            && let Some(range) = map.offsets(address, bytes)
        {
            let mut at = range.start;
            loop {
                let start = map.bits.first_unset(at..range.end);
                if start == range.end {
                    break;
                }
                at = (start..range.end)
                    .find(|&bit| map.bits.any(bit..bit + 1))
                    .unwrap_or(range.end);
                gaps.push(start - range.start..at - range.start);
            }
        }
        gaps
    }

    /// Records that a range no longer counts as written.
    pub(super) fn unmark(&self, address: u64, bytes: u64) {
        if self.is_active()
            && let Some(map) = self.find(address)
            && let Some(range) = map.offsets(address, bytes)
        {
            range.for_each(|bit| map.bits.assign(bit, false));
            map.clearings.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn set_origin(&self, base: u64, origin: String) {
        self.notes_origins.store(true, Relaxed);
        self.origins().insert(base, origin);
    }

    pub(super) fn origin(&self, base: u64) -> Option<String> {
        self.origins().get(&base).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::{AllocationKind, Bits, KnownRange, Written};

    #[test]
    fn bits_of_ranges() {
        let bits = Bits::new(200);
        bits.set(60..130);
        assert!(bits.every(60..130) && !bits.every(59..130) && !bits.every(60..131));
        assert!(bits.any(0..61) && !bits.any(0..60) && !bits.any(130..200));
        bits.clear();
        assert!(!bits.any(0..200));
        assert!(bits.every(5..5) && !bits.any(5..5));
    }

    /// Random accesses, with bits that other workers set in between.
    #[test]
    fn known_ranges_cover_what_is_set() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..50 {
            let bits = Bits::new(1000);
            let mut known = KnownRange::default();
            for step in 0..200 {
                let start = random(1000);
                let range = start..start + 1 + random(1000 - start);
                if step % 4 == 0 {
                    let part = start..(start + 1 + random(200)).min(1000);
                    bits.set(part);
                }
                assert_eq!(
                    known.covers(&bits, range.clone()),
                    bits.every(range.clone()),
                    "round {round}, step {step}: {range:?}"
                );
                assert!(bits.every(known.0.clone()), "round {round}, step {step}: {known:?}");
            }
        }
    }

    /// Tracks an allocation of 100 bytes if it has to be.
    fn track(written: &Written, kind: AllocationKind, base: u64) {
        if let Some(bits) = written.bits_for(kind, 100) {
            written.track(base, 100, bits);
        }
    }

    #[test]
    fn only_allocations_after_the_start_are_tracked() {
        let written = Written::default();
        track(&written, AllocationKind::Device, 4096);
        assert!(written.find(4096).is_none());
        written.begin();
        track(&written, AllocationKind::Managed, 4096);
        assert!(written.find(4096).is_none());
        track(&written, AllocationKind::Device, 4096);
        assert!(written.find(4195).is_some() && written.find(4196).is_none());
        written.forget(4096);
        assert!(written.find(4096).is_none());
        track(&written, AllocationKind::Heap, 4096);
        written.end();
        assert!(written.find(4096).is_none());
    }

    #[test]
    fn copies_carry_the_state_of_each_byte() {
        let written = Written::default();
        written.begin();
        for base in [4096, 8192] {
            track(&written, AllocationKind::Device, base);
        }
        written.mark(4096 + 10, 4);
        written.mark(8192, 100);
        written.copy(8192 + 20, 4096, 16);
        let map = written.find(8192).unwrap();
        assert!(map.bits().every(30..34) && !map.bits().any(20..30) && !map.bits().any(34..36));
        assert!(map.bits().every(0..20) && map.bits().every(36..100));
        // A copy in two steps.
        assert_eq!(written.gaps(4096 + 5, 20), [0..5, 9..20]);
        assert_eq!(written.gaps(4096 + 10, 4), []);
        written.unmark(4096 + 10, 2);
        assert_eq!(written.gaps(4096, 100), [0..12, 14..100]);
    }
}
