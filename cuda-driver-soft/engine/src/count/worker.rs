//! Counts the requests, the divergent branches and the waits at barriers of the blocks that one host thread runs.

#![forbid(unsafe_code)]

use super::clocks::Clocks;
use super::counters::Counters;
use super::requests::{Footprint, SECTOR, Wavefronts, atomic_sectors, footprint, wavefronts};
use super::shared::{BarrierPlace, FunctionCounters, SharedCounts};
use crate::code::site::{AccessBytes, AccessKind, Site, SiteAccess};
use crate::code::watch::{At, BarrierArrival, BlockAt, SiteCount, WorkerObserver};
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::observe::pattern::{PatternCache, Request};
use ptx::ir::{FuncId, Space};
use std::sync::Arc;

/// The numbers of the requests and divergent branches of one instruction.
#[derive(Default)]
struct SiteRequests {
    counters: Counters,
    /// The numbers of requests with a pattern, and how often each was made. The sectors and bank conflicts of a request
    /// do not change if all its addresses move by whole sectors.
    patterns: PatternCache<(Requests, u64), SECTOR>,
    /// True for a bulk copy, of which only the bytes are counted.
    is_bulk: bool,
}

/// Counts the requests, the divergent branches and the waits at barriers of the blocks that one host thread runs. The
/// interpreter counts the instructions.
pub(super) struct WorkerCounts {
    shared: Arc<SharedCounts>,
    /// The requests by function and decoded instruction.
    requests: Vec<Vec<Option<Box<SiteRequests>>>>,
    /// The clocks of the running block.
    clocks: Clocks,
    /// For each warp of the running block, the place of the barrier at which it last arrived.
    places: Vec<BarrierPlace>,
    /// Time waited at barriers.
    waited: Vec<(BarrierPlace, u64)>,
}

impl WorkerCounts {
    pub(super) fn new(shared: Arc<SharedCounts>) -> Self {
        WorkerCounts {
            requests: shared.functions.iter().map(|_| Vec::new()).collect(),
            shared,
            clocks: Clocks::default(),
            places: Vec::new(),
            waited: Vec::new(),
        }
    }

    #[inline]
    fn requests(&mut self, at: &At<'_>) -> &mut SiteRequests {
        let function = &mut self.requests[at.code.id.0 as usize];
        let pc = at.pc as usize;
        if function.len() <= pc {
            function.resize_with(at.code.sites.len().max(pc + 1), || None);
        }
        function[pc].get_or_insert_with(|| {
            let site = at.site();
            let is_sized = |a: &SiteAccess| matches!(a.bytes, AccessBytes::Register(_));
            Box::new(SiteRequests {
                is_bulk: site.accesses.iter().any(is_sized) && self.shared.copies_in_bulk(at.code.id, site),
                ..SiteRequests::default()
            })
        })
    }
}

/// The numbers of one request.
#[derive(Clone, Copy)]
struct Requests {
    access: (Space, AccessKind),
    requests: u64,
    sectors: u64,
    bytes: u64,
    wavefronts: Wavefronts,
    /// Lanes whose address is also accessed by a lower lane.
    repeated: u64,
}

