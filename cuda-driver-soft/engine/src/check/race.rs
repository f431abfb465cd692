//! The race checker of one launch. It finds unordered accesses to a byte, one of them a write.
//!
//! Accesses are ordered by the program order of a thread, by barriers and warp synchronisation, and by a release and an
//! acquire at one location. The release is a strong store or atomic operation that follows a fence or has release
//! semantics itself; the acquire is a strong load or atomic operation that follows the release in time. An acquire
//! counts without a fence of its own, because programs that omit it are common and work. A fence orders the threads in
//! its scope, and strong accesses whose scope is the block race with those of other blocks.

use super::copies::WarpCopy;
use super::lane_maps::LaneMaps;
use super::lines::{AccessPattern, LineAccess};
use super::order::{BlockOrder, ClusterOrder, Known, Published, Reach};
use super::parts::PartStamp;
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

/// Returns the block and the offset of shared memory at an address of the shadow.
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
}

impl Races {
    /// Removes all accesses, so that the checker can be used for another launch.
    pub(super) fn reset(&mut self) {
        self.shadow.reset();
        self.published = Published::default();
        self.clusters.clear();
    }

    /// Returns the barrier of a cluster.
    pub(super) fn cluster(&mut self, number: u64) -> &mut ClusterOrder {
        self.clusters.entry(number).or_default()
    }

