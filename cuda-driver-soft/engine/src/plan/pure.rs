//! Registers that are functions of the kernel's parameters and of the indexes of thread and block. Instead of keeping
//! such a register, code may compute it again.

use super::class::Class;
use super::defined::{self, Use};
use super::source::SourceFunction;
use super::steps::{Layout, Step};
use ptx::ir::{Inst, Op, Operand, Reg, Special};

/// The values on which a pure register depends, from the fewest to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DependsOn {
    /// Values that are the same for the whole launch: constants, parameters, the shape of grid and block, and others.
    Launch,
    /// Also values that are the same for a block, such as its index.
    Block,
    /// Also other values, such as the thread's index.
    Thread,
}

/// The pure registers of a function.
pub(crate) struct Pure {
    of: Vec<Option<(DependsOn, usize)>>,
}

impl Pure {
    /// Finds the pure registers.
    pub(super) fn of(source: &SourceFunction<'_>, layout: &Layout<'_>, uses: &[Use]) -> Self {
        let writes = defined::write_counts(source.body);
        let mut pure = Pure {
            of: vec![None; writes.len()],
        };
        // The only write of a register usually comes earlier in the order than its reads. If it does not, the next
        // round finds the registers that depend on it.
        let mut changed = true;
        while changed {
            changed = false;
            for step in layout.order.iter().flat_map(|block| layout.steps_of(*block)) {
                let Step::Plain(inst) = layout.steps[step] else {
                    continue;
                };
                let [Some(reg)] = inst.dsts[..] else { continue };
                let at = reg.0 as usize;
                if pure.of[at].is_none() && writes[at] == 1 && uses[at] == Use::Defined {
                    let found = pure.result(source, inst).map(|depends| (depends, step));
                    changed |= found.is_some();
                    pure.of[at] = found;
                }
            }
        }
        pure
    }

    /// Returns the values on which a register depends; `None` if it is not pure.
    pub(crate) fn depends_on(&self, reg: Reg) -> Option<DependsOn> {
        self.of[reg.0 as usize].map(|(depends, _)| depends)
    }

    /// Returns the only step that writes a pure register. All its source registers are pure.
    pub(crate) fn step(&self, reg: Reg) -> Option<usize> {
        self.of[reg.0 as usize].map(|(_, step)| step)
    }

    /// Returns the steps that compute these registers again, in an order in which each follows the steps whose results
    /// it reads. Registers that are not pure are left out.
    pub(crate) fn steps_for(&self, layout: &Layout<'_>, registers: impl IntoIterator<Item = Reg>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut entered = vec![false; self.of.len()];
        let mut tasks: Vec<(Reg, bool)> = registers.into_iter().map(|reg| (reg, false)).collect();
        tasks.reverse();
        while let Some((reg, sources_done)) = tasks.pop() {
            let Some(step) = self.step(reg) else { continue };
            if sources_done {
                found.push(step);
            } else if !std::mem::replace(&mut entered[reg.0 as usize], true) {
                tasks.push((reg, true));
                defined::reads(&layout.steps[step], |source| tasks.push((source, false)));
            }
        }
        found
    }

    fn result(&self, source: &SourceFunction<'_>, inst: &Inst) -> Option<DependsOn> {
        if inst.guard.is_some() {
            return None;
        }
        match &inst.op {
            Op::Ld(m) => source
                .parameter(inst, m)
                .filter(|_| m.vec == 1)
                .map(|_| DependsOn::Launch),
            _ if Class::of_inst(inst) == Class::Computed => {
                let mut sources = inst.srcs.iter().map(|operand| match operand {
                    Operand::Reg(reg) | Operand::NotReg(reg) => self.depends_on(*reg),
                    Operand::Special(special) => Some(of_special(*special)),
                    Operand::Imm(_) | Operand::Address(_) => Some(DependsOn::Launch),
                });
                sources.try_fold(DependsOn::Launch, |all, one| one.map(|one| all.max(one)))
            }
            _ => None,
        }
    }
}

fn of_special(special: Special) -> DependsOn {
    use Special::*;
    match special {
        Ntid(_)
        | Nctaid(_)
        | Nwarpid
        | Nsmid
        | Gridid
        | IsExplicitCluster
        | Nclusterid(_)
        | ClusterNctaid(_)
        | ClusterNctarank
        | Envreg(_)
        | TotalSmemSize
        | AggrSmemSize
        | DynamicSmemSize
        | ReservedSmemOffset(_)
        | CurrentGraphExec => DependsOn::Launch,
        Ctaid(_) | Smid | Clusterid(_) | ClusterCtaid(_) | ClusterCtarank => DependsOn::Block,
        _ => DependsOn::Thread,
    }
}
