//! Parts of a line of shadow memory whose words were accessed in the same way.
//!
//! Most instructions access many words of a line at once. The stamps of these words differ only in their lanes, which a
//! [`LaneMaps`] keeps once for all lines: a stamp has the number of a map. Words that were accessed together are one
//! part of the line, with one set of stamps.

use super::order::BlockOrder;
use super::shadow::{Cell, READS, Stamp, Strength};
use crate::id_map::IdMap;
use crate::lanes::{LANES, Mask};
use std::collections::HashMap;

/// A set of the words of a line: bit `i` is word `i`.
pub(super) type Words = u32;

/// The lanes that access each word of a line.
type LaneMap = [Mask; LANES];

/// The number of a map.
pub(super) type MapId = u32;

/// The map in which lane `i` accesses word `i`.
pub(super) const ROW: MapId = 0;

/// The lanes that access the words of a line, for all stamps.
#[derive(Debug)]
pub(super) struct LaneMaps {
    maps: Vec<LaneMap>,
    /// For each map, the words that one lane accesses.
    single: Vec<Words>,
    numbers: HashMap<LaneMap, MapId>,
    /// For two maps and the words that are taken from the first one, the combined map.
    blends: HashMap<(MapId, MapId, Words), MapId>,
    /// For two maps, the map with the lanes of both.
    unions: IdMap<u64, MapId>,
    /// With this number of maps or more, lines are not divided into parts.
    most: usize,
}

impl Default for LaneMaps {
    fn default() -> Self {
        let mut maps = LaneMaps {
            maps: Vec::new(),
            single: Vec::new(),
            numbers: HashMap::new(),
            blends: HashMap::new(),
            unions: IdMap::default(),
            most: Self::MOST,
        };
        maps.number(std::array::from_fn(|word| 1 << word));
        maps
    }
}

impl LaneMaps {
    const MOST: usize = 1 << 16;

    /// Returns true if there are too many maps to divide lines into parts.
    pub(super) fn is_full(&self) -> bool {
        self.maps.len() >= self.most
    }

    /// Returns true if the maps, and the results that were computed from them, take much memory.
    pub(super) fn is_large(&self) -> bool {
        self.maps.len() + self.blends.len() + self.unions.len() > Self::MOST
    }

    /// Returns maps that count as full, so that each word is checked on its own.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        LaneMaps {
            most: 0,
            ..LaneMaps::default()
        }
    }

    /// Returns the number of a map.
    pub(super) fn number(&mut self, map: LaneMap) -> MapId {
        *self.numbers.entry(map).or_insert_with(|| {
            let single = (0..LANES).filter(|word| map[*word].is_power_of_two());
            self.single.push(single.fold(0, |words, word| words | 1 << word));
            self.maps.push(map);
            (self.maps.len() - 1) as MapId
        })
    }

    /// Returns the lanes that access a word.
    pub(super) fn lanes(&self, map: MapId, word: usize) -> Mask {
        self.maps[map as usize][word % LANES]
    }

    /// Returns those of `words` whose lanes in the map `inner` are all in the map `outer`, too.
    fn inside(&self, inner: MapId, outer: MapId, words: Words) -> Words {
        if inner == outer {
            return words;
        }
        let (inner, outer) = (&self.maps[inner as usize], &self.maps[outer as usize]);
        let mut inside = 0;
        for word in 0..LANES {
            inside |= u32::from(inner[word] & !outer[word] == 0) << word;
        }
        inside & words
    }

    /// Returns true if each word has one lane in the map `new`, and no other lane in the map `old`.
    fn is_same_lane(&self, old: MapId, new: MapId, words: Words) -> bool {
        words & !self.single[new as usize] == 0 && self.inside(old, new, words) == words
    }

    fn union(&mut self, a: MapId, b: MapId) -> MapId {
        if a == b {
            return a;
        }
        let key = u64::from(a) << 32 | u64::from(b);
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let (x, y) = (&self.maps[a as usize], &self.maps[b as usize]);
        let map = std::array::from_fn(|word| x[word] | y[word]);
        let number = self.number(map);
        self.unions.insert(key, number);
        number
    }

    /// Returns the map that has the lanes of `a` for these words, and those of `b` for the others.
    fn blend(&mut self, a: MapId, b: MapId, words: Words) -> MapId {
        if a == b {
            return a;
        }
        if let Some(known) = self.blends.get(&(a, b, words)) {
            return *known;
        }
        let (x, y) = (&self.maps[a as usize], &self.maps[b as usize]);
        let map = std::array::from_fn(|word| if words >> word & 1 == 1 { x[word] } else { y[word] });
        let number = self.number(map);
        self.blends.insert((a, b, words), number);
        number
    }
}

