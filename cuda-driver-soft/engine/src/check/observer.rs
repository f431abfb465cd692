//! Passes the accesses, barriers and synchronisations of a launch to the checkers.

use super::Checker;
use super::checked_launch::{BlockState, CheckedLaunch, Key, Rank, WarpState};
use super::copies::{Copies, WarpCopy};
use super::finding::{AllocationPlace, Checks, Finding};
use super::init::{BlockWritten, Maps, WrittenByOthers, is_simple, is_unwritten};
use super::lane_maps::LaneMaps;
use super::lines::{AccessPattern, Patterns};
use super::order::BlockOrder;
use super::plan::{AccessPlan, CopyStep, NoValues, Plan, StoredValues, different_copies};
use super::race::{Conflict, Races, WarpAccess, shared_address};
use super::warp_access::{Effect, Places, Values, hull};
use crate::code::registers::Slot;
use crate::code::site::{AccessBytes, Site, SiteAccess};
use crate::code::watch::{At, BarrierArrival, BlockAt, SiteCount, WorkerObserver};
use crate::fault::Fault;
use crate::lanes::{self, FULL, LANES, Mask};
use crate::memory::warp::{RANK_SHIFT, of_rank};
use crate::observe::{LaunchObserver, ObservedLaunch, Observer};
use ptx::ir::{BarOp, FuncId, Space};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The bits of an address of shared memory that are the offset in a block.
const OFFSET: u64 = 0xff_ffff;
/// Limit on the bytes of an access that is checked. One end of each large copy is in shared memory, so a larger copy
/// raises a fault right after its check.
pub(super) const MOST_BYTES: u32 = 1 << 20;

impl Observer for Checker {
    fn one_worker(&self) -> bool {
        self.checks().contains(Checks::RACE)
    }

    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver> {
        let plans = Plan::of_launch(launch);
        let mut next = 0;
        let mut first_sites = Vec::with_capacity(plans.len());
        for plans in &plans {
            first_sites.push(next);
            next += plans.len() as u32;
        }
        let needed = |plans: &Vec<Plan>| plans.iter().filter(|p| p.is_needed()).map(|p| p.line).collect();
        let lines: Vec<HashSet<u32>> = plans.iter().map(needed).collect();
        Arc::new(CheckedLaunch {
            checker: self.clone(),
            kernel: Arc::clone(launch.kernel),
            plans: Arc::new(plans),
            first_sites: Arc::new(first_sites),
            lines: Arc::new(lines),
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            reserved_shared: launch.reserved_shared.clone(),
            written_by_others: Arc::new(WrittenByOthers::new(launch.shared_bytes)),
            state: Arc::default(),
        })
    }
}

impl LaunchObserver for CheckedLaunch {
    fn worker(&self) -> Box<dyn WorkerObserver> {
        let races = self.checker.checks().contains(Checks::RACE).then(|| {
            let races = self.state().races.take();
            races.or_else(|| self.checker.spare().races.take()).unwrap_or_default()
        });
        let patterns = self.state().patterns.take();
        let patterns = patterns.or_else(|| self.checker.spare().patterns.take());
        Box::new(CheckWorker {
            checks: self.checker.checks(),
            launch: self.clone(),
            races,
            block: None,
            spare: None,
            maps: Maps::default(),
            patterns: Some(patterns.unwrap_or_default()),
            conflicts: Vec::new(),
            findings: HashMap::new(),
            plans: Some(Arc::clone(&self.plans)),
        })
    }

    fn end(&self, fault: Option<&Fault>) {
        let races = self.state().races.take();
        if let Some(mut races) = races {
            races.reset();
            self.checker.spare().races = Some(races);
        }
        let patterns = self.state().patterns.take();
        if let Some(patterns) = patterns.filter(|patterns| !patterns.maps.is_full()) {
            self.checker.spare().patterns = Some(patterns);
        }
        let mut found: Vec<_> = self.state().findings.drain().map(|(_, found)| found).collect();
        found.sort_by_key(|(rank, finding)| (*rank, finding.places.clone()));
        for (_, finding) in found {
            // An access out of bounds is not also reported as a read of uninitialised memory.
            let faulted = fault.is_some_and(|fault| finding.places.iter().any(|p| p.ptx_line == fault.line));
            if finding.check != Checks::INIT || !faulted {
                self.checker.add(finding);
            }
        }
        if let Some(fault) = fault {
            self.checker.add_fault(fault, &self.kernel);
        }
    }
}

