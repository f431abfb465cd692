//! Lowers `call`, directly or through a register with a prototype or a list of targets.

use std::ops::Range;

use crate::ast::{self, DeclType, Inst, OperandKind, Pos, Selector, Span, Var};
use crate::ir::{CallSlot, Callee, Op, Operand, Reg, Type};
use crate::names::Name;
use crate::scopes::{FrameKind, Symbol};
use crate::unit::alignment;

use super::types::{constant, fits};
use super::walker::Walker;

/// The message for a call target that is an entry function, or no function. ptxas accepts entry functions in
/// `.calltargets`.
const NO_DEVICE_FUNCTION: &str = "Illegal call target, device function expected";

/// The target of a call.
struct CallTarget {
    callee: Callee,
    /// Results: a range of `Ast::vars`.
    returns: Range<u32>,
    /// Formal parameters: a range of `Ast::vars`.
    params: Range<u32>,
}

impl Walker<'_> {
    /// Lowers `call (rets), callee, (args), prototype`. Only the callee is required.
    pub(super) fn call(&mut self, inst: &Inst, operands: &[ast::Operand], uni: bool) {
        let unit = self.unit;
        let list = |operand: &ast::Operand| match operand.kind {
            OperandKind::List(span) => Some(unit.ast.operands(span)),
            _ => None,
        };
        let mut rest = operands;
        let mut rets: &[ast::Operand] = &[];
        if let Some((first, others)) = rest.split_first()
            && let Some(found) = list(first)
        {
            (rets, rest) = (found, others);
        }
        let callee = match rest.split_first() {
            Some((
                ast::Operand {
                    kind: OperandKind::Name(name, Selector::None),
                    pos,
                },
                others,
            )) => {
                rest = others;
                (*name, *pos)
            }
            _ => {
                self.errors.mismatch = true;
                return self.note_unknown(operands);
            }
        };
        let mut args: &[ast::Operand] = &[];
        if let Some((first, others)) = rest.split_first()
            && let Some(found) = list(first)
        {
            (args, rest) = (found, others);
        }
        let proto = match rest {
            [] => None,
            [
                ast::Operand {
                    kind: OperandKind::Name(name, Selector::None),
                    pos,
                },
            ] => Some((*name, *pos)),
            _ => {
                self.errors.mismatch = true;
                return;
            }
        };
        self.call_parts(inst, rets, callee, args, proto, uni);
    }

    /// Lowers a call whose parts are known.
    fn call_parts(
        &mut self,
        inst: &Inst,
        rets: &[ast::Operand],
        callee: (Name, Pos),
        args: &[ast::Operand],
        proto: Option<(Name, Pos)>,
        uni: bool,
    ) {
        let unit = self.unit;
        if let Some((name, pos)) = proto.filter(|(name, _)| self.resolve(*name).is_none()) {
            self.unknown(name, pos);
        }
        let Some(target) = self.call_target(inst, callee, proto) else {
            return;
        };
        let rets = self.slots(inst, unit.vars(&target.returns), rets, true);
        let args = self.slots(inst, unit.vars(&target.params), args, false);
        self.emit(
            inst,
            Op::Call {
                callee: target.callee,
                args,
                rets,
                uni,
            },
        );
    }

    /// Returns the target of a call; `None` after adding an error. For a call through a register, adds the register to
    /// the sources.
    fn call_target(
        &mut self,
        inst: &Inst,
        (callee, pos): (Name, Pos),
        proto: Option<(Name, Pos)>,
    ) -> Option<CallTarget> {
        match self.resolve(callee) {
            Some(Symbol::Function(id)) => {
                self.note_function(id);
                let signature = self.unit.functions.get(id.0 as usize)?;
                if signature.entry {
                    self.say(pos, NO_DEVICE_FUNCTION.to_owned());
                    return None;
                }
                Some(CallTarget {
                    callee: Callee::Direct(id),
                    returns: signature.returns.clone(),
                    params: signature.params.clone(),
                })
            }
            Some(Symbol::Reg { first, ty, vec: 1 }) => {
                self.errors.mismatch |= !fits(Type::U64, ty, false) && !fits(Type::U32, ty, false);
                self.srcs.push(Operand::Reg(Reg(first)));
                self.indirect_target(inst, proto)
            }
            found => {
                let text = self.text(callee);
                self.say(pos, format!("Call to '{text}' requires call prototype"));
                if found.is_none() {
                    self.unknown.push((callee, pos));
                }
                None
            }
        }
    }

    /// Returns the target of a call through a register, as described by its prototype or list of targets.
    fn indirect_target(&mut self, inst: &Inst, proto: Option<(Name, Pos)>) -> Option<CallTarget> {
        let Some((name, pos)) = proto else {
            self.refuse(inst.pos, "Label expected for argument 0");
            return None;
        };
        match self.resolve(name) {
            Some(Symbol::Prototype(index)) => {
                let prototype = self.unit.ast.prototypes.get(index as usize)?;
                Some(CallTarget {
                    callee: Callee::Indirect { targets: None },
                    returns: prototype.returns.clone(),
                    params: prototype.params.clone(),
                })
            }
            Some(Symbol::Targets {
                calls: true,
                start,
                len,
            }) => {
                if !self.count_targets(len as usize, "call", pos) {
                    return None;
                }
                self.call_targets(Span { start, len })
            }
            Some(Symbol::Variable { .. }) => {
                let message = "A variable as list of call targets is not supported; use .calltargets";
                self.say(pos, message.to_owned());
                None
            }
            Some(_) => {
                let message = format!("Prototype or list of targets expected, not '{}'", self.text(name));
                self.say(pos, message);
                None
            }
            None => {
                self.unknown(name, pos);
                None
            }
        }
    }

    /// Returns the functions of a `.calltargets`, with the results and parameters of the first.
    fn call_targets(&mut self, span: Span) -> Option<CallTarget> {
        let unit = self.unit;
        let mut targets = Vec::new();
        let mut prototype = None;
        for target in unit.ast.operands(span) {
            let OperandKind::Name(name, _) = target.kind else {
                continue;
            };
            match self.resolve(name) {
                Some(Symbol::Function(id)) => {
                    self.note_function(id);
                    targets.push(id);
                    let signature = unit.functions.get(id.0 as usize)?;
                    let found = (signature.returns.clone(), signature.params.clone());
                    let (returns, params) = prototype.get_or_insert(found.clone());
                    if found.0.len() != returns.len() || found.1.len() != params.len() {
                        self.say(target.pos, "Call has wrong number of parameters".to_owned());
                    }
                }
                Some(_) => self.say(target.pos, NO_DEVICE_FUNCTION.to_owned()),
                None => self.unknown(name, target.pos),
            }
        }
        let (returns, params) = prototype?;
        Some(CallTarget {
            callee: Callee::Indirect { targets: Some(targets) },
            returns,
            params,
        })
    }

    /// Checks actual parameters against the formal ones, and returns their slots.
    fn slots(&mut self, inst: &Inst, formals: &[Var], actuals: &[ast::Operand], results: bool) -> Vec<CallSlot> {
        if formals.len() != actuals.len() {
            self.say(inst.pos, "Call has wrong number of parameters".to_owned());
            self.note_unknown(actuals);
            return Vec::new();
        }
        let mut slots = Vec::with_capacity(actuals.len());
        for (formal, actual) in formals.iter().zip(actuals) {
            if let Some(slot) = self.slot(inst, formal, actual, results) {
                slots.push(slot);
            }
        }
        slots
    }

    /// Checks an actual parameter against its formal one, and returns its slot.
    fn slot(&mut self, inst: &Inst, formal: &Var, actual: &ast::Operand, result: bool) -> Option<CallSlot> {
        let DeclType::Scalar(ty) = formal.ty else {
            self.errors.mismatch = true;
            return None;
        };
        let array = !formal.dims.is_empty();
        let (fits, slot) = match actual.kind {
            OperandKind::Name(name, selector) => match self.resolve(name) {
                Some(Symbol::Reg { .. }) => {
                    let (reg, reg_ty) = self.register(name, selector, actual.pos)?;
                    (!array && fits(ty, reg_ty, false), CallSlot::Value(Operand::Reg(reg)))
                }
                Some(_) if selector != Selector::None => {
                    self.say(actual.pos, "Unknown field".to_owned());
                    return None;
                }
                Some(
                    Symbol::Frame {
                        kind: FrameKind::Local, ..
                    }
                    | Symbol::Variable { .. },
                ) => {
                    let message = format!("Call argument '{}' has illegal state space", self.text(name));
                    self.say(inst.pos, message);
                    return None;
                }
                Some(Symbol::Frame { offset, decl, .. }) => self.memory_slot(inst, formal, offset, decl)?,
                Some(_) => {
                    self.errors.mismatch = true;
                    return None;
                }
                None => {
                    self.unknown(name, actual.pos);
                    return None;
                }
            },
            OperandKind::Sink if result => (true, CallSlot::Value(Operand::Reg(self.new_register(ty)))),
            kind if !result => match constant(kind, ty) {
                Some(bits) => (!array, CallSlot::Value(Operand::Imm(bits))),
                None => (false, CallSlot::Value(Operand::Imm(0))),
            },
            _ => (false, CallSlot::Value(Operand::Imm(0))),
        };
        if !fits {
            let text = self.text(formal.name);
            let message = format!("Type of argument does not match formal parameter '{text}'");
            self.say(inst.pos, message);
        }
        Some(slot)
    }

    /// Returns true if the type of a `.param` variable matches the formal parameter, and the variable's slot.
    fn memory_slot(&mut self, inst: &Inst, formal: &Var, offset: u32, decl: u32) -> Option<(bool, CallSlot)> {
        let actual = self.unit.ast.vars.get(decl as usize)?;
        let size = actual.size.unwrap_or(0);
        let open = formal.dims.contains(&None);
        let fits = match (formal.ty, actual.ty) {
            (DeclType::Scalar(a), DeclType::Scalar(b)) if formal.dims.is_empty() => {
                actual.dims.is_empty() && fits(a, b, false)
            }
            _ => !actual.dims.is_empty() && (open || formal.size == Some(size)),
        };
        if fits && !formal.dims.is_empty() && alignment(formal) != alignment(actual) {
            let text = self.text(formal.name);
            let message = format!("Alignment of argument does not match formal parameter '{text}'");
            self.say(inst.pos, message);
        }
        Some((
            fits,
            CallSlot::Frame {
                offset,
                size: size as u32,
            },
        ))
    }
}
