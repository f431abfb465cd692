//! The race checker of one launch. It finds unordered accesses to a byte, one of them a write.
//!
//! Accesses are ordered by the program order of a thread, by barriers and warp synchronisation, and by a release and an
//! acquire at one location. The release is a strong store or atomic operation that follows a fence or has release
//! semantics itself; the acquire is a strong load or atomic operation that follows the release in time. An acquire
//! counts without a fence of its own, because programs that omit it are common and work. A fence orders the threads in
//! its scope, and strong accesses whose scope is the block race with those of other blocks.

use super::copies::{BulkCopies, WarpCopy};
use super::lane_maps::LaneMaps;
use super::lines::{AccessPattern, LineAccess};
use super::order::{BlockOrder, ClusterOrder, Known, Published, Reach};
use super::parts::PartStamp;
use super::plan::BulkStep;
use super::shadow::{LINE, Shadow, is_row};
use super::stamp::{Cell, READS, Stamp, Strength, add_read};
use super::together::{is_harmless, record};
use super::warp_access::{Effect, Places, Values, neighbours};
use crate::lanes::{self, LANES, Mask};
use std::collections::HashMap;

/// Shared memory of block `n` is at `SHARED + (n << SHARED_BITS)` in the shadow.
const SHARED: u64 = 1 << 63;
const SHARED_BITS: u32 = 20;

/// Returns the address in the shadow of an offset into the shared memory of a block.
pub(super) fn shared_address(block: u32, offset: u64) -> u64 {
    SHARED | u64::from(block) << SHARED_BITS | offset & ((1 << SHARED_BITS) - 1)
}

/// Returns the block and the offset of shared memory at an address of the shadow; `None` for global memory.
pub(super) fn shared_offset(address: u64) -> Option<(u32, u64)> {
    let offset = address & ((1 << SHARED_BITS) - 1);
    (address & SHARED != 0).then_some(((address >> SHARED_BITS) as u32, offset))
}

/// An instruction that accesses memory, for lanes of one warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpAccess<'a> {
    pub(super) warp: u8,
    pub(super) lanes: Mask,
    /// Addresses in the shadow.
    pub(super) places: Places<'a>,
    /// Bytes of each lane's access.
    pub(super) bytes: u32,
    pub(super) effect: Effect,
    /// The strength of the access.
    pub(super) strong: Strength,
    /// For a release, which needs no fence, the threads to which it publishes the accesses before it.
    pub(super) release: Option<Reach>,
    /// True for a copy that the thread has to wait for.
    pub(super) pending: bool,
    /// The instruction, as a number that the caller assigns.
    pub(super) site: u32,
}

/// Two unordered accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Address in the shadow.
    pub(super) address: u64,
    /// The earlier access, by its stamp.
    pub(super) earlier: Stamp,
    /// True if the earlier access wrote.
    pub(super) earlier_wrote: bool,
    /// The later access.
    pub(super) later: Stamp,
    /// True if the later access writes.
    pub(super) later_writes: bool,
}

/// The race checker of one launch.
#[derive(Debug, Default)]
pub(super) struct Races {
    shadow: Shadow,
    published: Published,
    clusters: HashMap<u64, ClusterOrder>,
    bulk: BulkCopies,
}

impl Races {
    /// Removes all accesses, so that the checker can be used for another launch.
    pub(super) fn reset(&mut self) {
        self.shadow.reset();
        self.published = Published::default();
        self.clusters.clear();
        self.bulk = BulkCopies::default();
    }

    /// Returns the barrier of a cluster.
    pub(super) fn cluster(&mut self, number: u64) -> &mut ClusterOrder {
        self.clusters.entry(number).or_default()
    }

    /// Removes the accesses to the shared memory of a block, and the moments that its threads have published only to
    /// each other, or only to the cluster whose first block it is. Call this when all blocks of the cluster have ended.
    pub(super) fn end_block(&mut self, block: u32, shared_bytes: u64) {
        let bytes = shared_bytes.min(1 << SHARED_BITS);
        self.shadow.forget(shared_address(block, 0), bytes);
        self.published.end_block(block);
        self.bulk.end_block(block);
    }

    /// Records that a block of a cluster of `blocks` blocks has ended. Returns true if all of them have.
    pub(super) fn end_block_of_cluster(&mut self, cluster: u64, blocks: u32) -> bool {
        let order = self.cluster(cluster);
        order.ended += 1;
        if order.ended < blocks {
            return false;
        }
        self.clusters.remove(&cluster);
        true
    }

