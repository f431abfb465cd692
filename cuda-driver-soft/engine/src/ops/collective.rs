//! Handlers of operations across the lanes of a warp, such as `shfl.sync.bfly.b32`.
//!
//! If all member lanes have arrived, which is the usual case, the handler runs the operation immediately. Otherwise the
//! scheduler (see `warp`) keeps the lanes until the others arrive, possibly at another instruction, and runs it then.
//! Handlers and scheduler use [`compute`], except that the handler of `shfl` has loops of its own.

use crate::code::collective::{Collective, CollectiveOperands};
use crate::code::handlers::{Body, Common, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::semantics::collective::source_lane;
use ptx::ir::{AtomOp, RegClass, ShflMode, VoteMode};

/// The results of a collective operation.
pub(crate) struct CollectiveResult {
    /// The result of each lane.
    pub(crate) d: Lanes<u64>,
    /// The second result, a predicate.
    pub(crate) p: Mask,
}

impl Collective {
    /// Returns the handlers. If member lanes have not arrived, the handlers leave the operation to the scheduler.
    pub(crate) fn handlers(self) -> Handlers {
        match self {
            Collective::Shuffle(_) => Common::compile::<Shuffle>(),
            _ => Rare::compile::<RunCollective>(),
        }
    }
}

/// Runs an operation whose members are `lanes`.
#[inline(always)]
pub(crate) fn compute(
    collective: Collective,
    lanes: Mask,
    a: &Lanes<u64>,
    b: &Lanes<u32>,
    c: &Lanes<u32>,
) -> CollectiveResult {
    let mut d = [0; LANES];
    let mut p = 0;
    match collective {
        Collective::Shuffle(mode) => {
            for i in 0..LANES {
                let (from, inside) = source_lane(mode, i as u32, b[i], c[i]);
                // PTX leaves a value from an inactive lane undefined. Here the lane that requested it gets its own
                // value.
                let from = if lanes >> from & 1 != 0 { from as usize } else { i };
                d[i] = a[from];
                p |= u32::from(inside) << i;
            }
        }
        Collective::Vote(mode) => {
            let holds = lanes::iter(lanes)
                .filter(|i| a[*i] & 1 != 0)
                .fold(0, |m, i| m | 1u32 << i);
            let result = match mode {
                VoteMode::All => u64::from(holds == lanes),
                VoteMode::Any => u64::from(holds != 0),
                VoteMode::Uni => u64::from(holds == lanes || holds == 0),
                VoteMode::Ballot => u64::from(holds),
            };
            d = [result; LANES];
        }
        Collective::MatchAny { .. } => {
            for i in lanes::iter(lanes) {
                let same = lanes::iter(lanes).filter(|k| a[*k] == a[i]);
                d[i] = same.fold(0, |m, k| m | 1u64 << k);
            }
        }
        Collective::MatchAll { .. } => {
            let first = lanes.trailing_zeros() as usize % LANES;
            if lanes::iter(lanes).all(|i| a[i] == a[first]) {
                d = [u64::from(lanes); LANES];
                p = lanes;
            }
        }
        Collective::Reduce { op, signed } => {
            let values = lanes::iter(lanes).map(|i| a[i] as u32);
            let result = values.reduce(|x, y| match (op, signed) {
                (AtomOp::And, _) => x & y,
                (AtomOp::Or, _) => x | y,
                (AtomOp::Xor, _) => x ^ y,
                (AtomOp::Min, false) => x.min(y),
                (AtomOp::Max, false) => x.max(y),
                (AtomOp::Min, true) => (x as i32).min(y as i32) as u32,
                (AtomOp::Max, true) => (x as i32).max(y as i32) as u32,
                _ => x.wrapping_add(y),
            });
            d = [u64::from(result.unwrap_or(0)); LANES];
        }
        Collective::Elect => {
            d = [u64::from(lanes.trailing_zeros()); LANES];
            p = lanes & lanes.wrapping_neg();
        }
        Collective::Barrier => {}
    }
    CollectiveResult { d, p }
}

/// Packs the modifiers of a handler: the operation, and flags for a negated predicate, a member mask and a second
/// result.
pub(crate) fn mods(collective: Collective, operands: &CollectiveOperands, second: bool) -> u32 {
    let number = match collective {
        Collective::Shuffle(mode) => mode as u32,
        Collective::Vote(mode) => 4 + mode as u32,
        Collective::MatchAny { wide } => 8 + u32::from(wide),
        Collective::MatchAll { wide } => 10 + u32::from(wide),
        Collective::Elect => 12,
        Collective::Barrier => 13,
        Collective::Reduce { op, signed } => 16 + 2 * op as u32 + u32::from(signed),
    };
    number | u32::from(operands.negated) << 8 | u32::from(operands.members.is_some()) << 9 | u32::from(second) << 10
}

/// Returns the operation in the modifiers.
#[inline(always)]
fn unpack(mods: u32) -> Collective {
    const SHUFFLES: [ShflMode; 4] = [ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx];
    const VOTES: [VoteMode; 4] = [VoteMode::All, VoteMode::Any, VoteMode::Uni, VoteMode::Ballot];
    const OPS: [AtomOp; 10] = {
        use AtomOp::*;
        [And, Or, Xor, Add, Inc, Dec, Min, Max, Exch, Cas]
    };
    match mods & 0xff {
        n @ 0..4 => Collective::Shuffle(SHUFFLES[n as usize]),
        n @ 4..8 => Collective::Vote(VOTES[n as usize - 4]),
        n @ 8..10 => Collective::MatchAny { wide: n == 9 },
        n @ 10..12 => Collective::MatchAll { wide: n == 11 },
        12 => Collective::Elect,
        13 => Collective::Barrier,
        n => Collective::Reduce {
            op: OPS[(n as usize - 16) / 2 % OPS.len()],
            signed: n & 1 != 0,
        },
    }
}

/// Returns true if the active lanes have the same member mask and are all lanes of that mask that have not exited.
/// Without a member mask, the active lanes are the members, and the result is true.
///
/// # Safety
/// See [`Regs`]; if there is a member mask, `inst.f` must be the slot of a row of 32-bit values.
#[inline(always)]
unsafe fn all_here(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst, mask: Mask) -> bool {
    if inst.mods >> 9 & 1 == 0 {
        return true;
    }
    // SAFETY: as promised by the caller.
    let members = unsafe { u32::read(regs, inst.f) };
    let wanted = members[mask.trailing_zeros() as usize % LANES];
    let active = lanes::expand(mask);
    let mut differs = 0;
    for i in 0..LANES {
        differs |= (members[i] ^ wanted) & active[i];
    }
    differs == 0 && wanted & m.live == mask
}

/// `shfl`
struct Shuffle;

impl Body for Shuffle {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let Collective::Shuffle(mode) = unpack(inst.mods) else {
            // The decoder gives this handler to shuffles only.
            return Flow::Act;
        };
        // SAFETY: the slot is of this frame and class, as promised by the caller.
        if !unsafe { all_here(m, regs, inst, mask) } {
            return Flow::Act;
        }
        // SAFETY: as above.
        let (a, b, c) = unsafe {
            (
                u32::read(regs, inst.a),
                u32::read(regs, inst.b),
                u32::read(regs, inst.c),
            )
        };
        // Each mode has a loop of its own, without a branch inside.
        let (from, inside) = match mode {
            ShflMode::Up => sources(|i| source_lane(ShflMode::Up, i as u32, b[i], c[i])),
            ShflMode::Down => sources(|i| source_lane(ShflMode::Down, i as u32, b[i], c[i])),
            ShflMode::Bfly => sources(|i| source_lane(ShflMode::Bfly, i as u32, b[i], c[i])),
            ShflMode::Idx => sources(|i| source_lane(ShflMode::Idx, i as u32, b[i], c[i])),
        };
        let mut d = a;
        if mask == lanes::FULL {
            for i in 0..LANES {
                d[i] = a[from[i] as usize % LANES];
            }
        } else {
            for i in lanes::iter(mask) {
                // PTX leaves a value from an inactive lane undefined. Here the lane that requested it gets its own
                // value.
                if mask >> (from[i] & 31) & 1 != 0 {
                    d[i] = a[from[i] as usize % LANES];
                }
            }
        }
        // SAFETY: as above; the second result is a predicate.
        unsafe {
            u32::merge(regs, inst.d, d, mask);
            if inst.mods >> 10 & 1 != 0 {
                regs.merge_mask(inst.e, lanes::pack(inside), mask);
            }
        }
        Flow::Next
    }
}