/// The checkers of one worker.
pub(super) struct CheckWorker {
    checks: Checks,
    pub(super) launch: CheckedLaunch,
    races: Option<Box<Races>>,
    pub(super) block: Option<Box<BlockState>>,
    /// The state of a block that has ended, for the next one to reuse.
    spare: Option<Box<BlockState>>,
    maps: Maps,
    patterns: Option<Box<Patterns>>,
    conflicts: Vec<Conflict>,
    findings: HashMap<Key, (Rank, Finding)>,
    plans: Option<Arc<Vec<Vec<Plan>>>>,
}

impl CheckWorker {
    /// Adds a finding, unless there is one with the same key and the same or a lower rank.
    pub(super) fn add(&mut self, key: Key, rank: Rank, finding: impl FnOnce(&CheckedLaunch) -> Finding) {
        match self.findings.get(&key) {
            Some((old, _)) if *old <= rank => {}
            _ => {
                let finding = finding(&self.launch);
                self.findings.insert(key, (rank, finding));
            }
        }
    }

    /// Checks and records an instruction according to its plan.
    fn run_plan(&mut self, at: &At<'_>, plan: &Plan) {
        match plan.copies {
            Some(CopyStep::Wait(newest)) => self.wait_for_copies(at, newest),
            Some(CopyStep::Commit) => {
                if let Some(block) = &mut self.block {
                    block.copies.commit(at.warp as u8, at.mask);
                }
            }
            _ => {}
        }
        let all = &at.site().accesses;
        let lanes = if plan.bulk {
            different_copies(at, all, plan)
        } else {
            FULL
        };
        for (access, plan) in all.iter().zip(&plan.accesses) {
            self.access(at, access, plan, lanes);
        }
        if let Some(reach) = plan.fence
            && let Some(order) = self.block.as_mut().and_then(|b| b.order.as_mut())
        {
            order.fence(at.warp as u8, at.mask, reach);
        }
        if plan.relaxed
            && let Some(warp) = self.block.as_mut().and_then(|b| b.warps.get_mut(at.warp as usize))
        {
            warp.relaxed = true;
        }
        if let Some(members) = plan.across
            && self.checks.contains(Checks::SYNC)
        {
            self.across(at, members);
        }
    }

    /// Records that lanes have waited for their copies.
    fn wait_for_copies(&mut self, at: &At<'_>, newest: Option<u32>) {
        if let (Some(block), Some(races)) = (self.block.as_deref_mut(), &mut self.races)
            && let (Some(order), Some(patterns)) = (&block.order, &self.patterns)
            && !block.copies.is_empty()
        {
            let done = |copy: &WarpCopy| races.complete(order, copy, &patterns.maps);
            block.copies.wait(at.warp as u8, at.mask, newest, done);
        }
    }

