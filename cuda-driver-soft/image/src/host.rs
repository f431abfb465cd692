//! Host objects and libraries: files of the host's compiler that carry fat binaries in sections of their own.

use super::{FATBIN_MAGIC, fatbin};

/// First bytes of a library of objects.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// Bytes of the header of a member.
const MEMBER: usize = 60;
/// The sections: fat binaries of code that is complete, and of code that is to be linked.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// Bytes of a section header in an ELF file of 64 bits.
const SECTION: usize = 64;

/// The fat binaries that an object, or the objects of a library, carry; `None` if it is neither.
pub fn fat_binaries(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    match file.strip_prefix(ARCHIVE_MAGIC) {
        Some(members) => {
            for member in Members(members) {
                // Tables of symbols and names are no objects.
                let _ = of_object(member, &mut found);
            }
        }
        None => of_object(file, &mut found)?,
    }
    Some(found)
}

/// The contents of the members of a library; a damaged one is the last.
struct Members<'a>(&'a [u8]);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let header = self.0.get(..MEMBER)?;
        let size = std::str::from_utf8(&header[48..58]).ok()?;
        let size: usize = size.trim_end().parse().ok()?;
        let end = MEMBER.checked_add(size)?;
        let contents = self.0.get(MEMBER..end)?;
        // Members begin at even places.
        self.0 = self.0.get(end.next_multiple_of(2)..).unwrap_or(&[]);
        Some(contents)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes).into())
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

/// Adds what an ELF object of 64 bits carries; `None` if it is none.
fn of_object(object: &[u8], found: &mut Vec<Vec<u8>>) -> Option<()> {
    object.strip_prefix(b"\x7fELF\x02\x01")?;
    let (table, entry, count, names) = (
        number(object, 40)?,
        half(object, 58)?,
        half(object, 60)?,
        half(object, 62)?,
    );
    if entry < SECTION {
        return None;
    }
    let section = |index: usize| {
        let at = table.checked_add(index.checked_mul(entry)?)?;
        object.get(at..at.checked_add(SECTION)?)
    };
    let contents = |header: &[u8]| {
        let (start, size) = (number(header, 24)?, number(header, 32)?);
        object.get(start..start.checked_add(size)?)
    };
    let names = contents(section(names)?)?;
    for index in 0..count {
        let header = section(index)?;
        let name = names.get(word(header, 0)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        if SECTIONS.contains(&name) {
            split(contents(header)?, found);
        }
    }
    Some(())
}

/// Fat binaries one after the other, with zeros between them.
fn split(mut section: &[u8], found: &mut Vec<Vec<u8>>) {
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
            8
        };
        section = section.get(length.next_multiple_of(8)..).unwrap_or(&[]);
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

    /// An object with these sections.
    fn object(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut names = b"\0.shstrtab\0".to_vec();
        let mut headers = vec![0; SECTION];
        let mut add = |elf: &mut Vec<u8>, name: usize, content: &[u8]| {
            let mut header = [0; SECTION];
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
        let count = headers.len() / SECTION;
        for (at, value) in [(58, SECTION), (60, count), (62, count - 1)] {
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
        // Damaged ones give nothing, or something, but no crash.
        for cut in 0..all.len() {
            let _ = fat_binaries(&all[..cut]);
            let mut changed = all.clone();
            changed[cut] ^= 0xFF;
            let _ = fat_binaries(&changed);
        }
    }
}
