//! The accesses to parts of a line of shadow memory.
//!
//! Most instructions access many words of a line at once. The stamps of these words differ only in their lanes, which a
//! [`LaneMaps`] keeps once for all lines: a stamp has the number of a map. Each access is one mark, with the words or
//! bytes that it accessed and that no later access has replaced.

use super::lane_maps::{LaneMaps, MapId, ROW, Units, bytes_of};
use super::order::Known;
use super::stamp::{Cell, Stamp, Strength};
use crate::lanes::{self, LANES};

/// An access of one warp to several units: words, or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartStamp {
    block: u32,
    /// The block's time at the access; 0 if there was no access.
    time: u32,
    site: u32,
    /// The lanes that accessed each unit.
    map: MapId,
    warp: u8,
    strong: Strength,
    /// True if the values that were stored are known.
    pub(super) has_value: bool,
}

impl PartStamp {
    /// Returns the stamp of units that the lanes of a map access. Its other values are those of `stamp`.
    pub(super) fn new(stamp: &Stamp, map: MapId) -> Self {
        PartStamp {
            block: stamp.block,
            time: stamp.time,
            site: stamp.site,
            map,
            warp: stamp.warp,
            strong: stamp.strong,
            has_value: stamp.has_value,
        }
    }

    /// Returns the stamp of units that the lanes of another map access.
    pub(super) fn with_map(self, map: MapId) -> Self {
        PartStamp { map, ..self }
    }

    fn is_none(&self) -> bool {
        self.time == 0
    }

    fn same_warp(&self, other: &PartStamp) -> bool {
        (self.block, self.warp) == (other.block, other.warp)
    }

    fn same_moment(&self, other: &PartStamp) -> bool {
        self.same_warp(other) && (self.time, self.strong) == (other.time, other.strong)
    }

    /// Returns the stamp of one unit, in which `value` was stored.
    fn of_unit(&self, maps: &LaneMaps, unit: usize, value: u32) -> Stamp {
        if self.is_none() {
            return Stamp::default();
        }
        Stamp {
            block: self.block,
            time: self.time,
            site: self.site,
            lanes: maps.lanes(self.map, unit),
            warp: self.warp,
            strong: self.strong,
            pending: false,
            value: if self.has_value { value } else { 0 },
            has_value: self.has_value,
        }
    }

    /// Returns true if this earlier access cannot race with a new one: it is ordered before all lanes of the new warp,
    /// or one lane made both accesses to each unit, or both are strong.
    #[inline]
    fn is_harmless(&self, new: &PartStamp, units: Units, known: &Known, maps: &LaneMaps) -> bool {
        self.is_none()
            || self.strong.is_mutual(new.strong, self.block == new.block)
            || known.covers((self.block, self.warp), self.time)
            || (self.same_warp(new) && maps.is_same_lane(self.map, new.map, units))
    }
}

/// An access to units of a line that no later access has replaced.
#[derive(Clone, Copy, Debug)]
struct Mark {
    units: Units,
    stamp: PartStamp,
}

/// Returns true if an access to units of a line, which was accessed in rows only, races with no earlier access.
pub(super) fn is_row_harmless(
    row: &Cell,
    units: Units,
    (new, writes): (&PartStamp, bool),
    known: &Known,
    maps: &LaneMaps,
) -> bool {
    let harmless = |old: &Stamp| PartStamp::new(old, ROW).is_harmless(new, units, known, maps);
    harmless(&row.write) && harmless(&row.hidden) && (!writes || row.reads.iter().all(harmless))
}

/// The accesses to the units of a line: its 32 words, or the 32 bytes of a quarter of it.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The last write of each unit: a unit is in at most one mark.
    writes: Vec<Mark>,
    /// The weaker writes that those in `writes` have replaced: a unit is in at most one mark.
    hidden: Vec<Mark>,
    /// The marks of each unit, at most `READS`, are in the order of the accesses.
    reads: Vec<Mark>,
    /// The units that may be in `reads`.
    read_units: Units,
    /// The values that were stored in the units, where the stamps have values.
    values: Option<Box<[u32; LANES]>>,
    /// The number of marks at which those that differ only in their maps are joined.
    join_at: u32,
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            writes: Vec::new(),
            hidden: Vec::new(),
            reads: Vec::new(),
            read_units: 0,
            values: None,
            join_at: Self::JOIN_AT,
        }
    }
}

