//! Recognition of module images.
//!
//! The driver gets an address without a length. PTX is therefore passed as a NUL-terminated copy, and a binary only if
//! its first header says that it ends inside the slice. Damage inside a binary is not detected.
#![forbid(unsafe_code)]

use std::ffi::CString;

/// The format of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A cubin or a fat binary whose header says that it ends inside the image.
    Binary,
    /// Text, which the driver treats as PTX.
    Text(CString),
}

/// Returns the format of an image, or the reason why it cannot be loaded.
#[inline]
pub(crate) fn recognise(image: &[u8]) -> Result<Format, String> {
    /// The first four bytes of a fat binary.
    const FAT_BINARY: &[u8] = &0xba55_ed50_u32.to_le_bytes();

    let (name, end) = if image.starts_with(b"\x7fELF") {
        ("cubin", cubin_end(image))
    } else if image.starts_with(FAT_BINARY) {
        ("fat binary", fat_binary_end(image))
    } else {
        let end = image.iter().position(|&byte| byte == 0);
        return text(&image[..end.unwrap_or(image.len())]).map(Format::Text);
    };
    match end {
        Some(end) if end <= image.len() as u64 => Ok(Format::Binary),
        Some(end) => Err(format!(
            "the {name} is truncated: it ends at byte {end}, but the image has {} bytes: pass the whole file",
            image.len()
        )),
        None => Err(format!(
            "the {name} is truncated inside its header: pass the whole file"
        )),
    }
}

/// Returns PTX as a C string.
///
/// Only UTF-8 is accepted, without ASCII control characters other than white space. Such text cannot start with the
/// magic number of a binary format, whose header the driver would follow past the end of the text.
#[inline]
pub(crate) fn text(text: &[u8]) -> Result<CString, String> {
    const VERTICAL_TAB: u8 = 0x0b;
    let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace() || *byte == VERTICAL_TAB;
    let valid = match core::str::from_utf8(text) {
        Ok(_) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    // `fold` does not stop early, so the compiler can vectorise it. The first bad byte is searched for in the rest.
    let are_text = |chunk: &&[u8]| chunk.iter().fold(true, |all, byte| all & is_text(byte));
    let checked: usize = text[..valid].chunks(64).take_while(are_text).map(<[u8]>::len).sum();
    let rest = text[checked..valid].iter().position(|byte| !is_text(byte));
    let end = rest.map(|at| checked + at);
    match text.get(end.unwrap_or(valid)) {
        Some(byte) => Err(format!(
            "the image is not PTX, a cubin or a fat binary: byte {} ({byte:#04x}) is not text",
            end.unwrap_or(valid)
        )),
        None => CString::new(text).map_err(|error| error.to_string()),
    }
}

/// Returns the end of an ELF file's tables; `None` if the header is incomplete. Compilers write a table last in a
/// cubin; if section data follows the tables, a truncation in it is not detected.
#[inline]
fn cubin_end(image: &[u8]) -> Option<u64> {
    let table_end = |start: u64, entry_size, count: u64| {
        let size = u64::from(u16_at(image, entry_size)?).saturating_mul(count);
        Some(start.saturating_add(size))
    };
    let segments = table_end(u64_at(image, 0x20)?, 0x36, u16_at(image, 0x38)?.into())?;
    let start = u64_at(image, 0x28)?;
    let count = match u64::from(u16_at(image, 0x3c)?) {
        // A number that is too large for the header is in the size of the first section.
        0 if start > 0 => u64_at(image, usize::try_from(start.saturating_add(0x20)).ok()?)?,
        count => count,
    };
    let sections = table_end(start, 0x3a, count)?;
    Some(segments.max(sections).max(0x40))
}

/// Returns the end of a fat binary: its header states the lengths of the header and of the entries.
#[inline]
fn fat_binary_end(image: &[u8]) -> Option<u64> {
    Some(u64_at(image, 8)?.saturating_add(u16_at(image, 6)?.into()))
}

#[inline]
fn u16_at(image: &[u8], at: usize) -> Option<u16> {
    let bytes = image.get(at..at + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

#[inline]
fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    let bytes = image.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_first_nul() {
        for image in [&b".version 6.4\n"[..], b".version 6.4\n\0", b".version 6.4\n\0\x01rest"] {
            let text = c".version 6.4\n".to_owned();
            assert_eq!(recognise(image), Ok(Format::Text(text)));
        }
        // Non-ASCII characters are accepted here. The driver's compiler rejects them where PTX does not allow them.
        let text = c"// é".to_owned();
        assert_eq!(recognise("// é".as_bytes()), Ok(Format::Text(text)));
        assert_eq!(recognise(b""), Ok(Format::Text(c"".to_owned())));
    }

    #[test]
    fn binaries_are_never_taken_for_text() {
        assert!(text(b"\x7fELF\x02\x01").is_err());
        assert!(text(b"one\0two").is_err());
        // A driver may also know these formats: Tile IR, the record in a C program that points to a fat binary, and
        // LLVM bitcode.
        assert!(recognise(b"\x7fTileIR\0\x0d\x01").is_err());
        assert!(recognise(&0x4662_43b1_u64.to_le_bytes()).is_err());
        let error = recognise(b"BC\xc0\xde\x01\x02\x03\x04").unwrap_err();
        assert!(error.contains("byte 2 (0xc0) is not text"), "{error}");
        let error = recognise(b"BC\x01").unwrap_err();
        assert!(error.contains("byte 2 (0x01) is not text"), "{error}");
        for at in [0, 63, 64, 200] {
            let mut long = [b' '; 201];
            long[at] = 1;
            let error = text(&long).unwrap_err();
            assert!(error.contains(&format!("byte {at} (0x01) is not text")), "{error}");
        }
    }

    #[test]
    fn a_truncated_fat_binary_is_rejected() {
        let mut image = 0xba55_ed50_u32.to_le_bytes().to_vec();
        image.extend([1, 0, 16, 0, 100, 0, 0, 0, 0, 0, 0, 0]);
        image.resize(116, 7);
        assert_eq!(recognise(&image), Ok(Format::Binary));
        let error = recognise(&image[..115]).unwrap_err();
        assert!(
            error.contains("ends at byte 116, but the image has 115 bytes"),
            "{error}"
        );
        assert!(recognise(&image[..10]).unwrap_err().contains("header"));
        image[8..16].fill(0xff);
        assert!(recognise(&image).is_err());
    }

    #[test]
    fn a_truncated_cubin_is_rejected() {
        let mut image = vec![0; 0x80];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        // One section, whose table follows the header.
        image[0x28] = 0x40;
        image[0x3a] = 0x40;
        image[0x3c] = 1;
        assert_eq!(recognise(&image), Ok(Format::Binary));
        for cut in 4..image.len() {
            assert!(recognise(&image[..cut]).is_err(), "{cut}");
        }
        image[0x28..0x30].fill(0xff);
        assert!(recognise(&image).is_err());

        // The number of sections is 0 in the header, and 1 in the size of the first section.
        image[0x28..0x30].copy_from_slice(&0x40_u64.to_le_bytes());
        image[0x3c] = 0;
        image[0x60] = 1;
        assert_eq!(recognise(&image), Ok(Format::Binary));
        for cut in 4..image.len() {
            assert!(recognise(&image[..cut]).is_err(), "{cut}");
        }
        image[0x60] = 2;
        assert!(recognise(&image).is_err());
        image[0x60..0x68].fill(0xff);
        assert!(recognise(&image).is_err());
        image[0x28..0x30].fill(0xff);
        assert!(recognise(&image).is_err());
    }
}
