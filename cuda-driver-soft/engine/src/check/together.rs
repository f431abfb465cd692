//! Checks and records accesses to a line of shadow memory whose units are treated together. If an access may race, its
//! units are checked one by one instead.

use super::lane_maps::{LaneMaps, MapId, Units, bytes_of};
use super::lines::LineAccess;
use super::order::Known;
use super::parts::{PartStamp, Parts, is_row_harmless};
use super::shadow::{Line, QUARTERS, Together};
use super::warp_access::{Places, Values};
use crate::lanes::{self, LANES};

/// Returns true if an access to a line races with no earlier access. False means that its units must be checked one by
/// one.
pub(super) fn is_harmless(
    line: &mut Line,
    access: &LineAccess,
    (new, writes): (&PartStamp, bool),
    known: &Known,
    maps: &mut LaneMaps,
) -> bool {
    if access.quarter.is_some() {
        line.divide_words(maps);
    }
    let Some(mut together) = line.together() else {
        return false;
    };
    access.turns.iter().all(|(units, map)| {
        let new = new.with_map(*map);
        match &mut together {
            Together::Row(row) => is_row_harmless(row, *units, (&new, writes), known, maps),
            Together::Words(parts) => parts.is_harmless(*units, (&new, writes), known, maps),
            Together::Bytes(quarters) => {
                let mut harmless = true;
                each_quarter(
                    quarters,
                    access.quarter,
                    (*units, *map),
                    maps,
                    |parts, _, (bytes, map), maps| {
                        let new = new.with_map(map);
                        harmless &= parts.is_harmless(bytes, (&new, writes), known, maps);
                    },
                );
                harmless
            }
        }
    })
}

/// Records an access to a line, which starts at the address `start`. [`is_harmless`] has returned true for the access.
pub(super) fn record(
    line: &mut Line,
    (access, start): (&LineAccess, u64),
    (new, writes): (&PartStamp, bool),
    (places, values, known): (&Places<'_>, &dyn Values, &Known),
    maps: &mut LaneMaps,
) {
    line.divide();
    let Some(mut together) = line.together() else { return };
    for (units, map) in &access.turns {
        let one = |parts: &mut Parts, (start, bytes): (u64, u32), (units, map): (Units, MapId), maps: &mut LaneMaps| {
            let new = new.with_map(map);
            if !writes {
                return parts.read(units, new, known, maps);
            }
            parts.write(units, new, maps);
            if new.has_value {
                for unit in lanes::iter(units) {
                    let lane = maps.lanes(map, unit).trailing_zeros() as usize % LANES;
                    let address = start + u64::from(bytes) * unit as u64;
                    let offset = address.wrapping_sub(places.address(lane));
                    parts.set_value(unit, values.get(lane, offset, bytes).unwrap_or(0));
                }
            }
        };
        match &mut together {
            Together::Row(_) => {}
            Together::Words(parts) => one(parts, (start, 4), (*units, *map), maps),
            Together::Bytes(quarters) => {
                each_quarter(
                    quarters,
                    access.quarter,
                    (*units, *map),
                    maps,
                    |parts, quarter, units, maps| {
                        one(parts, (start + (quarter * LANES) as u64, 1), units, maps);
                    },
                );
            }
        }
    }
}

/// Calls a function for each quarter of a line that an access touches, with the quarter's number, the bytes and their
/// lanes. The units of the access are words of the line, or bytes of a quarter.
fn each_quarter(
    quarters: &mut [Parts; QUARTERS],
    quarter: Option<u8>,
    (units, map): (Units, MapId),
    maps: &mut LaneMaps,
    mut visit: impl FnMut(&mut Parts, usize, (Units, MapId), &mut LaneMaps),
) {
    if let Some(quarter) = quarter {
        let number = usize::from(quarter) % QUARTERS;
        return visit(&mut quarters[number], number, (units, map), maps);
    }
    for (number, parts) in quarters.iter_mut().enumerate() {
        let bytes = bytes_of(units, number);
        if bytes != 0 {
            let map = maps.of_bytes(map, number);
            visit(parts, number, (bytes, map), maps);
        }
    }
}
