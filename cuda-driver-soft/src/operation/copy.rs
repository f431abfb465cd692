//! Copies.
//!
//! All are checked when they are asked for and done in their stream's order. The host waits as a GPU's driver makes it
//! wait: for copies between device and pageable memory, and for nothing else.

use crate::object::graph_memory;
use crate::object::place::MemoryPlace;
use crate::operation::outcome::{Done, missing};
use crate::operation::region::{self, Extent, Region, Side};
use crate::state::error::{Error, Result};
use engine::memory::host::HostRange;
use engine::memory::space;

/// Whether the call that asks for a copy is one of the asynchronous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// `cuMemcpyHtoD` and the like.
    Synchronous,
    /// `…Async`
    Asynchronous,
}

/// Whether the host waits for a copy: if pageable memory is on one side, and in the synchronous calls if page-locked memory
/// is.
pub(crate) fn host_waits(to: &MemoryPlace, from: &MemoryPlace, waits: Waits) -> bool {
    let pageable = to.is_pageable() || from.is_pageable();
    pageable || (waits == Waits::Synchronous && (is_host(to) || is_host(from)))
}

pub(crate) fn is_host(place: &MemoryPlace) -> bool {
    match place {
        MemoryPlace::Device(allocation, _) => allocation.kind.is_host_accessible(),
        MemoryPlace::Host(_) => true,
    }
}

/// Copies bytes in one piece.
pub(crate) fn copy_bytes(to: MemoryPlace, from: MemoryPlace, bytes: u64) -> Done {
    to.check_still_there()?;
    from.check_still_there()?;
    match (to, from) {
        (MemoryPlace::Device(_, to), MemoryPlace::Device(_, from)) => space().copy(to, from, bytes),
        (MemoryPlace::Device(_, to), MemoryPlace::Host(from)) => from.write_to(to),
        (MemoryPlace::Host(to), MemoryPlace::Device(_, from)) => to.read_from(from),
        (MemoryPlace::Host(to), MemoryPlace::Host(from)) => {
            to.copy_from(from);
            Ok(())
        }
    }
}

/// Writes bytes that were read before.
pub(crate) fn write_staged(to: MemoryPlace, staged: &[u8]) -> Done {
    to.check_still_there()?;
    match to {
        MemoryPlace::Device(_, address) => space().write(address, staged),
        MemoryPlace::Host(host) => {
            host.write(staged);
            Ok(())
        }
    }
}

/// Reads bytes that are written later.
pub(crate) fn stage(from: &MemoryPlace, bytes: u64) -> Result<Vec<u8>> {
    match from {
        MemoryPlace::Host(host) => Ok(host.snapshot()),
        MemoryPlace::Device(_, address) => {
            let mut staged = vec![0; bytes as usize];
            let read = space().read(*address, &mut staged);
            read.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
            Ok(staged)
        }
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
    /// `host` vouches for memory of the program, as long as the node may run.
    pub(crate) fn new(
        to: Side,
        from: Side,
        extent: Extent,
        host: &impl Fn(u64, u64) -> HostRange,
    ) -> Result<Self> {
        if extent.is_empty() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let reach = [to.region(extent, host)?, from.region(extent, host)?];
        let node = CopyOperation {
            to,
            from,
            extent,
            reach,
        };
        node.check()?;
        Ok(node)
    }

    /// Whether the memory is there, or will be when a graph has allocated it.
    pub(crate) fn check(&self) -> Result<()> {
        let [to, from] = self.reach.map(|region| find(&region));
        if let Some(place) = to? {
            place.check_writable()?;
        }
        from.map(drop)
    }

    /// Whether the memory on each side is the program's own.
    pub(crate) fn on_host(&self) -> Result<[bool; 2]> {
        let [to, from] = self.reach.map(|region| find(&region));
        Ok([to?, from?].map(|place| place.is_some_and(|p| p.is_pageable())))
    }

    /// Copies.
    pub(crate) fn run(&self) -> Done {
        let [to, from] = self.reach.map(|region| region.locate());
        match (to, from) {
            (Ok(to), Ok(from)) => region::copy_rows(&to, &from, self.extent),
            _ => Err(missing(0, self.extent.bytes())),
        }
    }
}

/// The memory that a node names; `None` if a graph is still to allocate it.
fn find(region: &Region) -> Result<Option<MemoryPlace>> {
    let (address, bytes) = region.range();
    if graph_memory::contain(address, bytes) {
        return Ok(None);
    }
    Ok(Some(region.locate()?.place))
}
