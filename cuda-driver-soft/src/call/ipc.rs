//! Memory that processes share: exports handles and pointers, and closes memory that was opened.

use crate::object::{freed, ipc, memory, pool};
use crate::state::error::{Error, Result};
use crate::state::gate;
use engine::memory::{AllocationKind, address_space};

/// `cuIpcGetMemHandle`: exports memory of `cuMemAlloc`.
pub(crate) fn export(address: u64) -> Result<[u8; ipc::BYTES]> {
    gate::healthy()?;
    let found = memory::find(address);
    let found = found.filter(|a| a.kind == AllocationKind::Device && pool::pool_of(a) == 0);
    let allocation = found.ok_or_else(|| {
        host::log!("cannot export {address:#x}: it is not memory of cuMemAlloc");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    ipc::share(allocation)
}

/// `cuMemPoolExportPointer`
pub(crate) fn export_pooled(address: u64) -> Result<[u8; ipc::BYTES]> {
    gate::healthy()?;
    let (allocation, pool) = pool::exportable(address)?;
    ipc::share_pooled(allocation, pool)
}

/// `cuIpcCloseMemHandle`: the last close of a handle waits for work that uses the memory, and unmaps the memory.
pub(crate) fn close(address: u64) -> Result<()> {
    gate::healthy()?;
    let Some(id) = ipc::close(address)? else {
        return Ok(());
    };
    if let Some(allocation) = memory::find(address).filter(|a| a.id == id) {
        memory::drain_users(&allocation);
    }
    let freed = address_space().free_if(address, |a| a.id == id);
    freed::forget(&freed.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?);
    Ok(())
}
