//! Decodes `atom` and `red`.

use super::builder::{Builder, Scratch};
use super::memory::whole;
use super::operands::{address, reg, source};
use crate::code::registers::Slot;
use crate::code::site::AccessKind;
use crate::ops::memory::Access;
use crate::ops::{atomic, atomic128, mov};
use ptx::ir::{AtomOp, Inst, MemMods, Operand, Reg, RegClass};

/// Decodes `atom` and `red`.
pub(super) fn lower(b: &mut Builder<'_>, inst: &Inst, op: AtomOp, m: &MemMods, has_result: bool) -> Option<()> {
    let (at, wide_address, offset) = address(b, inst.srcs.first()?, m, inst.line)?;
    let class = match m.ty.size() {
        16 => return wide(b, inst, op, m, (at, wide_address, offset)),
        2 => RegClass::B16,
        4 => RegClass::B32,
        8 => RegClass::B64,
        _ => return None,
    };
    let mut sources = Vec::with_capacity(m.vec.into());
    for k in 0..usize::from(m.vec) {
        let operand = inst.srcs.get(1 + k)?;
        let mut slot = source(b, operand, class, inst.line)?;
        // The results of the elements before this one must not change its operand.
        let changes = |read: Reg| inst.dsts.iter().take(k).any(|written| *written == Some(read));
        if reg(operand).is_some_and(changes) {
            let kept = b.scratch(class, Scratch::Element(k as u32));
            b.push_form(&mov::of_class(class)?, [kept, Slot(0)], &[slot], inst.line);
            slot = kept;
        }
        sources.push(slot);
    }
    // Each element of a vector is a separate atomic access.
    for (k, first) in sources.into_iter().enumerate() {
        let mut access = Access::new(m, m.ty.size(), 1, wide_address, class);
        if k > 0 {
            // The first element has checked the alignment of the whole access.
            access.align = access.element;
        }
        let d = inst.dsts.get(k).copied().flatten();
        if d.is_some_and(|d| b.class(d) != class) {
            return None;
        }
        let (handlers, mods) = atomic::form(op, m.ty, &access, has_result && d.is_some())?;
        let second = match inst.srcs.get(2).filter(|_| op == AtomOp::Cas) {
            // A new value in a register of another width is not supported.
            Some(Operand::Reg(reg)) if b.class(*reg) != class => return None,
            Some(operand) => source(b, operand, class, inst.line)?,
            None => first,
        };
        let d = b.destination(d, class);
        let aux = b.new_cache();
        b.push(handlers, inst.line, |inst| {
            (inst.a, inst.b, inst.c, inst.d) = (at, first, second, d);
            (inst.aux, inst.mods) = (aux, mods);
            inst.imm = offset.wrapping_add(k as u64 * u64::from(access.element));
        });
        if k == 0 {
            b.note_access(whole(m, (at, wide_address, offset), AccessKind::Atomic));
        }
    }
    Some(())
}

/// Decodes `atom.exch.b128` and `atom.cas.b128`.
fn wide(
    b: &mut Builder<'_>,
    inst: &Inst,
    op: AtomOp,
    m: &MemMods,
    (at, wide_address, offset): (Slot, bool, u64),
) -> Option<()> {
    // The value moves as two halves.
    let access = Access::new(m, 8, 2, wide_address, RegClass::B64);
    let d = inst.dsts.first().copied().flatten();
    let (handlers, mods) = atomic128::form(op, &access, d.is_some())?;
    let mut values = Vec::with_capacity(2);
    for operand in inst.srcs.get(1..)? {
        let reg = reg(operand).filter(|r| b.class(*r) == RegClass::B128)?;
        values.push(b.register(reg));
    }
    let first = *values.first()?;
    let second = values.get(1).copied().unwrap_or(first);
    let d = b.destination(d, RegClass::B128);
    let aux = b.new_cache();
    b.push(handlers, inst.line, |inst| {
        (inst.a, inst.b, inst.c, inst.d) = (at, first, second, d);
        (inst.aux, inst.mods, inst.imm) = (aux, mods, offset);
    });
    b.note_access(whole(m, (at, wide_address, offset), AccessKind::Atomic));
    Some(())
}
