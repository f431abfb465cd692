//! Lowers tensor copies, one of whose address operands holds a tensor map and coordinates, and checks
//! `tensormap.replace` and the target of `setmaxnreg`.

use crate::ast::{self, Inst, OperandKind};
use crate::ir::{Op, Operand, Space, TensorCopy, TensorDirection, TensorMapField, TensorMapReplace, Type};

use super::types::source;
use super::walker::Walker;

impl Walker<'_> {
    /// Lowers a tensor copy: the addresses and the coordinates become the first sources. A prefetch (`hint`) is only
    /// checked, because it has no effect.
    pub(super) fn tensor(&mut self, inst: &Inst, copy: TensorCopy, hint: bool, addresses: &[&ast::Operand]) {
        let (map, others) = match (copy.direction, addresses) {
            (TensorDirection::Load { to, .. }, [to_at, map, barrier]) => {
                (*map, vec![(*to_at, to), (*barrier, Space::SharedCluster)])
            }
            (TensorDirection::Store { .. }, [map, from]) => (*map, vec![(*from, Space::Shared)]),
            (TensorDirection::Store { .. }, [map]) if hint => (*map, Vec::new()),
            _ => return self.errors.mismatch = true,
        };
        let OperandKind::Multi(span) = map.kind else {
            self.errors.mismatch = true;
            return self.note_unknown(std::slice::from_ref(map));
        };
        let [object, place] = self.unit.ast.operands(span) else {
            self.errors.mismatch = true;
            return self.note_unknown(self.unit.ast.operands(span));
        };
        // The sources so far are the offsets, the mask of blocks and the cache policy.
        let mut rest = std::mem::take(&mut self.srcs);
        rest.truncate(copy.offsets() + usize::from(copy.is_multicast()));
        let mut pointers = Vec::new();
        for (address, space) in others {
            let Some(pointer) = self.checked_pointer(inst, space, address) else {
                return;
            };
            pointers.push(pointer);
        }
        let Some(map) = self.checked_pointer(inst, Space::Generic, object) else {
            return;
        };
        pointers.insert(pointers.len().min(1), map);
        let OperandKind::Vector(span) = place.kind else {
            return self.say(inst.pos, "Vector expected for argument 2".to_owned());
        };
        if span.len != u32::from(copy.dims) {
            let message = format!(
                "Argument 1 of instruction '{}': Argument vector size mismatch",
                self.name
            );
            return self.say(inst.pos, message);
        }
        for element in self.unit.ast.operands(span) {
            self.operand(1, element, &source(Type::S32));
        }
        if !self.errors.is_empty() {
            return;
        }
        if hint {
            self.srcs.clear();
            return self.emit(inst, Op::Nop);
        }
        self.srcs.splice(0..0, pointers);
        self.srcs.extend(rest);
        self.emit(inst, Op::TensorCopy(copy));
    }

    /// Checks that the target is architecture-specific, such as sm_90a, as `tensormap.replace` and `setmaxnreg`
    /// require. Targets below sm_90 get another error.
    pub(super) fn specific_target(&mut self, inst: &Inst) {
        let target = &self.unit.ast.target;
        if target.sm < 90 || target.suffix.is_some() {
            return;
        }
        let message = format!(
            "Instruction '{}' not supported on .target 'sm_{}'",
            self.name, target.sm
        );
        self.error(inst.pos, message);
    }

    /// Checks the constant of `tensormap.replace`: the dimension, or the value of a field that is an enumeration. The
    /// dimension moves from the sources to the operation.
    pub(super) fn replace_constants(&mut self, inst: &Inst, replace: &mut TensorMapReplace) {
        use TensorMapField::*;
        let (most, modifier) = match replace.field {
            BoxDim => (4, ".box_dim"),
            GlobalDim => (4, ".global_dim"),
            GlobalStride => (4, ".global_stride"),
            ElementStride => (4, ".element_stride"),
            ElemType => (12, ".elemtype"),
            InterleaveLayout => (2, ".interleave_layout"),
            SwizzleMode => (3, ".swizzle_mode"),
            FillMode => (1, ".fill_mode"),
            GlobalAddress | Rank => return,
        };
        let Some(Operand::Imm(value)) = self.srcs.first().copied() else {
            return;
        };
        if value > most {
            let message = format!(
                "Argument 1 of instruction '{}': value '{}' expected to be in range [0..{most}] when {modifier} \
                 modifier is used.",
                self.name, value as i64
            );
            return self.say(inst.pos, message);
        }
        if self.srcs.len() > 1 {
            replace.dimension = value as u8;
            self.srcs.remove(0);
        }
    }
}