/// An access of one warp to several words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartStamp {
    block: u32,
    /// The block's time at the access; 0 if there was none.
    time: u32,
    site: u32,
    /// The lanes that accessed each word.
    map: MapId,
    warp: u8,
    strong: Strength,
    /// True if the values that were stored are known.
    has_value: bool,
}

impl PartStamp {
    /// Returns the stamp of words that the lanes of a map access. Its other values are those of `stamp`.
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

    fn is_none(&self) -> bool {
        self.time == 0
    }

    fn same_warp(&self, other: &PartStamp) -> bool {
        (self.block, self.warp) == (other.block, other.warp)
    }

    fn same_moment(&self, other: &PartStamp) -> bool {
        self.same_warp(other) && (self.time, self.strong) == (other.time, other.strong)
    }

    /// Returns the stamp of one word, in which `value` was stored.
    fn of_word(&self, maps: &LaneMaps, word: usize, value: u32) -> Stamp {
        if self.is_none() {
            return Stamp::default();
        }
        Stamp {
            block: self.block,
            time: self.time,
            site: self.site,
            lanes: maps.lanes(self.map, word),
            warp: self.warp,
            strong: self.strong,
            pending: false,
            value: if self.has_value { value } else { 0 },
            has_value: self.has_value,
        }
    }

    /// Returns true if this earlier access cannot race with a new one: it is ordered before all lanes of the warp, or
    /// each word was accessed by the same lane, or both are strong.
    #[inline]
    fn is_harmless(&self, new: &PartStamp, words: Words, order: &BlockOrder, maps: &LaneMaps) -> bool {
        self.is_none()
            || self.strong.is_mutual(new.strong, self.block == new.block)
            || order.is_before_warp((self.block, self.warp), self.time, new.warp)
            || (self.same_warp(new) && maps.is_same_lane(self.map, new.map, words))
    }
}

/// Words with the same stamps.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    words: Words,
    write: PartStamp,
    reads: [PartStamp; READS],
}

impl Part {
    fn stamps(&self) -> [PartStamp; 1 + READS] {
        let [a, b, c] = self.reads;
        [self.write, a, b, c]
    }
}

/// Returns true if an access to words of a line, which was accessed in rows only, races with no earlier access.
pub(super) fn is_row_harmless(
    row: &Cell,
    words: Words,
    (new, writes): (&PartStamp, bool),
    order: &BlockOrder,
    maps: &LaneMaps,
) -> bool {
    let harmless = |old: &Stamp| PartStamp::new(old, ROW).is_harmless(new, words, order, maps);
    harmless(&row.write) && (!writes || row.reads.iter().all(harmless))
}

/// The parts of a line. Each word is in one of them.
#[derive(Debug)]
pub(super) struct Parts {
    list: Vec<Part>,
    /// The values that were stored in the words, where the stamps have values.
    values: Option<Box<[u32; LANES]>>,
    /// The number of parts from which on parts with equal stamps are joined.
    join_at: u32,
}

impl Parts {
    const JOIN_AT: u32 = 8;

    /// Returns the parts of a line whose words were accessed in rows.
    pub(super) fn of_row(row: &Cell) -> Self {
        Parts {
            list: vec![Part {
                words: !0,
                write: PartStamp::new(&row.write, ROW),
                reads: row.reads.map(|read| PartStamp::new(&read, ROW)),
            }],
            values: None,
            join_at: Self::JOIN_AT,
        }
    }

    /// Removes all accesses except those of a row.
    pub(super) fn reset(&mut self, row: &Cell) {
        self.list.clear();
        self.list.extend(Parts::of_row(row).list);
        self.join_at = Self::JOIN_AT;
    }

    /// Returns the stamps of each word.
    pub(super) fn to_words(&self, maps: &LaneMaps) -> Box<[Cell; LANES]> {
        let mut words = Box::new([Cell::default(); LANES]);
        for part in &self.list {
            for (word, cell) in words.iter_mut().enumerate() {
                if part.words >> word & 1 == 1 {
                    let value = self.values.as_ref().map_or(0, |values| values[word]);
                    cell.write = part.write.of_word(maps, word, value);
                    cell.reads = part.reads.map(|read| read.of_word(maps, word, 0));
                }
            }
        }
        words
    }

