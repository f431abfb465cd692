//! A cache of the patterns of addresses that a warp's requests have.
//!
//! Most instructions access memory in the same pattern each time, moved by a distance. Numbers that depend only on the
//! distances between the addresses and on the alignment of the first one need not be computed again while their pattern
//! is in the cache.

use crate::code::site::SiteAccess;
use crate::code::watch::{At, Distances};
use crate::lanes::{LANES, Lanes, Mask};

/// The addresses that the lanes of a warp access with one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// A number that distinguishes requests with the same addresses, such as several accesses of one instruction.
    pub(crate) kind: u32,
    /// The lanes that make the request; at least one.
    pub(crate) mask: Mask,
    pub(crate) addresses: &'a Lanes<u64>,
    /// Bytes that each lane accesses.
    pub(crate) bytes: u32,
}

impl Request<'_> {
    /// Returns the address of the first active lane.
    pub(crate) fn base(&self) -> u64 {
        self.addresses[self.mask.trailing_zeros() as usize % LANES]
    }
}

/// A pattern, and a value that was computed for it.
#[derive(Debug)]
struct Entry<T> {
    kind: u32,
    mask: Mask,
    bytes: u32,
    /// The first active lane's address modulo the alignment.
    align: u64,
    /// The distance of each active lane's address from the first one's.
    distances: Distances,
    value: T,
}

/// The patterns of one instruction. Two patterns are equal if one is the other one moved by a multiple of `ALIGN`.
#[derive(Debug)]
pub(crate) struct PatternCache<T, const ALIGN: u64> {
    entries: Vec<Entry<T>>,
    /// The entry that was found last.
    last: usize,
    /// The entry that is replaced next.
    next: usize,
    /// Rises with each request whose pattern was found, up to a limit, and falls with each request that was looked up
    /// without success.
    score: i32,
    /// Number of the next requests that are not looked up: if patterns rarely repeat, the cache only costs time.
    pause: u32,
}

impl<T, const ALIGN: u64> Default for PatternCache<T, ALIGN> {
    fn default() -> Self {
        PatternCache {
            entries: Vec::new(),
            last: 0,
            next: 0,
            score: 0,
            pause: 0,
        }
    }
}

impl<T, const ALIGN: u64> PatternCache<T, ALIGN> {
    /// Number of patterns that are kept.
    const ENTRIES: usize = 8;
    const BEST_SCORE: i32 = 32;
    const WORST_SCORE: i32 = -16;
    const PAUSE: u32 = 1000;

    /// Returns the value of a request's pattern; `None` if the pattern is unknown or the request is not looked up.
    #[inline]
    pub(crate) fn find(&mut self, request: &Request<'_>) -> Option<&mut T> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let (base, kind) = (request.base(), (request.kind, request.mask, request.bytes));
        self.find_where(base, kind, |distances| {
            distances.are_of(request.addresses, base, request.mask)
        })?;
        Some(&mut self.entries[self.last].value)
    }

