//! Observation of running warps: the observers of one worker, and the events that they receive.
//!
//! An observed launch runs code that was decoded for observation: [`Code::sites`](super::function::Code::sites) has the
//! origin of each decoded instruction. The interpreter counts how often each of them runs, and calls the observers
//! before those that they observe.

use super::function::Code;
use super::registers::{Lane, Regs, Slot, WIDEST_ROW};
use super::site::{AccessBytes, Site, SiteAccess};
use crate::lanes::{FULL, LANES, Lanes, Mask};
use crate::memory::warp::resolve;
use ptx::ir::{BarOp, FuncId, RegClass, Space};
use std::fmt;

/// An observer of the blocks that one worker runs. By default, its methods do nothing.
pub(crate) trait WorkerObserver: Send {
    /// Returns true to receive [`before`](Self::before) for this decoded instruction. Called once per instruction and
    /// worker.
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        _ = (function, site);
        false
    }

    /// Called when a warp is about to run a decoded instruction. At an instruction that waits for other lanes, this is
    /// the arrival of the lanes.
    fn before(&mut self, at: &At<'_>) {
        _ = at;
    }

    /// Called when the lanes `taken` of a branch diverge from the others.
    fn diverge(&mut self, at: &At<'_>, taken: Mask) {
        _ = (at, taken);
    }

    /// Called when a block starts (`first`) or continues on this worker.
    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        _ = (block, first);
    }

    /// Called when the block has ended (`done`), or may continue on another worker.
    fn block_leave(&mut self, block: &BlockAt, done: bool) {
        _ = (block, done);
    }

    /// Called when a warp has run, and has issued this many PTX instructions.
    fn warp_ran(&mut self, warp: u32, issued: u64) {
        _ = (warp, issued);
    }

    /// Called when lanes of a warp arrive at a barrier of the block or cluster.
    fn barrier_arrive(&mut self, warp: u32, arrival: &BarrierArrival) {
        _ = (warp, arrival);
    }

    /// Called when a barrier opens (`None`: the cluster's) and releases the warps for which `waits` is true.
    fn barrier_open(&mut self, id: Option<u32>, waits: &dyn Fn(u32) -> bool) {
        _ = (id, waits);
    }

    /// Called when a warp-level instruction, such as `bar.warp.sync` or `shfl.sync`, has run for these lanes.
    fn warp_sync(&mut self, warp: u32, lanes: Mask) {
        _ = (warp, lanes);
    }

    /// Called when lanes call a function of the module from decoded instruction `pc`.
    fn call(&mut self, warp: u32, lanes: Mask, pc: u32, callee: FuncId) {
        _ = (warp, lanes, pc, callee);
    }

    /// Called when lanes return from a function to their caller.
    fn ret(&mut self, warp: u32, lanes: Mask, function: FuncId) {
        _ = (warp, lanes, function);
    }

    /// Called when lanes of a warp exit, while others of the warp may not.
    fn exit(&mut self, warp: u32, lanes: Mask) {
        _ = (warp, lanes);
    }

    /// Called when all lanes of a warp have exited.
    fn warp_end(&mut self, warp: u32) {
        _ = warp;
    }

    /// Called when the worker ends. `counts` has the number of runs of each decoded instruction, by function and
    /// instruction.
    fn finish(self: Box<Self>, counts: &[Vec<SiteCount>]);
}

/// A block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    /// Coordinates in the grid.
    pub(crate) index: [u32; 3],
    /// Number in the grid.
    pub(crate) number: u64,
    /// Number of threads.
    pub(crate) threads: u32,
}

/// An arrival at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierArrival {
    /// Number of the barrier; `None` for the cluster's.
    pub(crate) id: Option<u32>,
    /// Number of threads that take part, if given.
    pub(crate) count: Option<u32>,
    /// The operation.
    pub(crate) op: BarOp,
    /// Lanes that arrive.
    pub(crate) lanes: Mask,
    /// Line in the PTX source.
    pub(crate) line: u32,
}

/// The number of times that a decoded instruction has run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteCount {
    /// Runs with all 32 lanes.
    pub(crate) full: u64,
    /// Runs with fewer lanes.
    pub(crate) partial: u64,
    /// Lanes of the runs with fewer lanes.
    pub(crate) lanes: u64,
    /// [`WANTED`], [`ISSUES`] and [`SYNCS`].
    flags: u64,
}

