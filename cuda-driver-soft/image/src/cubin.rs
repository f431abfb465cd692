//! Linked images. Machine code cannot run here, so what the linker gives is an ELF file for machine 190 (CUDA) with one
//! section of our own that holds the PTX sources; loading it compiles and links them again.

/// Bytes of the ELF header and of a section header.
const HEADER: usize = 64;
/// Where in the header's unused bytes the file says that it is ours.
const MARK_AT: usize = 9;
const MARK: &[u8; 4] = b"soft";
/// `e_machine` of CUDA.
const MACHINE: u16 = 190;

/// A source in a linked image: its name and its PTX text.
pub type Source = (String, Vec<u8>);

/// What a linked image holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Linked {
    /// The PTX modules that the image was linked from.
    pub sources: Vec<Source>,
    /// The architecture that it was linked for, where that was asked for.
    pub sm: Option<u32>,
}

/// Where an ELF header has the flags of the machine: here the architecture, or 0.
const FLAGS_AT: usize = 48;

/// Makes an image of these sources.
pub fn write(sources: &[Source], sm: Option<u32>) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.soft.ptx\0.shstrtab\0";
    let mut payload = Vec::new();
    for (name, text) in sources {
        for part in [name.as_bytes(), text] {
            payload.extend((part.len() as u64).to_le_bytes());
            payload.extend(part);
        }
    }
    let names_at = HEADER + payload.len();
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
    let mut elf = vec![0; HEADER];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[MARK_AT..MARK_AT + MARK.len()].copy_from_slice(MARK);
    let mut set = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    set(16, &2u16.to_le_bytes()); // an executable file
    set(18, &MACHINE.to_le_bytes());
    set(20, &1u32.to_le_bytes());
    set(40, &(sections_at as u64).to_le_bytes());
    set(FLAGS_AT, &sm.unwrap_or(0).to_le_bytes());
    set(52, &(HEADER as u16).to_le_bytes());
    set(58, &(HEADER as u16).to_le_bytes());
    set(60, &3u16.to_le_bytes());
    set(62, &2u16.to_le_bytes());
    elf.extend(&payload);
    elf.extend(NAMES);
    elf.resize(sections_at, 0);
    let section = |name: u32, kind: u32, at: usize, size: usize| {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        header[48..56].copy_from_slice(&1u64.to_le_bytes());
        header
    };
    elf.extend([0; HEADER]);
    elf.extend(section(1, 1, HEADER, payload.len()));
    elf.extend(section(11, 3, names_at, NAMES.len()));
    elf
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

/// Whether an ELF file is for the machine that CUDA devices are.
pub fn is_cuda(elf: &[u8]) -> bool {
    elf.get(18..20) == Some(&MACHINE.to_le_bytes())
}

fn is_ours(elf: &[u8]) -> bool {
    elf.get(MARK_AT..MARK_AT + MARK.len()) == Some(MARK) && is_cuda(elf)
}

/// Length of an image of ours, from its header; `None` for any other ELF file.
pub fn length(header: &[u8]) -> Option<usize> {
    // The section table, three entries, is its end.
    is_ours(header)
        .then(|| number(header, 40)?.checked_add(3 * HEADER))
        .flatten()
}

/// What an image of ours holds; `None` for any other ELF file, and for a damaged one.
pub fn read(elf: &[u8]) -> Option<Linked> {
    if !is_ours(elf) {
        return None;
    }
    let sm = u32::from_le_bytes(*elf.get(FLAGS_AT..)?.first_chunk()?);
    let sources = read_sources(elf)?;
    Some(Linked {
        sources,
        sm: (sm != 0).then_some(sm),
    })
}

fn read_sources(elf: &[u8]) -> Option<Vec<Source>> {
    let section = number(elf, 40)?.checked_add(HEADER)?;
    let (start, size) = (
        number(elf, section.checked_add(24)?)?,
        number(elf, section.checked_add(32)?)?,
    );
    let mut rest = elf.get(start..start.checked_add(size)?)?;
    let mut part = || {
        let length = number(rest, 0)?;
        let part = rest.get(8..length.checked_add(8)?)?.to_vec();
        rest = &rest[8 + length..];
        Some((part, rest.is_empty()))
    };
    let mut sources = Vec::new();
    if size == 0 {
        return Some(sources);
    }
    loop {
        let (name, _) = part()?;
        let (text, end) = part()?;
        sources.push((String::from_utf8_lossy(&name).into_owned(), text));
        if end {
            return Some(sources);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let sources = [
            ("a.ptx".to_owned(), b".version 1".to_vec()),
            (String::new(), Vec::new()),
        ];
        for sources in [&sources[..], &sources[..1], &[]] {
            let image = write(sources, Some(80));
            assert_eq!(length(&image[..HEADER]), Some(image.len()));
            let linked = Linked {
                sources: sources.to_vec(),
                sm: Some(80),
            };
            assert_eq!(read(&image), Some(linked));
            assert_eq!(read(&write(sources, None)).and_then(|l| l.sm), None);
            // Damaged images give nothing, or something, but no crash.
            for cut in 0..image.len() {
                let _ = (length(&image[..cut]), read(&image[..cut]));
                let mut changed = image.clone();
                changed[cut] ^= 0xFF;
                let _ = (length(&changed), read(&changed));
            }
        }
    }
}
