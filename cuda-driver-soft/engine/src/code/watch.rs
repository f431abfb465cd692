//! Observation of running warps: the observers of one worker, and the events that they receive.
//!
//! An observed launch runs code that was decoded for observation: [`Code::sites`](super::function::Code::sites) has the
//! origin of each decoded instruction. The interpreter counts the runs of each decoded instruction, and calls the
//! observers before those that one of them wants.

use super::function::Code;
use super::registers::{Lane, Regs, Slot, WIDEST_ROW};
use super::site::{AccessBytes, Site, SiteAccess};
use crate::lanes::{self, FULL, LANES, Lanes, Mask};
use crate::memory::warp::resolve;
use ptx::ir::{BarOp, FuncId, RegClass, Space};
use std::fmt;

/// An observer of the blocks that one worker runs. By default, its methods do nothing.
pub(crate) trait WorkerObserver: Send {
    /// Returns true to receive [`before`](Self::before) for this decoded instruction, as all observers of the worker
    /// then do. Called once per instruction and worker.
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        _ = (function, site);
        false
    }

    /// Called when a warp is about to run a decoded instruction that this or another observer wants. At an instruction
    /// that waits for other lanes, this is the arrival of the lanes.
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

    /// Called when all lanes that take part in a warp-level instruction, such as `bar.warp.sync` or `shfl.sync`, have
    /// arrived: right before the scheduler runs the instruction, or right after a handler has run it.
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

    /// Called when lanes of a warp exit, while other lanes of the warp may continue.
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
    /// The function that the lanes are in.
    pub(crate) function: FuncId,
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
    flags: SiteFlags,
}

/// The properties of an instruction that its observation depends on: [`WANTED`], [`ISSUES`] and [`SYNCS`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SiteFlags(u64);

impl SiteFlags {
    /// Returns true if an observer needs [`WorkerObserver::before`].
    #[inline(always)]
    pub(crate) fn is_wanted(self) -> bool {
        self.0 & WANTED != 0
    }

    /// Returns true if a handler runs the instruction once for all lanes that take part.
    #[inline(always)]
    pub(crate) fn syncs(self) -> bool {
        self.0 & SYNCS != 0
    }

    /// Returns 1 for the first decoded instruction of a PTX instruction, else 0.
    #[inline(always)]
    pub(crate) fn issues(self) -> u64 {
        self.0 / ISSUES % 2
    }
}

impl SiteCount {
    /// Counts a run with this many lanes, and returns the instruction's flags.
    #[inline(always)]
    pub(crate) fn run<const FULL: bool>(&mut self, lanes: u32) -> SiteFlags {
        if FULL {
            self.full += 1;
        } else {
            self.partial += 1;
            self.lanes += u64::from(lanes);
        }
        self.flags
    }

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
                    flags: SiteFlags(flags),
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

    /// Takes the counts of a function, to count its instructions with [`SiteCount::run`]. Return them with
    /// [`give_counts`](Self::give_counts).
    #[inline]
    pub(crate) fn take_counts(&mut self, code: &Code) -> Vec<SiteCount> {
        self.counts
            .get_mut(code.id.0 as usize)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Puts back the counts of a function, which has issued this many PTX instructions since.
    #[inline]
    pub(crate) fn give_counts(&mut self, code: &Code, counts: Vec<SiteCount>, issued: u64) {
        if let Some(of_code) = self.counts.get_mut(code.id.0 as usize) {
            *of_code = counts;
        }
        self.issued += issued;
    }

    /// Notifies all observers of a wanted instruction that is about to run.
    #[inline(never)]
    pub(crate) fn before(&mut self, at: &At<'_>) {
        self.each(|o| o.before(at));
    }

    /// Notifies the observers that the handler of a warp-level instruction has run.
    #[inline(never)]
    pub(crate) fn after(&mut self, at: &At<'_>) {
        self.each(|o| o.warp_sync(at.warp, at.mask));
    }

    /// Notifies the observers that the worker ends.
    pub(crate) fn finish(self) {
        for observer in self.observers {
            observer.finish(&self.counts);
        }
    }
}

/// The distances of the addresses of lanes from that of the first lane.
#[derive(Debug)]
pub(crate) struct Distances {
    wide: Lanes<u64>,
    /// The lower halves.
    narrow: Lanes<u32>,
}

impl Distances {
    /// Returns the distances of a set of lanes; 0 for other lanes.
    pub(crate) fn new(addresses: &Lanes<u64>, mask: Mask) -> Self {
        let base = addresses[mask.trailing_zeros() as usize % LANES];
        let mut wide = [0; LANES];
        for (lane, distance) in wide.iter_mut().enumerate() {
            if mask >> lane & 1 == 1 {
                *distance = addresses[lane].wrapping_sub(base);
            }
        }
        Distances {
            narrow: wide.map(|distance| distance as u32),
            wide,
        }
    }

