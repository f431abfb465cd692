//! The order of a block's threads: the accesses of other threads that are ordered before each thread, by barriers, warp
//! synchronisation, fences and acquired locations.

use super::clock::{Clock, SharedClock, ThreadId, joined};
use crate::lanes::{self, FULL, LANES, Mask};
use ptx::ir::Scope;
use std::collections::HashMap;
use std::sync::Arc;

/// The threads that a fence or a strong access concerns: those of the block, of its cluster, or of the device. All
/// threads of a launch are on one device, so the whole system counts as the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    Block,
    Cluster,
    Device,
}

impl Reach {
    pub(super) const ALL: [Reach; 3] = [Reach::Block, Reach::Cluster, Reach::Device];
}

impl From<Scope> for Reach {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Cta => Reach::Block,
            Scope::Cluster => Reach::Cluster,
            Scope::Gpu | Scope::Sys => Reach::Device,
        }
    }
}

/// The last fence of a thread: the moments that its later stores and atomic operations publish.
#[derive(Clone, Debug, Default)]
struct Fence {
    /// The moments before the fence, apart from those in the other fields.
    clock: SharedClock,
    /// The moment of the thread's own fence; 0 if there was none.
    own: u32,
    /// [`WarpOrder::block`] at the fence.
    of_block: u32,
    /// [`WarpOrder::warp`] at the fence.
    of_warp: u32,
}

/// The accesses of other threads that are ordered before the lanes of a warp.
#[derive(Debug)]
struct WarpOrder {
    /// The moment up to which all threads of the block are ordered before the lanes.
    block: u32,
    /// The moment up to which the lanes are ordered before each other.
    warp: u32,
    /// The other moments that are ordered before each lane.
    more: [SharedClock; LANES],
    /// False if `more` is empty for all lanes.
    has_more: bool,
    /// By reach, the last fences of the lanes, if there were any.
    fences: [Option<Box<[Fence; LANES]>>; 3],
    /// By reach, true if a lane ran a fence since the last barrier of all threads of the block.
    fenced: [bool; 3],
    /// Lanes that have not exited.
    live: Mask,
}

/// A warp's arrival at a barrier that has not opened.
#[derive(Clone, Copy, Debug)]
struct ArrivedWarp {
    warp: u8,
    time: u32,
    /// True if the warp went on without waiting.
    only_arrived: bool,
}

/// The order of a block's threads.
#[derive(Debug)]
pub(super) struct BlockOrder {
    block: u32,
    /// The number of the first block of the cluster.
    cluster: u32,
    /// The block's time, from 1.
    time: u32,
    warps: Vec<WarpOrder>,
    /// Arrivals by barrier.
    arrived: HashMap<u32, Vec<ArrivedWarp>>,
}

/// Moments that are ordered before all lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    block: u32,
    warp: u8,
    /// The moment up to which all threads of the block are ordered before the warp.
    of_block: u32,
    /// The moment up to which the lanes of the warp are ordered before each other.
    of_warp: u32,
}

impl Known {
    /// Returns true if a moment of the threads of a warp is ordered before all lanes of this warp.
    #[inline]
    pub(super) fn covers(&self, (block, warp): (u32, u8), time: u32) -> bool {
        block == self.block && (time <= self.of_block || (warp == self.warp && time <= self.of_warp))
    }
}

/// The barrier of a cluster, and the number of its blocks that have ended.
#[derive(Debug, Default)]
pub(super) struct ClusterOrder {
    /// The moments of the warps that have arrived since the barrier last opened.
    arrived: SharedClock,
    /// The moments of all warps that had arrived when the barrier last opened.
    opened: SharedClock,
    /// Number of blocks of the cluster that have ended.
    pub(super) ended: u32,
}

impl BlockOrder {
    /// Returns the order of a block that has not started. `cluster` is the number of the first block of its cluster.
    pub(super) fn new(block: u32, cluster: u32, threads: u32) -> Self {
        let warps = (0..threads.div_ceil(32)).map(|warp| {
            let lanes = (threads - warp * 32).min(32);
            WarpOrder {
                block: 0,
                warp: 0,
                more: [const { None }; LANES],
                has_more: false,
                fences: [const { None }; 3],
                fenced: [false; 3],
                live: FULL >> (32 - lanes),
            }
        });
        BlockOrder {
            block,
            cluster,
            time: 1,
            warps: warps.collect(),
            arrived: HashMap::new(),
        }
    }

