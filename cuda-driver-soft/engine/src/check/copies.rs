//! Copies of `cp.async` that threads have not waited for.

use crate::lanes::{self, LANES, Mask};

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
