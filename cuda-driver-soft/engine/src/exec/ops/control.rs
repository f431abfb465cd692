//! Branches and what else decides where a warp goes on; calls, returns and barriers are the scheduler's (`warp`).

use crate::exec::code::{Flow, Inst};
use crate::exec::fault::FaultKind;
use crate::exec::isa::{Body, Handlers, Rare, Worth};
use crate::exec::machine::Machine;
use crate::exec::registers::Regs;
use crate::lanes::Mask;

/// `bra`: to the instruction `aux`.
pub(crate) fn jump() -> Handlers {
    Rare::compile::<Jump>()
}

/// `@p bra`: `mods` is 1 for `@!p`.
pub(crate) fn branch() -> Handlers {
    Rare::compile::<Branch>()
}

/// `@p bra` in the code for converged warps.
pub(crate) fn branch_together() -> Handlers {
    Rare::compile::<BranchTogether>()
}

/// Goes to the instruction `aux`; the last `mods` instructions, itself among them, count for nothing.
pub(crate) fn begin() -> Handlers {
    Rare::compile::<Begin>()
}

/// What the code for converged warps leaves to that for any lanes.
pub(crate) fn leave() -> Handlers {
    Rare::compile::<Leave>()
}

/// `@p` before any other instruction, which follows.
pub(crate) fn guard() -> Handlers {
    Rare::compile::<Guard>()
}

/// `trap`
pub(crate) fn trap() -> Handlers {
    Rare::compile::<Trap>()
}

/// `fence`, `membar`
pub(crate) fn fence() -> Handlers {
    Rare::compile::<Fence>()
}

/// Goes before instructions that only launches of clusters may use.
pub(crate) fn wants_cluster() -> Handlers {
    Rare::compile::<WantsCluster>()
}

/// What the scheduler does.
pub(crate) fn act() -> Handlers {
    Rare::compile::<Act>()
}

/// The same, at a barrier for all threads of the block: `mods` is its number.
pub(crate) fn barrier() -> Handlers {
    Rare::compile::<Barrier>()
}

/// The same, at the end of a kernel.
pub(crate) fn end() -> Handlers {
    Rare::compile::<End>()
}

struct Jump;

impl Body for Jump {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        _regs: Regs<'_>,
        inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        m.target = inst.aux;
        Flow::Jump
    }
}

/// The lanes for which the guard of the instruction holds.
///
/// # Safety
/// See [`Regs`]; `a` is a predicate.
#[inline(always)]
unsafe fn holds(regs: Regs<'_>, inst: &Inst, mask: Mask) -> Mask {
    // SAFETY: as promised by the caller.
    let p = unsafe { regs.mask(inst.a) };
    (if inst.mods != 0 { !p } else { p }) & mask
}

struct Branch;

impl Body for Branch {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as promised by the caller; the decoder made `a` a predicate.
        let taken = unsafe { holds(regs, inst, mask) };
        if taken == 0 {
            return Flow::Next;
        }
        m.target = inst.aux;
        m.taken = taken;
        if taken == mask {
            Flow::Jump
        } else {
            Flow::Diverge
        }
    }
}

struct BranchTogether;

impl Body for BranchTogether {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as promised by the caller; the decoder made `a` a predicate.
        let taken = unsafe { holds(regs, inst, mask) };
        if taken == 0 {
            return Flow::Next;
        }
        if taken != mask {
            return Flow::Leave;
        }
        m.target = inst.aux;
        Flow::Jump
    }
}

struct Begin;

impl Body for Begin {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        _regs: Regs<'_>,
        inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        // Which blocks find registers to use again depends on the host's threads, and steps must not.
        m.steps = m.steps.wrapping_sub(u64::from(inst.mods));
        m.target = inst.aux;
        Flow::Jump
    }
}

struct Leave;

impl Body for Leave {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        Flow::Leave
    }
}

struct Guard;

impl Body for Guard {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as promised by the caller; the decoder made `a` a predicate.
        let taken = unsafe { holds(regs, inst, mask) };
        if taken == mask {
            return Flow::Next;
        }
        m.taken = taken;
        if taken == 0 { Flow::Skip } else { Flow::Narrow }
    }
}

struct Trap;

impl Body for Trap {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        mask: Mask,
    ) -> Flow {
        m.fault = Some((FaultKind::Trap, mask.trailing_zeros() as usize));
        Flow::Fault
    }
}

struct WantsCluster;

impl Body for WantsCluster {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        mask: Mask,
    ) -> Flow {
        if m.clusters || mask == 0 {
            return Flow::Next;
        }
        m.fault = Some((FaultKind::NoCluster, mask.trailing_zeros() as usize));
        Flow::Fault
    }
}

struct Act;

impl Body for Act {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        Flow::Act
    }
}

struct Barrier;

impl Body for Barrier {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        _regs: Regs<'_>,
        inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        m.target = inst.mods;
        Flow::Barrier
    }
}

struct End;

impl Body for End {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        Flow::End
    }
}

struct Fence;

impl Body for Fence {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        Flow::Next
    }
}
