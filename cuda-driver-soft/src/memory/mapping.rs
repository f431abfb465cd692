//! What the program has at an address of the host, as the operating system knows it.

/// How a range of addresses is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// A byte of it cannot be read.
    Inaccessible,
    /// All can be read, a byte of it cannot be written.
    ReadOnly,
    /// All can be read and written.
    Writable,
    /// The system does not say.
    Unknown,
}

/// How the bytes from `address` on are mapped at this moment.
pub(crate) fn of(address: u64, bytes: u64) -> Mapping {
    let Some(maps) = table() else {
        return Mapping::Unknown;
    };
    in_table(&maps, address, bytes)
}

#[cfg(target_os = "linux")]
fn table() -> Option<Vec<u8>> {
    std::fs::read("/proc/self/maps").ok()
}

#[cfg(not(target_os = "linux"))]
fn table() -> Option<Vec<u8>> {
    None
}

/// Lines `start-end rwxp …`, with ascending addresses.
fn in_table(maps: &[u8], address: u64, bytes: u64) -> Mapping {
    let mut at = address;
    let end = address.saturating_add(bytes);
    let mut writable = true;
    for line in maps.split(|b| *b == b'\n') {
        let Some((start, stop, rights)) = parse(line) else {
            continue;
        };
        if stop <= at {
            continue;
        }
        if at >= end || start > at {
            break;
        }
        if rights[0] != b'r' {
            return Mapping::Inaccessible;
        }
        writable &= rights[1] == b'w';
        at = stop;
    }
    match (at >= end, writable) {
        (false, _) => Mapping::Inaccessible,
        (true, false) => Mapping::ReadOnly,
        (true, true) => Mapping::Writable,
    }
}

fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.split(|b| *b == b' ');
    let range = std::str::from_utf8(words.next()?).ok()?;
    let (start, stop) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let rights = words.next().filter(|r| r.len() >= 2)?;
    Some((number(start)?, number(stop)?, rights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_holes_and_rights() {
        let maps = b"1000-3000 rw-p 0 0 0 /a\xff b\n3000-4000 rw-p 0\n4000-5000 r--p 0\n5000-6000 ---p 0\n8000-9000 rwxp 0\n";
        let of = |address, bytes| in_table(maps, address, bytes);
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
    fn of_this_process() {
        static CONSTANT: [u8; 3] = *b"abc";
        let own = vec![0u8; 100_000];
        assert_eq!(of(own.as_ptr() as u64, 100_000), Mapping::Writable);
        assert_eq!(of(CONSTANT.as_ptr() as u64, 3), Mapping::ReadOnly);
        assert_eq!(of(16, 1), Mapping::Inaccessible);
        assert_eq!(of(own.as_ptr() as u64, 1 << 46), Mapping::Inaccessible);
    }
}
