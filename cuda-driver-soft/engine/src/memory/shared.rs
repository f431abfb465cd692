//! Memory that another process can have too: an unnamed file of the system's, mapped by each of them.
//!
//! Behind the memory itself the file has a page that says what it is, so that a descriptor of anything else is found out.
//! The file is sealed: nobody can make it shorter under those who have it mapped. Only Linux has such files; elsewhere
//! there is no shared memory.

/// What a shared file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it was made for: those who open it want the right one.
    pub purpose: Purpose,
    /// A number of whoever made it: the device that the memory is of.
    pub number: u32,
}

/// See [`Label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// What `cuMemCreate` made.
    Physical = 1,
    /// What `cuMemAlloc` made, and another process may open.
    Allocation = 2,
    /// An event.
    Event = 3,
    /// A memory pool.
    Pool = 4,
}

#[cfg(target_os = "linux")]
pub use linux::SharedFile;
#[cfg(not(target_os = "linux"))]
pub use none::SharedFile;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Label, Purpose};
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::fs::{FileExt, MetadataExt};

    /// What the last page begins with; the number is the version of what follows.
    const MAGIC: [u8; 16] = *b"cuda-driver-soft";
    const VERSION: u32 = 1;
    /// Bytes of the page that says what a file is.
    const PAGE: u64 = 4096;
    /// What nobody can do to a file any more.
    const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

    /// A shared file, mapped.
    #[derive(Debug)]
    pub struct SharedFile {
        file: File,
        address: *mut u8,
        bytes: u64,
        label: Label,
        /// Device and number of the file: the same for all that have it open.
        identity: (u64, u64),
    }

    // SAFETY: a mapping that lives as long as this value, which never looks inside.
    unsafe impl Send for SharedFile {}
    // SAFETY: as above.
    unsafe impl Sync for SharedFile {}

    impl SharedFile {
        /// This many zeroed bytes; the system provides them as they are touched. `None`: it does not.
        pub fn new(bytes: u64, label: Label) -> Option<Self> {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            // SAFETY: the name is a C string.
            let fd = unsafe { libc::memfd_create(c"cuda-driver-soft".as_ptr(), flags) };
            if fd < 0 {
                return None;
            }
            // SAFETY: made just now, and nobody else's.
            let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
            file.set_len(bytes.checked_add(PAGE)?).ok()?;
            let mut said = MAGIC.to_vec();
            for word in [VERSION, label.purpose as u32, label.number] {
                said.extend(word.to_le_bytes());
            }
            file.write_all_at(&said, bytes).ok()?;
            // SAFETY: plain arguments, for a descriptor of this value's.
            let sealed = unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) };
            if sealed != 0 {
                return None;
            }
            Self::map(file, bytes, label)
        }

        /// Opens the file of a descriptor again; `None` if it is not one of these, or not for this purpose.
        pub fn open(descriptor: i32, purpose: Purpose) -> Option<Self> {
            // SAFETY: asks only; a descriptor that is not open is an error.
            let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
            if own < 0 {
                return None;
            }
            // SAFETY: made just now, and nobody else's.
            Self::of(File::from(unsafe { OwnedFd::from_raw_fd(own) }), purpose)
        }

        /// Opens the file that another process of the same user has under this descriptor.
        pub fn open_of(process: u32, descriptor: i32, purpose: Purpose) -> Option<Self> {
            let path = format!("/proc/{process}/fd/{descriptor}");
            let file = File::options().read(true).write(true).open(path).ok()?;
            Self::of(file, purpose)
        }

        fn of(file: File, purpose: Purpose) -> Option<Self> {
            // SAFETY: asks only; a file that has no seals is an error.
            let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
            let bytes = file.metadata().ok()?.len().checked_sub(PAGE)?;
            let mut said = [0; 28];
            file.read_exact_at(&mut said, bytes).ok()?;
            let word = |at: usize| {
                said[at..at + 4]
                    .iter()
                    .rev()
                    .fold(0, |n, &b| n << 8 | u32::from(b))
            };
            let right = seals & SEALS == SEALS
                && said[..16] == MAGIC
                && word(16) == VERSION
                && word(20) == purpose as u32;
            let number = word(24);
            right.then(|| Self::map(file, bytes, Label { purpose, number }))?
        }

        fn map(file: File, bytes: u64, label: Label) -> Option<Self> {
            let meta = file.metadata().ok()?;
            let (rights, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
            );
            let length = usize::try_from(bytes).ok()?;
            // SAFETY: a new mapping at a place of the system's choice, of a file that cannot become shorter.
            let address = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    length,
                    rights,
                    flags,
                    file.as_raw_fd(),
                    0,
                )
            };
            (address != libc::MAP_FAILED).then(|| SharedFile {
                identity: (meta.dev(), meta.ino()),
                file,
                address: address.cast(),
                bytes,
                label,
            })
        }

        /// A descriptor of the file, which is the caller's to close.
        pub fn export(&self) -> Option<i32> {
            // SAFETY: a descriptor of this value's.
            let fd = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
            (fd >= 0).then_some(fd)
        }

        /// The descriptor of this process under which others find it, as long as this value lives.
        pub fn descriptor(&self) -> i32 {
            self.file.as_raw_fd()
        }

        pub fn address(&self) -> *mut u8 {
            self.address
        }

        pub fn bytes(&self) -> u64 {
            self.bytes
        }

        pub fn label(&self) -> Label {
            self.label
        }

        pub fn identity(&self) -> (u64, u64) {
            self.identity
        }
    }

    impl Drop for SharedFile {
        fn drop(&mut self) {
            // SAFETY: the mapping that `map` made; whoever accessed it kept this value alive.
            unsafe { libc::munmap(self.address.cast(), self.bytes as usize) };
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn two_mappings_are_one_memory_and_other_files_are_refused() {
            let label = Label {
                purpose: Purpose::Physical,
                number: 7,
            };
            let one = SharedFile::new(100_000, label).unwrap();
            assert_eq!(one.bytes(), 102_400);
            let descriptor = one.export().unwrap();
            // SAFETY: exported to this test.
            let _closes = unsafe { OwnedFd::from_raw_fd(descriptor) };
            let two = SharedFile::open(descriptor, Purpose::Physical).unwrap();
            assert_eq!(two.label(), label);
            assert_eq!(one.identity(), two.identity());
            assert_ne!(one.address(), two.address());
            // SAFETY: both are valid for 102400 bytes, and nobody else has them.
            unsafe {
                one.address().add(102_399).write(42);
                assert_eq!(two.address().add(102_399).read(), 42);
            }
            let other = SharedFile::open_of(std::process::id(), descriptor, Purpose::Physical);
            assert_eq!(other.unwrap().identity(), one.identity());
            for (descriptor, purpose) in [(descriptor, Purpose::Event), (-1, Purpose::Physical)] {
                assert!(SharedFile::open(descriptor, purpose).is_none());
            }
            let plain = File::open("/proc/self/exe").unwrap();
            assert!(SharedFile::open(plain.as_raw_fd(), Purpose::Physical).is_none());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use super::{Label, Purpose};

    /// No such thing here.
    #[derive(Debug)]
    pub enum SharedFile {}

    impl SharedFile {
        pub fn new(_bytes: u64, _label: Label) -> Option<Self> {
            None
        }

        pub fn open(_descriptor: i32, _purpose: Purpose) -> Option<Self> {
            None
        }

        pub fn open_of(_process: u32, _descriptor: i32, _purpose: Purpose) -> Option<Self> {
            None
        }

        pub fn export(&self) -> Option<i32> {
            match *self {}
        }

        pub fn descriptor(&self) -> i32 {
            match *self {}
        }

        pub fn address(&self) -> *mut u8 {
            match *self {}
        }

        pub fn bytes(&self) -> u64 {
            match *self {}
        }

        pub fn label(&self) -> Label {
            match *self {}
        }

        pub fn identity(&self) -> (u64, u64) {
            match *self {}
        }
    }
}
