//! External memory: memory that is imported by a file descriptor and then mapped, as a buffer or as a mipmapped array.
//!
//! Graphics APIs make such descriptors on a GPU. In this driver, only memory of `cuMemCreate` has them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::Context;
use crate::object::virtual_memory::{self, GRANULE};
use crate::object::{array, leak};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};
use engine::memory::{Access, Allocation, AllocationKind, Physical, address_space};

static TABLE: Table<ExternalMemory> = Table::new(HandleKind::ExternalMemory);

/// Imported memory.
#[derive(Debug)]
pub(crate) struct ExternalMemory {
    handle: usize,
    memory: Arc<Physical>,
    /// The size in bytes that the program has given.
    bytes: u64,
}

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

/// `cuImportExternalMemory` of a file descriptor, which the caller closes. Driver 580 returns `CUDA_ERROR_UNKNOWN` for
/// a descriptor of another driver or of no driver.
pub(crate) fn import(context: &Arc<Context>, descriptor: i32, bytes: u64) -> Result<usize> {
    let (_, memory) = virtual_memory::open(descriptor).ok_or(Error::CUDA_ERROR_UNKNOWN)?;
    let made = TABLE.insert_with(|handle| ExternalMemory { handle, memory, bytes });
    leak::note("external memory", &TABLE, made.handle, Some(context));
    Ok(made.handle)
}

/// Returns the imported memory with this handle. Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for NULL.
pub(crate) fn get(handle: usize) -> Result<Arc<ExternalMemory>> {
    TABLE.get(handle).map_err(|missing| missing_error(handle, missing))
}

fn missing_error(handle: usize, missing: Missing) -> Error {
    host::log!("external memory {handle:#x} {missing}");
    if handle == 0 {
        Error::CUDA_ERROR_INVALID_VALUE
    } else {
        Error::CUDA_ERROR_INVALID_HANDLE
    }
}

/// `cuDestroyExternalMemory`: mappings of the memory stay valid.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    let removed = TABLE.remove(handle);
    removed.map(drop).map_err(|missing| missing_error(handle, missing))
}

impl ExternalMemory {
    /// Maps a part of the memory to addresses of its own. The address has the offset of the part from a multiple of
    /// 2 MiB, as on driver 580.
    fn map(&self, context: &Context, offset: u64, bytes: u64) -> Result<Allocation> {
        let size = self.bytes.min(self.memory.bytes());
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > size) {
            host::log!("cannot map {bytes} bytes at offset {offset} of external memory of {size} bytes");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let lead = offset % GRANULE;
        let room = (lead + bytes).next_multiple_of(GRANULE);
        // Locked first: the mapping must be known before its addresses can be freed.
        let mut mappings = mappings();
        let start = address_space().reserve_addresses(room, GRANULE, 0);
        let start = start.ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?;
        let base = start + lead;
        let is_mapped = address_space().map_from(offset, base, bytes, &self.memory, context.id(), Access::ReadWrite);
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

    /// `cuExternalMemoryGetMappedBuffer`: returns another address each time.
    pub(crate) fn map_buffer(&self, context: &Context, offset: u64, bytes: u64) -> Result<u64> {
        Ok(self.map(context, offset, bytes)?.base)
    }

    /// `cuExternalMemoryGetMappedMipmappedArray`
    pub(crate) fn map_array(
        &self,
        context: &Context,
        offset: u64,
        descriptor: array::ArrayDescriptor,
        levels: u32,
    ) -> Result<usize> {
        if levels == 0 || levels > array::most_levels(&descriptor)? {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        array::create_mipmap_in(context, descriptor, levels, |bytes| self.map(context, offset, bytes))
    }
}

/// Returns true for a mapping of external memory.
pub(crate) fn is_mapped(allocation: &Allocation) -> bool {
    allocation.kind == AllocationKind::Mapped && mappings().get(&allocation.base).is_some_and(|m| m.id == allocation.id)
}

/// Releases the addresses of a mapping that was freed.
pub(crate) fn forget(freed: &Allocation) {
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
