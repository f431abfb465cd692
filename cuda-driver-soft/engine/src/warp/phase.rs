//! Runs all threads of a block in compiled code, from barrier to barrier.
//!
//! As long as all groups of lanes end at the same barrier or at the end of the kernel, the state of the warps is not
//! updated: the warps are *behind*. Code for groups of 32 lanes passes most of these barriers by itself. Otherwise each
//! warp continues on its own from the instructions at which its groups have ended.

use super::compiled::{GroupEnds, begin, call, context, end_of, run_each};
use super::frame::{Frames, MOST_WARPS, WarpPosition};
use super::{Split, Warp};
use crate::code::compiled::Exit;
use crate::code::machine::Machine;
use crate::lanes::{FULL, LANES};

/// The reason why [`run`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEnd {
    /// All threads have exited.
    End,
    /// All threads have passed a barrier, and are at this instruction.
    Barrier(u32),
    /// Each warp continues on its own.
    Apart,
}

impl Warp {
    /// Prepares a finished warp for another block that begins in compiled code.
    #[inline]
    pub(crate) fn begin_later(&mut self, frames: &mut Frames<'_>) {
        if std::mem::replace(&mut self.is_behind, true) && !frames.clears() {
            // Only compiled code has run in the last block, and no registers must be zero: there is nothing to reset.
            return;
        }
        if self.frames.len() > 1 {
            for frame in self.frames.drain(1..).flatten() {
                frames.give_back(frame);
            }
        }
        if let Some(frame) = self.frames[0].as_mut() {
            frames.reuse_later(frame);
        }
    }

    /// Does the work of [`reuse`](Self::reuse) that [`begin_later`](Self::begin_later) has left out, unless it is done.
    pub(super) fn catch_up(&mut self, frames: &Frames<'_>, (block, number): ([u32; 3], u64)) {
        if !std::mem::take(&mut self.is_behind) {
            return;
        }
        let warp = self.position.warp;
        self.position = WarpPosition { block, number, warp };
        (self.live, self.lanes) = (FULL, FULL);
        if let Some(frame) = self.frames[0].as_mut() {
            frames.fill_block(frame, self.position, FULL);
            self.registers = frame.file.bytes();
        }
    }

    /// Makes all lanes ready at an instruction that compiled code has reached.
    fn be_ready_at(&mut self, frames: &Frames<'_>, block: ([u32; 3], u64), pc: u32) {
        self.catch_up(frames, block);
        // There is no local memory, so this cannot run out of it.
        let _ = self.begin(frames, FULL);
        self.ready.clear();
        self.ready.push(Split {
            frame: 0,
            depth: 0,
            pc,
            mask: FULL,
        });
        self.trusted = Some(pc);
    }
}

/// Runs all threads of a block from instruction `at` on, which all of them have reached, from barrier to barrier. Ends
/// when the threads exit or diverge, and at the first barrier at which [`Machine::steps`] is at least `end` or the
/// worker should end to release freed memory. Each group may take `share` backward jumps from one barrier to the next.
pub(crate) fn run(
    warps: &mut [Warp],
    m: &mut Machine<'_>,
    frames: &Frames<'_>,
    block: ([u32; 3], u64),
    mut at: u32,
    share: i64,
    end: u64,
) -> PhaseEnd {
    let together = frames.compiled().zip(frames.kernel());
    let entered = together.and_then(|(compiled, code)| Some((compiled, code, compiled.entry(at)?)));
    let Some((compiled, code, mut entry)) = entered else {
        warps.iter_mut().for_each(|warp| warp.be_ready_at(frames, block, at));
        return PhaseEnd::Apart;
    };
    m.switch_to(code.id, code.caches);
    let mut bases = [std::ptr::null_mut(); MOST_WARPS];
    for (base, warp) in bases.iter_mut().zip(warps.iter_mut()) {
        let Some(frame) = warp.frames[0].as_mut() else {
            return PhaseEnd::Apart;
        };
        *base = frame.file.regs().frame();
        m.spaces.local_end = frame.local_fixed;
    }
    let groups = (LANES / compiled.lanes as usize) as u64;
    let mut context = context(m, frames, code, compiled, block, share);
    let result = loop {
        (context.frame, context.halves) = (bases[0], bases[0]);
        context.begin_frames(bases.as_ptr(), warps.len(), end.saturating_sub(m.steps));
        let from = compiled.code.address().wrapping_add(entry.offset);
        let result = call(&mut context, m, frames, code, compiled, from, block, warps);
        if context.barriers > 0 {
            m.steps += context.passed;
            m.compiled_steps += context.passed - context.barriers * warps.len() as u64;
            at = end_of(context.passed_at).0 + 1;
            // There is an entry after each barrier that the code passes by itself.
            entry = compiled.entry_after(entry, at).unwrap_or(entry);
        }
        if !context.is_over() {
            break result;
        }
        let next = match end_of(result) {
            (_, Exit::End) => None,
            (barrier, _) if code.is_plain_barrier(barrier) => Some(barrier + 1),
            _ => break result,
        };
        let steps = (context.total + context.steps) / groups;
        m.compiled_steps += steps;
        // Each warp counts the barrier or the end, too.
        m.steps += steps + warps.len() as u64;
        let Some(next) = next else {
            m.context = Some(context);
            return PhaseEnd::End;
        };
        let found = compiled.entry_after(entry, next);
        let Some(found) = found.filter(|_| m.steps < end && !m.has_freed_much()) else {
            m.context = Some(context);
            return PhaseEnd::Barrier(next);
        };
        (at, entry) = (next, found);
        begin(&mut context, compiled, share);
    };
    // The group that has ended at another instruction belongs to this warp.
    let apart = context.warp(bases.as_ptr());
    let ended = apart as u64 * groups + context.group;
    let steps = context.total / ended.max(1);
    for (i, warp) in warps.iter_mut().enumerate() {
        warp.be_ready_at(frames, block, at);
        if i < apart {
            warp.group_ends = Some(GroupEnds::same(context.expected, steps));
        }
    }
    if let Some(warp) = warps.get_mut(apart) {
        // Groups of this warp that have ended before have run as many instructions as those of the warps before it.
        let mut ends = match context.group {
            0 => GroupEnds::default(),
            _ => GroupEnds::same(context.expected, steps),
        };
        ends.add_counts(&context, compiled);
        ends.add(m, &mut context, compiled, result);
        let next = context.group as usize + 1;
        run_each(
            &mut context,
            m,
            frames,
            code,
            (compiled, entry),
            block,
            warp,
            next,
            &mut ends,
        );
        warp.group_ends = Some(ends);
    }
    m.context = Some(context);
    PhaseEnd::Apart
}
