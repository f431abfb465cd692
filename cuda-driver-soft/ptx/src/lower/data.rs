//! `mov`: of registers, constants, addresses and special registers; packing and unpacking.

use super::operands::{dest, fits, source};
use super::*;
use crate::ast::Operand as Source;
use crate::forms::Spec;
use crate::symbols;

impl<'u> Walker<'u> {
    pub(super) fn mov(&mut self, inst: &Inst, operands: &[Source], ty: Type, vec: u8) {
        let [to, from] = operands else {
            self.faults.mismatch = true;
            return self.note_unknown(operands);
        };
        if vec > 1 {
            return self.mov_vector(inst, to, from, ty, vec);
        }
        // `mov.b32 {a}, b`: braces around one register mean nothing.
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
                let parts = self.unit.ast.operands.get(span.range()).unwrap_or(&[]);
                if parts.iter().all(|part| part.kind == OperandKind::Sink) {
                    let message = "Unable to infer type of vector elements (assuming .b8)";
                    self.say(to.pos, message.to_owned());
                    self.faults.mismatch = true;
                }
                self.operand(1, from, &source(ty));
                let Some(part) = part_type(ty, span.len) else {
                    self.faults.mismatch = true;
                    return;
                };
                let spec = Spec {
                    ty: part,
                    ..dest(part, true)
                };
                self.elements_agree(span, to.pos);
                for element in self.unit.ast.operands.get(span.range()).unwrap_or(&[]) {
                    self.operand(0, element, &spec);
                }
                self.emit(inst, Op::Unpack { ty });
            }
            (_, OperandKind::Vector(span)) => {
                self.operand(0, to, &dest(ty, false));
                let Some(part) = part_type(ty, span.len) else {
                    self.faults.mismatch = true;
                    return;
                };
                self.elements_agree(span, from.pos);
                for element in self.unit.ast.operands.get(span.range()).unwrap_or(&[]) {
                    // A decimal constant is a floating-point value of the element's width.
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

    fn only_element(&self, operand: &Source) -> Option<&'u Source> {
        match operand.kind {
            OperandKind::Vector(span) if span.len == 1 => {
                self.unit.ast.operands.get(span.start as usize)
            }
            _ => None,
        }
    }

    fn mov_plain(&mut self, inst: &Inst, to: &Source, from: &Source, ty: Type) {
        // A vector register on one side: packing or unpacking by its elements.
        if let Some(spec) = self.vector_register(to, ty) {
            self.operand(1, from, &source(ty));
            self.operand(
                0,
                to,
                &Spec {
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

    /// The vector operand that a register is, if its elements make up the bit type.
    fn vector_register(&self, operand: &Source, ty: Type) -> Option<Spec> {
        let OperandKind::Name(name, Selector::None) = operand.kind else {
            return None;
        };
        match self.resolve(name) {
            Some(Symbol::Reg { vec, .. }) if vec > 1 => {
                let part = part_type(ty, u32::from(vec))?;
                Some(Spec {
                    vec,
                    ..source(part)
                })
            }
            _ => None,
        }
    }

    /// `mov.v4.u32 {a, b, c, d}, %tid`, or of vectors of registers: one move per element.
    fn mov_vector(&mut self, inst: &Inst, to: &Source, from: &Source, ty: Type, vec: u8) {
        self.operand(
            0,
            to,
            &Spec {
                vec,
                ..dest(ty, true)
            },
        );
        let vector = match from.kind {
            OperandKind::Vector(_) => true,
            OperandKind::Name(name, Selector::None) => {
                matches!(self.resolve(name), Some(Symbol::Reg { vec: 2.., .. }))
            }
            _ => false,
        };
        let special = match from.kind {
            OperandKind::Name(name, Selector::None) if self.resolve(name).is_none() => self
                .unit
                .specials
                .get(&name)
                .filter(|special| special.vector),
            _ => None,
        };
        match special {
            Some(special) if vec == 4 => {
                self.faults.mismatch |= !fits(ty, special.ty, false);
                let elements = (0..vec).map(|i| symbols::element(special.register, i));
                self.srcs
                    .extend(elements.map(|e| e.map_or(Operand::Imm(0), Operand::Special)));
            }
            Some(_) => self.refuse(inst.pos, "Argument vector size mismatch"),
            None if vector => self.operand(1, from, &Spec { vec, ..source(ty) }),
            None => {
                // One value for all elements.
                self.mov_source(inst, from, ty);
                if let [value] = self.srcs[..] {
                    self.srcs.resize(usize::from(vec), value);
                }
            }
        }
        if !self.faults.is_empty() || self.srcs.len() != self.dsts.len() {
            return;
        }
        let (dsts, mut srcs) = (
            std::mem::take(&mut self.dsts),
            std::mem::take(&mut self.srcs),
        );
        // A destination that is a later element's source: read everything first.
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

    fn mov_source(&mut self, inst: &Inst, from: &Source, ty: Type) {
        let (name, selector, offset, index) = match from.kind {
            OperandKind::Name(name, selector) => (name, selector, 0, false),
            OperandKind::Offset {
                name,
                offset,
                index,
            } => (name, Selector::None, offset, index),
            OperandKind::Subscript {
                name,
                index,
                offset,
            } => {
                self.faults.mismatch |= !holds_address(ty);
                if let Some(place) = self.subscript(name, index, offset, from.pos) {
                    self.srcs.push(place.operand);
                }
                return;
            }
            OperandKind::Not(_) if ty == Type::Pred => {
                return self.operand(
                    1,
                    from,
                    &Spec {
                        role: Role::Predicate,
                        ..source(ty)
                    },
                );
            }
            _ => return self.operand(1, from, &source(ty)),
        };
        match self.resolve(name) {
            Some(Symbol::Reg { .. }) => {
                if matches!(from.kind, OperandKind::Offset { .. }) {
                    self.faults.mismatch = true;
                    return;
                }
                self.operand(1, from, &source(ty));
            }
            Some(Symbol::Function(id)) => {
                self.faults.mismatch |= !holds_address(ty);
                self.note_called(id);
                self.srcs.push(Operand::Address(ir::Address::Function(id)));
            }
            Some(_) => {
                if selector != Selector::None {
                    return self.say(from.pos, "Unknown field".to_owned());
                }
                self.faults.mismatch |= !holds_address(ty);
                if let Some(place) = self.place(name, offset, index, from.pos) {
                    self.srcs.push(place.operand);
                }
            }
            None => match self.unit.specials.get(&name).copied() {
                None => self.unknown(name, from.pos),
                Some(special) => {
                    self.special_since(name, special, from.pos);
                    let element = match selector {
                        Selector::Element(i) if special.vector => {
                            symbols::element(special.register, i)
                        }
                        Selector::None if !special.vector => Some(special.register),
                        _ => {
                            let message = "Argument vector size mismatch for instruction 'mov'";
                            return self.say(inst.pos, message.to_owned());
                        }
                    };
                    // `%tid` and the like were 16 bits wide once.
                    let narrow = special.vector && ty.size() == 2 && !ty.is_float();
                    let wide = matches!(special.register, ir::Special::Gridid)
                        && ty.size() == 8
                        && !ty.is_float();
                    if ty.is_float() {
                        let message = "Special register argument not allowed for instruction 'mov'";
                        return self.say(inst.pos, message.to_owned());
                    }
                    self.faults.mismatch |= !(fits(ty, special.ty, false) || narrow || wide);
                    self.srcs
                        .push(element.map_or(Operand::Imm(0), Operand::Special));
                }
            },
        }
    }
}

/// An integer or bit type.
fn holds_address(ty: Type) -> bool {
    !ty.is_float() && ty != Type::Pred
}

/// The type of each of `count` parts of a value of this bit type.
fn part_type(ty: Type, count: u32) -> Option<Type> {
    let bits = matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::B128);
    if !bits || !matches!(count, 2 | 4) {
        return None;
    }
    match ty.size() / count {
        1 => Some(Type::B8),
        2 => Some(Type::B16),
        4 => Some(Type::B32),
        8 => Some(Type::B64),
        _ => None,
    }
}
