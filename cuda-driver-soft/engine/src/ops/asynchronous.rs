//! Asynchronous copies from global to shared memory, and the mbarriers that programs wait on: `cp.async` and
//! `mbarrier`.
//!
//! A copy completes with its instruction, so instructions that wait for copies do nothing.

use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs, Slot};
use crate::fault::FaultKind;
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::memory::access;
use crate::memory::warp::resolve;
use crate::semantics::mbarrier as object;
use ptx::ir::{CopyPart, MbarrierOp, Space};

/// Returns the handlers of `cp.async`.
pub(crate) fn copy() -> Handlers {
    Rare::compile::<AsyncCopy>()
}

/// Packs the modifiers of `cp.async`: the number of bytes, the meaning of `c`, and the widths of the addresses.
pub(crate) fn copy_mods(bytes: u8, part: CopyPart, negated: bool, wide_to: bool, wide_from: bool) -> u32 {
    let part = match part {
        CopyPart::All => 0,
        CopyPart::Bytes => 1,
        CopyPart::Unless => 2 + u32::from(negated),
    };
    u32::from(bytes) | part << 8 | u32::from(wide_to) << 10 | u32::from(wide_from) << 11
}

/// Reads a row of addresses, which have 64 bits if `wide`, else 32.
///
/// # Safety
/// See [`Regs`]; the slot has 64 bits if `wide`, else 32.
pub(super) unsafe fn pointers(regs: Regs<'_>, slot: Slot, wide: bool) -> Lanes<u64> {
    // SAFETY: as promised by the caller.
    unsafe {
        if wide {
            u64::read(regs, slot)
        } else {
            u32::read(regs, slot).map(u64::from)
        }
    }
}

/// `cp.async`: `a` is the target, `b` the source, and `c` the number of bytes or a predicate.
struct AsyncCopy;

impl Body for AsyncCopy {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let bytes = inst.mods & 0xff;
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (to, from, amount) = unsafe {
            let amount = match inst.mods >> 8 & 3 {
                0 => [bytes; LANES],
                1 => u32::read(regs, inst.c),
                part => {
                    let flip = if part == 3 { !0 } else { 0 };
                    let nothing = regs.mask(inst.c) ^ flip;
                    std::array::from_fn(|i| if nothing >> i & 1 != 0 { 0 } else { bytes })
                }
            };
            (
                pointers(regs, inst.a, inst.mods >> 10 & 1 != 0),
                pointers(regs, inst.b, inst.mods >> 11 & 1 != 0),
                amount,
            )
        };
        for i in lanes::iter(mask) {
            if let Err(flow) = copy_lane(m, i, to[i], from[i], bytes, amount[i].min(bytes)) {
                return flow;
            }
        }
        Flow::Next
    }
}

/// Copies `amount` bytes of one lane, and fills the rest of the `bytes` bytes of the target with zeros.
fn copy_lane(m: &mut Machine<'_>, lane: usize, to: u64, from: u64, bytes: u32, amount: u32) -> Result<(), Flow> {
    let mut data = [0u8; 16];
    let align = u64::from(bytes);
    if amount > 0 {
        let read = m
            .spaces
            .place_lane(Space::Global, from, lane, (u64::from(amount), align), false);
        let (at, _) = read.map_err(|refusal| {
            m.refuse(refusal, bytes, false);
            Flow::Fault
        })?;
        for (i, byte) in data.iter_mut().enumerate().take(amount as usize) {
            // SAFETY: `place_lane` found the address valid for reads of `amount` bytes.
            *byte = unsafe { access::load8(at.wrapping_add(i)) };
        }
    }
    let write = m.spaces.place_lane(Space::Shared, to, lane, (align, align), true);
    let (at, _) = write.map_err(|refusal| {
        m.refuse(refusal, bytes, true);
        Flow::Fault
    })?;
    for (i, word) in data.as_chunks::<4>().0.iter().enumerate() {
        if i * 4 < bytes as usize {
            // SAFETY: `place_lane` found the address valid for writes of `bytes` bytes, and aligned to them.
            unsafe { access::store32(at.wrapping_add(i * 4), u32::from_le_bytes(*word)) };
        }
    }
    Ok(())
}

