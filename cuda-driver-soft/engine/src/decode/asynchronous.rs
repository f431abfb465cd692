//! Decodes `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`, tensor copies, `tensormap.replace` and `mbarrier`.

use super::builder::Builder;
use super::operands::{reg, source};
use crate::code::action::Action;
use crate::code::registers::Slot;
use crate::code::site::{AccessBytes, AccessKind, SiteAccess};
use crate::code::tensor::TensorInst;
use crate::ops::{asynchronous, bulk};
use ptx::ir::{CopyPart, Inst, MbarrierOp, Op, Operand, RegClass, Space, TensorCopy, TensorDirection, TensorMapField};

/// Returns the slot of a pointer, and true if it has 64 bits. It is a register of 32 or 64 bits, or the address of a
/// variable.
pub(super) fn pointer(b: &mut Builder<'_>, operand: &Operand, line: u32) -> Option<(Slot, bool)> {
    match reg(operand).map(|r| b.class(r)) {
        Some(RegClass::B32) => Some((source(b, operand, RegClass::B32, line)?, false)),
        Some(RegClass::B64) | None => Some((source(b, operand, RegClass::B64, line)?, true)),
        Some(_) => None,
    }
}

/// Returns an access of each lane at a pointer, for observers.
pub(super) fn access(space: Space, (address, wide): (Slot, bool), bytes: AccessBytes, kind: AccessKind) -> SiteAccess {
    SiteAccess {
        space,
        address,
        wide,
        offset: 0,
        bytes,
        kind,
        lanes: 32,
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
    let whole = AccessBytes::Constant(u32::from(bytes));
    let read = match part {
        CopyPart::All => whole,
        CopyPart::Bytes => AccessBytes::Register(amount),
        // Lanes whose predicate is true read nothing: their target becomes zero.
        CopyPart::Unless => AccessBytes::If(amount, negated, u32::from(bytes)),
    };
    b.note_access(access(Space::Shared, (to, wide_to), whole, AccessKind::Write));
    b.note_access(access(Space::Global, (from, wide_from), read, AccessKind::Read));
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
    let kind = if reduce.is_some() {
        AccessKind::Atomic
    } else {
        AccessKind::Write
    };
    let bytes = AccessBytes::Register(size);
    b.note_access(access(to, (at, wide_to), bytes, kind));
    b.note_access(access(from, (source_at, wide_from), bytes, AccessKind::Read));
    if let Some(wide) = wide_barrier {
        let signalled = (barrier, wide);
        b.note_access(access(to, signalled, AccessBytes::Constant(8), AccessKind::Atomic));
    }
    Some(())
}

/// Decodes a tensor copy or `tensormap.replace`. The scheduler runs them.
pub(super) fn tensor(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    // The addresses come first, then values of one register class, then values of another.
    let (addresses, values, (class, more)) = match inst.op {
        Op::TensorCopy(copy) => {
            let addresses = match copy.direction {
                TensorDirection::Load { .. } => 3,
                TensorDirection::Store { .. } => 2,
            };
            (addresses, usize::from(copy.dims), (RegClass::B32, RegClass::B16))
        }
        Op::TensorMapReplace(replace) => {
            let class = match replace.field {
                TensorMapField::GlobalAddress | TensorMapField::GlobalStride => RegClass::B64,
                _ => RegClass::B32,
            };
            (1, 1, (class, class))
        }
        _ => return None,
    };
    let mut srcs = Vec::with_capacity(inst.srcs.len());
    for (i, operand) in inst.srcs.iter().enumerate() {
        if i < addresses {
            let (slot, wide) = pointer(b, operand, inst.line)?;
            srcs.push((slot, if wide { 8 } else { 4 }));
            continue;
        }
        let class = if i < addresses + values { class } else { more };
        let width = match class {
            RegClass::B16 => 2,
            RegClass::B32 => 4,
            _ => 8,
        };
        srcs.push((source(b, operand, class, inst.line)?, width));
    }
    let op = inst.op.clone();
    let shared = srcs.first().map(|(slot, width)| (*slot, *width == 8));
    b.push_action(Action::Tensor(Box::new(TensorInst { op, srcs })), inst.line);
    if let Op::TensorCopy(TensorCopy {
        direction: TensorDirection::Load { to, .. },
        ..
    }) = inst.op
        && let Some(pointer) = shared
    {
        b.note_access(access(to, pointer, AccessBytes::Unknown, AccessKind::Write));
    }
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
    if op != MbarrierOp::PendingCount {
        b.note_access(access(space, (at, wide), AccessBytes::Constant(8), AccessKind::Atomic));
    }
    Some(())
}