impl Requests {
    /// Returns the numbers of a request of these lanes. `addresses` are in the space of the access.
    fn new(access: (Space, AccessKind), addresses: &Lanes<u64>, active: Mask, size: u32) -> Self {
        let mut numbers = Requests {
            access,
            requests: u64::from(active != 0),
            sectors: 0,
            bytes: 0,
            wavefronts: Wavefronts::default(),
            repeated: 0,
        };
        if access.0 == Space::Local {
            // The words of a GPU's local memory are interleaved: word `w` of all lanes is one row of 128 bytes. The sums
            // wrap, because the addresses are not checked yet.
            const ROW: u64 = 4 * LANES as u64;
            let mut addresses = *addresses;
            for i in lanes::iter(active) {
                let (word, byte) = (addresses[i] / 4, addresses[i] % 4);
                addresses[i] = word.wrapping_mul(ROW).wrapping_add(4 * i as u64 + byte);
            }
            let rows = u64::from(size.div_ceil(4));
            let row = |row: u64| footprint(&addresses.map(|a| a.wrapping_add(row * ROW)), active, size.min(4)).sectors;
            numbers.sectors = (0..rows).map(row).sum();
            return numbers;
        }
        let Footprint { sectors, bytes } = footprint(addresses, active, size);
        (numbers.sectors, numbers.bytes) = (sectors, bytes);
        // Accesses are aligned to their size, so those that overlap have the same address.
        let places = bytes / u64::from(size.max(1));
        numbers.repeated = u64::from(active.count_ones()).saturating_sub(places);
        match access {
            (Space::Global | Space::Const, AccessKind::Atomic) => numbers.sectors = atomic_sectors(addresses, active),
            (Space::Shared | Space::SharedCluster, AccessKind::Read | AccessKind::Write) => {
                numbers.wavefronts = wavefronts(addresses, active, size);
            }
            _ => {}
        }
        numbers
    }

    /// Adds a number of such requests to the counters.
    fn add(&self, counters: &mut Counters, times: u64) {
        let requests = self.requests * times;
        let sectors = self.sectors * times;
        let bytes = self.bytes * times;
        match self.access {
            (Space::Global | Space::Const, AccessKind::Read) => {
                counters.global_load_requests += requests;
                counters.global_load_sectors += sectors;
                counters.global_load_bytes += bytes;
            }
            (Space::Global | Space::Const, AccessKind::Write) => {
                counters.global_store_requests += requests;
                counters.global_store_sectors += sectors;
                counters.global_store_bytes += bytes;
            }
            (Space::Global | Space::Const, AccessKind::Atomic) => {
                counters.global_atomic_requests += requests;
                counters.global_atomic_sectors += sectors;
                counters.global_atomic_conflicts += self.repeated * times;
            }
            (Space::Shared | Space::SharedCluster, kind) => {
                counters.shared_bytes += bytes;
                let Wavefronts { all, ideal } = self.wavefronts;
                let (of_kind, passes, conflicts) = match kind {
                    AccessKind::Read => (
                        &mut counters.shared_load_requests,
                        &mut counters.shared_load_wavefronts,
                        &mut counters.shared_load_conflicts,
                    ),
                    AccessKind::Write => (
                        &mut counters.shared_store_requests,
                        &mut counters.shared_store_wavefronts,
                        &mut counters.shared_store_conflicts,
                    ),
                    AccessKind::Atomic => {
                        counters.shared_atomic_requests += requests;
                        counters.shared_atomic_conflicts += self.repeated * times;
                        return;
                    }
                };
                *of_kind += requests;
                *passes += all * times;
                *conflicts += (all - ideal) * times;
            }
            (Space::Local, AccessKind::Read) => {
                counters.local_load_requests += requests;
                counters.local_load_sectors += sectors;
            }
            (Space::Local, _) => {
                counters.local_store_requests += requests;
                counters.local_store_sectors += sectors;
            }
            _ => {}
        }
    }
}

impl SiteRequests {
    /// Counts an access of an instruction.
    fn access(&mut self, at: &At<'_>, number: usize, access: &SiteAccess) {
        let mask = at.lanes(access);
        if access.space != Space::Generic
            && mask != 0
            && let AccessBytes::Constant(bytes) = access.bytes
        {
            let kind = (number as u32) << 16 | access.space as u32;
            if self.patterns.find_at(at, access, (kind, mask, bytes)).is_some() {
                if let Some((_, (_, times))) = self.patterns.latest() {
                    *times += 1;
                }
                return;
            }
            let request = Request {
                kind,
                mask,
                addresses: &at.addresses(access),
                bytes,
            };
            return self.insert(&request, (access.space, access.kind));
        }
        let mut addresses = at.addresses(access);
        if access.space != Space::Generic {
            return self.count(at, (number, access), (access.space, mask), &addresses);
        }
        let mut of_space = [(Space::Global, 0), (Space::Shared, 0), (Space::Local, 0)];
        for lane in lanes::iter(mask) {
            let (space, inside) = At::resolve(access, addresses[lane]);
            if let Some((_, lanes)) = of_space.iter_mut().find(|(s, _)| *s == space) {
                *lanes |= 1 << lane;
            }
            addresses[lane] = inside;
        }
        for (space, lanes) in of_space {
            if lanes != 0 {
                self.count(at, (number, access), (space, lanes), &addresses);
            }
        }
    }

