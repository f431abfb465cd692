//! External memory: memory that is imported through a file descriptor and mapped as a buffer or as a mipmapped array.
//!
//! On a GPU, such descriptors come from graphics APIs. This driver imports only descriptors of memory of `cuMemCreate`.

use std::sync::Arc;

use cuda_driver_sys::CUDA_ARRAY3D_COLOR_ATTACHMENT;

use crate::object::context::Context;
use crate::object::mappings::{self, Origin};
use crate::object::{array, leak, virtual_memory};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};
use engine::memory::{Allocation, Physical};

static TABLE: Table<ExternalMemory> = Table::new(HandleKind::ExternalMemory);

/// Imported memory.
#[derive(Debug)]
pub(crate) struct ExternalMemory {
    handle: usize,
    memory: Arc<Physical>,
    /// The size in bytes that the program passed.
    bytes: u64,
}

/// `cuImportExternalMemory` of a file descriptor, which the exported function closes afterwards. Driver 580 returns
/// `CUDA_ERROR_UNKNOWN` for a descriptor of another driver or of no driver.
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
    /// Maps a part of the memory to addresses of its own.
    fn map(&self, context: &Context, offset: u64, bytes: u64) -> Result<Allocation> {
        let size = self.bytes.min(self.memory.bytes());
        if bytes == 0 || offset >= size || offset.wrapping_add(bytes) > size {
            host::log!("cannot map {bytes} bytes at offset {offset} of external memory of {size} bytes");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // Driver 580 does not see that the sum overflows, and finds no addresses for so many bytes.
        if bytes > size {
            return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
        }
        mappings::lock().map(context, &self.memory, (offset, bytes), Origin::External)
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
        mut descriptor: array::ArrayDescriptor,
        levels: u32,
    ) -> Result<usize> {
        // As on driver 580, only arrays in external memory may have this flag, which is for graphics APIs.
        descriptor.flags &= !CUDA_ARRAY3D_COLOR_ATTACHMENT;
        if levels == 0 || levels > array::most_levels(&descriptor)? {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        if descriptor.is_mapped_later() {
            host::log!("an array in external memory has its memory, so it can be neither sparse nor mapped later");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        array::create_mipmap_in(context, descriptor, levels, |bytes| self.map(context, offset, bytes))
    }
}
