//! Shadow memory of the race checker: the last accesses to each byte.
//!
//! Memory is divided into lines of 32 words of 4 bytes. A line that only whole warps access, each lane its own word,
//! has one set of stamps; a write of this kind replaces all earlier accesses to the line. A line with accesses in other
//! known patterns, none of which races, has marks for its words, or for the bytes of its quarters. All other lines have
//! a cell for each word, or for each byte if an access was not to whole words.

use super::lane_maps::LaneMaps;
use super::parts::Parts;
use super::stamp::{Cell, Stamp};
use crate::id_map::IdMap;
use crate::lanes::{FULL, LANES, Mask};

/// Bytes of a line.
pub(super) const LINE: u64 = 128;
/// Quarters of a line: the 32 bytes of a quarter can have their own marks.
pub(super) const QUARTERS: usize = LINE as usize / LANES;
/// Lines of a page.
const PAGE_LINES: u64 = 32;

/// The accesses to a line that are not all rows.
#[derive(Debug)]
enum LineAccesses {
    /// Marks of words.
    Parts(Box<Parts>),
    /// Marks of the bytes of each quarter.
    Quarters(Box<[Parts; QUARTERS]>),
    Words(Box<[Cell; LANES]>),
    Bytes(Box<[Cell; LINE as usize]>),
}

/// The stamps of a line whose units were accessed together.
#[derive(Debug)]
pub(super) enum Together<'l> {
    /// Only rows of words were accessed.
    Row(&'l Cell),
    Words(&'l mut Parts),
    Bytes(&'l mut [Parts; QUARTERS]),
}

/// A line of memory.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Accesses in which lane `i` accessed word `i`, if `has_cells` is false.
    row: Cell,
    cells: Option<LineAccesses>,
    /// True if `cells` has the accesses. Otherwise, `cells` is kept to be reused.
    has_cells: bool,
}

impl Line {
    /// Returns the stamps of the whole line, if only rows of words were accessed.
    #[inline]
    pub(super) fn row(&mut self) -> Option<&mut Cell> {
        (!self.has_cells).then_some(&mut self.row)
    }

    /// Gives each word of a line that was accessed in rows its own marks.
    pub(super) fn divide(&mut self) {
        if !std::mem::replace(&mut self.has_cells, true) {
            if let Some(LineAccesses::Parts(parts)) = &mut self.cells {
                parts.reset(&self.row);
            } else {
                self.cells = Some(LineAccesses::Parts(Box::new(Parts::of_row(&self.row))));
            }
        }
    }

    /// Gives each byte its own marks, unless words or bytes have cells.
    pub(super) fn divide_words(&mut self, maps: &mut LaneMaps) {
        if !self.has_cells
            && self.row.is_none()
            && let Some(LineAccesses::Quarters(quarters)) = &mut self.cells
        {
            quarters.iter_mut().for_each(|quarter| quarter.reset(&self.row));
            self.has_cells = true;
            return;
        }
        if !self.has_cells || matches!(self.cells, Some(LineAccesses::Parts(_))) {
            self.divide();
            if let Some(LineAccesses::Parts(parts)) = &self.cells {
                let quarters = std::array::from_fn(|quarter| parts.quarter(quarter, maps));
                self.cells = Some(LineAccesses::Quarters(Box::new(quarters)));
            }
        }
    }

    /// Returns the stamps of the whole line, or its marks; `None` if words or bytes have cells.
    #[inline]
    pub(super) fn together(&mut self) -> Option<Together<'_>> {
        match &mut self.cells {
            _ if !self.has_cells => Some(Together::Row(&self.row)),
            Some(LineAccesses::Parts(parts)) => Some(Together::Words(parts)),
            Some(LineAccesses::Quarters(quarters)) => Some(Together::Bytes(quarters)),
            _ => None,
        }
    }

    /// Gives each word, or byte, that has marks its own cell.
    pub(super) fn separate(&mut self, maps: &LaneMaps) {
        if !self.has_cells {
            return;
        }
        match &self.cells {
            Some(LineAccesses::Parts(parts)) => self.cells = Some(LineAccesses::Words(parts.to_cells(maps))),
            Some(LineAccesses::Quarters(quarters)) => {
                let cells: Vec<Cell> = quarters.iter().flat_map(|parts| *parts.to_cells(maps)).collect();
                self.cells = cells.into_boxed_slice().try_into().ok().map(LineAccesses::Bytes);
            }
            _ => {}
        }
    }

    /// Returns the cells of the words, if there are any.
    pub(super) fn words(&mut self) -> Option<&mut [Cell; LANES]> {
        match &mut self.cells {
            Some(LineAccesses::Words(words)) if self.has_cells => Some(words),
            _ => None,
        }
    }

    /// Records a write of a row of words, which replaces all other accesses to the line.
    pub(super) fn write_row(&mut self, stamp: Stamp) {
        self.has_cells = false;
        self.row = Cell {
            write: stamp,
            ..Cell::default()
        };
    }

    /// Removes all accesses.
    fn clear(&mut self) {
        self.has_cells = false;
        self.row = Cell::default();
    }

    /// Removes all accesses, and frees the cells of words or bytes.
    fn remove_cells(&mut self) {
        self.clear();
        if matches!(self.cells, Some(LineAccesses::Words(_) | LineAccesses::Bytes(_))) {
            self.cells = None;
        }
    }

    /// Calls `visit` for each cell of an access of `bytes` bytes at an offset in the line, with the offset and the
    /// bytes of the cell.
    pub(super) fn visit(
        &mut self,
        maps: &LaneMaps,
        offset: u64,
        bytes: u64,
        mut visit: impl FnMut(u64, u32, &mut Cell),
    ) {
        self.separate(maps);
        let whole_words = offset.is_multiple_of(4) && bytes.is_multiple_of(4);
        let row = self.row;
        let fresh = !std::mem::replace(&mut self.has_cells, true);
        let cells = self
            .cells
            .get_or_insert_with(|| LineAccesses::Words(Box::new([Cell::default(); LANES])));
        if fresh {
            if !matches!(cells, LineAccesses::Words(_)) {
                *cells = LineAccesses::Words(Box::new([Cell::default(); LANES]));
            }
            if let LineAccesses::Words(words) = cells {
                for (lane, word) in words.iter_mut().enumerate() {
                    *word = row.of_lane(lane);
                }
            }
        }
        if let LineAccesses::Words(words) = cells
            && !whole_words
        {
            let bytes = (0..LINE as usize).map(|byte| words[byte / 4].of_byte(byte as u32 % 4));
            let bytes = bytes.collect::<Vec<_>>();
            if let Ok(bytes) = bytes.into_boxed_slice().try_into() {
                *cells = LineAccesses::Bytes(bytes);
            }
        }
        let end = (offset + bytes).min(LINE);
        match cells {
            LineAccesses::Parts(_) | LineAccesses::Quarters(_) => {}
            LineAccesses::Words(words) => {
                for word in offset / 4..end / 4 {
                    visit(word * 4, 4, &mut words[word as usize]);
                }
            }
            LineAccesses::Bytes(all) => {
                for byte in offset..end {
                    visit(byte, 1, &mut all[byte as usize]);
                }
            }
        }
    }
}