impl SiteCount {
    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> u64 {
        self.full + self.partial
    }

    /// Returns the number of lanes of all runs.
    pub(crate) fn lanes(&self) -> u64 {
        self.full * LANES as u64 + self.lanes
    }
}

/// An observer needs [`WorkerObserver::before`].
const WANTED: u64 = 1;
/// The instruction is the first one of a PTX instruction.
const ISSUES: u64 = 2;
/// A handler runs the instruction once for all lanes that take part.
const SYNCS: u64 = 4;

/// The observers of one worker, and the counts of the instructions that it has run.
pub(crate) struct Watch {
    observers: Vec<Box<dyn WorkerObserver>>,
    /// The counts by function and decoded instruction.
    counts: Vec<Vec<SiteCount>>,
    /// PTX instructions issued so far.
    pub(crate) issued: u64,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("issued", &self.issued)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Returns a watch over these functions.
    pub(crate) fn new<'c>(
        mut observers: Vec<Box<dyn WorkerObserver>>,
        codes: impl Iterator<Item = Option<&'c Code>>,
    ) -> Self {
        let counts = codes.map(|code| {
            let Some(code) = code else {
                return Vec::new();
            };
            let count = code.sites.iter().map(|site| {
                let wanted = observers.iter_mut().fold(false, |any, o| o.wants(code.id, site) | any);
                let mut flags = if wanted { WANTED } else { 0 };
                if site.first {
                    flags |= ISSUES;
                }
                if site.syncs {
                    flags |= SYNCS;
                }
                SiteCount {
                    flags,
                    ..SiteCount::default()
                }
            });
            count.collect()
        });
        Watch {
            counts: counts.collect(),
            observers,
            issued: 0,
        }
    }

    /// Calls `tell` with each observer.
    pub(crate) fn each(&mut self, mut tell: impl FnMut(&mut dyn WorkerObserver)) {
        for observer in &mut self.observers {
            tell(observer.as_mut());
        }
    }

    /// Counts an instruction that is about to run, and notifies the observers that need it.
    #[inline(always)]
    pub(crate) fn before<const FULL: bool>(&mut self, at: &At<'_>) {
        let Some(count) = self.counts[at.code.id.0 as usize].get_mut(at.pc as usize) else {
            return;
        };
        if FULL {
            count.full += 1;
        } else {
            count.partial += 1;
            count.lanes += u64::from(at.mask.count_ones());
        }
        self.issued += count.flags / ISSUES % 2;
        if count.flags & WANTED != 0 {
            self.tell_before(at);
        }
    }

    #[inline(never)]
    fn tell_before(&mut self, at: &At<'_>) {
        self.each(|o| o.before(at));
    }

    /// Notifies the observers of a warp-level instruction that its handler has run.
    #[inline(always)]
    pub(crate) fn after(&mut self, at: &At<'_>) {
        let count = self.counts[at.code.id.0 as usize].get(at.pc as usize);
        if count.is_some_and(|c| c.flags & SYNCS != 0) {
            self.each(|o| o.warp_sync(at.warp, at.mask));
        }
    }

    /// Notifies the observers that the worker ends.
    pub(crate) fn finish(self) {
        for observer in self.observers {
            observer.finish(&self.counts);
        }
    }
}

/// A warp at a decoded instruction.
pub(crate) struct At<'a> {
    /// The code of the function.
    pub(crate) code: &'a Code,
    /// Index of the decoded instruction.
    pub(crate) pc: u32,
    /// Number of the warp in its block.
    pub(crate) warp: u32,
    /// Lanes that run the instruction.
    pub(crate) mask: Mask,
    /// Lanes of the warp that have not exited.
    pub(crate) live: Mask,
    regs: Regs<'a>,
}

impl<'a> At<'a> {
    /// Returns a warp at an instruction.
    ///
    /// # Safety
    /// `regs` are the registers of a frame of this code.
    pub(crate) unsafe fn new(code: &'a Code, regs: Regs<'a>, pc: usize, warp: u32, mask: Mask, live: Mask) -> Self {
        At {
            code,
            pc: pc as u32,
            warp,
            mask,
            live,
            regs,
        }
    }

