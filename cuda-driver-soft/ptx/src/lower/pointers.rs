//! Lowers instructions whose addresses become sources: `cp.async`, bulk copies, `mbarrier`, `ldmatrix` and others.

use crate::ast::{self, Inst, OperandKind};
use crate::ir::{CopyPart, MbarrierOp, Op, Operand, Space, TensorMapReplace, Type};
use crate::scopes::Symbol;

use super::address::ResolvedAddress;
use super::walker::Walker;

impl Walker<'_> {
    /// Lowers `cp.async`, `mbarrier` and others: the addresses, with their offsets added, become the first sources.
    pub(super) fn pointers(&mut self, inst: &Inst, op: &Op, addresses: &[&ast::Operand]) {
        let mut op = op.clone();
        let spaces = match op {
            Op::Mbarrier { space, .. }
            | Op::Ldmatrix { space, .. }
            | Op::Stmatrix { space, .. }
            | Op::WmmaLd { space, .. }
            | Op::WmmaSt { space, .. } => [space; 3],
            Op::TensorMapReplace(replace) => [replace.space; 3],
            // The third address points to a barrier.
            Op::Bulk { to, from, .. } => [to, from, Space::SharedCluster],
            _ => [Space::Shared, Space::Global, Space::Shared],
        };
        let mut pointers = Vec::new();
        for (address, space) in addresses.iter().zip(spaces) {
            let Some(resolved) = self.address(space, address) else {
                return;
            };
            let Some(found) = self.access_space(inst, space, &resolved) else {
                return;
            };
            if let Op::Mbarrier { space, .. }
            | Op::Ldmatrix { space, .. }
            | Op::Stmatrix { space, .. }
            | Op::WmmaLd { space, .. }
            | Op::WmmaSt { space, .. }
            | Op::TensorMapReplace(TensorMapReplace { space, .. }) = &mut op
            {
                *space = found;
            }
            pointers.push(self.pointer(resolved, address));
        }
        if let Op::CpAsync { bytes, part } = &mut op {
            // The size is the first of the other sources, and a cache policy the last. The instruction table gives 16
            // as the number of bytes for `.cg`, and 0 for `.ca`, which has a choice.
            let size = match self.srcs.first() {
                Some(Operand::Imm(size)) => *size,
                _ => 0,
            };
            let right = matches!((*bytes, size), (0, 4 | 8 | 16) | (16, 16));
            if !right {
                let message = format!("Invalid copy size for instruction '{}'", self.name);
                return self.say(inst.pos, message);
            }
            *bytes = size as u8;
            let more = usize::from(*part != CopyPart::All);
            self.srcs.remove(0);
            self.srcs.truncate(more);
        }
        if let Op::Mbarrier { op, space } = op {
            // PTX 7.1 introduced this destination for `mbarrier.arrive`, but 7.0 for `mbarrier.arrive_drop`.
            let has_no_result = op == MbarrierOp::Arrive && self.dsts == [None];
            if has_no_result && self.unit.ast.feature_version() < 71 {
                return self.no_sink(inst.pos);
            }
            // An arrival in another block of the cluster has no result.
            let remote = self.opcode_contains(inst, "::cluster");
            if remote && space == Space::SharedCluster && self.dsts.iter().any(Option::is_some) {
                self.errors.mismatch = true;
            }
            // Drops the time limit of `mbarrier.try_wait`.
            self.srcs.truncate(1);
        }
        if let Op::TensorMapReplace(replace) = &mut op {
            self.replace_constants(inst, replace);
        }
        if let Op::Bulk { multicast, .. } = op {
            return self.bulk(inst, op, &pointers, multicast);
        }
        self.srcs.splice(0..0, pointers);
        self.emit(inst, op);
    }

    /// Lowers a bulk copy. Without multicast, another operation follows, which signals the number of bytes to the
    /// barrier if there is one.
    fn bulk(&mut self, inst: &Inst, op: Op, pointers: &[Operand], multicast: bool) {
        let (Some(copied), Some(size)) = (pointers.get(..2), self.srcs.first().copied()) else {
            return;
        };
        if let (true, Some(mask), Some(barrier)) = (multicast, self.srcs.get(1), pointers.get(2)) {
            self.srcs = [copied, &[size, *mask, *barrier]].concat();
            return self.emit(inst, op);
        }
        self.srcs = [copied, &[size]].concat();
        self.emit(inst, op);
        if let Some(barrier) = pointers.get(2) {
            self.srcs = vec![*barrier, size];
            let op = Op::Mbarrier {
                op: MbarrierOp::CompleteTx,
                space: Space::SharedCluster,
            };
            self.emit(inst, op);
        }
    }

    /// Lowers `st.async` and `red.async`: a check that the launch has clusters, the operation, then a signal to the
    /// barrier with the number of bytes.
    pub(super) fn store_then_signal(&mut self, inst: &Inst, op: &Op, addresses: &[&ast::Operand]) {
        let ([to, barrier], Op::St(mem) | Op::Red { mem, .. }) = (addresses, op) else {
            return;
        };
        let operands = (std::mem::take(&mut self.dsts), std::mem::take(&mut self.srcs));
        let reduce = matches!(op, Op::Red { .. });
        self.emit(inst, Op::WantsCluster { reduce });
        (self.dsts, self.srcs) = operands;
        let before = self.count;
        self.memory(inst, op, to);
        if self.count == before {
            return;
        }
        self.dsts.clear();
        let bytes = u64::from(mem.vec) * u64::from(mem.ty.size());
        self.srcs = vec![Operand::Imm(bytes)];
        let op = Op::Mbarrier {
            op: MbarrierOp::CompleteTx,
            space: mem.space,
        };
        self.pointers(inst, &op, &[barrier]);
    }

    /// Checks an address, and returns it with its offset added.
    pub(super) fn checked_pointer(&mut self, inst: &Inst, space: Space, address: &ast::Operand) -> Option<Operand> {
        let resolved = self.address(space, address)?;
        self.access_space(inst, space, &resolved)?;
        Some(self.pointer(resolved, address))
    }

    /// Returns an address with its offset added, by an instruction before the current one if necessary.
    fn pointer(&mut self, resolved: ResolvedAddress, address: &ast::Operand) -> Operand {
        let OperandKind::Address { base: Some(name), .. } = address.kind else {
            return resolved.operand;
        };
        let Some(Symbol::Reg { ty, .. }) = self.resolve(name) else {
            return resolved.operand;
        };
        if resolved.offset == 0 {
            return resolved.operand;
        }
        let ty = if ty.size() == 4 { Type::U32 } else { Type::U64 };
        let add = Op::Add { ty, sat: false };
        let offset = Operand::Imm(resolved.offset as u64);
        let sum = self.emit_before(add, ty, &[resolved.operand, offset], address.pos.line);
        Operand::Reg(sum)
    }
}
