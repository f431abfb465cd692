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

/// The accesses to a page.
struct Page {
    /// The identity of the allocation: a later allocation may have the same address.
    allocation: u64,
    words: [Word; UNITS],
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
    /// By allocation, the ranges of the spans.
    spans: IdMap<u64, Ranges>,
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

/// Ranges that are read and ranges that are written. The ranges of each kind are sorted and do not overlap.
#[derive(Debug, Default)]
struct Ranges {
    read: Vec<Range<u64>>,
    written: Vec<Range<u64>>,
}

/// The accesses of a footprint to one unit, with one bit for each byte. An access is weak if it is neither atomic,
/// volatile nor otherwise strong.
#[derive(Clone, Copy, Default)]
struct Word {
    read: u64,
    written: u64,
    weakly_read: u64,
    weakly_written: u64,
}

impl Word {
    /// Returns the bytes that this footprint writes and another one accesses, at least one of them weakly.
    fn races_of_writes(&self, other: &Word) -> u64 {
        self.weakly_written & (other.read | other.written) | self.written & (other.weakly_read | other.weakly_written)
    }

    /// Returns the bytes that one of two footprints writes and the other one accesses, at least one of them weakly.
    fn races(&self, other: &Word) -> u64 {
        self.races_of_writes(other) | other.races_of_writes(self)
    }

