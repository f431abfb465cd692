//! The race checker of one launch: two accesses to a byte, one of them a write, that nothing orders.
//!
//! Accesses are ordered by the program order of a thread, by barriers and warp synchronisation, and by a release and an
//! acquire at one location: a fence and a strong store or atomic operation after it, and a strong load or atomic
//! operation that follows it in time. An acquire counts without a fence of its own, because programs that omit it are
//! common and work. Scopes are not checked.

use super::order::{BlockOrder, ClusterOrder, Published};
use super::shadow::{Cell, LINE, Shadow, Stamp, add_read, is_row};
use crate::lanes::{self, LANES, Mask};
use std::collections::HashMap;

/// Shared memory of block `n` is at `SHARED + (n << SHARED_BITS)` in the shadow.
const SHARED: u64 = 1 << 63;
const SHARED_BITS: u32 = 20;

/// Returns the address in the shadow of an offset into the shared memory of a block.
pub(super) fn shared_address(block: u32, offset: u64) -> u64 {
    SHARED | u64::from(block) << SHARED_BITS | offset & ((1 << SHARED_BITS) - 1)
}

/// The shared memory at an address of the shadow: block and offset.
pub(super) fn shared_offset(address: u64) -> Option<(u32, u64)> {
    let offset = address & ((1 << SHARED_BITS) - 1);
    (address & SHARED != 0).then_some(((address >> SHARED_BITS) as u32, offset))
}

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
    /// An atomic operation.
    Update,
}

/// An instruction that accesses memory, for lanes of one warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpAccess<'a> {
    pub(super) warp: u8,
    pub(super) lanes: Mask,
    /// Addresses in the shadow.
    pub(super) addresses: &'a [u64; LANES],
    /// Bytes of each lane's access.
    pub(super) bytes: u32,
    pub(super) effect: Effect,
    /// True for volatile, relaxed and stronger accesses, and atomic operations.
    pub(super) strong: bool,
    /// True if the access publishes what is before it without an earlier fence.
    pub(super) release: bool,
    /// The instruction, as a number that the caller gives.
    pub(super) site: u32,
}

/// Two accesses that nothing orders.
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

/// The values that an instruction stores.
pub(super) trait Values {
    /// Returns `bytes` bytes (1 or 4) of the value that a lane stores, from an offset on.
    fn get(&self, lane: usize, offset: u64, bytes: u32) -> Option<u32>;
}

/// The race checker of one launch.
#[derive(Debug, Default)]
pub(super) struct Races {
    shadow: Shadow,
    published: Published,
    clusters: HashMap<u64, ClusterOrder>,
}

impl Races {
    /// Returns the barrier of a cluster.
    pub(super) fn cluster(&mut self, number: u64) -> &mut ClusterOrder {
        self.clusters.entry(number).or_default()
    }

    /// A block has ended: forgets its shared memory.
    pub(super) fn end_block(&mut self, block: u32) {
        self.shadow.forget(shared_address(block, 0), 1 << SHARED_BITS);
    }

    /// An access of lanes of a warp. Conflicts with earlier accesses are added to `found`.
    pub(super) fn access(
        &mut self,
        order: &mut BlockOrder,
        access: &WarpAccess<'_>,
        values: &dyn Values,
        found: &mut Vec<Conflict>,
    ) {
        let stamp = Stamp {
            block: order.block(),
            time: order.time(),
            site: access.site,
            lanes: access.lanes,
            warp: access.warp,
            strong: access.strong,
            value: 0,
            has_value: false,
        };
        let mut check = Check {
            order,
            access,
            values,
            found,
        };
        if is_row(access.addresses, access.lanes, access.bytes) {
            let line = self.shadow.line(access.addresses[0]);
            if let Some(cell) = line.row() {
                check.row(cell, stamp);
            } else if access.effect != Effect::Read
                && let Some(words) = line.words()
            {
                for (lane, cell) in words.iter_mut().enumerate() {
                    let lanes = 1 << lane;
                    check.cell(access.addresses[lane], cell, Stamp { lanes, ..stamp });
                }
                line.write_row(stamp);
            } else {
                self.each(&mut check, stamp);
            }
        } else {
            self.each(&mut check, stamp);
        }
        if access.strong {
            self.synchronise(order, access);
        }
    }

