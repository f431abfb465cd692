//! Lowers loads, stores, atomic operations and reductions, and checks memory hints.

use crate::ast::{self, Inst};
use crate::ir::{AtomOp, Op, Operand, Space, Type};
use crate::scopes::FrameKind;

use super::walker::Walker;

impl Walker<'_> {
    /// Lowers `ld`, `st`, `atom` and `red`: the address becomes the first source; its space and offset become part of
    /// the operation.
    pub(super) fn memory(&mut self, inst: &Inst, op: &Op, address: &ast::Operand) {
        let mut op = op.clone();
        let (mem, values) = match &mut op {
            Op::Ld(mem) => (mem, 0),
            Op::St(mem) => (&mut *mem, 1),
            Op::Atom { op: AtomOp::Cas, mem } => (mem, 2),
            Op::Atom { mem, .. } | Op::Red { mem, .. } => (mem, 1),
            _ => return,
        };
        let Some(resolved) = self.address(mem.space, address) else {
            return;
        };
        let Some(space) = self.access_space(inst, mem.space, &resolved) else {
            return;
        };
        // In a kernel, the variables of calls are in the frame, and all other parameters are the kernel's.
        if self.function.is_some_and(|function| function.entry) {
            let other = if resolved.space == Some(Space::Local) {
                "::entry"
            } else {
                "::func"
            };
            if self.opcode_contains(inst, other) {
                let message = format!(
                    "Illegal state space for address operand '{other}' with instruction '{}'",
                    self.name
                );
                return self.say(inst.pos, message);
            }
        }
        if matches!(self.root, "ld" | "ldu") && resolved.kind == Some(FrameKind::Output) {
            let text = self.address_text(address);
            let message = format!("Illegal to read function return parameter '{text}'");
            return self.say(inst.pos, message);
        }
        let input = matches!(resolved.kind, Some(FrameKind::Input)) || resolved.space == Some(Space::Param);
        let constant = space == Space::Const;
        if !matches!(self.root, "ld" | "ldu") && (input || constant) {
            let text = self.address_text(address);
            let message = if constant {
                format!("State space incorrect for instruction '{}'", self.name)
            } else {
                format!("Illegal to write to function input parameter '{text}'")
            };
            return self.say(inst.pos, message);
        }
        // Drops a cache policy after the values.
        self.srcs.truncate(values * usize::from(mem.vec));
        self.srcs.insert(0, resolved.operand);
        (mem.space, mem.offset) = (space, resolved.offset);
        match op {
            Op::Atom {
                op: AtomOp::Exch | AtomOp::Cas,
                ..
            } => {}
            // Any other atomic operation without a result is a reduction.
            Op::Atom { op: kind, mem } if self.dsts.iter().all(Option::is_none) => {
                self.dsts.clear();
                op = Op::Red { op: kind, mem };
            }
            _ => {}
        }
        if let Op::Atom { mem, .. } = op
            && mem.vec > 1
        {
            self.keep_values(inst, mem.ty);
        }
        self.emit(inst, op);
    }

    /// Copies the values of an atomic operation whose registers are also destinations. An operation on a vector is one
    /// operation per element, so the result of an element could overwrite the value of a later one.
    fn keep_values(&mut self, inst: &Inst, ty: Type) {
        let bits = match ty.size() {
            2 => Type::B16,
            4 => Type::B32,
            _ => Type::B64,
        };
        let mut srcs = std::mem::take(&mut self.srcs);
        for value in srcs.iter_mut().skip(1) {
            if let Operand::Reg(reg) = *value
                && self.dsts.contains(&Some(reg))
            {
                let mov = Op::Mov { ty: bits };
                *value = Operand::Reg(self.emit_before(mov, bits, &[*value], inst.pos.line));
            }
        }
        self.srcs = srcs;
    }

    /// Checks the address of an instruction that does not access it, such as `prefetch` and `createpolicy.range`.
    pub(super) fn hint(&mut self, inst: &Inst, space: Space, address: &ast::Operand) {
        if let Some(resolved) = self.address(space, address) {
            self.access_space(inst, space, &resolved);
        }
    }
}
