//! Checks operands against the instruction table, and adds them to the current instruction.

use crate::ast::{self, Inst, OperandKind, Pos, Selector, Span};
use crate::diagnostics::Severity;
use crate::forms::{OperandSpec, Role};
use crate::ir::{Op, Operand, Reg, Type};
use crate::names::Name;
use crate::scopes::Symbol;
use crate::specials::{self, SpecialReg};

use super::types::{constant, dest, fits};
use super::walker::Walker;

impl Walker<'_> {
    /// Reports the errors in the operands of an instruction.
    pub(super) fn report_errors(&mut self, inst: &Inst) {
        let mut errors = std::mem::take(&mut self.errors);
        if self.reporter.is_some() {
            for (severity, pos, message) in errors.messages.drain(..) {
                self.report(severity, pos, message);
            }
            if errors.mismatch || !errors.unknown.is_empty() {
                self.error(inst.pos, format!("Arguments mismatch for instruction '{}'", self.name));
            }
            // ptxas reports undeclared names after all other errors of the function.
            self.unknown.append(&mut errors.unknown);
        }
        self.errors = errors;
    }

    /// Adds errors for the undeclared names in operands that are not checked otherwise.
    pub(super) fn note_unknown(&mut self, operands: &[ast::Operand]) {
        let unit = self.unit;
        for operand in operands {
            let name = match operand.kind {
                OperandKind::Name(name, _)
                | OperandKind::Not(name)
                | OperandKind::Neg(name, _)
                | OperandKind::Offset { name, .. }
                | OperandKind::Address { base: Some(name), .. } => name,
                OperandKind::Subscript { name, index, .. } => {
                    self.note_unknown_name(name, operand.pos);
                    index
                }
                OperandKind::Vector(span)
                | OperandKind::Multi(span)
                | OperandKind::Pair(span)
                | OperandKind::List(span) => {
                    self.note_unknown(unit.ast.operands(span));
                    continue;
                }
                _ => continue,
            };
            self.note_unknown_name(name, operand.pos);
        }
    }

    /// Adds an error for a name that is neither declared nor a special register.
    fn note_unknown_name(&mut self, name: Name, pos: Pos) {
        if self.resolve(name).is_none() && !self.unit.specials.contains_key(&name) {
            self.unknown(name, pos);
        }
    }

    /// Returns the register that a name with a selector means. Returns `None` after adding an error if the name is not
    /// declared or the selector does not fit. Returns `None` without an error, which the caller must add, for a special
    /// register and for a name without a selector that means something else.
    pub(super) fn register(&mut self, name: Name, selector: Selector, pos: Pos) -> Option<(Reg, Type)> {
        match (self.resolve(name), selector) {
            (Some(Symbol::Reg { first, ty, vec: 1 }), Selector::None) => Some((Reg(first), ty)),
            (Some(Symbol::Reg { first, ty, vec }), Selector::Element(i)) if i < vec && vec > 1 => {
                Some((Reg(first + u32::from(i)), ty))
            }
            (Some(Symbol::Reg { vec, .. }), Selector::None) if vec > 1 => {
                self.refuse(pos, "Vector operand is not allowed");
                None
            }
            (Some(Symbol::Reg { vec: 1, .. }), _) => {
                self.refuse(pos, "Video selector is not allowed on source operand");
                None
            }
            (Some(_), Selector::None) => None,
            (Some(_), _) => {
                self.say(pos, "Unknown field".to_owned());
                None
            }
            (None, _) => {
                if !self.unit.specials.contains_key(&name) {
                    self.unknown(name, pos);
                }
                None
            }
        }
    }

    /// Checks an operand and adds it to the destinations or the sources. Addresses are left to the caller.
    pub(super) fn operand(&mut self, index: usize, operand: &ast::Operand, spec: &OperandSpec) {
        let braces = spec.braces && matches!(operand.kind, OperandKind::Vector(_));
        if spec.vec > 1 || braces {
            return match (spec.role, operand.kind) {
                (Role::DestPair, OperandKind::Pair(span)) => {
                    self.vector_and_predicate(index, span, spec);
                }
                (Role::DestPair, _) => self.vector(
                    index,
                    operand,
                    &OperandSpec {
                        role: Role::Dest,
                        ..*spec
                    },
                ),
                _ => self.vector(index, operand, spec),
            };
        }
        self.errors.mismatch |= spec.always_braces;
        match (spec.role, operand.kind) {
            (Role::Dest, _) => self.destination(index, operand, spec),
            (Role::DestPair | Role::RequiredPair, OperandKind::Pair(span)) => {
                let first = spec.pair_first();
                let second = OperandSpec {
                    ty: Type::Pred,
                    sink: true,
                    ..*spec
                };
                let parts = self.unit.ast.operands(span);
                for (part, spec) in parts.iter().zip([first, second]) {
                    self.destination(index, part, &spec);
                }
            }
            (Role::RequiredPair, _) => self.refuse(operand.pos, "Predicate output expected"),
            (Role::DestPair, _) => self.destination(index, operand, &spec.pair_first()),
            (Role::Source | Role::Negatable, _) => self.source(index, operand, spec),
            (Role::Constant, kind) => match constant(kind, spec.ty) {
                Some(bits) => self.srcs.push(Operand::Imm(bits)),
                None => self.errors.mismatch = true,
            },
            (Role::Address | Role::Tensor, _) => {}
        }
    }

    /// Checks and adds a destination.
    fn destination(&mut self, index: usize, operand: &ast::Operand, spec: &OperandSpec) {
        self.dest_float = spec.ty.is_float();
        match operand.kind {
            OperandKind::Name(name, Selector::Part(_))
                if matches!(self.resolve(name), Some(Symbol::Reg { vec: 1, .. })) =>
            {
                self.refuse(operand.pos, "Video selector is not allowed on destination");
            }
            OperandKind::Name(name, selector) => {
                if let Some((reg, ty)) = self.register(name, selector, operand.pos) {
                    self.errors.mismatch |= !fits(spec.ty, ty, spec.wider);
                    self.dsts.push(Some(reg));
                } else {
                    self.no_register(index, name, operand.pos);
                }
            }
            OperandKind::Sink if spec.sink => self.dsts.push(None),
            OperandKind::Sink => self.no_sink(operand.pos),
            OperandKind::Pair(_) => self.refuse(operand.pos, "Predicate output not allowed"),
            OperandKind::Vector(_) => self.refuse(operand.pos, "Vector operand is not allowed"),
            OperandKind::Int(_) | OperandKind::F32(_) | OperandKind::F64(_) => {
                self.refuse(operand.pos, "Result register required");
            }
            _ => self.errors.mismatch = true,
        }
    }

    /// Adds an error for `_` as destination.
    pub(super) fn no_sink(&mut self, pos: Pos) {
        let message = format!("Result discard mode is not allowed for instruction '{}'", self.name);
        self.errors.messages.push((Severity::Fatal, pos, message));
    }

    /// Adds an error for a name that does not mean a register, unless [`register`](Self::register) has added one.
    fn no_register(&mut self, index: usize, name: Name, pos: Pos) {
        if self.unit.specials.contains_key(&name) {
            return self.refuse(pos, "Special register argument not allowed");
        }
        match self.resolve(name) {
            None | Some(Symbol::Reg { .. }) => {}
            Some(Symbol::Label(_) | Symbol::Targets { .. } | Symbol::Prototype(_)) => {
                self.errors.mismatch = true;
            }
            Some(_) => {
                let message = format!("Argument {index} of instruction '{}': must be register", self.name);
                self.say(pos, message);
            }
        }
    }

    /// Checks and adds a source.
    fn source(&mut self, index: usize, operand: &ast::Operand, spec: &OperandSpec) {
        match operand.kind {
            OperandKind::Name(name, selector) => {
                if let Some((reg, ty)) = self.register(name, selector, operand.pos) {
                    self.errors.mismatch |= !fits(spec.ty, ty, spec.wider);
                    return self.srcs.push(Operand::Reg(reg));
                }
                match self.unit.specials.get(&name).copied() {
                    // `mov` packs and unpacks special registers.
                    Some(special) if self.root == "mov" && spec.ty != Type::Pred => {
                        // Incompatible elements already have a message.
                        let reported = !self.errors.messages.is_empty();
                        self.errors.mismatch |= !reported && spec.ty.size() != special.ty.size();
                        self.special(name, special, selector, operand.pos);
                    }
                    // Of the other instructions, only `cvt` has special registers as sources.
                    Some(special) if self.root == "cvt" && !spec.ty.is_float() && !self.dest_float => {
                        self.errors.mismatch |= !fits(spec.ty, special.ty, true);
                        self.special(name, special, selector, operand.pos);
                    }
                    _ => self.no_register(index, name, operand.pos),
                }
            }
            OperandKind::Not(name) if spec.ty == Type::Pred && spec.role == Role::Negatable => {
                if let Some((reg, ty)) = self.register(name, Selector::None, operand.pos) {
                    self.errors.mismatch |= ty != Type::Pred;
                    self.srcs.push(Operand::NotReg(reg));
                } else {
                    self.no_register(index, name, operand.pos);
                }
            }
            OperandKind::Int(_) | OperandKind::F32(_) | OperandKind::F64(_) => match constant(operand.kind, spec.ty) {
                Some(bits) => self.srcs.push(Operand::Imm(bits)),
                None => self.errors.mismatch = true,
            },
            OperandKind::Neg(name, _) | OperandKind::Not(name) => {
                if self.resolve(name).is_none() {
                    self.unknown(name, operand.pos);
                } else {
                    self.refuse(operand.pos, "Operand negation not allowed");
                }
            }
            OperandKind::Vector(_) => self.refuse(operand.pos, "Vector operand is not allowed"),
            _ => {
                self.errors.mismatch = true;
                self.note_unknown(std::slice::from_ref(operand));
            }
        }
    }

    /// Checks that the module's version and target have a special register.
    pub(super) fn special_since(&mut self, name: Name, special: SpecialReg, pos: Pos) {
        if self.reporter.is_some() {
            let text = self.text(name);
            self.require(pos, &text, special.ptx, special.sm);
        }
    }

    /// Adds a special register to the sources of an instruction that requires a register, by a `mov` before it.
    fn special(&mut self, name: Name, special: SpecialReg, selector: Selector, pos: Pos) {
        let element = match selector {
            Selector::Element(i) if special.vector => specials::element(special.register, i),
            Selector::None if !special.vector => Some(special.register),
            _ => {
                let message = format!("Argument vector size mismatch for instruction '{}'", self.root);
                return self.say(pos, message);
            }
        };
        self.special_since(name, special, pos);
        let value = element.map_or(Operand::Imm(0), Operand::Special);
        let mov = Op::Mov { ty: special.ty };
        let register = self.emit_before(mov, special.ty, &[value], pos.line);
        self.srcs.push(Operand::Reg(register));
    }

    /// Checks that the elements of a vector have one width, and are not a mix of integers and floating-point values.
    pub(super) fn elements_agree(&mut self, span: Span, pos: Pos) {
        let (mut size, mut integer, mut float, mut wrong) = (None, false, false, false);
        for part in self.unit.ast.operands(span) {
            let ty = match part.kind {
                OperandKind::Name(name, _) => match self.resolve(name) {
                    Some(Symbol::Reg { ty, .. }) => ty,
                    _ => match self.unit.specials.get(&name) {
                        Some(special) => {
                            wrong |= *size.get_or_insert(special.ty.size()) != special.ty.size();
                            continue;
                        }
                        None => continue,
                    },
                },
                OperandKind::Int(_) => {
                    integer = true;
                    continue;
                }
                OperandKind::F32(_) | OperandKind::F64(_) => {
                    float = true;
                    continue;
                }
                _ => continue,
            };
            wrong |= *size.get_or_insert(ty.size()) != ty.size();
            float |= ty.is_float();
            integer |= matches!(ty, Type::U8 | Type::U16 | Type::U32 | Type::U64)
                || matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64);
        }
        if wrong {
            self.say(pos, "Incompatible elements of vector expression".to_owned());
        } else if integer && float {
            let message = format!(
                "Vector with elements of different types are not allowed in {} instruction",
                self.name
            );
            self.say(pos, message);
        }
    }

    /// Checks and adds `{a, b, c, d}|p`.
    fn vector_and_predicate(&mut self, index: usize, span: Span, spec: &OperandSpec) {
        let parts = self.unit.ast.operands(span);
        if let [vector, predicate] = parts {
            self.vector(
                index,
                vector,
                &OperandSpec {
                    role: Role::Dest,
                    ..*spec
                },
            );
            self.destination(index, predicate, &dest(Type::Pred, true));
        }
    }

    /// Checks and adds the elements of `{a, b}` or of a vector register.
    fn vector(&mut self, index: usize, operand: &ast::Operand, spec: &OperandSpec) {
        let unit = self.unit;
        let element = OperandSpec {
            vec: 1,
            braces: false,
            always_braces: false,
            sink: true,
            ..*spec
        };
        match operand.kind {
            OperandKind::Vector(span) if span.len == u32::from(spec.vec) => {
                let mut sinks = 0;
                for part in unit.ast.operands(span) {
                    sinks += u32::from(part.kind == OperandKind::Sink);
                    self.operand(index, part, &element);
                }
                self.elements_agree(span, operand.pos);
                if sinks == span.len {
                    let message = "Unable to infer type of vector elements (assuming .b8)";
                    self.say(operand.pos, message.to_owned());
                    self.errors.mismatch = true;
                }
            }
            OperandKind::Name(name, Selector::None) => match self.resolve(name) {
                Some(Symbol::Reg { first, ty, vec }) if vec == spec.vec => {
                    self.errors.mismatch |= !fits(spec.ty, ty, spec.wider);
                    for reg in (first..).take(usize::from(vec)).map(Reg) {
                        match spec.role {
                            Role::Dest => self.dsts.push(Some(reg)),
                            _ => self.srcs.push(Operand::Reg(reg)),
                        }
                    }
                }
                None => self.unknown(name, operand.pos),
                Some(_) => self.errors.mismatch = true,
            },
            _ => {
                self.errors.mismatch = true;
                self.note_unknown(std::slice::from_ref(operand));
            }
        }
    }
}