/// The operations by their numbers in [`Inst::mods`].
const OPS: [MbarrierOp; 13] = {
    use MbarrierOp::*;
    [
        Init,
        Inval,
        ExpectTx,
        CompleteTx,
        Arrive,
        ArriveExpectTx,
        ArriveDrop,
        ArriveDropExpectTx,
        Wait,
        WaitParity,
        PendingCount,
        CopiesArrive,
        CopiesArriveNoInc,
    ]
};

/// Returns the handlers of `mbarrier`.
pub(crate) fn mbarrier() -> Handlers {
    Rare::compile::<Mbarrier>()
}

/// Packs the modifiers of `mbarrier`: the operation, the space and the width of the address, and a flag for a result.
pub(crate) fn mbarrier_mods(op: MbarrierOp, space: Space, wide: bool, has_result: bool) -> u32 {
    let number = OPS.iter().position(|o| *o == op).unwrap_or(0) as u32;
    let generic = space == Space::Generic;
    let cluster = space == Space::SharedCluster;
    number | u32::from(generic) << 8 | u32::from(wide) << 9 | u32::from(has_result) << 10 | u32::from(cluster) << 11
}

/// `mbarrier`: `a` is the address (for `pending_count` the state), `b` the operand and `d` the result.
struct Mbarrier;

impl Body for Mbarrier {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        use MbarrierOp::*;
        let op = OPS[(inst.mods & 0xff) as usize % OPS.len()];
        let generic = inst.mods >> 8 & 1 != 0;
        // A generic address may be in any block of the cluster.
        let space = match generic || inst.mods >> 11 & 1 != 0 {
            true => Space::SharedCluster,
            false => Space::Shared,
        };
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (addresses, operands) = unsafe {
            (
                pointers(regs, inst.a, inst.mods >> 9 & 1 != 0),
                pointers(regs, inst.b, op == Wait),
            )
        };
        let (mut states, mut over) = ([0u64; LANES], 0);
        for i in lanes::iter(mask) {
            if op == PendingCount {
                states[i] = u64::from(object::pending_count(addresses[i]));
                continue;
            }
            let address = match resolve(Space::Generic, addresses[i]) {
                _ if !generic => addresses[i],
                (Space::Shared, address) => address,
                _ => {
                    let address = addresses[i];
                    m.fault = Some((FaultKind::BarrierNotShared { address }, i));
                    return Flow::Fault;
                }
            };
            let at = match m.spaces.place_lane(space, address, i, (8, 8), true) {
                Ok((at, _)) => at,
                Err(refusal) => {
                    m.refuse(refusal, 8, true);
                    return Flow::Fault;
                }
            };
            let count = operands[i] as u32;
            // SAFETY: `place_lane` found the address valid for reads and writes of 8 bytes, and aligned.
            let before = unsafe { access::load64(at) };
            let after = match op {
                Init => object::init(count),
                ExpectTx => object::expect_tx(before, count),
                CompleteTx => object::complete_tx(before, count),
                Arrive | CopiesArriveNoInc => object::arrive(before, count),
                // Without `.noinc`, the instruction adds one to the pending count, and the completion of the copies
                // subtracts one again. The copies are complete already, so the object does not change.
                CopiesArrive => before,
                ArriveExpectTx => object::arrive(object::expect_tx(before, count), 1),
                ArriveDrop => object::arrive_drop(before, count),
                ArriveDropExpectTx => object::arrive_drop(object::expect_tx(before, count), 1),
                Wait => {
                    over |= u32::from(object::is_over(before, operands[i])) << i;
                    continue;
                }
                WaitParity => {
                    over |= u32::from(object::is_parity_over(before, count)) << i;
                    continue;
                }
                Inval | PendingCount => continue,
            };
            states[i] = before;
            // SAFETY: as above.
            unsafe { access::store64(at, after) };
        }
        if inst.mods >> 10 & 1 != 0 {
            // SAFETY: the destination is of this frame and class, as promised by the caller.
            unsafe {
                match op {
                    Wait | WaitParity => regs.merge_mask(inst.d, over, mask),
                    PendingCount => u32::merge(regs, inst.d, states.map(|s| s as u32), mask),
                    _ => u64::merge(regs, inst.d, states, mask),
                }
            }
        }
        Flow::Next
    }
}