    /// Counts a request of lanes that access one space.
    #[inline]
    fn count(
        &mut self,
        at: &At<'_>,
        (number, access): (usize, &SiteAccess),
        (space, mask): (Space, Mask),
        addresses: &Lanes<u64>,
    ) {
        let (active, size) = match access.bytes {
            AccessBytes::Constant(bytes) => (mask, bytes),
            _ => {
                let sizes = at.bytes(access);
                let active: Mask = lanes::iter(mask).filter(|i| sizes[*i] > 0).fold(0, |m, i| m | 1 << i);
                (active, sizes[active.trailing_zeros() as usize % LANES])
            }
        };
        if active != 0 {
            let request = Request {
                kind: (number as u32) << 16 | space as u32,
                mask: active,
                addresses,
                bytes: size,
            };
            self.add(&request, (space, access.kind));
        }
    }

    /// Counts a request, as a new one or as one of a known pattern.
    #[inline]
    fn add(&mut self, request: &Request<'_>, access: (Space, AccessKind)) {
        if let Some((_, times)) = self.patterns.find(request) {
            *times += 1;
            return;
        }
        self.insert(request, access);
    }

    /// Counts a request whose pattern is not known.
    fn insert(&mut self, request: &Request<'_>, access: (Space, AccessKind)) {
        let requests = Requests::new(access, request.addresses, request.mask, request.bytes);
        if let Some((old, times)) = self.patterns.insert(request, (requests, 1)) {
            old.add(&mut self.counters, times);
        }
    }

    /// Returns the counters of all requests.
    fn into_counters(self) -> Counters {
        let mut counters = self.counters;
        for (requests, times) in self.patterns.into_values() {
            requests.add(&mut counters, times);
        }
        counters
    }
}

