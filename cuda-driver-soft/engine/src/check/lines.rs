//! The memory that a warp accesses, by the pattern of its addresses. Most instructions access memory in few patterns,
//! so the lines of shadow memory that a pattern covers are computed once.

use super::lane_maps::{LaneMaps, MapId, Units};
use super::shadow::{LINE, is_row};
use super::warp_access::{Effect, hull, neighbours, span};
use crate::code::site::SiteAccess;
use crate::code::watch::At;
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::observe::pattern::{PatternCache, Request};

/// The memory of requests with one pattern of addresses.
#[derive(Debug)]
pub(super) struct AccessPattern {
    /// The distances of the first byte, and of the byte after the last one, from the address of the first active lane.
    pub(super) hull: (u64, u64),
    /// True if the lanes are next to each other, or all at one address.
    pub(super) is_span: bool,
    /// True if all lanes are active and lane `i` accesses word `i` of a line.
    pub(super) is_row: bool,
    /// The lines; none if units or single lanes must be checked one by one.
    pub(super) lines: Vec<LineAccess>,
}

/// The patterns of the instructions of a launch. They do not depend on the kernel, so other launches can use them.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    sites: Vec<PatternCache<AccessPattern, LINE>>,
    pub(super) maps: LaneMaps,
}

/// A pattern, with the distance of each lane's address from that of the first active lane, and the maps of its lines.
pub(super) type FoundPattern<'p> = (&'p Lanes<u64>, &'p AccessPattern, &'p mut LaneMaps);

impl Patterns {
    /// Returns the address of the first active lane of an access, and the pattern; `None` if no pattern is kept.
    /// `number` is that of the instruction in the launch.
    pub(super) fn of_access(
        &mut self,
        number: u32,
        at: &At<'_>,
        access: &SiteAccess,
        (effect, mask, bytes): (Effect, Mask, u32),
    ) -> Option<(u64, FoundPattern<'_>)> {
        let Patterns { sites, maps } = self;
        let site = of_site(sites, number);
        let base = match site.find_at(at, access, (effect as u32, mask, bytes)) {
            Some(base) => base,
            None => {
                let request = Request {
                    kind: effect as u32,
                    mask,
                    addresses: &at.addresses(access),
                    bytes,
                };
                insert(site, &request, effect, maps)?;
                request.base()
            }
        };
        let (distances, pattern) = site.latest()?;
        Some((base, (distances, pattern, maps)))
    }

    /// Returns the pattern of a request by the instruction with this number; `None` if no pattern is kept.
    pub(super) fn of_request(
        &mut self,
        number: u32,
        effect: Effect,
        (mask, addresses, bytes): (Mask, &Lanes<u64>, u32),
    ) -> Option<FoundPattern<'_>> {
        let Patterns { sites, maps } = self;
        let site = of_site(sites, number);
        let request = Request {
            kind: effect as u32,
            mask,
            addresses,
            bytes,
        };
        if site.find(&request).is_none() {
            insert(site, &request, effect, maps)?;
        }
        let (distances, pattern) = site.latest()?;
        Some((distances, pattern, maps))
    }
}

fn of_site(sites: &mut Vec<PatternCache<AccessPattern, LINE>>, number: u32) -> &mut PatternCache<AccessPattern, LINE> {
    let number = number as usize;
    if sites.len() <= number {
        sites.resize_with(number + 1, PatternCache::default);
    }
    &mut sites[number]
}

/// Adds the pattern of a request that was not found. Returns `None` if no pattern is kept: the addresses of the
/// instruction have had none for some time, or the table of maps is full.
#[inline(never)]
fn insert(
    site: &mut PatternCache<AccessPattern, LINE>,
    request: &Request<'_>,
    effect: Effect,
    maps: &mut LaneMaps,
) -> Option<()> {
    if site.is_paused() || maps.is_full() {
        return None;
    }
    let Request {
        mask, addresses, bytes, ..
    } = *request;
    let hull = hull(mask, addresses, bytes.into());
    let pattern = AccessPattern {
        hull: (
            hull.start.wrapping_sub(request.base()),
            hull.end.wrapping_sub(request.base()),
        ),
        is_span: span(mask, addresses, bytes.into()).is_some(),
        is_row: is_row(addresses, mask, bytes),
        lines: lines_of(request, effect, maps),
    };
    site.insert(request, pattern);
    Some(())
}

/// The units of a line that a warp accesses.
#[derive(Debug)]
pub(super) struct LineAccess {
    /// The distance in bytes of the line from the line of the first active lane.
    pub(super) distance: u64,
    /// The quarter of the line whose bytes are accessed; `None` if whole words are accessed.
    pub(super) quarter: Option<u8>,
    /// The units, and the lanes that access them, in turns: a unit is in several turns if several groups of lanes
    /// access it.
    pub(super) turns: Vec<(Units, MapId)>,
}

/// The lanes that access each unit, turn by turn.
type LaneTurns = Vec<[Mask; LANES]>;

/// Returns the lines that a request accesses; none if units or single lanes must be checked one by one.
fn lines_of(request: &Request<'_>, effect: Effect, maps: &mut LaneMaps) -> Vec<LineAccess> {
    const MOST_TURNS: usize = 8;
    /// A larger access is a copy, whose units are checked faster than they are sorted here.
    const MOST_BYTES: u32 = 4_096;
    if request.bytes > MOST_BYTES {
        return Vec::new();
    }
    let base = request.base() / LINE * LINE;
    let unit = if request.bytes.is_multiple_of(4) { 4 } else { 1 };
    let mut lines: Vec<((u64, Option<u8>), LaneTurns)> = Vec::new();
    let mut rest = request.mask;
    while rest != 0 {
        let first = rest.trailing_zeros() as usize % LANES;
        let address = request.addresses[first];
        // All reads at one address become one stamp, so lanes that are not neighbours can be in one group.
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
    // Stores of several lanes to a unit race unless they store the same value, which is checked one by one.
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
