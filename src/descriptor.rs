//! File descriptors that are passed to the driver as handles.

use core::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A file descriptor as a handle, which the driver's calls take as an address.
///
/// The driver treats descriptor 0 as a missing handle, so a duplicate of it is passed instead.
pub(crate) struct Descriptor<'fd> {
    given: BorrowedFd<'fd>,
    duplicate: Option<OwnedFd>,
}

impl<'fd> Descriptor<'fd> {
    /// Wraps an open file descriptor, and duplicates descriptor 0 unless the process cannot open another one.
    #[inline]
    pub(crate) fn new(fd: BorrowedFd<'fd>) -> Self {
        let duplicate = if fd.as_raw_fd() == 0 {
            fd.try_clone_to_owned().ok()
        } else {
            None
        };
        Self { given: fd, duplicate }
    }

    /// Returns the handle, which is valid as long as `self` exists.
    #[inline]
    pub(crate) fn as_handle(&self) -> *mut c_void {
        let fd = self
            .duplicate
            .as_ref()
            .map_or(self.given.as_raw_fd(), AsRawFd::as_raw_fd);
        core::ptr::without_provenance_mut(usize::try_from(fd).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::Descriptor;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

    #[test]
    fn descriptor_0_is_duplicated() {
        // SAFETY: the test does not close its standard input, and the program runs with an open one.
        let input = unsafe { BorrowedFd::borrow_raw(0) };
        assert_ne!(Descriptor::new(input).as_handle().addr(), 0);
    }

    #[test]
    fn others_are_passed_as_they_are() {
        let file = std::fs::File::open("Cargo.toml").expect("a file");
        assert_eq!(
            Descriptor::new(file.as_fd()).as_handle().addr(),
            file.as_raw_fd() as usize
        );
    }
}
