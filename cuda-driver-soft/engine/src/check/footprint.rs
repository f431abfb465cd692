//! The global memory that a launch, a copy, a fill or the program's own code reads and writes, for the check of races
//! between them.

use super::finding::Place;
use crate::id_map::IdMap;
use crate::memory::address_space;
use crate::program::kernel::Kernel;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a unit. The accesses to a unit are recorded in words of one bit per byte, and a report names the first read
/// or write of the unit, which may be that of another byte.
const UNIT: u64 = 64;
const UNITS: usize = (PAGE / UNIT) as usize;

/// An instruction of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Who {
    pub(super) function: u32,
    pub(super) line: u32,
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
}

/// The accesses to a page, with one bit for each byte.
struct Page {
    /// The identity of the allocation: a later allocation may have the same address.
    allocation: u64,
    read: [u64; UNITS],
    written: [u64; UNITS],
    /// Bytes with an access that is neither atomic, volatile nor otherwise strong.
    weak: [u64; UNITS],
    /// The first read of each unit.
    readers: [Who; UNITS],
    /// The first write of each unit.
    writers: [Who; UNITS],
}

/// A range of an allocation that a copy, a fill or the program's own code accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The identity of the allocation.
    pub allocation: u64,
    /// The addresses.
    pub range: Range<u64>,
    /// True if the range is written, false if it is read.
    pub writes: bool,
}

/// The global memory that a launch, a copy, a fill or the program's own code accesses.
#[derive(Default)]
pub struct Footprint {
    pages: IdMap<u64, Box<Page>>,
    spans: Vec<Span>,
    kernel: Option<Arc<Kernel>>,
    /// True if a thread ran a fence or a release.
    pub(super) fenced: bool,
}

impl fmt::Debug for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footprint")
            .field("pages", &self.pages.len())
            .field("spans", &self.spans)
            .finish_non_exhaustive()
    }
}

/// Memory that two footprints share and that at least one of them writes.
#[derive(Debug)]
pub(super) struct Overlap {
    pub(super) address: u64,
    /// The instruction of each footprint that accesses the memory; `None` for work that is not a launch.
    pub(super) places: [Option<Place>; 2],
    /// For each footprint, true if it writes.
    pub(super) writes: [bool; 2],
}

/// The accesses of a footprint to one unit, with one bit for each byte.
#[derive(Clone, Copy, Default)]
struct Word {
    read: u64,
    written: u64,
    weak: u64,
}

impl Footprint {
    /// Returns the footprint of a copy, a fill or an access of the program's own code.
    #[must_use]
    pub fn of_spans(spans: Vec<Span>) -> Self {
        Footprint {
            spans,
            ..Footprint::default()
        }
    }

    pub(super) fn of_kernel(kernel: &Arc<Kernel>) -> Self {
        Footprint {
            kernel: Some(Arc::clone(kernel)),
            ..Footprint::default()
        }
    }

    /// Adds an access of a kernel.
    pub(super) fn add(
        &mut self,
        range: Range<u64>,
        (reads, writes, strong): (bool, bool, bool),
        who: &dyn Fn() -> Who,
    ) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / UNIT + 1) * UNIT);
            let bits = mask(at % UNIT, end - at);
            let page = self.pages.entry(at / PAGE).or_insert_with(|| {
                Box::new(Page {
                    allocation: address_space().find(at).map_or(0, |found| found.id),
                    read: [0; UNITS],
                    written: [0; UNITS],
                    weak: [0; UNITS],
                    readers: [Who::default(); UNITS],
                    writers: [Who::default(); UNITS],
                })
            });
            let unit = (at % PAGE / UNIT) as usize;
            if reads && page.read[unit] & bits != bits {
                if page.read[unit] == 0 {
                    page.readers[unit] = who();
                }
                page.read[unit] |= bits;
            }
            if writes && page.written[unit] & bits != bits {
                if page.written[unit] == 0 {
                    page.writers[unit] = who();
                }
                page.written[unit] |= bits;
            }
            if !strong {
                page.weak[unit] |= bits;
            }
            at = end;
        }
    }

    /// Returns the units in pages that are accessed: the allocation, the unit's first address, and the accesses.
    fn words_of_pages(&self) -> impl Iterator<Item = (u64, u64, Word)> {
        self.pages.iter().flat_map(|(number, page)| {
            (0..UNITS).filter_map(move |unit| {
                let word = page.word(unit);
                let any = word.read | word.written != 0;
                any.then_some((page.allocation, number * PAGE + unit as u64 * UNIT, word))
            })
        })
    }

    /// Returns the accesses to the unit of an allocation at an address.
    fn word(&self, allocation: u64, address: u64) -> Word {
        let page = self
            .pages
            .get(&(address / PAGE))
            .filter(|page| page.allocation == allocation);
        let mut word = page.map_or(Word::default(), |page| page.word((address % PAGE / UNIT) as usize));
        for span in self.spans.iter().filter(|span| span.allocation == allocation) {
            let start = span.range.start.max(address);
            let end = span.range.end.min(address + UNIT);
            if start < end {
                let bits = mask(start - address, end - start);
                word.weak |= bits;
                if span.writes {
                    word.written |= bits;
                } else {
                    word.read |= bits;
                }
            }
        }
        word
    }

    /// Returns the lowest memory that two footprints share and that at least one of them writes, unless both accesses
    /// are strong. Returns `None` for launches that synchronise with each other through memory: one runs a fence or a
    /// release and writes memory that the other one reads, both with strong accesses.
    pub(super) fn overlap(&self, other: &Footprint) -> Option<Overlap> {
        let mut least: Option<(u64, u64, Word, Word)> = None;
        let mut synchronise = false;
        let mut see = |allocation: u64, address: u64, mine: Word, others: Word| {
            let both = mine.written & (others.read | others.written) | others.written & mine.read;
            let weak = both & (mine.weak | others.weak);
            if weak != 0 && least.as_ref().is_none_or(|(_, least, ..)| address < *least) {
                least = Some((allocation, address, mine, others));
            }
            let strong = both & !(mine.weak | others.weak);
            synchronise |= self.fenced && strong & mine.written & others.read != 0;
            synchronise |= other.fenced && strong & others.written & mine.read != 0;
        };
        for (allocation, address, word) in self.words_of_pages() {
            see(allocation, address, word, other.word(allocation, address));
        }
        for (allocation, address, word) in other.words_of_pages() {
            see(allocation, address, self.word(allocation, address), word);
        }
        for span in &self.spans {
            let same = other
                .spans
                .iter()
                .filter(|o| o.allocation == span.allocation && (o.writes || span.writes));
            for o in same {
                let start = span.range.start.max(o.range.start);
                if start < span.range.end.min(o.range.end) {
                    let word = start / UNIT * UNIT;
                    see(
                        span.allocation,
                        word,
                        self.word(span.allocation, word),
                        other.word(span.allocation, word),
                    );
                }
            }
        }
        let (allocation, address, mine, others) = least.filter(|_| !synchronise)?;
        let written = [
            mine.written & (others.read | others.written),
            others.written & (mine.read | mine.written),
        ];
        let both = (written[0] | written[1]) & (mine.weak | others.weak);
        let bit = 1 << both.trailing_zeros();
        let writes = [mine.written & bit != 0, others.written & bit != 0];
        Some(Overlap {
            address: address + u64::from(both.trailing_zeros()),
            places: [
                self.place(allocation, address, writes[0]),
                other.place(allocation, address, writes[1]),
            ],
            writes,
        })
    }

    /// Returns the place of a kernel's first read or write of the unit at an address.
    fn place(&self, allocation: u64, address: u64, writes: bool) -> Option<Place> {
        let page = self
            .pages
            .get(&(address / PAGE))
            .filter(|page| page.allocation == allocation)?;
        let unit = (address % PAGE / UNIT) as usize;
        let (who, action) = match writes {
            true => (page.writers[unit], "writes the memory"),
            false => (page.readers[unit], "reads the memory"),
        };
        let kernel = self.kernel.as_ref()?;
        let function = kernel.loaded().module.functions.get(who.function as usize);
        Some(Place::new(function, action.into(), who.line, who.block, who.thread))
    }
}

