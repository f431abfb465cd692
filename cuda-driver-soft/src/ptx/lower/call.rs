//! `call`: direct, or through a register with a prototype or a list of targets.

use super::data::immediate;
use super::operands::fits;
use super::*;
use crate::ir::{CallSlot, Callee};
use crate::ptx::ast::Operand as Source;
use std::ops::Range;

impl Walker<'_> {
    /// A verifying walk notes that this function is needed.
    pub(super) fn note_called(&mut self, id: FuncId) {
        if let Some(called) = self
            .reporter
            .as_mut()
            .and_then(|r| r.called.get_mut(id.0 as usize))
        {
            *called = true;
        }
    }

    pub(super) fn call(&mut self, inst: &Inst, operands: &[Source], uni: bool) {
        let unit = self.unit;
        let list = |operand: &Source| match operand.kind {
            OperandKind::List(span) => Some(unit.ast.operands.get(span.range()).unwrap_or(&[])),
            _ => None,
        };
        let mut rest = operands;
        let mut rets: &[Source] = &[];
        if let Some((first, others)) = rest.split_first()
            && let Some(found) = list(first)
        {
            (rets, rest) = (found, others);
        }
        let callee = match rest.split_first() {
            Some((
                Source {
                    kind: OperandKind::Name(name, Selector::None),
                    pos,
                },
                others,
            )) => {
                rest = others;
                (*name, *pos)
            }
            _ => {
                self.faults.mismatch = true;
                return self.note_unknown(operands);
            }
        };
        let mut args: &[Source] = &[];
        if let Some((first, others)) = rest.split_first()
            && let Some(found) = list(first)
        {
            (args, rest) = (found, others);
        }
        let proto = match rest {
            [] => None,
            [
                Source {
                    kind: OperandKind::Name(name, Selector::None),
                    pos,
                },
            ] => Some((*name, *pos)),
            _ => {
                self.faults.mismatch = true;
                return;
            }
        };
        self.call_parts(inst, rets, callee, args, proto, uni);
    }

    fn call_parts(
        &mut self,
        inst: &Inst,
        rets: &[Source],
        (callee, pos): (Name, Pos),
        args: &[Source],
        proto: Option<(Name, Pos)>,
        uni: bool,
    ) {
        let unit = self.unit;
        let (callee, returns, params): (Callee, Range<u32>, Range<u32>) = match self.resolve(callee)
        {
            Some(Symbol::Function(id)) => {
                self.note_called(id);
                let Some(signature) = unit.functions.get(id.0 as usize) else {
                    return;
                };
                if signature.entry {
                    return self.say(
                        pos,
                        format!("Illegal call of entry function '{}'", self.text(callee)),
                    );
                }
                (
                    Callee::Direct(id),
                    signature.returns.clone(),
                    signature.params.clone(),
                )
            }
            Some(Symbol::Reg { first, ty, vec: 1 }) => {
                self.faults.mismatch |= !fits(Type::U64, ty, false);
                self.srcs.push(Operand::Reg(Reg(first)));
                let Some((name, pos)) = proto else {
                    return self.say(
                        inst.pos,
                        "Indirect call needs a prototype or a list of targets".to_owned(),
                    );
                };
                match self.targets(name) {
                    Some(Symbol::Prototype(index)) => {
                        let Some(prototype) = unit.ast.prototypes.get(index as usize) else {
                            return;
                        };
                        let callee = Callee::Indirect { targets: None };
                        (callee, prototype.returns.clone(), prototype.params.clone())
                    }
                    Some(Symbol::Targets {
                        calls: true,
                        start,
                        len,
                    }) => {
                        let Some(found) = self.call_targets(Span { start, len }) else {
                            return;
                        };
                        found
                    }
                    Some(Symbol::Variable { .. }) => {
                        let message =
                            "A jump table in memory as list of call targets is not supported";
                        return self.say(pos, message.to_owned());
                    }
                    None => return self.unknown(name, pos),
                    Some(_) => {
                        let message = format!(
                            "Prototype or list of targets expected, not '{}'",
                            self.text(name)
                        );
                        return self.say(pos, message);
                    }
                }
            }
            Some(_) => {
                return self.say(pos, format!("'{}' is no function", self.text(callee)));
            }
            None => return self.unknown(callee, pos),
        };
        let rets = self.slots(inst, unit.vars(&returns), rets, true);
        let args = self.slots(inst, unit.vars(&params), args, false);
        self.emit(
            inst,
            Op::Call {
                callee,
                args,
                rets,
                uni,
            },
        );
    }

    /// The functions of a `.calltargets`, and the parameters of the first.
    fn call_targets(&mut self, span: Span) -> Option<(Callee, Range<u32>, Range<u32>)> {
        let unit = self.unit;
        let mut targets = Vec::new();
        let mut shape = None;
        for target in unit.ast.operands.get(span.range()).unwrap_or(&[]) {
            let OperandKind::Name(name, _) = target.kind else {
                continue;
            };
            match self.resolve(name) {
                Some(Symbol::Function(id)) => {
                    self.note_called(id);
                    targets.push(id);
                    let signature = unit.functions.get(id.0 as usize)?;
                    shape.get_or_insert((signature.returns.clone(), signature.params.clone()));
                }
                _ => self.unknown(name, target.pos),
            }
        }
        let (returns, params) = shape?;
        Some((
            Callee::Indirect {
                targets: Some(targets),
            },
            returns,
            params,
        ))
    }

    /// Actual parameters against formal ones.
    fn slots(
        &mut self,
        inst: &Inst,
        formals: &[Var],
        actuals: &[Source],
        results: bool,
    ) -> Vec<CallSlot> {
        if formals.len() != actuals.len() {
            let kind = if results { "return" } else { "input" };
            let message = format!(
                "Number of {kind} arguments does not match the declaration in instruction 'call'"
            );
            self.say(inst.pos, message);
            self.note_unknown(actuals);
            return Vec::new();
        }
        let mut slots = Vec::with_capacity(actuals.len());
        for (formal, actual) in formals.iter().zip(actuals) {
            if let Some(slot) = self.slot(formal, actual, results) {
                slots.push(slot);
            }
        }
        slots
    }

    fn slot(&mut self, formal: &Var, actual: &Source, result: bool) -> Option<CallSlot> {
        let DeclType::Scalar(ty) = formal.ty else {
            self.faults.mismatch = true;
            return None;
        };
        match actual.kind {
            OperandKind::Name(name, selector) => match self.resolve(name) {
                Some(Symbol::Frame {
                    offset, size, kind, ..
                }) if kind != FrameKind::Local => {
                    if formal.dims.is_empty() || !formal.dims.contains(&None) {
                        self.faults.mismatch |= formal.size() != Some(u64::from(size));
                    }
                    Some(CallSlot::Frame { offset, size })
                }
                Some(_) => {
                    let (reg, reg_ty) = self.register(name, selector, actual.pos)?;
                    self.faults.mismatch |= !fits(ty, reg_ty, false) || !formal.dims.is_empty();
                    Some(CallSlot::Value(Operand::Reg(reg)))
                }
                None => {
                    self.unknown(name, actual.pos);
                    None
                }
            },
            OperandKind::Sink if result => {
                let reg = self.new_register(ty);
                Some(CallSlot::Value(Operand::Reg(reg)))
            }
            _ if !result => match immediate(actual, ty) {
                Some(value) if formal.dims.is_empty() => Some(CallSlot::Value(value)),
                _ => {
                    self.faults.mismatch = true;
                    None
                }
            },
            _ => {
                self.faults.mismatch = true;
                None
            }
        }
    }
}