impl Parts {
    const JOIN_AT: u32 = 24;

    /// Returns the parts of a line whose words were accessed in rows.
    pub(super) fn of_row(row: &Cell) -> Self {
        let mut parts = Parts::default();
        parts.reset(row);
        parts
    }

    /// Replaces all accesses by those of a row.
    pub(super) fn reset(&mut self, row: &Cell) {
        let marks = |stamps: &[Stamp]| {
            let known = stamps.iter().filter(|stamp| !stamp.is_none());
            let marks = known.map(|stamp| Mark {
                units: !0,
                stamp: PartStamp::new(stamp, ROW),
            });
            marks.collect::<Vec<_>>()
        };
        self.writes.clear();
        self.writes.extend(marks(&[row.write]));
        self.hidden.clear();
        self.hidden.extend(marks(&[row.hidden]));
        if row.write.has_value {
            self.values = Some(Box::new([row.write.value; LANES]));
        }
        self.reads.clear();
        self.reads.extend(marks(&row.reads));
        self.read_units = if self.reads.is_empty() { 0 } else { !0 };
        self.join_at = Self::JOIN_AT;
    }

    /// Returns the stamps of each unit.
    pub(super) fn to_cells(&self, maps: &LaneMaps) -> Box<[Cell; LANES]> {
        let mut cells = Box::new([Cell::default(); LANES]);
        for mark in &self.writes {
            for unit in lanes::iter(mark.units) {
                let value = self.values.as_ref().map_or(0, |values| values[unit]);
                cells[unit].write = mark.stamp.of_unit(maps, unit, value);
            }
        }
        for mark in &self.hidden {
            for unit in lanes::iter(mark.units) {
                cells[unit].hidden = mark.stamp.of_unit(maps, unit, 0);
            }
        }
        for mark in &self.reads {
            for unit in lanes::iter(mark.units) {
                if let Some(free) = cells[unit].reads.iter_mut().find(|read| read.is_none()) {
                    *free = mark.stamp.of_unit(maps, unit, 0);
                }
            }
        }
        cells
    }

    /// Returns the accesses to the bytes of a quarter of the line, from those of its words.
    pub(super) fn quarter(&self, quarter: usize, maps: &mut LaneMaps) -> Self {
        let mut of_bytes = |marks: &[Mark]| {
            let marks = marks.iter().filter_map(|mark| {
                let units = bytes_of(mark.units, quarter);
                let map = maps.of_bytes(mark.stamp.map, quarter);
                let stamp = mark.stamp.with_map(map);
                (units != 0).then_some(Mark { units, stamp })
            });
            marks.collect::<Vec<_>>()
        };
        let byte = |values: &[u32; LANES], i: usize| values[(quarter * 8 + i / 4) % LANES] >> (i % 4 * 8) & 0xff;
        Parts {
            writes: of_bytes(&self.writes),
            hidden: of_bytes(&self.hidden),
            reads: of_bytes(&self.reads),
            read_units: bytes_of(self.read_units, quarter),
            values: self
                .values
                .as_ref()
                .map(|values| Box::new(std::array::from_fn(|i| byte(values, i)))),
            join_at: self.join_at,
        }
    }

    /// Returns true if an access to these units races with no earlier one. False means that the units must be checked
    /// one by one.
    #[inline]
    pub(super) fn is_harmless(
        &self,
        units: Units,
        (new, writes): (&PartStamp, bool),
        known: &Known,
        maps: &LaneMaps,
    ) -> bool {
        let harmless = |mark: &Mark| {
            let common = mark.units & units;
            common == 0 || mark.stamp.is_harmless(new, common, known, maps)
        };
        self.writes.iter().all(harmless)
            && self.hidden.iter().all(harmless)
            && (!writes || self.read_units & units == 0 || self.reads.iter().all(harmless))
    }

    /// Records a write of units. The result for each unit is as in [`Cell::replace`].
    pub(super) fn write(&mut self, units: Units, new: PartStamp, maps: &mut LaneMaps) {
        self.hide(units, new.strong);
        let remains = |mark: &mut Mark| {
            mark.units &= !units;
            mark.units != 0
        };
        self.writes.retain_mut(remains);
        if self.read_units & units != 0 {
            self.reads.retain_mut(remains);
            self.read_units &= !units;
        }
        self.writes.push(Mark { units, stamp: new });
        self.join(maps);
    }