/// Returns for each lane of `shfl` the lane from which it gets its value, and true if that is inside its segment.
#[inline(always)]
fn sources(source: impl Fn(usize) -> (u32, bool)) -> (Lanes<u32>, Lanes<bool>) {
    let (mut from, mut inside) = ([0; LANES], [false; LANES]);
    for i in 0..LANES {
        (from[i], inside[i]) = source(i);
    }
    (from, inside)
}

/// All operations except `shfl`.
struct RunCollective;

impl Body for RunCollective {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let collective = unpack(inst.mods);
        // SAFETY: the slot is of this frame and class, as promised by the caller.
        if !unsafe { all_here(m, regs, inst, mask) } {
            return Flow::Act;
        }
        // SAFETY: as above.
        let a = unsafe {
            match collective.source() {
                Some(RegClass::Pred) => {
                    let flip = if inst.mods >> 8 & 1 != 0 { !0 } else { 0 };
                    let predicate = regs.mask(inst.a) ^ flip;
                    let mut a = [0; LANES];
                    for (i, a) in a.iter_mut().enumerate() {
                        *a = u64::from(predicate >> i & 1);
                    }
                    a
                }
                Some(RegClass::B64) => u64::read(regs, inst.a),
                Some(_) => {
                    let row = u32::read(regs, inst.a);
                    let mut a = [0; LANES];
                    for (a, row) in a.iter_mut().zip(row) {
                        *a = u64::from(row);
                    }
                    a
                }
                None => [0; LANES],
            }
        };
        // Only `shfl` has the other two operands.
        let outcome = compute(collective, mask, &a, &[0; LANES], &[0; LANES]);
        // SAFETY: as above; the destinations are of the class that `result` returns.
        unsafe {
            match collective.result() {
                Some(RegClass::Pred) => {
                    regs.merge_mask(inst.d, if outcome.d[0] != 0 { mask } else { 0 }, mask);
                }
                Some(_) => {
                    let mut row = [0u32; LANES];
                    for (row, d) in row.iter_mut().zip(&outcome.d) {
                        *row = *d as u32;
                    }
                    u32::merge(regs, inst.d, row, mask);
                }
                None => {}
            }
            if inst.mods >> 10 & 1 != 0 {
                regs.merge_mask(inst.e, outcome.p, mask);
            }
        }
        Flow::Next
    }
}

