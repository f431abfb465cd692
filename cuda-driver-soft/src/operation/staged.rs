//! Staged copies: the call reads the source, and a task writes the bytes to the target in stream order, so that the
//! host need not wait for the stream.
//!
//! A copy is staged if it has `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`, or if it [can be](can_be_staged) and would
//! have to wait for other work.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::object::place::MemoryPlace;
use crate::operation::outcome::{RangeResult, missing};
use crate::operation::region::{Extent, Located, append, write_rows};
use crate::state::error::{Error, Result};
use engine::memory::address_space;

/// The size of the largest copy that need not wait. Driver 580 on an H200 returns at once from a copy of 2 MiB and
/// waits in a copy of 4 MiB.
const LARGEST: u64 = 2 << 20;

/// The most bytes of copies that are staged at the same time; further copies wait.
const MOST_PENDING: u64 = 256 << 20;

/// The bytes of all [`Staged`].
static PENDING: AtomicU64 = AtomicU64::new(0);

/// Returns true if a copy is from pageable memory to other memory, is small enough to be staged, and would not exceed
/// the limit on pending bytes.
pub(crate) fn can_be_staged(to: &MemoryPlace, from: &MemoryPlace, bytes: u64) -> bool {
    from.is_pageable() && !to.is_pageable() && bytes <= LARGEST && is_room_for(bytes)
}

fn is_room_for(bytes: u64) -> bool {
    PENDING.load(Relaxed) + bytes <= MOST_PENDING
}

/// The bytes of a source, as they were when the copy was requested.
pub(crate) struct Staged(Vec<u8>);

impl Staged {
    /// Reads contiguous bytes.
    pub(crate) fn bytes(from: &MemoryPlace, bytes: u64) -> Result<Staged> {
        let mut staged = Staged::with_room_for(bytes)?;
        match from {
            MemoryPlace::Host(host) => host.append_to(&mut staged.0),
            MemoryPlace::Device(_, address) => {
                let read = append(*address, bytes, &mut staged.0);
                read.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
            }
            MemoryPlace::Tiles(_) => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(staged)
    }

    /// Reads the rows of a box.
    pub(crate) fn rows(from: &Located, extent: Extent) -> Result<Staged> {
        let mut staged = Staged::with_room_for(extent.bytes())?;
        let read = from.append_rows(extent, &mut staged.0);
        read.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
        Ok(staged)
    }

    fn with_room_for(bytes: u64) -> Result<Staged> {
        let mut room = Vec::new();
        room.try_reserve_exact(bytes as usize)
            .map_err(|_| Error::CUDA_ERROR_OUT_OF_MEMORY)?;
        PENDING.fetch_add(room.capacity() as u64, Relaxed);
        Ok(Staged(room))
    }

    /// Writes contiguous bytes.
    pub(crate) fn write(&self, to: &MemoryPlace) -> RangeResult {
        to.check_still_there()?;
        match to {
            MemoryPlace::Device(_, address) => address_space().write(*address, &self.0),
            MemoryPlace::Host(host) => {
                host.write(&self.0);
                Ok(())
            }
            MemoryPlace::Tiles(offset) => Err(missing(*offset, self.0.len() as u64)),
        }
    }

    /// Writes the rows of a box.
    pub(crate) fn write_rows(&self, to: &Located, extent: Extent) -> RangeResult {
        write_rows(to, &self.0, extent)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        PENDING.fetch_sub(self.0.capacity() as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_wait_while_very_many_bytes_are_staged() {
        assert!(is_room_for(16));
        let many = Staged::with_room_for(MOST_PENDING).expect("room in the host's memory");
        assert!(!is_room_for(16));
        drop(many);
        assert!(is_room_for(16));
    }
}
