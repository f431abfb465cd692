//! Handlers of atomic operations on 128 bits, such as `atom.global.cas.b128`.

use super::atomic::HAS_RESULT;
use super::memory::{Access, places, widened};
use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs, Slot};
use crate::lanes::{self, LANES, Mask};
use crate::memory::access;
use ptx::ir::AtomOp;
use std::sync::atomic::{Ordering, fence};

/// Bit of [`Inst::mods`]: the operation is `cas`.
const CAS: u32 = 1 << 17;

/// Returns the handlers and modifiers of `exch` or `cas`. PTX has no other operations on 128 bits.
pub(crate) fn form(op: AtomOp, access: &Access, has_result: bool) -> Option<(Handlers, u32)> {
    let op = match op {
        AtomOp::Exch => 0,
        AtomOp::Cas => CAS,
        _ => return None,
    };
    let result = if has_result { HAS_RESULT } else { 0 };
    Some((Rare::compile::<Atomic128>(), access.pack() | op | result))
}

/// An operation on the address `a`, with the operands `b` and `c` and the result `d`. Operands and result are registers
/// of 128 bits.
struct Atomic128;

impl Body for Atomic128 {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let access = Access::unpack(inst.mods);
        let compares = inst.mods & CAS != 0;
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (addresses, b, c) = unsafe { (widened(regs, inst), read(regs, inst.b), read(regs, inst.c)) };
        if access.fence {
            fence(Ordering::SeqCst);
        }
        let Some(places) = places(m, inst, &access, &addresses, mask, true) else {
            return Flow::Fault;
        };
        let mut old = [0u128; LANES];
        for i in lanes::iter(mask) {
            let new = |before| match compares {
                true if before != b[i] => before,
                true => c[i],
                false => b[i],
            };
            // SAFETY: `places` checked the 16 bytes of each lane of the mask, and that they are aligned to 16.
            old[i] = unsafe { access::update128(places[i], new) };
        }
        if access.fence {
            fence(Ordering::SeqCst);
        }
        if inst.mods & HAS_RESULT != 0 {
            // SAFETY: the destination is a register of 128 bits of this frame, as promised by the caller.
            unsafe {
                u64::merge(regs, inst.d, old.map(|v| v as u64), mask);
                u64::merge(regs, high(inst.d), old.map(|v| (v >> 64) as u64), mask);
            }
        }
        Flow::Next
    }
}

/// Returns the row of the upper halves of a register of 128 bits.
fn high(slot: Slot) -> Slot {
    Slot(slot.0 + 8 * LANES as u32)
}

/// Reads a register of 128 bits.
///
/// # Safety
/// See [`Regs`]; the slot is a register of 128 bits.
unsafe fn read(regs: Regs<'_>, slot: Slot) -> [u128; LANES] {
    // SAFETY: as promised by the caller.
    let (low, high) = unsafe { (u64::read(regs, slot), u64::read(regs, high(slot))) };
    std::array::from_fn(|i| u128::from(high[i]) << 64 | u128::from(low[i]))
}
