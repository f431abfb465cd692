//! Accesses of a warp: 32 addresses at once, checked to the byte.
//!
//! An instruction usually accesses the same *pattern* of addresses each time it runs: a row, one address, a tile. An
//! [`AccessCache`] stores the last pattern (the distance of each lane's address from the lowest) and the last
//! allocation. If both still match, the bounds and the alignment of all lanes are checked with one comparison each. If
//! only the allocation matches, a faster path checks each lane and stores no pattern. Otherwise, the slow path checks
//! each lane, and reports the lane at fault or stores the new pattern, if there is one.

#![forbid(unsafe_code)]

use super::address_space::InFlight;
use super::buffer::{Buffer, LocalMemory};
use super::record::Record;
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::window::{LOCAL, PARAM, SHARED, WINDOW_BITS};
use ptx::ir::Space;

/// The memory that a warp can address.
#[derive(Debug)]
pub(crate) struct Spaces<'m> {
    /// Global and constant memory.
    pub(crate) flight: &'m InFlight,
    /// The block's shared memory.
    pub(crate) shared: Buffer,
    /// The first address of the block's shared memory: in a cluster, the block's rank, shifted by [`RANK_SHIFT`];
    /// otherwise 0.
    pub(crate) shared_base: u64,
    /// The shared memory of the other blocks of the cluster, by rank; the block's own is in `shared`. Empty if the
    /// block has no others in its cluster.
    pub(crate) cluster: Vec<Buffer>,
    /// The warp's local memory.
    pub(crate) local: LocalMemory,
    /// End of the local memory of the running frame.
    pub(crate) local_end: u64,
    /// Bytes past the end of local memory that threads may access.
    pub(crate) slack: u64,
    /// The parameters of the launch.
    pub(crate) params: Buffer,
}

/// The arrangement of a warp's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanePattern {
    /// All 32 lanes without gaps: the address of lane `i` is `i` times the size of the access past that of lane 0.
    Row,
    /// All lanes at one address.
    Same,
    /// Any other arrangement.
    Any,
}

/// The last pattern and allocation of one memory instruction.
#[derive(Debug)]
pub(crate) struct AccessCache<'m> {
    /// Distance from the lowest address, for the lanes of `lanes`.
    pub(crate) deltas: Lanes<u32>,
    /// Lanes whose pattern is known; none at first.
    lanes: Mask,
    /// The arrangement of these lanes.
    pub(crate) pattern: LanePattern,
    /// Distance in bytes from the lowest address to the end of the highest access.
    span: u64,
    /// The allocation of the access whose pattern this is, if it was in global memory.
    record: Option<&'m Record>,
    /// The first address of that allocation.
    base: u64,
    /// Host address minus device address in that allocation, wrapping.
    to_host: u64,
    /// The number of scattered accesses.
    scattered_accesses: u32,
}

/// The host addresses of an access. Each is valid for the access, and aligned.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant)] // A box would cost an allocation for each access.
pub(crate) enum Placed {
    /// The host address of the lane with the lowest address, to which the deltas of the cache are added.
    Pattern(*mut u8),
    /// The host address of each lane.
    Each(Lanes<*mut u8>),
}

/// The reason why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The access is not inside the memory that the space has at this address, or writes to read-only memory.
    Outside,
    /// The address is not a multiple of the size of the access.
    Misaligned,
    /// The access is past the end of the shared memory of the block of the cluster that the address names.
    OutsideOfBlock,
    /// The address names a block that is not in the cluster.
    NoBlock,
}

/// The lowest bit of the block's rank in its cluster, in an address of shared memory.
pub(crate) const RANK_SHIFT: u32 = 24;

/// A refused access: the first lane that may not do it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The reason.
    pub(crate) why: Refused,
    /// The lane.
    pub(crate) lane: usize,
    /// The lane's address in `space`.
    pub(crate) address: u64,
    /// The space, never `Generic`.
    pub(crate) space: Space,
}

impl Default for AccessCache<'_> {
    fn default() -> Self {
        AccessCache {
            deltas: [0; LANES],
            lanes: 0,
            pattern: LanePattern::Any,
            span: 0,
            record: None,
            base: 0,
            to_host: 0,
            scattered_accesses: 0,
        }
    }
}

