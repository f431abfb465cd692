//! Finds the registers that a thread may read before it writes them. They must be zero when a frame begins, so that
//! results do not depend on earlier frames that used the same memory.

use super::class::is_scheduled;
use super::set::Set;
use super::steps::{Layout, Step};
use ptx::ir::{Body, CallSlot, Formal, Inst, Op, Operand, Reg};

/// The use of a register in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// No reachable instruction names the register.
    Unused,
    /// The register is always written before it is read.
    Defined,
    /// The register may be read before it is written.
    PerhapsUndefined,
}

/// Returns how each register is used.
pub(crate) fn uses(body: &Body, layout: &Layout<'_>) -> Vec<Use> {
    let Layout {
        steps, blocks, order, ..
    } = layout;
    let n = body.registers.len();
    let written: Vec<Set> = blocks
        .iter()
        .map(|block| {
            let mut set = Set::empty(n);
            for step in &steps[block.start..block.end] {
                writes(step, |reg| set.insert(reg));
            }
            set
        })
        .collect();
    // Registers that are written on every path to a block.
    let mut before = vec![Set::all(n); blocks.len()];
    before[0] = Set::empty(n);
    for formal in &body.params {
        if let Formal::Reg(reg) = formal {
            before[0].insert(*reg);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for block in order {
            let mut after = before[*block].clone();
            after.union(&written[*block]);
            for next in &blocks[*block].successors {
                changed |= before[*next].intersect(&after);
            }
        }
    }
    let mut uses = vec![Use::Unused; n];
    for block in order {
        let mut defined = before[*block].clone();
        for step in &steps[blocks[*block].start..blocks[*block].end] {
            reads(step, |reg| note_read(&mut uses, reg, &defined));
            if let Step::Plain(Inst { op: Op::Ret { .. }, .. }) = step {
                note_results(body, &mut uses, &defined);
            }
            // Registers written under a guard are used too.
            all_writes(step, |reg| {
                let at = &mut uses[reg.0 as usize];
                if *at == Use::Unused {
                    *at = Use::Defined;
                }
            });
            writes(step, |reg| defined.insert(reg));
        }
        // Assume that the function may end after any block. At worst, a result is zeroed without need.
        note_results(body, &mut uses, &defined);
    }
    for formal in &body.params {
        if let Formal::Reg(reg) = formal
            && uses[reg.0 as usize] == Use::Unused
        {
            uses[reg.0 as usize] = Use::Defined;
        }
    }
    uses
}

fn note_read(uses: &mut [Use], reg: Reg, defined: &Set) {
    let at = &mut uses[reg.0 as usize];
    if !defined.has(reg) {
        *at = Use::PerhapsUndefined;
    } else if *at == Use::Unused {
        *at = Use::Defined;
    }
}

fn note_results(body: &Body, uses: &mut [Use], defined: &Set) {
    for formal in &body.returns {
        if let Formal::Reg(reg) = formal {
            note_read(uses, *reg, defined);
        }
    }
}

/// Calls `f` for each register that a step reads.
pub(crate) fn reads(step: &Step<'_>, mut f: impl FnMut(Reg)) {
    match step {
        Step::Branch { guard, .. } => guard.iter().for_each(|(reg, _)| f(*reg)),
        Step::Plain(inst) => {
            inst.guard.iter().for_each(|(reg, _)| f(*reg));
            for operand in &inst.srcs {
                if let Operand::Reg(reg) | Operand::NotReg(reg) = operand {
                    f(*reg);
                }
            }
            if let Op::Call { args, .. } = &inst.op {
                for arg in args {
                    if let CallSlot::Value(Operand::Reg(reg) | Operand::NotReg(reg)) = arg {
                        f(*reg);
                    }
                }
            }
        }
    }
}

/// Calls `f` for each register that a step always writes.
pub(crate) fn writes(step: &Step<'_>, f: impl FnMut(Reg)) {
    if let Step::Plain(inst) = step
        // The guard of a scheduled instruction is in the branch around it.
        && (inst.guard.is_none() || is_scheduled(&inst.op))
    {
        all_writes(step, f);
    }
}

fn all_writes(step: &Step<'_>, f: impl FnMut(Reg)) {
    if let Step::Plain(inst) = step {
        writes_of(inst, f);
    }
}

/// Returns the number of instructions that write each register. For a parameter, the call counts as one more.
pub(crate) fn write_counts(body: &Body) -> Vec<u32> {
    let mut writes = vec![0; body.registers.len()];
    for formal in &body.params {
        if let Formal::Reg(reg) = formal {
            writes[reg.0 as usize] += 1;
        }
    }
    for inst in &body.insts {
        writes_of(inst, |reg| writes[reg.0 as usize] += 1);
    }
    writes
}

/// Calls `f` for each register that an instruction may write.
pub(crate) fn writes_of(inst: &Inst, mut f: impl FnMut(Reg)) {
    inst.dsts.iter().flatten().for_each(|reg| f(*reg));
    if let Op::Call { rets, .. } = &inst.op {
        for ret in rets {
            if let CallSlot::Value(Operand::Reg(reg)) = ret {
                f(*reg);
            }
        }
    }
}
