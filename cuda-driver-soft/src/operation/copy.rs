//! Copies of bytes, rectangles and boxes between memory and arrays.
//!
//! A copy is checked when it is requested and runs in stream order. As with NVIDIA's driver, the host waits for copies
//! that involve pageable memory. In synchronous calls, it also waits for copies that involve page-locked or managed
//! memory or memory with `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`, and for all copies in a context with `CU_CTX_SYNC_MEMOPS`.
//!
//! A small copy from pageable memory need not wait, because it can be [staged](super::staged).

use crate::object::place::MemoryPlace;
use crate::object::{graph_memory, memory};
use crate::operation::outcome::{RangeResult, missing};
use crate::operation::region::{self, Base, Extent, Region, Side};
use crate::state::error::{Error, Result};
use engine::check::Span;
use engine::memory::host::HostRange;
use engine::memory::{Allocation, address_space};

/// The kind of call that requests a copy or fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// `cuMemcpyHtoD` and the other synchronous calls.
    Synchronous,
    /// The `…Async` calls.
    Asynchronous,
    /// Asynchronous copies with `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`, which read the source in the call.
    UntilRead,
}

/// Returns true if the host waits for a copy that is not staged: if one side is pageable memory, or if the call is
/// synchronous and one side is memory that [`is_synchronous`].
pub(crate) fn host_waits(to: &MemoryPlace, from: &MemoryPlace, waits: Waits) -> bool {
    let pageable = to.is_pageable() || from.is_pageable();
    pageable || (waits == Waits::Synchronous && (is_synchronous(to) || is_synchronous(from)))
}

/// Returns true if synchronous calls wait for copies and fills of this memory: for pageable, page-locked, registered
/// and managed memory, and for memory with `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
pub(crate) fn is_synchronous(place: &MemoryPlace) -> bool {
    let is_set = || matches!(place, MemoryPlace::Device(allocation, _) if memory::is_synchronous(allocation));
    is_host(place) || is_set()
}

/// Returns true for pageable, page-locked, registered and managed memory.
pub(crate) fn is_host(place: &MemoryPlace) -> bool {
    match place {
        MemoryPlace::Device(allocation, _) => allocation.kind.is_host_accessible(),
        MemoryPlace::Host(_) => true,
        MemoryPlace::Tiles(_) => false,
    }
}

/// Copies contiguous bytes.
pub(crate) fn copy_bytes(to: MemoryPlace, from: MemoryPlace, bytes: u64) -> RangeResult {
    to.check_still_there()?;
    from.check_still_there()?;
    match (to, from) {
        (MemoryPlace::Device(_, to), MemoryPlace::Device(_, from)) => address_space().copy(to, from, bytes),
        (MemoryPlace::Device(_, to), MemoryPlace::Host(from)) => from.write_to(to),
        (MemoryPlace::Host(to), MemoryPlace::Device(_, from)) => to.read_from(from),
        (MemoryPlace::Host(to), MemoryPlace::Host(from)) => {
            to.copy_from(from);
            Ok(())
        }
        // Copies of arrays are boxes, which `copy_rows` copies.
        (MemoryPlace::Tiles(_), _) | (_, MemoryPlace::Tiles(_)) => Err(missing(0, bytes)),
    }
}

/// A copy of a row, a rectangle or a box.
pub(crate) struct CopyOperation {
    pub(crate) to: Side,
    pub(crate) from: Side,
    pub(crate) extent: Extent,
    reach: [Region; 2],
}

impl CopyOperation {
    /// Creates a checked copy. `host` returns memory of the program that stays valid as long as the copy may run.
    pub(crate) fn new(to: Side, from: Side, extent: Extent, host: &impl Fn(u64, u64) -> HostRange) -> Result<Self> {
        if extent.is_empty() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let reach = [to.region(extent, host)?, from.region(extent, host)?];
        let copy = CopyOperation {
            to,
            from,
            extent,
            reach,
        };
        copy.check()?;
        Ok(copy)
    }

    /// Returns an error if the memory does not exist and no graph node allocates it, or if the target is read-only.
    pub(crate) fn check(&self) -> Result<()> {
        let [to, from] = self.reach.each_ref().map(find);
        if let Some(place) = to? {
            place.check_writable()?;
        }
        from.map(drop)
    }

    /// Returns true for each side (target, source) whose memory is pageable.
    pub(crate) fn are_pageable(&self) -> Result<[bool; 2]> {
        let [to, from] = self.reach.each_ref().map(find);
        Ok([to?, from?].map(|place| place.is_some_and(|p| p.is_pageable())))
    }

    /// Returns true for each side (target, source) whose memory is pageable, page-locked, registered or managed.
    pub(crate) fn are_on_host(&self) -> [bool; 2] {
        let places = self.reach.each_ref().map(|region| find(region).ok().flatten());
        places.map(|place| place.is_some_and(|p| is_host(&p)))
    }

    /// Returns the memory of the driver that the copy uses, without memory that a graph node allocates.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = Allocation> {
        let places = self.reach.each_ref().map(|region| find(region).ok().flatten());
        places.into_iter().flatten().filter_map(|place| match place {
            MemoryPlace::Device(allocation, _) => Some(allocation),
            _ => None,
        })
    }

    /// Returns true if a side is an array.
    pub(crate) fn uses_array(&self) -> bool {
        [&self.to, &self.from]
            .iter()
            .any(|side| matches!(side.base, Base::Array(..)))
    }

    /// Returns the rows of both sides that are in memory of the driver, for the check of races.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let [to, from] = self.reach.each_ref().map(Region::locate);
        let mut spans = to.map_or_else(|_| Vec::new(), |to| to.spans(self.extent, true));
        spans.extend(from.map_or_else(|_| Vec::new(), |from| from.spans(self.extent, false)));
        spans
    }

    /// Performs the copy.
    pub(crate) fn run(&self) -> RangeResult {
        let [to, from] = self.reach.each_ref().map(Region::locate);
        match (to, from) {
            (Ok(to), Ok(from)) => region::copy_rows(&to, &from, self.extent),
            _ => Err(missing(0, self.extent.bytes())),
        }
    }
}

/// Returns the memory of a region, or `None` if a graph node allocates it.
fn find(region: &Region) -> Result<Option<MemoryPlace>> {
    let (address, bytes) = region.range();
    if graph_memory::contains(address, bytes) {
        return Ok(None);
    }
    Ok(Some(region.locate()?.place))
}
