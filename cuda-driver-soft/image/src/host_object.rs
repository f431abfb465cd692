//! Host objects and libraries, in which compilers embed fat binaries in special sections.

use crate::elf;
use crate::fatbin::{self, FATBIN_MAGIC};

/// First bytes of a library, which is an archive of objects.
pub const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// Size in bytes of the header of a member of a library.
const MEMBER_HEADER_BYTES: usize = 60;
/// The bytes of a member's header that contain its size as a decimal number.
const MEMBER_SIZE: std::ops::Range<usize> = 48..58;
/// The sections with fat binaries: with linked device code, and with relocatable device code.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// Alignment of fat binaries in a section, in bytes.
const FATBIN_ALIGN: usize = 8;

/// Returns the fat binaries of an object, or of all objects of a library; `None` if the file is neither, or is a
/// damaged object.
pub fn fat_binaries(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    match file.strip_prefix(ARCHIVE_MAGIC) {
        Some(members) => {
            for member in Members(members) {
                // Ignores members that are not objects, such as tables of symbols, and the rest of damaged objects.
                let _ = of_object(member, &mut found);
            }
        }
        None => of_object(file, &mut found)?,
    }
    Some(found)
}

/// The contents of the members of a library, up to the first damaged one.
struct Members<'a>(&'a [u8]);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let header = self.0.get(..MEMBER_HEADER_BYTES)?;
        let size = std::str::from_utf8(&header[MEMBER_SIZE]).ok()?;
        let size: usize = size.trim_end().parse().ok()?;
        let end = MEMBER_HEADER_BYTES.checked_add(size)?;
        let contents = self.0.get(MEMBER_HEADER_BYTES..end)?;
        // Members begin at even offsets.
        self.0 = self.0.get(end.next_multiple_of(2)..).unwrap_or(&[]);
        Some(contents)
    }
}

/// Adds the fat binaries of an object; `None` if it is not an ELF file of 64 bits, or is damaged.
fn of_object(object: &[u8], found: &mut Vec<Vec<u8>>) -> Option<()> {
    // Sections do not overlap, so together they are no longer than the file. Without this limit, a damaged file could
    // have many sections with the same contents, and their copies would need too much memory.
    let mut left = object.len();
    for section in elf::sections(object)? {
        let section = section?;
        if SECTIONS.iter().any(|name| section.is_named(name)) {
            left = left.checked_sub(section.contents.len())?;
            of_section(section.contents, found);
        }
    }
    Some(())
}

