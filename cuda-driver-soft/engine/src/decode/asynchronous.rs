//! Decodes `cp.async`, `cp.async.bulk` and `mbarrier`.

use super::builder::Builder;
use super::operands::{reg, source};
use crate::code::registers::Slot;
use crate::ops::{asynchronous, bulk};
use ptx::ir::{CopyPart, Inst, MbarrierOp, Op, Operand, RegClass, Space};

/// Returns the slot of a pointer, and true if it has 64 bits. It is a register of 32 or 64 bits, or the address of a
/// variable.
pub(super) fn pointer(b: &mut Builder<'_>, operand: &Operand, line: u32) -> Option<(Slot, bool)> {
    match reg(operand).map(|r| b.class(r)) {
        Some(RegClass::B32) => Some((source(b, operand, RegClass::B32, line)?, false)),
        Some(RegClass::B64) | None => Some((source(b, operand, RegClass::B64, line)?, true)),
        Some(_) => None,
    }
}

/// Decodes `cp.async`.
pub(super) fn copy(b: &mut Builder<'_>, inst: &Inst, bytes: u8, part: CopyPart) -> Option<()> {
    let (to, wide_to) = pointer(b, inst.srcs.first()?, inst.line)?;
    let (from, wide_from) = pointer(b, inst.srcs.get(1)?, inst.line)?;
    let negated = matches!(inst.srcs.get(2), Some(Operand::NotReg(_)));
    let amount = match part {
        CopyPart::All => to,
        CopyPart::Bytes => source(b, inst.srcs.get(2)?, RegClass::B32, inst.line)?,
        CopyPart::Unless => source(b, inst.srcs.get(2)?, RegClass::Pred, inst.line)?,
    };
    let mods = asynchronous::copy_mods(bytes, part, negated, wide_to, wide_from);
    b.push(asynchronous::copy(), inst.line, |inst| {
        (inst.a, inst.b, inst.c, inst.mods) = (to, from, amount, mods);
    });
    Some(())
}

/// Decodes `cp.async.bulk` and `cp.reduce.async.bulk`.
pub(super) fn bulk(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let Op::Bulk {
        to,
        from,
        reduce,
        multicast,
    } = inst.op
    else {
        return None;
    };
    let (at, wide_to) = pointer(b, inst.srcs.first()?, inst.line)?;
    let (source_at, wide_from) = pointer(b, inst.srcs.get(1)?, inst.line)?;
    let size = source(b, inst.srcs.get(2)?, RegClass::B32, inst.line)?;
    let (blocks, barrier, wide_barrier) = if multicast {
        let blocks = source(b, inst.srcs.get(3)?, RegClass::B16, inst.line)?;
        let (barrier, wide) = pointer(b, inst.srcs.get(4)?, inst.line)?;
        (blocks, barrier, Some(wide))
    } else {
        (at, at, None)
    };
    let mods = bulk::mods((to, wide_to), (from, wide_from), reduce, wide_barrier)?;
    b.push(bulk::handlers(), inst.line, |inst| {
        (inst.a, inst.b, inst.c, inst.mods) = (at, source_at, size, mods);
        (inst.e, inst.f) = (blocks, barrier);
    });
    Some(())
}

/// Decodes `mbarrier`.
pub(super) fn mbarrier(b: &mut Builder<'_>, inst: &Inst, op: MbarrierOp, space: Space) -> Option<()> {
    let (at, wide) = match op {
        MbarrierOp::PendingCount => (source(b, inst.srcs.first()?, RegClass::B64, inst.line)?, true),
        _ => pointer(b, inst.srcs.first()?, inst.line)?,
    };
    let class = match op {
        MbarrierOp::Wait => RegClass::B64,
        _ => RegClass::B32,
    };
    let operand = inst.srcs.get(1).copied().unwrap_or(Operand::Imm(1));
    let value = source(b, &operand, class, inst.line)?;
    let result = match op {
        MbarrierOp::Wait | MbarrierOp::WaitParity => RegClass::Pred,
        MbarrierOp::PendingCount => RegClass::B32,
        _ => RegClass::B64,
    };
    let d = inst.dsts.first().copied().flatten();
    let mods = asynchronous::mbarrier_mods(op, space, wide, d.is_some());
    let d = b.destination(d, result);
    b.push(asynchronous::mbarrier(), inst.line, |inst| {
        (inst.a, inst.b, inst.d, inst.mods) = (at, value, d, mods);
    });
    Some(())
}