    /// Records an access of lanes of a warp, with the pattern of its addresses. Conflicts with earlier accesses are
    /// added to `found`.
    pub(super) fn access(
        &mut self,
        order: &mut BlockOrder,
        access: &WarpAccess<'_>,
        (pattern, maps): (Option<&AccessPattern>, &mut LaneMaps),
        values: &dyn Values,
        found: &mut Vec<Conflict>,
    ) {
        let mut stamp = Stamp {
            block: order.block(),
            time: order.time(),
            site: access.site,
            lanes: access.lanes,
            warp: access.warp,
            strong: access.strong,
            pending: access.pending,
            value: 0,
            has_value: false,
        };
        let mut check = Check {
            order,
            known: order.known(access.warp),
            access,
            values,
            found,
        };
        let first = access.places.address(access.lanes.trailing_zeros() as usize);
        let is_row = !access.pending
            && match pattern {
                Some(pattern) => pattern.is_row,
                None => is_row(&access.places.all(), access.lanes, access.bytes),
            };
        if is_row
            && access.effect == Effect::Write
            && let Some(value) = same_value(values)
        {
            (stamp.value, stamp.has_value) = (value, true);
        }
        if is_row && let Some(cell) = self.shadow.line(first).row() {
            check.row(cell, stamp);
        } else if !pattern.is_some_and(|pattern| self.together(&check, stamp, pattern, maps)) {
            self.apart(&mut check, stamp, is_row, maps);
        }
        if access.strong != Strength::Weak {
            self.synchronise(order, access);
        }
    }

    /// Checks an access word by word, or byte by byte.
    #[inline(never)]
    fn apart(&mut self, check: &mut Check<'_>, stamp: Stamp, is_row: bool, maps: &LaneMaps) {
        let access = check.access;
        let addresses = access.places.all();
        // A weak row replaces all accesses to the bytes of the line.
        let replaces = access.effect != Effect::Read && stamp.strong == Strength::Weak;
        if is_row && access.effect != Effect::Read {
            let line = self.shadow.line(addresses[0]);
            line.separate(maps);
            if let Some(words) = line.words() {
                for (lane, cell) in words.iter_mut().enumerate() {
                    let lanes = 1 << lane;
                    check.cell(addresses[lane], cell, Stamp { lanes, ..stamp });
                }
                if replaces {
                    line.write_row(stamp);
                }
                return;
            }
        }
        self.each(check, &addresses, stamp, maps);
        if is_row && replaces {
            self.shadow.line(addresses[0]).write_row(stamp);
        }
    }

    /// Checks an access whose units need not be checked one by one, because its addresses have a known pattern and it
    /// does not race. For any other access, returns false and records nothing.
    fn together(&mut self, check: &Check<'_>, stamp: Stamp, pattern: &AccessPattern, maps: &mut LaneMaps) -> bool {
        let access = check.access;
        let writes = access.effect != Effect::Read;
        if access.pending || pattern.lines.is_empty() || maps.is_full() {
            return false;
        }
        let AccessPattern { is_row, ref lines, .. } = *pattern;
        let first = access.lanes.trailing_zeros() as usize % LANES;
        let base = access.places.address(first) / LINE * LINE;
        let mut stamp = stamp;
        if access.effect == Effect::Write && !is_row {
            let unit = if access.bytes.is_multiple_of(4) { 4 } else { 1 };
            stamp.has_value = check.values.get(first, 0, unit).is_some();
            // The values of very wide stores are known in part.
            if stamp.has_value != check.values.get(first, u64::from(access.bytes - unit), unit).is_some() {
                return false;
            }
        }
        let new = PartStamp::new(&stamp, 0);
        let what = (&access.places, check.values, &check.known);
        let several = |line: &LineAccess| writes && line.turns.len() > 1 && stamp.strong == Strength::Weak;
        if let [one] = lines.as_slice() {
            let start = base.wrapping_add(one.distance);
            let line = self.shadow.line(start);
            if several(one) || !is_harmless(line, one, (&new, writes), &check.known, maps) {
                return false;
            }
            if is_row && writes && stamp.strong == Strength::Weak {
                line.write_row(stamp);
            } else {
                record(line, (one, start), (&new, writes), what, maps);
            }
            return true;
        }
        for line_access in lines {
            let line = self.shadow.line(base.wrapping_add(line_access.distance));
            if several(line_access) || !is_harmless(line, line_access, (&new, writes), &check.known, maps) {
                return false;
            }
        }
        for line_access in lines {
            let start = base.wrapping_add(line_access.distance);
            record(
                self.shadow.line(start),
                (line_access, start),
                (&new, writes),
                what,
                maps,
            );
        }
        true
    }

