//! The beginning and the end of compiled code, and the step from one group of lanes to the next.
//!
//! One call of the code can run many groups of a block one after another: all from the same instruction on, as long as
//! each ends at the same barrier or at the end of the kernel.

use super::assembler::{Alu, Gpr, Mem, Shift, When, Width, Word};
use super::emitter::Emitter;
use super::registers::{CONTEXT, MASKS, POOL, ROWS32, ROWS64, WINDOWS, field};
use crate::code::compiled::CompiledContext;
use crate::lanes::LANES;
use std::mem::offset_of;

const WIDE: Width = Width::Bits64;

/// The registers that a function must preserve for its caller.
const SAVED: [Gpr; 6] = [Gpr::BX, Gpr::BP, Gpr(12), Gpr(13), Gpr(14), Gpr(15)];

/// Returns a field of the context.
fn value(offset: usize) -> Word {
    Word::Mem(field(offset))
}

impl Emitter<'_> {
    /// Adds the function at the beginning of the code, its end, and the step to the next group.
    pub(super) fn prologue(&mut self) {
        for gpr in SAVED {
            self.asm.push_register(gpr);
        }
        // Calls need a stack that is aligned to 16 bytes.
        self.asm.alu(Alu::Sub, WIDE, Gpr::SP, Word::Imm(8));
        self.asm.alu(Alu::Mov, WIDE, CONTEXT, Word::Gpr(Gpr::DI));
        self.asm
            .alu(Alu::Mov, WIDE, POOL, value(offset_of!(CompiledContext, pool)));
        self.asm
            .alu(Alu::Mov, WIDE, WINDOWS, value(offset_of!(CompiledContext, windows)));
        for (base, bytes) in self.bases() {
            let group = value(offset_of!(CompiledContext, group));
            self.asm.multiply(WIDE, base, group, bytes);
            self.asm
                .alu(Alu::Add, WIDE, base, value(offset_of!(CompiledContext, frame)));
        }
        self.asm.jump_to_address(Gpr::SI);
        self.asm.bind(self.epilogue);
        self.asm.vzeroupper();
        self.asm.alu(Alu::Add, WIDE, Gpr::SP, Word::Imm(8));
        for gpr in SAVED.into_iter().rev() {
            self.asm.pop_register(gpr);
        }
        self.asm.ret();
        self.next_group();
    }

    /// Returns the registers that point to the rows of a group, and their distance from group to group.
    fn bases(&self) -> [(Gpr, i32); 3] {
        let lanes = self.lanes as i32;
        [(ROWS32, 4 * lanes), (ROWS64, 8 * lanes), (MASKS, lanes / 8)]
    }

    /// Adds the code that runs after a barrier or the end of the kernel. `AX` is the value to return.
    fn next_group(&mut self) {
        let expected = field(offset_of!(CompiledContext, expected));
        let [first, again, warp] = [(); 3].map(|()| self.asm.label());
        self.asm.bind(self.next);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(expected));
        self.asm.alu(Alu::Cmp, WIDE, Gpr::AX, Word::Gpr(Gpr::CX));
        self.asm.jump_when(When::NotEqual, first);
        self.asm.bind(again);
        self.asm.subtract_from(field(offset_of!(CompiledContext, left)), 1);
        self.asm.jump_when(When::Equal, self.epilogue);
        let [steps, total] = [offset_of!(CompiledContext, steps), offset_of!(CompiledContext, total)].map(field);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(total));
        self.asm.alu(Alu::Add, WIDE, Gpr::CX, Word::Mem(steps));
        self.asm.store(8, total, Gpr::CX);
        self.asm.alu(Alu::Xor, Width::Bits32, Gpr::CX, Word::Gpr(Gpr::CX));
        self.asm.store(8, steps, Gpr::CX);
        let has_loops = !self.rounds.loops.is_empty();
        if has_loops && self.lanes < LANES as u32 {
            // Keeps the quantum of the group that has ended: the counts of its loops are relative to it.
            let group = value(offset_of!(CompiledContext, group));
            self.asm.alu(Alu::Mov, WIDE, Gpr::CX, group);
            self.asm.shift(Shift::Left, WIDE, Gpr::CX, 3);
            let quantum = value(offset_of!(CompiledContext, quantum));
            self.asm.alu(Alu::Mov, WIDE, Gpr::DX, quantum);
            let kept = Mem {
                index: Some(Gpr::CX),
                ..field(offset_of!(CompiledContext, group_quanta))
            };
            self.asm.store(8, kept, Gpr::DX);
        }
        let share = value(offset_of!(CompiledContext, share));
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, share);
        self.asm.store(8, field(offset_of!(CompiledContext, quantum)), Gpr::CX);
        self.asm.subtract_from(field(offset_of!(CompiledContext, in_warp)), 1);
        self.asm.jump_when(When::Equal, warp);
        // Continues with the next group of the warp.
        for (base, bytes) in self.bases() {
            self.asm.alu(Alu::Add, WIDE, base, Word::Imm(bytes));
        }
        let halves = field(offset_of!(CompiledContext, halves));
        self.asm.add_to(halves, 2 * self.lanes as i32);
        self.asm.add_to(field(offset_of!(CompiledContext, group)), 1);
        let mask = field(offset_of!(CompiledContext, mask));
        self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, Word::Mem(mask));
        self.asm.shift(Shift::Left, Width::Bits32, Gpr::CX, self.lanes);
        self.asm.store(4, mask, Gpr::CX);
        let entry = value(offset_of!(CompiledContext, entry));
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, entry);
        self.asm.jump_to_address(Gpr::CX);
        // Continues with the first group of the next warp.
        self.asm.bind(warp);
        if has_loops {
            self.begin_counts();
        }
        let frames = field(offset_of!(CompiledContext, frames));
        self.asm.add_to(frames, 8);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(frames));
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(Mem::at(Gpr::CX, 0)));
        for (base, _) in self.bases() {
            self.asm.alu(Alu::Mov, WIDE, base, Word::Gpr(Gpr::CX));
        }
        self.asm.store(8, halves, Gpr::CX);
        self.asm.add_to(field(offset_of!(CompiledContext, warp)), 1);
        if self.lanes < LANES as u32 {
            self.asm.constant(Gpr::CX, 0);
            self.asm.store(8, field(offset_of!(CompiledContext, group)), Gpr::CX);
            self.asm.constant(Gpr::CX, u64::from(self.full().cast_unsigned()));
            self.asm.store(4, mask, Gpr::CX);
        }
        self.asm.constant(Gpr::CX, (LANES / self.lanes as usize) as u64);
        self.asm.store(8, field(offset_of!(CompiledContext, in_warp)), Gpr::CX);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, entry);
        self.asm.jump_to_address(Gpr::CX);
        // The first group decides at which instruction all groups have to end.
        self.asm.bind(first);
        self.asm.alu(Alu::Test, WIDE, Gpr::CX, Word::Gpr(Gpr::CX));
        self.asm.jump_when(When::NotEqual, self.epilogue);
        self.asm.store(8, expected, Gpr::AX);
        self.asm.jump(again);
    }
}
