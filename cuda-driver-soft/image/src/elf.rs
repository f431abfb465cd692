//! The parts of ELF files of 64 bits that this crate reads and writes.

use crate::bytes::{range, size_at, u16_at, u32_at};

/// First bytes of an ELF file.
pub const ELF_MAGIC: [u8; 4] = [0x7F, b'E', b'L', b'F'];

/// The identification of a little-endian file of 64 bits: magic, class, byte order.
pub(crate) const IDENT: [u8; 6] = *b"\x7fELF\x02\x01";

/// Size of the header in bytes.
pub(crate) const HEADER_BYTES: usize = 64;
/// Size of a section header in bytes.
pub(crate) const SECTION_BYTES: usize = 64;

/// Offsets of the header's fields.
pub(crate) mod header {
    pub(crate) const IDENT_VERSION: usize = 6;
    pub(crate) const TYPE: usize = 16;
    pub(crate) const MACHINE: usize = 18;
    pub(crate) const VERSION: usize = 20;
    pub(crate) const SECTIONS_OFFSET: usize = 40;
    pub(crate) const FLAGS: usize = 48;
    pub(crate) const HEADER_SIZE: usize = 52;
    pub(crate) const SECTION_SIZE: usize = 58;
    pub(crate) const SECTION_COUNT: usize = 60;
    pub(crate) const NAMES_INDEX: usize = 62;
}

/// Offsets of a section header's fields.
pub(crate) mod section {
    pub(crate) const NAME: usize = 0;
    pub(crate) const TYPE: usize = 4;
    pub(crate) const OFFSET: usize = 24;
    pub(crate) const SIZE: usize = 32;
    pub(crate) const LINK: usize = 40;
    pub(crate) const ALIGN: usize = 48;
}

/// `SHT_NOBITS`: a section without bytes in the file, such as `.bss`. Its size is that of its memory.
const NOBITS: u32 = 8;

/// `SHN_XINDEX`: the index of the section names is in the first section header.
const EXTENDED_INDEX: usize = 0xFFFF;

/// Returns the offset of the table of section headers.
pub(crate) fn sections_offset(file: &[u8]) -> Option<usize> {
    size_at(file, header::SECTIONS_OFFSET)
}

/// Returns the contents of a section, given its header.
pub(crate) fn contents<'a>(file: &'a [u8], section_header: &[u8]) -> Option<&'a [u8]> {
    let start = size_at(section_header, section::OFFSET)?;
    range(file, start, size_at(section_header, section::SIZE)?)
}

/// A section of a file.
pub(crate) struct Section<'a> {
    /// The table of section names, from this section's name on.
    names: &'a [u8],
    /// The bytes in the file; empty for a section that has only memory, such as `.bss`.
    pub(crate) contents: &'a [u8],
}

/// Maximum length of a section name in bytes. Longer names are cut off: a damaged name may be as long as the file.
const LONGEST_NAME: usize = 4096;

impl<'a> Section<'a> {
    /// Returns the name.
    pub(crate) fn name(&self) -> &'a [u8] {
        let names = &self.names[..self.names.len().min(LONGEST_NAME)];
        names.split(|byte| *byte == 0).next().unwrap_or(names)
    }

    /// Returns true if this is the name of the section.
    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        let rest = self.names.strip_prefix(name);
        rest.is_some_and(|rest| matches!(rest, [] | [0, ..]))
    }
}

/// Returns the sections of a file, with `None` for a damaged one. The result is `None` if the file is not a
/// little-endian ELF file of 64 bits, or if its table of sections or the table of their names is damaged.
pub(crate) fn sections(file: &[u8]) -> Option<impl Iterator<Item = Option<Section<'_>>>> {
    file.strip_prefix(&IDENT)?;
    let table = sections_offset(file)?;
    let entry_bytes = usize::from(u16_at(file, header::SECTION_SIZE)?);
    let mut count = usize::from(u16_at(file, header::SECTION_COUNT)?);
    let mut names_index = usize::from(u16_at(file, header::NAMES_INDEX)?);
    if entry_bytes < SECTION_BYTES {
        return None;
    }
    let section_header = move |index: usize| {
        let at = table.checked_add(index.checked_mul(entry_bytes)?)?;
        range(file, at, SECTION_BYTES)
    };
    // The first section is unused. Numbers too large for the header are in its fields for the size and the link.
    if count == 0 && table != 0 {
        count = size_at(section_header(0)?, section::SIZE)?;
    }
    if names_index == EXTENDED_INDEX {
        names_index = usize::try_from(u32_at(section_header(0)?, section::LINK)?).ok()?;
    }
    // Without this check, a damaged number could make the caller look for sections past the end for a long time.
    section_header(count.checked_sub(1)?)?;
    let names = contents(file, section_header(names_index)?)?;
    let section = move |index| {
        let section_header = section_header(index)?;
        let name = usize::try_from(u32_at(section_header, section::NAME)?).ok()?;
        Some(Section {
            names: names.get(name..)?,
            contents: match u32_at(section_header, section::TYPE)? {
                NOBITS => &[],
                _ if index == 0 => &[],
                _ => contents(file, section_header)?,
            },
        })
    };
    Some((0..count).map(section))
}
