//! The counts of a launch that its workers share.

#![forbid(unsafe_code)]

use super::class::Class;
use super::clocks::Clocks;
use super::counters::Counters;
use crate::code::function::Code;
use crate::code::site::Site;
use crate::code::watch::SiteCount;
use crate::observe::ObservedLaunch;
use ptx::ir::{Address, Body, CallSlot, Formal, FuncId, Function, Inst, Module, Op, Operand, Space};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Counts of the requests of one function's decoded instructions.
pub(super) type FunctionCounters = Vec<Option<Box<Counters>>>;

/// The counts of a launch so far.
pub(super) struct SharedCounts {
    module: Arc<Module>,
    /// Code by function; `None` for functions that the kernel cannot reach or that are not supported.
    pub(super) functions: Vec<Option<Arc<Code>>>,
    /// By function, the parts of its frame that hold parameters and results.
    passed: Vec<Vec<Range<i64>>>,
    sums: Mutex<Sums>,
    /// The clocks of blocks that no worker runs at the moment.
    clocks: Mutex<HashMap<u64, KeptClocks>>,
}

/// The function and the PTX line of a barrier.
pub(super) type BarrierPlace = (u32, u32);

/// The clocks of a block, and for each warp the place of the barrier at which it last arrived.
pub(super) type KeptClocks = (Clocks, Vec<BarrierPlace>);

/// Sums over workers: the counters by function and instruction of the body, and the time waited at each barrier.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) instructions: BTreeMap<(u32, u32), Counters>,
    pub(super) waited: BTreeMap<BarrierPlace, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SharedCounts {
    /// Returns the counts of a launch that has not run yet.
    pub(super) fn new(launch: &ObservedLaunch<'_>) -> Self {
        let module = launch.module();
        let passed = launch.codes.iter().zip(&module.functions).map(|(code, function)| {
            let body = code.as_ref().and_then(|_| function.body());
            body.map_or(Vec::new(), passed_in_frame)
        });
        SharedCounts {
            passed: passed.collect(),
            module: Arc::clone(module),
            functions: launch.codes.to_vec(),
            sums: Mutex::default(),
            clocks: Mutex::default(),
        }
    }

    /// Takes the sums.
    pub(super) fn take(&self) -> Sums {
        std::mem::take(&mut *lock(&self.sums))
    }

    /// Returns a function of the launch's module.
    pub(super) fn function(&self, id: FuncId) -> Option<&Function> {
        self.module.functions.get(id.0 as usize)
    }

    /// Returns the PTX instruction of a site.
    fn inst(&self, function: FuncId, site: &Site) -> Option<&Inst> {
        self.function(function)?.body()?.insts.get(site.inst? as usize)
    }

    /// Returns true for an access to the parameters of the kernel or of a call. A GPU has them in constant memory or in
    /// registers. A `.local` variable that takes the place of the parameters of an earlier call counts as one of them.
    pub(super) fn passes_values(&self, function: FuncId, site: &Site) -> bool {
        let is_passed = |place: i64| {
            self.passed[function.0 as usize]
                .iter()
                .any(|part| part.contains(&place))
        };
        self.inst(function, site).is_some_and(|inst| match inst.op {
            Op::Ld(m) | Op::St(m) if m.space == Space::Local => match inst.srcs.first() {
                Some(Operand::Address(Address::Frame { offset })) => is_passed(offset.wrapping_add(m.offset)),
                _ => false,
            },
            Op::Ld(m) | Op::St(m) => m.space == Space::Param,
            _ => false,
        })
    }

    /// Returns true for a bulk copy.
    pub(super) fn copies_in_bulk(&self, function: FuncId, site: &Site) -> bool {
        self.inst(function, site)
            .is_some_and(|inst| matches!(inst.op, Op::Bulk { .. }))
    }

    pub(super) fn take_clocks(&self, block: u64) -> Option<KeptClocks> {
        lock(&self.clocks).remove(&block)
    }

    pub(super) fn keep_clocks(&self, block: u64, clocks: KeptClocks) {
        lock(&self.clocks).insert(block, clocks);
    }

    /// Adds the counts of a worker.
    pub(super) fn merge(&self, counts: &[Vec<SiteCount>], more: &[FunctionCounters], waited: &[(BarrierPlace, u64)]) {
        let mut sums = lock(&self.sums);
        for (place, time) in waited {
            *sums.waited.entry(*place).or_default() += time;
        }
        for (id, code) in (0..).zip(&self.functions) {
            let Some(code) = code else { continue };
            let function = id as usize;
            for (pc, (site, count)) in code.sites.iter().zip(&counts[function]).enumerate() {
                let extra = more[function].get(pc).and_then(Option::as_deref);
                let (Some(index), true) = (site.inst, count.runs() > 0 || extra.is_some()) else {
                    continue;
                };
                let Some(inst) = self.inst(code.id, site) else { continue };
                let sum = sums.instructions.entry((id, index)).or_default();
                add(sum, inst, site, count);
                if let Some(extra) = extra {
                    *sum += *extra;
                }
            }
        }
    }
}

/// Returns the parts of a function's frame that hold its own parameters and results, or those of its calls.
fn passed_in_frame(body: &Body) -> Vec<Range<i64>> {
    let formals = body
        .params
        .iter()
        .chain(&body.returns)
        .filter_map(|formal| match *formal {
            Formal::Frame { offset, size } => Some((offset, size)),
            Formal::Reg(_) => None,
        });
    let slots = body.insts.iter().flat_map(|inst| match &inst.op {
        Op::Call { args, rets, .. } => args.iter().chain(rets).collect(),
        _ => Vec::new(),
    });
    let slots = slots.filter_map(|slot| match *slot {
        CallSlot::Frame { offset, size } => Some((offset, size)),
        CallSlot::Value(_) => None,
    });
    let mut parts: Vec<Range<i64>> = formals
        .chain(slots)
        .map(|(offset, size)| i64::from(offset)..i64::from(offset) + i64::from(size))
        .collect();
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    parts.dedup();
    parts
}

/// Adds the runs of a decoded instruction.
fn add(sum: &mut Counters, inst: &Inst, site: &Site, count: &SiteCount) {
    if site.first {
        let runs = count.runs();
        sum.instructions += runs;
        sum.thread_instructions += count.lanes();
        Class::of(&inst.op).add(sum, runs);
        match inst.op {
            Op::Bra { .. } | Op::Brx { .. } => sum.branches += runs,
            Op::Bar { .. } | Op::ClusterBarrier { .. } if !site.guard => sum.barriers += runs,
            _ => {}
        }
    } else if site.effect && matches!(inst.op, Op::Bar { .. } | Op::ClusterBarrier { .. }) {
        sum.barriers += count.runs();
    }
    if site.effect {
        sum.thread_instructions_on += count.lanes();
    }
}
