//! Linked images, which `cuLinkComplete` returns.
//!
//! Machine code cannot run here. A linked image is therefore an ELF file for the machine `EM_CUDA` with a section that
//! holds the PTX sources. Loading it compiles and links them again.

use crate::bytes::{range, size_at, u32_at};
use crate::elf::{HEADER_BYTES, IDENT, SECTION_BYTES, contents, header, section, sections_offset};

/// Offset, in the unused bytes of the ELF identification, of the mark of this driver's images.
const MARK_AT: usize = 9;
const MARK: &[u8; 4] = b"soft";
/// `e_machine` of CUDA.
const EM_CUDA: u16 = 190;
/// `e_type` of an executable file.
const ET_EXEC: u16 = 2;
/// `EV_CURRENT`, the only version of ELF.
const VERSION: u8 = 1;

/// The names of the sections, each ending with a NUL byte.
const NAMES: &[u8] = b"\0.soft.ptx\0.shstrtab\0";
/// Offset of `.soft.ptx` in [`NAMES`].
const SOURCES_NAME: u32 = 1;
/// Offset of `.shstrtab` in [`NAMES`].
const NAMES_NAME: u32 = 11;
/// Index of the section with the sources.
const SOURCES_INDEX: usize = 1;
/// Index of the section with the names.
const NAMES_INDEX: u16 = 2;
/// Number of sections: an empty one, the sources, the names.
const SECTIONS: u16 = 3;
/// `SHT_PROGBITS`: a section whose contents only the program interprets.
const PROGBITS: u32 = 1;
/// `SHT_STRTAB`: a table of names.
const STRTAB: u32 = 3;

/// Size in bytes of the length before each part of a source.
const LENGTH_BYTES: usize = 8;

/// A source of a linked image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The name of the input.
    pub name: String,
    /// The PTX text of the source.
    pub text: Vec<u8>,
    /// Register limit from the options that the source was compiled with. It applies to kernels without a directive
    /// that limits registers or threads.
    pub most_registers: Option<u32>,
}

/// The contents of a linked image.
#[derive(Debug, PartialEq, Eq)]
pub struct LinkedImage {
    /// The PTX modules that were linked.
    pub sources: Vec<Source>,
    /// The architecture for which the image was linked; `None` for any.
    pub sm: Option<u32>,
}

/// Returns an image of these sources.
pub fn write(sources: &[Source], sm: Option<u32>) -> Vec<u8> {
    // A source has three parts: name, text and register limit. The length of each precedes it.
    let mut payload = Vec::new();
    for source in sources {
        let limit = source.most_registers.unwrap_or(0).to_le_bytes();
        for part in [source.name.as_bytes(), &source.text, &limit] {
            payload.extend((part.len() as u64).to_le_bytes());
            payload.extend(part);
        }
    }
    let names_at = HEADER_BYTES + payload.len();
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
    let mut elf = vec![0; HEADER_BYTES];
    let mut set = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, &IDENT);
    set(header::IDENT_VERSION, &[VERSION]);
    set(MARK_AT, MARK);
    set(header::TYPE, &ET_EXEC.to_le_bytes());
    set(header::MACHINE, &EM_CUDA.to_le_bytes());
    set(header::VERSION, &u32::from(VERSION).to_le_bytes());
    set(header::SECTIONS_OFFSET, &(sections_at as u64).to_le_bytes());
    // The meaning of the flags depends on `e_machine`. In linked images they are the architecture, or 0 for any.
    set(header::FLAGS, &sm.unwrap_or(0).to_le_bytes());
    set(header::HEADER_SIZE, &(HEADER_BYTES as u16).to_le_bytes());
    set(header::SECTION_SIZE, &(SECTION_BYTES as u16).to_le_bytes());
    set(header::SECTION_COUNT, &SECTIONS.to_le_bytes());
    set(header::NAMES_INDEX, &NAMES_INDEX.to_le_bytes());
    elf.extend(&payload);
    elf.extend(NAMES);
    elf.resize(sections_at, 0);
    let section_header = |name: u32, kind: u32, at: usize, size: usize| {
        let mut bytes = [0; SECTION_BYTES];
        let mut set = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        set(section::NAME, &name.to_le_bytes());
        set(section::TYPE, &kind.to_le_bytes());
        set(section::OFFSET, &(at as u64).to_le_bytes());
        set(section::SIZE, &(size as u64).to_le_bytes());
        set(section::ALIGN, &1u64.to_le_bytes());
        bytes
    };
    elf.extend([0; SECTION_BYTES]);
    elf.extend(section_header(SOURCES_NAME, PROGBITS, HEADER_BYTES, payload.len()));
    elf.extend(section_header(NAMES_NAME, STRTAB, names_at, NAMES.len()));
    elf
}

/// Returns true if an ELF file is for CUDA devices.
pub fn is_cuda(elf: &[u8]) -> bool {
    range(elf, header::MACHINE, 2) == Some(&EM_CUDA.to_le_bytes())
}

/// Returns true if [`write()`] made the ELF file.
fn is_ours(elf: &[u8]) -> bool {
    range(elf, MARK_AT, MARK.len()) == Some(MARK) && is_cuda(elf)
}

/// Returns the length of a linked image from its header; `None` for any other ELF file.
pub fn length(header: &[u8]) -> Option<usize> {
    // The table of sections is at the end.
    is_ours(header)
        .then(|| sections_offset(header)?.checked_add(usize::from(SECTIONS) * SECTION_BYTES))
        .flatten()
}

/// Returns the contents of a linked image; `None` for any other ELF file, and for a damaged one.
pub fn read(elf: &[u8]) -> Option<LinkedImage> {
    if !is_ours(elf) {
        return None;
    }
    let sm = u32_at(elf, header::FLAGS)?;
    Some(LinkedImage {
        sources: read_sources(elf)?,
        sm: (sm != 0).then_some(sm),
    })
}

fn read_sources(elf: &[u8]) -> Option<Vec<Source>> {
    let at = sections_offset(elf)?.checked_add(SOURCES_INDEX * SECTION_BYTES)?;
    let mut rest = contents(elf, elf.get(at..)?)?;
    let mut sources = Vec::new();
    while !rest.is_empty() {
        let mut part = || {
            let length = size_at(rest, 0)?;
            let part = range(rest, LENGTH_BYTES, length)?.to_vec();
            rest = &rest[LENGTH_BYTES + length..];
            Some(part)
        };
        let (name, text) = (part()?, part()?);
        let limit = u32_at(&part()?, 0)?;
        sources.push(Source {
            name: String::from_utf8_lossy(&name).into_owned(),
            text,
            most_registers: (limit != 0).then_some(limit),
        });
    }
    Some(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_images_are_read() {
        let sources = [
            Source {
                name: "a.ptx".to_owned(),
                text: b".version 1".to_vec(),
                most_registers: Some(32),
            },
            Source::default(),
        ];
        for sources in [&sources[..], &sources[..1], &[]] {
            let image = write(sources, Some(80));
            assert_eq!(length(&image[..HEADER_BYTES]), Some(image.len()));
            let linked = LinkedImage {
                sources: sources.to_vec(),
                sm: Some(80),
            };
            assert_eq!(read(&image), Some(linked));
            assert_eq!(read(&write(sources, None)).and_then(|l| l.sm), None);
            // Damaged images do not cause panics.
            for cut in 0..image.len() {
                let _ = (length(&image[..cut]), read(&image[..cut]));
                let mut changed = image.clone();
                changed[cut] ^= 0xFF;
                let _ = (length(&changed), read(&changed));
            }
        }
    }
}