impl<'m> AccessCache<'m> {
    /// Returns the address to which the deltas are added, if the addresses of the lanes match the remembered pattern.
    #[inline(always)]
    fn anchor<const FULL: bool>(&self, addresses: &Lanes<u64>, mask: Mask) -> Option<u64> {
        if FULL {
            if self.lanes != lanes::FULL {
                return None;
            }
            let anchor = addresses[0].wrapping_sub(u64::from(self.deltas[0]));
            let mut differs = 0;
            for (address, delta) in addresses.iter().zip(&self.deltas) {
                differs |= address.wrapping_sub(anchor) ^ u64::from(*delta);
            }
            (differs == 0).then_some(anchor)
        } else {
            if mask & !self.lanes != 0 {
                return None;
            }
            let first = mask.trailing_zeros() as usize % LANES;
            let anchor = addresses[first].wrapping_sub(u64::from(self.deltas[first]));
            let active = lanes::expand(mask);
            let mut differs = 0;
            for i in 0..LANES {
                let wanted = active[i] as i32 as i64 as u64;
                differs |= (addresses[i].wrapping_sub(anchor) ^ u64::from(self.deltas[i])) & wanted;
            }
            (differs == 0).then_some(anchor)
        }
    }

    /// Returns the host address of the lowest lane of an access to global memory, if pattern and allocation match and
    /// the access is inside the allocation and aligned. `bytes` is the size of one lane's access, a power of two.
    #[inline(always)]
    pub(crate) fn global<const FULL: bool>(&self, addresses: &Lanes<u64>, mask: Mask, bytes: u64) -> Option<*mut u8> {
        let anchor = self.anchor::<FULL>(addresses, mask)?;
        let length = self.record?.length();
        let offset = anchor.wrapping_sub(self.base);
        let fits = length >= self.span && offset <= length - self.span;
        let aligned = anchor & (bytes - 1) == 0;
        (fits && aligned).then(|| anchor.wrapping_add(self.to_host) as usize as *mut u8)
    }

    /// Does the same as [`global`](Self::global) for memory that starts at address `start` in its space and has
    /// `length` bytes from `host` on.
    #[inline(always)]
    pub(crate) fn buffer<const FULL: bool>(
        &self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
        (start, length, host): (u64, u64, *mut u8),
    ) -> Option<*mut u8> {
        let offset = self.anchor::<FULL>(addresses, mask)?.wrapping_sub(start);
        let fits = length >= self.span && offset <= length - self.span;
        let aligned = offset & (bytes - 1) == 0;
        (fits && aligned).then(|| host.wrapping_add(offset as usize))
    }

    /// Returns the difference between host addresses and device addresses if all lanes are in the last allocation and
    /// aligned, with any pattern. Calls whose number is a power of two return `None`, so that the slow path stores a
    /// new pattern.
    #[inline(always)]
    pub(crate) fn scattered(&mut self, addresses: &Lanes<u64>, mask: Mask, bytes: u64) -> Option<u64> {
        let length = self.record?.length();
        self.inside(addresses, mask, bytes, (self.base, length))?;
        Some(self.to_host)
    }

    /// Does the same as [`scattered`](Self::scattered) for memory that starts at address `start` in its space and has
    /// `length` bytes from `host` on.
    #[inline(always)]
    pub(crate) fn scattered_in(
        &mut self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
        (start, length, host): (u64, u64, *mut u8),
    ) -> Option<u64> {
        self.inside(addresses, mask, bytes, (start, length))?;
        Some((host as u64).wrapping_sub(start))
    }

    /// Checks the bounds and the alignment of each lane, and counts a scattered access.
    #[inline(always)]
    fn inside(&mut self, addresses: &Lanes<u64>, mask: Mask, bytes: u64, (start, length): (u64, u64)) -> Option<()> {
        let last = length.checked_sub(bytes)?;
        let (mut fits, mut bits) = (true, 0);
        for i in lanes::iter(mask) {
            fits &= addresses[i].wrapping_sub(start) <= last;
            bits |= addresses[i];
        }
        let aligned = bits & (bytes - 1) == 0;
        self.scattered_accesses = self.scattered_accesses.wrapping_add(1);
        (fits && aligned && !self.scattered_accesses.is_power_of_two()).then_some(())
    }