    /// Returns the number of the block.
    pub(super) fn block(&self) -> u32 {
        self.block
    }

    /// Returns the block's time, with which accesses are stamped.
    pub(super) fn time(&self) -> u32 {
        self.time
    }

    /// Returns true if a moment of other threads, the `lanes` of a warp, is ordered before the next access of a thread
    /// of this block: `me` is its warp and lane.
    #[inline]
    pub(super) fn is_before(&self, (block, warp, lanes): (u32, u8, Mask), time: u32, me: (u8, u8)) -> bool {
        let own = &self.warps[usize::from(me.0)];
        let mut lanes = lanes;
        if block == self.block {
            if time <= own.block {
                return true;
            }
            if warp == me.0 {
                lanes &= !(1 << me.1);
                if lanes == 0 || time <= own.warp {
                    return true;
                }
            }
        }
        let Some(clock) = &own.more[usize::from(me.1)] else {
            return false;
        };
        lanes::iter(lanes).all(|lane| {
            let thread = ThreadId {
                block,
                warp,
                lane: lane as u8,
            };
            clock.covers(thread, time)
        })
    }

    /// Returns the moments that are ordered before all lanes of a warp of this block, without those in the clocks of
    /// single lanes.
    #[inline]
    pub(super) fn known(&self, warp: u8) -> Known {
        let own = &self.warps[usize::from(warp)];
        Known {
            block: self.block,
            warp,
            of_block: own.block,
            of_warp: own.warp,
        }
    }

    /// Records that lanes of a warp have synchronised.
    pub(super) fn sync_lanes(&mut self, warp: u8, lanes: Mask) {
        let (block, time) = (self.block, self.time);
        let Some(own) = self.warps.get_mut(usize::from(warp)) else {
            return;
        };
        self.time += 1;
        let all = own.live & !lanes == 0;
        let mut more = own.knowledge(lanes);
        if all {
            own.warp = time;
        } else {
            let mut clock = more.as_deref().cloned().unwrap_or_default();
            for lane in lanes::iter(lanes) {
                let lane = lane as u8;
                clock.add_thread(ThreadId { block, warp, lane }, time);
            }
            more = Some(Arc::new(clock));
        }
        own.learn(lanes, &more);
        for reach in Reach::ALL {
            if own.fenced[reach as usize] {
                let fences = own.published(reach, (block, warp), lanes);
                own.set_fences(reach, lanes, &fences);
            }
        }
    }

    /// Records that lanes of a warp have exited.
    pub(super) fn exit(&mut self, warp: u8, lanes: Mask) {
        if let Some(own) = self.warps.get_mut(usize::from(warp)) {
            own.live &= !lanes;
        }
    }

    /// Records that a warp has arrived at a barrier of its block. `only_arrived` is true if it does not wait.
    pub(super) fn arrive(&mut self, id: u32, warp: u8, only_arrived: bool) {
        let time = self.time;
        if only_arrived {
            self.time += 1;
        }
        let arrived = ArrivedWarp {
            warp,
            time,
            only_arrived,
        };
        self.arrived.entry(id).or_default().push(arrived);
    }