    /// Returns the address of the first lane of a request, if its pattern is known: [`latest`](Self::latest) then
    /// returns the pattern. The request is an access of an instruction, of this kind, with these lanes and this number
    /// of bytes for each.
    #[inline]
    pub(crate) fn find_at(
        &mut self,
        at: &At<'_>,
        access: &SiteAccess,
        (kind, mask, bytes): (u32, Mask, u32),
    ) -> Option<u64> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let base = at.first_address(access, mask);
        self.find_where(base, (kind, mask, bytes), |distances| {
            at.has_distances(access, mask, distances)
        })?;
        Some(base)
    }

    #[inline(always)]
    fn find_where(
        &mut self,
        base: u64,
        kind: (u32, Mask, u32),
        has_distances: impl Fn(&Distances) -> bool,
    ) -> Option<()> {
        match self.entries.get(self.last) {
            Some(last) if last.is_like::<ALIGN>(base, kind) && has_distances(&last.distances) => {}
            _ => self.last = self.find_other(base, kind, has_distances)?,
        }
        self.score = (self.score + 1).min(Self::BEST_SCORE);
        Some(())
    }

    #[inline(never)]
    fn find_other(
        &mut self,
        base: u64,
        kind: (u32, Mask, u32),
        has_distances: impl Fn(&Distances) -> bool,
    ) -> Option<usize> {
        let is_it = |e: &Entry<T>| e.is_like::<ALIGN>(base, kind) && has_distances(&e.distances);
        let found = self.entries.iter().position(is_it);
        if found.is_none() {
            self.score -= 1;
            if self.score < Self::WORST_SCORE {
                (self.score, self.pause) = (0, Self::PAUSE);
            }
        }
        found
    }

    /// Adds the value of a pattern that was not found. Returns the value that is not kept, if any: the replaced one, or
    /// the new one if requests are not looked up now.
    pub(crate) fn insert(&mut self, request: &Request<'_>, value: T) -> Option<T> {
        if self.pause > 0 {
            return Some(value);
        }
        let base = request.base();
        let entry = Entry {
            kind: request.kind,
            mask: request.mask,
            bytes: request.bytes,
            align: base % ALIGN,
            distances: Distances::new(request.addresses, request.mask),
            value,
        };
        if self.entries.len() < Self::ENTRIES {
            self.last = self.entries.len();
            self.entries.push(entry);
            return None;
        }
        self.last = self.next;
        self.next = (self.next + 1) % Self::ENTRIES;
        Some(std::mem::replace(&mut self.entries[self.last], entry).value)
    }

    /// Returns true if the next request is not looked up.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause > 0
    }

    /// Returns the pattern that was found or added last: its distances and the value.
    pub(crate) fn latest(&mut self) -> Option<(&Lanes<u64>, &mut T)> {
        let entry = self.entries.get_mut(self.last)?;
        Some((entry.distances.all(), &mut entry.value))
    }

    /// Returns all values that are kept.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.entries.into_iter().map(|e| e.value)
    }
}

impl<T> Entry<T> {
    /// Returns true if requests of this kind, which these lanes make for this many bytes each, may have the pattern.
    #[inline(always)]
    fn is_like<const ALIGN: u64>(&self, base: u64, (kind, mask, bytes): (u32, Mask, u32)) -> bool {
        (self.mask, self.bytes, self.kind) == (mask, bytes, kind) && self.align == base % ALIGN
    }
}

#[cfg(test)]
mod tests {
    use super::{PatternCache, Request};
    use crate::lanes::{FULL, Lanes, Mask};

    fn request(addresses: &Lanes<u64>, mask: Mask) -> Request<'_> {
        Request {
            kind: 0,
            mask,
            addresses,
            bytes: 4,
        }
    }

    fn row(first: u64, step: u64) -> Lanes<u64> {
        std::array::from_fn(|i| first + step * i as u64)
    }

    #[test]
    fn a_pattern_may_move_by_the_alignment() {
        let mut cache: PatternCache<u32, 32> = PatternCache::default();
        assert!(cache.find(&request(&row(4096, 4), FULL)).is_none());
        assert_eq!(cache.insert(&request(&row(4096, 4), FULL), 7), None);
        assert_eq!(cache.find(&request(&row(8192 + 64, 4), FULL)), Some(&mut 7));
        assert_eq!(cache.find(&request(&row(8192 + 4, 4), FULL)), None);
        assert_eq!(cache.find(&request(&row(4096, 8), FULL)), None);
        assert_eq!(cache.find(&request(&row(4096, 4), 1)), None);
        let same = row(4096, 4);
        let wide = Request {
            bytes: 8,
            ..request(&same, FULL)
        };
        assert_eq!(cache.find(&wide), None);
    }

    #[test]
    fn addresses_of_other_lanes_do_not_count() {
        let mut cache: PatternCache<u32, 32> = PatternCache::default();
        let mask = 0xff00;
        cache.insert(&request(&row(4096, 4), mask), 7);
        let mut moved = row(32, 4);
        (moved[0], moved[31]) = (5, 99);
        assert_eq!(cache.find(&request(&moved, mask)), Some(&mut 7));
        moved[9] += 4;
        assert_eq!(cache.find(&request(&moved, mask)), None);
    }

    #[test]
    fn every_value_is_given_back_once() {
        let mut cache: PatternCache<u64, 32> = PatternCache::default();
        let mut sum = 0;
        for step in 0..200 {
            let addresses = row(4096, step % 11);
            match cache.find(&request(&addresses, FULL)) {
                Some(value) => *value += 1,
                None => sum += cache.insert(&request(&addresses, FULL), 1).unwrap_or(0),
            }
        }
        assert_eq!(sum + cache.into_values().sum::<u64>(), 200);
    }
}
