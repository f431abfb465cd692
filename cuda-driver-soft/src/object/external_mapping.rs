//! The mappings of external memory, and the addresses that each has reserved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::Context;
use crate::object::virtual_memory::GRANULE;
use crate::state::error::{Error, Result};
use engine::memory::{Access, Allocation, AllocationKind, Physical, address_space};

/// The addresses of a mapping.
struct Mapped {
    /// ID of the allocation.
    id: u64,
    /// First reserved address.
    start: u64,
    /// Bytes of reserved addresses.
    bytes: u64,
}

/// Returns the mappings by the first address of their allocation.
fn mappings() -> MutexGuard<'static, BTreeMap<u64, Mapped>> {
    static MAPPINGS: Mutex<BTreeMap<u64, Mapped>> = Mutex::new(BTreeMap::new());
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maps a part of memory to addresses of its own. As on driver 580, the first address is a multiple of 2 MiB plus the
/// remainder of `offset` after division by 2 MiB.
pub(super) fn map(context: &Context, memory: &Arc<Physical>, offset: u64, bytes: u64) -> Result<Allocation> {
    let lead = offset % GRANULE;
    let room = (lead + bytes).next_multiple_of(GRANULE);
    // Locked first: the mapping must be known before its addresses can be freed.
    let mut mappings = mappings();
    let start = address_space().reserve_addresses(room, GRANULE, 0);
    let start = start.ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?;
    let base = start + lead;
    let is_mapped = address_space().map_from(offset, base, bytes, memory, context.id(), Access::ReadWrite);
    let Some(made) = address_space().find(base).filter(|_| is_mapped) else {
        address_space().release_addresses(start, room);
        return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
    };
    let mapped = Mapped {
        id: made.id,
        start,
        bytes: room,
    };
    mappings.insert(base, mapped);
    Ok(made)
}

/// Returns true for a mapping of external memory.
pub(crate) fn is_mapped(allocation: &Allocation) -> bool {
    allocation.kind == AllocationKind::Mapped && mappings().get(&allocation.base).is_some_and(|m| m.id == allocation.id)
}

/// Releases the addresses of a mapping that was freed.
pub(super) fn forget(freed: &Allocation) {
    if freed.kind != AllocationKind::Mapped {
        return;
    }
    let mut mappings = mappings();
    if mappings.get(&freed.base).is_some_and(|m| m.id == freed.id)
        && let Some(gone) = mappings.remove(&freed.base)
    {
        address_space().release_addresses(gone.start, gone.bytes);
    }
}
