//! The checkers' view of each decoded instruction: the accesses to memory and their order.

use super::order::Reach;
use super::stamp::Strength;
use super::warp_access::{Effect, Values};
use crate::code::action::Action;
use crate::code::function::Code;
use crate::code::registers::{Slot, lane_bytes};
use crate::code::site::{AccessKind, Site, SiteAccess};
use crate::code::watch::At;
use crate::lanes::{self, LANES, Mask};
use crate::observe::ObservedLaunch;
use crate::ops::memory::Access;
use ptx::ir::{AtomOp, CopyGroup, Inst, MbarrierOp, Op, Operand, Order, Space};
use std::cell::OnceCell;

/// The checkers' view of a decoded instruction.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// One plan for each access of the site.
    pub(super) accesses: Vec<AccessPlan>,
    /// For a fence, the threads that it concerns.
    pub(super) fence: Option<Reach>,
    /// True for a relaxed arrival at the cluster's barrier, which publishes only the accesses before a fence.
    pub(super) relaxed: bool,
    /// An operation on copies of `cp.async`.
    pub(super) copies: Option<CopyStep>,
    /// For a warp-level instruction, the row with its masks of members.
    pub(super) across: Option<Slot>,
    /// True for a bulk copy. Lanes that copy the same bytes to the same place count as one.
    pub(super) bulk: bool,
    /// Line in the PTX source.
    pub(super) line: u32,
}

/// An operation on the copies of `cp.async` of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyStep {
    /// Makes a copy.
    Copy,
    /// Commits a group.
    Commit,
    /// Waits until at most this number of groups is pending, or for all copies.
    Wait(Option<u32>),
}

/// The part of an access in bulk copies that an mbarrier completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkStep {
    /// Writes the bytes.
    Write,
    /// Signals the mbarrier.
    Signal,
    /// Waits for the phase of an mbarrier.
    Wait,
}

/// The checkers' view of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessPlan {
    pub(super) effect: Effect,
    /// True if the bytes must have been written before the access.
    pub(super) needs_value: bool,
    /// The strength of the access.
    pub(super) strong: Strength,
    /// For a release, which needs no fence, the threads to which it publishes the accesses before it.
    pub(super) release: Option<Reach>,
    /// For a store with known values: rows of the elements, bytes per lane of a row, and bytes of an element in memory.
    pub(super) values: Option<([Slot; 4], u8, u8)>,
    /// Bytes of one element, for the check of written bytes; 0 if the whole access is one element.
    pub(super) element: u32,
    /// True for a copy that threads have to wait for.
    pub(super) pending: bool,
    /// For an access of a bulk copy, or of a wait for such copies, its part in them.
    pub(super) bulk: Option<BulkStep>,
    /// For an access to the shared memory of several blocks of the cluster, the row with the masks of their ranks.
    pub(super) blocks: Option<Slot>,
    /// True for a write to the shared memory of several blocks of the cluster whose ranks are not known.
    pub(super) multicast: bool,
}

impl Plan {
    /// Returns true if the instruction is checked.
    pub(super) fn is_needed(&self) -> bool {
        !self.accesses.is_empty()
            || self.fence.is_some()
            || self.relaxed
            || self.copies.is_some()
            || self.across.is_some()
    }

    /// Returns the plans of a launch, by function and decoded instruction.
    pub(super) fn of_launch(launch: &ObservedLaunch<'_>) -> Vec<Vec<Plan>> {
        let plans = launch.codes.iter().map(|code| {
            let Some(code) = code else { return Vec::new() };
            let function = &launch.module().functions[code.id.0 as usize];
            let insts = function.body().map_or(&[][..], |body| &body.insts);
            let swapped: Vec<_> = insts.iter().filter_map(swapped_address).collect();
            let plan = |(pc, site): (usize, &Site)| {
                let inst = site.inst.and_then(|inst| insts.get(inst as usize));
                Plan::new(code, pc, site, inst, &swapped)
            };
            code.sites.iter().enumerate().map(plan).collect()
        });
        plans.collect()
    }

