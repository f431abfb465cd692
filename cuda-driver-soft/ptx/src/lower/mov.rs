//! Lowers `mov` of registers, constants, addresses and special registers, including packing and unpacking.

use crate::ast::{self, Inst, OperandKind, Selector};
use crate::forms::{OperandSpec, Role};
use crate::ir::{Address, Op, Operand, Reg, Special, Type};
use crate::scopes::Symbol;
use crate::specials::{self, SpecialReg};

use super::types::{dest, fits, holds_address, part_type, source};
use super::walker::Walker;

impl<'u> Walker<'u> {
    /// Lowers `mov`.
    pub(super) fn mov(&mut self, inst: &Inst, operands: &[ast::Operand], ty: Type, vec: u8) {
        let [to, from] = operands else {
            self.errors.mismatch = true;
            return self.note_unknown(operands);
        };
        if vec > 1 {
            return self.mov_vector(inst, to, from, ty, vec);
        }
        // Braces around a single element are ignored, as in `mov.b32 {a}, b`, unless both operands have such braces.
        let (to, from) = match (self.only_element(to), self.only_element(from)) {
            (Some(element), None) => (element, from),
            (None, Some(element)) => (to, element),
            _ => (to, from),
        };
        match (to.kind, from.kind) {
            (OperandKind::Vector(_), OperandKind::Vector(_)) => {
                let message = "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction";
                self.say(inst.pos, message.to_owned());
            }
            (OperandKind::Vector(span), _) => {
                let parts = self.unit.ast.operands(span);
                if parts.iter().all(|part| part.kind == OperandKind::Sink) {
                    let message = "Unable to infer type of vector elements (assuming .b8)";
                    self.say(to.pos, message.to_owned());
                    self.errors.mismatch = true;
                }
                self.operand(1, from, &source(ty));
                let Some(part) = part_type(ty, span.len) else {
                    self.errors.mismatch = true;
                    return;
                };
                self.elements_agree(span, to.pos);
                for element in self.unit.ast.operands(span) {
                    self.operand(0, element, &dest(part, true));
                }
                self.emit(inst, Op::Unpack { ty });
            }
            (_, OperandKind::Vector(span)) => {
                self.operand(0, to, &dest(ty, false));
                let Some(part) = part_type(ty, span.len) else {
                    self.errors.mismatch = true;
                    return;
                };
                self.elements_agree(span, from.pos);
                for element in self.unit.ast.operands(span) {
                    // A decimal floating-point constant has the element's width.
                    let ty = match (element.kind, part) {
                        (OperandKind::F64(_), Type::B32) => Type::F32,
                        _ => part,
                    };
                    self.operand(1, element, &source(ty));
                }
                self.emit(inst, Op::Pack { ty });
            }
            _ => self.mov_plain(inst, to, from, ty),
        }
    }

