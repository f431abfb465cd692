//! Operations across the lanes of a warp in groups of 32 lanes: the values are in the machine registers.

use super::assembler::{Alu, Gpr, Source, Width, Word, Ymm};
use super::collective::Together;
use super::emitter::Emitter;
use super::registers::{Kind, TEMP};
use super::value::Value;
use crate::lanes::LANES;
use crate::plan::class::{Class, Scheduled};
use ptx::ir::{Inst, Reg, VoteMode};

impl Emitter<'_> {
    /// Returns true for operations across lanes that a group runs like other instructions.
    pub(super) fn is_in_group(&self, inst: &Inst) -> bool {
        if self.groups() > 1 || Class::of_inst(inst) != Class::Scheduled(Scheduled::Collective) {
            return false;
        }
        let is_number = |d: Reg| {
            matches!(
                self.kind(d),
                Kind::Vector(Width::Bits32) | Kind::Scalar(Width::Bits32, 0)
            )
        };
        let d = inst.dsts.first().copied().flatten();
        match self.collective(inst) {
            Some(Together::Shuffle { .. }) => d.is_none_or(|d| self.kind(d) == Kind::Vector(Width::Bits32)),
            Some(Together::Vote(VoteMode::Ballot, _) | Together::Reduce(..)) => d.is_none_or(is_number),
            Some(Together::Vote(..) | Together::Nothing) => true,
            _ => false,
        }
    }

    /// Adds an operation across lanes that a group runs. Returns false, and adds nothing, for all other instructions.
    pub(super) fn collective_in_group(&mut self, inst: &Inst) -> bool {
        if !self.is_in_group(inst) {
            return false;
        }
        let needed = |at: usize| {
            let d = inst.dsts.get(at).copied().flatten();
            d.filter(|d| self.is_read_later(*d))
        };
        let [d, p] = [needed(0), needed(1)];
        match self.collective(inst) {
            Some(Together::Shuffle { a, from, inside }) => {
                if let Some(d) = d {
                    self.shuffle_in_group(a, &from, d);
                }
                if let Some(p) = p {
                    self.asm.constant(Gpr::AX, u64::from(inside));
                    self.set_mask(p, Gpr::AX);
                }
            }
            Some(Together::Vote(mode, (predicate, negated))) => {
                let Some(d) = d else { return true };
                self.copy_mask(predicate, Gpr::AX);
                if negated {
                    self.asm.alu(Alu::Xor, Width::Bits32, Gpr::AX, Word::Imm(-1));
                }
                self.decide_vote(mode);
                match (mode, self.kind(d)) {
                    (VoteMode::Ballot, Kind::Vector(_)) => {
                        self.make_room(d);
                        self.asm.broadcast_gpr(Width::Bits32, TEMP, Gpr::AX);
                        self.set_vectors(d, TEMP);
                    }
                    (VoteMode::Ballot, _) => {
                        let d = self.define_gpr(d);
                        self.asm.alu(Alu::Mov, Width::Bits32, d, Word::Gpr(Gpr::AX));
                    }
                    _ => self.set_mask(d, Gpr::AX),
                }
            }
            Some(Together::Reduce(a, code)) => {
                if let Some(d) = d {
                    self.make_room(d);
                    self.reduce_parts(code, |emitter, part| emitter.source(a, part, 2));
                    self.set_vectors(d, TEMP);
                }
            }
            _ => {}
        }
        true
    }

    /// Frees the vector registers for a new value. If they were freed later, the code would overwrite `TEMP`, through
    /// which it writes registers of 16 bits to their rows.
    fn make_room(&mut self, d: Reg) {
        let _ = self.spare(self.defined_parts(d));
    }

    /// Sets all vector registers of a new value.
    fn set_vectors(&mut self, d: Reg, ymm: Ymm) {
        for part in self.define_vector(d) {
            self.asm.load(part, Source::Ymm(ymm));
        }
    }

    fn shuffle_in_group(&mut self, a: Value, from: &[u32; LANES], d: Reg) {
        let source = |emitter: &mut Self, part: usize| emitter.source(a, part, 2);
        if !a.is_register(d) {
            self.prepare(a);
            let results = self.define_vector(d);
            return self.permute(from, &results, source);
        }
        // All sources are read before the results replace them.
        self.load_before_write(d);
        let results = self.spare(self.parts(Width::Bits32));
        self.permute(from, &results, source);
        for (d, result) in self.define_vector(d).into_iter().zip(results) {
            self.asm.load(d, Source::Ymm(result));
        }
    }
}
