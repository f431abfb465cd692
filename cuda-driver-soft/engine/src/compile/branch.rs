//! Machine code of branches.
//!
//! A comparison of integers whose result only the branch after it reads needs no predicate if all lanes of a group take
//! the same side: the first and the last lane show that, because the values of the lanes between them are in order.

use super::assembler::{Alu, Gpr, Label, When, Width, Word};
use super::compare::{Order, order_of};
use super::emitter::Emitter;
use super::lanes::whole_reach;
use super::scalar::integer;
use super::stubs::Stub;
use super::value::Value;
use crate::code::compiled::Exit;
use crate::code::share::RunBy;
use crate::plan::shape::Shape;
use crate::plan::steps::Step;
use ptx::ir::{Inst, Op, Reg};

/// A comparison for a branch. Only the first value can differ from lane to lane.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    a: Value,
    b: Value,
    order: Order,
    signed: bool,
    /// The distance from the value of `a` in the first lane to that in the last lane.
    reach: i32,
}

/// The targets of a branch.
#[derive(Clone, Copy)]
struct Targets {
    /// The code of the edge that lanes take if they jump.
    taken: Label,
    /// The code that runs if lanes take different sides.
    mixed: Label,
    /// True if lanes jump if the predicate is false.
    negated: bool,
}