    /// Hides the writes of units that are weaker than a new one.
    fn hide(&mut self, units: Units, strong: Strength) {
        if self.hidden.is_empty() && (strong == Strength::Weak || self.writes.is_empty()) {
            return;
        }
        for old in self.hidden.iter_mut().filter(|old| old.stamp.strong >= strong) {
            old.units &= !units;
        }
        for mark in self.writes.iter().filter(|mark| mark.stamp.strong < strong) {
            let weaker = self.hidden.iter().filter(|old| old.stamp.strong < mark.stamp.strong);
            let hides = mark.units & units & !weaker.fold(0, |all, old| all | old.units);
            for old in &mut self.hidden {
                old.units &= !hides;
            }
            // The values are those of the new write.
            let stamp = PartStamp {
                has_value: false,
                ..mark.stamp
            };
            self.hidden.push(Mark { units: hides, stamp });
        }
        self.hidden.retain(|mark| mark.units != 0);
    }

    /// Sets the value that was stored in a unit.
    pub(super) fn set_value(&mut self, unit: usize, value: u32) {
        self.values.get_or_insert_with(|| Box::new([0; LANES]))[unit % LANES] = value;
    }

    /// Records a read of units. The result for each unit is as in `stamp::add_read`.
    pub(super) fn read(&mut self, units: Units, new: PartStamp, known: &Known, maps: &mut LaneMaps) {
        let mut rest = units;
        let readers = self.read_units & units != 0;
        if readers {
            // Units for which the same read is already recorded need no other record.
            for mark in self.reads.iter().rev() {
                let common = mark.units & rest;
                if common != 0 && mark.stamp.same_moment(&new) {
                    rest &= !maps.inside(new.map, mark.stamp.map, common);
                    if rest == 0 {
                        return;
                    }
                }
            }
        }
        let mut map = new.map;
        if readers {
            let (mut once, mut twice, mut full) = (0, 0, 0);
            for mark in &mut self.reads {
                let common = mark.units & rest;
                if common == 0 {
                    continue;
                }
                let gone = if mark.stamp.same_moment(&new) {
                    map = maps.union(map, mark.stamp.map, common);
                    common
                } else if mark.stamp.strong < new.strong {
                    0
                } else if known.covers((mark.stamp.block, mark.stamp.warp), mark.stamp.time) {
                    common
                } else if mark.stamp.same_warp(&new) {
                    maps.inside(mark.stamp.map, new.map, common)
                } else {
                    0
                };
                mark.units &= !gone;
                let kept = common & !gone;
                full |= twice & kept;
                twice |= once & kept;
                once |= kept;
            }
            // If a unit has as many reads as are kept, the new one replaces the last of them.
            for mark in self.reads.iter_mut().rev() {
                if full == 0 {
                    break;
                }
                let last = mark.units & full;
                mark.units &= !last;
                full &= !last;
            }
            self.reads.retain(|mark| mark.units != 0);
        }
        self.read_units |= rest;
        self.reads.push(Mark {
            units: rest,
            stamp: new.with_map(map),
        });
        self.join(maps);
    }

    /// Joins marks whose stamps differ only in their maps, if there are many marks.
    #[inline]
    fn join(&mut self, maps: &mut LaneMaps) {
        let count = |parts: &Parts| (parts.writes.len() + parts.hidden.len() + parts.reads.len()) as u32;
        if count(self) >= self.join_at {
            for marks in [&mut self.writes, &mut self.hidden, &mut self.reads] {
                join(marks, maps);
            }
            self.join_at = (2 * count(self)).max(Self::JOIN_AT);
        }
    }
}

/// Joins marks whose stamps differ only in their maps.
#[inline(never)]
fn join(marks: &mut Vec<Mark>, maps: &mut LaneMaps) {
    let mut index = 0;
    while index < marks.len() {
        let mut other = index + 1;
        // The units of marks between the two, whose order must stay.
        let mut between = 0;
        while other < marks.len() {
            let (a, b) = (marks[index], marks[other]);
            let same = a.stamp == b.stamp.with_map(a.stamp.map);
            if !same || (between | a.units) & b.units != 0 {
                between |= b.units;
                other += 1;
                continue;
            }
            let mark = &mut marks[index];
            mark.stamp.map = maps.blend(a.stamp.map, b.stamp.map, a.units);
            mark.units |= b.units;
            marks.remove(other);
        }
        index += 1;
    }
}