    /// Remembers the pattern of these addresses and returns the lowest, or `None` if they are 4 GiB or more apart.
    fn learn(&mut self, addresses: &Lanes<u64>, mask: Mask, bytes: u64) -> Option<u64> {
        let (mut lowest, mut highest) = (u64::MAX, 0);
        for i in lanes::iter(mask) {
            lowest = lowest.min(addresses[i]);
            highest = highest.max(addresses[i]);
        }
        let span = highest.wrapping_sub(lowest);
        if span > u64::from(u32::MAX) {
            self.lanes = 0;
            return None;
        }
        self.deltas = [0; LANES];
        let (mut row, mut same) = (true, span == 0);
        for i in lanes::iter(mask) {
            let delta = addresses[i] - lowest;
            self.deltas[i] = delta as u32;
            row &= delta == i as u64 * bytes;
            same &= delta == 0;
        }
        self.pattern = if row && mask == lanes::FULL {
            LanePattern::Row
        } else if same {
            LanePattern::Same
        } else {
            LanePattern::Any
        };
        self.lanes = mask;
        self.span = span + bytes;
        Some(lowest)
    }
}

impl<'m> Spaces<'m> {
    /// Returns the address, length and host address of shared memory from offset `start` on, for
    /// [`AccessCache::buffer`].
    #[inline(always)]
    pub(crate) fn shared(&mut self, start: u64) -> (u64, u64, *mut u8) {
        (start + self.shared_base, self.shared.len(), self.shared.host())
    }

    /// Returns the bytes of local memory that each lane may access.
    pub(crate) fn local_length(&self) -> u64 {
        (self.local_end + self.slack).min(self.local.stride())
    }

    /// Returns the host address of each lane's access to local memory that starts at address `start` in its space, if
    /// all lanes of the mask access their own local memory and are aligned. The results of other lanes mean nothing.
    #[inline(always)]
    pub(crate) fn local(
        &mut self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
        start: u64,
    ) -> Option<Lanes<*mut u8>> {
        let last = self.local_length().checked_sub(bytes)?;
        let (stride, host) = (self.local.stride(), self.local.host());
        let active = lanes::expand(mask);
        let (mut outside, mut bits) = (false, 0);
        let mut each = [std::ptr::null_mut(); LANES];
        for i in 0..LANES {
            let offset = addresses[i].wrapping_sub(start);
            let wanted = active[i] as i32 as i64 as u64;
            outside |= offset & wanted > last;
            bits |= offset & wanted;
            each[i] = host.wrapping_add((i as u64 * stride).wrapping_add(offset) as usize);
        }
        (!outside && bits & (bytes - 1) == 0).then_some(each)
    }

    /// Returns true if an address in shared memory belongs to this block.
    pub(crate) fn is_own(&self, address: u64) -> bool {
        address as u32 >> RANK_SHIFT == self.shared_base as u32 >> RANK_SHIFT
    }

    /// Returns true if some lane accesses the shared memory of another block. Each block's shared memory is a separate
    /// buffer.
    fn leaves_block(&self, space: Space, addresses: &Lanes<u64>, mask: Mask) -> bool {
        !self.cluster.is_empty()
            && lanes::iter(mask).any(|lane| {
                let (space, address) = resolve(space, addresses[lane]);
                matches!(space, Space::Shared | Space::SharedCluster) && !self.is_own(address)
            })
    }

    /// Returns the host address of one lane's access to shared memory.
    fn place_shared(&mut self, space: Space, address: u64, bytes: u64) -> Result<*mut u8, Refused> {
        let fits = |length: u64, offset: u64| offset <= length && bytes <= length - offset;
        let rank = address >> RANK_SHIFT;
        let offset = address & ((1 << RANK_SHIFT) - 1);
        let own = self.shared_base >> RANK_SHIFT;
        // Without `::cluster`, rank 0 also means this block.
        if (rank == own || (rank == 0 && space == Space::Shared)) && fits(self.shared.len(), offset) {
            return Ok(self.shared.host().wrapping_add(offset as usize));
        }
        match (space, self.cluster.get_mut(rank as usize)) {
            (Space::Shared, _) => Err(Refused::Outside),
            (_, Some(block)) if rank != own && fits(block.len(), offset) => {
                Ok(block.host().wrapping_add(offset as usize))
            }
            (_, Some(_)) => Err(Refused::OutsideOfBlock),
            (_, None) if rank != 0 => Err(Refused::NoBlock),
            (_, None) => Err(Refused::Outside),
        }
    }

