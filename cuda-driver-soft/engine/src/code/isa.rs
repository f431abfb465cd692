//! The instruction sets that handlers are compiled for, and the choice between them.

#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// An instruction set that handlers are compiled for. Results are the same bits in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// The instructions that every CPU of the target has.
    Baseline,
    /// x86-64 with `avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt`.
    Wide,
}

impl Isa {
    /// Returns the fastest instruction set of this CPU. `CUDA_SOFT_ISA=baseline` in the environment selects
    /// [`Baseline`](Self::Baseline).
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

    /// Returns all instruction sets of this CPU.
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
