//! Counts what one host thread runs.

#![forbid(unsafe_code)]

use super::clocks::Clocks;
use super::counters::Counters;
use super::report::SharedCounts;
use super::requests::{Footprint, Wavefronts, atomic_sectors, footprint, repeated, wavefronts};
use crate::code::site::{AccessBytes, AccessKind, Site, SiteAccess};
use crate::code::watch::{At, BarrierArrival, BlockAt, SiteCount, WorkerObserver};
use crate::lanes::{self, LANES, Mask};
use ptx::ir::{FuncId, Space};
use std::sync::Arc;

/// Counts of the decoded instructions of one function, besides how often they run.
pub(super) type FunctionCounters = Vec<Option<Box<Counters>>>;

/// Counts what one host thread runs.
pub(super) struct WorkerCounts {
    shared: Arc<SharedCounts>,
    /// By function and decoded instruction.
    counters: Vec<FunctionCounters>,
    /// The clocks of the running block.
    clocks: Clocks,
    /// By warp of the running block: the line of the barrier at which it last arrived.
    lines: Vec<u32>,
    /// Time waited at barriers, by PTX line.
    waited: Vec<(u32, u64)>,
}

impl WorkerCounts {
    pub(super) fn new(shared: Arc<SharedCounts>) -> Self {
        WorkerCounts {
            counters: shared.functions.iter().map(|_| Vec::new()).collect(),
            shared,
            clocks: Clocks::default(),
            lines: Vec::new(),
            waited: Vec::new(),
        }
    }

    fn counters(&mut self, at: &At<'_>) -> &mut Counters {
        let function = &mut self.counters[at.code.id.0 as usize];
        let pc = at.pc as usize;
        if function.len() <= pc {
            function.resize(at.code.sites.len().max(pc + 1), None);
        }
        function[pc].get_or_insert_default()
    }
}

/// Adds a request to the counters.
fn count(counters: &mut Counters, at: &At<'_>, access: &SiteAccess, space: Space, mask: Mask) {
    let mut addresses = at.addresses(access);
    if access.space == Space::Generic {
        for address in &mut addresses {
            *address = At::resolve(access, *address).1;
        }
    }
    let (active, size): (Mask, u32) = match access.bytes {
        AccessBytes::Constant(bytes) => (mask, bytes),
        _ => {
            let sizes = at.bytes(access);
            let active = lanes::iter(mask).filter(|i| sizes[*i] > 0).fold(0, |m, i| m | 1 << i);
            (active, sizes[active.trailing_zeros() as usize % LANES])
        }
    };
    let Footprint { sectors, bytes: total } = footprint(&addresses, active, size);
    let request = u64::from(active != 0);
    match (space, access.kind) {
        (Space::Global | Space::Const, kind) => match kind {
            AccessKind::Read => {
                counters.global_load_requests += request;
                counters.global_load_sectors += sectors;
                counters.global_load_bytes += total;
            }
            AccessKind::Write => {
                counters.global_store_requests += request;
                counters.global_store_sectors += sectors;
                counters.global_store_bytes += total;
            }
            AccessKind::Atomic => {
                counters.global_atomic_requests += request;
                counters.global_atomic_sectors += atomic_sectors(&addresses, active);
                counters.global_atomic_conflicts += repeated(&addresses, active);
            }
        },
        (Space::Shared | Space::SharedCluster, kind) => {
            counters.shared_bytes += total;
            if kind == AccessKind::Atomic {
                counters.shared_atomic_requests += request;
                counters.shared_atomic_conflicts += repeated(&addresses, active);
                return;
            }
            let Wavefronts { all, ideal } = wavefronts(&addresses, active, size);
            let (requests, passes, conflicts) = if kind == AccessKind::Read {
                (
                    &mut counters.shared_load_requests,
                    &mut counters.shared_load_wavefronts,
                    &mut counters.shared_load_conflicts,
                )
            } else {
                (
                    &mut counters.shared_store_requests,
                    &mut counters.shared_store_wavefronts,
                    &mut counters.shared_store_conflicts,
                )
            };
            *requests += request;
            *passes += all;
            *conflicts += all - ideal;
        }
        (Space::Local, kind) => {
            // The words of a GPU's local memory are interleaved: word `w` of all lanes is one row of 128 bytes.
            for i in lanes::iter(active) {
                let (word, byte) = (addresses[i] / 4, addresses[i] % 4);
                addresses[i] = word * 4 * LANES as u64 + 4 * i as u64 + byte;
            }
            let rows = u64::from(size.div_ceil(4));
            let sectors: u64 = (0..rows)
                .map(|row| footprint(&addresses.map(|a| a + row * 4 * LANES as u64), active, size.min(4)).sectors)
                .sum();
            if kind == AccessKind::Read {
                counters.local_load_requests += request;
                counters.local_load_sectors += sectors;
            } else {
                counters.local_store_requests += request;
                counters.local_store_sectors += sectors;
            }
        }
        _ => {}
    }
}