    /// Records that a barrier of the block has opened.
    pub(super) fn open(&mut self, id: u32) {
        let arrived = self.arrived.remove(&id).unwrap_or_default();
        let (block, time) = (self.block, self.time);
        self.time += 1;
        let running = self.warps.iter().filter(|w| w.live != 0).count();
        let whole = arrived.len() >= running && arrived.iter().all(|a| !a.only_arrived);
        let mut more: SharedClock = None;
        let mut fences: [SharedClock; 3] = [const { None }; 3];
        let mut fenced = [false; 3];
        for a in &arrived {
            let Some(own) = self.warps.get(usize::from(a.warp)) else {
                continue;
            };
            if own.has_more {
                more = joined(&more, &own.knowledge(own.live));
            }
            for reach in Reach::ALL.into_iter().filter(|reach| own.fenced[*reach as usize]) {
                fenced[reach as usize] = true;
                let published = own.published(reach, (block, a.warp), own.live);
                fences[reach as usize] = joined(&fences[reach as usize], &published);
            }
        }
        if !whole {
            let mut clock = more.as_deref().cloned().unwrap_or_default();
            for a in &arrived {
                clock.add_warp(block, a.warp, if a.only_arrived { a.time } else { time });
                clock.add_block(block, self.warps.get(usize::from(a.warp)).map_or(0, |w| w.block));
            }
            more = Some(Arc::new(clock));
        }
        for a in arrived.iter().filter(|a| !a.only_arrived) {
            let Some(own) = self.warps.get_mut(usize::from(a.warp)) else {
                continue;
            };
            own.warp = time;
            if whole {
                own.block = time;
            }
            own.learn(own.live, &more);
            for reach in Reach::ALL.into_iter().filter(|reach| fenced[*reach as usize]) {
                own.set_fences(reach, own.live, &fences[reach as usize]);
                // Threads at other barriers have not learned of the fence.
                own.fenced[reach as usize] &= !whole;
            }
        }
    }

    /// Records that a warp has arrived at the cluster's barrier. A relaxed arrival publishes only the moments before
    /// the last fences.
    pub(super) fn arrive_at_cluster(&mut self, cluster: &mut ClusterOrder, warp: u8, relaxed: bool) {
        let (block, time) = (self.block, self.time);
        self.time += 1;
        let Some(own) = self.warps.get(usize::from(warp)) else {
            return;
        };
        if relaxed {
            for reach in [Reach::Cluster, Reach::Device] {
                let published = own.published(reach, (block, warp), own.live);
                cluster.arrived = joined(&cluster.arrived, &published);
            }
            return;
        }
        let mut clock = own.knowledge(own.live).as_deref().cloned().unwrap_or_default();
        clock.add_block(block, own.block);
        clock.add_warp(block, warp, time);
        cluster.arrived = joined(&cluster.arrived, &Some(Arc::new(clock)));
    }

    /// Records that a warp waits at the cluster's barrier after it has opened, or is released from it.
    pub(super) fn wait_for_cluster(&mut self, cluster: &ClusterOrder, warp: u8) {
        if let Some(own) = self.warps.get_mut(usize::from(warp)) {
            let more = joined(&own.knowledge(own.live), &cluster.opened);
            own.learn(own.live, &more);
        }
    }

    /// Records that lanes of a warp ran a fence: their later stores and atomic operations publish everything before the
    /// fence to the threads in its reach.
    pub(super) fn fence(&mut self, warp: u8, lanes: Mask, reach: Reach) {
        let time = self.time;
        self.time += 1;
        let Some(own) = self.warps.get_mut(usize::from(warp)) else {
            return;
        };
        own.fenced[reach as usize] = true;
        let fences = own.fences[reach as usize].get_or_insert_with(Box::default);
        for lane in lanes::iter(lanes) {
            fences[lane] = Fence {
                clock: own.more[lane].clone(),
                own: time,
                of_block: own.block,
                of_warp: own.warp,
            };
        }
    }

    /// Returns true if a lane of a warp may have something to publish.
    pub(super) fn has_fences(&self, warp: u8) -> bool {
        self.warps
            .get(usize::from(warp))
            .is_some_and(|own| own.fences.iter().any(Option::is_some))
    }

    /// Returns the moments that a thread publishes with a store or an atomic operation: those before its last fence
    /// with this reach.
    pub(super) fn published(&self, warp: u8, lane: u8, reach: Reach) -> SharedClock {
        self.warps
            .get(usize::from(warp))?
            .published(reach, (self.block, warp), 1 << lane)
    }

    /// Records that a thread has read a location at which others have published moments.
    pub(super) fn acquire(&mut self, warp: u8, lane: u8, published: &SharedClock) {
        if let Some(own) = self.warps.get_mut(usize::from(warp)) {
            let slot = &mut own.more[usize::from(lane)];
            *slot = joined(slot, published);
            own.has_more |= slot.is_some();
        }
    }
}