    /// Checks an access lane by lane; neighbouring lanes at one address go together.
    fn each(&mut self, check: &mut Check<'_>, stamp: Stamp) {
        let access = check.access;
        let mut rest = access.lanes;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let address = access.addresses[first];
            let mut group = 1 << first;
            if check.access.effect != Effect::Write {
                for lane in first + 1..LANES {
                    if access.addresses[lane] != address || rest >> lane & 1 == 0 {
                        break;
                    }
                    group |= 1 << lane;
                }
            }
            rest &= !group;
            let (mut at, end) = (address, address + u64::from(access.bytes));
            while at < end {
                let offset = at % LINE;
                let part = (LINE - offset).min(end - at);
                let start = at - offset;
                self.shadow.line(at).visit(offset, part, |offset, bytes, cell| {
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

    /// Publishes and acquires what a strong access orders.
    fn synchronise(&mut self, order: &mut BlockOrder, access: &WarpAccess<'_>) {
        if access.release {
            order.fence(access.warp, access.lanes);
        }
        for lane in lanes::iter(access.lanes) {
            let location = access.addresses[lane];
            if access.effect != Effect::Write {
                order.acquire(access.warp, lane as u8, &self.published.at(location));
            }
            if access.effect != Effect::Read {
                let clock = order.published(access.warp, lane as u8);
                self.published.release(location, clock);
            }
        }
    }
}

/// The check of one access.
struct Check<'c> {
    order: &'c BlockOrder,
    access: &'c WarpAccess<'c>,
    values: &'c dyn Values,
    found: &'c mut Vec<Conflict>,
}

impl Check<'_> {
    /// Checks a row of words: lane `i` accesses word `i`.
    fn row(&mut self, cell: &mut Cell, stamp: Stamp) {
        let writes = self.access.effect != Effect::Read;
        let mut earlier = [(Stamp::default(), false); 1 + super::shadow::READS];
        earlier[0] = (cell.write, true);
        if writes {
            for (slot, read) in earlier[1..].iter_mut().zip(cell.reads) {
                *slot = (read, false);
            }
        }
        for (old, wrote) in earlier {
            // The same warp accessed each word with the same lane.
            let same_warp = (old.block, old.warp) == (stamp.block, stamp.warp);
            if old.is_none()
                || same_warp
                || (old.strong && stamp.strong)
                || self.order.is_before_warp((old.block, old.warp), old.time, stamp.warp)
            {
                continue;
            }
            for lane in 0..LANES {
                let me = (stamp.warp, lane as u8);
                let one = 1 << lane;
                if !self.order.is_before((old.block, old.warp, one), old.time, me) {
                    let (old, new) = (Stamp { lanes: one, ..old }, Stamp { lanes: one, ..stamp });
                    self.report(self.access.addresses[lane], (old, wrote), (new, writes));
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
        if old.is_none()
            || (old.strong && new.strong)
            || self.order.is_before_warp((old.block, old.warp), old.time, new.warp)
        {
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
            let is_before = |old: &Stamp| self.order.is_before_warp((old.block, old.warp), old.time, stamp.warp);
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
    use super::{Conflict, Effect, LANES, Races, Values, WarpAccess, shared_address};
    use crate::check::order::BlockOrder;

    /// Values that all differ.
    struct Different;

    impl Values for Different {
        fn get(&self, _: usize, _: u64, _: u32) -> Option<u32> {
            None
        }
    }

    struct Equal;

    impl Values for Equal {
        fn get(&self, _: usize, _: u64, _: u32) -> Option<u32> {
            Some(1)
        }
    }

    struct Bench {
        races: Races,
        blocks: Vec<BlockOrder>,
        found: Vec<Conflict>,
    }

    fn bench() -> Bench {
        Bench {
            races: Races::default(),
            blocks: (0..3).map(|block| BlockOrder::new(block, 64)).collect(),
            found: Vec::new(),
        }
    }

    fn row(first: u64) -> [u64; LANES] {
        std::array::from_fn(|i| first + 4 * i as u64)
    }

    impl Bench {
        fn run(&mut self, block: usize, access: WarpAccess<'_>, values: &dyn Values) -> usize {
            let before = self.found.len();
            self.races
                .access(&mut self.blocks[block], &access, values, &mut self.found);
            self.found.len() - before
        }

        fn read(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            self.run(block, access(warp, addresses, Effect::Read, false), &Different)
        }

        fn write(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            self.run(block, access(warp, addresses, Effect::Write, false), &Different)
        }

        fn atomic(&mut self, block: usize, warp: u8, addresses: &[u64; LANES]) -> usize {
            let one = WarpAccess {
                lanes: 1,
                ..access(warp, addresses, Effect::Update, true)
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

    fn access(warp: u8, addresses: &[u64; LANES], effect: Effect, strong: bool) -> WarpAccess<'_> {
        WarpAccess {
            warp,
            lanes: !0,
            addresses,
            bytes: 4,
            effect,
            strong,
            release: false,
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
                bench.blocks[0].fence(0, 1);
            }
            assert_eq!(bench.atomic(0, 0, &flag), 0);
            assert_eq!(bench.atomic(1, 0, &flag), 0);
            bench.barrier(1);
            assert_eq!(bench.read(1, 1, &data) == 0, fenced);
            assert_ne!(bench.read(2, 0, &data), 0);
        }
    }

    #[test]
    fn equal_values_do_not_race_and_different_ones_do() {
        let mut bench = bench();
        let same = [4096; LANES];
        let write = access(0, &same, Effect::Write, false);
        assert_eq!(bench.run(0, write, &Equal), 0);
        assert_eq!(bench.run(1, write, &Equal), 0);
        assert_ne!(bench.run(1, write, &Different), 0);
    }

    #[test]
    fn strong_accesses_do_not_race_with_each_other() {
        let mut bench = bench();
        let at = [4096; LANES];
        bench.atomic(0, 0, &at);
        assert_eq!(bench.run(1, access(0, &at, Effect::Read, true), &Different), 0);
        assert_ne!(bench.read(1, 0, &at), 0);
    }

    #[test]
    fn neighbouring_bytes_are_different_locations() {
        let mut bench = bench();
        let bytes = std::array::from_fn(|i| 4096 + i as u64);
        let write = |warp| WarpAccess {
            bytes: 1,
            ..access(warp, &bytes, Effect::Write, false)
        };
        assert_eq!(bench.run(0, write(0), &Different), 0);
        assert_ne!(bench.run(0, write(1), &Different), 0);
        let words: [u64; LANES] = std::array::from_fn(|i| 4096 + i as u64 / 4 * 4);
        bench.barrier(0);
        assert_eq!(bench.read(0, 0, &words), 0);
        assert_ne!(bench.run(0, write(0), &Different), 0);
    }

    #[test]
    fn wide_accesses_conflict_in_each_word() {
        let mut bench = bench();
        let quads: [u64; LANES] = std::array::from_fn(|i| 4096 + 16 * i as u64);
        let write = WarpAccess {
            bytes: 16,
            ..access(0, &quads, Effect::Write, false)
        };
        assert_eq!(bench.run(0, write, &Different), 0);
        let one = WarpAccess {
            lanes: 1 << 5,
            ..access(1, &[4096 + 16 * 5 + 12; LANES], Effect::Read, false)
        };
        assert_eq!(bench.run(0, one, &Different), 1);
        let conflict = bench.found[0];
        assert_eq!(conflict.address, 4096 + 16 * 5 + 12);
        assert_eq!((conflict.earlier.lanes, conflict.later.lanes), (1 << 5, 1 << 5));
    }
}