impl WorkerObserver for WorkerCounts {
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        !site.accesses.is_empty() && !self.shared.passes_values(function, site)
    }

    fn before(&mut self, at: &At<'_>) {
        let site = at.site();
        let requests = self.requests(at);
        for (number, access) in site.accesses.iter().enumerate() {
            if !requests.is_bulk {
                requests.access(at, number, access);
            } else if access.kind != AccessKind::Read && matches!(access.bytes, AccessBytes::Register(_)) {
                let bytes = at.bytes(access);
                let moved = lanes::iter(at.lanes(access)).map(|i| u64::from(bytes[i]));
                requests.counters.bulk_bytes += moved.sum::<u64>();
            }
        }
    }

    fn diverge(&mut self, at: &At<'_>, _: Mask) {
        self.requests(at).counters.divergent_branches += 1;
    }

    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        let kept = if first {
            None
        } else {
            self.shared.take_clocks(block.number)
        };
        (self.clocks, self.places) = kept.unwrap_or_else(|| {
            let clocks = Clocks::new(block.threads);
            (clocks, vec![(0, 0); block.threads.div_ceil(32) as usize])
        });
    }

    fn block_leave(&mut self, block: &BlockAt, done: bool) {
        if !done {
            let clocks = std::mem::take(&mut self.clocks);
            self.shared
                .keep_clocks(block.number, (clocks, std::mem::take(&mut self.places)));
        }
    }

    fn warp_ran(&mut self, warp: u32, issued: u64) {
        self.clocks.advance(warp, issued);
    }

    fn barrier_arrive(&mut self, warp: u32, arrival: &BarrierArrival) {
        self.clocks.arrive(warp, arrival.id);
        if let Some(place) = self.places.get_mut(warp as usize) {
            *place = (arrival.function.0, arrival.line);
        }
    }

    fn barrier_open(&mut self, id: Option<u32>, waits: &dyn Fn(u32) -> bool) {
        for (warp, wait) in self.clocks.open(id, waits) {
            let place = self.places.get(warp as usize).copied().unwrap_or_default();
            match self.waited.iter_mut().find(|(p, _)| *p == place) {
                Some((_, sum)) => *sum += wait,
                None => self.waited.push((place, wait)),
            }
        }
    }

    fn finish(self: Box<Self>, counts: &[Vec<SiteCount>]) {
        let of_site = |site: Option<Box<SiteRequests>>| site.map(|site| Box::new(site.into_counters()));
        let of_function = |function: Vec<Option<Box<SiteRequests>>>| function.into_iter().map(of_site).collect();
        let counters: Vec<FunctionCounters> = self.requests.into_iter().map(of_function).collect();
        self.shared.merge(counts, &counters, &self.waited);
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessKind, Counters, Requests, SiteRequests};
    use crate::lanes::{FULL, Lanes};
    use crate::observe::pattern::Request;
    use ptx::ir::Space;

    #[test]
    fn threads_that_repeat_an_address_are_counted() {
        let repeated = |address: fn(u64) -> u64, mask| {
            let addresses: Lanes<u64> = std::array::from_fn(|lane| address(lane as u64));
            Requests::new((Space::Shared, AccessKind::Atomic), &addresses, mask, 4).repeated
        };
        assert_eq!(repeated(|_| 64, FULL), 31);
        assert_eq!(repeated(|i| 4 * i, FULL), 0);
        assert_eq!(repeated(|i| 4 * (i % 8), FULL), 24);
        assert_eq!(repeated(|i| i / 2 * 4, 0b111), 1);
    }

    #[test]
    fn an_invalid_address_in_local_memory_has_sectors() {
        let access = (Space::Local, AccessKind::Read);
        let numbers = Requests::new(access, &[u64::MAX; 32], FULL, 8);
        // Two rows, each of which begins 3 bytes after a sector does.
        assert_eq!((numbers.requests, numbers.sectors), (1, 2 * 5));
    }

    /// Random requests with patterns that recur, moved by any multiple of their size.
    #[test]
    fn requests_of_known_patterns_have_the_same_numbers() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let spaces = [Space::Global, Space::Shared, Space::Local];
        let kinds = [AccessKind::Read, AccessKind::Write, AccessKind::Atomic];
        for round in 0..60 {
            let access = (spaces[round % 3], kinds[round / 3 % 3]);
            let size = 1 << random(5);
            let steps: Vec<u64> = (0..4).map(|_| random(6) * random(40)).collect();
            let mut requests = SiteRequests::default();
            let mut expected = Counters::default();
            for _ in 0..300 {
                let (first, step) = (4096 + size * random(64), steps[random(4) as usize]);
                let row = 1 + random(3) * 15;
                let addresses: Lanes<u64> = std::array::from_fn(|lane| {
                    let lane = lane as u64;
                    let free = if step == 0 { random(64) } else { 0 };
                    first + size * (lane % row * step / 8 + lane / row * 16 + free)
                });
                let mask = [FULL, FULL, 0xffff, 0x8000_0001, 0x0f0f_0f0e][random(5) as usize];
                let request = Request {
                    kind: 0,
                    mask,
                    addresses: &addresses,
                    bytes: size as u32,
                };
                requests.add(&request, access);
                Requests::new(access, &addresses, mask, size as u32).add(&mut expected, 1);
            }
            assert_eq!(
                requests.into_counters(),
                expected,
                "round {round}: {access:?} of {size} bytes"
            );
        }
    }
}
