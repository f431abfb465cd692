//! Decodes calls, barriers and collective instructions.

use super::builder::Builder;
use super::operands::{location, source};
use crate::code::action::{Action, BarrierInst, BarrierOperand, Builtin, CallSite, CallTarget, ValueLocation};
use crate::code::collective::{Collective, CollectiveOperands};
use crate::code::registers::Slot;
use crate::ops::collective;
use crate::plan::source::constant_of;
use ptx::ir::{BarOp, CallSlot, Callee, Inst, Operand, RegClass};

/// Decodes a warp-level instruction. Its operands are the value, if it has one, two more for `shfl`, and the member
/// mask of a `.sync` instruction.
pub(super) fn collective(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let (what, sync) = Collective::of(&inst.op)?;
    let mut srcs = inst.srcs.iter();
    let none = Slot(0);
    let (mut a, mut negated, mut extra) = (none, false, [none; 2]);
    if let Some(class) = what.source() {
        let operand = srcs.next()?;
        negated = matches!(operand, Operand::NotReg(_));
        a = source(b, operand, class, inst.line)?;
    }
    if let Collective::Shuffle(_) = what {
        for slot in &mut extra {
            *slot = source(b, srcs.next()?, RegClass::B32, inst.line)?;
        }
    }
    let members = match srcs.next() {
        Some(operand) if sync => Some(source(b, operand, RegClass::B32, inst.line)?),
        None if !sync => None,
        _ => return None,
    };
    let d = inst.dsts.first().copied().flatten();
    let d = what.result().map_or(none, |class| b.destination(d, class));
    let p = inst.dsts.get(1).copied().flatten();
    let second = p.is_some();
    let p = b.destination(p, RegClass::Pred);
    let operands = CollectiveOperands {
        a,
        negated,
        b: extra[0],
        c: extra[1],
        members,
        d,
        p,
    };
    let mods = collective::mods(what, &operands, second);
    b.push_with_action(what.handlers(), Action::Collective(what, operands), inst.line, |inst| {
        (inst.a, inst.b, inst.c) = (a, extra[0], extra[1]);
        (inst.d, inst.e, inst.f, inst.mods) = (d, p, members.unwrap_or(none), mods);
    });
    Some(())
}

/// Decodes `call`.
pub(super) fn call(
    b: &mut Builder<'_>,
    inst: &Inst,
    callee: &Callee,
    args: &[CallSlot],
    rets: &[CallSlot],
) -> Option<()> {
    let target = match callee {
        Callee::Direct(id) => {
            let function = b.source.module.functions.get(id.0 as usize)?;
            match (&function.code, function.name.as_str()) {
                (Some(_), _) => CallTarget::Function(*id),
                (None, "vprintf") => CallTarget::Builtin(Builtin::Vprintf),
                (None, "__assertfail") => CallTarget::Builtin(Builtin::Assertfail),
                (None, "malloc") => CallTarget::Builtin(Builtin::Malloc),
                (None, "free") => CallTarget::Builtin(Builtin::Free),
                (None, "cudaGraphSetConditional") => CallTarget::Builtin(Builtin::SetConditional),
                (None, _) => return None,
            }
        }
        Callee::Indirect { .. } => CallTarget::Indirect(source(b, inst.srcs.first()?, RegClass::B64, inst.line)?),
    };
    let mut locations =
        |slots: &[CallSlot]| -> Option<Vec<ValueLocation>> { slots.iter().map(|s| location(b, s)).collect() };
    let (args, rets) = (locations(args)?, locations(rets)?);
    b.push_action(
        Action::Call(Box::new(CallSite {
            callee: target,
            args,
            rets,
        })),
        inst.line,
    );
    Some(())
}

/// Decodes `bar` and `barrier`.
pub(super) fn barrier(b: &mut Builder<'_>, inst: &Inst, op: BarOp, aligned: bool) -> Option<()> {
    let value = |b: &mut Builder<'_>, operand: &Operand| -> Option<BarrierOperand> {
        match operand {
            Operand::Imm(bits) => Some(BarrierOperand::Constant(*bits as u32)),
            operand => Some(BarrierOperand::Register(source(b, operand, RegClass::B32, inst.line)?)),
        }
    };
    let is_red = matches!(op, BarOp::Red(_) | BarOp::Popc);
    let (last, rest) = if is_red {
        inst.srcs.split_last().map(|(l, r)| (Some(l), r))?
    } else {
        (None, inst.srcs.as_slice())
    };
    let id = Some(value(b, rest.first()?)?);
    let count = match rest.get(1) {
        Some(operand) => Some(value(b, operand)?),
        None => None,
    };
    let predicate = match last {
        Some(operand @ (Operand::Reg(reg) | Operand::NotReg(reg))) => {
            Some((b.register(*reg), matches!(operand, Operand::NotReg(_))))
        }
        Some(operand) => {
            let constant = constant_of(operand)?;
            Some((b.constant(constant, RegClass::Pred), false))
        }
        None => None,
    };
    let result = match inst.dsts.first() {
        Some(d) => {
            let class = if op == BarOp::Popc {
                RegClass::B32
            } else {
                RegClass::Pred
            };
            Some(b.destination(*d, class))
        }
        None => None,
    };
    b.push_action(
        Action::Barrier(BarrierInst {
            op,
            aligned,
            id,
            count,
            predicate,
            result,
        }),
        inst.line,
    );
    Some(())
}