impl WarpOrder {
    /// Returns the joined clocks in `more` of these lanes.
    fn knowledge(&self, lanes: Mask) -> SharedClock {
        if !self.has_more {
            return None;
        }
        lanes::iter(lanes).fold(None, |all, lane| joined(&all, &self.more[lane]))
    }

    /// Sets the clock in `more` of these lanes.
    fn learn(&mut self, lanes: Mask, more: &SharedClock) {
        if more.is_none() && !self.has_more {
            return;
        }
        self.has_more = true;
        for lane in lanes::iter(lanes) {
            self.more[lane].clone_from(more);
        }
    }

    /// Returns the moments before the last fences of these lanes.
    fn published(&self, reach: Reach, (block, warp): (u32, u8), lanes: Mask) -> SharedClock {
        let fences = self.fences[reach as usize].as_deref()?;
        let mut all: SharedClock = None;
        for lane in lanes::iter(lanes) {
            let fence = &fences[lane];
            if fence.own == 0 {
                all = joined(&all, &fence.clock);
                continue;
            }
            let mut clock = fence.clock.as_deref().cloned().unwrap_or_default();
            clock.add_block(block, fence.of_block);
            clock.add_warp(block, warp, fence.of_warp);
            let lane = lane as u8;
            clock.add_thread(ThreadId { block, warp, lane }, fence.own);
            all = joined(&all, &Some(Arc::new(clock)));
        }
        all
    }

    /// Sets the moments that these lanes publish in this reach.
    fn set_fences(&mut self, reach: Reach, lanes: Mask, clock: &SharedClock) {
        let fences = self.fences[reach as usize].get_or_insert_with(Box::default);
        for lane in lanes::iter(lanes) {
            fences[lane] = Fence {
                clock: clock.clone(),
                ..Fence::default()
            };
        }
    }
}

impl ClusterOrder {
    /// Records that the barrier has opened.
    pub(super) fn open(&mut self) {
        if let Some(arrived) = self.arrived.take() {
            self.opened = Some(arrived);
        }
    }
}

/// The moments that threads have published at locations in memory.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// By location: the moments that threads have published to the whole device.
    locations: HashMap<u64, Arc<Clock>>,
    /// By reach and block or cluster, and by location: the moments that threads have published only to that block or
    /// cluster.
    narrow: HashMap<(Reach, u32), HashMap<u64, Arc<Clock>>>,
}

impl Published {
    /// Returns true if threads have published nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.locations.is_empty() && self.narrow.is_empty()
    }

    /// Adds the moments that a thread of a block publishes at a location to all threads in reach.
    pub(super) fn release(&mut self, location: u64, (reach, order): (Reach, &BlockOrder), clock: SharedClock) {
        let Some(clock) = clock else { return };
        let locations = match reach {
            Reach::Block => self.narrow.entry((reach, order.block)).or_default(),
            Reach::Cluster => self.narrow.entry((reach, order.cluster)).or_default(),
            Reach::Device => &mut self.locations,
        };
        add(locations.entry(location).or_insert_with(|| Arc::clone(&clock)), clock);
    }

    /// Removes the moments that threads have published only to a block, or only to the cluster whose first block it is.
    pub(super) fn end_block(&mut self, block: u32) {
        self.narrow.remove(&(Reach::Block, block));
        self.narrow.remove(&(Reach::Cluster, block));
    }

    /// Returns the moments that threads have published at a location to the threads of a block.
    pub(super) fn at(&self, location: u64, order: &BlockOrder) -> SharedClock {
        let all = self.locations.get(&location).cloned();
        if self.narrow.is_empty() {
            return all;
        }
        let narrow = [(Reach::Block, order.block), (Reach::Cluster, order.cluster)];
        narrow.into_iter().fold(all, |all, (reach, number)| {
            let locations = self.narrow.get(&(reach, number));
            joined(&all, &locations.and_then(|of| of.get(&location)).cloned())
        })
    }
}