    /// Returns the plan of a decoded instruction of a function.
    ///
    /// `swapped` are the addresses of the function's compare-and-swaps. A load from one of them counts as strong: its
    /// value is a guess that the operation compares.
    fn new(code: &Code, pc: usize, site: &Site, inst: Option<&Inst>, swapped: &[(Operand, i64)]) -> Self {
        let Some(inst) = inst else {
            return Plan::default();
        };
        let mut plan = Plan {
            line: site.line,
            fence: match inst.op {
                Op::Fence { scope } if site.effect => Some(scope.into()),
                _ => None,
            },
            relaxed: matches!(inst.op, Op::ClusterBarrier { relaxed: true, .. }) && site.effect,
            copies: copy_step(inst).filter(|step| site.effect || *step == CopyStep::Copy),
            bulk: matches!(inst.op, Op::Bulk { .. }),
            ..Plan::default()
        };
        let decoded = &code.insts[pc];
        // The action of a collective instruction has the operands of its handler, too. Of the decoded instructions of
        // the PTX instruction, only the one that synchronises lanes has the action.
        if site.syncs
            && let Some(Action::Collective(_, operands)) = code.actions.get(decoded.aux as usize)
        {
            plan.across = operands.members;
        }
        for access in &site.accesses {
            let effect = match access.kind {
                AccessKind::Read => Effect::Read,
                AccessKind::Write => Effect::Write,
                AccessKind::Atomic => Effect::Update,
            };
            let mut one = AccessPlan {
                effect,
                needs_value: effect != Effect::Write,
                strong: match effect {
                    Effect::Update => Strength::Strong,
                    _ => Strength::Weak,
                },
                release: None,
                values: None,
                element: 0,
                pending: effect == Effect::Write && matches!(inst.op, Op::CpAsync { .. }),
                bulk: None,
                blocks: None,
                multicast: effect == Effect::Write && matches!(&inst.op, Op::TensorCopy(copy) if copy.is_multicast()),
            };
            match &inst.op {
                Op::Ld(m) => {
                    let guesses = inst.srcs.first().is_some_and(|a| swapped.contains(&(*a, m.offset)));
                    one.strong = match guesses {
                        true => Strength::Strong,
                        false => strength(m.order),
                    };
                    one.element = m.ty.size();
                    // Parameters of functions are in local memory, too, and calls write them.
                    let direct = matches!(inst.srcs.first(), Some(Operand::Address(_)));
                    one.needs_value = m.space != Space::Local || !direct;
                }
                Op::St(m) => {
                    (one.strong, one.release) = (strength(m.order), release(m.order));
                    let stored = Access::unpack(decoded.mods);
                    let row = lane_bytes(stored.class);
                    let rows = [decoded.b, decoded.d, decoded.c, decoded.e];
                    if m.ty.size() == stored.element {
                        one.values = Some((rows, row, stored.element as u8));
                    }
                }
                Op::Atom { op, mem } | Op::Red { op, mem } => {
                    (one.strong, one.release) = (strength(mem.order).max(Strength::InBlock), release(mem.order));
                    one.needs_value = *op != AtomOp::Exch;
                    one.element = mem.ty.size();
                }
                Op::Mbarrier { op, .. } => {
                    use MbarrierOp::{CompleteTx, Init, Inval, PendingCount, Wait, WaitParity};
                    one.bulk = match op {
                        CompleteTx => Some(BulkStep::Signal),
                        Wait | WaitParity => Some(BulkStep::Wait),
                        _ => None,
                    };
                    // The other operations are atomic.
                    if matches!(op, Init | Inval) {
                        one.strong = Strength::Weak;
                    }
                    // A wait only acquires.
                    let releases = !matches!(op, Init | Inval | PendingCount | Wait | WaitParity);
                    one.release = releases.then_some(Reach::Cluster);
                    one.needs_value = !matches!(op, Init | Inval);
                    one.element = 8;
                }
                Op::Bulk {
                    to,
                    reduce: None,
                    multicast,
                    ..
                } if *to != Space::Global && effect != Effect::Read => {
                    one.blocks = multicast.then_some(decoded.e);
                    one.needs_value = false;
                    one.pending = effect == Effect::Write;
                    one.bulk = Some(BulkStep::Write);
                    // Only a copy to several blocks signals their mbarriers itself.
                    if effect == Effect::Update {
                        one.release = Some(Reach::Cluster);
                        one.bulk = Some(BulkStep::Signal);
                    }
                }
                // Copies may carry padding and parts of buffers that are not used.
                Op::CpAsync { .. } | Op::Bulk { .. } | Op::TensorCopy(_) | Op::TensorMapReplace(_) => {
                    one.needs_value = false;
                }
                _ => {}
            }
            plan.accesses.push(one);
        }
        plan
    }
}