    /// Returns true if an access to these words races with no earlier one. False means that the words must be checked
    /// one by one.
    pub(super) fn is_harmless(
        &self,
        words: Words,
        (new, writes): (&PartStamp, bool),
        order: &BlockOrder,
        maps: &LaneMaps,
    ) -> bool {
        self.list.iter().all(|part| {
            let common = part.words & words;
            let harmless = |old: &PartStamp| old.is_harmless(new, common, order, maps);
            common == 0 || (harmless(&part.write) && (!writes || part.reads.iter().all(harmless)))
        })
    }

    /// Records a write of words, which removes their earlier accesses.
    pub(super) fn write(&mut self, words: Words, new: PartStamp, maps: &mut LaneMaps) {
        self.list.retain_mut(|part| {
            part.words &= !words;
            part.words != 0
        });
        self.list.push(Part {
            words,
            write: new,
            ..Part::default()
        });
        self.join(maps);
    }

    /// Sets the value that was stored in a word.
    pub(super) fn set_value(&mut self, word: usize, value: u32) {
        self.values.get_or_insert_with(|| Box::new([0; LANES]))[word % LANES] = value;
    }

    /// Records a read of words. The result for each word is as in `shadow::add_read`.
    pub(super) fn read(&mut self, words: Words, new: PartStamp, order: &BlockOrder, maps: &mut LaneMaps) {
        for index in 0..self.list.len() {
            let part = self.list[index];
            let common = part.words & words;
            if common == part.words {
                self.read_part(index, new, order, maps);
            } else if common != 0 {
                let split = self.split(index, common);
                self.read_part(split, new, order, maps);
            }
        }
        self.join(maps);
    }

    /// Moves words of a part into a new one. Returns its index.
    fn split(&mut self, index: usize, words: Words) -> usize {
        let part = self.list[index];
        self.list[index].words &= !words;
        self.list.push(Part { words, ..part });
        self.list.len() - 1
    }

    fn read_part(&mut self, index: usize, new: PartStamp, order: &BlockOrder, maps: &mut LaneMaps) {
        // Splits the part as often as its words differ in a comparison of lanes.
        'part: loop {
            let part = self.list[index];
            let words = part.words;
            for old in part.reads[..2].iter().filter(|old| old.same_moment(&new)) {
                match maps.inside(new.map, old.map, words) {
                    0 => {}
                    known if known == words => return,
                    known => {
                        self.split(index, known);
                        continue 'part;
                    }
                }
            }
            let mut free = None;
            for (slot, old) in part.reads.iter().enumerate() {
                if old.is_none() {
                    free = free.or(Some(slot));
                    continue;
                }
                if old.same_moment(&new) {
                    let map = maps.union(old.map, new.map);
                    self.list[index].reads[slot] = PartStamp { map, ..new };
                    return;
                }
                let inside = if order.is_before_warp((old.block, old.warp), old.time, new.warp) {
                    words
                } else if old.same_warp(&new) {
                    maps.inside(old.map, new.map, words)
                } else {
                    0
                };
                if inside == words {
                    self.list[index].reads[slot] = new;
                    return;
                }
                if inside != 0 {
                    let split = self.split(index, inside);
                    self.read_part(split, new, order, maps);
                    continue 'part;
                }
            }
            self.list[index].reads[free.unwrap_or(READS - 1)] = new;
            return;
        }
    }

    /// Joins parts whose stamps differ in their maps only, if there are many parts.
    #[inline]
    fn join(&mut self, maps: &mut LaneMaps) {
        if self.list.len() as u32 >= self.join_at {
            self.join_all(maps);
            self.join_at = (2 * self.list.len() as u32).max(Self::JOIN_AT);
        }
    }

    #[inline(never)]
    fn join_all(&mut self, maps: &mut LaneMaps) {
        let mut index = 0;
        while index < self.list.len() {
            let mut other = index + 1;
            while other < self.list.len() {
                let (a, b) = (self.list[index], self.list[other]);
                let mut stamps = a.stamps().into_iter().zip(b.stamps());
                if !stamps.all(|(a, b)| a == PartStamp { map: a.map, ..b }) {
                    other += 1;
                    continue;
                }
                let mut both = |a_stamp: PartStamp, b_stamp: PartStamp| PartStamp {
                    map: maps.blend(a_stamp.map, b_stamp.map, a.words),
                    ..a_stamp
                };
                let part = &mut self.list[index];
                part.write = both(a.write, b.write);
                for (slot, (a, b)) in part.reads.iter_mut().zip(a.reads.into_iter().zip(b.reads)) {
                    *slot = both(a, b);
                }
                part.words |= b.words;
                self.list.swap_remove(other);
            }
            index += 1;
        }
    }
}
