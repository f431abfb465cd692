//! The lines of shadow memory that a warp accesses, by the pattern of its addresses.

use super::lane_maps::{LaneMaps, MapId, Units};
use super::race::Effect;
use super::shadow::LINE;
use crate::lanes::{self, LANES, Mask};
use crate::observe::pattern::Request;

/// The units of a line that a warp accesses.
#[derive(Debug)]
pub(super) struct LineAccess {
    /// The distance of the line from that of the first active lane.
    pub(super) distance: u64,
    /// The quarter of the line whose bytes are accessed; `None` if words of the line are.
    pub(super) quarter: Option<u8>,
    /// The units, and the lanes that access them. If several lanes that are not neighbours access a unit, the units are
    /// accessed several times.
    pub(super) turns: Vec<(Units, MapId)>,
}

/// Returns the lines that a request accesses; none if units or single lanes must be checked one by one.
pub(super) fn lines_of(request: &Request<'_>, effect: Effect, maps: &mut LaneMaps) -> Vec<LineAccess> {
    const MOST_TURNS: usize = 8;
    let base = request.base() / LINE * LINE;
    let unit = if request.bytes.is_multiple_of(4) { 4 } else { 1 };
    let mut lines: Vec<((u64, Option<u8>), Vec<[Mask; LANES]>)> = Vec::new();
    let mut rest = request.mask;
    while rest != 0 {
        let first = rest.trailing_zeros() as usize % LANES;
        let address = request.addresses[first];
        // Reads of a unit by several lanes are one stamp, whichever lanes they are.
        let group = match effect {
            Effect::Read => lanes::iter(rest)
                .filter(|lane| request.addresses[*lane] == address)
                .fold(0, |group, lane| group | 1 << lane),
            _ => neighbours(request.addresses, rest, effect),
        };
        rest &= !group;
        if !address.is_multiple_of(unit) {
            return Vec::new();
        }
        for number in 0..u64::from(request.bytes) / unit {
            let address = address.wrapping_add(unit * number);
            let distance = (address / LINE * LINE).wrapping_sub(base);
            let offset = (address % LINE / unit) as usize;
            let quarter = (unit == 1).then_some((offset / LANES) as u8);
            let index = lines.iter().position(|(known, _)| *known == (distance, quarter));
            let index = index.unwrap_or_else(|| {
                lines.push(((distance, quarter), Vec::new()));
                lines.len() - 1
            });
            let turns = &mut lines[index].1;
            let turn = turns.iter().position(|turn| turn[offset % LANES] == 0);
            let turn = turn.unwrap_or_else(|| {
                turns.push([0; LANES]);
                turns.len() - 1
            });
            if turn == MOST_TURNS {
                return Vec::new();
            }
            turns[turn][offset % LANES] = group;
        }
    }
    // Stores of several lanes to a unit race, unless they store the same value.
    if effect == Effect::Write && lines.iter().any(|(_, turns)| turns.len() > 1) {
        return Vec::new();
    }
    let turn = |map: [Mask; LANES], maps: &mut LaneMaps| {
        let units = (0..LANES).filter(|unit| map[*unit] != 0);
        (units.fold(0, |units, unit| units | 1 << unit), maps.number(map))
    };
    let lines = lines.into_iter().map(|((distance, quarter), turns)| LineAccess {
        distance,
        quarter,
        turns: turns.into_iter().map(|map| turn(map, maps)).collect(),
    });
    lines.collect()
}

/// Returns the first lane of a set and the lanes that come right after it and access the same address, unless they
/// write.
pub(super) fn neighbours(addresses: &[u64; LANES], rest: Mask, effect: Effect) -> Mask {
    let first = rest.trailing_zeros() as usize % LANES;
    let mut group = 1 << first;
    if effect != Effect::Write {
        for lane in first + 1..LANES {
            if addresses[lane] != addresses[first] || rest >> lane & 1 == 0 {
                break;
            }
            group |= 1 << lane;
        }
    }
    group
}