impl Page {
    fn word(&self, unit: usize) -> Word {
        Word {
            read: self.read[unit],
            written: self.written[unit],
            weak: self.weak[unit],
        }
    }
}

/// Returns the bits of a range of bytes in a unit.
fn mask(first: u64, bytes: u64) -> u64 {
    (u64::MAX >> (UNIT - bytes)) << first
}

#[cfg(test)]
mod tests {
    use super::{Footprint, Span, Who};
    use std::ops::Range;

    fn span(range: Range<u64>, writes: bool) -> Footprint {
        Footprint::of_spans(vec![Span {
            allocation: 0,
            range,
            writes,
        }])
    }

    /// Returns the footprint of a kernel that accesses memory outside allocations.
    fn kernel(range: Range<u64>, kind: (bool, bool, bool)) -> Footprint {
        let mut footprint = Footprint::default();
        footprint.add(range, kind, &Who::default);
        footprint
    }

    const READ: (bool, bool, bool) = (true, false, false);
    const WRITE: (bool, bool, bool) = (false, true, false);
    const ATOMIC: (bool, bool, bool) = (true, true, true);

    #[test]
    fn a_write_and_another_access_overlap() {
        let at = |a: &Footprint, b: &Footprint| {
            let (one, two) = (a.overlap(b).map(|o| o.address), b.overlap(a).map(|o| o.address));
            assert_eq!(one, two);
            one
        };
        assert_eq!(at(&span(0..100, true), &span(60..200, false)), Some(60));
        assert_eq!(at(&span(0..60, true), &span(60..200, true)), None);
        assert_eq!(at(&span(0..100, false), &span(60..200, false)), None);
        assert_eq!(at(&kernel(4000..4200, WRITE), &span(4100..4101, false)), Some(4100));
        assert_eq!(at(&kernel(4000..4200, READ), &span(4100..4101, false)), None);
        assert_eq!(at(&kernel(4000..4200, READ), &span(0..9000, true)), Some(4000));
        assert_eq!(at(&kernel(0..8, WRITE), &kernel(4..12, READ)), Some(4));
        assert_eq!(at(&kernel(0..4, WRITE), &kernel(4..12, READ)), None);
    }

    #[test]
    fn atomic_accesses_overlap_with_others_only() {
        let (mut one, two) = (kernel(0..4, ATOMIC), kernel(0..4, ATOMIC));
        assert!(one.overlap(&two).is_none());
        assert!(one.overlap(&kernel(0..4, READ)).is_some());
        // A release and an acquire order the accesses around them.
        one.add(64..68, WRITE, &Who::default);
        let mut reader = kernel(0..4, ATOMIC);
        reader.add(64..68, READ, &Who::default);
        assert!(one.overlap(&reader).is_some());
        one.fenced = true;
        assert!(one.overlap(&reader).is_none());
    }

    #[test]
    fn allocations_are_told_apart() {
        let mut other = span(0..100, true);
        other.spans[0].allocation = 7;
        assert!(other.overlap(&span(0..100, true)).is_none());
    }
}
