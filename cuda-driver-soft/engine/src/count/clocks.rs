//! The time that warps wait at barriers, if each warp issued one instruction per unit of time. At the barrier of a
//! cluster, only the arrivals of the same block count.

#![forbid(unsafe_code)]

use crate::code::function::BARRIERS;

/// The clocks of a block's warps, and the arrivals at its barriers.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// For each warp, the sum of the instructions that it issued and the time that it waited.
    now: Vec<u64>,
    /// For each barrier, the latest arrival of a warp of the block since it last opened. The cluster's barrier is the
    /// last.
    latest: Vec<u64>,
}

/// Index of the cluster's barrier, after the block's own.
const CLUSTER: usize = BARRIERS as usize;

impl Clocks {
    /// Returns the clocks of a block that starts.
    pub(super) fn new(threads: u32) -> Self {
        Clocks {
            now: vec![0; threads.div_ceil(32) as usize],
            latest: vec![0; CLUSTER + 1],
        }
    }

    /// Advances the clock of a warp.
    pub(super) fn advance(&mut self, warp: u32, instructions: u64) {
        if let Some(now) = self.now.get_mut(warp as usize) {
            *now += instructions;
        }
    }

    /// Records the arrival of a warp at a barrier; `None` is the cluster's.
    pub(super) fn arrive(&mut self, warp: u32, barrier: Option<u32>) {
        let now = self.now.get(warp as usize).copied().unwrap_or(0);
        if let Some(latest) = self.latest.get_mut(index(barrier)) {
            *latest = (*latest).max(now);
        }
    }

    /// Opens a barrier for the warps that wait there. Returns the warps and the time that each of them has waited.
    pub(super) fn open(&mut self, barrier: Option<u32>, waits: &dyn Fn(u32) -> bool) -> Vec<(u32, u64)> {
        let Some(latest) = self.latest.get_mut(index(barrier)) else {
            return Vec::new();
        };
        let time = std::mem::take(latest);
        let warps = (0..).zip(&mut self.now).filter(|(warp, _)| waits(*warp));
        let waited = warps.map(|(warp, now)| {
            let wait = time.saturating_sub(*now);
            *now += wait;
            (warp, wait)
        });
        waited.collect()
    }
}

fn index(barrier: Option<u32>) -> usize {
    barrier.map_or(CLUSTER, |id| id as usize)
}

#[cfg(test)]
mod tests {
    use super::Clocks;

    #[test]
    fn warps_wait_for_the_last_arrival() {
        let mut clocks = Clocks::new(96);
        for (warp, instructions) in [(0, 10), (1, 4), (2, 7)] {
            clocks.advance(warp, instructions);
            clocks.arrive(warp, Some(0));
        }
        assert_eq!(clocks.open(Some(0), &|_| true), [(0, 0), (1, 6), (2, 3)]);
        // Waiting has made the clocks equal.
        clocks.advance(1, 5);
        for warp in 0..2 {
            clocks.arrive(warp, Some(1));
        }
        assert_eq!(clocks.open(Some(1), &|warp| warp < 2), [(0, 5), (1, 0)]);
    }
}