    /// Returns the element of a vector operand with one element.
    fn only_element(&self, operand: &ast::Operand) -> Option<&'u ast::Operand> {
        match operand.kind {
            OperandKind::Vector(span) if span.len == 1 => self.unit.ast.operands.get(span.start as usize),
            _ => None,
        }
    }

    /// Lowers `mov` of operands that are not in braces.
    fn mov_plain(&mut self, inst: &Inst, to: &ast::Operand, from: &ast::Operand, ty: Type) {
        // A vector register is packed or unpacked.
        if let Some(spec) = self.vector_register(to, ty) {
            self.operand(1, from, &source(ty));
            self.operand(
                0,
                to,
                &OperandSpec {
                    role: Role::Dest,
                    ..spec
                },
            );
            return self.emit(inst, Op::Unpack { ty });
        }
        self.operand(0, to, &dest(ty, false));
        if let Some(spec) = self.vector_register(from, ty) {
            self.operand(1, from, &spec);
            return self.emit(inst, Op::Pack { ty });
        }
        self.mov_source(inst, from, ty);
        self.emit(inst, Op::Mov { ty });
    }

    /// Returns the specification of an operand that is a vector register, such as `.v2 .b32` for a value of type
    /// `.b64`; `None` if the operand is anything else, or if such elements do not make up a value of type `ty`.
    fn vector_register(&self, operand: &ast::Operand, ty: Type) -> Option<OperandSpec> {
        let OperandKind::Name(name, Selector::None) = operand.kind else {
            return None;
        };
        match self.resolve(name) {
            Some(Symbol::Reg { vec, .. }) if vec > 1 => {
                let part = part_type(ty, u32::from(vec))?;
                Some(OperandSpec { vec, ..source(part) })
            }
            _ => None,
        }
    }

    /// Lowers `mov` of vectors, such as `mov.v4.u32 {a, b, c, d}, %tid`, to one `mov` per element.
    fn mov_vector(&mut self, inst: &Inst, to: &ast::Operand, from: &ast::Operand, ty: Type, vec: u8) {
        self.operand(0, to, &OperandSpec { vec, ..dest(ty, true) });
        let vector = match from.kind {
            OperandKind::Vector(_) => true,
            OperandKind::Name(name, Selector::None) => {
                matches!(self.resolve(name), Some(Symbol::Reg { vec: 2.., .. }))
            }
            _ => false,
        };
        let special = match from.kind {
            OperandKind::Name(name, Selector::None) if self.resolve(name).is_none() => {
                let special = self.unit.specials.get(&name).copied();
                special.filter(|special| special.vector).map(|special| (name, special))
            }
            _ => None,
        };
        match special {
            Some((name, special)) if vec == 4 => {
                self.special_since(name, special, from.pos);
                self.errors.mismatch |= !fits_special(ty, special);
                let elements = (0..vec).map(|i| specials::element(special.register, i));
                self.srcs
                    .extend(elements.map(|e| e.map_or(Operand::Imm(0), Operand::Special)));
            }
            Some(_) => self.refuse(inst.pos, "Argument vector size mismatch"),
            None if vector => self.operand(1, from, &OperandSpec { vec, ..source(ty) }),
            None => {
                // All elements get the same value.
                self.mov_source(inst, from, ty);
                if let [value] = self.srcs[..] {
                    self.srcs.resize(usize::from(vec), value);
                }
            }
        }
        if !self.errors.is_empty() || self.srcs.len() != self.dsts.len() {
            return;
        }
        let (dsts, mut srcs) = (std::mem::take(&mut self.dsts), std::mem::take(&mut self.srcs));
        // A destination may be the source of a later element, so all sources are read first.
        let read = |reg: &Option<Reg>| reg.is_some_and(|reg| srcs.contains(&Operand::Reg(reg)));
        if dsts.iter().any(read) {
            for src in &mut srcs {
                let temporary = self.new_register(ty);
                self.dsts = vec![Some(temporary)];
                self.srcs = vec![*src];
                self.emit(inst, Op::Mov { ty });
                *src = Operand::Reg(temporary);
            }
        }
        for (dst, src) in dsts.into_iter().zip(srcs) {
            self.dsts = vec![dst];
            self.srcs = vec![src];
            self.emit(inst, Op::Mov { ty });
        }
    }

    /// Checks and adds the source of `mov`.
    fn mov_source(&mut self, inst: &Inst, from: &ast::Operand, ty: Type) {
        let (name, selector, offset, index) = match from.kind {
            OperandKind::Name(name, selector) => (name, selector, 0, false),
            OperandKind::Offset { name, offset, index } => (name, Selector::None, offset, index),
            OperandKind::Subscript { name, index, offset } => {
                self.errors.mismatch |= !holds_address(ty);
                if let Some(address) = self.subscript(name, index, offset, from.pos) {
                    self.srcs.push(address.operand);
                }
                return;
            }
            OperandKind::Not(_) if ty == Type::Pred => {
                return self.operand(
                    1,
                    from,
                    &OperandSpec {
                        role: Role::Negatable,
                        ..source(ty)
                    },
                );
            }
            _ => return self.operand(1, from, &source(ty)),
        };
        match self.resolve(name) {
            Some(Symbol::Reg { .. }) => {
                if matches!(from.kind, OperandKind::Offset { .. }) {
                    self.errors.mismatch = true;
                    return;
                }
                self.operand(1, from, &source(ty));
            }
            Some(Symbol::Function(id)) => {
                self.errors.mismatch |= !holds_address(ty);
                self.note_function(id);
                self.srcs.push(Operand::Address(Address::Function(id)));
            }
            Some(_) => {
                if selector != Selector::None {
                    return self.say(from.pos, "Unknown field".to_owned());
                }
                self.errors.mismatch |= !holds_address(ty);
                if let Some(address) = self.named_address(name, offset, index, from.pos) {
                    self.srcs.push(address.operand);
                }
            }
            None => match self.unit.specials.get(&name).copied() {
                None => self.unknown(name, from.pos),
                Some(special) => {
                    self.special_since(name, special, from.pos);
                    let element = match selector {
                        Selector::Element(i) if special.vector => specials::element(special.register, i),
                        Selector::None if !special.vector => Some(special.register),
                        _ => {
                            let message = "Argument vector size mismatch for instruction 'mov'";
                            return self.say(inst.pos, message.to_owned());
                        }
                    };
                    if ty.is_float() {
                        let message = "Special register argument not allowed for instruction 'mov'";
                        return self.say(inst.pos, message.to_owned());
                    }
                    self.errors.mismatch |= !fits_special(ty, special);
                    self.srcs.push(element.map_or(Operand::Imm(0), Operand::Special));
                }
            },
        }
    }
}

/// Returns true if `mov` can have a special register, or an element of one, as the source of a value of type `ty`. The
/// width may also be an older or newer one: vector registers such as `%tid` had 16 bits before PTX 2.0, and `%gridid`
/// has 64 since PTX 3.0.
fn fits_special(ty: Type, special: SpecialReg) -> bool {
    let narrow = special.vector && special.ptx < 20 && ty.size() == 2;
    let wide = special.register == Special::Gridid && ty.size() == 8;
    fits(ty, special.ty, false) || ((narrow || wide) && !ty.is_float())
}
