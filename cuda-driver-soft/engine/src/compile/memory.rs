//! Adds instructions as machine code, with and without guards.

use super::assembler::{Alu, Gpr, When, Width, Word};
use super::emitter::Emitter;
use super::masked::ACTIVE;
use super::registers::Kind;
use ptx::ir::{Inst, Op, Reg};

impl Emitter<'_> {
    /// Adds an instruction as machine code. If the interpreter must run it, returns false and adds nothing, or only a
    /// test of its guard, which has no effect.
    pub(super) fn native(&mut self, step: usize, inst: &Inst, live: &[Reg], rest: u32) -> bool {
        if let Some((guard, negated)) = inst.guard {
            return self.guarded(step, inst, guard, negated, live, rest);
        }
        match &inst.op {
            Op::Ld(_) | Op::St(_) => return self.access(step, inst, live, rest),
            Op::Atom { .. } | Op::Red { .. } => return self.reduction(step, inst, live, rest),
            _ => {}
        }
        if self.predicate(inst) || self.carrying(inst) || self.collective_in_group(inst) {
            return true;
        }
        let [Some(d)] = inst.dsts.as_slice() else {
            return false;
        };
        if matches!(self.kind(*d), Kind::Scalar(..)) && self.scalar(step, inst, *d, live, rest) {
            return true;
        }
        self.halves(inst, *d) || self.vector(inst, *d) || self.formula(inst, *d)
    }

    /// Adds an instruction with a guard: machine code that runs if the guard holds in all running lanes, else a call of
    /// the interpreter.
    fn guarded(&mut self, step: usize, inst: &Inst, guard: Reg, negated: bool, live: &[Reg], rest: u32) -> bool {
        let plain = Inst {
            guard: None,
            ..inst.clone()
        };
        if self.is_alias(guard) {
            return false;
        }
        let (mask, all) = if self.masked {
            // Lanes that do not run have arbitrary values.
            self.copy_mask(guard, Gpr::AX);
            self.asm.alu(Alu::And, Width::Bits32, Gpr::AX, ACTIVE);
            (Gpr::AX, if negated { Word::Imm(0) } else { ACTIVE })
        } else {
            let mask = match self.word(guard, Gpr::AX) {
                Word::Gpr(gpr) => gpr,
                Word::Mem(_) | Word::Imm(_) => {
                    self.copy_mask(guard, Gpr::AX);
                    Gpr::AX
                }
            };
            (mask, Word::Imm(if negated { 0 } else { self.full() }))
        };
        let (label, before) = (self.asm.label(), self.state.clone());
        self.asm.alu(Alu::Cmp, Width::Bits32, mask, all);
        self.asm.jump_when(When::NotEqual, label);
        self.guarded = true;
        let native = self.native(step, &plain, live, rest);
        self.guarded = false;
        if !native {
            // The interpreter runs the instruction, whatever its guard is.
            self.asm.bind(label);
            return false;
        }
        self.interpret_stub(label, step, inst, before, (u32::MAX, None));
        true
    }
}
