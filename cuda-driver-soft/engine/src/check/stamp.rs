//! The last accesses to a location: a stamp for each, with its block, time, lanes and instruction.

use crate::lanes::Mask;

/// The strength of an access. Two strong accesses do not race if each thread is in the reach of the other one's access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// An access that is neither atomic, volatile, relaxed nor stronger.
    #[default]
    Weak,
    /// A strong access that concerns only the threads of its block.
    InBlock,
    /// Any other strong access.
    Strong,
}

impl Strength {
    /// Returns true if two accesses of these strengths are strong for each other. `same_block` is true if both are made
    /// by threads of one block.
    #[inline]
    pub(super) fn is_mutual(self, other: Strength, same_block: bool) -> bool {
        match self.min(other) {
            Strength::Weak => false,
            Strength::InBlock => same_block,
            Strength::Strong => true,
        }
    }
}

/// An access of lanes of one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Number of the block.
    pub(super) block: u32,
    /// The block's time at the access; 0 if there was no access.
    pub(super) time: u32,
    /// The instruction, as a number that the checker assigns.
    pub(super) site: u32,
    /// The lanes that made the access.
    pub(super) lanes: Mask,
    /// Number of the warp in its block.
    pub(super) warp: u8,
    /// The strength of the access.
    pub(super) strong: Strength,
    /// The value that was stored, if `has_value`.
    pub(super) value: u32,
    /// True for a copy that the thread has not waited for.
    pub(super) pending: bool,
    /// True for a plain store whose value in this word or byte is known.
    pub(super) has_value: bool,
}

impl Stamp {
    pub(super) fn is_none(&self) -> bool {
        self.time == 0
    }

    /// Returns true if the same warp made both accesses at the same moment, with the same strength.
    #[inline]
    pub(super) fn is_same_moment(&self, other: &Stamp) -> bool {
        (self.block, self.warp, self.time, self.strong) == (other.block, other.warp, other.time, other.strong)
    }

    /// Returns true if this access and another one are strong for each other.
    #[inline]
    pub(super) fn is_mutual(&self, other: &Stamp) -> bool {
        self.strong.is_mutual(other.strong, self.block == other.block)
    }

    pub(super) fn of_lane(self, lane: usize) -> Self {
        let lanes = self.lanes & 1 << lane;
        if lanes == 0 {
            Stamp::default()
        } else {
            Stamp { lanes, ..self }
        }
    }
}

/// The number of reads that a cell keeps. If more warps read a location without order, the cell keeps only some of the
/// reads. Few races are missed: a write that is unordered with a dropped read is rarely ordered after all kept ones.
pub(super) const READS: usize = 3;

/// The last accesses to a location.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// The last write.
    pub(super) write: Stamp,
    /// A weaker write that `write` has replaced. A strong access that follows may race with this one only.
    pub(super) hidden: Stamp,
    /// Reads since then that are not ordered among each other, as far as known.
    pub(super) reads: [Stamp; READS],
}

impl Cell {
    pub(super) fn of_lane(&self, lane: usize) -> Self {
        Cell {
            write: self.write.of_lane(lane),
            hidden: self.hidden.of_lane(lane),
            reads: self.reads.map(|read| read.of_lane(lane)),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.write.is_none() && self.reads[0].is_none()
    }

    /// Returns true if a read of this moment and these lanes is in the cell.
    #[inline]
    pub(super) fn has_read(&self, read: &Stamp) -> bool {
        self.reads
            .iter()
            .any(|old| old.is_same_moment(read) && read.lanes & !old.lanes == 0)
    }

    /// Returns the cell of a byte of this word.
    pub(super) fn of_byte(mut self, byte: u32) -> Self {
        self.write.value = self.write.value >> (byte * 8) & 0xff;
        self
    }

    /// Records a write, which replaces all earlier accesses except a weaker write, whose value is forgotten.
    pub(super) fn replace(&mut self, write: Stamp) {
        let has_weaker = !self.hidden.is_none() && self.hidden.strong < self.write.strong;
        let hidden = if has_weaker { self.hidden } else { self.write };
        *self = Cell {
            write,
            ..Cell::default()
        };
        if hidden.strong < write.strong {
            self.hidden = Stamp {
                value: 0,
                has_value: false,
                ..hidden
            };
        }
    }
}

/// Adds a read to the reads of a cell, which are in the order of the accesses. `is_before` returns true for an earlier
/// read that is ordered before the new one. Such a read need not be kept, unless it is weaker than the new one: a
/// strong write that races with a weak read need not race with a strong one.
pub(super) fn add_read(cell: &mut Cell, read: Stamp, is_before: impl Fn(&Stamp) -> bool) {
    if cell.has_read(&read) {
        return;
    }
    let same_warp = |old: &Stamp| (old.block, old.warp) == (read.block, read.warp);
    let mut new = read;
    let mut kept = 0;
    for i in 0..READS {
        let old = cell.reads[i];
        if old.is_none() {
            break;
        }
        if old.is_same_moment(&read) {
            new.lanes |= old.lanes;
        } else if old.strong < read.strong || !(is_before(&old) || (same_warp(&old) && old.lanes & !read.lanes == 0)) {
            cell.reads[kept] = old;
            kept += 1;
        }
    }
    // If the cell is full, the new read replaces the last one.
    cell.reads[kept.min(READS - 1)] = new;
    cell.reads[(kept + 1).min(READS)..].fill(Stamp::default());
}
