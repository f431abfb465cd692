//! Staged copies: the call reads the source, and a task writes the bytes to the target in stream order, so that the
//! host need not wait for the stream.
//!
//! A copy is staged if it has `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`, or if it [can be](can_be_staged) and would
//! have to wait for other work.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::object::place::MemoryPlace;
use crate::operation::outcome::{RangeResult, missing};
use crate::operation::region::{Extent, Located};
use crate::state::error::{Error, Result};
use engine::memory::address_space;
use engine::memory::host::HostRange;

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

/// Returns true if a copy would not exceed the limit on pending bytes.
pub(crate) fn is_room_for(bytes: u64) -> bool {
    PENDING.load(Relaxed) + bytes <= MOST_PENDING
}

/// The bytes of a source, as they were when the copy was requested.
pub(crate) struct Staged {
    bytes: Vec<u8>,
    /// The parts that do not count as written in the source, in ascending order, for the check of uninitialised reads.
    unwritten: Vec<Range<u64>>,
}

impl Staged {
    /// Reads contiguous bytes.
    pub(crate) fn bytes(from: &MemoryPlace, bytes: u64) -> Result<Staged> {
        let mut staged = Staged::with_room_for(bytes)?;
        match from {
            MemoryPlace::Host(host) => staged.append_host(host),
            MemoryPlace::Device(_, address) => {
                let read = staged.append_device(*address, bytes);
                read.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
            }
            MemoryPlace::Tiles(_) => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(staged)
    }

    /// Reads the rows of a box.
    pub(crate) fn rows(from: &Located, extent: Extent) -> Result<Staged> {
        let mut staged = Staged::with_room_for(extent.bytes())?;
        let read = from.append_rows(extent, &mut staged);
        read.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
        Ok(staged)
    }

    fn with_room_for(bytes: u64) -> Result<Staged> {
        let mut room = Vec::new();
        room.try_reserve_exact(bytes as usize)
            .map_err(|_| Error::CUDA_ERROR_OUT_OF_MEMORY)?;
        PENDING.fetch_add(room.capacity() as u64, Relaxed);
        Ok(Staged {
            bytes: room,
            unwritten: Vec::new(),
        })
    }

    /// Appends bytes at a device address.
    pub(super) fn append_device(&mut self, address: u64, bytes: u64) -> RangeResult {
        let start = self.bytes.len();
        self.bytes.resize(start + bytes as usize, 0);
        address_space().read(address, &mut self.bytes[start..])?;
        let unwritten = address_space().unwritten(address, bytes).into_iter();
        let start = start as u64;
        self.unwritten
            .extend(unwritten.map(|part| start + part.start..start + part.end));
        Ok(())
    }

    pub(super) fn append_host(&mut self, range: &HostRange) {
        range.append_to(&mut self.bytes);
    }

    pub(super) fn append_zeros(&mut self, bytes: u64) {
        self.bytes.resize(self.bytes.len() + bytes as usize, 0);
    }

    /// Writes a part of the bytes to a device address.
    pub(super) fn write_device(&self, part: Range<u64>, address: u64) -> RangeResult {
        address_space().write(address, self.part(part.clone()))?;
        // A copy of uninitialised bytes leaves its target uninitialised.
        let first = self.unwritten.partition_point(|unwritten| unwritten.end <= part.start);
        let unwritten = self.unwritten[first..].iter();
        for unwritten in unwritten.take_while(|unwritten| unwritten.start < part.end) {
            let (start, end) = (unwritten.start.max(part.start), unwritten.end.min(part.end));
            address_space().mark_unwritten(address + (start - part.start), end - start);
        }
        Ok(())
    }

    /// Returns a part of the bytes.
    pub(super) fn part(&self, part: Range<u64>) -> &[u8] {
        &self.bytes[part.start as usize..part.end as usize]
    }

    /// Writes contiguous bytes.
    pub(crate) fn write(&self, to: &MemoryPlace) -> RangeResult {
        to.check_still_there()?;
        match to {
            MemoryPlace::Device(_, address) => self.write_device(0..self.bytes.len() as u64, *address),
            MemoryPlace::Host(host) => {
                host.write(&self.bytes);
                Ok(())
            }
            MemoryPlace::Tiles(offset) => Err(missing(*offset, self.bytes.len() as u64)),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        PENDING.fetch_sub(self.bytes.capacity() as u64, Relaxed);
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
