//! The interpreter loop: runs instructions until the scheduler must act.

use crate::code::function::Code;
use crate::code::inst::Flow;
use crate::code::machine::Machine;
use crate::code::registers::Regs;
use crate::code::watch::{At, SiteFlags};
use crate::lanes::{self, Mask};

/// The reason why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The loop reached the instruction to stop at, or a later one.
    Stop,
    /// The loop reached a divergent branch: the lanes of [`Machine::taken`] go to [`Machine::target`].
    Diverge,
    /// The loop reached an instruction that the scheduler runs.
    Act,
    /// The loop reached barrier [`Machine::target`] for all threads of the block.
    Barrier,
    /// The loop reached the end of a kernel.
    End,
    /// An instruction raised a fault.
    Fault,
    /// A backward jump used up [`Machine::quantum`].
    Quantum,
}

/// Runs instructions from `pc` until an [`Event`]. Returns the index of the instruction reached, and the event.
///
/// # Safety
/// `regs` are the registers of a frame of this code, and the code was decoded for an instruction set of this CPU.
pub(crate) unsafe fn run(
    m: &mut Machine<'_>,
    code: &Code,
    regs: Regs<'_>,
    pc: u32,
    mask: Mask,
    stop: u32,
) -> (u32, Event) {
    if m.watch.is_some() {
        // SAFETY: the caller upholds the contract.
        return unsafe { run_observed(m, code, regs, pc, mask, stop) };
    }
    if mask == lanes::FULL {
        // SAFETY: the caller upholds the contract.
        unsafe { run_lanes::<true, false>(m, code, regs, pc, mask, stop) }
    } else {
        // SAFETY: the caller upholds the contract.
        unsafe { run_lanes::<false, false>(m, code, regs, pc, mask, stop) }
    }
}

/// Runs instructions of an observed launch like [`run`].
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
unsafe fn run_observed(
    m: &mut Machine<'_>,
    code: &Code,
    regs: Regs<'_>,
    pc: u32,
    mask: Mask,
    stop: u32,
) -> (u32, Event) {
    if mask == lanes::FULL {
        // SAFETY: the caller upholds the contract.
        unsafe { run_lanes::<true, true>(m, code, regs, pc, mask, stop) }
    } else {
        // SAFETY: the caller upholds the contract.
        unsafe { run_lanes::<false, true>(m, code, regs, pc, mask, stop) }
    }
}

/// Runs instructions like [`run`]; `FULL` is true if all lanes are active, `OBSERVED` if the launch is observed.
///
/// # Safety
/// As for [`run`].
unsafe fn run_lanes<const FULL: bool, const OBSERVED: bool>(
    m: &mut Machine<'_>,
    code: &Code,
    regs: Regs<'_>,
    pc: u32,
    mask: Mask,
    stop: u32,
) -> (u32, Event) {
    let mut watch = if OBSERVED { m.watch.take() } else { None };
    let mut counts = watch.as_mut().map(|watch| watch.take_counts(code)).unwrap_or_default();
    let (active, mut issued) = (if OBSERVED { mask.count_ones() } else { 0 }, 0);
    let (warp, live) = if OBSERVED { (m.warp, m.live) } else { (0, 0) };
    // SAFETY: `regs` belong to the code, by the caller's contract.
    let at = |pc: usize, mask: Mask| unsafe { At::new(code, regs, pc, warp, mask, live) };
    let insts = &code.insts[..code.insts.len().min(stop as usize)];
    let mut pc = pc as usize;
    let mut since = pc;
    let event = loop {
        let Some(inst) = insts.get(pc) else {
            break Event::Stop;
        };
        let handler = if FULL { inst.full } else { inst.masked };
        let mut flags = SiteFlags::default();
        if OBSERVED && let Some(count) = counts.get_mut(pc) {
            flags = count.run::<FULL>(active);
            issued += flags.issues();
            if flags.is_wanted()
                && let Some(watch) = &mut watch
            {
                watch.before(&at(pc, mask));
            }
        }
        // SAFETY: the instruction belongs to the frame's code, by the caller's contract.
        let flow = unsafe { handler(m, regs, inst, mask) };
        if flow == Flow::Next {
            if OBSERVED
                && flags.syncs()
                && let Some(watch) = &mut watch
            {
                watch.after(&at(pc, mask));
            }
            pc += 1;
            continue;
        }
        // Without this hint, the compiler uses a jump table for each instruction.
        std::hint::cold_path();
        match flow {
            Flow::Next => pc += 1,
            Flow::Jump => {
                m.steps = m.steps.wrapping_add((pc - since + 1) as u64);
                let target = m.target as usize;
                let back = target <= pc;
                pc = target;
                since = target;
                if back {
                    m.quantum -= 1;
                    if m.quantum <= 0 {
                        break Event::Quantum;
                    }
                }
            }
            Flow::Skip => pc += 2,
            Flow::Narrow => {
                let Some(next) = insts.get(pc + 1) else {
                    break Event::Stop;
                };
                if OBSERVED && let Some(count) = counts.get_mut(pc + 1) {
                    let flags = count.run::<false>(m.taken.count_ones());
                    issued += flags.issues();
                    if flags.is_wanted()
                        && let Some(watch) = &mut watch
                    {
                        watch.before(&at(pc + 1, m.taken));
                    }
                }
                // SAFETY: as above.
                match unsafe { (next.masked)(m, regs, next, m.taken) } {
                    Flow::Fault => {
                        pc += 1;
                        break Event::Fault;
                    }
                    _ => pc += 2,
                }
            }
            Flow::Diverge => {
                if OBSERVED && let Some(watch) = &mut watch {
                    watch.each(|o| o.diverge(&at(pc, mask), m.taken));
                }
                break Event::Diverge;
            }
            Flow::Act => break Event::Act,
            Flow::Barrier => break Event::Barrier,
            Flow::End => break Event::End,
            Flow::Fault => break Event::Fault,
        }
    };
    m.steps += pc.saturating_sub(since) as u64;
    if OBSERVED {
        if let Some(watch) = &mut watch {
            watch.give_counts(code, counts, issued);
        }
        m.watch = watch;
    }
    (pc as u32, event)
}
