//! Copies of `cp.async` and bulk copies that threads have not waited for.

use super::race::shared_offset;
use super::stamp::Stamp;
use crate::lanes::{self, LANES, Mask};
use std::collections::HashMap;

/// The copies that lanes of a warp made with one instruction.
#[derive(Debug)]
pub(super) struct WarpCopy {
    pub(super) warp: u8,
    /// The lanes that have not waited for their copy.
    pub(super) lanes: Mask,
    /// The shadow address of the destination of each lane's copy.
    pub(super) addresses: [u64; LANES],
    /// Bytes of each copy.
    pub(super) bytes: u32,
    /// The instruction, as a number in the launch.
    pub(super) site: u32,
    /// For each lane, the number of groups that it had committed before these copies.
    groups: [u32; LANES],
}

/// The copies of a block that its threads have not waited for.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pending: Vec<WarpCopy>,
    /// The number of groups that each thread has committed, by warp and lane.
    commits: Vec<[u32; LANES]>,
}

impl Copies {
    /// Removes all copies before the next block.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.commits.clear();
    }

    /// Returns true if no thread has copies that it has not waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Adds the copies of lanes of a warp.
    pub(super) fn add(&mut self, warp: u8, lanes: Mask, addresses: [u64; LANES], (bytes, site): (u32, u32)) {
        let groups = *self.commits(warp);
        self.pending.push(WarpCopy {
            warp,
            lanes,
            addresses,
            bytes,
            site,
            groups,
        });
    }

    /// Commits a group for these lanes: their copies since the previous group.
    pub(super) fn commit(&mut self, warp: u8, lanes: Mask) {
        let commits = self.commits(warp);
        lanes::iter(lanes).for_each(|lane| commits[lane] += 1);
    }

    /// Waits for copies of these lanes: for all of them if `newest` is `None`, else for those of all committed groups
    /// except the `newest` last ones. Calls `done` with each completed copy; its `lanes` are those that waited for it.
    pub(super) fn wait(&mut self, warp: u8, lanes: Mask, newest: Option<u32>, mut done: impl FnMut(&WarpCopy)) {
        let commits = *self.commits(warp);
        for copy in self.pending.iter_mut().filter(|copy| copy.warp == warp) {
            let is_done = |lane: &usize| match newest {
                Some(newest) => copy.groups[*lane].saturating_add(newest) < commits[*lane],
                None => true,
            };
            let all = copy.lanes;
            let waited = lanes::iter(all & lanes)
                .filter(is_done)
                .fold(0, |mask, lane| mask | 1 << lane);
            if waited != 0 {
                copy.lanes = waited;
                done(copy);
                copy.lanes = all & !waited;
            }
        }
        self.pending.retain(|copy| copy.lanes != 0);
    }

    fn commits(&mut self, warp: u8) -> &mut [u32; LANES] {
        let warp = usize::from(warp);
        if self.commits.len() <= warp {
            self.commits.resize(warp + 1, [0; LANES]);
        }
        &mut self.commits[warp]
    }
}

/// A bulk copy of a thread to shared memory.
#[derive(Debug)]
pub(super) struct BulkCopy {
    /// The block, the warp and the lane of the thread.
    who: (u32, u8, usize),
    /// The shadow address of the destination.
    pub(super) address: u64,
    pub(super) bytes: u32,
    /// The instruction, as a number in the launch.
    site: u32,
}

impl BulkCopy {
    /// Returns true if a write was made by this copy, or by a later one of the same instruction.
    pub(super) fn made(&self, write: &Stamp) -> bool {
        let (block, warp, lane) = self.who;
        (write.block, write.warp, write.site) == (block, warp, self.site) && write.lanes >> lane & 1 == 1
    }
}

/// The bulk copies to shared memory that no thread has waited for.
#[derive(Debug, Default)]
pub(super) struct BulkCopies {
    /// Copies whose mbarrier is not known yet.
    begun: Vec<BulkCopy>,
    /// By the shadow address of an mbarrier, the copies that it completes.
    signalled: HashMap<u64, Vec<BulkCopy>>,
}

impl BulkCopies {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.signalled.is_empty()
    }

    /// Adds a copy of a thread.
    pub(super) fn add(&mut self, who: (u32, u8, usize), (address, bytes): (u64, u32), site: u32) {
        self.begun.push(BulkCopy {
            who,
            address,
            bytes,
            site,
        });
    }

    /// Records that a thread signals an mbarrier: it completes the thread's copies to the mbarrier's block.
    pub(super) fn signal(&mut self, who: (u32, u8, usize), barrier: u64) {
        let block = |address| shared_offset(address).map(|(block, _)| block);
        let is_meant = |copy: &mut BulkCopy| copy.who == who && block(copy.address) == block(barrier);
        let copies = self.begun.extract_if(.., is_meant);
        for copy in copies {
            self.signalled.entry(barrier).or_default().push(copy);
        }
    }

    /// Returns the copies that an mbarrier completes, and forgets them.
    pub(super) fn waited(&mut self, barrier: u64) -> Vec<BulkCopy> {
        self.signalled.remove(&barrier).unwrap_or_default()
    }

    /// Forgets the copies that the mbarriers of a block complete.
    pub(super) fn end_block(&mut self, block: u32) {
        let is_of_block = |address| shared_offset(address).is_some_and(|(of, _)| of == block);
        self.begun.retain(|copy| !is_of_block(copy.address));
        self.signalled.retain(|barrier, _| !is_of_block(*barrier));
    }
}

#[cfg(test)]
mod tests {
    use super::{Copies, LANES};

    #[test]
    fn groups_are_waited_for_in_order() {
        let mut copies = Copies::default();
        for site in 0..3 {
            copies.add(1, !0, [site.into(); LANES], (4, site));
            copies.commit(1, !0);
        }
        copies.add(1, 1, [9; LANES], (4, 9));
        let mut waited = |lanes, newest| {
            let mut sites = Vec::new();
            copies.wait(1, lanes, newest, |copy| sites.push((copy.site, copy.lanes)));
            sites
        };
        assert_eq!(waited(0xff, Some(2)), [(0, 0xff)]);
        assert_eq!(waited(!0, Some(2)), [(0, !0xff)]);
        assert_eq!(waited(!0, Some(0)), [(1, !0), (2, !0)]);
        assert_eq!(waited(!0, Some(0)), []);
        assert_eq!(waited(!0, None), [(9, 1)]);
        assert!(copies.is_empty());
    }
}
