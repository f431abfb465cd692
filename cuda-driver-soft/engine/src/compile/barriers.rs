//! Barriers that the code passes by itself, without returning to the scheduler: those at which all warps of a block
//! arrive. Only code for groups of 32 lanes does so.
//!
//! The code from one barrier to the next is a *phase*. When the last warp arrives at a plain barrier, the code begins
//! the next phase with the first warp, at the entry after the barrier. It returns instead if the block has used its
//! share of instructions: see [`CompiledContext::limit`].

use super::assembler::{Alu, Gpr, Label, Mem, Shift, When, Width, Word};
use super::emitter::Emitter;
use super::registers::{FRAMES, ROWS32, field};
use super::sections::Section;
use super::sites::Passage;
use crate::code::compiled::{CompiledContext, Exit};
use std::mem::offset_of;

const WIDE: Width = Width::Bits64;

impl Emitter<'_> {
    /// Records that the code passes a barrier by itself if it can. `has_entry` is true if the code can be entered at
    /// the instruction after the barrier.
    pub(super) fn record_passage(&mut self, at: u32, has_entry: bool) {
        let passes = self.is_whole_warp() && !self.input.leaving && self.section == Section::First;
        if passes && has_entry && self.input.code.is_plain_barrier(at) {
            let behind = self.asm.label();
            self.passages.push(Passage { at, behind });
        }
    }

    /// Makes an entry of the first section the place at which the code continues after the barrier before it, if the
    /// code passes that barrier by itself.
    pub(super) fn bind_passage(&mut self, at: u32, entry: Label) {
        for passage in self.passages.iter().filter(|passage| passage.at + 1 == at) {
            self.asm.bind_to(passage.behind, entry);
        }
    }

    /// Sets `SI` to the place at which the code continues after a barrier, or to 0 if it does not pass the barrier by
    /// itself.
    pub(super) fn name_passage(&mut self, at: u32) {
        match self.passages.iter().find(|passage| passage.at == at) {
            Some(Passage { behind, .. }) => self.asm.address_of(Gpr::SI, *behind),
            None => self.asm.constant(Gpr::SI, 0),
        }
    }

    /// Writes the code that runs when all warps have ended at the same place. `AX` is the value to return.
    pub(super) fn finish_barriers(&mut self) {
        let (over, epilogue) = (self.over, self.epilogue);
        if self.passages.is_empty() {
            return self.asm.bind_to(over, epilogue);
        }
        let value = |offset| Word::Mem(field(offset));
        self.asm.bind(over);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Gpr(Gpr::AX));
        self.asm.shift(Shift::Right, WIDE, Gpr::CX, 32);
        self.asm
            .alu(Alu::Cmp, WIDE, Gpr::CX, Word::Imm(Exit::Barrier as u32 as i32));
        self.asm.jump_when(When::NotEqual, epilogue);
        self.asm
            .alu(Alu::Mov, WIDE, Gpr::SI, value(offset_of!(CompiledContext, behind)));
        self.asm.alu(Alu::Test, WIDE, Gpr::SI, Word::Gpr(Gpr::SI));
        self.asm.jump_when(When::Equal, epilogue);
        // Each warp counts the barrier, too.
        self.asm
            .alu(Alu::Mov, WIDE, Gpr::CX, value(offset_of!(CompiledContext, passed)));
        for more in [offset_of!(CompiledContext, steps), offset_of!(CompiledContext, warps)] {
            self.asm.alu(Alu::Add, WIDE, Gpr::CX, value(more));
        }
        self.asm
            .alu(Alu::Cmp, WIDE, Gpr::CX, value(offset_of!(CompiledContext, limit)));
        self.asm.jump_when(When::AboveOrEqual, epilogue);
        self.asm.store(8, field(offset_of!(CompiledContext, passed)), Gpr::CX);
        self.asm.add_to(field(offset_of!(CompiledContext, barriers)), 1);
        self.asm
            .store(8, field(offset_of!(CompiledContext, passed_at)), Gpr::AX);
        self.asm.store(8, field(offset_of!(CompiledContext, entry)), Gpr::SI);
        self.asm.constant(Gpr::AX, 0);
        for counter in [
            offset_of!(CompiledContext, steps),
            offset_of!(CompiledContext, total),
            offset_of!(CompiledContext, expected),
        ] {
            self.asm.store(8, field(counter), Gpr::AX);
        }
        let first = value(offset_of!(CompiledContext, first_frame));
        self.asm.alu(Alu::Mov, WIDE, FRAMES, first);
        self.asm.alu(Alu::Mov, WIDE, ROWS32, Word::Mem(Mem::at(FRAMES, 0)));
        self.begin_share();
        self.begin_counts();
        self.asm.jump_to_address(Gpr::SI);
    }
}