    /// Checks one access of an instruction.
    fn access(&mut self, at: &At<'_>, access: &SiteAccess, plan: &AccessPlan, lanes: Mask) {
        if let Some(blocks) = plan.blocks {
            return self.access_blocks(at, access, plan, (lanes, blocks));
        }
        let Some(mut block) = self.block.take() else { return };
        if let (AccessBytes::Constant(size), true) = (access.bytes, access.space != Space::Generic) {
            let mask = at.lanes(access) & lanes;
            if mask != 0 && size != 0 && !self.with_pattern(&mut block, at, access, (mask, size), plan) {
                let addresses = at.addresses(access);
                let spaces = (access.space, access.space);
                self.group(&mut block, at, spaces, (mask, &addresses, size), plan);
            }
            self.block = Some(block);
            return;
        }
        let (mask, addresses, bytes) = at.request(access);
        if access.bytes == AccessBytes::Unknown && plan.effect == Effect::Write {
            self.write_of_unknown_size(&block, (mask, &addresses), plan);
        }
        let mut rest = mask & lanes;
        // Lanes are treated together if they are in one space and access the same number of bytes.
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let (space, _) = At::resolve(access, addresses[first]);
            let size = bytes[first];
            let mut group = rest;
            if access.space == Space::Generic || bytes != [size; LANES] {
                group = 0;
                for lane in lanes::iter(rest) {
                    if At::resolve(access, addresses[lane]).0 == space && bytes[lane] == size {
                        group |= 1 << lane;
                    }
                }
            }
            rest &= !group;
            if size == 0 {
                continue;
            }
            let mut inside = addresses;
            if access.space == Space::Generic && space != Space::Global {
                for lane in lanes::iter(group) {
                    inside[lane] = At::resolve(access, addresses[lane]).1;
                }
            }
            self.group(&mut block, at, (access.space, space), (group, &inside, size), plan);
        }
        self.block = Some(block);
    }

    /// Checks one access of an instruction to the shared memory of several blocks, whose ranks are in the row `blocks`.
    fn access_blocks(&mut self, at: &At<'_>, access: &SiteAccess, plan: &AccessPlan, (lanes, blocks): (Mask, Slot)) {
        let Some(mut block) = self.block.take() else { return };
        let (mask, addresses, bytes) = at.request(access);
        let ranks = at.values(blocks, 2);
        // A copy to a rank that the cluster does not have raises a fault right after its check.
        let all: u32 = self.launch.cluster.iter().product();
        for lane in lanes::iter(mask & lanes).filter(|lane| bytes[*lane] != 0) {
            for rank in (0..all).filter(|rank| ranks[lane] >> rank & 1 != 0) {
                let places = addresses.map(|address| of_rank(address, rank));
                let space = Space::SharedCluster;
                self.group(&mut block, at, (space, space), (1 << lane, &places, bytes[lane]), plan);
            }
        }
        self.block = Some(block);
    }

    /// Checks an access to global or shared memory whose addresses have a known pattern. For any other access, returns
    /// false and records nothing.
    fn with_pattern(
        &mut self,
        block: &mut BlockState,
        at: &At<'_>,
        access: &SiteAccess,
        (mask, bytes): (Mask, u32),
        plan: &AccessPlan,
    ) -> bool {
        let is_shared = match access.space {
            Space::Global => false,
            Space::Shared | Space::SharedCluster if self.launch.cluster == [1; 3] => true,
            _ => return false,
        };
        if plan.pending || plan.multicast {
            return false;
        }
        let site = self.launch.first_sites[at.code.id.0 as usize] + at.pc;
        let Some(mut patterns) = self.patterns.take() else {
            return false;
        };
        let found = patterns.of_access(site, at, access, (plan.effect, mask, bytes));
        let known = found.is_some();
        if let Some((base, (distances, pattern, maps))) = found {
            let base = if is_shared { base & OFFSET } else { base };
            if let Some(written) = &mut block.written {
                let range = base.wrapping_add(pattern.hull.0)..base.wrapping_add(pattern.hull.1);
                let effect = (plan.effect, plan.needs_value);
                let is_simple = match is_shared {
                    true => is_simple(&written.shared, &mut written.known, range, effect),
                    false => self.maps.is_simple(range, pattern.is_span, effect),
                };
                if !is_simple {
                    let addresses = at.addresses(access);
                    self.check_written(block, at, access.space, (mask, &addresses, bytes), plan, None);
                }
            }
            let number = block.at.number as u32;
            let base = if is_shared { shared_address(number, base) } else { base };
            let places = Places { base, distances };
            self.check_order(block, at, (mask, &places, bytes), plan, (Some(pattern), maps));
        }
        self.patterns = Some(patterns);
        known
    }

    /// Checks the order of an access to global or shared memory, whose places are those in the shadow.
    fn check_order(
        &mut self,
        block: &mut BlockState,
        at: &At<'_>,
        (lanes, places, bytes): (Mask, &Places<'_>, u32),
        plan: &AccessPlan,
        pattern: (Option<&AccessPattern>, &mut LaneMaps),
    ) {
        let (Some(order), Some(races)) = (&mut block.order, &mut self.races) else {
            return;
        };
        let stored = plan.values.map(|(rows, row, element)| StoredValues {
            at,
            rows: (rows, row),
            bytes: element.into(),
            elements: Default::default(),
        });
        let values: &dyn Values = stored.as_ref().map_or(&NoValues, |stored| stored);
        let access = WarpAccess {
            warp: at.warp as u8,
            lanes,
            places: *places,
            bytes,
            effect: plan.effect,
            strong: plan.strong,
            release: plan.release,
            pending: plan.pending,
            site: self.launch.first_sites[at.code.id.0 as usize] + at.pc,
        };
        let (pattern, maps) = pattern;
        races.access(order, &access, (pattern, maps), values, &mut self.conflicts);
        if let Some(step) = plan.bulk {
            races.bulk_step(order, &access, step, maps);
        } else if access.pending {
            let what = (bytes, access.site);
            block.copies.add(access.warp, lanes, places.all(), what);
        }
        if !self.conflicts.is_empty() {
            let found = std::mem::take(&mut self.conflicts);
            for conflict in found {
                self.race(&conflict, bytes);
            }
        }
    }

    /// Records a write of unknown size to shared memory: all memory from the address on counts as written. If the write
    /// goes to another block or is multicast, this memory counts as written in each block of the cluster.
    fn write_of_unknown_size(&self, block: &BlockState, (mask, addresses): (Mask, &[u64; LANES]), plan: &AccessPlan) {
        let Some(written) = &block.written else { return };
        for lane in lanes::iter(mask) {
            let range = addresses[lane] & OFFSET..self.launch.shared_bytes;
            let other = addresses[lane] >> RANK_SHIFT & 0xff != 0;
            if self.launch.cluster != [1; 3] && (other || plan.multicast) {
                self.launch.written_in_cluster(&block.at, range.clone());
            }
            written.shared.set(range);
        }
    }

    /// Checks an access of lanes in one space with the same number of bytes. `named_space` is the space that the
    /// instruction names; it may be generic.
    fn group(
        &mut self,
        block: &mut BlockState,
        at: &At<'_>,
        (named_space, space): (Space, Space),
        (group, addresses, bytes): (Mask, &[u64; LANES], u32),
        plan: &AccessPlan,
    ) {
        if bytes > MOST_BYTES {
            return;
        }
        let is_shared = matches!(space, Space::Shared | Space::SharedCluster);
        let mut all_owners;
        let mut owners = None;
        if is_shared && self.launch.cluster != [1; 3] {
            all_owners = [block.at.number; LANES];
            for lane in lanes::iter(group) {
                let rank = (addresses[lane] >> RANK_SHIFT) as u32 & 0xff;
                if rank != 0 || named_space != Space::Shared {
                    all_owners[lane] = self.launch.block_of_rank(block.at.index, rank);
                }
            }
            owners = Some(&all_owners);
            if plan.multicast && self.checks.contains(Checks::INIT) {
                for lane in lanes::iter(group) {
                    let start = addresses[lane] & OFFSET;
                    self.launch
                        .written_in_cluster(&block.at, start..start + u64::from(bytes));
                }
            }
        }
        if self.checks.contains(Checks::INIT) {
            self.check_written(block, at, space, (group, addresses, bytes), plan, owners);
        }
        let is_global = matches!(space, Space::Global | Space::Generic);
        if self.races.is_none() || !(is_shared || is_global) {
            return;
        }
        let shadow = match owners {
            _ if !is_shared => *addresses,
            Some(owners) => std::array::from_fn(|lane| shared_address(owners[lane] as u32, addresses[lane] & OFFSET)),
            None => addresses.map(|address| shared_address(block.at.number as u32, address & OFFSET)),
        };
        let Some(mut patterns) = self.patterns.take() else {
            return;
        };
        let site = self.launch.first_sites[at.code.id.0 as usize] + at.pc;
        let places = Places::of(&shadow);
        match patterns.of_request(site, plan.effect, (group, &shadow, bytes)) {
            Some((_, pattern, maps)) => {
                self.check_order(block, at, (group, &places, bytes), plan, (Some(pattern), maps));
            }
            None => self.check_order(block, at, (group, &places, bytes), plan, (None, &mut patterns.maps)),
        }
        self.patterns = Some(patterns);
    }

    /// Checks that the bytes that an access reads were written, and records the bytes that it writes. `owners` has the
    /// block of each lane's shared memory; `None` if it is the running block for all lanes.
    fn check_written(
        &mut self,
        block: &mut BlockState,
        at: &At<'_>,
        space: Space,
        (group, addresses, bytes): (Mask, &[u64; LANES], u32),
        plan: &AccessPlan,
        owners: Option<&[u64; LANES]>,
    ) {
        let Some(written) = &mut block.written else { return };
        let effect = (plan.effect, plan.needs_value);
        let size = u64::from(bytes);
        let element = u64::from(plan.element);
        let found = match space {
            Space::Global | Space::Generic => self.maps.access(group, addresses, size, element, effect),
            Space::Shared | Space::SharedCluster
                if owners.is_none()
                    && is_simple(
                        &written.shared,
                        &mut written.known,
                        hull(group, addresses, size),
                        effect,
                    ) =>
            {
                None
            }
            Space::Shared | Space::SharedCluster => {
                let mut found = None;
                for lane in lanes::iter(group) {
                    let start = addresses[lane] & OFFSET;
                    let range = start..start + size;
                    // The memory of other blocks counts as written.
                    if let Some(owner) = owners
                        .map(|owners| owners[lane])
                        .filter(|owner| *owner != block.at.number)
                    {
                        if plan.effect != Effect::Read {
                            self.launch.written_by_others.add(owner, range);
                        }
                        continue;
                    }
                    if plan.needs_value && found.is_none() && is_unwritten(&written.shared, range.clone(), element) {
                        if owners.is_some() {
                            let others = &self.launch.written_by_others;
                            others.copy_to(block.at.number, &written.shared, range.clone());
                        }
                        if is_unwritten(&written.shared, range.clone(), element) {
                            found = Some(lane);
                        }
                    }
                    if plan.effect != Effect::Read {
                        written.shared.set(range);
                    }
                }
                found
            }
            Space::Local => {
                let mut found = None;
                for lane in lanes::iter(group) {
                    let start = addresses[lane];
                    // An access out of bounds raises a fault right after this call.
                    let end = start.checked_add(size);
                    if end.is_none_or(|end| end > crate::memory::buffer::MOST_LOCAL) {
                        continue;
                    }
                    let Some((bits, base)) = written.local(at.warp, lane as u64, start + size) else {
                        continue;
                    };
                    let range = base + start..base + start + size;
                    if plan.needs_value && found.is_none() && is_unwritten(bits, range.clone(), element) {
                        found = Some(lane);
                    }
                    if plan.effect != Effect::Read {
                        bits.set(range);
                    }
                }
                found
            }
            _ => None,
        };
        if let Some(lane) = found {
            let site = (at.code.id.0, at.pc);
            let address = addresses[lane];
            let number = block.at.number;
            let rank = (number, at.warp * 32 + lane as u32);
            let warp = at.warp;
            let key = (0, [at.site().line, site.0]);
            self.add(key, rank, |launch| {
                let (memory, allocation) = match space {
                    Space::Local => (format!("offset {address} of its local memory"), None),
                    Space::Shared | Space::SharedCluster => {
                        (format!("offset {:#x} of shared memory", address & OFFSET), None)
                    }
                    _ => (format!("{address:#x}"), AllocationPlace::of(address)),
                };
                let place = launch.place(site, format!("reads {bytes} bytes at {memory}"), number, (warp, lane));
                Finding {
                    check: Checks::INIT,
                    kernel: launch.kernel.name().into(),
                    problem: "a read of uninitialised memory".into(),
                    places: vec![place],
                    allocation,
                    advice: "write the memory before the read, or check the index",
                }
            });
        }
    }
}

