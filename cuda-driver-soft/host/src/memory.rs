//! The amount of memory that the process can have.

use std::sync::OnceLock;

/// Returns the number of bytes of memory that the process can have: the machine's memory, or less in a container or
/// under a limit of the process. Returns `None` if the system does not report it. The number is read once.
pub fn memory() -> Option<u64> {
    static MEMORY: OnceLock<Option<u64>> = OnceLock::new();
    *MEMORY.get_or_init(|| platform::memory().filter(|&bytes| bytes > 0))
}

#[cfg(target_os = "linux")]
mod platform {
    pub(super) fn memory() -> Option<u64> {
        let limits = [
            of_machine(),
            of_groups(|path| std::fs::read_to_string(path).ok()),
            of_process(),
        ];
        limits.into_iter().flatten().min()
    }

    /// Returns the smallest memory limit of the process's control groups of both versions, and of the groups that
    /// contain them. `read` returns the text of a file.
    pub(super) fn of_groups(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let groups = read("/proc/self/cgroup").unwrap_or_default();
        let mut smallest = None;
        for line in groups.lines() {
            // `0::/path` is a group of version 2, `4:cpu,memory:/path` one of version 1.
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
            // In a container, the path may exist only on the host. The root is then the container's own group.
            let mut path = path.trim_end_matches('/');
            loop {
                let limit = read(&format!("{root}{path}/{file}"));
                // Without a limit, `memory.max` contains `max`, which is not a number.
                let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
                smallest = smallest.into_iter().chain(limit).min();
                match path.rfind('/') {
                    Some(at) => path = &path[..at],
                    None => break,
                }
            }
        }
        smallest
    }

    /// Returns the limit of the process's address space.
    fn of_process() -> Option<u64> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: getrlimit only writes the structure, which is local.
        let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
        (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    }

    fn of_machine() -> Option<u64> {
        let info = std::fs::read_to_string("/proc/meminfo").ok()?;
        let kib = info
            .lines()
            .find_map(|l| l.strip_prefix("MemTotal:"))?
            .trim()
            .split(' ')
            .next()?;
        kib.parse::<u64>().ok()?.checked_mul(1024)
    }
}

#[cfg(windows)]
mod platform {
    /// `MEMORYSTATUSEX`
    #[repr(C)]
    #[derive(Default)]
    struct MemoryStatus {
        length: u32,
        load: u32,
        total: u64,
        rest: [u64; 6],
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
    }

    pub(super) fn memory() -> Option<u64> {
        let mut status = MemoryStatus {
            length: size_of::<MemoryStatus>() as u32,
            ..MemoryStatus::default()
        };
        // SAFETY: the function only writes the structure, which is local, has the documented layout and holds its
        // length.
        let succeeded = unsafe { GlobalMemoryStatusEx(&raw mut status) } != 0;
        succeeded.then_some(status.total)
    }
}

#[cfg(not(any(windows, target_os = "linux")))]
mod platform {
    pub(super) fn memory() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn the_smallest_limit_of_a_container() {
        let limit = |files: &[(&str, &str)]| {
            super::platform::of_groups(|path| {
                let file = files.iter().find(|file| file.0 == path);
                file.map(|file| file.1.to_string())
            })
        };
        assert_eq!(limit(&[]), None);
        const V2: (&str, &str) = ("/proc/self/cgroup", "0::/a/b\n");
        let unlimited = ("/sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(&[V2, unlimited]), None);
        let group = ("/sys/fs/cgroup/a/b/memory.max", "4096\n");
        assert_eq!(limit(&[V2, group]), Some(4096));
        let outer = ("/sys/fs/cgroup/a/memory.max", "1024\n");
        assert_eq!(limit(&[V2, group, outer]), Some(1024));
        // In a container, the path may exist only on the host. The root is then the container's own group.
        let root = ("/sys/fs/cgroup/memory.max", "8192\n");
        assert_eq!(limit(&[V2, root]), Some(8192));
        let in_root = ("/proc/self/cgroup", "0::/\n");
        assert_eq!(limit(&[in_root, root]), Some(8192));
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
        assert_eq!(limit(&v1), Some(2048));
    }

    #[cfg(any(windows, target_os = "linux"))]
    #[test]
    fn of_this_machine() {
        assert!(super::memory().is_some_and(|bytes| bytes > 64 << 20));
    }
}
