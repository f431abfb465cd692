//! Memory for machine code: written first, then made executable, and never writable and executable at once.

/// Machine code in executable memory. Dropping the value releases the memory, so the owner keeps the value as long as a
/// thread may run the code.
#[derive(Debug)]
pub struct Executable {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: after `new`, the memory is only read and executed, and only `drop` releases it.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Copies machine code into new memory and makes it executable. Returns `None` if the system refuses, as hardened
    /// systems may.
    pub fn new(code: &[u8]) -> Option<Self> {
        let bytes = code.len().max(1);
        let address = platform::map(bytes)?;
        let executable = Executable { address, bytes };
        // SAFETY: the mapping is new, writable, and at least as long as the code.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), address, code.len()) };
        platform::protect(address, bytes).then_some(executable)
    }

    /// Returns the address of the first byte of the code.
    pub fn address(&self) -> *const u8 {
        self.address
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, of this length. The owner drops it only after the last call of its code.
        unsafe { platform::unmap(self.address, self.bytes) };
    }
}

#[cfg(unix)]
mod platform {
    /// Returns new writable memory.
    pub(super) fn map(bytes: usize) -> Option<*mut u8> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a new private mapping, at an address that the system chooses.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        (address != libc::MAP_FAILED).then_some(address.cast())
    }

    /// Makes memory from [`map`] executable and read-only. Returns false if the system refuses.
    pub(super) fn protect(address: *mut u8, bytes: usize) -> bool {
        // SAFETY: the mapping belongs to the caller, and no reference points into it.
        unsafe { libc::mprotect(address.cast(), bytes, libc::PROT_READ | libc::PROT_EXEC) == 0 }
    }

    /// # Safety
    /// The memory is from [`map`] with this length, and no longer used.
    pub(super) unsafe fn unmap(address: *mut u8, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { libc::munmap(address.cast(), bytes) };
    }
}

#[cfg(windows)]
mod platform {
    use std::ffi::c_void;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn VirtualAlloc(address: *mut c_void, bytes: usize, kind: u32, protection: u32) -> *mut c_void;
        fn VirtualProtect(address: *mut c_void, bytes: usize, protection: u32, old: *mut u32) -> i32;
        fn VirtualFree(address: *mut c_void, bytes: usize, kind: u32) -> i32;
    }

    /// Returns new writable memory.
    pub(super) fn map(bytes: usize) -> Option<*mut u8> {
        /// `MEM_COMMIT | MEM_RESERVE`
        const COMMIT: u32 = 0x3000;
        /// `PAGE_READWRITE`
        const WRITABLE: u32 = 0x04;
        // SAFETY: new memory, at an address that the system chooses.
        let address = unsafe { VirtualAlloc(std::ptr::null_mut(), bytes, COMMIT, WRITABLE) };
        (!address.is_null()).then_some(address.cast())
    }

    /// Makes memory from [`map`] executable and read-only. Returns false if the system refuses.
    pub(super) fn protect(address: *mut u8, bytes: usize) -> bool {
        /// `PAGE_EXECUTE_READ`
        const EXECUTABLE: u32 = 0x20;
        let mut old = 0;
        // SAFETY: the memory belongs to the caller, and no reference points into it; `old` is local.
        unsafe { VirtualProtect(address.cast(), bytes, EXECUTABLE, &raw mut old) != 0 }
    }

    /// # Safety
    /// The memory is from [`map`], and no longer used.
    pub(super) unsafe fn unmap(address: *mut u8, _bytes: usize) {
        /// `MEM_RELEASE`
        const RELEASE: u32 = 0x8000;
        // SAFETY: as promised by the caller; all of the memory is released.
        unsafe { VirtualFree(address.cast(), 0, RELEASE) };
    }
}

#[cfg(not(any(unix, windows)))]
mod platform {
    pub(super) fn map(_bytes: usize) -> Option<*mut u8> {
        None
    }

    pub(super) fn protect(_address: *mut u8, _bytes: usize) -> bool {
        false
    }

    /// # Safety
    /// No preconditions: [`map`] returns no memory.
    pub(super) unsafe fn unmap(_address: *mut u8, _bytes: usize) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::Executable;
    use std::io::Write;

    #[test]
    fn code_runs_and_cannot_be_written() {
        // mov eax, edi; add eax, 1; ret
        let code = [0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3];
        let Some(executable) = Executable::new(&code) else {
            // Not `eprintln`, whose output the test harness would hide.
            _ = writeln!(std::io::stderr(), "needs a system that permits executable memory");
            return;
        };
        // SAFETY: the code is a function of this type.
        let next: extern "sysv64" fn(u32) -> u32 = unsafe { std::mem::transmute(executable.address()) };
        assert_eq!(next(41), 42);
        #[cfg(any(windows, target_os = "linux"))]
        assert_eq!(
            crate::mapping(executable.address() as u64, code.len() as u64),
            crate::Mapping::ReadOnly
        );
    }
}
