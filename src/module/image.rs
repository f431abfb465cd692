//! Images in memory: whether what their headers say is there.
//!
//! The driver is given an address and no length, and reads as far as the headers tell it to.

use std::ffi::CString;

/// What an image is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A cubin or a fat binary that is whole.
    Binary,
    /// Anything else is text to the driver, up to its zero byte.
    Text(CString),
}

/// The first bytes of a fat binary.
const FAT_BINARY: u32 = 0xba55_ed50;
/// The first bytes of the record that points to a fat binary in a C program.
const FAT_BINARY_WRAPPER: u32 = 0x4662_43b1;

/// What an image is, if it is whole.
pub(super) fn check(image: &[u8]) -> Result<Kind, String> {
    if image.starts_with(b"\x7fELF") {
        check_elf(image)?;
        return Ok(Kind::Binary);
    }
    match u32_at(image, 0) {
        Some(FAT_BINARY) => {
            check_fat_binary(image)?;
            return Ok(Kind::Binary);
        }
        Some(FAT_BINARY_WRAPPER) => {
            return Err(
                "this is the record that points to a fat binary; pass the fat binary itself"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let end = image
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(image.len());
    text(&image[..end]).map(Kind::Text)
}

/// Text for the driver. It would take other content by its first bytes for an image, and read on as far as that says.
pub(super) fn text(text: &[u8]) -> Result<CString, String> {
    if let Some(at) = text
        .iter()
        .position(|&byte| byte.is_ascii_control() && !byte.is_ascii_whitespace() && byte != 0x0b)
    {
        return Err(format!(
            "this is no text, which PTX is: byte {at} is {:#04x}",
            text[at]
        ));
    }
    CString::new(text).map_err(|error| error.to_string())
}

/// A header, and entries one after another: each a header of its own, which says how long it is and how much follows.
fn check_fat_binary(image: &[u8]) -> Result<(), String> {
    const HEADER: u16 = 16;
    let cut = "the fat binary ends inside its header";
    let header = u16_at(image, 6).ok_or(cut)?;
    let size = u64_at(image, 8).ok_or(cut)?;
    let whole = size
        .checked_add(u64::from(header))
        .ok_or("the fat binary's header is not possible")?;
    inside(image, 0, whole, "the fat binary")?;
    if header < HEADER {
        return Err(format!("the fat binary's header has {header} bytes"));
    }
    // Both lie inside the image, so they are places in it.
    let (mut at, end) = (usize::from(header), place(whole)?);
    let mut index = 0;
    while at < end {
        let length = check_entry(&image[at..end])
            .map_err(|error| format!("the fat binary's entry {index} {error}"))?;
        at += length;
        index += 1;
    }
    Ok(())
}

/// Checks the entry of a fat binary at the start of `rest`, and gives its length, which is not 0.
fn check_entry(rest: &[u8]) -> Result<usize, String> {
    const PTX: u16 = 1;
    /// The fields that every kind has.
    const HEADER: u32 = 64;
    /// What an entry of PTX has behind them, and says where: without it a driver crashes.
    const OPTIONS: u32 = 8;
    /// The flags that say how the content is compressed.
    const COMPRESSED: u64 = 0xf000;
    /// An entry of several, compressed together; so many bytes further come the headers of its parts.
    const SEVERAL: (u16, u64) = (256, 72);
    const PART: u64 = 80;
    let cut = "ends inside its header";
    let kind = u16_at(rest, 0).ok_or(cut)?;
    let header = u32_at(rest, 4).ok_or(cut)?;
    let padded = u64_at(rest, 8).ok_or(cut)?;
    let used = u32_at(rest, 16).ok_or(cut)?;
    if header < HEADER {
        return Err(format!("has a header of {header} bytes"));
    }
    let end = u64::from(header).checked_add(padded);
    let Some(end) = end.filter(|&end| end <= rest.len() as u64) else {
        return Err(format!(
            "is said to have {header} and {padded} bytes, and {} are left",
            rest.len()
        ));
    };
    if u64::from(used) > padded {
        return Err(format!("is said to use {used} bytes of {padded}"));
    }
    // As long as `rest` at most.
    let (header, end) = (header as usize, place(end)?);
    if kind == PTX {
        let options = u32_at(rest, 20).ok_or(cut)?;
        if options < HEADER || u64::from(options) + u64::from(OPTIONS) > header as u64 {
            return Err(format!(
                "has its options at byte {options} of a header of {header}"
            ));
        }
    }
    if kind == SEVERAL.0 {
        let parts = u32_at(&rest[..header], 64).ok_or(cut)?;
        if SEVERAL.1 + u64::from(parts) * PART > header as u64 {
            return Err(format!(
                "is said to have {parts} parts, and its header has {header} bytes"
            ));
        }
    }
    let payload = &rest[header..end];
    if kind == PTX && u64_at(rest, 40).ok_or(cut)? & COMPRESSED == 0 && !payload.contains(&0) {
        return Err("is PTX without a zero byte at its end, which a driver looks for".to_owned());
    }
    // One that is compressed begins otherwise.
    if payload.starts_with(b"\x7fELF") {
        check_elf(payload).map_err(|error| format!("is a cubin: {error}"))?;
    }
    Ok(end)
}

fn check_elf(image: &[u8]) -> Result<(), String> {
    const SECTION_WITHOUT_BYTES: u32 = 8;
    let cut = || "the cubin ends inside its header".to_owned();
    if image.get(4) != Some(&2) || image.get(5) != Some(&1) {
        return Err("the cubin is no 64-bit little-endian ELF file".to_owned());
    }
    let word = |at| u64_at(image, at).ok_or_else(cut);
    let half = |at| u16_at(image, at).ok_or_else(cut).map(u64::from);
    let (segments, sections) = (word(0x20)?, word(0x28)?);
    let (segment_size, segment_count) = (half(0x36)?, half(0x38)?);
    let (section_size, section_count) = (half(0x3a)?, half(0x3c)?);
    // ELF's way to say that the count does not fit here: it would be in the first section, which is not looked at.
    if segment_count == 0xffff || (section_count == 0 && sections != 0) {
        return Err("the cubin has more segments or sections than are checked here".to_owned());
    }
    inside(
        image,
        segments,
        segment_size * segment_count,
        "the cubin's segment table",
    )?;
    inside(
        image,
        sections,
        section_size * section_count,
        "the cubin's section table",
    )?;
    if (segment_count > 0 && segment_size < 0x38) || (section_count > 0 && section_size < 0x40) {
        return Err("the cubin's tables have entries that are too small".to_owned());
    }
    for index in 0..segment_count {
        let at = place(segments + index * segment_size)?;
        inside(
            image,
            word(at + 0x08)?,
            word(at + 0x20)?,
            &format!("the cubin's segment {index}"),
        )?;
    }
    let mut found = Vec::new();
    for index in 0..section_count {
        let at = place(sections + index * section_size)?;
        let field = |offset| u32_at(image, at + offset).ok_or_else(cut);
        let (kind, start, size) = (field(0x04)?, word(at + 0x18)?, word(at + 0x20)?);
        let mut content: &[u8] = &[];
        if kind != SECTION_WITHOUT_BYTES {
            inside(image, start, size, &format!("the cubin's section {index}"))?;
            let start = place(start)?;
            content = &image[start..start + place(size)?];
        }
        found.push(Section {
            name: field(0x00)?,
            kind,
            link: field(0x28)?,
            content,
        });
    }
    if found.is_empty() {
        return Ok(());
    }
    check_names(&found, u16_at(image, 0x3e).ok_or_else(cut)?)
}

/// A section of a cubin.
struct Section<'a> {
    /// Where its name begins in the section of names.
    name: u32,
    kind: u32,
    /// For symbols, the section of their names.
    link: u32,
    content: &'a [u8],
}

/// Names are places in tables of texts, which the driver reads as far as the next zero byte.
fn check_names(sections: &[Section<'_>], names: u16) -> Result<(), String> {
    const SYMBOLS: u32 = 2;
    const SYMBOL: usize = 24;
    let table = |index: usize, what: &str| match sections.get(index) {
        Some(section) if section.content.last().is_none_or(|&last| last == 0) => {
            Ok(section.content)
        }
        Some(_) => Err(format!("the names of the cubin's {what} do not end")),
        None => Err(format!(
            "the cubin has no section {index} for the names of its {what}"
        )),
    };
    let is_name = |name: u32, table: &[u8]| name == 0 || (name as usize) < table.len();
    let names = table(usize::from(names), "sections")?;
    for (index, section) in sections.iter().enumerate() {
        if !is_name(section.name, names) {
            return Err(format!(
                "the name of the cubin's section {index} is not there"
            ));
        }
        if section.kind == SYMBOLS {
            let names = table(section.link as usize, "symbols")?;
            for (number, symbol) in section.content.chunks_exact(SYMBOL).enumerate() {
                if !u32_at(symbol, 0).is_some_and(|name| is_name(name, names)) {
                    return Err(format!(
                        "the name of the cubin's symbol {number} is not there"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn place(at: u64) -> Result<usize, String> {
    usize::try_from(at).map_err(|_| "a header in the image is not possible".to_owned())
}

fn inside(image: &[u8], start: u64, size: u64, what: &str) -> Result<(), String> {
    let end = start
        .checked_add(size)
        .ok_or_else(|| format!("{what} is not possible"))?;
    if end > image.len() as u64 {
        return Err(format!(
            "{what} ends at byte {end}, and the image has {}",
            image.len()
        ));
    }
    Ok(())
}

fn u16_at(image: &[u8], at: usize) -> Option<u16> {
    let bytes = image.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(image: &[u8], at: usize) -> Option<u32> {
    let bytes = image.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    let bytes = image.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_zero_byte() {
        for image in [
            &b".version 6.4\n"[..],
            b".version 6.4\n\0",
            b".version 6.4\n\0\x01rest",
        ] {
            match check(image) {
                Ok(Kind::Text(text)) => assert_eq!(text.to_bytes(), b".version 6.4\n"),
                other => panic!("{other:?}"),
            }
        }
        assert!(text(b"\x7fELF\x02\x01").is_err());
        assert!(text(b"one\0two").is_err());
        // Letters beyond ASCII are the compiler's to refuse.
        assert!(matches!(check("// é".as_bytes()), Ok(Kind::Text(_))));
        assert!(matches!(check(b""), Ok(Kind::Text(_))));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        // The head of a format that is not known here, whose first zero byte is part of it.
        assert!(check(b"\x7fTileIR\0\x0d\x01").is_err());
        let error = check(b"BC\xc0\xde\x01\x02\x03\x04").unwrap_err();
        assert!(error.contains("byte 4 is 0x01"), "{error}");
        let wrapper = FAT_BINARY_WRAPPER.to_le_bytes();
        assert!(
            check(&wrapper)
                .unwrap_err()
                .contains("pass the fat binary itself")
        );
    }

    /// A fat binary that says that it has so many bytes besides its header, and then these.
    fn fat_binary(says: u64, content: &[u8]) -> Vec<u8> {
        let mut image = FAT_BINARY.to_le_bytes().to_vec();
        image.extend(1u16.to_le_bytes());
        image.extend(16u16.to_le_bytes());
        image.extend(says.to_le_bytes());
        image.extend(content);
        image
    }

    /// An entry of a fat binary, with the header that it is said to have.
    fn entry(kind: u16, header: u32, size: u64, used: u32, content: &[u8]) -> Vec<u8> {
        let mut entry = kind.to_le_bytes().to_vec();
        entry.extend(0x101u16.to_le_bytes());
        entry.extend(header.to_le_bytes());
        entry.extend(size.to_le_bytes());
        entry.extend(used.to_le_bytes());
        entry.extend(if kind == 1 { 64u32 } else { 0 }.to_le_bytes());
        entry.resize(64, 0);
        entry.extend(content);
        entry
    }

    #[test]
    fn a_fat_binary_must_be_whole() {
        let content = entry(2, 64, 36, 0, &[7; 36]);
        assert!(matches!(
            check(&fat_binary(100, &content)),
            Ok(Kind::Binary)
        ));
        let mut longer = content.clone();
        longer.push(0);
        assert!(matches!(check(&fat_binary(100, &longer)), Ok(Kind::Binary)));
        assert!(
            check(&fat_binary(100, &content[..99]))
                .unwrap_err()
                .contains("ends at byte 116, and the image has 115")
        );
        assert!(check(&fat_binary(u64::MAX, &content)).is_err());
        assert!(check(&fat_binary(0, &[])[..10]).is_err());
        assert!(matches!(check(&fat_binary(0, &[])), Ok(Kind::Binary)));
        let mut headless = fat_binary(100, &content);
        headless[6] = 0;
        assert!(check(&headless).unwrap_err().contains("header has 0 bytes"));
    }

    #[test]
    fn the_entries_of_a_fat_binary_must_be_whole() {
        let good = entry(2, 64, 36, 36, &[7; 36]);
        let with = |second: Vec<u8>| {
            let content = [good.clone(), second].concat();
            check(&fat_binary(content.len() as u64, &content))
        };
        assert!(matches!(with(good.clone()), Ok(Kind::Binary)));
        // PTX has a header of 80 bytes with today's compilers.
        let mut ptx = entry(1, 80, 4, 0, &[0; 20]);
        assert!(matches!(with(ptx.clone()), Ok(Kind::Binary)));
        for options in [0, 63, 73, 80, 255] {
            ptx[20] = options;
            let error = with(ptx.clone()).unwrap_err();
            assert!(
                error.contains(&format!("has its options at byte {options} of")),
                "{error}"
            );
        }
        for (wrong, says) in [
            (
                entry(2, 64, 37, 0, &[7; 36]),
                "entry 1 is said to have 64 and 37 bytes, and 100 are left",
            ),
            (entry(2, 64, u64::MAX, 0, &[7; 36]), "entry 1 is said"),
            (entry(2, u32::MAX, 0, 0, &[]), "entry 1 is said"),
            (entry(2, 0, 0, 0, &[]), "has a header of 0 bytes"),
            (
                entry(2, 64, 36, 37, &[7; 36]),
                "is said to use 37 bytes of 36",
            ),
            (vec![2; 19], "ends inside its header"),
            (
                entry(
                    256,
                    80,
                    0,
                    0,
                    &[1, 0, 0, 0, 168, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                ),
                "1 parts, and its header has 80 bytes",
            ),
            (
                entry(2, 64, 128, 0, &elf(1, 0x80)),
                "entry 1 is a cubin: the cubin's section 0 ends at byte 129",
            ),
        ] {
            let error = with(wrong).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(
            with(entry(2, 64, 128, 0, &elf(0, 0x80))),
            Ok(Kind::Binary)
        ));
        let parts = [&[2, 0, 0, 0, 168, 0, 0, 0][..], &[0; 160]].concat();
        assert!(matches!(
            with(entry(256, 232, 0, 0, &parts)),
            Ok(Kind::Binary)
        ));
        let mut endless = entry(1, 80, 8, 0, &[b' '; 24]);
        let error = with(endless.clone()).unwrap_err();
        assert!(
            error.contains("entry 1 is PTX without a zero byte"),
            "{error}"
        );
        endless[41] = 0x80;
        assert!(matches!(with(endless), Ok(Kind::Binary)));
        let cut = entry(256, 64, 0, 0, &[]);
        assert!(with(cut).is_err());
    }

    /// An ELF file of one section, whose bytes are said to begin at `at`.
    fn elf(at: u64, size: u64) -> Vec<u8> {
        let mut image = vec![0; 0x80];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[0x28..0x30].copy_from_slice(&0x40u64.to_le_bytes());
        image[0x3a..0x3c].copy_from_slice(&0x40u16.to_le_bytes());
        image[0x3c..0x3e].copy_from_slice(&1u16.to_le_bytes());
        image[0x44..0x48].copy_from_slice(&1u32.to_le_bytes());
        image[0x58..0x60].copy_from_slice(&at.to_le_bytes());
        image[0x60..0x68].copy_from_slice(&size.to_le_bytes());
        image
    }

    #[test]
    fn a_cubin_must_be_whole() {
        assert!(matches!(check(&elf(0, 0x80)), Ok(Kind::Binary)));
        assert!(check(&elf(1, 0x80)).unwrap_err().contains("section 0"));
        assert!(check(&elf(u64::MAX, 2)).is_err());
        // A section without bytes in the file may say what it likes.
        let mut empty = elf(1, u64::MAX - 1);
        empty[0x44] = 8;
        assert!(matches!(check(&empty), Ok(Kind::Binary)));
        assert!(
            check(&elf(0, 0)[..0x7f])
                .unwrap_err()
                .contains("section table")
        );
        assert!(check(b"\x7fELF").is_err());
        // Names that are not there, and symbols' too.
        let mut named = elf(0x40, 0x40);
        let good = named.clone();
        assert!(matches!(check(&good), Ok(Kind::Binary)));
        named[0x40] = 0x41;
        let error = check(&named).unwrap_err();
        assert!(error.contains("name of the cubin's section 0"), "{error}");
        named[0x40] = 0x3f;
        assert!(matches!(check(&named), Ok(Kind::Binary)));
        named[0x7f] = 1;
        assert!(check(&named).unwrap_err().contains("do not end"));
        named = good.clone();
        named[0x3e] = 1;
        let error = check(&named).unwrap_err();
        assert!(
            error.contains("no section 1 for the names of its sections"),
            "{error}"
        );
        // The section's own header, taken for symbols and their names.
        let mut symbols = elf(0x40, 24);
        symbols[0x44] = 2;
        assert!(matches!(check(&symbols), Ok(Kind::Binary)));
        symbols[0x60] = 48;
        let error = check(&symbols).unwrap_err();
        assert!(error.contains("symbol 1 is not there"), "{error}");
        symbols[0x68] = 1;
        let error = check(&symbols).unwrap_err();
        assert!(
            error.contains("no section 1 for the names of its symbols"),
            "{error}"
        );
        let mut uncounted = elf(0, 0);
        uncounted[0x3c] = 0;
        assert!(check(&uncounted).is_err());
        for cut in 4..0x80 {
            assert!(check(&elf(0, 0)[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn damage_is_refused_or_harmless() {
        let ptx = entry(1, 80, 20, 0, &[0; 36]);
        let several = [&[1, 0, 0, 0, 168, 0, 0, 0][..], &[0; 80]].concat();
        let content = [
            ptx,
            entry(2, 64, 128, 0, &elf(0x40, 24)),
            entry(256, 152, 0, 0, &several),
        ]
        .concat();
        let whole = fat_binary(content.len() as u64, &content);
        assert!(matches!(check(&whole), Ok(Kind::Binary)));
        // Marsaglia's xorshift: the same damage in every run.
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |limit: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % limit
        };
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut image = whole.clone();
            for _ in 0..1 + below(4) {
                let at = below(image.len());
                image[at] = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8][below(6)];
            }
            image.truncate(image.len() - below(2) * below(image.len()));
            refused += usize::from(check(&image).is_err());
        }
        // What is behind a checked image is never read, so all that can go wrong here is a panic.
        assert!(refused > 5_000, "{refused}");
    }
}
