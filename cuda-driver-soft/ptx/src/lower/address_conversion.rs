//! Lowers conversions of addresses: `cvta`, `mapa` and `getctarank`.

use crate::ast::{self, Inst, OperandKind, Selector};
use crate::forms::Form;
use crate::ir::{Op, Space, Type};
use crate::scopes::{FrameKind, Symbol};

use super::types::dest;
use super::walker::Walker;

impl Walker<'_> {
    /// Lowers `mapa d, a, b`, or `getctarank d, a` if `rank` is true. `a` is a register, or a variable in shared memory
    /// with an optional offset.
    pub(super) fn mapa(&mut self, inst: &Inst, form: &Form, operands: &[ast::Operand], rank: bool) {
        let specs = form.candidates.first().map_or(&[][..], |c| &c.operands);
        if operands.len() != specs.len() {
            self.errors.mismatch = true;
            return self.note_unknown(operands);
        }
        for (index, (operand, spec)) in operands.iter().zip(specs).enumerate() {
            let variable = match operand.kind {
                OperandKind::Name(name, Selector::None) => Some((name, 0, false)),
                OperandKind::Offset { name, offset, index } => Some((name, offset, index)),
                _ => None,
            };
            match variable {
                Some((name, offset, element))
                    if index == 1 && matches!(self.resolve(name), Some(Symbol::Variable { .. })) =>
                {
                    let Some(resolved) = self.named_address(name, offset, element, operand.pos) else {
                        return;
                    };
                    self.errors.mismatch |= resolved.space != Some(Space::Shared);
                    self.srcs.push(resolved.operand);
                }
                _ => self.operand(index, operand, spec),
            }
        }
        let ty = specs.get(1).map_or(Type::U32, |spec| spec.ty);
        let op = if rank { Op::Getctarank { ty } } else { Op::Mapa { ty } };
        self.emit(inst, op);
    }

    /// Lowers `cvta`, whose source is a register or a variable.
    pub(super) fn cvta(&mut self, inst: &Inst, op: &Op, operands: &[ast::Operand]) {
        let Op::Cvta { space, to, ty } = *op else {
            return;
        };
        let [to_reg, source] = operands else { return };
        let variable = match source.kind {
            OperandKind::Name(name, Selector::None) => Some((name, 0, false)),
            OperandKind::Offset { name, offset, index } => Some((name, offset, index)),
            _ => None,
        };
        if let Some((name, offset, index)) = variable
            && !matches!(self.resolve(name), Some(Symbol::Reg { .. }) | None)
        {
            // The table expects a register as the source, so only the errors of the destination count.
            self.errors.clear();
            self.dsts.clear();
            self.srcs.clear();
            self.operand(0, to_reg, &dest(ty, false));
            if to {
                return self.say(
                    inst.pos,
                    "Argument 1 of instruction 'cvta.to': must be register".to_owned(),
                );
            }
            let Some(resolved) = self.named_address(name, offset, index, source.pos) else {
                return;
            };
            // The `.param` variables of a device function are in its frame.
            let input = space == Space::Param && resolved.kind == Some(FrameKind::Input);
            if resolved.space != Some(space) && !input {
                let message = "State space mismatch between instruction and address in instruction 'cvta'";
                return self.say(inst.pos, message.to_owned());
            }
            self.srcs.push(resolved.operand);
            if input {
                let op = Op::Cvta {
                    space: Space::Local,
                    to,
                    ty,
                };
                return self.emit(inst, op);
            }
        }
        self.emit(inst, op.clone());
    }
}
