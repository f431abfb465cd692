//! Translates operands of the IR to register slots, addresses and locations of arguments.

use super::builder::{Builder, Scratch};
use crate::code::action::ValueLocation;
use crate::code::constant::Constant;
use crate::code::registers::Slot;
use crate::ops::mov;
use crate::plan::source::constant_of;
use crate::window;
use ptx::ir::{CallSlot, MemMods, Operand, Reg, RegClass, Space};

/// Returns the generic address of offset 0 in a state space; 0 if the addresses in the space are generic ones.
pub(super) fn window_of(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global | Space::Const => 0,
        Space::Shared | Space::SharedCluster => window::SHARED,
        Space::Local => window::LOCAL,
        Space::Param => window::PARAM,
    }
}

/// Returns row `half` (0 or 1) of a register of 128 bits.
pub(super) fn half_of(slot: Slot, half: u32) -> Slot {
    Slot(slot.0 + half * 8 * 32)
}

/// Returns the register of an operand, without the negation of [`Operand::NotReg`]. Returns `None` if the operand is
/// neither a register nor a negated one.
pub(super) fn reg(operand: &Operand) -> Option<Reg> {
    match operand {
        Operand::Reg(reg) | Operand::NotReg(reg) => Some(*reg),
        _ => None,
    }
}

/// Returns a slot that has the value of a source operand as a register of this class. Adds the instructions that write
/// the slot, if any are needed. The caller has to apply the negation of [`Operand::NotReg`].
pub(super) fn source(b: &mut Builder<'_>, operand: &Operand, class: RegClass, line: u32) -> Option<Slot> {
    match *operand {
        Operand::Reg(reg) | Operand::NotReg(reg) => {
            let own_class = b.class(reg);
            if own_class == class {
                return Some(b.register(reg));
            }
            // The register is wider than the operand: take its low bits.
            let form = mov::extract(own_class, class, 0)?;
            let (from, to) = (b.register(reg), b.scratch(class, Scratch::LowBits(reg)));
            b.push_form(&form, [to, Slot(0)], &[from], line);
            Some(to)
        }
        Operand::Special(special) => match mov::changing(special) {
            Some((handlers, own_class, mods)) => {
                let to = b.scratch(own_class, Scratch::Special(mods.0));
                b.push(handlers, line, |inst| (inst.d, inst.mods) = (to, mods.0));
                if own_class == class {
                    return Some(to);
                }
                let form = mov::extract(own_class, class, 0)?;
                let narrow = b.scratch(class, Scratch::Special(mods.0));
                b.push_form(&form, [narrow, Slot(0)], &[to], line);
                Some(narrow)
            }
            None => Some(b.constant(Constant::Special(special), class)),
        },
        _ => {
            let constant = constant_of(operand)?;
            Some(b.constant(constant, class))
        }
    }
}

/// Returns the address operand of a memory instruction: its slot, true if it has 64 bits, and the offset added to it.
pub(super) fn address(b: &mut Builder<'_>, operand: &Operand, m: &MemMods, line: u32) -> Option<(Slot, bool, u64)> {
    match *operand {
        Operand::Reg(reg) if b.class(reg) == RegClass::B32 => Some((b.register(reg), false, m.offset as u64)),
        Operand::Reg(reg) if b.class(reg) == RegClass::B64 => Some((b.register(reg), true, m.offset as u64)),
        Operand::Reg(_) => None,
        _ => Some((source(b, operand, RegClass::B64, line)?, true, m.offset as u64)),
    }
}

/// Returns the size in bytes of the elements that the engine loads or stores for an access, and the class of the
/// registers. Returns `None` (unsupported) if the registers of a vector differ in width.
pub(super) fn elements(b: &Builder<'_>, m: &MemMods, regs: &[Option<Reg>]) -> Option<(u32, RegClass)> {
    let mut classes = regs.iter().flatten().map(|r| b.class(*r));
    let first = classes.next();
    if classes.any(|class| Some(class) != first) {
        return None;
    }
    let class = first.unwrap_or(match m.ty.size() {
        1 | 2 => RegClass::B16,
        4 => RegClass::B32,
        8 => RegClass::B64,
        _ => RegClass::B128,
    });
    Some((m.ty.size().min(8), class))
}

/// Returns the rows of a register: two for 128 bits, else one.
pub(super) fn rows(slot: Slot, class: RegClass) -> Vec<Slot> {
    match class {
        RegClass::B128 => vec![slot, half_of(slot, 1)],
        _ => vec![slot],
    }
}

/// Returns the location of a call's argument or result.
pub(super) fn location(b: &mut Builder<'_>, slot: &CallSlot) -> Option<ValueLocation> {
    Some(match slot {
        CallSlot::Frame { offset, size } => ValueLocation::Frame {
            offset: *offset,
            size: *size,
        },
        CallSlot::Value(Operand::Reg(reg)) => b.location(*reg),
        CallSlot::Value(operand) => {
            // The callee takes the low bits, so a row of 64 bits serves parameters of smaller width, too.
            let constant = constant_of(operand)?;
            ValueLocation::Row(b.constant(constant, RegClass::B64), 8)
        }
    })
}
