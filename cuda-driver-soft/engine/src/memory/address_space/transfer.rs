//! Access to device memory from the host: copies, fills, and atomic loads and stores, each in one allocation or across
//! adjacent mappings.

use super::AddressSpace;
use crate::memory::access;
use crate::memory::allocation::{Access, Allocation, AllocationKind};
use crate::memory::epochs::Epochs;
use crate::memory::errors::BadRange;
use crate::memory::record::Record;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// An access from the host to a range of addresses. As long as it exists, the backing is kept, and a call that
/// ends the registration of the range waits.
pub(super) struct HostAccess<'s> {
    epochs: &'s Epochs<Arc<Record>>,
    epoch: u64,
    /// The allocation that contains the start of the range.
    first: Option<Arc<Record>>,
    /// The mappings that follow `first`, as far as the range reaches.
    others: Vec<Arc<Record>>,
}

impl HostAccess<'_> {
    /// Finds the allocation that contains a range, or the adjacent mappings that do so together.
    fn find(&mut self, space: &AddressSpace, address: u64, bytes: u64, write: bool) -> Result<(), BadRange> {
        let index = space.index();
        let first = index
            .containing(address)
            .or_else(|| index.records.get(&address))
            .or_else(|| match bytes {
                // An empty range may start at the end of an allocation.
                0 => index.containing(address.wrapping_sub(1)),
                _ => None,
            });
        let bad = BadRange {
            address,
            bytes,
            inside: first.map(|r| *r.info()),
        };
        let first = first.filter(|record| !record.is_unreachable()).ok_or(bad)?;
        let offset = address - first.base();
        let permitted = |record: &Record| match record.info().copies {
            Access::ReadWrite => true,
            // Only mappings restrict copies. The driver checks writes to memory that was registered for reading.
            Access::Read => !write || record.info().kind != AllocationKind::Mapped,
            Access::None => false,
        };
        let mut found = first.info().bytes - offset;
        let mut last = first;
        let mut all_permitted = permitted(first);
        while found < bytes {
            let next = index.records.get(&(last.base() + last.info().bytes));
            let both_mapped = |next: &&Arc<Record>| {
                last.info().kind == AllocationKind::Mapped && next.info().kind == AllocationKind::Mapped
            };
            last = next.filter(both_mapped).ok_or(bad)?;
            all_permitted &= permitted(last);
            found += last.info().bytes;
            self.others.push(Arc::clone(last));
        }
        if !all_permitted {
            let bytes = offset + found;
            let inside = Some(Allocation { bytes, ..*first.info() });
            return Err(BadRange { inside, ..bad });
        }
        self.first = Some(Arc::clone(first));
        Ok(())
    }
}

impl Drop for HostAccess<'_> {
    fn drop(&mut self) {
        self.epochs.leave(self.epoch);
    }
}

