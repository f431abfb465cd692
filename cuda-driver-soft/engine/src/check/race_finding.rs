//! Turns the conflicts that the race checker detects into findings.

use super::finding::{AllocationPlace, Checks, Finding};
use super::observer::CheckWorker;
use super::race::{Conflict, shared_offset};
use super::stamp::Strength;
use crate::lanes::{LANES, Mask};

impl CheckWorker {
    /// Adds the finding of two unordered accesses.
    pub(super) fn race(&mut self, conflict: &Conflict, bytes: u32) {
        let Conflict { earlier, later, .. } = *conflict;
        let (first, second) = (self.launch.site(earlier.site), self.launch.site(later.site));
        let line = |(function, pc): (u32, u32)| self.launch.plans[function as usize][pc as usize].line;
        let mut lines = [line(first), line(second)];
        lines.sort_unstable();
        let lane = |lanes: Mask| lanes.trailing_zeros() as usize % LANES;
        // With equal ranks the first finding is kept: one worker runs all blocks, always in the same order.
        self.add((1, lines), (0, 0), |launch| {
            let verb = |writes: bool, strong: Strength| match (writes, strong != Strength::Weak) {
                (true, true) => "writes (atomic or volatile)",
                (true, false) => "writes",
                (false, true) => "reads (atomic or volatile)",
                (false, false) => "reads",
            };
            let (memory, allocation) = match shared_offset(conflict.address) {
                Some((_, offset)) => (format!("offset {offset:#x} of shared memory"), None),
                None => (
                    format!("{:#x}", conflict.address),
                    AllocationPlace::of(conflict.address),
                ),
            };
            let now = verb(conflict.later_writes, later.strong);
            let before = verb(conflict.earlier_wrote, earlier.strong);
            let same_block = earlier.block == later.block;
            Finding {
                check: Checks::RACE,
                kernel: launch.kernel.name().into(),
                problem: format!("two accesses to {memory} that nothing orders"),
                places: vec![
                    launch.place(
                        second,
                        format!("{now} {bytes} bytes"),
                        later.block.into(),
                        (later.warp.into(), lane(later.lanes)),
                    ),
                    launch.place(
                        first,
                        match earlier.pending {
                            true => "copies to the same memory with cp.async, and has not waited for the copy".into(),
                            false => format!("{before} the same memory"),
                        },
                        earlier.block.into(),
                        (earlier.warp.into(), lane(earlier.lanes)),
                    ),
                ],
                allocation,
                advice: match (same_block, earlier.warp == later.warp) {
                    _ if earlier.pending => {
                        "wait with cp.async.wait_group, cp.async.wait_all or an mbarrier, then synchronise the threads"
                    }
                    (true, true) => "put __syncwarp() or __syncthreads() between them, or use atomics",
                    (true, false) => "put __syncthreads() between them, or use atomics",
                    (false, _) => {
                        "blocks are ordered only by atomics with __threadfence() before the release, by a grid or \
                         cluster barrier, or by separate launches"
                    }
                },
            }
        });
    }
}