impl WorkerObserver for WorkerCounts {
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        !site.accesses.is_empty() && !self.shared.passes_values(function, site)
    }

    fn before(&mut self, at: &At<'_>) {
        let site = at.site();
        let sized = site
            .accesses
            .iter()
            .any(|a| matches!(a.bytes, AccessBytes::Register(_)));
        let bulk = sized && self.shared.copies_in_bulk(at.code.id, site);
        let counters = self.counters(at);
        for access in &site.accesses {
            let mask = at.lanes(access);
            if bulk {
                if access.kind != AccessKind::Read {
                    let bytes = at.bytes(access);
                    counters.bulk_bytes += lanes::iter(mask).map(|i| u64::from(bytes[i])).sum::<u64>();
                }
                continue;
            }
            if access.space != Space::Generic {
                count(counters, at, access, access.space, mask);
                continue;
            }
            let addresses = at.addresses(access);
            let space = |i: usize| At::resolve(access, addresses[i]).0;
            for wanted in [Space::Global, Space::Shared, Space::Local] {
                let lanes = lanes::iter(mask).filter(|i| space(*i) == wanted);
                let lanes = lanes.fold(0, |m, i| m | 1 << i);
                if lanes != 0 {
                    count(counters, at, access, wanted, lanes);
                }
            }
        }
    }

    fn diverge(&mut self, at: &At<'_>, _: Mask) {
        self.counters(at).divergent_branches += 1;
    }

    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        let kept = if first {
            None
        } else {
            self.shared.take_clocks(block.number)
        };
        (self.clocks, self.lines) = kept.unwrap_or_else(|| {
            let clocks = Clocks::new(block.threads);
            (clocks, vec![0; block.threads.div_ceil(32) as usize])
        });
    }

    fn block_leave(&mut self, block: &BlockAt, done: bool) {
        if !done {
            let clocks = std::mem::take(&mut self.clocks);
            self.shared
                .keep_clocks(block.number, (clocks, std::mem::take(&mut self.lines)));
        }
    }

    fn warp_ran(&mut self, warp: u32, issued: u64) {
        self.clocks.advance(warp, issued);
    }

    fn barrier_arrive(&mut self, warp: u32, arrival: &BarrierArrival) {
        self.clocks.arrive(warp, arrival.id);
        if let Some(line) = self.lines.get_mut(warp as usize) {
            *line = arrival.line;
        }
    }

    fn barrier_open(&mut self, id: Option<u32>, waits: &dyn Fn(u32) -> bool) {
        for (warp, wait) in self.clocks.open(id, waits) {
            let line = self.lines.get(warp as usize).copied().unwrap_or(0);
            match self.waited.iter_mut().find(|(l, _)| *l == line) {
                Some((_, sum)) => *sum += wait,
                None => self.waited.push((line, wait)),
            }
        }
    }

    fn finish(self: Box<Self>, counts: &[Vec<SiteCount>]) {
        self.shared.merge(counts, &self.counters, &self.waited);
    }
}