/// Adds the entries of a clock to a shared one.
fn add(known: &mut Arc<Clock>, clock: Arc<Clock>) {
    if let Some(both) = joined(&Some(Arc::clone(known)), &Some(clock)) {
        *known = both;
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockOrder, ClusterOrder, Published, Reach};

    const LANE_0: u32 = 1;

    #[test]
    fn lanes_of_a_warp_are_ordered_by_warp_synchronisation_only() {
        let mut order = BlockOrder::new(0, 0, 64);
        let time = order.time();
        assert!(order.is_before((0, 0, LANE_0), time, (0, 0)), "program order");
        assert!(!order.is_before((0, 0, LANE_0), time, (0, 1)));
        order.sync_lanes(0, !0);
        assert!(order.is_before((0, 0, LANE_0), time, (0, 1)));
        assert!(!order.is_before((0, 0, LANE_0), order.time(), (0, 1)));
        assert!(!order.is_before((0, 0, LANE_0), time, (1, 1)), "the other warp");
    }

    #[test]
    fn a_part_of_a_warp_orders_only_its_lanes() {
        let mut order = BlockOrder::new(0, 0, 32);
        let time = order.time();
        order.sync_lanes(0, 0xffff);
        assert!(order.is_before((0, 0, LANE_0), time, (0, 15)));
        assert!(!order.is_before((0, 0, LANE_0), time, (0, 16)));
        assert!(!order.is_before((0, 0, 1 << 16), time, (0, 0)));
    }

    #[test]
    fn a_barrier_orders_the_block_and_a_named_one_its_warps() {
        let mut order = BlockOrder::new(5, 5, 96);
        let first = order.time();
        for warp in 0..2 {
            order.arrive(1, warp, false);
        }
        order.open(1);
        assert!(order.is_before((5, 0, LANE_0), first, (1, 7)));
        assert!(!order.is_before((5, 0, LANE_0), first, (2, 0)));
        let second = order.time();
        for warp in 0..3 {
            order.arrive(0, warp, false);
        }
        order.open(0);
        assert!(order.is_before((5, 0, LANE_0), second, (2, 0)));
        assert!(order.is_before((5, 2, LANE_0), second, (0, 3)));
        assert!(!order.is_before((5, 2, LANE_0), order.time(), (0, 3)));
    }

    #[test]
    fn a_warp_that_only_arrives_publishes_its_past() {
        let mut order = BlockOrder::new(0, 0, 64);
        let before = order.time();
        order.arrive(1, 0, true);
        let after = order.time();
        order.arrive(1, 1, false);
        order.open(1);
        assert!(order.is_before((0, 0, LANE_0), before, (1, 0)));
        assert!(!order.is_before((0, 0, LANE_0), after, (1, 0)));
        assert!(!order.is_before((0, 1, LANE_0), before, (0, 0)), "warp 0 did not wait");
    }

    #[test]
    fn a_fence_and_a_location_order_blocks() {
        let (mut a, mut b) = (BlockOrder::new(0, 0, 64), BlockOrder::new(1, 1, 32));
        let mut published = Published::default();
        let time = a.time();
        // Without a fence nothing is published.
        published.release(64, (Reach::Device, &a), a.published(0, 0, Reach::Device));
        assert!(published.at(64, &b).is_none());
        for warp in 0..2 {
            a.arrive(0, warp, false);
        }
        a.open(0);
        a.fence(0, 1, Reach::Device);
        let late = a.time();
        published.release(64, (Reach::Device, &a), a.published(0, 0, Reach::Device));
        b.acquire(0, 3, &published.at(64, &b));
        assert!(
            b.is_before((0, 1, LANE_0), time, (0, 3)),
            "the fence covers the barrier"
        );
        assert!(
            !b.is_before((0, 1, LANE_0), time, (0, 4)),
            "lane 4 has acquired nothing"
        );
        assert!(!b.is_before((0, 0, LANE_0), late, (0, 3)));
        b.sync_lanes(0, !0);
        assert!(b.is_before((0, 1, LANE_0), time, (0, 4)));
    }

    #[test]
    fn fences_before_a_barrier_count_for_a_store_after_it() {
        let (mut a, mut b) = (BlockOrder::new(0, 0, 64), BlockOrder::new(1, 1, 32));
        let mut published = Published::default();
        let time = a.time();
        for warp in 0..2 {
            a.fence(warp, !0, Reach::Device);
        }
        for warp in 0..2 {
            a.arrive(0, warp, false);
        }
        a.open(0);
        published.release(0, (Reach::Device, &a), a.published(0, 0, Reach::Device));
        b.acquire(0, 0, &published.at(0, &b));
        assert!(b.is_before((0, 1, 1 << 9), time, (0, 0)));
    }

    #[test]
    fn the_barrier_of_a_cluster_orders_its_blocks() {
        let (mut a, mut b) = (BlockOrder::new(0, 0, 32), BlockOrder::new(1, 1, 32));
        let mut cluster = ClusterOrder::default();
        let time = a.time();
        a.arrive_at_cluster(&mut cluster, 0, false);
        b.wait_for_cluster(&cluster, 0);
        assert!(!b.is_before((0, 0, LANE_0), time, (0, 5)), "not open");
        b.arrive_at_cluster(&mut cluster, 0, false);
        cluster.open();
        b.wait_for_cluster(&cluster, 0);
        assert!(b.is_before((0, 0, LANE_0), time, (0, 5)));
        assert!(!b.is_before((0, 0, LANE_0), a.time(), (0, 5)));
    }

    #[test]
    fn a_fence_in_a_block_orders_its_threads_only() {
        let (mut a, mut b) = (BlockOrder::new(0, 0, 64), BlockOrder::new(1, 1, 32));
        let mut published = Published::default();
        let time = a.time();
        a.fence(0, 1, Reach::Block);
        published.release(64, (Reach::Device, &a), a.published(0, 0, Reach::Device));
        published.release(64, (Reach::Block, &a), a.published(0, 0, Reach::Block));
        a.acquire(1, 3, &published.at(64, &a));
        assert!(a.is_before((0, 0, LANE_0), time, (1, 3)));
        b.acquire(0, 3, &published.at(64, &b));
        assert!(!b.is_before((0, 0, LANE_0), time, (0, 3)));
    }

    #[test]
    fn a_fence_in_a_block_and_a_warp_synchronisation_order_for_other_lanes() {
        let mut a = BlockOrder::new(0, 0, 64);
        let mut published = Published::default();
        let time = a.time();
        a.fence(0, !0, Reach::Block);
        a.sync_lanes(0, !0);
        published.release(64, (Reach::Block, &a), a.published(0, 7, Reach::Block));
        a.acquire(1, 3, &published.at(64, &a));
        assert!(a.is_before((0, 0, LANE_0), time, (1, 3)));
        // The same with a barrier of the block.
        let time = a.time();
        a.fence(0, !0, Reach::Block);
        for warp in 0..2 {
            a.arrive(0, warp, false);
        }
        a.open(0);
        assert!(a.published(1, 0, Reach::Block).is_some());
        assert!(a.published(1, 0, Reach::Device).is_none());
        assert!(a.is_before((0, 0, LANE_0), time, (1, 3)));
    }

    #[test]
    fn a_fence_in_a_cluster_orders_its_blocks_only() {
        let (mut a, mut b, mut c) = (
            BlockOrder::new(0, 0, 32),
            BlockOrder::new(1, 0, 32),
            BlockOrder::new(2, 2, 32),
        );
        let mut published = Published::default();
        let time = a.time();
        a.fence(0, 1, Reach::Cluster);
        published.release(64, (Reach::Cluster, &a), a.published(0, 0, Reach::Cluster));
        for (order, expected) in [(&mut b, true), (&mut c, false)] {
            order.acquire(0, 0, &published.at(64, order));
            assert_eq!(order.is_before((0, 0, LANE_0), time, (0, 0)), expected);
        }
    }

    #[test]
    fn a_relaxed_arrival_at_the_cluster_needs_a_fence() {
        for fenced in [false, true] {
            let (mut a, mut b) = (BlockOrder::new(0, 0, 32), BlockOrder::new(1, 1, 32));
            let mut cluster = ClusterOrder::default();
            let time = a.time();
            if fenced {
                a.fence(0, !0, Reach::Device);
            }
            a.arrive_at_cluster(&mut cluster, 0, true);
            b.arrive_at_cluster(&mut cluster, 0, true);
            cluster.open();
            b.wait_for_cluster(&cluster, 0);
            assert_eq!(b.is_before((0, 0, LANE_0), time, (0, 5)), fenced);
        }
    }
}
