//! The free parts of the reserved range of addresses.

#![forbid(unsafe_code)]

use super::pages::PAGE;
use std::collections::BTreeMap;
use std::ops::Range;

/// The free addresses. Freed addresses are reused as late as possible, so that uses of stale pointers are detected.
#[derive(Debug)]
pub(super) struct FreeAddresses {
    /// Free parts that do not touch each other: start → end.
    parts: BTreeMap<u64, u64>,
    /// The end of the addresses that [`take`](Self::take) returned last, where its next search starts.
    cursor: u64,
}

impl FreeAddresses {
    /// Returns a value in which all addresses of a range are free.
    pub(super) fn new(range: Range<u64>) -> Self {
        FreeAddresses {
            cursor: range.start,
            parts: BTreeMap::from([(range.start, range.end)]),
        }
    }

    /// Takes addresses for `bytes` bytes: whole pages, after the ones that were taken last if possible. Returns the
    /// first, or `None` if no free part is large enough.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let size = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let cursor = self.cursor;
        let fits = |(start, end): (&u64, &u64)| (end - start >= size).then_some((*start, *end));
        // Skip the addresses freed before the cursor, which were joined with the free ones after it.
        let around = self.parts.range(..cursor).next_back();
        let after = around.filter(|(_, end)| **end >= cursor.saturating_add(size));
        let (part, start) = match after {
            Some((&first, &end)) => ((first, end), cursor),
            None => {
                let part = self
                    .parts
                    .range(cursor..)
                    .find_map(fits)
                    .or_else(|| self.parts.range(..cursor).find_map(fits))?;
                (part, part.0)
            }
        };
        self.cut(part, start..start + size);
        self.cursor = start + size;
        Some(start)
    }

    /// Takes these addresses, which are whole pages, and returns true if all of them are free. Otherwise takes none.
    pub(super) fn take_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else {
            return false;
        };
        let around = self.parts.range(..=start).next_back();
        let Some((&first, &last)) = around.filter(|(_, last)| **last >= end) else {
            return false;
        };
        self.cut((first, last), start..end);
        true
    }

    /// Removes a range from the free part that contains it.
    fn cut(&mut self, (first, last): (u64, u64), taken: Range<u64>) {
        self.parts.remove(&first);
        if first < taken.start {
            self.parts.insert(first, taken.start);
        }
        if taken.end < last {
            self.parts.insert(taken.end, last);
        }
    }

    /// Frees addresses, and joins them with their free neighbours.
    pub(super) fn give(&mut self, start: u64, bytes: u64) {
        let mut start = start;
        let mut end = start + bytes.max(1).next_multiple_of(PAGE);
        if let Some((&before, &before_end)) = self.parts.range(..start).next_back()
            && before_end == start
        {
            self.parts.remove(&before);
            start = before;
        }
        if let Some(after_end) = self.parts.remove(&end) {
            end = after_end;
        }
        self.parts.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::FreeAddresses;
    use crate::memory::pages::PAGE;

    #[test]
    fn addresses_are_reused_when_the_range_is_used_up() {
        let start = 16 * PAGE;
        let mut free = FreeAddresses::new(start..start + 4 * PAGE);
        for page in 0..4 {
            assert_eq!(free.take(1), Some(start + page * PAGE));
        }
        assert_eq!(free.take(1), None);
        free.give(start + PAGE, 1);
        free.give(start + 2 * PAGE, 1);
        assert_eq!(free.take(2 * PAGE), Some(start + PAGE), "joined neighbours");
        assert_eq!(free.take(u64::MAX), None);
        assert!(!free.take_at(start, PAGE));
        free.give(start, PAGE);
        assert!(free.take_at(start, PAGE));
    }
}
