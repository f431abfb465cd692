//! What the operating system says: how much memory the machine has, and how the program has mapped its addresses.

use std::sync::OnceLock;

/// How a range of addresses is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// A byte of it cannot be read.
    Inaccessible,
    /// All can be read, a byte of it cannot be written.
    ReadOnly,
    /// All can be read and written.
    Writable,
    /// The system does not say.
    #[cfg_attr(windows, allow(dead_code))]
    Unknown,
}

/// Memory in bytes that the process can have, if the system says: the machine's, or what is left of it in a container or
/// by a limit of the process. Asked of the system once.
pub fn memory() -> Option<u64> {
    static MEMORY: OnceLock<Option<u64>> = OnceLock::new();
    *MEMORY.get_or_init(|| imp::memory().filter(|&bytes| bytes > 0))
}

/// How the bytes from `address` on are mapped at this moment.
pub fn mapping(address: u64, bytes: u64) -> Mapping {
    imp::mapping(address, bytes)
}

/// The mapping of a range whose parts come in ascending order: start, end, whether they can be read and written.
#[cfg_attr(not(any(windows, target_os = "linux", test)), allow(dead_code))]
fn of_parts(
    parts: impl IntoIterator<Item = (u64, u64, bool, bool)>,
    address: u64,
    bytes: u64,
) -> Mapping {
    let mut at = address;
    let end = address.saturating_add(bytes);
    let mut all_writable = true;
    for (start, stop, readable, writable) in parts {
        if stop <= at {
            continue;
        }
        if at >= end || start > at {
            break;
        }
        if !readable {
            return Mapping::Inaccessible;
        }
        all_writable &= writable;
        at = stop;
    }
    match (at >= end, all_writable) {
        (false, _) => Mapping::Inaccessible,
        (true, false) => Mapping::ReadOnly,
        (true, true) => Mapping::Writable,
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use super::{Mapping, of_parts};

    pub(super) fn memory() -> Option<u64> {
        let limits = [
            physical(),
            of_groups(|path| std::fs::read_to_string(path).ok()),
            of_process(),
        ];
        limits.into_iter().flatten().min()
    }

    /// The least limit of the control groups that the process is in, of either version, and of those that these are in.
    pub(super) fn of_groups(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let groups = read("/proc/self/cgroup").unwrap_or_default();
        let mut least = None;
        for line in groups.lines() {
            // `0::/path` is of version 2, `4:cpu,memory:/path` of version 1.
            let mut words = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (words.next(), words.next()) else {
                continue;
            };
            let (root, file) = match controllers {
                "" => ("/sys/fs/cgroup", "memory.max"),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
                }
                _ => continue,
            };
            // In a container the path may be one that only the host has: the root there is the group itself.
            let mut path = path.trim_end_matches('/');
            loop {
                let limit = read(&format!("{root}{path}/{file}"));
                // `max` is no limit.
                let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
                least = least.into_iter().chain(limit).min();
                match path.rfind('/') {
                    Some(at) => path = &path[..at],
                    None => break,
                }
            }
        }
        least
    }

    /// The process's limit of addresses.
    fn of_process() -> Option<u64> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the structure is writable.
        let done = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
        (done == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    }

    fn physical() -> Option<u64> {
        let info = std::fs::read_to_string("/proc/meminfo").ok()?;
        let kib = info
            .lines()
            .find_map(|l| l.strip_prefix("MemTotal:"))?
            .trim()
            .split(' ')
            .next()?;
        kib.parse::<u64>().ok()?.checked_mul(1024)
    }

    pub(super) fn mapping(address: u64, bytes: u64) -> Mapping {
        match std::fs::read("/proc/self/maps") {
            Ok(maps) => of_parts(
                maps.split(|b| *b == b'\n').filter_map(parse),
                address,
                bytes,
            ),
            Err(_) => Mapping::Unknown,
        }
    }

    /// A line `start-end rwxp …`.
    pub(super) fn parse(line: &[u8]) -> Option<(u64, u64, bool, bool)> {
        let mut words = line.split(|b| *b == b' ');
        let range = std::str::from_utf8(words.next()?).ok()?;
        let (start, stop) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let rights = words.next().filter(|r| r.len() >= 2)?;
        Some((
            number(start)?,
            number(stop)?,
            rights[0] == b'r',
            rights[1] == b'w',
        ))
    }
}

#[cfg(windows)]
mod imp {
    use super::{Mapping, of_parts};
    use std::ffi::c_void;

    /// `MEMORYSTATUSEX`
    #[repr(C)]
    #[derive(Default)]
    struct MemoryStatus {
        length: u32,
        load: u32,
        total: u64,
        rest: [u64; 6],
    }

    /// `MEMORY_BASIC_INFORMATION`
    #[repr(C)]
    struct Region {
        base: *mut c_void,
        allocation: *mut c_void,
        allocation_rights: u32,
        bytes: usize,
        state: u32,
        rights: u32,
        kind: u32,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
        fn VirtualQuery(address: *const c_void, region: *mut Region, bytes: usize) -> usize;
    }

