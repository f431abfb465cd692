//! What the driver gives to the blocks of a cooperative launch.

use crate::memory::{Kind, OutOfMemory, space};

/// Device memory by which the blocks of a grid wait for one another. Kernels find it through `%envreg1` and `%envreg2`, the
/// upper and the lower half of its address: its size in bytes, and the word in which cooperative groups count arrivals.
#[derive(Debug)]
pub struct GridWorkspace {
    address: u64,
    /// Of this allocation: the address may be another one's when its context is gone.
    id: u64,
}

impl GridWorkspace {
    const BYTES: u32 = 8;

    /// For one launch in the context `owner`.
    ///
    /// # Errors
    /// No memory is left.
    pub fn new(owner: u64) -> Result<Self, OutOfMemory> {
        let address = space().alloc(Kind::Global, owner, Self::BYTES.into())?;
        // Both hold just after the allocation, unless another thread ends the context: then no kernel runs either.
        let _ = space().fill32(address, Self::BYTES, 1);
        let id = space().find(address).map_or(0, |found| found.id);
        Ok(GridWorkspace { address, id })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for GridWorkspace {
    fn drop(&mut self) {
        let _ = space().free_if(self.address, |found| found.id == self.id);
    }
}
