//! Accesses of a warp: 32 addresses at once, checked to one byte.
//!
//! An instruction usually accesses the same *pattern* of addresses each time it runs: a row, one place, a tile. An
//! [`AccessCache`] remembers the pattern (the distance of each lane's address from the lowest) and the allocation that
//! it was in last. When both still hold, bounds and alignment of all lanes are one comparison each; else the slow path
//! finds out anew, or which lane is at fault.

use super::buffer::{Buffer, LocalMemory};
use super::space::{InFlight, Record};
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::window::{LOCAL, PARAM, SHARED, WINDOW_BITS};
use ptx::ir::Space;

/// What a warp can address.
#[derive(Debug)]
pub(crate) struct Spaces<'m> {
    /// Global and constant memory.
    pub(crate) flight: &'m InFlight,
    /// The block's shared memory.
    pub(crate) shared: Buffer,
    /// What the addresses of the block's shared memory begin with: not 0 in all but the first block of a cluster.
    pub(crate) shared_base: u64,
    /// The shared memory of each block of the cluster, by rank; that of the block itself is above. Empty without clusters.
    pub(crate) cluster: Vec<Buffer>,
    /// The warp's local memory.
    pub(crate) local: LocalMemory,
    /// End of the local memory that the running frame may access.
    pub(crate) local_end: u64,
    /// The launch's parameters.
    pub(crate) params: Buffer,
}

/// How the lanes of a pattern lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One lane after the other, without gaps: lane `i` at `i` times the size of the access.
    Row,
    /// All at one address.
    Same,
    /// Any other way.
    Any,
}

/// What one memory instruction remembers.
#[derive(Debug)]
pub(crate) struct AccessCache<'m> {
    /// Distance from the lowest address, for the lanes of `lanes`.
    pub(crate) deltas: Lanes<u32>,
    /// Lanes that the pattern is known for; none at first.
    lanes: Mask,
    /// How they lie.
    pub(crate) shape: Shape,
    /// From the lowest byte to the end of the highest, in bytes.
    span: u64,
    /// The allocation of the last access, if it was in global memory.
    record: Option<&'m Record>,
    /// Its first address.
    base: u64,
    /// What leads from its addresses to the host's.
    to_host: u64,
    /// How often the addresses had another pattern.
    misses: u32,
}

/// Where the lanes of an access are on the host. Each place is valid for the access, and aligned.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant)] // A box would cost an allocation for each access.
pub(crate) enum Placed {
    /// At this place, plus the pattern's delta.
    Pattern(*mut u8),
    /// Each at its own place.
    Each(Lanes<*mut u8>),
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Outside of what the space has at this address.
    Outside,
    /// Not a multiple of the size of the access.
    Misaligned,
    /// In another block of the cluster, beyond what that has.
    OutsideOfBlock,
    /// In a block that the cluster does not have.
    NoBlock,
}

/// Bits of an address in shared memory above which the rank of the block in its cluster is.
pub(crate) const RANK_SHIFT: u32 = 24;

/// The first lane that is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Why.
    pub(crate) why: Refused,
    /// The lane.
    pub(crate) lane: usize,
    /// Its address, in the space below.
    pub(crate) address: u64,
    /// The space, which is not `Generic`.
    pub(crate) space: Space,
}

impl Default for AccessCache<'_> {
    fn default() -> Self {
        AccessCache {
            deltas: [0; LANES],
            lanes: 0,
            shape: Shape::Any,
            span: 0,
            record: None,
            base: 0,
            to_host: 0,
            misses: 0,
        }
    }
}

impl<'m> AccessCache<'m> {
    /// The lowest address, if the addresses of the lanes have the pattern that is remembered.
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

    /// Where the access goes, if it is to global memory and all is as remembered. `bytes` is the size of one lane's
    /// access, a power of two.
    #[inline(always)]
    pub(crate) fn global<const FULL: bool>(
        &self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
    ) -> Option<*mut u8> {
        let anchor = self.anchor::<FULL>(addresses, mask)?;
        let length = self.record?.length();
        let offset = anchor.wrapping_sub(self.base);
        let fits = length >= self.span && offset <= length - self.span;
        let aligned = anchor & (bytes - 1) == 0;
        (fits && aligned).then(|| anchor.wrapping_add(self.to_host) as usize as *mut u8)
    }

    /// Where `span` bytes from this address on are, a multiple of `align`, if they are in the allocation of the last
    /// access.
    #[inline(always)]
    pub(crate) fn range(&self, address: u64, span: u64, align: u64) -> Option<*mut u8> {
        let length = self.record?.length();
        let offset = address.wrapping_sub(self.base);
        let fits = length >= span && offset <= length - span;
        let aligned = address & (align - 1) == 0;
        (fits && aligned).then(|| address.wrapping_add(self.to_host) as usize as *mut u8)
    }

    /// The same for memory that starts at address `start` in its space and has `length` bytes from `host` on.
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