    /// Returns the distance of each lane.
    pub(crate) fn all(&self) -> &Lanes<u64> {
        &self.wide
    }

    /// Returns true if the addresses of a set of lanes have these distances from the first one.
    #[inline(always)]
    pub(crate) fn are_of(&self, addresses: &Lanes<u64>, base: u64, mask: Mask) -> bool {
        let mut differ = 0;
        if mask == FULL {
            for (address, distance) in addresses.iter().zip(&self.wide) {
                differ |= address.wrapping_sub(base) ^ distance;
            }
        } else {
            for (lane, (address, distance)) in addresses.iter().zip(&self.wide).enumerate() {
                let active = 0u64.wrapping_sub(u64::from(mask >> lane & 1));
                differ |= (address.wrapping_sub(base) ^ distance) & active;
            }
        }
        differ == 0
    }

    /// As [`are_of`](Self::are_of), for addresses of 32 bits.
    #[inline(always)]
    fn are_of_narrow(&self, addresses: &Lanes<u32>, base: u32, mask: Mask) -> bool {
        let mut differ = 0;
        if mask == FULL {
            for (address, distance) in addresses.iter().zip(&self.narrow) {
                differ |= address.wrapping_sub(base) ^ distance;
            }
        } else {
            let lanes = lanes::expand(mask);
            for (lane, (address, distance)) in addresses.iter().zip(&self.narrow).enumerate() {
                differ |= (address.wrapping_sub(base) ^ distance) & lanes[lane];
            }
        }
        differ == 0
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
        assert!(
            inside && slot.0.is_multiple_of(align),
            "a slot is misaligned or outside the frame"
        );
        // SAFETY: `regs` belong to a frame of the code, by the contract of `new`; the slot is inside of it and aligned.
        unsafe { T::read(self.regs, slot) }
    }

    /// Panics if a slot is not a row inside the frame.
    #[inline(always)]
    fn assert_row(&self, slot: Slot) {
        let inside = u64::from(slot.0) + u64::from(WIDEST_ROW) <= u64::from(self.code.frame_bytes);
        assert!(
            inside && slot.0.is_multiple_of(8),
            "a slot is misaligned or outside the frame"
        );
    }

    /// Returns a row of the code's registers with 32 bits per lane.
    #[inline(always)]
    fn narrow_row(&self, slot: Slot) -> &Lanes<u32> {
        self.assert_row(slot);
        // SAFETY: `regs` belong to a frame of the code, by the contract of `new`; the slot is inside of it and aligned.
        // No instruction runs while observers look at the warp.
        unsafe { self.regs.narrow_row(slot) }
    }

    /// Returns a row of the code's registers with 64 bits per lane.
    #[inline(always)]
    fn wide_row(&self, slot: Slot) -> &Lanes<u64> {
        self.assert_row(slot);
        // SAFETY: as for `narrow_row`.
        unsafe { self.regs.wide_row(slot) }
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
        if !access.wide {
            // Addresses of 32 bits wrap.
            let addresses: Lanes<u32> = self.row(access.address);
            return addresses.map(|address| u64::from(address.wrapping_add(access.offset as u32)));
        }
        let mut addresses: Lanes<u64> = self.row(access.address);
        for address in &mut addresses {
            *address = address.wrapping_add(access.offset);
        }
        addresses
    }

    /// Returns the address of the first lane of a set, in the space of the access.
    #[inline]
    pub(crate) fn first_address(&self, access: &SiteAccess, mask: Mask) -> u64 {
        let first = mask.trailing_zeros() as usize % LANES;
        match access.wide {
            true => self.wide_row(access.address)[first].wrapping_add(access.offset),
            false => u64::from(self.narrow_row(access.address)[first].wrapping_add(access.offset as u32)),
        }
    }

    /// Returns true if the address of each lane of a set has this distance from that of the first lane.
    #[inline]
    pub(crate) fn has_distances(&self, access: &SiteAccess, mask: Mask, distances: &Distances) -> bool {
        let first = mask.trailing_zeros() as usize % LANES;
        if access.wide {
            let row = self.wide_row(access.address);
            return distances.are_of(row, row[first], mask);
        }
        let row = self.narrow_row(access.address);
        distances.are_of_narrow(row, row[first], mask)
    }

    /// Returns the space that contains an address of an access, and the address in that space.
    pub(crate) fn resolve(access: &SiteAccess, address: u64) -> (Space, u64) {
        resolve(access.space, address)
    }

    /// Returns the bytes that each lane accesses: 0 if it accesses none, if the number is not known, or if the lanes
    /// access a matrix.
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

    /// Returns a lane's value in a row of 0 (a predicate), 2, 4 or 8 bytes per lane.
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
