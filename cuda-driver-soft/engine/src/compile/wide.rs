//! Selects the kernels that are compiled for groups of 32 lanes.
//!
//! A larger group needs fewer instructions per lane for addresses, checks and jumps. But a vector of 32-bit values then
//! takes four of the twelve vector registers that hold values.

use crate::code::collective::Collective;
use crate::plan::Plan;
use crate::plan::class::{Class, Scheduled};
use crate::plan::shape::{Shape, Shapes};
use crate::plan::steps::Step;
use ptx::ir::{Inst, Op, Reg, RegClass};

/// Limit on the vectors that are live at the beginning of a block in a loop.
const MOST_IN_LOOPS: usize = 3;
/// Limit on the vectors that are live at the beginning of any other block.
const MOST: usize = 6;
/// Limit on the vectors of 64 bits or more, which must be results outside of loops that only their own block uses. For
/// example, a division by a constant is a product of 64 bits and a shift.
const MOST_WIDE: usize = 2;

/// Returns true for instructions that all lanes of a warp run together, and that have no machine code for a group.
fn is_for_warp(inst: &Inst) -> bool {
    match (&inst.op, Class::of_inst(inst)) {
        (Op::Activemask, _) | (_, Class::Scheduled(Scheduled::Matrix)) => true,
        (op, Class::Scheduled(Scheduled::Collective)) => matches!(
            Collective::of(op),
            Some((
                Collective::Elect | Collective::MatchAny { .. } | Collective::MatchAll { .. },
                _
            ))
        ),
        _ => false,
    }
}

/// Returns true if a kernel is likely to be faster in groups of 32 lanes: if its vectors mostly fit into the registers,
/// or if it has operations across lanes, for which smaller groups have to meet. Returns false for kernels with
/// instructions that have no machine code for a group: see [`is_for_warp`].
pub(super) fn fits(plan: &Plan<'_>, shapes: &Shapes) -> bool {
    let is_vector = |reg: Reg| plan.source.class(reg) != RegClass::Pred && shapes.of_register(reg) == Shape::Any;
    let is_wide = |reg: Reg| matches!(plan.source.class(reg), RegClass::B64 | RegClass::B128);
    let mut insts = plan.layout.steps.iter().filter_map(|step| match step {
        Step::Plain(inst) => Some(*inst),
        Step::Branch { .. } => None,
    });
    let crosses = |inst: &Inst| Class::of_inst(inst) == Class::Scheduled(Scheduled::Collective);
    if insts.clone().any(crosses) {
        return !insts.any(is_for_warp);
    }
    let mut wide = 0;
    let narrow = plan.layout.steps.iter().enumerate().all(|(number, step)| match step {
        Step::Plain(inst) => {
            let mut results = inst.dsts.iter().flatten().copied().filter(|reg| is_vector(*reg));
            let four = matches!(&inst.op, Op::Ld(m) if m.vec > 2 && u32::from(m.vec) * m.ty.size() > 4);
            let is_brief = |reg: Reg| {
                let block = plan.layout.block_of[number];
                plan.flow.nesting(block) == 0 && !plan.live.at_end(block).any(|live| live == reg)
            };
            results.all(|reg| {
                wide += usize::from(is_wide(reg));
                (!is_wide(reg) || is_brief(reg)) && !four
            }) && !is_for_warp(inst)
        }
        Step::Branch { .. } => true,
    }) && wide <= MOST_WIDE;
    let few = |block: usize| {
        let vectors = plan.live.at_begin(block).filter(|reg| is_vector(*reg)).count();
        let most = if plan.flow.nesting(block) > 0 {
            MOST_IN_LOOPS
        } else {
            MOST
        };
        vectors <= most
    };
    narrow && (0..plan.layout.blocks.len()).all(few)
}