    /// Where the lanes are whose addresses have no pattern, if all are in the allocation of the last access: what leads from
    /// addresses to the host's. Now and then nothing is said, so that a new pattern is learned.
    #[inline(always)]
    pub(crate) fn scattered(
        &mut self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
    ) -> Option<u64> {
        let length = self.record?.length();
        self.inside(addresses, mask, bytes, (self.base, length))?;
        Some(self.to_host)
    }

    /// The same for memory that starts at address `start` in its space and has `length` bytes from `host` on.
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

    #[inline(always)]
    fn inside(
        &mut self,
        addresses: &Lanes<u64>,
        mask: Mask,
        bytes: u64,
        (start, length): (u64, u64),
    ) -> Option<()> {
        let last = length.checked_sub(bytes)?;
        let (mut fits, mut bits) = (true, 0);
        for i in lanes::iter(mask) {
            fits &= addresses[i].wrapping_sub(start) <= last;
            bits |= addresses[i];
        }
        let aligned = bits & (bytes - 1) == 0;
        self.misses = self.misses.wrapping_add(1);
        (fits && aligned && !self.misses.is_power_of_two()).then_some(())
    }

    /// Remembers the pattern of these addresses. False if they are too far apart to be one.
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
        self.shape = if row && mask == lanes::FULL {
            Shape::Row
        } else if same {
            Shape::Same
        } else {
            Shape::Any
        };
        self.lanes = mask;
        self.span = span + bytes;
        Some(lowest)
    }
}

impl<'m> Spaces<'m> {
    /// What [`AccessCache::buffer`] wants to know of shared memory.
    #[inline(always)]
    pub(crate) fn shared(&mut self, start: u64) -> (u64, u64, *mut u8) {
        (
            start + self.shared_base,
            self.shared.len(),
            self.shared.host(),
        )
    }

    /// Whether an address in shared memory is one of this block.
    pub(crate) fn is_own(&self, address: u64) -> bool {
        address as u32 >> RANK_SHIFT == self.shared_base as u32 >> RANK_SHIFT
    }

    /// Whether lanes of an access are in the shared memory of other blocks, each of which has a place of its own.
    fn is_apart(&self, space: Space, addresses: &Lanes<u64>, mask: Mask) -> bool {
        !self.cluster.is_empty()
            && lanes::iter(mask).any(|lane| {
                let (space, address) = resolve(space, addresses[lane]);
                matches!(space, Space::Shared | Space::SharedCluster) && !self.is_own(address)
            })
    }

    /// Where an access to shared memory goes.
    fn place_shared(&mut self, space: Space, address: u64, bytes: u64) -> Result<*mut u8, Refused> {
        let fits = |length: u64, offset: u64| offset <= length && bytes <= length - offset;
        let rank = address >> RANK_SHIFT;
        let offset = address & ((1 << RANK_SHIFT) - 1);
        let own = self.shared_base >> RANK_SHIFT;
        // Without `::cluster` an address without a rank is one of the block, too.
        if (rank == own || (rank == 0 && space == Space::Shared)) && fits(self.shared.len(), offset)
        {
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

    /// Places an access that the fast path did not, and makes the cache remember it. `align` may be more than `bytes`,
    /// for one half of an access that the decoder has split.
    ///
    /// # Errors
    /// The first lane that may not do this access.
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
            let (host, record) =
                self.place_lane(space, addresses[lane], lane, (bytes, align), write)?;
            each[lane] = host;
            one_record &= match (record, *seen.get_or_insert(record)) {
                (Some(a), Some(b)) => std::ptr::eq(a, b),
                (None, None) => true,
                _ => false,
            };
        }
        let first_space = resolve(space, addresses[mask.trailing_zeros() as usize % LANES]).0;
        // A pattern must lie in one piece of memory that is the same for all lanes.
        if one_record
            && first_space != Space::Local
            && !self.is_apart(space, addresses, mask)
            && let Some(lowest) = cache.learn(addresses, mask, bytes)
        {
            let lane = lanes::iter(mask)
                .find(|i| addresses[*i] == lowest)
                .unwrap_or(0);
            cache.record = seen.flatten();
            (cache.base, cache.to_host) = cache.record.map_or((0, 0), |r| (r.base(), r.delta()));
            return Ok(Placed::Pattern(each[lane]));
        }
        Ok(Placed::Each(each))
    }

    /// Where one lane's access goes, and the allocation if it is in global memory.
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
                // A generic address may be that of any block.
                let wanted = if generic { Space::SharedCluster } else { space };
                let found = self.place_shared(wanted, address, bytes);
                found.map(|host| (host, None)).map_err(refused)
            }
            Space::Local if fits(self.local_end.min(self.local.stride()), address) => {
                let offset = lane as u64 * self.local.stride() + address;
                Ok((self.local.host().wrapping_add(offset as usize), None))
            }
            // Not for writing: the blocks that come after this one would see it.
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

/// The space that an address is in, and the address there.
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
