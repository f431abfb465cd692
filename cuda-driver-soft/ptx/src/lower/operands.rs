//! Operands against what the instruction table says of them.

use super::*;
use crate::ast::Operand as Source;
use crate::forms::Spec;
use crate::symbols::{self, SpecialReg};

/// What is wrong with the operands of one instruction.
#[derive(Default)]
pub(super) struct Faults {
    /// A type, width or count that does not fit.
    pub(super) mismatch: bool,
    unknown: Vec<(Name, Pos)>,
    /// What can be said more exactly.
    said: Vec<(Pos, String)>,
}

impl Faults {
    pub(super) fn is_empty(&self) -> bool {
        !self.mismatch && self.unknown.is_empty() && self.said.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.mismatch = false;
        self.unknown.clear();
        self.said.clear();
    }
}

/// A source operand of this type.
pub(super) fn source(ty: Type) -> Spec {
    Spec {
        role: Role::Source,
        ty,
        wider: false,
        sink: false,
        vec: 1,
        braces: false,
        always_braces: false,
    }
}

/// A destination operand of this type.
pub(super) fn dest(ty: Type, sink: bool) -> Spec {
    Spec {
        role: Role::Dest,
        ty,
        wider: false,
        sink,
        vec: 1,
        braces: false,
        always_braces: false,
    }
}

/// Whether a register declared as `reg` can stand where the instruction says `ty`.
pub(super) fn fits(ty: Type, reg: Type, wider: bool) -> bool {
    use Type::*;
    if ty == Pred || reg == Pred {
        return ty == reg;
    }
    let bits = |t: Type| matches!(t, B8 | B16 | B32 | B64 | B128);
    let integer = |t: Type| matches!(t, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64);
    // A packed pair of halves counts as 32 bits of no particular kind.
    let packed = |t: Type| matches!(t, F16x2 | BF16x2 | U16x2 | S16x2 | E4M3x2 | E5M2x2 | TF32);
    let kind = bits(ty)
        || bits(reg)
        || (integer(ty) && (integer(reg) || reg == F16x2))
        || (packed(ty) && reg == F16x2 && ty != BF16x2)
        || (ty == reg && matches!(ty, F16 | F32 | F64));
    // The alternate formats have no registers of their own.
    let wider = wider && !matches!(ty, BF16 | BF16x2);
    let width = if wider {
        reg.size() >= ty.size()
    } else {
        reg.size() == ty.size()
    };
    kind && width
}

/// The bits of a constant of the written kind where the instruction says `ty`; `None` if it does not go there.
pub(super) fn constant(kind: OperandKind, ty: Type) -> Option<u64> {
    use Type::*;
    match kind {
        OperandKind::Int(bits) => match ty {
            Pred => Some(u64::from(bits != 0)),
            F16 | F16x2 | BF16 | BF16x2 | F32 | F64 | U16x2 | S16x2 | TF32 | E4M3 | E5M2
            | E4M3x2 | E5M2x2 => None,
            _ if ty.size() >= 8 => Some(bits),
            _ => Some(bits & ((1 << (8 * ty.size())) - 1)),
        },
        OperandKind::F32(bits) => match ty {
            F32 | B32 => Some(u64::from(bits)),
            F64 => Some(f64::from(f32::from_bits(bits)).to_bits()),
            _ => None,
        },
        OperandKind::F64(bits) => match ty {
            F64 | B64 => Some(bits),
            F32 => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
            _ => None,
        },
        _ => None,
    }
}

