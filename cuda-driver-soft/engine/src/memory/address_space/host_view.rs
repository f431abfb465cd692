//! Views of physical memory for the host: reserved device addresses that the host can dereference, too.

use super::AddressSpace;
use crate::memory::allocation::Access;
use crate::memory::physical::Physical;
use crate::memory::reserve;

impl AddressSpace {
    /// Maps physical memory for the host at the reserved address `base`, with this access. An earlier view of this
    /// memory at `base` is replaced. The caller must have reserved these addresses for this memory alone. Kernels and
    /// copies do not use this view. Returns false if the memory is not a shared file, if the addresses are not reserved
    /// in the host's address space, or if the system refuses.
    pub fn show_to_host(&self, base: u64, physical: &Physical, access: Access) -> bool {
        let Some(file) = physical.file() else {
            return false;
        };
        // SAFETY: the addresses are in the range that `reserve` took from the system (`covers`), and the driver
        // reserves each of them for one purpose at a time.
        self.covers(base, file.bytes()) && unsafe { file.map_at(base, access) }
    }

    /// Removes the host's access to reserved addresses.
    pub fn hide_from_host(&self, base: u64, bytes: u64) {
        if self.covers(base, bytes) {
            // SAFETY: the addresses are in the reserved range (`covers`), where only views of the host are mapped, and
            // the caller no longer needs this one.
            unsafe { reserve::again(base, bytes) };
        }
    }

    fn covers(&self, base: u64, bytes: u64) -> bool {
        self.is_reserved
            && bytes > 0
            && self.reserves(base)
            && base.checked_add(bytes - 1).is_some_and(|last| self.reserves(last))
    }
}