    /// Returns true if this footprint writes a byte that another one reads, both only with strong accesses.
    fn is_seen_by(&self, other: &Word) -> bool {
        self.written & !self.weakly_written & other.read & !other.weakly_read != 0
    }
}

impl Footprint {
    /// Returns the footprint of a copy, a fill or an access of the program's own code.
    #[must_use]
    pub fn of_spans(spans: Vec<Span>) -> Self {
        let mut all: IdMap<u64, Ranges> = IdMap::default();
        for span in spans {
            let ranges = all.entry(span.allocation).or_default();
            let of_kind = if span.writes {
                &mut ranges.written
            } else {
                &mut ranges.read
            };
            of_kind.push(span.range);
        }
        for ranges in all.values_mut() {
            join(&mut ranges.read);
            join(&mut ranges.written);
        }
        Footprint {
            spans: all,
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
                    words: [Word::default(); UNITS],
                    readers: [Who::default(); UNITS],
                    writers: [Who::default(); UNITS],
                })
            });
            let unit = (at % PAGE / UNIT) as usize;
            let word = &mut page.words[unit];
            if reads && word.read & bits != bits {
                if word.read == 0 {
                    page.readers[unit] = who();
                }
                word.read |= bits;
            }
            if writes && word.written & bits != bits {
                if word.written == 0 {
                    page.writers[unit] = who();
                }
                word.written |= bits;
            }
            if !strong {
                word.weakly_read |= if reads { bits } else { 0 };
                word.weakly_written |= if writes { bits } else { 0 };
            }
            at = end;
        }
    }

    /// Returns the units in pages that are accessed: the allocation, the unit's first address, and the accesses.
    fn words_of_pages(&self) -> impl Iterator<Item = (u64, u64, Word)> {
        self.pages.iter().flat_map(|(number, page)| {
            (0..UNITS).filter_map(move |unit| {
                let word = page.words[unit];
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
        let mut word = page.map_or(Word::default(), |page| page.words[(address % PAGE / UNIT) as usize]);
        if let Some(ranges) = self.spans.get(&allocation) {
            let (read, written) = (bits_of(&ranges.read, address), bits_of(&ranges.written, address));
            word.read |= read;
            word.weakly_read |= read;
            word.written |= written;
            word.weakly_written |= written;
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
            if mine.races(&others) != 0 && least.as_ref().is_none_or(|(_, least, ..)| address < *least) {
                least = Some((allocation, address, mine, others));
            }
            synchronise |= self.fenced && mine.is_seen_by(&others);
            synchronise |= other.fenced && others.is_seen_by(&mine);
        };
        for (allocation, address, word) in self.words_of_pages() {
            see(allocation, address, word, other.word(allocation, address));
        }
        for (allocation, address, word) in other.words_of_pages() {
            see(allocation, address, self.word(allocation, address), word);
        }
        for (allocation, mine) in &self.spans {
            let Some(others) = other.spans.get(allocation) else {
                continue;
            };
            let pairs = [
                (&mine.written, &others.written),
                (&mine.written, &others.read),
                (&mine.read, &others.written),
            ];
            for start in pairs.into_iter().filter_map(|(a, b)| first_common(a, b)) {
                let unit = start / UNIT * UNIT;
                see(
                    *allocation,
                    unit,
                    self.word(*allocation, unit),
                    other.word(*allocation, unit),
                );
            }
        }
        let (allocation, address, mine, others) = least.filter(|_| !synchronise)?;
        let first = mine.races(&others).trailing_zeros();
        let writes = [(&mine, &others), (&others, &mine)].map(|(a, b)| a.races_of_writes(b) >> first & 1 != 0);
        Some(Overlap {
            address: address + u64::from(first),
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

/// Sorts ranges, joins those that overlap or touch, and removes empty ones.
fn join(ranges: &mut Vec<Range<u64>>) {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let joins = next.start <= before.end;
        if joins {
            before.end = before.end.max(next.end);
        }
        joins
    });
}

/// Returns the bytes of the unit at an address that are in some of the ranges, which are as [`join`] leaves them.
fn bits_of(ranges: &[Range<u64>], address: u64) -> u64 {
    let first = ranges.partition_point(|range| range.end <= address);
    let inside = ranges[first..].iter().take_while(|range| range.start < address + UNIT);
    inside.fold(0, |bits, range| {
        let start = range.start.max(address);
        bits | mask(start - address, range.end.min(address + UNIT) - start)
    })
}

/// Returns the lowest address in a range of both lists, which are as [`join`] leaves them.
fn first_common(a: &[Range<u64>], b: &[Range<u64>]) -> Option<u64> {
    let (mut i, mut j) = (0, 0);
    loop {
        let (one, two) = (a.get(i)?, b.get(j)?);
        let start = one.start.max(two.start);
        if start < one.end.min(two.end) {
            return Some(start);
        }
        if one.end <= two.end {
            i += 1;
        } else {
            j += 1;
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
        let (mut one, mut two) = (kernel(0..4, ATOMIC), kernel(0..4, ATOMIC));
        assert!(one.overlap(&two).is_none());
        // Plain reads race with writes only.
        one.add(8..12, ATOMIC, &Who::default);
        one.add(8..12, READ, &Who::default);
        let reader = kernel(8..12, (true, false, true));
        assert!(one.overlap(&reader).is_none() && reader.overlap(&one).is_none());
        two.add(8..12, ATOMIC, &Who::default);
        let found = one.overlap(&two).unwrap();
        assert_eq!((found.address, found.writes), (8, [false, true]));
        let mut one = kernel(0..4, ATOMIC);
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
        let other = Footprint::of_spans(vec![Span {
            allocation: 7,
            range: 0..100,
            writes: true,
        }]);
        assert!(other.overlap(&span(0..100, true)).is_none());
    }

    /// Returns the footprint of a copy to rows of 16 bytes, which begin at each of `starts`.
    fn rows(starts: impl Iterator<Item = u64>) -> Footprint {
        let row = |start| Span {
            allocation: 0,
            range: start..start + 16,
            writes: true,
        };
        Footprint::of_spans(starts.map(row).collect())
    }

    /// Comparing each row with each unit or row would take very long.
    #[test]
    fn copies_of_many_rows_overlap() {
        const ROWS: u64 = 1 << 18;
        let at = |a: &Footprint, b: &Footprint| a.overlap(b).map(|found| found.address);
        let (even, odd) = (
            rows((0..ROWS).rev().map(|i| 32 * i)),
            rows((0..ROWS).map(|i| 32 * i + 16)),
        );
        assert_eq!(at(&even, &odd), None);
        let last = 32 * (ROWS - 1);
        assert_eq!(at(&even, &rows((0..ROWS).map(|i| last + 15 + 16 * i))), Some(last + 15));
        let mut reader = Footprint::default();
        for unit in 0..ROWS / 64 {
            reader.add(64 * unit + 16..64 * unit + 32, READ, &Who::default);
        }
        assert_eq!(at(&reader, &even), None);
        assert_eq!(at(&odd, &reader), Some(16));
    }

    #[test]
    fn spans_that_overlap_each_other_count_once() {
        let spans = [
            (40..80, false),
            (10..50, false),
            (50..50, true),
            (70..90, true),
            (90..95, true),
        ];
        let spans = spans.map(|(range, writes)| Span {
            allocation: 0,
            range,
            writes,
        });
        let copy = Footprint::of_spans(spans.to_vec());
        for byte in 0..100 {
            let other = span(byte..byte + 1, true);
            assert_eq!(copy.overlap(&other).is_some(), (10..95).contains(&byte), "{byte}");
            let other = kernel(byte..byte + 1, READ);
            assert_eq!(copy.overlap(&other).is_some(), (70..95).contains(&byte), "{byte}");
        }
    }
}
