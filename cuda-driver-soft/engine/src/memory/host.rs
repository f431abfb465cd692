//! The host's side of a copy: memory that the program passes to a call.

use super::access;
use super::address_space::address_space;
use super::errors::BadRange;

/// A range of the program's memory that a copy may access until it is done.
#[derive(Clone, Copy, Debug)]
pub struct HostRange {
    address: usize,
    bytes: usize,
}

impl HostRange {
    /// Creates a range from the address that a caller passed.
    ///
    /// # Safety
    /// Until the copy is done, the bytes must be valid for the reads or writes that it does.
    pub unsafe fn new(address: usize, bytes: usize) -> Self {
        HostRange { address, bytes }
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        self.address as u64
    }

    /// Returns a part of the range, without the bytes that would be outside of it.
    pub fn part(&self, offset: usize, bytes: usize) -> HostRange {
        let offset = offset.min(self.bytes);
        HostRange {
            address: self.address + offset,
            bytes: bytes.min(self.bytes - offset),
        }
    }

    /// Appends the bytes as they are now to a vector.
    pub fn append_to(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + self.bytes, 0);
        // SAFETY: the range is valid for reads, as promised to `new`, and the new part of the vector has the same
        // length.
        unsafe { access::copy(to[start..].as_mut_ptr(), self.address as *const u8, self.bytes) };
    }

    /// Copies bytes to the range, up to the shorter of the two lengths.
    pub fn write(&self, from: &[u8]) {
        let bytes = from.len().min(self.bytes);
        // SAFETY: the range is valid for writes, as promised to `new`, and the slice has as many bytes.
        unsafe { access::copy(self.address as *mut u8, from.as_ptr(), bytes) };
    }

    /// Copies the range to the device.
    ///
    /// # Errors
    /// As [`AddressSpace::write`](super::AddressSpace::write).
    pub fn write_to(&self, device: u64) -> Result<(), BadRange> {
        // SAFETY: the range is valid for reads, as promised to `new`.
        unsafe { address_space().write_from(device, self.address as *const u8, self.bytes as u64) }
    }

    /// Copies from the device to the range.
    ///
    /// # Errors
    /// As [`AddressSpace::read`](super::AddressSpace::read).
    pub fn read_from(&self, device: u64) -> Result<(), BadRange> {
        // SAFETY: the range is valid for writes, as promised to `new`.
        unsafe { address_space().read_to(device, self.address as *mut u8, self.bytes as u64) }
    }

    /// Copies from another range of the program, up to the shorter of the two lengths.
    pub fn copy_from(&self, from: HostRange) {
        // SAFETY: both ranges are valid, as promised to `new`.
        unsafe {
            access::copy(
                self.address as *mut u8,
                from.address as *const u8,
                self.bytes.min(from.bytes),
            )
        };
    }
}
