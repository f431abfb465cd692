//! Memory that processes share: an unnamed file of the system (`memfd_create`) that each of them maps.
//!
//! The last page of the file is a label, so that descriptors of other files are recognised and refused. The file is
//! sealed: no process can shrink it while others have it mapped. Shared files are implemented for Linux only; on other
//! systems nothing can be shared.

/// The label of a shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The purpose of the file. A process that opens it names the purpose that it expects.
    pub purpose: Purpose,
    /// A number chosen by the creator: the location of the memory or pool, such as its device; 0 for an event.
    pub number: u32,
}

/// The purpose of a shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Physical memory from `cuMemCreate`.
    Physical = 1,
    /// Memory from `cuMemAlloc` that other processes may open.
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
    use crate::memory::Access;
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

    /// The first bytes of the label page. The version, the purpose and the number follow.
    const MAGIC: [u8; 16] = *b"cuda-driver-soft";
    const VERSION: u32 = 1;
    /// Bytes of the label page.
    const PAGE: u64 = 4096;
    /// Seals that make the size of the file and the seals themselves final.
    const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

    /// A shared file that this process has mapped.
    #[derive(Debug)]
    pub struct SharedFile {
        file: File,
        address: *mut u8,
        bytes: u64,
        label: Label,
        /// Device and inode number of the file: the same in all processes.
        identity: (u64, u64),
    }

    // SAFETY: a mapping that this value alone owns and never accesses itself.
    unsafe impl Send for SharedFile {}
    // SAFETY: as above.
    unsafe impl Sync for SharedFile {}

    impl SharedFile {
        /// Creates a file of at least `bytes` zeroed bytes, which the system provides as they are touched. Returns
        /// `None` if the system refuses.
        pub fn new(bytes: u64, label: Label) -> Option<Self> {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            // SAFETY: the name is a C string.
            let fd = unsafe { libc::memfd_create(c"cuda-driver-soft".as_ptr(), flags) };
            if fd < 0 {
                return None;
            }
            // SAFETY: the descriptor is new, and nothing else owns it.
            let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
            file.set_len(bytes.checked_add(PAGE)?).ok()?;
            let mut header = MAGIC.to_vec();
            for word in [VERSION, label.purpose as u32, label.number] {
                header.extend(word.to_le_bytes());
            }
            file.write_all_at(&header, bytes).ok()?;
            // SAFETY: the arguments are integers, and `file` owns the descriptor.
            let sealed = unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) };
            if sealed != 0 {
                return None;
            }
            Self::map(file, bytes, label)
        }

        /// Opens the file of a descriptor of this process, which stays the caller's. Returns `None` if it is not a
        /// shared file, or has another purpose.
        pub fn open(descriptor: i32, purpose: Purpose) -> Option<Self> {
            // SAFETY: the arguments are integers; a descriptor that is not open is an error.
            let duplicate = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
            if duplicate < 0 {
                return None;
            }
            // SAFETY: the descriptor is new, and nothing else owns it.
            let file = File::from(unsafe { OwnedFd::from_raw_fd(duplicate) });
            Self::of(file, purpose)
        }

        /// Opens the file of a descriptor of another process of the same user. Returns `None` if it is not a shared
        /// file, or has another purpose.
        pub fn open_of(process: u32, descriptor: i32, purpose: Purpose) -> Option<Self> {
            let path = format!("/proc/{process}/fd/{descriptor}");
            // The descriptor may be of any file: opening must neither wait nor take a terminal.
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let file = File::options()
                .read(true)
                .write(true)
                .custom_flags(flags)
                .open(path)
                .ok()?;
            Self::of(file, purpose)
        }

        fn of(file: File, purpose: Purpose) -> Option<Self> {
            // SAFETY: the arguments are integers; for a file without seals the result is negative.
            let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
            let bytes = file.metadata().ok()?.len().checked_sub(PAGE)?;
            let mut header = [0; 28];
            file.read_exact_at(&mut header, bytes).ok()?;
            let word = |at: usize| header[at..at + 4].iter().rev().fold(0, |n, &b| n << 8 | u32::from(b));
            let valid = seals >= 0
                && seals & SEALS == SEALS
                && header[..16] == MAGIC
                && word(16) == VERSION
                && word(20) == purpose as u32;
            let number = word(24);
            valid.then(|| Self::map(file, bytes, Label { purpose, number }))?
        }

        fn map(file: File, bytes: u64, label: Label) -> Option<Self> {
            let meta = file.metadata().ok()?;
            let (rights, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
            );
            let length = usize::try_from(bytes).ok()?;
            // SAFETY: a new mapping, at an address that the system chooses, of a file that cannot shrink.
            let address = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, file.as_raw_fd(), 0) };
            (address != libc::MAP_FAILED).then(|| SharedFile {
                identity: (meta.dev(), meta.ino()),
                file,
                address: address.cast(),
                bytes,
                label,
            })
        }

        /// Maps the file once more, at this address. Returns false if the system refuses.
        ///
        /// # Safety
        /// The addresses belong to the caller, and nothing uses the memory that is mapped there.
        pub unsafe fn map_at(&self, address: u64, access: Access) -> bool {
            let rights = match access {
                Access::None => libc::PROT_NONE,
                Access::Read => libc::PROT_READ,
                Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            };
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
            let (at, length) = (address as usize as *mut libc::c_void, self.bytes as usize);
            // SAFETY: replaces only what the caller gives up; the file cannot shrink.
            let mapped = unsafe { libc::mmap(at, length, rights, flags, self.file.as_raw_fd(), 0) };
            mapped != libc::MAP_FAILED
        }

        /// Returns a new descriptor of the file, which the caller owns.
        pub fn export(&self) -> Option<i32> {
            // SAFETY: the arguments are integers, and `file` owns the descriptor.
            let fd = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
            (fd >= 0).then_some(fd)
        }

        /// Returns this process's descriptor of the file, for [`open_of`](Self::open_of) in another process. It is
        /// valid as long as this value lives.
        pub fn descriptor(&self) -> i32 {
            self.file.as_raw_fd()
        }

        /// Returns the address of the first byte of the mapping.
        pub fn address(&self) -> *mut u8 {
            self.address
        }

        /// Returns the length in bytes, rounded up to whole pages.
        pub fn bytes(&self) -> u64 {
            self.bytes
        }

        /// Returns the label.
        pub fn label(&self) -> Label {
            self.label
        }

        /// Returns two numbers that identify the file in all processes.
        pub fn identity(&self) -> (u64, u64) {
            self.identity
        }
    }

    impl Drop for SharedFile {
        fn drop(&mut self) {
            // SAFETY: `map` made the mapping. Accesses are valid only while this value lives.
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
            // SAFETY: `export` gave the descriptor to this test.
            let _owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
            let two = SharedFile::open(descriptor, Purpose::Physical).unwrap();
            assert_eq!(two.label(), label);
            assert_eq!(one.identity(), two.identity());
            assert_ne!(one.address(), two.address());
            // SAFETY: both mappings have 102400 bytes, and nothing else accesses them.
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
    use crate::memory::Access;

    /// A shared file. Shared files are not implemented for this system, so no value of this type exists.
    #[derive(Debug)]
    pub enum SharedFile {}

    impl SharedFile {
        /// Returns `None` on this system.
        pub fn new(_bytes: u64, _label: Label) -> Option<Self> {
            None
        }

        /// Returns `None` on this system.
        pub fn open(_descriptor: i32, _purpose: Purpose) -> Option<Self> {
            None
        }

        /// Returns `None` on this system.
        pub fn open_of(_process: u32, _descriptor: i32, _purpose: Purpose) -> Option<Self> {
            None
        }

        /// Cannot be called, because there is no value of this type; neither can the methods below.
        ///
        /// # Safety
        /// None is needed.
        pub unsafe fn map_at(&self, _address: u64, _access: Access) -> bool {
            match *self {}
        }

        /// Returns a new descriptor of the file.
        pub fn export(&self) -> Option<i32> {
            match *self {}
        }

        /// Returns the descriptor of the file.
        pub fn descriptor(&self) -> i32 {
            match *self {}
        }

        /// Returns the address of the first byte of the mapping.
        pub fn address(&self) -> *mut u8 {
            match *self {}
        }

        /// Returns the length in bytes.
        pub fn bytes(&self) -> u64 {
            match *self {}
        }

        /// Returns the label.
        pub fn label(&self) -> Label {
            match *self {}
        }

        /// Returns two numbers that identify the file in all processes.
        pub fn identity(&self) -> (u64, u64) {
            match *self {}
        }
    }
}