/// Returns the handlers of `activemask`.
pub(crate) fn activemask() -> Handlers {
    Rare::compile::<Activemask>()
}

struct Activemask;

impl Body for Activemask {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and class, as promised by the caller.
        unsafe { u32::merge(regs, inst.d, [mask; LANES], mask) };
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::{compute, mods, unpack};
    use crate::code::collective::{Collective, CollectiveOperands};
    use crate::code::registers::Slot;
    use crate::lanes::{LANES, Lanes};
    use ptx::ir::{AtomOp, ShflMode, VoteMode};

    #[test]
    fn an_operation_survives_packing() {
        let mut all = vec![Collective::Elect, Collective::Barrier];
        all.extend([ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx].map(Collective::Shuffle));
        all.extend([VoteMode::All, VoteMode::Any, VoteMode::Uni, VoteMode::Ballot].map(Collective::Vote));
        for flag in [false, true] {
            all.extend([Collective::MatchAny { wide: flag }, Collective::MatchAll { wide: flag }]);
            use AtomOp::*;
            all.extend([And, Or, Xor, Add, Min, Max].map(|op| Collective::Reduce { op, signed: flag }));
        }
        let slot = Slot(0);
        let operands = CollectiveOperands {
            a: slot,
            negated: true,
            b: slot,
            c: slot,
            members: None,
            d: slot,
            p: slot,
        };
        for collective in all {
            assert_eq!(unpack(mods(collective, &operands, true)), collective);
        }
    }

    #[test]
    fn shuffles_stay_inside_their_segment() {
        let a: Lanes<u64> = std::array::from_fn(|i| i as u64);
        // With segments of 8 lanes the segment mask is 0x18.
        let run = |mode, b: u32, c: u32| compute(Collective::Shuffle(mode), !0, &a, &[b; LANES], &[c; LANES]);
        let down = run(ShflMode::Down, 3, 0x181f);
        assert_eq!((down.d[8], down.d[13], down.d[4]), (11, 13, 7));
        assert_eq!(down.p & 0xff, 0b0001_1111);
        let up = run(ShflMode::Up, 1, 0x1800);
        assert_eq!((up.d[0], up.d[1], up.d[8], up.d[15]), (0, 0, 8, 14));
        assert_eq!(up.p & 0xff, 0b1111_1110);
        let bfly = run(ShflMode::Bfly, 16, 0x1f);
        assert_eq!((bfly.d[3], bfly.d[19]), (19, 3));
        let idx = run(ShflMode::Idx, 9, 0x181f);
        assert_eq!((idx.d[3], idx.d[17]), (1, 17));
    }
}