fn copy_step(inst: &Inst) -> Option<CopyStep> {
    match inst.op {
        Op::CpAsync { .. } => Some(CopyStep::Copy),
        Op::CopyGroup(CopyGroup::Commit) => Some(CopyStep::Commit),
        Op::CopyGroup(CopyGroup::Wait) => match inst.srcs.first() {
            Some(Operand::Imm(newest)) => Some(CopyStep::Wait(Some(*newest as u32))),
            _ => Some(CopyStep::Wait(None)),
        },
        Op::CopyGroup(CopyGroup::WaitAll) => Some(CopyStep::Wait(None)),
        // The arrival happens when the copies are done.
        Op::Mbarrier {
            op: MbarrierOp::CopiesArrive | MbarrierOp::CopiesArriveNoInc,
            ..
        } => Some(CopyStep::Wait(None)),
        _ => None,
    }
}

fn strength(order: Order) -> Strength {
    match order.of_memory() {
        Order::Weak => Strength::Weak,
        Order::Relaxed(scope) | Order::Acquire(scope) | Order::Release(scope) | Order::AcqRel(scope) => {
            match Reach::from(scope) {
                Reach::Block => Strength::InBlock,
                _ => Strength::Strong,
            }
        }
        Order::Volatile | Order::Mmio(_) => Strength::Strong,
    }
}

fn release(order: Order) -> Option<Reach> {
    match order.of_memory() {
        Order::Release(scope) | Order::AcqRel(scope) => Some(scope.into()),
        _ => None,
    }
}

/// Returns the address of a compare-and-swap.
fn swapped_address(inst: &Inst) -> Option<(Operand, i64)> {
    match inst.op {
        Op::Atom { op: AtomOp::Cas, mem } => Some((*inst.srcs.first()?, mem.offset)),
        _ => None,
    }
}

/// Returns the first lane of each group of lanes that copy the same bytes to the same place, which happens if a whole
/// warp runs the instruction.
pub(super) fn different_copies(at: &At<'_>, accesses: &[SiteAccess], plan: &Plan) -> Mask {
    let mut all: Vec<_> = accesses.iter().map(|access| at.addresses(access)).collect();
    all.extend(
        plan.accesses
            .iter()
            .find_map(|one| one.blocks)
            .map(|blocks| at.values(blocks, 2)),
    );
    let same = |a: usize, b: usize| all.iter().all(|values| values[a] == values[b]);
    let mut lanes: Mask = 0;
    for lane in lanes::iter(at.mask) {
        if !lanes::iter(lanes).any(|other| same(lane, other)) {
            lanes |= 1 << lane;
        }
    }
    lanes
}

/// The values that a store writes. They are read from the registers when they are first needed.
pub(super) struct StoredValues<'a> {
    pub(super) at: &'a At<'a>,
    /// Rows of the elements, and the bytes per lane of a row.
    pub(super) rows: ([Slot; 4], u8),
    /// Bytes of an element.
    pub(super) bytes: u64,
    /// The values by element and lane, once they have been read.
    pub(super) elements: [OnceCell<[u64; LANES]>; 4],
}

impl Values for StoredValues<'_> {
    fn get(&self, lane: usize, offset: u64, bytes: u32) -> Option<u32> {
        let number = (offset / self.bytes) as usize;
        let (rows, row) = self.rows;
        let element = self.elements.get(number)?;
        let element = element.get_or_init(|| self.at.values(rows[number], row));
        let shift = offset % self.bytes * 8;
        if u64::from(bytes) > self.bytes {
            return None;
        }
        let value = (element[lane] >> shift) as u32;
        Some(if bytes < 4 {
            value & ((1 << (bytes * 8)) - 1)
        } else {
            value
        })
    }
}

/// Values that are not known.
pub(super) struct NoValues;

impl Values for NoValues {
    fn get(&self, _: usize, _: u64, _: u32) -> Option<u32> {
        None
    }
}
