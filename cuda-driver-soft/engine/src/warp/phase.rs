//! Runs all threads of a block in compiled code, from barrier to barrier.
//!
//! As long as all groups of lanes end at the same barrier or at the end of the kernel, the state of the warps is not
//! updated: the warps are *behind*. A warp of which a group ends elsewhere continues on its own. If it comes to the same place as the others, it
//! is behind again, and the warps after it follow. Otherwise each warp continues on its own from where its groups have
//! ended.

use super::compiled::{GroupEnds, call, context, end_of, run_each};
use super::frame::{Frames, MOST_WARPS, WarpPosition};
use super::{Pause, Split, Warp};
use crate::code::action::Action;
use crate::code::compiled::{Compiled, Exit};
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::lanes::{FULL, LANES};

/// Number of barriers of a block.
const BARRIERS: u32 = 16;

/// The end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All threads have exited.
    End,
    /// All threads have passed a barrier, and are at this instruction. Most warps have run on their own if the second
    /// value is true.
    Barrier(u32, bool),
    /// Each warp continues on its own.
    Apart,
}

impl Warp {
    /// Prepares a finished warp for another block that begins in compiled code.
    #[inline]
    pub(crate) fn begin_later(&mut self, frames: &mut Frames<'_>) {
        self.is_behind = true;
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

    /// Returns the end of compiled code that fits the pause of a warp: its lanes are where compiled code would have left
    /// them. `None` if there is none.
    fn place_of_pause(&mut self, frames: &Frames<'_>, code: &Code, compiled: &Compiled, pause: &Pause) -> Option<u64> {
        let (at, exit) = match pause {
            Pause::Done => (compiled.end?, Exit::End),
            Pause::Barrier => {
                let [
                    Split {
                        frame: 0,
                        pc,
                        mask: FULL,
                        ..
                    },
                ] = *self.ready.as_slice()
                else {
                    return None;
                };
                let at = pc.checked_sub(1).filter(|at| is_plain(code, *at))?;
                let alone = self.parked.is_empty() && self.order.is_none();
                (alone && self.compiled_entry(frames, 0, pc).is_some()).then_some((at, Exit::Barrier))?
            }
            Pause::Share | Pause::Fault { .. } => return None,
        };
        Some(u64::from(at) | (exit as u64) << 32)
    }

    /// Makes a warp one that only compiled code has run.
    fn be_behind(&mut self) {
        self.ready.clear();
        (self.is_behind, self.trusted) = (true, None);
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

/// Runs all threads of a block from instruction `at` on, which all of them have reached. Each group may take `share`
/// backward jumps.
pub(crate) fn run(
    warps: &mut [Warp],
    m: &mut Machine<'_>,
    frames: &mut Frames<'_>,
    block: ([u32; 3], u64),
    at: u32,
    share: i64,
) -> Phase {
    let together = frames.compiled().zip(frames.kernel());
    let entered = together.and_then(|(compiled, code)| Some((compiled, code, compiled.entry(at)?)));
    let Some((compiled, code, entry)) = entered else {
        separate(warps, frames, block, at);
        return Phase::Apart;
    };
    let groups = (LANES / compiled.lanes as usize) as u64;
    let from = compiled.code.address().wrapping_add(entry.offset);
    // The warps before it have ended at the same place.
    let (mut first, mut expected) = (0, 0);
    let mut alone = 0;
    while first < warps.len() {
        m.switch_to(code.id, code.caches);
        let mut bases = [std::ptr::null_mut(); MOST_WARPS];
        for (base, warp) in bases.iter_mut().zip(&mut warps[first..]) {
            let Some(frame) = warp.frames[0].as_mut() else {
                return Phase::Apart;
            };
            *base = frame.file.regs().frame();
            m.spaces.local_end = frame.local_fixed;
        }
        let rest = &mut warps[first..];
        let mut context = context(m, frames, code, compiled, block, share);
        (context.left, context.expected) = (groups * rest.len() as u64, expected);
        (context.frame, context.halves, context.frames) = (bases[0], bases[0], bases.as_ptr());
        let result = call(&mut context, m, frames, code, compiled, from, block, rest);
        if context.left == 0 {
            (context.warp, context.total) = (rest.len() as u64, context.total + context.steps);
        }
        expected = context.expected;
        let parted = first + context.warp as usize;
        // Of the warps that have ended at that place. Each of them counts the barrier or the end, too.
        let ended = context.warp * groups + context.group * u64::from(context.left > 0);
        let steps = context.total / ended.max(1);
        m.steps += (steps + 1) * context.warp;
        m.compiled_steps += steps * context.warp;
        first = parted + 1;
        let Some(warp) = warps.get_mut(parted) else { break };
        // A group of this warp has ended elsewhere.
        let mut ends = GroupEnds::same(expected, steps);
        ends.add_counts(&context, compiled);
        ends.add(m, &context, compiled, result);
        warp.be_ready_at(frames, block, at);
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
        let pause = warp.run(m, frames, share);
        match warp.place_of_pause(frames, code, compiled, &pause) {
            Some(place) if expected == 0 || place == expected => {
                expected = place;
                alone += 1;
                warp.be_behind();
            }
            _ => {
                warp.pause = Some(pause);
                be_apart(warps, m, frames, block, at, (parted, expected));
                return Phase::Apart;
            }
        }
    }
    match end_of(expected) {
        (_, Exit::End) => Phase::End,
        (at, _) if is_plain(code, at) => Phase::Barrier(at + 1, 2 * alone > warps.len()),
        _ => {
            let count = warps.len();
            be_apart(warps, m, frames, block, at, (count, expected));
            Phase::Apart
        }
    }
}

/// Lets each warp continue on its own at an instruction that all of them have reached.
pub(crate) fn separate(warps: &mut [Warp], frames: &Frames<'_>, block: ([u32; 3], u64), at: u32) {
    warps.iter_mut().for_each(|warp| warp.be_ready_at(frames, block, at));
}

/// Lets each warp continue on its own: those before warp `parted` from where they have ended, and those behind it from
/// the begin.
fn be_apart(
    warps: &mut [Warp],
    m: &mut Machine<'_>,
    frames: &Frames<'_>,
    block: ([u32; 3], u64),
    at: u32,
    (parted, expected): (usize, u64),
) {
    for (number, warp) in warps.iter_mut().enumerate() {
        if number != parted {
            warp.be_ready_at(frames, block, at);
        }
        if number < parted {
            warp.group_ends = Some(GroupEnds::same(expected, 0));
            // It counts the barrier or the end again.
            m.steps -= 1;
        }
    }
}

/// Returns true if an instruction is a plain barrier.
fn is_plain(code: &Code, at: u32) -> bool {
    let action = code
        .insts
        .get(at as usize)
        .and_then(|inst| code.actions.get(inst.aux as usize));
    matches!(action, Some(Action::Barrier(barrier)) if barrier.plain().is_some_and(|id| id < BARRIERS))
}
