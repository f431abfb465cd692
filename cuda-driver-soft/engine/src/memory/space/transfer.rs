//! The host's access to device memory: copies and fills, each in one allocation or over mappings side by side.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::{Access, AddressSpace, BadRange, Kind, Record};
use crate::memory::access;
use crate::memory::epochs::Epochs;

/// The host's access to an allocation. Meanwhile its backing stays, and the end of its registration waits.
pub(super) struct Visit<'s> {
    epochs: &'s Epochs<Arc<Record>>,
    epoch: u64,
    first: Option<Arc<Record>>,
    others: Vec<Arc<Record>>,
}

impl Visit<'_> {
    /// Finds the allocation that holds a range, or the mappings that do so together.
    fn find(
        &mut self,
        space: &AddressSpace,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<(), BadRange> {
        let index = space.index();
        let first = index
            .containing(address)
            .or_else(|| index.records.get(&address))
            .or_else(|| match bytes {
                // Nothing, at the end of an allocation.
                0 => index.containing(address.wrapping_sub(1)),
                _ => None,
            });
        let bad = BadRange {
            address,
            bytes,
            inside: first.map(|r| r.info),
        };
        let first = first
            .filter(|record| !record.is_out_of_reach())
            .ok_or(bad)?;
        let offset = address - first.info.base;
        if offset > first.info.bytes {
            return Err(bad);
        }
        let permitted = |record: &Record| match record.info.access {
            Access::ReadWrite => true,
            // What was registered for reading is written by nobody, as the call was refused that asked for it.
            Access::Read => !write || record.info.kind != Kind::Mapped,
            Access::None => false,
        };
        let mut held = first.info.bytes - offset;
        let mut last = first;
        let mut all_permitted = permitted(first);
        while held < bytes {
            let next = index.records.get(&(last.info.base + last.info.bytes));
            let side_by_side = |next: &&Arc<Record>| {
                last.info.kind == Kind::Mapped && next.info.kind == Kind::Mapped
            };
            last = next.filter(side_by_side).ok_or(bad)?;
            all_permitted &= permitted(last);
            held += last.info.bytes;
            self.others.push(Arc::clone(last));
        }
        if !all_permitted {
            return Err(bad);
        }
        self.first = Some(Arc::clone(first));
        Ok(())
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.epochs.leave(self.epoch);
    }
}

impl AddressSpace {
    /// Finds what holds a range.
    pub(super) fn visit(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<Visit<'_>, BadRange> {
        // Before the look: whoever frees it later waits, or keeps it, for this.
        let mut visit = Visit {
            epochs: &self.epochs,
            epoch: self.epochs.enter(),
            first: None,
            others: Vec::new(),
        };
        visit.find(self, address, bytes, write)?;
        Ok(visit)
    }

    /// Does something to a range, piece by piece: `with` gets the host's address of a piece, valid for the call, how far into
    /// the range it begins, and its length. There is one piece, but where memory is mapped side by side.
    fn each(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
        mut with: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), BadRange> {
        let visit = self.visit(address, bytes, write)?;
        let mut done = 0;
        for record in visit.first.iter().chain(&visit.others) {
            let at = address + done;
            let part = (record.info.base + record.info.bytes - at).min(bytes - done);
            let host = at.wrapping_add(record.delta) as usize as *mut u8;
            with(host, done as usize, part as usize);
            done += part;
        }
        Ok(())
    }

