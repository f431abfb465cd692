//! Memory of the program that a call names: the host's side of a copy.

use super::{BadRange, access, space};

/// Bytes of the program that a copy may read or write until it is done.
#[derive(Clone, Copy, Debug)]
pub struct HostRange {
    address: usize,
    bytes: usize,
}

impl HostRange {
    /// Takes the word of whoever made the call.
    ///
    /// # Safety
    /// The bytes must be valid for what the copy does with them until it is done, as the manual asks of the caller.
    pub unsafe fn new(address: usize, bytes: usize) -> Self {
        HostRange { address, bytes }
    }

    pub fn address(&self) -> u64 {
        self.address as u64
    }

    /// A part of the range; a part outside of it is cut off.
    pub fn part(&self, offset: usize, bytes: usize) -> HostRange {
        let offset = offset.min(self.bytes);
        HostRange {
            address: self.address + offset,
            bytes: bytes.min(self.bytes - offset),
        }
    }

    /// The bytes as they are now.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes];
        // SAFETY: the range is valid for reads, as promised to `new`; the vector is as long.
        unsafe { access::copy(copy.as_mut_ptr(), self.address as *const u8, self.bytes) };
        copy
    }

    /// Copies bytes to the range, as far as both reach.
    pub fn write(&self, from: &[u8]) {
        let bytes = from.len().min(self.bytes);
        // SAFETY: the range is valid for writes, as promised to `new`; the slice has as many bytes.
        unsafe { access::copy(self.address as *mut u8, from.as_ptr(), bytes) };
    }

    /// Copies the range to the device.
    pub fn write_to(&self, device: u64) -> Result<(), BadRange> {
        // SAFETY: the range is valid for reads, as promised to `new`.
        unsafe { space().write_from(device, self.address as *const u8, self.bytes as u64) }
    }

    /// Copies from the device to the range.
    pub fn read_from(&self, device: u64) -> Result<(), BadRange> {
        // SAFETY: the range is valid for writes, as promised to `new`.
        unsafe { space().read_to(device, self.address as *mut u8, self.bytes as u64) }
    }

    /// Copies from another range of the program, as far as both reach.
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