    pub(super) fn memory() -> Option<u64> {
        let mut status = MemoryStatus {
            length: size_of::<MemoryStatus>() as u32,
            ..MemoryStatus::default()
        };
        // SAFETY: the structure is writable and says its own length.
        let done = unsafe { GlobalMemoryStatusEx(&raw mut status) };
        (done != 0).then_some(status.total)
    }

    pub(super) fn mapping(address: u64, bytes: u64) -> Mapping {
        let end = address.saturating_add(bytes);
        let mut at = address;
        let regions = std::iter::from_fn(|| {
            let (start, stop, readable, writable) = (at < end).then(|| region(at)).flatten()?;
            at = stop;
            Some((start, stop, readable, writable))
        });
        of_parts(regions, address, bytes)
    }

    /// The region that an address lies in: start, end, whether it can be read and written.
    fn region(address: u64) -> Option<(u64, u64, bool, bool)> {
        /// `MEM_COMMIT`
        const COMMITTED: u32 = 0x1000;
        /// `PAGE_GUARD`
        const GUARD: u32 = 0x100;
        let mut region = Region {
            base: std::ptr::null_mut(),
            allocation: std::ptr::null_mut(),
            allocation_rights: 0,
            bytes: 0,
            state: 0,
            rights: 0,
            kind: 0,
        };
        let at = usize::try_from(address).ok()? as *const c_void;
        // SAFETY: only looks the address up; the structure is writable and as long as said.
        let known = unsafe { VirtualQuery(at, &raw mut region, size_of::<Region>()) };
        let start = region.base as u64;
        let stop = start.checked_add(region.bytes as u64)?;
        if known == 0 || stop <= address {
            return None;
        }
        let usable = region.state == COMMITTED && region.rights & GUARD == 0;
        // PAGE_READWRITE, _WRITECOPY, _EXECUTE_READWRITE, _EXECUTE_WRITECOPY; PAGE_READONLY, _EXECUTE_READ.
        let writable = usable && region.rights & 0xCC != 0;
        let readable = writable || usable && region.rights & 0x22 != 0;
        Some((start, stop, readable, writable))
    }
}

#[cfg(not(any(windows, target_os = "linux")))]
mod imp {
    use super::Mapping;

    pub(super) fn memory() -> Option<u64> {
        None
    }

    pub(super) fn mapping(_address: u64, _bytes: u64) -> Mapping {
        Mapping::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn neighbours_holes_and_rights() {
        let maps = b"1000-3000 rw-p 0 0 0 /a\xff b\n3000-4000 rw-p 0\n4000-5000 r--p 0\n5000-6000 ---p 0\n8000-9000 rwxp 0\n";
        let lines = || maps.split(|b| *b == b'\n').filter_map(imp::parse);
        let of = |address, bytes| of_parts(lines(), address, bytes);
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

    #[cfg(target_os = "linux")]
    #[test]
    fn the_least_limit_of_a_container() {
        let limit = |files: &'static [(&str, &str)]| {
            imp::of_groups(|path| {
                let file = files.iter().find(|file| file.0 == path);
                file.map(|file| file.1.to_string())
            })
        };
        assert_eq!(limit(&[]), None);
        const V2: (&str, &str) = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(
            limit(&[V2, ("/sys/fs/cgroup/a/b/memory.max", "max\n")]),
            None
        );
        let group = [V2, ("/sys/fs/cgroup/a/b/memory.max", "4096\n")];
        assert_eq!(limit(Box::leak(group.into())), Some(4096));
        let above = [
            V2,
            ("/sys/fs/cgroup/a/b/memory.max", "4096\n"),
            ("/sys/fs/cgroup/a/memory.max", "1024\n"),
        ];
        assert_eq!(limit(Box::leak(above.into())), Some(1024));
        // The container's own root, under a path of the host's.
        let root = [V2, ("/sys/fs/cgroup/memory.max", "8192\n")];
        assert_eq!(limit(Box::leak(root.into())), Some(8192));
        let in_root = [("/proc/self/cgroup", "0::/\n"), root[1]];
        assert_eq!(limit(Box::leak(in_root.into())), Some(8192));
        let v1 = [
            (
                "/proc/self/cgroup",
                "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/1\n0::/\n",
            ),
            (
                "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2048\n"),
        ];
        assert_eq!(limit(Box::leak(v1.into())), Some(2048));
    }

    #[cfg(any(windows, target_os = "linux"))]
    #[test]
    fn of_this_process() {
        static CONSTANT: [u8; 3] = *b"abc";
        let own = vec![0u8; 100_000];
        let start = own.as_ptr() as u64;
        assert_eq!(mapping(start, 100_000), Mapping::Writable);
        assert_eq!(mapping(CONSTANT.as_ptr() as u64, 3), Mapping::ReadOnly);
        assert_eq!(mapping(16, 1), Mapping::Inaccessible);
        assert_eq!(mapping(start, 1 << 46), Mapping::Inaccessible);
        assert!(memory().is_some_and(|bytes| bytes > 64 << 20));
    }
}
