//! Virtual memory: reserved addresses, and physical memory that is mapped there.

mod physical;
mod range;

pub use physical::{MemoryOptions, PhysicalMemory};
pub use range::AddressRange;

use crate::sys;

/// Returns a record that grants a location read and write access, for [`AddressRange::set_access`] and
/// [`MemPool::set_access`](crate::MemPool::set_access).
#[inline]
#[must_use]
pub fn read_write(location: sys::CUmemLocation) -> sys::CUmemAccessDesc {
    sys::CUmemAccessDesc {
        location,
        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}
