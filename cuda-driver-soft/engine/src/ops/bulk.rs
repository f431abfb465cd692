//! Handlers of bulk copies between global and shared memory, and between the shared memory of the blocks of a cluster:
//! `cp.async.bulk` and `cp.reduce.async.bulk`.
//!
//! A copy completes with its instruction. If the copy has an mbarrier, the crate `ptx` adds another instruction that
//! signals it; a copy to several blocks signals their mbarriers itself.

use super::asynchronous::pointers;
use super::atomic;
use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::memory::access;
use crate::memory::warp::of_rank;
use crate::semantics::mbarrier as object;
use ptx::ir::{AtomOp, Space, Type};

/// Returns the handlers: `a` is the target, `b` the source and `c` the number of bytes. In a copy to several blocks,
/// `e` is the mask of the blocks, and `f` the address of the mbarrier that is signalled in each of them.
pub(crate) fn handlers() -> Handlers {
    Rare::compile::<Bulk>()
}

/// Addresses and sizes are multiples of this number of bytes.
const UNIT: u32 = 16;

// Bits of `Inst::mods`. The operation of a reduction is above them.
const TO_GLOBAL: u32 = 1;
const FROM_GLOBAL: u32 = 1 << 1;
const WIDE_TO: u32 = 1 << 2;
const WIDE_FROM: u32 = 1 << 3;
const REDUCES: u32 = 1 << 4;
const ELEMENT_SHIFT: u32 = 5;
const MULTICAST: u32 = 1 << 7;
const WIDE_BARRIER: u32 = 1 << 8;

/// Packs the modifiers: the space of each address, and true if it has 64 bits; the reduction; and for a copy to several
/// blocks, true if the address of the mbarrier has 64 bits. Returns `None` if the reduction is not implemented.
pub(crate) fn mods(
    (to, wide_to): (Space, bool),
    (from, wide_from): (Space, bool),
    reduce: Option<(AtomOp, Type)>,
    multicast: Option<bool>,
) -> Option<u32> {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let reduce = match reduce {
        Some((op, ty)) => {
            let element = ty.size().trailing_zeros() << ELEMENT_SHIFT;
            REDUCES | element | atomic::operation(op, ty)?
        }
        None => 0,
    };
    Some(
        flag(to == Space::Global, TO_GLOBAL)
            | flag(from == Space::Global, FROM_GLOBAL)
            | flag(wide_to, WIDE_TO)
            | flag(wide_from, WIDE_FROM)
            | flag(multicast.is_some(), MULTICAST)
            | flag(multicast == Some(true), WIDE_BARRIER)
            | reduce,
    )
}

struct Bulk;

impl Body for Bulk {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (to, from, sizes) = unsafe {
            (
                pointers(regs, inst.a, inst.mods & WIDE_TO != 0),
                pointers(regs, inst.b, inst.mods & WIDE_FROM != 0),
                u32::read(regs, inst.c),
            )
        };
        if inst.mods & MULTICAST != 0 {
            // SAFETY: as above; `e` has 16 bits.
            let (blocks, barriers) = unsafe {
                (
                    u16::read(regs, inst.e),
                    pointers(regs, inst.f, inst.mods & WIDE_BARRIER != 0),
                )
            };
            for lane in lanes::iter(mask) {
                for rank in lanes::iter(blocks[lane].into()) {
                    let (to, barrier) = (of_rank(to[lane], rank as u32), of_rank(barriers[lane], rank as u32));
                    let done = copy(m, lane, inst.mods, to, from[lane], sizes[lane])
                        .and_then(|()| complete_tx(m, lane, barrier, sizes[lane]));
                    if done.is_err() {
                        return Flow::Fault;
                    }
                }
            }
            return Flow::Next;
        }
        for lane in lanes::iter(mask) {
            if copy(m, lane, inst.mods, to[lane], from[lane], sizes[lane]).is_err() {
                return Flow::Fault;
            }
        }
        Flow::Next
    }
}

/// Signals `bytes` bytes to an mbarrier in any block of the cluster. Returns `Err` if the lane faults; the machine then
/// has the fault.
pub(super) fn complete_tx(m: &mut Machine<'_>, lane: usize, barrier: u64, bytes: u32) -> Result<(), ()> {
    let found = m.spaces.place_lane(Space::SharedCluster, barrier, lane, (8, 8), true);
    let (at, _) = found.map_err(|refusal| m.refuse(refusal, 8, true))?;
    // SAFETY: `place_lane` found the address valid for reads and writes of 8 bytes, and aligned to them.
    unsafe { access::store64(at, object::complete_tx(access::load64(at), bytes)) };
    Ok(())
}

/// Runs the copy of one lane. Returns `Err` if the lane faults; the machine then has the fault.
fn copy(m: &mut Machine<'_>, lane: usize, mods: u32, to: u64, from: u64, size: u32) -> Result<(), ()> {
    if size == 0 {
        return Ok(());
    }
    // Copying 256 bytes takes about as long as one plain instruction.
    m.steps += u64::from(size) / 256;
    let space = |global: u32, shared| match mods & global {
        0 => shared,
        _ => Space::Global,
    };
    if !size.is_multiple_of(UNIT) {
        m.fault = Some((FaultKind::BulkCopySize { bytes: size }, lane));
        return Err(());
    }
    let mut place = |space, address, write| {
        let range = (u64::from(size), u64::from(UNIT));
        let found = m.spaces.place_lane(space, address, lane, range, write);
        found
            .map(|(at, _)| at)
            .map_err(|refusal| m.refuse(refusal, size, write))
    };
    let source = place(space(FROM_GLOBAL, Space::Shared), from, false)?;
    let target = place(space(TO_GLOBAL, Space::SharedCluster), to, true)?;
    if mods & REDUCES == 0 {
        // SAFETY: `place_lane` found both ranges valid for `size` bytes.
        unsafe { access::copy(target, source, size as usize) };
        return Ok(());
    }
    let element = 1 << (mods >> ELEMENT_SHIFT & 3);
    let global = mods & TO_GLOBAL != 0;
    for offset in (0..size).step_by(element as usize) {
        let (source, target) = (
            source.wrapping_add(offset as usize),
            target.wrapping_add(offset as usize),
        );
        // SAFETY: inside the ranges that `place_lane` found valid and aligned to 16 bytes, so aligned to the element.
        unsafe {
            let b = match element {
                2 => u64::from(access::load16(source)),
                4 => u64::from(access::load32(source)),
                _ => access::load64(source),
            };
            let new = |a| atomic::applied(mods, element, global, a, b, 0);
            access::update(target, element, new);
        }
    }
    Ok(())
}
