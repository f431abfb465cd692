//! Handlers of branches, guards, traps, fences, and the check that a launch has clusters. The handlers of calls,
//! returns, barriers and other instructions that the scheduler (`warp`) runs only leave the instruction to it.

use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::Regs;
use crate::fault::FaultKind;
use crate::lanes::Mask;

/// Returns the handlers of `bra` to the instruction `aux`.
pub(crate) fn jump() -> Handlers {
    Rare::compile::<Jump>()
}

/// Returns the handlers of `@p bra` to the instruction `aux`. The predicate is `a`; `mods` is 1 for `@!p`.
pub(crate) fn branch() -> Handlers {
    Rare::compile::<Branch>()
}

/// Returns the handlers of the guard `@p` of the next instruction, which is not a `bra`. Operands are as for
/// [`branch`].
pub(crate) fn guard() -> Handlers {
    Rare::compile::<Guard>()
}

/// Returns the handlers of `trap`.
pub(crate) fn trap() -> Handlers {
    Rare::compile::<Trap>()
}

/// Returns the handlers of an instruction without effect. Only code that is decoded for observers has such
/// instructions.
pub(crate) fn nop() -> Handlers {
    Rare::compile::<Nop>()
}

/// Returns the handlers of `fence` and `membar`.
pub(crate) fn fence() -> Handlers {
    Rare::compile::<Fence>()
}

/// Returns the handlers of a check before instructions that only kernels launched with clusters may use.
pub(crate) fn wants_cluster() -> Handlers {
    Rare::compile::<WantsCluster>()
}

/// Returns the handlers of an instruction that the scheduler runs.
pub(crate) fn act() -> Handlers {
    Rare::compile::<Act>()
}

/// Returns the handlers of a plain `bar.sync`, which the scheduler runs: for all threads of the block, with a constant
/// number, which is `mods`.
pub(crate) fn barrier() -> Handlers {
    Rare::compile::<Barrier>()
}

/// Returns the handlers of the end of a kernel, which the scheduler runs.
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

/// Returns the lanes for which the guard of the instruction is true.
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
        if taken == mask { Flow::Jump } else { Flow::Diverge }
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

struct Nop;

impl Body for Nop {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        _regs: Regs<'_>,
        _inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        Flow::Next
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
