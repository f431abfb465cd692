//! Mappings of memory from outside, each at addresses of its own: external memory, and memory that other processes or
//! pools have exported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::Context;
use crate::object::virtual_memory::GRANULE;
use crate::state::error::{Error, Result};
use engine::memory::{Access, Allocation, AllocationKind, Physical, address_space};

/// The origin of mapped memory.
#[derive(Debug)]
pub(super) enum Origin {
    /// `cuExternalMemoryGetMappedBuffer` or `cuExternalMemoryGetMappedMipmappedArray`.
    External,
    /// `cuIpcOpenMemHandle`
    Opened {
        /// Device and inode number of the file.
        identity: (u64, u64),
        /// Number of `cuIpcCloseMemHandle` calls that are needed to close the memory; 0 while it is being closed.
        times: u64,
    },
    /// `cuMemPoolImportPointer`: memory that the program frees, whereas it closes memory of `cuIpcOpenMemHandle`.
    Pooled,
}

/// A mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) origin: Origin,
    /// ID of the allocation.
    pub(super) id: u64,
    /// First reserved address.
    start: u64,
    /// Bytes of reserved addresses.
    bytes: u64,
}

/// The mappings by the first address of their allocation.
#[derive(Debug)]
pub(super) struct Mappings(BTreeMap<u64, Mapping>);

/// Locks the mappings of the process.
pub(super) fn lock() -> MutexGuard<'static, Mappings> {
    static MAPPINGS: Mutex<Mappings> = Mutex::new(Mappings(BTreeMap::new()));
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mappings {
    /// Maps a part of memory. As on driver 580, the first address is a multiple of 2 MiB plus the remainder of the
    /// offset after division by 2 MiB.
    pub(super) fn map(
        &mut self,
        context: &Context,
        memory: &Arc<Physical>,
        (offset, bytes): (u64, u64),
        origin: Origin,
    ) -> Result<Allocation> {
        let lead = offset % GRANULE;
        let room = (lead + bytes).next_multiple_of(GRANULE);
        let start = address_space().reserve_addresses(room, GRANULE, 0);
        let start = start.ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?;
        let base = start + lead;
        let is_mapped = address_space().map_from(offset, base, bytes, memory, context.id(), Access::ReadWrite);
        let Some(made) = address_space().find(base).filter(|_| is_mapped) else {
            address_space().release_addresses(start, room);
            return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
        };
        let mapping = Mapping {
            origin,
            id: made.id,
            start,
            bytes: room,
        };
        self.0.insert(base, mapping);
        Ok(made)
    }

    /// Returns the mapping at this address.
    pub(super) fn at(&mut self, address: u64) -> Option<&mut Mapping> {
        self.0.get_mut(&address)
    }

    /// Returns the mappings by address.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (u64, &mut Mapping)> {
        self.0.iter_mut().map(|(address, mapping)| (*address, mapping))
    }

    /// Returns the mapping of an allocation.
    fn of(&self, allocation: &Allocation) -> Option<&Mapping> {
        let is_mapped = allocation.kind == AllocationKind::Mapped;
        let found = self.0.get(&allocation.base).filter(|_| is_mapped);
        found.filter(|mapping| mapping.id == allocation.id)
    }
}

/// Returns true for a mapping of external memory.
pub(crate) fn is_external(allocation: &Allocation) -> bool {
    let mappings = lock();
    let found = mappings.of(allocation);
    found.is_some_and(|mapping| matches!(mapping.origin, Origin::External))
}

/// Returns true for memory that was imported from a pool.
pub(crate) fn is_pooled(allocation: &Allocation) -> bool {
    let mappings = lock();
    let found = mappings.of(allocation);
    found.is_some_and(|mapping| matches!(mapping.origin, Origin::Pooled))
}

/// Releases the addresses of a mapping that was freed or closed, or whose context was destroyed.
pub(super) fn forget(freed: &Allocation) {
    let mut mappings = lock();
    if mappings.of(freed).is_some()
        && let Some(gone) = mappings.0.remove(&freed.base)
    {
        address_space().release_addresses(gone.start, gone.bytes);
    }
}
