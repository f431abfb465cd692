//! Decodes loads and stores.

use super::builder::{Builder, Scratch};
use super::operands::{address, elements, reg, rows, source};
use crate::code::constant::Constant;
use crate::code::registers::Slot;
use crate::code::site::{AccessBytes, AccessKind, SiteAccess};
use crate::ops;
use crate::ops::memory::Access;
use crate::ops::mov;
use ptx::ir::{Inst, MemMods, Reg, RegClass};

/// Limit on the elements of one decoded access: a longer vector is decoded to several.
const PART: usize = 4;

/// Decodes a load.
pub(super) fn load(b: &mut Builder<'_>, inst: &Inst, m: &MemMods) -> Option<()> {
    if let Some(()) = load_parameter(b, inst, m) {
        return Some(());
    }
    let (mut at, wide, offset) = address(b, inst.srcs.first()?, m, inst.line)?;
    let (element, class) = elements(b, m, &inst.dsts)?;
    let mut slots = Vec::new();
    for d in &inst.dsts {
        slots.extend(rows(b.destination(*d, class), class));
    }
    let pointer = reg(inst.srcs.first()?);
    if slots.len() > PART && pointer.is_some_and(|pointer| inst.dsts.contains(&Some(pointer))) {
        // The results of the first part must not change the address of the next one.
        let class = if wide { RegClass::B64 } else { RegClass::B32 };
        let kept = b.scratch(class, Scratch::Address);
        b.push_form(&mov::of_class(class)?, [kept, Slot(0)], &[at], inst.line);
        at = kept;
    }
    for (i, part) in slots.chunks(PART).enumerate() {
        let access = part_of(m, element, i, part.len(), wide, class);
        let aux = b.new_cache();
        let handlers = ops::memory::load(&access);
        let slot = |k: usize| part.get(k).copied().unwrap_or(Slot(0));
        b.push(handlers, inst.line, |inst| {
            (inst.d, inst.b, inst.c, inst.e) = (slot(0), slot(1), slot(2), slot(3));
            (inst.a, inst.aux, inst.mods) = (at, aux, access.pack());
            inst.imm = offset.wrapping_add((i * PART) as u64 * u64::from(element));
        });
        if i == 0 {
            b.note_access(whole(m, (at, wide, offset), AccessKind::Read));
        }
    }
    Some(())
}

/// Decodes `ld.param` of a kernel at a constant offset, whose result is a constant of the launch. Returns `None` for
/// other loads.
fn load_parameter(b: &mut Builder<'_>, inst: &Inst, m: &MemMods) -> Option<()> {
    let offset = b.source.parameter(inst, m)?;
    let size = m.ty.size();
    for (i, d) in (0..).zip(&inst.dsts) {
        let Some(d) = *d else { continue };
        let class = b.class(d);
        let form = mov::of_class(class)?;
        let at = offset + i * size;
        let value = b.constant(Constant::Param(at, size as u8, m.ty.is_signed()), class);
        let to = b.register(d);
        b.push_form(&form, [to, Slot(0)], &[value], inst.line);
    }
    Some(())
}

/// Returns the access of an instruction with all its elements, for observers.
pub(super) fn whole(m: &MemMods, (address, wide, offset): (Slot, bool, u64), kind: AccessKind) -> SiteAccess {
    SiteAccess {
        space: m.space,
        address,
        wide,
        offset,
        bytes: AccessBytes::Constant(m.ty.size() * u32::from(m.vec)),
        kind,
        lanes: 32,
    }
}

/// Returns part `i` of an access, of up to four elements.
fn part_of(m: &MemMods, element: u32, i: usize, count: usize, wide: bool, class: RegClass) -> Access {
    let mut access = Access::new(m, element, count as u32, wide, class);
    if i > 0 {
        // The first part has checked the alignment of the whole access.
        access.align = element;
    }
    access
}

/// Decodes a store.
pub(super) fn store(b: &mut Builder<'_>, inst: &Inst, m: &MemMods) -> Option<()> {
    let (at, wide, offset) = address(b, inst.srcs.first()?, m, inst.line)?;
    let values = &inst.srcs[1..];
    let regs: Vec<Option<Reg>> = values.iter().map(reg).collect();
    let (element, class) = elements(b, m, &regs)?;
    let mut slots = Vec::new();
    for value in values {
        slots.extend(rows(source(b, value, class, inst.line)?, class));
    }
    for (i, part) in slots.chunks(PART).enumerate() {
        let access = part_of(m, element, i, part.len(), wide, class);
        let aux = b.new_cache();
        let handlers = ops::memory::store(&access);
        let slot = |k: usize| part.get(k).copied().unwrap_or(Slot(0));
        b.push(handlers, inst.line, |inst| {
            (inst.b, inst.d, inst.c, inst.e) = (slot(0), slot(1), slot(2), slot(3));
            (inst.a, inst.aux, inst.mods) = (at, aux, access.pack());
            inst.imm = offset.wrapping_add((i * PART) as u64 * u64::from(element));
        });
        if i == 0 {
            b.note_access(whole(m, (at, wide, offset), AccessKind::Write));
        }
    }
    Some(())
}
