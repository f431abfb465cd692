//! The two instruction sets that every handler is compiled for, and the choice between them.
//!
//! A plain build for x86-64 has neither AVX nor a fused multiply-add; with them most handlers are two to twenty times
//! faster. So each [`Body`] is compiled twice, and a program is decoded for what the CPU has. Both give the same bits.

use crate::code::machine::Machine;
use crate::code::registers::Regs;
use crate::code::{Flow, Inst};
use crate::lanes::Mask;
use std::sync::OnceLock;

/// An instruction set that handlers are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// What every CPU of the target has.
    Baseline,
    /// x86-64 with `avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt`.
    Wide,
}

impl Isa {
    /// The better one of those that this CPU has. `CUDA_SOFT_ISA=baseline` in the environment forces the other.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let forced = host::environment::baseline_isa();
            if !forced && has_wide() {
                Isa::Wide
            } else {
                Isa::Baseline
            }
        })
    }

    /// All that this CPU has.
    pub fn available() -> impl Iterator<Item = Isa> {
        [Isa::Baseline, Isa::Wide]
            .into_iter()
            .filter(|isa| *isa == Isa::Baseline || has_wide())
    }
}

#[cfg(target_arch = "x86_64")]
fn has_wide() -> bool {
    macro_rules! all {
        ($($feature:tt)*) => { true $(&& std::arch::is_x86_feature_detected!($feature))* };
    }
    all!("avx2" "fma" "bmi1" "bmi2" "f16c" "lzcnt" "popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide() -> bool {
    false
}

/// What runs one decoded instruction.
///
/// # Safety
/// The instruction belongs to the code whose frame `Regs` is the registers of, and the CPU has the instruction set that
/// the handler is compiled for.
pub(crate) type Handler = unsafe fn(&mut Machine<'_>, Regs<'_>, &Inst, Mask) -> Flow;

/// The handlers of an instruction for one instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// For all 32 lanes.
    pub(crate) full: Handler,
    /// For any lanes.
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
    /// Those for an instruction set.
    pub(crate) fn entry(&self, isa: Isa) -> Entry {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Wide => self.wide,
            _ => self.baseline,
        }
    }
}

/// What an instruction does, written once for all instruction sets and masks.
pub(crate) trait Body {
    /// Runs the instruction for the lanes of the mask; with `FULL` those are all. `FUSED`: the CPU has a fused
    /// multiply-add.
    ///
    /// # Safety
    /// As for [`Regs`]: the instruction's slots are slots of the frame that `regs` stands for.
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow;
}

/// How much code an instruction is worth: what is compiled more often runs faster, but takes longer to build.
pub(crate) trait Worth {
    /// Compiles a body.
    fn compile<B: Body>() -> Handlers;
}

/// What programs are full of: for each instruction set, and for full masks apart.
pub(crate) struct Hot;

/// What is common: for each instruction set.
pub(crate) struct Common;

/// What is rare, or slow anyway: once.
pub(crate) struct Rare;

impl Worth for Hot {
    fn compile<B: Body>() -> Handlers {
        Handlers {
            // Where there is a wider set, hardly a machine lacks it.
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

impl Worth for Common {
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

impl Worth for Rare {
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

unsafe fn baseline<B: Body, const FULL: bool>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) -> Flow {
    const FUSED: bool = crate::semantics::float::BASELINE_FUSED;
    // SAFETY: as promised by the caller.
    unsafe { B::run::<FULL, FUSED>(m, regs, inst, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
unsafe fn wide<B: Body, const FULL: bool>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) -> Flow {
    // SAFETY: as promised by the caller.
    unsafe { B::run::<FULL, true>(m, regs, inst, mask) }
}
