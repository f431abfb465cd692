//! Maps of the lanes that access the units of a line of shadow memory.
//!
//! Few different maps occur in a kernel, so stamps have the number of a map in a table.

use crate::lanes::{LANES, Mask};
use std::collections::HashMap;

/// A set of the units of a line: its words, or the bytes of a quarter of it. Bit `i` is unit `i`.
pub(super) type Units = u32;

/// The lanes that access each unit.
type LaneMap = [Mask; LANES];

/// The number of a map.
pub(super) type MapId = u32;

/// The map in which lane `i` accesses unit `i`.
pub(super) const ROW: MapId = 0;

/// Returns the bytes of these words that are in a quarter of the line.
#[inline]
pub(super) fn bytes_of(words: Units, quarter: usize) -> Units {
    let mut bits = words >> (quarter % 4 * 8) & 0xff;
    // Moves bit `i` to bit `4 * i`.
    bits = (bits | bits << 12) & 0x000f_000f;
    bits = (bits | bits << 6) & 0x0303_0303;
    bits = (bits | bits << 3) & 0x1111_1111;
    bits * 0xf
}

/// An operation on maps whose result is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Operation {
    #[default]
    None,
    Blend,
    Union,
    OfBytes,
}

/// A remembered operation: its operands and the result.
type Memo = ((Operation, MapId, MapId, Units), MapId);

/// The table of the maps of all stamps.
#[derive(Debug)]
pub(super) struct LaneMaps {
    maps: Vec<LaneMap>,
    /// For each map, the units that exactly one lane accesses.
    single: Vec<Units>,
    numbers: HashMap<LaneMap, MapId>,
    /// The latest operations, by a hash of their operands.
    memos: Box<[Memo; Self::MEMOS]>,
    /// The number of maps at which the table is full.
    most: usize,
}

impl Default for LaneMaps {
    fn default() -> Self {
        let mut maps = LaneMaps {
            maps: Vec::new(),
            single: Vec::new(),
            numbers: HashMap::new(),
            memos: Box::new([Memo::default(); Self::MEMOS]),
            most: Self::MOST,
        };
        maps.number(std::array::from_fn(|unit| 1 << unit));
        maps
    }
}

impl LaneMaps {
    const MOST: usize = 1 << 16;
    const MEMOS: usize = 1 << 9;

    /// Returns true if there are too many maps to divide lines into parts.
    pub(super) fn is_full(&self) -> bool {
        self.maps.len() >= self.most
    }

    /// Returns maps that are full, so that each unit is checked on its own.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        LaneMaps {
            most: 0,
            ..LaneMaps::default()
        }
    }

    /// Returns the number of a map. Adds the map if it is new.
    pub(super) fn number(&mut self, map: LaneMap) -> MapId {
        *self.numbers.entry(map).or_insert_with(|| {
            let single = (0..LANES).filter(|unit| map[*unit].is_power_of_two());
            self.single.push(single.fold(0, |units, unit| units | 1 << unit));
            self.maps.push(map);
            (self.maps.len() - 1) as MapId
        })
    }

    /// Returns the lanes that access a unit.
    pub(super) fn lanes(&self, map: MapId, unit: usize) -> Mask {
        self.maps[map as usize][unit % LANES]
    }

    /// Returns those of the units whose lanes in the first map are all in the second one, too.
    #[inline]
    pub(super) fn inside(&self, inner: MapId, outer: MapId, units: Units) -> Units {
        if inner == outer {
            return units;
        }
        let (inner, outer) = (&self.maps[inner as usize], &self.maps[outer as usize]);
        let mut inside = 0;
        for unit in 0..LANES {
            inside |= u32::from(inner[unit] & !outer[unit] == 0) << unit;
        }
        inside & units
    }

    /// Returns true if exactly one lane accesses each unit in the new map, and no other lane does so in the old one.
    #[inline]
    pub(super) fn is_same_lane(&self, old: MapId, new: MapId, units: Units) -> bool {
        units & !self.single[new as usize] == 0 && self.inside(old, new, units) == units
    }

    /// Returns the first map with the lanes of the second one added to these units.
    pub(super) fn union(&mut self, a: MapId, b: MapId, units: Units) -> MapId {
        self.result((Operation::Union, a, b, units), |x, y, unit| {
            x[unit] | if units >> unit & 1 == 1 { y[unit] } else { 0 }
        })
    }

    /// Returns the map that has the lanes of `a` for these units, and those of `b` for the others.
    pub(super) fn blend(&mut self, a: MapId, b: MapId, units: Units) -> MapId {
        self.result((Operation::Blend, a, b, units), |x, y, unit| {
            if units >> unit & 1 == 1 { x[unit] } else { y[unit] }
        })
    }

    /// Returns the map of the bytes of a quarter of the line, from that of its words.
    pub(super) fn of_bytes(&mut self, words: MapId, quarter: usize) -> MapId {
        self.result((Operation::OfBytes, words, words, quarter as Units), |x, _, unit| {
            x[(quarter * 8 + unit / 4) % LANES]
        })
    }

    /// Returns the number of the map that an operation makes: `of` returns the lanes of each unit.
    #[inline]
    fn result(
        &mut self,
        key: (Operation, MapId, MapId, Units),
        of: impl Fn(&LaneMap, &LaneMap, usize) -> Mask,
    ) -> MapId {
        let (operation, a, b, units) = key;
        if a == b && operation != Operation::OfBytes {
            return a;
        }
        let hash = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (u64::from(units) << 2 | operation as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let memo = (hash >> 32) as usize % Self::MEMOS;
        if self.memos[memo].0 == key {
            return self.memos[memo].1;
        }
        let (x, y) = (&self.maps[a as usize], &self.maps[b as usize]);
        let map = std::array::from_fn(|unit| of(x, y, unit));
        let number = self.number(map);
        self.memos[memo] = (key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::{LANES, LaneMaps, ROW, bytes_of};

    #[test]
    fn bytes_of_words() {
        assert_eq!(bytes_of(0x0000_0001, 0), 0xf);
        assert_eq!(bytes_of(0x0000_8500, 1), 0xf000_0f0f);
        assert_eq!(bytes_of(0x0000_8500, 0), 0);
        assert_eq!(bytes_of(!0, 3), !0);
    }

    #[test]
    fn maps_are_combined() {
        let mut maps = LaneMaps::default();
        let all = maps.number([!0; LANES]);
        let none = maps.number([0; LANES]);
        for _ in 0..2 {
            let half = maps.blend(ROW, none, 0xffff);
            assert_eq!((maps.lanes(half, 3), maps.lanes(half, 16)), (1 << 3, 0));
            let more = maps.union(half, all, 1 << 16 | 1);
            assert_eq!([0, 3, 16, 17].map(|unit| maps.lanes(more, unit)), [!0, 1 << 3, !0, 0]);
            let bytes = maps.of_bytes(ROW, 2);
            assert_eq!(
                [0, 3, 4, 31].map(|unit| maps.lanes(bytes, unit)),
                [1 << 16, 1 << 16, 1 << 17, 1 << 23]
            );
            assert_eq!(maps.inside(half, ROW, !0), !0);
            assert_eq!(maps.inside(ROW, half, !0), 0xffff);
            assert!(maps.is_same_lane(half, ROW, !0) && !maps.is_same_lane(ROW, all, 1));
        }
    }
}
