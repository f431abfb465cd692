//! Finds the registers that a thread may read before it writes them. They must be zero when a frame begins, so that
//! results do not depend on earlier frames that used the same memory.

use super::class::is_scheduled;
use super::liveness;
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

/// Returns how each register is used. In a very large function, all registers that a block reads before it writes them
/// may be undefined, except parameters.
pub(crate) fn uses(body: &Body, layout: &Layout<'_>) -> Vec<Use> {
    let mut uses = vec![Use::Unused; body.registers.len()];
    for block in &layout.order {
        for step in &layout.steps[layout.steps_of(*block)] {
            // Registers written under a guard are used too.
            reads(step, |reg| uses[reg.0 as usize] = Use::Defined);
            all_writes(step, |reg| uses[reg.0 as usize] = Use::Defined);
        }
    }
    for reg in registers(&body.params).chain(registers(&body.returns)) {
        uses[reg.0 as usize] = Use::Defined;
    }
    let results: Vec<Reg> = registers(&body.returns).collect();
    // Registers that no block reads before it writes them are always defined.
    let across = liveness::across(body, layout, &results);
    let undefined = match undefined(body, layout, &across, &results) {
        Some(set) => set.registers(),
        None => (0..across.len() as u32).map(Reg).collect(),
    };
    for number in undefined {
        uses[across[number.0 as usize].0 as usize] = Use::PerhapsUndefined;
    }
    // The caller writes the parameters.
    for reg in registers(&body.params) {
        uses[reg.0 as usize] = Use::Defined;
    }
    uses
}

/// Returns the registers of parameters or results.
fn registers(formals: &[Formal]) -> impl Iterator<Item = Reg> + '_ {
    formals.iter().filter_map(|formal| match formal {
        Formal::Reg(reg) => Some(*reg),
        Formal::Frame { .. } => None,
    })
}

/// Returns the registers that may be read before they are written, as indexes into `across`, or `None` if the function
/// is too large. `across` are the candidates, in ascending order.
fn undefined(body: &Body, layout: &Layout<'_>, across: &[Reg], results: &[Reg]) -> Option<Set> {
    let Layout {
        steps, blocks, order, ..
    } = layout;
    let n = across.len();
    if 2 * n.saturating_mul(blocks.len()) > liveness::MOST_BITS {
        return None;
    }
    let number = |reg: Reg| Some(Reg(across.binary_search(&reg).ok()? as u32));
    let insert = |set: &mut Set, reg| number(reg).into_iter().for_each(|number| set.insert(number));
    let written: Vec<Set> = blocks
        .iter()
        .map(|block| {
            let mut set = Set::empty(n);
            for step in &steps[block.start..block.end] {
                writes(step, |reg| insert(&mut set, reg));
            }
            set
        })
        .collect();
    // Registers that are written on every path to a block.
    let mut before = vec![Set::all(n); blocks.len()];
    before[0] = Set::empty(n);
    registers(&body.params).for_each(|reg| insert(&mut before[0], reg));
    let (mut changed, mut work) = (true, 0);
    while changed {
        changed = false;
        for block in order {
            let successors = &blocks[*block].successors;
            work += 1 + (1 + successors.len()) * (1 + written[*block].words());
            if work > liveness::MOST_STEPS {
                return None;
            }
            let mut after = before[*block].clone();
            after.union(&written[*block]);
            for next in successors {
                changed |= before[*next].intersect(&after);
            }
        }
    }
    let mut undefined = Set::empty(n);
    let note_read = |undefined: &mut Set, defined: &Set, reg| {
        if let Some(number) = number(reg)
            && !defined.has(number)
        {
            undefined.insert(number);
        }
    };
    for block in order {
        let mut defined = before[*block].clone();
        for step in &steps[blocks[*block].start..blocks[*block].end] {
            reads(step, |reg| note_read(&mut undefined, &defined, reg));
            if let Step::Plain(Inst { op: Op::Ret { .. }, .. }) = step {
                results.iter().for_each(|reg| note_read(&mut undefined, &defined, *reg));
            }
            writes(step, |reg| insert(&mut defined, reg));
        }
        // Assume that the function may end after any block. At worst, a result is zeroed without need.
        results.iter().for_each(|reg| note_read(&mut undefined, &defined, *reg));
    }
    Some(undefined)
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