    /// Returns the origin of the instruction.
    pub(crate) fn site(&self) -> &'a Site {
        &self.code.sites[self.pc as usize]
    }

    /// Returns a row of the code's registers.
    fn row<T: Lane>(&self, slot: Slot) -> Lanes<T> {
        let inside = u64::from(slot.0) + u64::from(WIDEST_ROW) <= u64::from(self.code.frame_bytes);
        let align = if T::CLASS == RegClass::Pred { 4 } else { 8 };
        assert!(inside && slot.0.is_multiple_of(align), "a slot outside the frame");
        // SAFETY: `regs` belong to a frame of the code, by the contract of `new`; the slot is inside of it and aligned.
        unsafe { T::read(self.regs, slot) }
    }

    /// Returns the lanes whose addresses are used by an access.
    pub(crate) fn lanes(&self, access: &SiteAccess) -> Mask {
        if access.lanes >= 32 {
            self.mask
        } else {
            self.mask & ((1 << access.lanes) - 1)
        }
    }

    /// Returns the address of each lane, in the space of the access.
    pub(crate) fn addresses(&self, access: &SiteAccess) -> Lanes<u64> {
        let mut addresses: Lanes<u64> = if access.wide {
            self.row(access.address)
        } else {
            self.row::<u32>(access.address).map(u64::from)
        };
        for address in &mut addresses {
            *address = address.wrapping_add(access.offset);
        }
        addresses
    }

    /// Returns the space that contains an address of an access, and the address in that space.
    pub(crate) fn resolve(access: &SiteAccess, address: u64) -> (Space, u64) {
        resolve(access.space, address)
    }

    /// Returns the bytes that each lane accesses, or 0 if that is not known.
    pub(crate) fn bytes(&self, access: &SiteAccess) -> Lanes<u32> {
        match access.bytes {
            AccessBytes::Constant(bytes) => [bytes; LANES],
            AccessBytes::Register(slot) => self.row(slot),
            AccessBytes::If(slot, wanted, bytes) => {
                let holds: Lanes<bool> = self.row(slot);
                holds.map(|h| if h == wanted { bytes } else { 0 })
            }
            AccessBytes::Matrix(_) | AccessBytes::Unknown => [0; LANES],
        }
    }

    /// Returns the lanes that access memory, and the address and bytes of each. The rows of a matrix count as accesses
    /// of one lane each.
    pub(crate) fn request(&self, access: &SiteAccess) -> (Mask, Lanes<u64>, Lanes<u32>) {
        let (mask, addresses) = (self.lanes(access), self.addresses(access));
        let AccessBytes::Matrix(matrix) = access.bytes else {
            return (mask, addresses, self.bytes(access));
        };
        if mask == 0 {
            return (0, addresses, [0; LANES]);
        }
        let first = mask.trailing_zeros() as usize % LANES;
        let stride = match matrix.stride {
            Some(slot) => u64::from(self.row::<u32>(slot)[first]).wrapping_mul(matrix.element_bits.into()) / 8,
            None => matrix.bytes.into(),
        };
        let rows = std::array::from_fn(|row| addresses[first].wrapping_add(stride.wrapping_mul(row as u64)));
        let lanes = FULL >> (LANES as u32 - u32::from(matrix.rows).clamp(1, LANES as u32));
        (lanes, rows, [matrix.bytes; LANES])
    }

    /// Returns the values of a row of 2, 4 or 8 bytes per lane.
    pub(crate) fn values(&self, slot: Slot, bytes: u8) -> Lanes<u64> {
        match bytes {
            2 => self.row::<u16>(slot).map(u64::from),
            4 => self.row::<u32>(slot).map(u64::from),
            _ => self.row(slot),
        }
    }

    /// Returns a lane's value in a row of 1 (a predicate), 2, 4 or 8 bytes per lane.
    pub(crate) fn value(&self, slot: Slot, bytes: u8, lane: usize) -> u64 {
        let lane = lane % LANES;
        match bytes {
            2 => u64::from(self.row::<u16>(slot)[lane]),
            4 => u64::from(self.row::<u32>(slot)[lane]),
            8 => self.row::<u64>(slot)[lane],
            _ => u64::from(self.row::<bool>(slot)[lane]),
        }
    }
}
