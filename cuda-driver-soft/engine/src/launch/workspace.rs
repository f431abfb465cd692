//! Device memory for the grid barrier of a cooperative launch.

#![forbid(unsafe_code)]

use crate::memory::{AllocationKind, OutOfMemory, address_space};

/// Device memory in which the blocks of a cooperative launch wait for one another.
///
/// Kernels find its address in `%envreg1` (upper half) and `%envreg2` (lower half). It holds its size in bytes, and the
/// word in which cooperative groups count arrivals.
#[derive(Debug)]
pub struct GridWorkspace {
    address: u64,
    /// Identifies the allocation: after its context is destroyed, the address may belong to another allocation.
    id: u64,
}

impl GridWorkspace {
    const BYTES: u32 = 8;

    /// Allocates the memory for one launch in the context `owner`.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`] if there is not enough memory.
    pub fn new(owner: u64) -> Result<Self, OutOfMemory> {
        let address = address_space().alloc(AllocationKind::Global, owner, Self::BYTES.into())?;
        // These calls can fail only if another thread destroys the context; then no kernel runs either.
        let _ = address_space().fill32(address, Self::BYTES, 1);
        let id = address_space().find(address).map_or(0, |found| found.id);
        Ok(GridWorkspace { address, id })
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for GridWorkspace {
    fn drop(&mut self) {
        let _ = address_space().free_if(self.address, |found| found.id == self.id);
    }
}