impl Walker<'_> {
    pub(super) fn say(&mut self, pos: Pos, message: String) {
        self.faults.said.push((pos, message));
    }

    /// Notes a name that means nothing; that of a label further down is known, only of the wrong kind.
    pub(super) fn unknown(&mut self, name: Name, pos: Pos) {
        if self.reporter.is_some() && self.is_label(name) {
            self.faults.mismatch = true;
        } else {
            self.faults.unknown.push((name, pos));
        }
    }

    /// Reports what was found wrong with the operands of an instruction.
    pub(super) fn report_faults(&mut self, inst: &Inst) {
        let mut faults = std::mem::take(&mut self.faults);
        if self.reporter.is_some() {
            for (pos, message) in faults.said.drain(..) {
                self.error(pos, message);
            }
            if faults.mismatch || !faults.unknown.is_empty() {
                self.error(
                    inst.pos,
                    format!("Arguments mismatch for instruction '{}'", self.name),
                );
            }
            // ptxas names them after all else that is wrong with the function.
            self.unknown.append(&mut faults.unknown);
        }
        self.faults = faults;
    }

    /// Notes the names that mean nothing, of operands that are not looked at more closely.
    pub(super) fn note_unknown(&mut self, operands: &[Source]) {
        let unit = self.unit;
        for operand in operands {
            let name = match operand.kind {
                OperandKind::Name(name, _)
                | OperandKind::Not(name)
                | OperandKind::Neg(name, _)
                | OperandKind::Offset { name, .. }
                | OperandKind::Subscript { name, .. }
                | OperandKind::Address {
                    base: Some(name), ..
                } => name,
                OperandKind::Vector(span)
                | OperandKind::Multi(span)
                | OperandKind::Pair(span)
                | OperandKind::List(span) => {
                    self.note_unknown(unit.ast.operands.get(span.range()).unwrap_or(&[]));
                    continue;
                }
                _ => continue,
            };
            if self.resolve(name).is_none() && !unit.specials.contains_key(&name) {
                self.unknown(name, operand.pos);
            }
        }
    }

    /// Says that something is not allowed or expected "for instruction 'x'".
    pub(super) fn refuse(&mut self, pos: Pos, what: &str) {
        self.say(pos, format!("{what} for instruction '{}'", self.name));
    }

    /// The register that a name with a selector means. Names that mean nothing are noted; of those that mean something
    /// else the caller has to speak.
    pub(super) fn register(
        &mut self,
        name: Name,
        selector: Selector,
        pos: Pos,
    ) -> Option<(Reg, Type)> {
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

    /// Takes one operand as the table says: into the destinations or the sources.
    pub(super) fn operand(&mut self, index: usize, operand: &Source, spec: &Spec) {
        let braces = spec.braces && matches!(operand.kind, OperandKind::Vector(_));
        if spec.vec > 1 || braces {
            return match (spec.role, operand.kind) {
                (Role::DestPair, OperandKind::Pair(span)) => {
                    self.vector_and_predicate(index, span, spec);
                }
                (Role::DestPair, _) => self.vector(
                    index,
                    operand,
                    &Spec {
                        role: Role::Dest,
                        ..*spec
                    },
                ),
                _ => self.vector(index, operand, spec),
            };
        }
        self.faults.mismatch |= spec.always_braces;
        match (spec.role, operand.kind) {
            (Role::Dest, _) => self.destination(index, operand, spec),
            (Role::DestPair | Role::DestBoth, OperandKind::Pair(span)) => {
                let first = spec.pair_first();
                let second = Spec {
                    ty: Type::Pred,
                    sink: true,
                    ..*spec
                };
                let parts = self.unit.ast.operands.get(span.range()).unwrap_or(&[]);
                for (part, spec) in parts.iter().zip([first, second]) {
                    self.destination(index, part, &spec);
                }
            }
            (Role::DestBoth, _) => self.refuse(operand.pos, "Predicate output expected"),
            (Role::DestPair, _) => self.destination(index, operand, &spec.pair_first()),
            (Role::Source | Role::Predicate, _) => self.source(index, operand, spec),
            (Role::Constant, kind) => match constant(kind, spec.ty) {
                Some(bits) => self.srcs.push(Operand::Imm(bits)),
                None => self.faults.mismatch = true,
            },
            (Role::Address, _) => {}
        }
    }

    fn destination(&mut self, index: usize, operand: &Source, spec: &Spec) {
        self.dest_float = spec.ty.is_float();
        match operand.kind {
            OperandKind::Name(name, Selector::Part(_))
                if matches!(self.resolve(name), Some(Symbol::Reg { vec: 1, .. })) =>
            {
                self.refuse(operand.pos, "Video selector is not allowed on destination");
            }
            OperandKind::Name(name, selector) => {
                if let Some((reg, ty)) = self.register(name, selector, operand.pos) {
                    self.faults.mismatch |= !fits(spec.ty, ty, spec.wider);
                    self.dsts.push(Some(reg));
                } else {
                    self.no_register(index, name, operand.pos);
                }
            }
            OperandKind::Sink if spec.sink => self.dsts.push(None),
            OperandKind::Sink => {
                let message = format!(
                    "Result discard mode is not allowed for instruction '{}'",
                    self.name
                );
                self.report(Severity::Fatal, operand.pos, message);
            }
            OperandKind::Pair(_) => self.refuse(operand.pos, "Predicate output not allowed"),
            OperandKind::Vector(_) => self.refuse(operand.pos, "Vector operand is not allowed"),
            OperandKind::Int(_) | OperandKind::F32(_) | OperandKind::F64(_) => {
                self.refuse(operand.pos, "Result register required");
            }
            _ => self.faults.mismatch = true,
        }
    }

    /// A name where a register should be.
    fn no_register(&mut self, index: usize, name: Name, pos: Pos) {
        if self.unit.specials.contains_key(&name) {
            return self.refuse(pos, "Special register argument not allowed");
        }
        match self.resolve(name) {
            None | Some(Symbol::Reg { .. }) => {}
            Some(Symbol::Label(_) | Symbol::Targets { .. } | Symbol::Prototype(_)) => {
                self.faults.mismatch = true;
            }
            Some(_) => {
                let message = format!(
                    "Argument {index} of instruction '{}': must be register",
                    self.name
                );
                self.say(pos, message);
            }
        }
    }

    fn source(&mut self, index: usize, operand: &Source, spec: &Spec) {
        match operand.kind {
            OperandKind::Name(name, selector) => {
                if let Some((reg, ty)) = self.register(name, selector, operand.pos) {
                    self.faults.mismatch |= !fits(spec.ty, ty, spec.wider);
                    return self.srcs.push(Operand::Reg(reg));
                }
                match self.unit.specials.get(&name).copied() {
                    // What `mov` packs, or takes apart.
                    Some(special) if self.root == "mov" && spec.ty != Type::Pred => {
                        // What elements that do not go together are is said already.
                        let said = !self.faults.said.is_empty();
                        self.faults.mismatch |= !said && spec.ty.size() != special.ty.size();
                        self.special(name, special, selector, operand.pos);
                    }
                    // Of the instructions of the table only `cvt` takes a special register.
                    Some(special)
                        if self.root == "cvt" && !spec.ty.is_float() && !self.dest_float =>
                    {
                        self.faults.mismatch |= !fits(spec.ty, special.ty, true);
                        self.special(name, special, selector, operand.pos);
                    }
                    _ => self.no_register(index, name, operand.pos),
                }
            }
            OperandKind::Not(name) if spec.ty == Type::Pred && spec.role == Role::Predicate => {
                if let Some((reg, ty)) = self.register(name, Selector::None, operand.pos) {
                    self.faults.mismatch |= ty != Type::Pred;
                    self.srcs.push(Operand::NotReg(reg));
                } else {
                    self.no_register(index, name, operand.pos);
                }
            }
            OperandKind::Int(_) | OperandKind::F32(_) | OperandKind::F64(_) => {
                match constant(operand.kind, spec.ty) {
                    Some(bits) => self.srcs.push(Operand::Imm(bits)),
                    None => self.faults.mismatch = true,
                }
            }
            OperandKind::Neg(name, _) | OperandKind::Not(name) => {
                if self.resolve(name).is_none() {
                    self.unknown(name, operand.pos);
                } else {
                    self.refuse(operand.pos, "Operand negation not allowed");
                }
            }
            OperandKind::Vector(_) => self.refuse(operand.pos, "Vector operand is not allowed"),
            _ => {
                self.faults.mismatch = true;
                self.note_unknown(std::slice::from_ref(operand));
            }
        }
    }

    /// Checks that the version and target of the module have a special register.
    pub(super) fn special_since(&mut self, name: Name, special: SpecialReg, pos: Pos) {
        if self.reporter.is_some() {
            let text = self.text(name);
            self.require(pos, &text, special.ptx, special.sm);
        }
    }

    /// A special register as a source of an instruction that wants a register: through a register.
    fn special(&mut self, name: Name, special: SpecialReg, selector: Selector, pos: Pos) {
        let element = match selector {
            Selector::Element(i) if special.vector => symbols::element(special.register, i),
            Selector::None if !special.vector => Some(special.register),
            _ => {
                let message = format!(
                    "Argument vector size mismatch for instruction '{}'",
                    self.root
                );
                return self.say(pos, message);
            }
        };
        self.special_since(name, special, pos);
        let temporary = self.new_register(special.ty);
        let value = element.map_or(Operand::Imm(0), Operand::Special);
        let (dsts, srcs) = (
            std::mem::take(&mut self.dsts),
            std::mem::take(&mut self.srcs),
        );
        self.dsts.push(Some(temporary));
        self.srcs.push(value);
        self.emit_guarded(None, Op::Mov { ty: special.ty }, pos.line);
        (self.dsts, self.srcs) = (dsts, srcs);
        self.srcs.push(Operand::Reg(temporary));
    }

    /// The elements of a vector are registers of one width, and not integers beside floating-point values.
    pub(super) fn elements_agree(&mut self, span: Span, pos: Pos) {
        let (mut size, mut integer, mut float, mut wrong) = (None, false, false, false);
        for part in self.unit.ast.operands.get(span.range()).unwrap_or(&[]) {
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

    /// `{a, b}`, or a vector register: one operand per element.
    /// `{a, b, c, d}|p`
    fn vector_and_predicate(&mut self, index: usize, span: Span, spec: &Spec) {
        let parts = self.unit.ast.operands.get(span.range()).unwrap_or(&[]);
        if let [vector, predicate] = parts {
            self.vector(
                index,
                vector,
                &Spec {
                    role: Role::Dest,
                    ..*spec
                },
            );
            self.destination(index, predicate, &dest(Type::Pred, true));
        }
    }

    fn vector(&mut self, index: usize, operand: &Source, spec: &Spec) {
        let unit = self.unit;
        let element = Spec {
            vec: 1,
            braces: false,
            always_braces: false,
            sink: true,
            ..*spec
        };
        match operand.kind {
            OperandKind::Vector(span) if span.len == u32::from(spec.vec) => {
                let mut sinks = 0;
                for part in unit.ast.operands.get(span.range()).unwrap_or(&[]) {
                    sinks += u32::from(part.kind == OperandKind::Sink);
                    self.operand(index, part, &element);
                }
                self.elements_agree(span, operand.pos);
                if sinks == span.len {
                    let message = "Unable to infer type of vector elements (assuming .b8)";
                    self.say(operand.pos, message.to_owned());
                    self.faults.mismatch = true;
                }
            }
            OperandKind::Name(name, Selector::None) => match self.resolve(name) {
                Some(Symbol::Reg { first, ty, vec }) if vec == spec.vec => {
                    self.faults.mismatch |= !fits(spec.ty, ty, spec.wider);
                    for reg in (first..).take(usize::from(vec)).map(Reg) {
                        match spec.role {
                            Role::Dest => self.dsts.push(Some(reg)),
                            _ => self.srcs.push(Operand::Reg(reg)),
                        }
                    }
                }
                None => self.unknown(name, operand.pos),
                Some(_) => self.faults.mismatch = true,
            },
            _ => {
                self.faults.mismatch = true;
                self.note_unknown(std::slice::from_ref(operand));
            }
        }
    }
}