/// Adds the fat binaries of a section, between which there may be padding. Stops at one that is cut off.
fn of_section(mut section: &[u8], found: &mut Vec<Vec<u8>>) {
    while let Some(header) = section.first_chunk::<{ fatbin::HEADER }>() {
        let length = if header[..4] == FATBIN_MAGIC {
            let length = fatbin::length(header);
            let binary = length.and_then(|length| section.get(..length));
            let Some(binary) = binary.filter(|binary| !binary.is_empty()) else {
                return;
            };
            found.push(binary.to_vec());
            binary.len()
        } else {
            FATBIN_ALIGN
        };
        let next = length.next_multiple_of(FATBIN_ALIGN);
        section = section.get(next..).unwrap_or(&[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(content: &[u8]) -> Vec<u8> {
        let mut bytes = FATBIN_MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content);
        bytes
    }

    /// Returns an object with these sections.
    fn object(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut elf = vec![0; elf::HEADER_BYTES];
        elf[..6].copy_from_slice(&elf::IDENT);
        let mut names = b"\0.shstrtab\0".to_vec();
        let mut headers = vec![0; elf::SECTION_BYTES];
        let mut add = |elf: &mut Vec<u8>, name: usize, content: &[u8]| {
            let mut header = [0; elf::SECTION_BYTES];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(elf.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            headers.extend(header);
            elf.extend(content);
        };
        for (name, content) in sections {
            add(&mut elf, names.len(), content);
            names.extend(name.as_bytes());
            names.push(0);
        }
        add(&mut elf, 1, &names);
        let table = elf.len() as u64;
        elf[40..48].copy_from_slice(&table.to_le_bytes());
        let count = headers.len() / elf::SECTION_BYTES;
        for (at, value) in [(58, elf::SECTION_BYTES), (60, count), (62, count - 1)] {
            elf[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        elf.extend(headers);
        elf
    }

    fn library(objects: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = ARCHIVE_MAGIC.to_vec();
        for object in objects {
            bytes.extend(format!("{:48}{:<10}`\n", "name.o/", object.len()).bytes());
            bytes.extend(object);
            if object.len() % 2 == 1 {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    #[test]
    fn sections_cannot_multiply_their_contents() {
        let mut content = binary(&[7; 1 << 16]);
        let sections = [(".nv_fatbin", &content[..]), ("__nv_relfatbin", b"")];
        let mut elf = object(&sections);
        // 60,000 headers of the same section.
        let table = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
        let header = elf[table + elf::SECTION_BYTES..][..elf::SECTION_BYTES].to_vec();
        let names = elf[table + 3 * elf::SECTION_BYTES..].to_vec();
        elf.truncate(table);
        elf.extend(names);
        (0..60_000).for_each(|_| elf.extend(&header));
        elf[60..62].copy_from_slice(&60_001u16.to_le_bytes());
        elf[62..64].copy_from_slice(&0u16.to_le_bytes());
        assert_eq!(fat_binaries(&elf), None);
        // 60,000 sections whose names have no NUL.
        content.fill(b'x');
        let mut elf = object(&[(".text", &content)]);
        let table = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
        let header = elf[table + elf::SECTION_BYTES..][..elf::SECTION_BYTES].to_vec();
        elf.truncate(table);
        (0..60_000).for_each(|_| elf.extend(&header));
        elf[60..62].copy_from_slice(&60_000u16.to_le_bytes());
        elf[62..64].copy_from_slice(&0u16.to_le_bytes());
        assert_eq!(fat_binaries(&elf), Some(vec![]));
    }

    /// A file with 65,280 sections or more has their number and the index of their names in the first section header.
    #[test]
    fn sections_may_be_numbered_in_the_first_header() {
        let content = binary(b"one");
        let mut elf = object(&[(".text", b"x"), (".nv_fatbin", &content)]);
        let table = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
        elf[table + 32..table + 40].copy_from_slice(&4u64.to_le_bytes());
        elf[table + 40..table + 44].copy_from_slice(&3u32.to_le_bytes());
        elf[60..62].copy_from_slice(&0u16.to_le_bytes());
        elf[62..64].copy_from_slice(&0xFFFFu16.to_le_bytes());
        assert_eq!(fat_binaries(&elf), Some(vec![content]));
        // The number is larger than the file.
        elf[table + 32..table + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(fat_binaries(&elf), None);
        // No table of sections.
        elf[40..48].fill(0);
        assert_eq!(fat_binaries(&elf), None);
    }

    #[test]
    fn variables_without_values_may_be_larger_than_the_file() {
        let content = binary(b"one");
        let mut elf = object(&[(".bss", b""), (".nv_fatbin", &content)]);
        let table = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
        let bss = table + elf::SECTION_BYTES;
        elf[bss + 4..bss + 8].copy_from_slice(&8u32.to_le_bytes());
        elf[bss + 32..bss + 40].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(fat_binaries(&elf), Some(vec![content]));
    }

    #[test]
    fn fat_binaries_of_objects_and_libraries() {
        let (a, b, c) = (binary(b"one"), binary(b"second"), binary(b""));
        let mut two = a.clone();
        two.resize(24, 0);
        two.extend(&b);
        let first = object(&[(".text", b"x"), (".nv_fatbin", &two)]);
        let second = object(&[("__nv_relfatbin", &c)]);
        assert_eq!(fat_binaries(&first), Some(vec![a.clone(), b.clone()]));
        assert_eq!(fat_binaries(&object(&[(".text", b"x")])), Some(vec![]));
        let all = library(&[b"names".to_vec(), first, second]);
        assert_eq!(fat_binaries(&all), Some(vec![a, b, c]));
        assert_eq!(fat_binaries(b"text"), None);
        // Damaged files do not cause panics.
        for cut in 0..all.len() {
            let _ = fat_binaries(&all[..cut]);
            let mut changed = all.clone();
            changed[cut] ^= 0xFF;
            let _ = fat_binaries(&changed);
        }
    }
}
