//! Compiles each handler for the instruction sets of [`Isa`].
//!
//! A plain build for x86-64 has neither AVX nor a fused multiply-add; with them most handlers are two to twenty times
//! faster. Each [`Body`] that is not [`Rare`] is therefore compiled once per instruction set, and functions are decoded
//! for the CPU that runs them.

use super::inst::{Flow, Handler, Inst};
use super::isa::Isa;
use super::machine::Machine;
use super::registers::Regs;
use crate::lanes::Mask;
use crate::semantics::float::BASELINE_FUSED;

/// The handlers of an instruction, compiled for one instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The handler for all 32 lanes.
    pub(crate) full: Handler,
    /// The handler for any set of lanes.
    pub(crate) masked: Handler,
}

/// The handlers of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    baseline: Entry,
    #[cfg(target_arch = "x86_64")]
    wide: Entry,
}

impl Handlers {
    /// Returns the handlers for an instruction set.
    pub(crate) fn entry(&self, isa: Isa) -> Entry {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Wide => self.wide,
            _ => self.baseline,
        }
    }
}

/// The implementation of an instruction, written once for all instruction sets and masks.
pub(crate) trait Body {
    /// Runs the instruction for the lanes of the mask. With `FULL` the mask has all lanes; with `FUSED` the CPU has a
    /// fused multiply-add.
    ///
    /// # Safety
    /// As for [`Regs`]: the instruction's slots are slots of the frame of `regs`.
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow;
}

/// The number of copies of a handler to compile. More copies run faster but build slower.
pub(crate) trait Copies {
    /// Compiles a body into its handlers.
    fn compile<B: Body>() -> Handlers;
}

/// Hot instructions: one copy per instruction set, and in the best set a separate one for full masks.
pub(crate) struct Hot;

/// Common instructions: one copy per instruction set.
pub(crate) struct Common;

/// Rare or slow instructions: a single copy.
pub(crate) struct Rare;

impl Copies for Hot {
    fn compile<B: Body>() -> Handlers {
        Handlers {
            // Nearly every x86-64 CPU has the wide set, so the baseline need not be fast.
            #[cfg(target_arch = "x86_64")]
            baseline: Entry {
                full: baseline::<B, false>,
                masked: baseline::<B, false>,
            },
            #[cfg(not(target_arch = "x86_64"))]
            baseline: Entry {
                full: baseline::<B, true>,
                masked: baseline::<B, false>,
            },
            #[cfg(target_arch = "x86_64")]
            wide: Entry {
                full: wide::<B, true>,
                masked: wide::<B, false>,
            },
        }
    }
}

impl Copies for Common {
    fn compile<B: Body>() -> Handlers {
        Handlers {
            baseline: Entry {
                full: baseline::<B, false>,
                masked: baseline::<B, false>,
            },
            #[cfg(target_arch = "x86_64")]
            wide: Entry {
                full: wide::<B, false>,
                masked: wide::<B, false>,
            },
        }
    }
}

impl Copies for Rare {
    fn compile<B: Body>() -> Handlers {
        let entry = Entry {
            full: baseline::<B, false>,
            masked: baseline::<B, false>,
        };
        Handlers {
            baseline: entry,
            #[cfg(target_arch = "x86_64")]
            wide: entry,
        }
    }
}

unsafe fn baseline<B: Body, const FULL: bool>(m: &mut Machine<'_>, regs: Regs<'_>, inst: &Inst, mask: Mask) -> Flow {
    // SAFETY: the caller upholds the contract of `Handler`.
    unsafe { B::run::<FULL, BASELINE_FUSED>(m, regs, inst, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
unsafe fn wide<B: Body, const FULL: bool>(m: &mut Machine<'_>, regs: Regs<'_>, inst: &Inst, mask: Mask) -> Flow {
    // SAFETY: the caller upholds the contract of `Handler`.
    unsafe { B::run::<FULL, true>(m, regs, inst, mask) }
}
