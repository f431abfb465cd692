//! Machine code of atomic operations on integers whose results nothing reads, and of reductions.

use super::assembler::{Alu, Gpr, Mem, Width, Word};
use super::emitter::Emitter;
use super::lanes::Addresses;
use super::ranges::Memory;
use super::value::Value;
use crate::plan::ordered;
use crate::plan::shape::Shape;
use ptx::ir::{AtomOp, Inst, MemMods, Op, Reg};

/// An atomic operation that has machine code.
struct Reduction {
    addresses: Addresses,
    alu: Alu,
    value: Value,
}

impl Emitter<'_> {
    /// Adds an atomic operation whose result nothing reads. Returns false if it has no machine code; then nothing is
    /// added.
    pub(super) fn reduction(&mut self, step: usize, inst: &Inst, live: &[Reg], rest: u32) -> bool {
        let (Op::Atom { op, mem } | Op::Red { op, mem }) = &inst.op else {
            return false;
        };
        let Some(reduction) = self.reduction_of(inst, *op, mem) else {
            return false;
        };
        let Reduction { addresses, alu, value } = reduction;
        let row = self.row_of(value);
        let places = self.checked_alone(&addresses);
        let width = value.width;
        // Only the host thread that runs a block accesses its shared memory: kernels in clusters are not compiled.
        let locked = addresses.memory == Memory::Global;
        match (places.same().filter(|_| !self.masked), row) {
            (Some(at), Some(row)) => {
                self.asm.alu(Alu::Mov, width, Gpr::DX, Word::Mem(row));
                for lane in 1..self.lanes {
                    let next = row.plus((lane * width.bytes()) as i32);
                    self.asm.alu(alu, width, Gpr::DX, Word::Mem(next));
                }
                self.asm.update(alu, width, at, Gpr::DX, locked);
            }
            (Some(at), None) if value.is_uniform() && alu != Alu::Xor => {
                self.copy_first_lane(value, Gpr::DX);
                if alu == Alu::Add {
                    self.asm.multiply(width, Gpr::DX, Word::Gpr(Gpr::DX), self.lanes as i32);
                }
                self.asm.update(alu, width, at, Gpr::DX, locked);
            }
            (_, row) => {
                if row.is_none() {
                    self.copy_first_lane(value, Gpr::DX);
                }
                for lane in 0..self.lanes {
                    let skip = self.skip_inactive(lane);
                    if let Some(row) = row {
                        let value = row.plus((lane * width.bytes()) as i32);
                        self.asm.alu(Alu::Mov, width, Gpr::DX, Word::Mem(value));
                    }
                    let at = self.lane(&places, lane);
                    self.asm.update(alu, width, at, Gpr::DX, locked);
                    self.end_skip(skip);
                    if let Shape::Affine(step) = value.shape {
                        self.asm.lea(width, Gpr::DX, Mem::at(Gpr::DX, step as i32));
                    }
                }
            }
        }
        self.failed(step, inst, places, addresses.aligned, live, rest);
        true
    }

    fn reduction_of(&self, inst: &Inst, op: AtomOp, m: &MemMods) -> Option<Reduction> {
        let alu = match op {
            AtomOp::Add => Alu::Add,
            AtomOp::And => Alu::And,
            AtomOp::Or => Alu::Or,
            AtomOp::Xor => Alu::Xor,
            _ => return None,
        };
        let width = match m.ty.size() {
            4 => Width::Bits32,
            8 => Width::Bits64,
            _ => return None,
        };
        let used = inst.dsts.iter().flatten().any(|reg| self.is_read_later(*reg));
        if used || m.ty.is_float() || m.vec != 1 || !ordered::is_order_free(op, m) {
            return None;
        }
        let addresses = self.addresses_of(inst, m, m.ty.size())?;
        let value = self.value(inst.srcs.get(1)?, width)?;
        let step = matches!(value.shape, Shape::Affine(step) if i32::try_from(step).is_err());
        (addresses.memory != Memory::Local && !step).then_some(Reduction { addresses, alu, value })
    }
}
