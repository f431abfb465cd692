//! Accesses of the program's own code to memory that kernels access, too, for the check of races.

use super::ordered::Ordered;
use crate::check::Checking;
use crate::queue::order;
use engine::check::Span;
use engine::memory::address_space;
use std::marker::PhantomData;

/// Records accesses that the program's own code makes to managed, page-locked and registered memory. Ignores memory
/// that the driver did not allocate or register.
///
/// See [`Checking::host_accesses`].
#[derive(Debug)]
pub struct HostAccesses<'c> {
    _checking: PhantomData<&'c Checking>,
}

impl Checking {
    /// Returns a recorder of the accesses that the program's own code makes to managed, page-locked and registered
    /// memory, so that [`Checks::RACE`](crate::Checks::RACE) compares them with kernels, copies and fills.
    ///
    /// A driver cannot see these accesses, so the program names them. Work that was submitted before this call may be
    /// missing from the comparison.
    ///
    /// ```
    /// # let (memory, count) = (std::ptr::null::<f32>(), 0);
    /// let checks = cuda_driver_soft::check(cuda_driver_soft::Checks::RACE)?;
    /// let host = checks.host_accesses();
    /// // … launch a kernel that writes managed memory, and synchronise …
    /// host.read(memory, count);
    /// assert!(checks.finish().is_empty());
    /// # Ok::<(), cuda_driver_soft::AlreadyChecking>(())
    /// ```
    pub fn host_accesses(&self) -> HostAccesses<'_> {
        order::note_several();
        HostAccesses { _checking: PhantomData }
    }
}

impl HostAccesses<'_> {
    /// Records that the program reads `count` values at an address.
    pub fn read<T>(&self, memory: *const T, count: usize) {
        note(memory.addr(), count.saturating_mul(size_of::<T>()), false);
    }

    /// Records that the program writes `count` values at an address.
    pub fn write<T>(&self, memory: *const T, count: usize) {
        note(memory.addr(), count.saturating_mul(size_of::<T>()), true);
    }
}

fn note(address: usize, bytes: usize, writes: bool) {
    let (address, bytes) = (address as u64, bytes as u64);
    if let Some(allocation) = address_space().find(address)
        && let Some(ordered) = Ordered::host()
    {
        let range = address..address.saturating_add(bytes);
        ordered.used_by_host(&[Span {
            allocation: allocation.id,
            range,
            writes,
        }]);
    }
}
