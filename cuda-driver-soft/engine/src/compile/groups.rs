//! The beginning and the end of compiled code, and the step from one group of lanes to the next.
//!
//! One call of the code can run many groups of a block one after another: all from the same instruction on, as long as
//! each ends at the same barrier or at the end of the kernel. After a barrier, the code can go on with the first group
//! again: see `barriers`.

use super::assembler::{Alu, Gpr, Mem, Shift, When, Width, Word};
use super::emitter::Emitter;
use super::registers::{CONTEXT, FRAMES, MASKS, POOL, ROWS32, ROWS64, WINDOWS, field};
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
        if self.is_whole_warp() {
            let [frame, frames] = [offset_of!(CompiledContext, frame), offset_of!(CompiledContext, frames)];
            self.asm.alu(Alu::Mov, WIDE, ROWS32, value(frame));
            self.asm.alu(Alu::Mov, WIDE, FRAMES, value(frames));
        } else {
            for (base, bytes) in self.bases() {
                let group = value(offset_of!(CompiledContext, group));
                self.asm.multiply(WIDE, base, group, bytes);
                self.asm
                    .alu(Alu::Add, WIDE, base, value(offset_of!(CompiledContext, frame)));
            }
        }
        self.asm.jump_to_address(Gpr::SI);
        self.asm.bind(self.epilogue);
        self.keep_frames();
        self.asm.vzeroupper();
        self.asm.alu(Alu::Add, WIDE, Gpr::SP, Word::Imm(8));
        for gpr in SAVED.into_iter().rev() {
            self.asm.pop_register(gpr);
        }
        self.asm.ret();
        // The first group decides at which instruction all groups have to end.
        let [first, again] = [(); 2].map(|()| self.asm.label());
        let expected = field(offset_of!(CompiledContext, expected));
        self.asm.bind(self.next);
        self.asm.alu(Alu::Cmp, WIDE, Gpr::AX, Word::Mem(expected));
        self.asm.jump_when(When::NotEqual, first);
        self.asm.bind(again);
        if self.is_whole_warp() {
            self.next_warp();
        } else {
            self.next_group();
        }
        self.asm.bind(first);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(expected));
        self.asm.alu(Alu::Test, WIDE, Gpr::CX, Word::Gpr(Gpr::CX));
        self.asm.jump_when(When::NotEqual, self.epilogue);
        self.asm.store(8, expected, Gpr::AX);
        if self.is_whole_warp() {
            self.asm.store(8, field(offset_of!(CompiledContext, behind)), Gpr::SI);
        }
        self.asm.jump(again);
    }

    /// Returns true if a group is a warp.
    pub(super) fn is_whole_warp(&self) -> bool {
        self.lanes == LANES as u32
    }

    /// Writes the place of the warp's frame to the context, in code for groups of 32 lanes.
    pub(super) fn keep_frames(&mut self) {
        if self.is_whole_warp() {
            self.asm.store(8, field(offset_of!(CompiledContext, frames)), FRAMES);
        }
    }

    /// Returns the registers that point to the rows of a group that is not a whole warp, each with the bytes from one
    /// group to the next.
    pub(super) fn bases(&self) -> [(Gpr, i32); 3] {
        let lanes = self.lanes as i32;
        [(ROWS32, 4 * lanes), (ROWS64, 8 * lanes), (MASKS, lanes / 8)]
    }

    /// Adds the code that runs after a barrier or the end of the kernel, for groups that are whole warps. `AX` is the
    /// value to return, and `SI` the place after the barrier: see [`name_passage`](Self::name_passage).
    fn next_warp(&mut self) {
        self.asm.alu(Alu::Add, WIDE, FRAMES, Word::Imm(8));
        self.asm
            .alu(Alu::Cmp, WIDE, FRAMES, value(offset_of!(CompiledContext, frames_end)));
        self.asm.jump_when(When::Equal, self.over);
        let [steps, total] = [offset_of!(CompiledContext, steps), offset_of!(CompiledContext, total)].map(field);
        self.asm.alu(Alu::Mov, WIDE, Gpr::DX, Word::Mem(steps));
        self.asm.store(8, total, Gpr::DX);
        self.asm.alu(Alu::Mov, WIDE, ROWS32, Word::Mem(Mem::at(FRAMES, 0)));
        self.begin_share();
        self.begin_counts();
        self.asm.jump_to_place(field(offset_of!(CompiledContext, entry)));
    }

    /// Sets the quantum of a group, and `CX` to it.
    pub(super) fn begin_share(&mut self) {
        let share = value(offset_of!(CompiledContext, share));
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, share);
        self.asm.store(8, field(offset_of!(CompiledContext, quantum)), Gpr::CX);
    }

    /// Ends the counters of a group, and begins those of the next one. Sets `CX` to the quantum. Uses `DX`.
    fn switch_counters(&mut self) {
        let [steps, total] = [offset_of!(CompiledContext, steps), offset_of!(CompiledContext, total)].map(field);
        self.asm.alu(Alu::Mov, WIDE, Gpr::CX, Word::Mem(total));
        self.asm.alu(Alu::Add, WIDE, Gpr::CX, Word::Mem(steps));
        self.asm.store(8, total, Gpr::CX);
        self.asm.alu(Alu::Xor, Width::Bits32, Gpr::CX, Word::Gpr(Gpr::CX));
        self.asm.store(8, steps, Gpr::CX);
        if !self.rounds.loops.is_empty() {
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
        self.begin_share();
    }

    /// Adds the code that runs after a barrier or the end of the kernel, for groups that are parts of a warp. `AX` is
    /// the value to return.
    fn next_group(&mut self) {
        let warp = self.asm.label();
        self.asm.subtract_from(field(offset_of!(CompiledContext, in_warp)), 1);
        self.asm.jump_when(When::Equal, warp);
        // Continues with the next group of the warp.
        self.switch_counters();
        for (base, bytes) in self.bases() {
            self.asm.alu(Alu::Add, WIDE, base, Word::Imm(bytes));
        }
        let halves = field(offset_of!(CompiledContext, halves));
        self.asm.add_to(halves, 2 * self.lanes as i32);
        let group = field(offset_of!(CompiledContext, group));
        self.asm.add_to(group, 1);
        let mask = field(offset_of!(CompiledContext, mask));
        self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, Word::Mem(mask));
        self.asm.shift(Shift::Left, Width::Bits32, Gpr::CX, self.lanes);
        self.asm.store(4, mask, Gpr::CX);
        self.asm.jump_to_place(field(offset_of!(CompiledContext, entry)));
        // Continues with the first group of the next warp.
        self.asm.bind(warp);
        let frames = field(offset_of!(CompiledContext, frames));
        self.asm.alu(Alu::Mov, WIDE, Gpr::SI, Word::Mem(frames));
        self.asm.alu(Alu::Add, WIDE, Gpr::SI, Word::Imm(8));
        self.asm.store(8, frames, Gpr::SI);
        self.asm
            .alu(Alu::Cmp, WIDE, Gpr::SI, value(offset_of!(CompiledContext, frames_end)));
        self.asm.jump_when(When::Equal, self.epilogue);
        self.switch_counters();
        self.begin_counts();
        self.asm.alu(Alu::Mov, WIDE, Gpr::SI, Word::Mem(Mem::at(Gpr::SI, 0)));
        for (base, _) in self.bases() {
            self.asm.alu(Alu::Mov, WIDE, base, Word::Gpr(Gpr::SI));
        }
        self.asm.store(8, halves, Gpr::SI);
        self.asm.constant(Gpr::CX, 0);
        self.asm.store(8, group, Gpr::CX);
        self.asm.constant(Gpr::CX, u64::from(self.full().cast_unsigned()));
        self.asm.store(4, mask, Gpr::CX);
        self.asm.constant(Gpr::CX, u64::from(self.groups()));
        self.asm.store(8, field(offset_of!(CompiledContext, in_warp)), Gpr::CX);
        self.asm.jump_to_place(field(offset_of!(CompiledContext, entry)));
    }
}
