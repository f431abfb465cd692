//! `array[%r1]`, `array[%r1+1]`: an element of an array by what a register says. In loads, stores and `mov`.

use super::memory::Place;
use super::*;
use crate::ir::Part;

impl Walker<'_> {
    /// Bytes of an element of what a name means; `None` for what is no array.
    fn element_bytes(&self, name: Name) -> Option<u32> {
        match self.resolve(name)? {
            Symbol::Variable { element, .. } | Symbol::Param { element, .. } => Some(element),
            Symbol::Frame { decl, .. } => {
                let declaration = self.unit.ast.vars.get(decl as usize);
                Some(declaration.map_or(1, |v| v.element() as u32))
            }
            _ => None,
        }
    }

    /// One more instruction, before the one at hand.
    fn before(&mut self, op: Op, ty: Type, srcs: Vec<Operand>, pos: Pos) -> Operand {
        let result = self.new_register(ty);
        let (dsts, srcs) = (
            std::mem::replace(&mut self.dsts, vec![Some(result)]),
            std::mem::replace(&mut self.srcs, srcs),
        );
        self.emit_guarded(None, op, pos.line);
        (self.dsts, self.srcs) = (dsts, srcs);
        Operand::Reg(result)
    }

    /// The address of the element. As `ptxas` has it, what is in the brackets is an unsigned number of 32 bits, of whatever
    /// width the register is.
    pub(super) fn subscript(
        &mut self,
        name: Name,
        index: Name,
        offset: i64,
        pos: Pos,
    ) -> Option<Place> {
        let array = self.place(name, 0, true, pos)?;
        let bytes = self.element_bytes(name)?;
        let (reg, ty) = self.register(index, Selector::None, pos)?;
        if ty.is_float() || !matches!(ty.size(), 2 | 4 | 8) || ty == Type::Pred {
            self.faults.mismatch = true;
            return None;
        }
        let mut number = Operand::Reg(reg);
        if ty.size() == 2 {
            let op = Op::Mul {
                ty: Type::U16,
                part: Part::Wide,
            };
            number = self.before(op, Type::U32, vec![number, Operand::Imm(1)], pos);
        }
        if ty.size() == 8 {
            let op = Op::Add {
                ty: Type::U64,
                sat: false,
            };
            number = self.before(
                op,
                Type::U64,
                vec![number, Operand::Imm(offset as u64)],
                pos,
            );
            let op = Op::And { ty: Type::B64 };
            let low = Operand::Imm(u64::from(u32::MAX));
            number = self.before(op, Type::U64, vec![number, low], pos);
        } else if offset != 0 {
            let op = Op::Add {
                ty: Type::U32,
                sat: false,
            };
            let offset = Operand::Imm(u64::from(offset as u32));
            number = self.before(op, Type::U32, vec![number, offset], pos);
        }
        let op = Op::Mov { ty: Type::U64 };
        let start = self.before(op, Type::U64, vec![array.operand], pos);
        let op = if ty.size() == 8 {
            Op::Mad {
                ty: Type::U64,
                part: Part::Lo,
                sat: false,
            }
        } else {
            Op::Mad {
                ty: Type::U32,
                part: Part::Wide,
                sat: false,
            }
        };
        let bytes = Operand::Imm(u64::from(bytes));
        let operand = self.before(op, Type::U64, vec![number, bytes, start], pos);
        Some(Place { operand, ..array })
    }
}
