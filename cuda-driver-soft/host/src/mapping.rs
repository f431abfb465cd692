//! Finds out which parts of its memory the process can read and write.

/// The access that the process has to a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// At least one byte cannot be read.
    Inaccessible,
    /// All bytes can be read; at least one cannot be written.
    ReadOnly,
    /// All bytes can be read and written.
    Writable,
    /// The system does not report the access.
    Unknown,
}

/// Returns the access that the process has at this moment to `bytes` bytes from `address` on.
pub fn mapping(address: u64, bytes: u64) -> Mapping {
    platform::mapping(address, bytes)
}

/// A range of addresses with one kind of access.
#[cfg_attr(not(any(windows, target_os = "linux")), allow(dead_code))]
struct Region {
    start: u64,
    end: u64,
    readable: bool,
    writable: bool,
}

/// Returns the access to a range of addresses. The regions must be in ascending order.
#[cfg_attr(not(any(windows, target_os = "linux")), allow(dead_code))]
fn of_regions(regions: impl IntoIterator<Item = Region>, address: u64, bytes: u64) -> Mapping {
    let mut at = address;
    let end = address.saturating_add(bytes);
    let mut all_writable = true;
    for region in regions {
        if region.end <= at {
            continue;
        }
        if at >= end || region.start > at {
            break;
        }
        if !region.readable {
            return Mapping::Inaccessible;
        }
        all_writable &= region.writable;
        at = region.end;
    }
    match (at >= end, all_writable) {
        (false, _) => Mapping::Inaccessible,
        (true, false) => Mapping::ReadOnly,
        (true, true) => Mapping::Writable,
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use super::{Mapping, Region, of_regions};

    pub(super) fn mapping(address: u64, bytes: u64) -> Mapping {
        match std::fs::read("/proc/self/maps") {
            Ok(maps) => of_regions(regions(&maps), address, bytes),
            Err(_) => Mapping::Unknown,
        }
    }

    /// Returns the regions in the text of `/proc/self/maps`.
    pub(super) fn regions(maps: &[u8]) -> impl Iterator<Item = Region> {
        maps.split(|b| *b == b'\n').filter_map(region)
    }

    /// Parses a line such as `7f00-7f10 rwxp …`.
    fn region(line: &[u8]) -> Option<Region> {
        let mut words = line.split(|b| *b == b' ');
        let range = std::str::from_utf8(words.next()?).ok()?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let rights = words.next().filter(|rights| rights.len() >= 2)?;
        Some(Region {
            start: number(start)?,
            end: number(end)?,
            readable: rights[0] == b'r',
            writable: rights[1] == b'w',
        })
    }
}

#[cfg(windows)]
mod platform {
    use std::ffi::c_void;

    use super::{Mapping, Region, of_regions};

    /// `MEMORY_BASIC_INFORMATION`
    #[repr(C)]
    struct MemoryInformation {
        base: *mut c_void,
        allocation: *mut c_void,
        allocation_protection: u32,
        bytes: usize,
        state: u32,
        protection: u32,
        kind: u32,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn VirtualQuery(address: *const c_void, information: *mut MemoryInformation, bytes: usize) -> usize;
    }

    pub(super) fn mapping(address: u64, bytes: u64) -> Mapping {
        let end = address.saturating_add(bytes);
        let mut at = address;
        let regions = std::iter::from_fn(|| {
            let region = (at < end).then(|| region_of(at)).flatten()?;
            at = region.end;
            Some(region)
        });
        of_regions(regions, address, bytes)
    }

    /// Returns the region that contains an address.
    fn region_of(address: u64) -> Option<Region> {
        /// `MEM_COMMIT`
        const COMMITTED: u32 = 0x1000;
        /// `PAGE_GUARD`
        const GUARD: u32 = 0x100;
        /// `PAGE_READWRITE`, `PAGE_WRITECOPY`, `PAGE_EXECUTE_READWRITE`, `PAGE_EXECUTE_WRITECOPY`
        const WRITABLE: u32 = 0xCC;
        /// `PAGE_READONLY`, `PAGE_EXECUTE_READ`
        const READ_ONLY: u32 = 0x22;
        let mut information = MemoryInformation {
            base: std::ptr::null_mut(),
            allocation: std::ptr::null_mut(),
            allocation_protection: 0,
            bytes: 0,
            state: 0,
            protection: 0,
            kind: 0,
        };
        let at = usize::try_from(address).ok()? as *const c_void;
        // SAFETY: the address is only looked up. The function writes at most the given number of bytes to the
        // structure, which is local and has the documented layout.
        let written = unsafe { VirtualQuery(at, &raw mut information, size_of::<MemoryInformation>()) };
        let start = information.base as u64;
        let end = start.checked_add(information.bytes as u64)?;
        if written == 0 || end <= address {
            return None;
        }
        let usable = information.state == COMMITTED && information.protection & GUARD == 0;
        let writable = usable && information.protection & WRITABLE != 0;
        let readable = writable || usable && information.protection & READ_ONLY != 0;
        Some(Region {
            start,
            end,
            readable,
            writable,
        })
    }
}

#[cfg(not(any(windows, target_os = "linux")))]
mod platform {
    use super::Mapping;

    pub(super) fn mapping(_address: u64, _bytes: u64) -> Mapping {
        Mapping::Unknown
    }
}

#[cfg(all(test, any(windows, target_os = "linux")))]
mod tests {
    use super::{Mapping, mapping};

    #[cfg(target_os = "linux")]
    #[test]
    fn adjacent_regions_gaps_and_rights() {
        let maps =
            b"1000-3000 rw-p 0 0 0 /a\xff b\n3000-4000 rw-p 0\n4000-5000 r--p 0\n5000-6000 ---p 0\n8000-9000 rwxp 0\n";
        let of = |address, bytes| super::of_regions(super::platform::regions(maps), address, bytes);
        assert_eq!(of(0x1000, 0x3000), Mapping::Writable);
        assert_eq!(of(0x2fff, 2), Mapping::Writable);
        assert_eq!(of(0x3fff, 2), Mapping::ReadOnly);
        assert_eq!(of(0x4fff, 1), Mapping::ReadOnly);
        assert_eq!(of(0x4fff, 2), Mapping::Inaccessible);
        for (address, bytes) in [
            (0xfff, 1),
            (0x5800, 16),
            (0x6000, 1),
            (0x7fff, 2),
            (0x8fff, 2),
            (0x9000, 1),
            (0x8000, u64::MAX),
        ] {
            assert_eq!(of(address, bytes), Mapping::Inaccessible, "{address:#x}");
        }
    }

    #[test]
    fn of_this_process() {
        static CONSTANT: [u8; 3] = *b"abc";
        let own = vec![0u8; 100_000];
        let start = own.as_ptr() as u64;
        assert_eq!(mapping(start, 100_000), Mapping::Writable);
        assert_eq!(mapping(CONSTANT.as_ptr() as u64, 3), Mapping::ReadOnly);
        assert_eq!(mapping(16, 1), Mapping::Inaccessible);
        assert_eq!(mapping(start, 1 << 46), Mapping::Inaccessible);
    }
}