impl Emitter<'_> {
    /// Adds a branch on a predicate at the end of a block. `number` is that of the current piece, and `rest` the number
    /// of interpreter instructions of the piece from the branch on.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn branch(
        &mut self,
        block: usize,
        number: usize,
        step: usize,
        (predicate, negated): (Reg, bool),
        to: usize,
        live: &[Reg],
        rest: u32,
    ) {
        let mask = match self.word(predicate, Gpr::AX) {
            Word::Gpr(gpr) => gpr,
            Word::Mem(_) | Word::Imm(_) => {
                self.copy_mask(predicate, Gpr::AX);
                Gpr::AX
            }
        };
        let targets = self.targets(block, step, mask, negated, to, live, rest);
        self.branch_on_mask(mask, targets, self.shape(predicate) == Shape::Uniform);
        self.not_taken(block, number, step);
    }

    /// Returns the targets of a branch. When lanes take different sides, `mask` must have the predicate. `rest` is the
    /// number of interpreter instructions of the piece from the branch on.
    #[allow(clippy::too_many_arguments)]
    fn targets(
        &mut self,
        block: usize,
        step: usize,
        mask: Gpr,
        negated: bool,
        to: usize,
        live: &[Reg],
        rest: u32,
    ) -> Targets {
        let layout = &self.input.plan.layout;
        let mixed = match layout.block_of.get(layout.steps_of(block).end) {
            Some(other) if self.parts_behind(block) => {
                let to = if negated { [*other, to] } else { [to, *other] };
                self.part_stub(block, mask, to)
            }
            _ => self.exit_stub(live, self.insts(step).0, Exit::Leave, rest as i32),
        };
        Targets {
            taken: self.taken(block, to),
            mixed,
            negated,
        }
    }

    /// Returns the code of an edge that the branch at the end of a block takes.
    fn taken(&mut self, from: usize, to: usize) -> Label {
        let label = self.asm.label();
        // The predicate may be dead after the branch.
        let state = self.state.clone();
        self.decide(to);
        self.push_stub(Stub::Edge { label, state, from, to });
        label
    }

    /// Adds jumps to the targets of a branch, by a mask.
    fn branch_on_mask(&mut self, mask: Gpr, targets: Targets, uniform: bool) {
        let full = Word::Imm(self.full());
        let (all, none) = if targets.negated {
            (Word::Imm(0), full)
        } else {
            (full, Word::Imm(0))
        };
        self.asm.alu(Alu::Cmp, Width::Bits32, mask, all);
        self.asm.jump_when(When::Equal, targets.taken);
        if !uniform {
            self.asm.alu(Alu::Cmp, Width::Bits32, mask, none);
            self.asm.jump_when(When::NotEqual, targets.mixed);
        }
    }

    /// Adds the code after the branch at the end of a block: the edge to the next block, or the end of the kernel.
    fn not_taken(&mut self, block: usize, number: usize, step: usize) {
        let layout = &self.input.plan.layout;
        match layout.block_of.get(layout.steps_of(block).end) {
            Some(next) => self.edge(block, *next, number),
            None => {
                let at = self.insts(step).1;
                self.exit_now(&[], &[], at, Exit::End, 0);
            }
        }
    }

    /// Returns the comparison that a step of the current block makes for the branch after it, if that needs no
    /// predicate.
    pub(super) fn comparison_for_branch(&self, step: usize, inst: &Inst) -> Option<Comparison> {
        let layout = &self.input.plan.layout;
        let Some(Step::Branch {
            guard: Some((predicate, _)),
            ..
        }) = layout.steps.get(step + 1)
        else {
            return None;
        };
        let Op::Setp {
            cmp,
            ty,
            ftz: false,
            bool_op: None,
        } = &inst.op
        else {
            return None;
        };
        let [Some(result)] = inst.dsts.as_slice() else {
            return None;
        };
        let plain = result == predicate && inst.guard.is_none() && !self.is_alias(*result);
        let (first, end) = self.insts(step);
        if !plain || first == end || step + 2 != layout.steps_of(self.block).end || self.meets_at_branch(*predicate) {
            return None;
        }
        let next = &layout.blocks[self.block].successors;
        if next.iter().any(|block| self.is_live_at_begin(*block, *predicate)) {
            return None;
        }
        let width = integer(*ty)?;
        let (order, signed) = order_of(*cmp, *ty)?;
        let (x, y) = (
            self.value(inst.srcs.first()?, width)?,
            self.value(inst.srcs.get(1)?, width)?,
        );
        let (a, b, order, step) = match (x.shape, y.shape) {
            (Shape::Uniform, Shape::Uniform) => (x, y, order, 0),
            (Shape::Affine(step), Shape::Uniform) => (x, y, order, step),
            (Shape::Uniform, Shape::Affine(step)) => (y, x, order.mirrored(), step),
            _ => return None,
        };
        let reach = whole_reach(step, self.lanes)?;
        reach.checked_neg()?;
        Some(Comparison {
            a,
            b,
            order,
            signed,
            reach,
        })
    }

    /// Ends the current block with a comparison and the branch after it. `number` is that of the current piece, and
    /// `rest` the number of interpreter instructions of the piece from the comparison on.
    pub(super) fn compare_and_branch(
        &mut self,
        block: usize,
        number: usize,
        step: usize,
        comparison: Comparison,
        rest: u32,
    ) {
        let layout = &self.input.plan.layout;
        let Step::Branch {
            to,
            guard: Some((predicate, negated)),
            ..
        } = layout.steps[step + 1]
        else {
            return;
        };
        let to = layout.block_of[to];
        self.count_share(step, RunBy::MachineCode);
        let rest = rest - self.counted(step);
        let Comparison { a, b, reach, .. } = comparison;
        let when = comparison.order.when(comparison.signed);
        if reach == 0 {
            let first = self.first_in_register(a);
            let y = self.first_lane(b, Gpr::CX);
            self.asm.alu(Alu::Cmp, a.width, first, y);
            self.end_step(step);
            self.begin_step(step + 1);
            self.count_share(step + 1, RunBy::MachineCode);
            let taken = self.taken(block, to);
            self.asm.jump_when(if negated { when.opposite() } else { when }, taken);
            return self.not_taken(block, number, step + 1);
        }
        // The mask is written only if the ends of the group do not decide.
        let mask = self.define_gpr(predicate);
        self.copy_first_lane(a, Gpr::AX);
        let y = self.first_lane(b, Gpr::CX);
        let state = self.state.clone();
        self.end_step(step);
        let live = self.begin_step(step + 1);
        self.count_share(step + 1, RunBy::MachineCode);
        let targets = self.targets(block, step + 1, mask, negated, to, &live, rest);
        let no_lane = matches!(comparison.order, Order::Equal | Order::NotEqual).then(|| {
            // The values of all lanes are between those of the first and the last lane, even if they wrap. So no lane
            // is equal to `b` if `b` is further from the first lane than the last lane is, in the same direction.
            self.asm.alu(Alu::Mov, a.width, Gpr::DX, y);
            if reach > 0 {
                self.asm.alu(Alu::Sub, a.width, Gpr::DX, Word::Gpr(Gpr::AX));
                Gpr::DX
            } else {
                self.asm.alu(Alu::Sub, a.width, Gpr::AX, Word::Gpr(Gpr::DX));
                Gpr::AX
            }
        });
        let differ = match no_lane {
            Some(distance) => {
                self.asm.alu(Alu::Cmp, a.width, distance, Word::Imm(reach.abs()));
                if (comparison.order == Order::NotEqual) != negated {
                    self.asm.jump_when(When::Above, targets.taken);
                    // The machine registers are the same on both paths.
                    let now = std::mem::replace(&mut self.state, state);
                    self.compare_each(comparison, mask, targets);
                    self.state = now;
                    return self.not_taken(block, number, step + 1);
                }
                let differ = self.asm.label();
                self.asm.jump_when(When::BelowOrEqual, differ);
                differ
            }
            None => self.compare_both_ends(comparison, y, targets),
        };
        let next = match layout.block_of.get(layout.steps_of(block).end) {
            Some(next) => self.taken(block, *next),
            None => self.exit_stub(&[], self.insts(step + 1).1, Exit::End, 0),
        };
        self.push_stub(Stub::Late {
            label: differ,
            state,
            write: Box::new(move |emitter| {
                emitter.compare_each(comparison, mask, targets);
                emitter.asm.jump(next);
            }),
        });
        self.not_taken(block, number, step + 1);
    }

    /// Adds a jump to the target of a branch if the ends of a group show that all lanes take it, and jumps to the
    /// returned label if lanes may take different sides. The first lane is in `AX`. Uses `DX`.
    fn compare_both_ends(&mut self, comparison: Comparison, y: Word, targets: Targets) -> Label {
        let differ = self.asm.label();
        let Comparison {
            a,
            order,
            signed,
            reach,
            ..
        } = comparison;
        self.asm.alu(Alu::Mov, a.width, Gpr::DX, Word::Gpr(Gpr::AX));
        if reach >= 0 || signed {
            self.asm.alu(Alu::Add, a.width, Gpr::DX, Word::Imm(reach));
        } else {
            self.asm.alu(Alu::Sub, a.width, Gpr::DX, Word::Imm(-reach));
        }
        let wraps = if signed { When::Overflow } else { When::Below };
        self.asm.jump_when(wraps, differ);
        let (low, high) = if reach > 0 {
            (Gpr::AX, Gpr::DX)
        } else {
            (Gpr::DX, Gpr::AX)
        };
        // If the comparison holds for the first of these, it holds for all lanes; if not for the second, for none.
        let (all, none) = match order {
            Order::Greater | Order::GreaterOrEqual => (low, high),
            _ => (high, low),
        };
        let when = order.when(signed);
        let (taken, not_taken, when) = if targets.negated {
            (none, all, when.opposite())
        } else {
            (all, none, when)
        };
        self.asm.alu(Alu::Cmp, a.width, taken, y);
        self.asm.jump_when(when, targets.taken);
        self.asm.alu(Alu::Cmp, a.width, not_taken, y);
        self.asm.jump_when(when, differ);
        differ
    }

    /// Compares each lane of a group, and adds jumps to the targets of the branch. `mask` is the register for the
    /// predicate.
    fn compare_each(&mut self, comparison: Comparison, mask: Gpr, targets: Targets) {
        let Comparison {
            a, b, order, signed, ..
        } = comparison;
        self.compare_vectors(a, b, order, signed);
        self.asm.alu(Alu::Mov, Width::Bits32, mask, Word::Gpr(Gpr::AX));
        self.branch_on_mask(mask, targets, false);
    }
}
