//! Memory named by an address in a call, checked against the known allocations.

use crate::object::memory;
use crate::state::error::{Error, Result};
use engine::memory::host::HostRange;
use engine::memory::{Access, Allocation, AllocationKind, BadRange, address_space};

/// Memory named by an address in a call: an allocation of the driver, or memory of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryPlace {
    /// The memory at this address in this allocation.
    Device(Allocation, u64),
    /// Memory that the driver did not allocate or register.
    Host(HostRange),
    /// An offset in an array whose memory may be absent. Copies of arrays find the memory when they run.
    Tiles(u64),
}

impl MemoryPlace {
    /// Returns the memory at an address of the driver or of the program. Returns `CUDA_ERROR_INVALID_VALUE` for 0, for
    /// a freed or unknown address in the device's address range, for memory that calls cannot access, and for a range
    /// that exceeds its allocation or mappings.
    pub(crate) fn of(range: HostRange, bytes: u64) -> Result<MemoryPlace> {
        let address = range.address();
        match address_space().find(address) {
            Some(known) if memory::is_for_calls(&known) => MemoryPlace::copied(address, bytes),
            // Calls cannot access this memory of the driver: an array, a kernel's heap, or memory with a pending free.
            Some(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
            None if address_space().reserves(address) || address == 0 => Err(Error::CUDA_ERROR_INVALID_VALUE),
            None => Ok(MemoryPlace::Host(range)),
        }
    }

    /// Returns device memory for a copy. As on an H200, copies reach memory that only the host has access to.
    pub(crate) fn copied(address: u64, bytes: u64) -> Result<MemoryPlace> {
        MemoryPlace::with_access(address, bytes, |allocation| allocation.copies)
    }

    /// Returns device memory for a fill or a memory operation, checked against the allocation that contains the
    /// address.
    pub(crate) fn device(address: u64, bytes: u64) -> Result<MemoryPlace> {
        MemoryPlace::with_access(address, bytes, |allocation| allocation.access)
    }

    fn with_access(address: u64, bytes: u64, access: impl FnOnce(&Allocation) -> Access) -> Result<MemoryPlace> {
        let mut allocation = memory::find(address).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if allocation.kind == AllocationKind::Mapped {
            // A range may span several mappings.
            let mapped = address_space().mapped(address, bytes);
            allocation = mapped.unwrap_or(allocation);
            allocation.access = access(&allocation);
            if allocation.access == Access::None {
                host::log!("no device has access to the memory at {address:#x}; call cuMemSetAccess");
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        let left = allocation.bytes - (address - allocation.base);
        if bytes > left {
            host::log!(
                "{bytes} bytes at {address:#x} exceed the allocation at {:#x}, which has {left} bytes left",
                allocation.base
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(MemoryPlace::Device(allocation, address))
    }

    /// Returns `CUDA_ERROR_INVALID_VALUE` for read-only memory.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self {
            MemoryPlace::Device(allocation, _) if allocation.access != Access::ReadWrite => {
                host::log!("the memory at {:#x} is read-only", allocation.base);
                Err(Error::CUDA_ERROR_INVALID_VALUE)
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the memory was freed after the call named it, even if its address was reused.
    pub(crate) fn check_still_there(&self) -> std::result::Result<(), BadRange> {
        let MemoryPlace::Device(allocation, address) = *self else {
            return Ok(());
        };
        let now = address_space().find(address).map(|a| a.id);
        if now == Some(allocation.id) {
            return Ok(());
        }
        Err(BadRange {
            address,
            bytes: allocation.bytes - (address - allocation.base),
            inside: None,
        })
    }

    /// Returns true for memory that the driver did not allocate or register. The host waits for copies to and from it
    /// that are not staged.
    pub(crate) fn is_pageable(&self) -> bool {
        matches!(self, MemoryPlace::Host(_))
    }
}