impl WorkerObserver for CheckWorker {
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        // A site does not have the index of its decoded instruction: if one instruction of a PTX line is checked, all
        // instructions of the line are observed.
        self.launch.lines[function.0 as usize].contains(&site.line)
    }

    fn before(&mut self, at: &At<'_>) {
        // Taken out, because the checks change other fields of `self`.
        let Some(plans) = self.plans.take() else { return };
        self.run_plan(at, &plans[at.code.id.0 as usize][at.pc as usize]);
        self.plans = Some(plans);
    }

    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        if !first {
            let parked = self.launch.state().blocks.remove(&block.number);
            self.block = parked;
            return;
        }
        let warps = block.threads.div_ceil(32);
        let mut state = match self.spare.take() {
            Some(mut spare) => {
                spare.arrivals.clear();
                spare.copies.clear();
                if let Some(written) = &mut spare.written {
                    written.clear();
                }
                spare.at = *block;
                spare
            }
            None => Box::new(BlockState {
                at: *block,
                order: None,
                written: self
                    .checks
                    .contains(Checks::INIT)
                    .then(|| BlockWritten::new(self.launch.shared_bytes, warps)),
                warps: Vec::new(),
                copies: Copies::default(),
                arrivals: HashMap::new(),
            }),
        };
        // The system initialises the part that it reserves.
        if let (Some(written), Some(reserved)) = (&state.written, &self.launch.reserved_shared) {
            written.shared.set(reserved.clone());
        }
        state.order = self.races.is_some().then(|| {
            let cluster = self.launch.block_of_rank(block.index, 0);
            BlockOrder::new(block.number as u32, cluster as u32, block.threads)
        });
        state.warps.clear();
        state.warps.extend((0..warps).map(|warp| WarpState {
            lanes: FULL >> (32 - (block.threads - warp * 32).min(32)),
            relaxed: false,
            across: Vec::new(),
        }));
        self.block = Some(state);
    }

    fn block_leave(&mut self, block: &BlockAt, done: bool) {
        let Some(state) = self.block.take() else { return };
        if !done {
            self.launch.state().blocks.insert(block.number, state);
            return;
        }
        let blocks: u32 = self.launch.cluster.iter().product();
        if blocks > 1 {
            self.launch.written_by_others.remove(block.number);
        }
        if let Some(races) = &mut self.races {
            let cluster = self.launch.block_of_rank(block.index, 0);
            // Other blocks of the cluster may still use the shared memory.
            if blocks == 1 || races.end_block_of_cluster(cluster, blocks) {
                for rank in 0..blocks {
                    let ended = self.launch.block_of_rank(block.index, rank);
                    races.end_block(ended as u32, self.launch.shared_bytes);
                }
            }
        }
        self.spare = Some(state);
    }

    fn barrier_arrive(&mut self, warp: u32, arrival: &BarrierArrival) {
        let Some(block) = &mut self.block else { return };
        let only_arrives = arrival.op == BarOp::Arrive;
        let Some(id) = arrival.id else {
            let cluster = self.launch.block_of_rank(block.at.index, 0);
            if let (Some(order), Some(races)) = (&mut block.order, &mut self.races) {
                if only_arrives {
                    let state = block.warps.get_mut(warp as usize);
                    let relaxed = state.is_some_and(|state| std::mem::take(&mut state.relaxed));
                    order.arrive_at_cluster(races.cluster(cluster), warp as u8, relaxed);
                } else {
                    order.wait_for_cluster(races.cluster(cluster), warp as u8);
                }
            }
            return;
        };
        block.arrivals.entry(id).or_default().push((warp, *arrival));
        if let Some(order) = &mut block.order {
            order.arrive(id, warp as u8, only_arrives);
        }
    }

    fn barrier_open(&mut self, id: Option<u32>, waits: &dyn Fn(u32) -> bool) {
        let Some(block) = &mut self.block else { return };
        let Some(id) = id else {
            let cluster = self.launch.block_of_rank(block.at.index, 0);
            if let (Some(order), Some(races)) = (&mut block.order, &mut self.races) {
                let cluster = races.cluster(cluster);
                cluster.open();
                for warp in (0..block.warps.len() as u32).filter(|warp| waits(*warp)) {
                    order.wait_for_cluster(cluster, warp as u8);
                }
            }
            return;
        };
        let arrivals = block.arrivals.remove(&id).unwrap_or_default();
        if let Some(order) = &mut block.order {
            order.open(id);
        }
        if self.checks.contains(Checks::SYNC) {
            self.check_barrier(&arrivals, id);
        }
    }

    fn warp_sync(&mut self, warp: u32, lanes: Mask) {
        if let Some(order) = self.block.as_mut().and_then(|b| b.order.as_mut()) {
            order.sync_lanes(warp as u8, lanes);
        }
        if self.checks.contains(Checks::SYNC) {
            self.ran_across(warp, lanes);
        }
    }

    fn exit(&mut self, warp: u32, lanes: Mask) {
        if let Some(order) = self.block.as_mut().and_then(|b| b.order.as_mut()) {
            order.exit(warp as u8, lanes);
        }
    }

    fn warp_end(&mut self, warp: u32) {
        if let Some(order) = self.block.as_mut().and_then(|b| b.order.as_mut()) {
            order.exit(warp as u8, FULL);
        }
    }

    fn finish(self: Box<Self>, _: &[Vec<SiteCount>]) {
        let mut state = self.launch.state();
        if let Some(races) = self.races {
            state.races = Some(races);
        }
        if let Some(patterns) = self.patterns {
            state.patterns = Some(patterns);
        }
        for (key, (rank, finding)) in self.findings {
            let known = state.findings.get(&key).is_some_and(|(old, _)| *old <= rank);
            if !known {
                state.findings.insert(key, (rank, finding));
            }
        }
    }
}