    /// Checks an access lane by lane; reads and atomic operations of neighbouring lanes at one address go together.
    fn each(&mut self, check: &mut Check<'_>, addresses: &[u64; LANES], stamp: Stamp, maps: &LaneMaps) {
        let access = check.access;
        let mut rest = access.lanes;
        while rest != 0 {
            let group = neighbours(addresses, rest, access.effect);
            let first = group.trailing_zeros() as usize % LANES;
            let address = addresses[first];
            rest &= !group;
            if access.bytes == 4
                && address.is_multiple_of(4)
                && access.effect == Effect::Update
                && let Some(words) = self.shadow.line(address).words()
            {
                let cell = &mut words[(address % LINE / 4) as usize];
                // Atomic operations follow each other most of the time.
                let harmless = |old: &Stamp| old.is_none() || check.known.covers((old.block, old.warp), old.time);
                let follows = cell.write.is_none() || cell.write.is_mutual(&stamp);
                if follows && harmless(&cell.hidden) && cell.reads[0].is_none() {
                    cell.replace(Stamp { lanes: group, ..stamp });
                    continue;
                }
            }
            let (mut at, end) = (address, address.saturating_add(access.bytes.into()));
            while at < end {
                let offset = at % LINE;
                let part = (LINE - offset).min(end - at);
                let start = at - offset;
                self.shadow.line(at).visit(maps, offset, part, |offset, bytes, cell| {
                    let mut stamp = Stamp { lanes: group, ..stamp };
                    if access.effect == Effect::Write
                        && let Some(value) = check.values.get(first, start + offset - address, bytes)
                    {
                        (stamp.value, stamp.has_value) = (value, true);
                    }
                    check.cell(start + offset, cell, stamp);
                });
                at += part;
            }
        }
    }

    /// Records that lanes have waited for copies, which count as writes of this moment.
    pub(super) fn complete(&mut self, order: &BlockOrder, copy: &WarpCopy, maps: &LaneMaps) {
        for lane in lanes::iter(copy.lanes) {
            self.shadow.visit((copy.addresses[lane], copy.bytes), maps, |cell| {
                for write in [&mut cell.write, &mut cell.hidden] {
                    let same = (write.block, write.warp, write.site) == (order.block(), copy.warp, copy.site);
                    if write.pending && same && write.lanes >> lane & 1 == 1 {
                        (write.pending, write.time) = (false, order.time());
                    }
                }
            });
        }
    }

    /// Records an access of a bulk copy, or of a wait for such copies. A copy is over when a thread has tried to wait
    /// for it: the copies of this driver complete at once, so the thread does not try again because of them.
    pub(super) fn bulk_step(&mut self, order: &BlockOrder, access: &WarpAccess<'_>, step: BulkStep, maps: &LaneMaps) {
        if step != BulkStep::Write && self.bulk.is_empty() {
            return;
        }
        for lane in lanes::iter(access.lanes) {
            let (who, address) = ((order.block(), access.warp, lane), access.places.address(lane));
            match step {
                BulkStep::Write => self.bulk.add(who, (address, access.bytes), access.site),
                BulkStep::Signal => self.bulk.signal(who, address),
                BulkStep::Wait => {
                    for copy in self.bulk.waited(address) {
                        self.shadow.visit((copy.address, copy.bytes), maps, |cell| {
                            for write in [&mut cell.write, &mut cell.hidden] {
                                write.pending &= !copy.made(write);
                            }
                        });
                    }
                }
            }
        }
    }

    /// Applies the release and the acquire of a strong access.
    fn synchronise(&mut self, order: &mut BlockOrder, access: &WarpAccess<'_>) {
        if let Some(reach) = access.release {
            order.fence(access.warp, access.lanes, reach);
        }
        if self.published.is_empty() && !order.has_fences(access.warp) {
            return;
        }
        for lane in lanes::iter(access.lanes) {
            let location = access.places.address(lane);
            if access.effect != Effect::Write {
                let published = self.published.at(location, order);
                order.acquire(access.warp, lane as u8, &published);
            }
            if access.effect != Effect::Read {
                for reach in Reach::ALL {
                    let clock = order.published(access.warp, lane as u8, reach);
                    let reach = match (access.strong, reach) {
                        // An access whose scope is the block publishes to the block only.
                        (Strength::InBlock, _) => Reach::Block,
                        // Only threads of the cluster access its shared memory.
                        (_, Reach::Device) if shared_offset(location).is_some() => Reach::Cluster,
                        _ => reach,
                    };
                    self.published.release(location, (reach, order), clock);
                }
            }
        }
    }
}