type Page = [Line; PAGE_LINES as usize];

/// The lines of all memory that a launch has accessed.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// Index into `pages`, by address divided by the bytes of a page.
    index: IdMap<u64, u32>,
    pages: Vec<Page>,
    /// Pages that can be reused.
    free: Vec<u32>,
    /// Number of pages that were used since the last reset: those after them are clear.
    used: usize,
    /// The pages that were last looked up in `index`, each with its number.
    recent: [(u64, u32); 4],
    next: usize,
}

impl Shadow {
    /// Returns the line of an address.
    #[inline]
    pub(super) fn line(&mut self, address: u64) -> &mut Line {
        let number = address / (LINE * PAGE_LINES);
        // Number 0 marks an unused entry. Only wrong kernels access page 0: the lowest addresses are never allocated.
        let page = match self.recent.iter().find(|(of, _)| *of == number && number != 0) {
            Some((_, page)) => *page,
            None => self.page(number),
        };
        &mut self.pages[page as usize][(address / LINE % PAGE_LINES) as usize]
    }

    /// Calls a function for each cell of some bytes at an address.
    pub(super) fn visit(&mut self, (address, bytes): (u64, u32), maps: &LaneMaps, mut visit: impl FnMut(&mut Cell)) {
        let (mut at, end) = (address, address.saturating_add(bytes.into()));
        while at < end {
            let part = (LINE - at % LINE).min(end - at);
            self.line(at).visit(maps, at % LINE, part, |_, _, cell| visit(cell));
            at += part;
        }
    }

    fn page(&mut self, number: u64) -> u32 {
        let page = *self.index.entry(number).or_insert_with(|| {
            if let Some(page) = self.free.pop() {
                self.pages[page as usize].iter_mut().for_each(Line::clear);
                return page;
            }
            self.pages.push(std::array::from_fn(|_| Line::default()));
            (self.pages.len() - 1) as u32
        });
        self.used = self.used.max(page as usize + 1);
        self.recent[self.next] = (number, page);
        self.next = (self.next + 1) % self.recent.len();
        page
    }

    /// Removes all accesses. Keeps a limited number of pages for reuse, without the cells of their words and bytes,
    /// which are many times as large as the memory that they are for.
    pub(super) fn reset(&mut self) {
        const MOST_PAGES: usize = 1 << 14;
        self.pages.truncate(MOST_PAGES);
        let used = std::mem::take(&mut self.used);
        let lines = self.pages.iter_mut().take(used).flatten();
        lines.for_each(Line::remove_cells);
        self.free = (0..self.pages.len() as u32).rev().collect();
        self.recent = Default::default();
        self.index.clear();
    }