impl AddressSpace {
    /// Starts an access from the host to a range.
    pub(super) fn host_access(&self, address: u64, bytes: u64, write: bool) -> Result<HostAccess<'_>, BadRange> {
        // The epoch is entered before the look-up, so that a free in between keeps the backing, or waits.
        let mut host_access = HostAccess {
            epochs: &self.epochs,
            epoch: self.epochs.enter(),
            first: None,
            others: Vec::new(),
        };
        host_access.find(self, address, bytes, write)?;
        Ok(host_access)
    }

    /// Calls `with` for each piece of a range: one piece in an allocation, or one for each of several adjacent
    /// mappings. The arguments are the address of the piece on the host, which is valid during the call, the offset of
    /// the piece in the range, and its length. The bytes of a write count as written after the call.
    fn each_piece(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
        mut with: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BadRange> {
        self.each_unmarked_piece(address, bytes, write, |host, offset, part| {
            with(host, offset, part);
            if write {
                self.written.mark(address + offset as u64, part as u64);
            }
        })
    }

    /// Does the same as [`each_piece`](Self::each_piece), but the bytes of a write do not count as written.
    fn each_unmarked_piece(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
        mut with: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BadRange> {
        let found = self.host_access(address, bytes, write)?;
        let mut done = 0;
        for record in found.first.iter().chain(&found.others) {
            let at = address + done;
            let part = (record.base() + record.info().bytes - at).min(bytes - done);
            let host = at.wrapping_add(record.delta()) as usize as *mut u8;
            with(host, done as usize, part as usize);
            done += part;
        }
        Ok(())
    }

    /// Copies device memory to the host.
    ///
    /// # Errors
    /// Returns an error unless the range is inside one allocation, or inside adjacent mappings that permit the access.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BadRange> {
        // SAFETY: the slice is valid for writes of its length.
        unsafe { self.read_to(address, into.as_mut_ptr(), into.len() as u64) }
    }

    /// Copies host memory to the device.
    ///
    /// # Errors
    /// Returns an error unless the range is inside one allocation, or inside adjacent mappings that permit the access.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), BadRange> {
        // SAFETY: the slice is valid for reads of its length.
        unsafe { self.write_from(address, from.as_ptr(), from.len() as u64) }
    }

    /// Copies device memory to host memory that may be uninitialised, or in use by other threads.
    ///
    /// # Safety
    /// `into` must be valid for writes of `bytes` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub unsafe fn read_to(&self, address: u64, into: *mut u8, bytes: u64) -> Result<(), BadRange> {
        self.each_piece(address, bytes, false, |host, offset, part| {
            // SAFETY: `each_piece` promises the source, and the caller the destination.
            unsafe { access::copy(into.add(offset), host, part) };
        })
    }

    /// Copies host memory that may be uninitialised, or in use by other threads, to the device.
    ///
    /// # Safety
    /// `from` must be valid for reads of `bytes` bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub unsafe fn write_from(&self, address: u64, from: *const u8, bytes: u64) -> Result<(), BadRange> {
        self.each_piece(address, bytes, true, |host, offset, part| {
            // SAFETY: `each_piece` promises the destination, and the caller the source.
            unsafe { access::copy(host, from.add(offset), part) };
        })
    }

    /// Copies `bytes` bytes from device memory to device memory. The ranges may overlap, except across the end of a
    /// mapping: mappings are copied one after the other.
    ///
    /// # Errors
    /// As for [`read`](Self::read) and [`write`](Self::write).
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), BadRange> {
        let mut done = Ok(());
        self.each_piece(from, bytes, false, |source, offset, part| {
            // With several pieces, the whole target is checked first, so that a copy that fails changes nothing.
            if offset == 0 && part as u64 != bytes {
                done = self.host_access(to, bytes, true).map(drop);
            }
            if done.is_err() {
                return;
            }
            let (to, from) = (to + offset as u64, from + offset as u64);
            let piece = self.each_unmarked_piece(to, part as u64, true, |target, at, part| {
                // SAFETY: both are valid for the piece, as `each_piece` promises.
                unsafe { access::copy(target, source.add(at), part) };
                // A copy of uninitialised bytes leaves its target uninitialised.
                self.written.copy(to + at as u64, from + at as u64, part as u64);
            });
            done = done.and(piece);
        })?;
        done
    }

    /// Returns the value of 4 or 8 bytes at an address that is a multiple of its size. The read is atomic.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn load(&self, address: u64, bytes: u64) -> Result<u64, BadRange> {
        let mut value = 0;
        self.each_piece(address, bytes, false, |host, _, part| {
            // SAFETY: valid, as `each_piece` promises. An aligned value never crosses the end of a mapping, so there is
            // one piece.
            value = unsafe {
                match part {
                    4 => u64::from(access::load32(host)),
                    _ => access::load64(host),
                }
            };
        })?;
        // A thread that sees the value also sees everything that was written before it.
        fence(Ordering::SeqCst);
        Ok(value)
    }

    /// Writes a value of 4 or 8 bytes to an address that is a multiple of its size. The write is atomic, and comes
    /// after all earlier writes of this thread.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn store(&self, address: u64, value: u64, bytes: u64) -> Result<(), BadRange> {
        fence(Ordering::SeqCst);
        self.each_piece(address, bytes, true, |host, _, part| {
            // SAFETY: as for `load`.
            unsafe {
                match part {
                    4 => access::store32(host, value as u32),
                    _ => access::store64(host, value),
                }
            }
        })
    }

    /// Sets `count` bytes.
    ///
    /// # Errors
    /// Returns an error unless the range is inside one allocation, or inside adjacent mappings that permit the access.
    pub fn fill8(&self, address: u64, value: u8, count: u64) -> Result<(), BadRange> {
        self.each_piece(address, count, true, |host, _, part| {
            // SAFETY: valid for the piece, as `each_piece` promises.
            unsafe { access::fill8(host, value, part) };
        })
    }

    /// Sets `count` values of 16 bits. The caller checks that the address is a multiple of 2.
    ///
    /// # Errors
    /// Returns an error unless the range is inside one allocation, or inside adjacent mappings that permit the access.
    pub fn fill16(&self, address: u64, value: u16, count: u64) -> Result<(), BadRange> {
        self.each_piece(address, count.saturating_mul(2), true, |host, _, part| {
            // SAFETY: valid for the piece, as `each_piece` promises; no value crosses the end of a piece.
            unsafe { access::fill16(host, value, part / 2) };
        })
    }

    /// Sets `count` values of 32 bits. The caller checks that the address is a multiple of 4.
    ///
    /// # Errors
    /// Returns an error unless the range is inside one allocation, or inside adjacent mappings that permit the access.
    pub fn fill32(&self, address: u64, value: u32, count: u64) -> Result<(), BadRange> {
        self.each_piece(address, count.saturating_mul(4), true, |host, _, part| {
            // SAFETY: valid for the piece, as `each_piece` promises; no value crosses the end of a piece.
            unsafe { access::fill32(host, value, part / 4) };
        })
    }
}