    /// Copies device memory to the host.
    ///
    /// # Errors
    /// The range does not lie in one allocation, or in mappings side by side that allow it.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BadRange> {
        // SAFETY: the slice is valid for writes of its length.
        unsafe { self.read_to(address, into.as_mut_ptr(), into.len() as u64) }
    }

    /// Copies host memory to the device.
    ///
    /// # Errors
    /// The range does not lie in one allocation, or in mappings side by side that allow it.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), BadRange> {
        // SAFETY: the slice is valid for reads of its length.
        unsafe { self.write_from(address, from.as_ptr(), from.len() as u64) }
    }

    /// [`read`](Self::read) into memory of the host that may be uninitialised, or raced for.
    ///
    /// # Safety
    /// `into` must be valid for writes of `bytes` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub unsafe fn read_to(&self, address: u64, into: *mut u8, bytes: u64) -> Result<(), BadRange> {
        self.each(address, bytes, false, |host, offset, part| {
            // SAFETY: the source as `each` says, the destination as promised by the caller.
            unsafe { access::copy(into.add(offset), host, part) };
        })
    }

    /// [`write`](Self::write) from memory of the host that may be uninitialised, or raced for.
    ///
    /// # Safety
    /// `from` must be valid for reads of `bytes` bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub unsafe fn write_from(
        &self,
        address: u64,
        from: *const u8,
        bytes: u64,
    ) -> Result<(), BadRange> {
        self.each(address, bytes, true, |host, offset, part| {
            // SAFETY: the destination as `each` says, the source as promised by the caller.
            unsafe { access::copy(host, from.add(offset), part) };
        })
    }

    /// Copies `bytes` bytes from device memory to device memory; the ranges may overlap.
    ///
    /// # Errors
    /// As for [`read`](Self::read) and [`write`](Self::write).
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), BadRange> {
        let mut done = Ok(());
        self.each(from, bytes, false, |source, offset, part| {
            let piece = self.each(to + offset as u64, part as u64, true, |target, at, part| {
                // SAFETY: both are valid for the piece, as `each` says.
                unsafe { access::copy(target, source.add(at), part) };
            });
            done = done.and(piece);
        })?;
        done
    }

    /// The value of 4 or 8 bytes at an address that is a multiple of its size, read as one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn load(&self, address: u64, bytes: u64) -> Result<u64, BadRange> {
        let mut value = 0;
        self.each(address, bytes, false, |host, _, part| {
            // SAFETY: valid, as `each` says, and aligned, as the caller does: so it is one piece.
            value = unsafe {
                match part {
                    4 => u64::from(access::load32(host)),
                    _ => access::load64(host),
                }
            };
        })?;
        // Who sees the value sees what was written before it.
        fence(Ordering::SeqCst);
        Ok(value)
    }

    /// Writes a value of 4 or 8 bytes to an address that is a multiple of its size, as one, after all that was written
    /// before.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn store(&self, address: u64, value: u64, bytes: u64) -> Result<(), BadRange> {
        fence(Ordering::SeqCst);
        self.each(address, bytes, true, |host, _, part| {
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
    /// The range does not lie in one allocation, or in mappings side by side that allow it.
    pub fn fill8(&self, address: u64, value: u8, count: u64) -> Result<(), BadRange> {
        self.each(address, count, true, |host, _, part| {
            // SAFETY: valid for the piece, as `each` says.
            unsafe { access::fill8(host, value, part) };
        })
    }

    /// Sets `count` values of 16 bits. The address must be a multiple of 2, which the caller checks.
    ///
    /// # Errors
    /// The range does not lie in one allocation, or in mappings side by side that allow it.
    pub fn fill16(&self, address: u64, value: u16, count: u64) -> Result<(), BadRange> {
        self.each(address, count.saturating_mul(2), true, |host, _, part| {
            // SAFETY: valid for the piece, as `each` says; a piece ends between two values.
            unsafe { access::fill16(host, value, part / 2) };
        })
    }

    /// Sets `count` values of 32 bits. The address must be a multiple of 4, which the caller checks.
    ///
    /// # Errors
    /// The range does not lie in one allocation, or in mappings side by side that allow it.
    pub fn fill32(&self, address: u64, value: u32, count: u64) -> Result<(), BadRange> {
        self.each(address, count.saturating_mul(4), true, |host, _, part| {
            // SAFETY: valid for the piece, as `each` says; a piece ends between two values.
            unsafe { access::fill32(host, value, part / 4) };
        })
    }
}