    /// Removes the accesses to all pages that overlap a range.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        self.recent = Default::default();
        let page = LINE * PAGE_LINES;
        for number in address / page..(address + bytes).div_ceil(page) {
            self.free.extend(self.index.remove(&number));
        }
    }
}

/// Returns true if these accesses are a row of words at the beginning of a line: lane `i` accesses word `i`.
#[inline]
pub(super) fn is_row(addresses: &[u64; LANES], mask: Mask, bytes: u32) -> bool {
    if mask != FULL || bytes != 4 || !addresses[0].is_multiple_of(LINE) {
        return false;
    }
    let first = addresses[0];
    let mut differs = 0;
    for (i, address) in addresses.iter().enumerate() {
        differs |= address.wrapping_sub(first) ^ (i as u64 * 4);
    }
    differs == 0
}

#[cfg(test)]
mod tests {
    use super::{Cell, LINE, LaneMaps, Shadow, Stamp, is_row};
    use crate::check::stamp::{READS, add_read};

    fn stamp(warp: u8, lanes: u32) -> Stamp {
        Stamp {
            time: 1,
            warp,
            lanes,
            ..Stamp::default()
        }
    }

    #[test]
    fn a_row_becomes_words_and_words_become_bytes() {
        let (mut shadow, maps) = (Shadow::default(), LaneMaps::default());
        let line = shadow.line(4096);
        line.row().unwrap().write = stamp(3, !0);
        let mut seen = Vec::new();
        line.visit(&maps, 8, 8, |offset, _, cell| seen.push((offset, cell.write.lanes)));
        assert_eq!(seen, [(8, 1 << 2), (12, 1 << 3)]);
        assert!(line.row().is_none());
        seen.clear();
        line.visit(&maps, 13, 2, |offset, _, cell| {
            seen.push((offset, cell.write.lanes));
            cell.write = stamp(4, 1);
        });
        assert_eq!(seen, [(13, 1 << 3), (14, 1 << 3)]);
        seen.clear();
        line.visit(&maps, 12, 4, |offset, _, cell| {
            seen.push((offset, u32::from(cell.write.warp)))
        });
        assert_eq!(seen, [(12, 3), (13, 4), (14, 4), (15, 3)]);
    }

    #[test]
    fn lines_belong_to_their_addresses_until_they_are_forgotten() {
        let mut shadow = Shadow::default();
        for page in 1..20u64 {
            shadow.line(page * 4096 + LINE).row().unwrap().write = stamp(page as u8, !0);
        }
        for page in 1..20u64 {
            assert_eq!(
                u64::from(shadow.line(page * 4096 + LINE + 4).row().unwrap().write.warp),
                page
            );
            assert!(shadow.line(page * 4096).row().unwrap().write.is_none());
        }
        shadow.forget(4096, 8192);
        for (page, gone) in [(1, true), (2, true), (3, false)] {
            assert_eq!(shadow.line(page * 4096 + LINE).row().unwrap().write.is_none(), gone);
        }
    }

    #[test]
    fn no_cells_are_kept_for_the_next_launch() {
        let (mut shadow, maps) = (Shadow::default(), LaneMaps::default());
        shadow.line(4096).visit(&maps, 0, 4, |_, _, _| {});
        shadow.line(8192).visit(&maps, 1, 1, |_, _, _| {});
        shadow.line(12288).visit(&maps, 0, 4, |_, _, _| {});
        shadow.forget(12288, 4096);
        shadow.reset();
        assert_eq!(shadow.pages.len(), 3);
        assert!(shadow.pages.iter().flatten().all(|line| line.cells.is_none()));
        assert!(shadow.line(8192).row().is_some());
    }

    #[test]
    fn reads_of_one_warp_share_an_entry_and_the_first_readers_stay() {
        let mut cell = Cell::default();
        let never = |_: &Stamp| false;
        add_read(&mut cell, stamp(0, 1), never);
        add_read(&mut cell, stamp(0, 2), never);
        assert_eq!(cell.reads[0].lanes, 3);
        for warp in 1..9 {
            add_read(&mut cell, stamp(warp, 1), never);
        }
        assert_eq!(cell.reads.map(|r| r.warp), [0, 1, 8]);
        add_read(&mut cell, stamp(9, 1), |_| true);
        assert_eq!(cell.reads[0].warp, 9);
        assert_eq!(READS, 3);
    }

    #[test]
    fn rows() {
        let row = |first: u64, step: u64| std::array::from_fn(|i| first + step * i as u64);
        assert!(is_row(&row(256, 4), !0, 4));
        assert!(!is_row(&row(260, 4), !0, 4));
        assert!(!is_row(&row(256, 8), !0, 4));
        assert!(!is_row(&row(256, 4), 1, 4));
        assert!(!is_row(&row(256, 4), !0, 8));
    }
}