    /// Checks each lane of an access, and stores its pattern in the cache if it has one: the slow path. `align` is
    /// greater than `bytes` for one half of an access that the decoder has split.
    ///
    /// # Errors
    /// Returns the first lane whose access is refused.
    #[cold]
    #[inline(never)]
    pub(crate) fn place(
        &mut self,
        cache: &mut AccessCache<'m>,
        space: Space,
        addresses: &Lanes<u64>,
        mask: Mask,
        (bytes, align): (u64, u64),
        write: bool,
    ) -> Result<Placed, Refusal> {
        if mask == 0 {
            return Ok(Placed::Each([std::ptr::null_mut(); LANES]));
        }
        let mut each = [std::ptr::null_mut(); LANES];
        let mut seen: Option<Option<&'m Record>> = None;
        let mut one_record = true;
        for lane in lanes::iter(mask) {
            let (host, record) = self.place_lane(space, addresses[lane], lane, (bytes, align), write)?;
            each[lane] = host;
            one_record &= match (record, *seen.get_or_insert(record)) {
                (Some(a), Some(b)) => std::ptr::eq(a, b),
                (None, None) => true,
                _ => false,
            };
        }
        let first_space = resolve(space, addresses[mask.trailing_zeros() as usize % LANES]).0;
        // A pattern needs one piece of memory that is the same for all lanes.
        if one_record
            && first_space != Space::Local
            && !self.leaves_block(space, addresses, mask)
            && let Some(lowest) = cache.learn(addresses, mask, bytes)
        {
            let lane = lanes::iter(mask).find(|i| addresses[*i] == lowest).unwrap_or(0);
            cache.record = seen.flatten();
            (cache.base, cache.to_host) = cache.record.map_or((0, 0), |r| (r.base(), r.delta()));
            return Ok(Placed::Pattern(each[lane]));
        }
        Ok(Placed::Each(each))
    }

    /// Returns the host address of one lane's access, and the allocation if it is in global memory.
    ///
    /// # Errors
    /// Returns an error if the access is refused.
    pub(crate) fn place_lane(
        &mut self,
        space: Space,
        address: u64,
        lane: usize,
        (bytes, align): (u64, u64),
        write: bool,
    ) -> Result<(*mut u8, Option<&'m Record>), Refusal> {
        let generic = space == Space::Generic;
        let (space, address) = resolve(space, address);
        let refused = |why| Refusal {
            why,
            lane,
            address,
            space,
        };
        if address & (align - 1) != 0 {
            return Err(refused(Refused::Misaligned));
        }
        let fits = |length: u64, offset: u64| offset <= length && bytes <= length - offset;
        let flight: &'m InFlight = self.flight;
        match space {
            Space::Shared | Space::SharedCluster => {
                // A generic address may belong to any block of the cluster.
                let wanted = if generic { Space::SharedCluster } else { space };
                let found = self.place_shared(wanted, address, bytes);
                found.map(|host| (host, None)).map_err(refused)
            }
            Space::Local if fits(self.local_length(), address) => {
                let offset = lane as u64 * self.local.stride() + address;
                Ok((self.local.host().wrapping_add(offset as usize), None))
            }
            // Parameters are read-only: later blocks would see a write.
            Space::Param if !write && fits(self.params.len(), address) => {
                Ok((self.params.host().wrapping_add(address as usize), None))
            }
            Space::Global | Space::Const | Space::Generic => match flight.lookup(address) {
                Some(record)
                    if fits(record.length(), address.wrapping_sub(record.base()))
                        && (record.is_writable() || !write) =>
                {
                    let host = address.wrapping_add(record.delta());
                    Ok((host as usize as *mut u8, Some(record)))
                }
                _ => Err(refused(Refused::Outside)),
            },
            _ => Err(refused(Refused::Outside)),
        }
    }
}

/// Returns the address at the same offset in the shared memory of the block of this rank. `address` is a shared or
/// generic address in any block of the cluster.
pub(crate) fn of_rank(address: u64, rank: u32) -> u64 {
    let ranks = 0xff << RANK_SHIFT;
    address & !ranks | u64::from(rank) << RANK_SHIFT & ranks
}

/// Returns the space that an address is in, and the address there.
pub(crate) fn resolve(space: Space, address: u64) -> (Space, u64) {
    if space != Space::Generic {
        return (space, address);
    }
    match address >> WINDOW_BITS {
        n if n == SHARED >> WINDOW_BITS => (Space::Shared, address - SHARED),
        n if n == LOCAL >> WINDOW_BITS => (Space::Local, address - LOCAL),
        n if n == PARAM >> WINDOW_BITS => (Space::Param, address - PARAM),
        _ => (Space::Global, address),
    }
}
