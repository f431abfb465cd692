//! Lowers array elements with an index such as `array[%r1+1]` and `array[%laneid]`, in loads, stores and `mov`.

use crate::ast::Pos;
use crate::ir::{Op, Operand, Part, Reg, Type};
use crate::names::Name;
use crate::scopes::Symbol;

use super::address::ResolvedAddress;
use super::walker::Walker;

impl Walker<'_> {
    /// Returns the size of an array's element in bytes; `None` if the name does not mean an array.
    fn element_bytes(&self, name: Name) -> Option<u32> {
        match self.resolve(name)? {
            Symbol::Variable { element, .. } => Some(element),
            Symbol::Frame { decl, .. } | Symbol::Param { decl, .. } => Some(self.element(decl)),
            _ => None,
        }
    }

    /// Returns the register with the index of an element, which has 16, 32 or 64 bits. Adds an error if the name means
    /// anything else than an integer register. (ptxas also accepts variables and labels; the value is their address.)
    fn index_register(&mut self, index: Name, pos: Pos) -> Option<(Reg, Type)> {
        let special = self.unit.specials.get(&index).copied();
        let (reg, ty) = match (self.resolve(index), special) {
            (Some(Symbol::Reg { first, ty, vec: 1 }), _) => (Some(Reg(first)), ty),
            (None, Some(special)) if !special.vector => (None, special.ty),
            (None, None) if !self.is_label(index) => {
                self.unknown.push((index, pos));
                return None;
            }
            (symbol, special) => {
                let kind = match symbol {
                    Some(Symbol::Reg { .. }) => "3",
                    None if special.is_some() => "3",
                    Some(Symbol::Function(_)) => "(null)",
                    _ => "unexpected",
                };
                self.bad_index(index, kind, pos);
                return None;
            }
        };
        if ty.is_float() || ty == Type::Pred {
            self.bad_index(index, &format!(".{ty:?}").to_lowercase(), pos);
            return None;
        }
        if !matches!(ty.size(), 2 | 4 | 8) {
            self.say(pos, "Illegal operand type for address/array-index".to_owned());
            return None;
        }
        let reg = match (reg, special) {
            (Some(reg), _) => reg,
            (None, special) => {
                let special = special?;
                self.special_since(index, special, pos);
                self.emit_before(Op::Mov { ty }, ty, &[Operand::Special(special.register)], pos.line)
            }
        };
        Some((reg, ty))
    }

    /// Adds the error for a name that cannot be an index, with its type in the words of ptxas.
    fn bad_index(&mut self, index: Name, kind: &str, pos: Pos) {
        let text = self.text(index);
        let message = format!("Illegal to use symbol '{text}' of type {kind} as array index. Use integer or bit only.");
        self.say(pos, message);
    }

    /// Returns the address of an element. As in ptxas, the index is an unsigned number of 32 bits for a register of any
    /// width.
    pub(super) fn subscript(&mut self, name: Name, index: Name, offset: i64, pos: Pos) -> Option<ResolvedAddress> {
        let array = self.named_address(name, 0, true, pos)?;
        let bytes = self.element_bytes(name)?;
        let (reg, ty) = self.index_register(index, pos)?;
        let line = pos.line;
        let add = |ty| Op::Add { ty, sat: false };
        let mut number = reg;
        if ty.size() == 2 {
            let widen = Op::Mul {
                ty: Type::U16,
                part: Part::Wide,
            };
            let srcs = [Operand::Reg(number), Operand::Imm(1)];
            number = self.emit_before(widen, Type::U32, &srcs, line);
        }
        if ty.size() == 8 {
            let srcs = [Operand::Reg(number), Operand::Imm(offset as u64)];
            number = self.emit_before(add(Type::U64), Type::U64, &srcs, line);
            let mask = Op::And { ty: Type::B64 };
            let srcs = [Operand::Reg(number), Operand::Imm(u64::from(u32::MAX))];
            number = self.emit_before(mask, Type::U64, &srcs, line);
        } else if offset != 0 {
            let srcs = [Operand::Reg(number), Operand::Imm(u64::from(offset as u32))];
            number = self.emit_before(add(Type::U32), Type::U32, &srcs, line);
        }
        let mov = Op::Mov { ty: Type::U64 };
        let start = self.emit_before(mov, Type::U64, &[array.operand], line);
        let (ty, part) = if ty.size() == 8 {
            (Type::U64, Part::Lo)
        } else {
            (Type::U32, Part::Wide)
        };
        let mad = Op::Mad { ty, part, sat: false };
        let srcs = [
            Operand::Reg(number),
            Operand::Imm(u64::from(bytes)),
            Operand::Reg(start),
        ];
        let operand = Operand::Reg(self.emit_before(mad, Type::U64, &srcs, line));
        Some(ResolvedAddress { operand, ..array })
    }
}