    /// Removes the accesses to the shared memory of a block, and what its threads have published only to each other.
    /// Call it when all blocks of the cluster have ended.
    pub(super) fn end_block(&mut self, block: u32, shared_bytes: u64) {
        let bytes = shared_bytes.min(1 << SHARED_BITS);
        self.shadow.forget(shared_address(block, 0), bytes);
        self.published.end_block(block);
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
        if is_row && access.effect != Effect::Read {
            let line = self.shadow.line(addresses[0]);
            line.separate(maps);
            if let Some(words) = line.words() {
                for (lane, cell) in words.iter_mut().enumerate() {
                    let lanes = 1 << lane;
                    check.cell(addresses[lane], cell, Stamp { lanes, ..stamp });
                }
                line.write_row(stamp);
                return;
            }
        }
        self.each(check, &addresses, stamp, maps);
        if is_row && access.effect != Effect::Read {
            // The row has replaced all accesses to the bytes of the line.
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
            if is_row && writes {
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
                if (cell.write.is_none() || cell.write.is_mutual(&stamp)) && cell.reads[0].is_none() {
                    cell.write = Stamp { lanes: group, ..stamp };
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
            let (mut at, end) = (
                copy.addresses[lane],
                copy.addresses[lane].saturating_add(copy.bytes.into()),
            );
            while at < end {
                let part = (LINE - at % LINE).min(end - at);
                let line = self.shadow.line(at);
                line.visit(maps, at % LINE, part, |_, _, cell| {
                    let write = &mut cell.write;
                    let same = (write.block, write.warp, write.site) == (order.block(), copy.warp, copy.site);
                    if write.pending && same && write.lanes >> lane & 1 == 1 {
                        (write.pending, write.time) = (false, order.time());
                    }
                });
                at += part;
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
/// not kept: their stamp has one value.
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
        let mut earlier = [(Stamp::default(), false); 1 + READS];
        earlier[0] = (cell.write, true);
        if writes {
            for (slot, read) in earlier[1..].iter_mut().zip(cell.reads) {
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
            *cell = Cell {
                write: stamp,
                ..Cell::default()
            };
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
mod tests {
    use super::{Conflict, Effect, LANES, LaneMaps, Places, Races, Values, WarpAccess, shared_address};
    use crate::check::lines::Patterns;
    use crate::check::order::{BlockOrder, Reach};
    use crate::check::stamp::Strength;

    /// Stored values that are not known, which count as different.
    struct Different;

    impl Values for Different {
        fn get(&self, _: usize, _: u64, _: u32) -> Option<u32> {
            None
        }
    }

    struct Equal;

    impl Values for Equal {
        fn get(&self, _: usize, _: u64, bytes: u32) -> Option<u32> {
            Some(if bytes == 4 { 0x0101_0101 } else { 1 })
        }
    }

    struct Bench {
        races: Races,
        patterns: Patterns,
        blocks: Vec<BlockOrder>,
        found: Vec<Conflict>,
    }

    fn bench() -> Bench {
        Bench {
            races: Races::default(),
            patterns: Patterns::default(),
            blocks: (0..3).map(|block| BlockOrder::new(block, block, 64)).collect(),
            found: Vec::new(),
        }
    }

    fn row(first: u64) -> [u64; LANES] {
        std::array::from_fn(|i| first + 4 * i as u64)
    }

    impl Bench {
        fn run(&mut self, block: usize, access: WarpAccess<'_>, values: &dyn Values) -> usize {
            let before = self.found.len();
            let addresses = access.places.all();
            let request = (access.lanes, &addresses, access.bytes);
            let order = &mut self.blocks[block];
            match self.patterns.of_request(access.site, access.effect, request) {
                Some((_, pattern, maps)) => {
                    let pattern = (Some(pattern), maps);
                    self.races.access(order, &access, pattern, values, &mut self.found);
                }
                None => {
                    let pattern = (None, &mut self.patterns.maps);
                    self.races.access(order, &access, pattern, values, &mut self.found);
                }
            }
            self.found.len() - before
        }

        fn read(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            self.run(block, access(warp, addresses, Effect::Read, Strength::Weak), &Different)
        }

        fn write(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            self.run(
                block,
                access(warp, addresses, Effect::Write, Strength::Weak),
                &Different,
            )
        }

        fn atomic(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            let one = WarpAccess {
                lanes: 1,
                ..access(warp, addresses, Effect::Update, Strength::Strong)
            };
            self.run(block, one, &Different)
        }

        fn barrier(&mut self, block: usize) {
            for warp in 0..2 {
                self.blocks[block].arrive(0, warp, false);
            }
            self.blocks[block].open(0);
        }
    }

    fn access(warp: u8, addresses: &[u64; LANES], effect: Effect, strong: Strength) -> WarpAccess<'_> {
        WarpAccess {
            warp,
            lanes: !0,
            places: Places::of(addresses),
            bytes: 4,
            effect,
            strong,
            release: None,
            pending: false,
            site: u32::from(warp) + 1,
        }
    }

    #[test]
    fn warps_of_a_block_need_a_barrier() {
        for start in [4096, 4096 + 4, shared_address(0, 0), shared_address(0, 8)] {
            let mut bench = bench();
            assert_eq!(bench.write(0, 0, &row(start)), 0);
            bench.barrier(0);
            assert_eq!(bench.read(0, 1, &row(start)), 0);
            assert_ne!(bench.write(0, 0, &row(start)), 0, "the reads are not ordered");
            bench.barrier(0);
            assert_eq!(bench.write(0, 1, &row(start)), 0);
            assert_ne!(bench.read(0, 0, &row(start)), 0);
        }
    }

    #[test]
    fn lanes_of_a_warp_need_synchronisation() {
        let mut bench = bench();
        let reversed = std::array::from_fn(|i| 4096 + 4 * (31 - i) as u64);
        bench.write(0, 0, &row(4096));
        bench.blocks[0].sync_lanes(0, !0);
        assert_eq!(bench.read(0, 0, &reversed), 0);
        assert_eq!(bench.read(0, 0, &row(4096)), 0);
        assert_ne!(bench.write(0, 0, &row(4096)), 0);
    }

    #[test]
    fn blocks_need_a_fence_and_a_location() {
        let (data, flag) = (row(4096), [64; LANES]);
        for fenced in [true, false] {
            let mut bench = bench();
            bench.write(0, 0, &data);
            bench.barrier(0);
            if fenced {
                bench.blocks[0].fence(0, 1, Reach::Device);
            }
            assert_eq!(bench.atomic(0, 0, &flag), 0);
            assert_eq!(bench.atomic(1, 0, &flag), 0);
            bench.barrier(1);
            assert_eq!(bench.read(1, 1, &data) == 0, fenced);
            assert_ne!(bench.read(2, 0, &data), 0);
        }
    }

    #[test]
    fn nothing_is_kept_that_only_threads_of_ended_blocks_can_acquire() {
        let mut bench = bench();
        let (shared, global) = (shared_address(0, 0), 64);
        bench.blocks[0].fence(0, 1, Reach::Block);
        bench.atomic(0, 0, &[global; LANES]);
        for reach in Reach::ALL {
            bench.blocks[0].fence(0, 1, reach);
        }
        bench.atomic(0, 0, &[shared; LANES]);
        assert!(!bench.races.published.is_empty());
        bench.races.end_block(0, 1024);
        assert!(bench.races.published.is_empty());
        // Other blocks acquire what is published to the device.
        bench.atomic(0, 0, &[global; LANES]);
        bench.races.end_block(0, 1024);
        assert!(!bench.races.published.is_empty());
    }

    #[test]
    fn a_cluster_ends_with_its_last_block() {
        let mut races = Races::default();
        for _ in 0..2 {
            assert!(!races.end_block_of_cluster(4, 2));
            assert!(!races.end_block_of_cluster(6, 2));
            assert!(races.end_block_of_cluster(4, 2));
            assert!(races.end_block_of_cluster(6, 2));
        }
    }

    #[test]
    fn equal_values_do_not_race_and_different_ones_do() {
        for addresses in [[4096; LANES], row(4096), row(4096 + 4)] {
            let mut bench = bench();
            let write = access(0, &addresses, Effect::Write, Strength::Weak);
            assert_eq!(bench.run(0, write, &Equal), 0);
            assert_eq!(bench.run(1, write, &Equal), 0);
            assert_ne!(bench.run(2, write, &Different), 0);
        }
    }

    #[test]
    fn strong_accesses_do_not_race_with_each_other() {
        let mut bench = bench();
        let at = [4096; LANES];
        bench.atomic(0, 0, &at);
        assert_eq!(
            bench.run(1, access(0, &at, Effect::Read, Strength::Strong), &Different),
            0
        );
        assert_ne!(bench.read(1, 0, &at), 0);
    }

    #[test]
    fn a_strong_read_does_not_hide_a_weak_one() {
        // A row of words, and words that have cells or marks of their own.
        for start in [4096, 4096 + 4] {
            for synchronised in [false, true] {
                let mut bench = bench();
                let at = row(start);
                assert_eq!(bench.read(0, 0, &at), 0);
                if synchronised {
                    bench.barrier(0);
                }
                let strong = access(0, &at, Effect::Read, Strength::Strong);
                assert_eq!(bench.run(0, strong, &Different), 0);
                assert_ne!(
                    bench.atomic(1, 0, &at),
                    0,
                    "start {start}, synchronised: {synchronised}"
                );
            }
        }
    }

    #[test]
    fn neighbouring_bytes_are_different_locations() {
        let mut bench = bench();
        let bytes = std::array::from_fn(|i| 4096 + i as u64);
        let write = |warp| WarpAccess {
            bytes: 1,
            ..access(warp, &bytes, Effect::Write, Strength::Weak)
        };
        assert_eq!(bench.run(0, write(0), &Different), 0);
        assert_ne!(bench.run(0, write(1), &Different), 0);
        let words: [u64; LANES] = std::array::from_fn(|i| 4096 + i as u64 / 4 * 4);
        bench.barrier(0);
        assert_eq!(bench.read(0, 0, &words), 0);
        assert_ne!(bench.run(0, write(0), &Different), 0);
    }

    #[test]
    fn a_row_replaces_the_accesses_to_bytes() {
        for full in [false, true] {
            let mut bench = bench();
            if full {
                bench.patterns.maps = LaneMaps::full();
            }
            let bytes = std::array::from_fn(|i| 4096 + i as u64);
            let write = WarpAccess {
                bytes: 1,
                ..access(0, &bytes, Effect::Write, Strength::Weak)
            };
            assert_eq!(bench.run(0, write, &Different), 0);
            bench.barrier(0);
            assert_eq!(bench.write(0, 0, &row(4096)), 0);
            assert_eq!(bench.read(1, 0, &row(4096)), 1, "full: {full}");
        }
    }

    #[test]
    fn wide_accesses_conflict_in_each_word() {
        let mut bench = bench();
        let quads: [u64; LANES] = std::array::from_fn(|i| 4096 + 16 * i as u64);
        let write = WarpAccess {
            bytes: 16,
            ..access(0, &quads, Effect::Write, Strength::Weak)
        };
        assert_eq!(bench.run(0, write, &Different), 0);
        let one = WarpAccess {
            lanes: 1 << 5,
            ..access(1, &[4096 + 16 * 5 + 12; LANES], Effect::Read, Strength::Weak)
        };
        assert_eq!(bench.run(0, one, &Different), 1);
        let conflict = bench.found[0];
        assert_eq!(conflict.address, 4096 + 16 * 5 + 12);
        assert_eq!((conflict.earlier.lanes, conflict.later.lanes), (1 << 5, 1 << 5));
    }

    /// Random accesses give the same conflicts, in the same order, as if each word were checked on its own.
    #[test]
    fn accesses_that_are_checked_together_have_the_same_conflicts() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut conflicts, mut clean) = (0, 0);
        for round in 0..150 {
            let mut benches = [bench(), bench()];
            benches[1].patterns.maps = LaneMaps::full();
            // The accesses of the kernel: their patterns and effects.
            let sites: Vec<_> = (0..4 + random(4))
                .map(|site| {
                    let pattern = random(9);
                    let bytes = [4, 4, 4, 8, 16, 1, 1, 2][random(8) as usize];
                    let mask = [!0, !0, !0, 0xffff, 0x8000_0fff][random(5) as usize];
                    let update = random(12) == 0;
                    let writes = random(4) == 0;
                    (site as u32 + 1, pattern, bytes, mask, (update, writes, random(3) == 0))
                })
                .collect();
            for step in 0..160 {
                let block = random(3) as usize;
                match random(10) {
                    0..=1 => benches.iter_mut().for_each(|b| b.barrier(block)),
                    2 => {
                        let warp = random(2) as u8;
                        let lanes = if random(3) == 0 { 0xff } else { !0 };
                        benches.iter_mut().for_each(|b| b.blocks[block].sync_lanes(warp, lanes));
                    }
                    3 if random(4) == 0 => {
                        let warp = random(2) as u8;
                        benches
                            .iter_mut()
                            .for_each(|b| b.blocks[block].fence(warp, !0, Reach::Device));
                    }
                    _ => {
                        let (site, pattern, bytes, lanes, (update, writes, equal)) =
                            sites[random(sites.len() as u64) as usize];
                        let warp = random(2);
                        let own = (block as u64 * 2 + warp) * 128;
                        let first = 4096 + [own, own, 0, 4, 64][random(5) as usize];
                        let size = u64::from(bytes);
                        let addresses: [u64; LANES] = std::array::from_fn(|lane| {
                            let lane = lane as u64;
                            first
                                + match pattern {
                                    0..=1 => lane * size,
                                    2 => lane % 16 * size + lane / 16 * 256,
                                    3 => lane % 16 * size,
                                    4 => lane / 16 * 64,
                                    5 => lane * 68 / 4 * size.min(4),
                                    6 => lane % 4 * 132 / size * size + lane / 4 * size,
                                    7 => 128,
                                    _ => (31 - lane) * size,
                                }
                        });
                        let (effect, strong) = match (update, writes) {
                            (true, _) => (Effect::Update, Strength::Strong),
                            (_, true) => (Effect::Write, Strength::Weak),
                            _ if random(40) == 0 => (Effect::Read, Strength::InBlock),
                            _ => (Effect::Read, Strength::Weak),
                        };
                        let access = WarpAccess {
                            warp: warp as u8,
                            lanes,
                            places: Places::of(&addresses),
                            bytes,
                            effect,
                            strong,
                            release: None,
                            pending: false,
                            site,
                        };
                        let values: &dyn Values = if equal { &Equal } else { &Different };
                        let found = benches.each_mut().map(|b| b.run(block, access, values));
                        assert_eq!(
                            benches[0].found, benches[1].found,
                            "round {round}, step {step}: {access:?}"
                        );
                        conflicts += found[0];
                        clean += usize::from(found[0] == 0);
                    }
                }
            }
        }
        assert!(
            conflicts > 1000 && clean > 1000,
            "{conflicts} conflicts, {clean} accesses without"
        );
    }
}
