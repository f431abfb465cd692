//! The checker of synchronisation: barriers that only a part of the block reaches, and masks that name lanes which do
//! not take part.

use super::finding::{Checks, Finding};
use super::observer::CheckWorker;
use crate::code::registers::Slot;
use crate::code::watch::{At, BarrierArrival};
use crate::lanes::{self, LANES, Mask};

impl CheckWorker {
    /// Records the masks of lanes that arrive at a warp-level instruction.
    pub(super) fn across(&mut self, at: &At<'_>, members: Slot) {
        let members = at.values(members, 4);
        let site = (at.code.id.0, at.pc);
        if let Some(block) = &mut self.block
            && let Some(warp) = block.warps.get_mut(at.warp as usize)
        {
            for lane in lanes::iter(at.mask) {
                let mask = members[lane] as Mask;
                match warp.across.iter_mut().find(|(_, m, s)| (*m, *s) == (mask, site)) {
                    Some((lanes, ..)) => *lanes |= 1 << lane,
                    None => warp.across.push((1 << lane, mask, site)),
                }
            }
        }
    }

    /// Checks the masks of the lanes for which a warp-level instruction has run.
    pub(super) fn ran_across(&mut self, warp: u32, lanes: Mask) {
        let Some(block) = &mut self.block else { return };
        let number = block.at.number;
        let Some(state) = block.warps.get_mut(warp as usize) else {
            return;
        };
        let all = state.lanes;
        let mut wrong = None;
        state.across.retain(|(of, members, site)| {
            if of & lanes == 0 {
                return true;
            }
            // Lanes beyond the end of the block do not count: programs use full masks in the last warp, too.
            if members & all & !lanes != 0 {
                wrong.get_or_insert((*members & all & !lanes, *members, *site));
            }
            false
        });
        if let Some((missing, members, site)) = wrong {
            let lane = lanes.trailing_zeros() as usize % LANES;
            let line = self.launch.plans[site.0 as usize][site.1 as usize].line;
            self.add((2, [line, site.0]), (number, warp * 32 + lane as u32), |launch| Finding {
                check: Checks::SYNC,
                kernel: launch.kernel.name().into(),
                problem: format!(
                    "a warp-level instruction names lanes {missing:#010x}, which have exited or do not take part"
                ),
                places: vec![launch.place(
                    site,
                    format!("takes part with the mask {members:#010x}"),
                    number,
                    (warp, lane),
                )],
                allocation: None,
                advice: "pass the mask of the lanes that reach the instruction, for example from __ballot_sync before \
                         the branch",
            });
        }
    }

    /// Checks the arrivals at a barrier that has opened, if all threads of the block must reach it.
    pub(super) fn check_barrier(&mut self, arrivals: &[(u32, BarrierArrival)], id: u32) {
        let Some(block) = &self.block else { return };
        let number = block.at.number;
        let Some((_, first)) = arrivals.first().filter(|(_, a)| a.count.is_none()) else {
            return;
        };
        let line = first.line;
        let missing = block.warps.iter().zip(0..).find_map(|(state, warp)| {
            let arrived = arrivals.iter().find(|(w, _)| *w == warp).map_or(0, |(_, a)| a.lanes);
            let missing = state.lanes & !arrived;
            (missing != 0).then_some((warp, missing.trailing_zeros() as usize))
        });
        let Some(missing) = missing else { return };
        let here = (arrivals[0].0, first.lanes.trailing_zeros() as usize % LANES);
        let function = first.function.0;
        self.add((3, [line, function]), (number, here.0 * 32), |launch| Finding {
            check: Checks::SYNC,
            kernel: launch.kernel.name().into(),
            problem: format!(
                "a part of the block is at barrier {id}: thread {:?} has exited without reaching it",
                launch.thread(missing.0, missing.1)
            ),
            places: vec![launch.place_of_line(function, line, format!("waits at barrier {id}"), number, here)],
            allocation: None,
            advice: "let all threads of the block reach __syncthreads(): do not return early, and keep it out of \
                     branches that threads take differently",
        });
    }
}
