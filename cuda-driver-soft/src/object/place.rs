//! Memory that a call names by an address, checked against what the driver knows of it.

use crate::object::memory;
use crate::state::error::{Error, Result};
use engine::memory::host::HostRange;
use engine::memory::{Access, Allocation, BadRange, Kind, space};

/// Memory that a call names by an address: the device's, or the program's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryPlace {
    /// In this allocation, at this address.
    Device(Allocation, u64),
    /// Memory that the driver does not know.
    Host(HostRange),
}

impl MemoryPlace {
    /// What lies at an address of which nothing is known yet. The range must lie in one allocation; a freed or unknown
    /// address of device memory is an error.
    pub(crate) fn of(range: HostRange, bytes: u64) -> Result<MemoryPlace> {
        let address = range.address();
        match space().find(address) {
            Some(known) if memory::is_for_calls(&known) => MemoryPlace::device(address, bytes),
            // What calls do not see is not the program's own, either.
            Some(_) => Err(Error::CUDA_ERROR_INVALID_VALUE),
            None if space().reserves(address) || address == 0 => {
                Err(Error::CUDA_ERROR_INVALID_VALUE)
            }
            None => Ok(MemoryPlace::Host(range)),
        }
    }

    /// Device memory: checked against the allocation that the address lies in.
    pub(crate) fn device(address: u64, bytes: u64) -> Result<MemoryPlace> {
        let mut allocation = memory::find(address).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if allocation.kind == Kind::Mapped {
            // A range may lie in several mappings.
            let mapped = space().mapped(address, bytes);
            allocation = mapped.unwrap_or(allocation);
            if allocation.access == Access::None {
                host::log!("nobody has access to the memory at {address:#x} (cuMemSetAccess)");
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        let left = allocation.bytes - (address - allocation.base);
        if bytes > left {
            host::log!(
                "{bytes} bytes at {address:#x}: only {left} of the allocation at {:#x} are left",
                allocation.base
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(MemoryPlace::Device(allocation, address))
    }

    /// Refuses memory that was registered for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self {
            MemoryPlace::Device(allocation, _) if allocation.access != Access::ReadWrite => {
                host::log!("the memory at {:#x} is for reading only", allocation.base);
                Err(Error::CUDA_ERROR_INVALID_VALUE)
            }
            _ => Ok(()),
        }
    }

    /// Whether the memory is still what it was when the call named it: it may have been freed, and its address may be
    /// another allocation's.
    pub(crate) fn check_still_there(&self) -> std::result::Result<(), BadRange> {
        let MemoryPlace::Device(allocation, address) = *self else {
            return Ok(());
        };
        let now = space().find(address).map(|a| a.id);
        if now == Some(allocation.id) {
            return Ok(());
        }
        Err(BadRange {
            address,
            bytes: allocation.bytes - (address - allocation.base),
            inside: None,
        })
    }

    /// Pageable memory of the program: a copy to or from it cannot wait for the device's convenience.
    pub(crate) fn is_pageable(&self) -> bool {
        matches!(self, MemoryPlace::Host(_))
    }
}