/// Returns the word that all lanes of a row store, if it is known and the same for all. The values of other rows are
/// not kept, because the one stamp of a row has room for one value.
fn same_value(values: &dyn Values) -> Option<u32> {
    let value = values.get(0, 0, 4)?;
    (1..LANES)
        .all(|lane| values.get(lane, 0, 4) == Some(value))
        .then_some(value)
}

/// The check of one access.
struct Check<'c> {
    order: &'c BlockOrder,
    /// The moments that are ordered before all lanes.
    known: Known,
    access: &'c WarpAccess<'c>,
    values: &'c dyn Values,
    found: &'c mut Vec<Conflict>,
}

impl Check<'_> {
    /// Checks a row of words: lane `i` accesses word `i`.
    fn row(&mut self, cell: &mut Cell, stamp: Stamp) {
        let writes = self.access.effect != Effect::Read;
        let mut earlier = [(Stamp::default(), false); 2 + READS];
        (earlier[0], earlier[1]) = ((cell.write, true), (cell.hidden, true));
        if writes {
            for (slot, read) in earlier[2..].iter_mut().zip(cell.reads) {
                *slot = (read, false);
            }
        }
        for (old, wrote) in earlier {
            // Each word was accessed by the same lane as now.
            let same_warp = (old.block, old.warp) == (stamp.block, stamp.warp);
            if old.is_none() || same_warp || old.is_mutual(&stamp) || self.known.covers((old.block, old.warp), old.time)
            {
                continue;
            }
            // The order of stores of the same value does not matter.
            if wrote && old.has_value && stamp.has_value && old.value == stamp.value {
                continue;
            }
            for lane in 0..LANES {
                let me = (stamp.warp, lane as u8);
                let one = 1 << lane;
                if !self.order.is_before((old.block, old.warp, one), old.time, me) {
                    let (old, new) = (Stamp { lanes: one, ..old }, Stamp { lanes: one, ..stamp });
                    self.report(self.access.places.address(lane), (old, wrote), (new, writes));
                    break;
                }
            }
        }
        self.update(cell, stamp);
    }

    /// Checks an access of one or more lanes to one cell.
    #[inline]
    fn cell(&mut self, address: u64, cell: &mut Cell, stamp: Stamp) {
        let writes = self.access.effect != Effect::Read;
        if !writes && cell.has_read(&stamp) {
            return;
        }
        self.compare(address, (cell.write, true), (stamp, writes));
        self.compare(address, (cell.hidden, true), (stamp, writes));
        if writes {
            for read in cell.reads {
                self.compare(address, (read, false), (stamp, true));
            }
        }
        self.update(cell, stamp);
    }

    fn compare(&mut self, address: u64, (old, wrote): (Stamp, bool), (new, writes): (Stamp, bool)) {
        if old.is_none() || old.is_mutual(&new) {
            return;
        }
        if old.pending {
            let own = 1 << (new.lanes.trailing_zeros() % LANES as u32);
            let one = old.lanes & old.lanes.wrapping_neg();
            let (old, new) = (Stamp { lanes: one, ..old }, Stamp { lanes: own, ..new });
            return self.report(address, (old, wrote), (new, writes));
        }
        if self.known.covers((old.block, old.warp), old.time) {
            return;
        }
        for lane in lanes::iter(new.lanes) {
            let who = (old.block, old.warp, old.lanes);
            if self.order.is_before(who, old.time, (new.warp, lane as u8)) {
                continue;
            }
            // The order of stores of the same value does not matter.
            if wrote && old.has_value && new.has_value && old.value == new.value {
                continue;
            }
            let own = 1 << lane;
            let same_warp = (old.block, old.warp) == (new.block, new.warp);
            let others = if same_warp { old.lanes & !own } else { old.lanes };
            let one = others & others.wrapping_neg();
            let (old, new) = (Stamp { lanes: one, ..old }, Stamp { lanes: own, ..new });
            return self.report(address, (old, wrote), (new, writes));
        }
    }

    fn update(&self, cell: &mut Cell, stamp: Stamp) {
        if self.access.effect == Effect::Read {
            let is_before = |old: &Stamp| self.known.covers((old.block, old.warp), old.time);
            add_read(cell, stamp, is_before);
        } else {
            cell.replace(stamp);
        }
    }

    fn report(&mut self, address: u64, (earlier, earlier_wrote): (Stamp, bool), (later, later_writes): (Stamp, bool)) {
        self.found.push(Conflict {
            address,
            earlier,
            earlier_wrote,
            later,
            later_writes,
        });
    }
}

#[cfg(test)]
mod tests;
