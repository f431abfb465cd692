//! Fat binaries, which contain several kernel images in one file. This driver can run only those that are PTX.

use std::io::Read;

use crate::bytes::{range, size_at, u16_at, u32_at, u64_at};

/// First bytes of a fat binary.
pub const FATBIN_MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();

/// First bytes of the structure in which compilers wrap the address of a fat binary.
pub const WRAPPER_MAGIC: [u8; 4] = 0x4662_43B1_u32.to_le_bytes();

/// Length of the header of a fat binary in bytes.
pub const HEADER: usize = 16;

/// Offsets of the header's fields.
mod header {
    /// Version of the format, 16 bits.
    pub(super) const VERSION: usize = 4;
    /// Length of the header in bytes, 16 bits.
    pub(super) const SIZE: usize = 6;
    /// Length of the entries in bytes, 64 bits.
    pub(super) const CONTENT_SIZE: usize = 8;
}

/// The known version of the format.
const FORMAT: u16 = 1;

/// Offsets of the fields of an entry's header. Kind and architecture have the same offsets in the header of a part.
mod entry {
    /// Kind, 16 bits.
    pub(super) const KIND: usize = 0;
    /// Length of the entry's header in bytes, 32 bits.
    pub(super) const HEADER_SIZE: usize = 4;
    /// Length of the padded payload in bytes, 64 bits.
    pub(super) const PAYLOAD_SIZE: usize = 8;
    /// Length of the compressed payload in bytes, 32 bits; 0 if the payload is not compressed.
    pub(super) const COMPRESSED_SIZE: usize = 16;
    /// Architecture, 32 bits: 90 for `sm_90`.
    pub(super) const SM: usize = 28;
    /// Flags, 64 bits.
    pub(super) const FLAGS: usize = 40;
    /// Length of the decompressed payload in bytes, 64 bits.
    pub(super) const DECOMPRESSED_SIZE: usize = 56;
    /// Number of parts of a concatenation, 32 bits.
    pub(super) const PART_COUNT: usize = 64;
    /// Headers of the parts of a concatenation.
    pub(super) const PARTS: usize = 72;
}

/// Offsets of the fields of a part's header that differ from an entry's.
mod part {
    /// Offset in the decompressed payload, 32 bits.
    pub(super) const OFFSET: usize = 4;
    /// Length of the part in bytes, 64 bits.
    pub(super) const SIZE: usize = 8;
}

/// Minimum length of an entry's header in bytes.
const ENTRY_BYTES: usize = 64;
/// Length of the header of a part in bytes.
const PART_BYTES: usize = 80;

/// Kind of an entry: PTX text.
const KIND_PTX: u16 = 1;
/// Kind of an entry: an ELF file with machine code.
const KIND_ELF: u16 = 2;
/// Kind of an entry: several images that are compressed as one.
const KIND_CONCATENATION: u16 = 256;
/// Flag of an entry: the payload is an LZ4 block.
const FLAG_LZ4: u64 = 0x2000;
/// Flag of an entry: the payload is a zstd frame.
const FLAG_ZSTD: u64 = 0x8000;

/// Returns the length of a fat binary in bytes from its header; `None` if it is larger than the address space.
pub fn length(header: &[u8; HEADER]) -> Option<usize> {
    let header_bytes = u16_at(header, header::SIZE)?;
    size_at(header, header::CONTENT_SIZE)?.checked_add(header_bytes.into())
}

/// The reason why a fat binary has no PTX for the device. For each variant, the driver returns a different error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The file or a part of a concatenation is cut off, or the format is unknown (`CUDA_ERROR_INVALID_IMAGE`). The
    /// text describes the error.
    Malformed(&'static str),
    /// An entry is cut off, has too short a header, cannot be decompressed or exceeds a limit (`CUDA_ERROR_UNKNOWN`).
    /// The text describes the error.
    Damaged(&'static str),
    /// No entry is PTX for the device's architecture or an older one, or the stated length of the header is
    /// less than [`HEADER`] (`CUDA_ERROR_NO_BINARY_FOR_GPU`).
    NoPtx,
}

/// An entry.
#[derive(Clone, Copy)]
struct Entry<'a> {
    kind: u16,
    sm: u32,
    flags: u64,
    header: &'a [u8],
    /// The payload; without padding if it is compressed.
    payload: &'a [u8],
    decompressed_bytes: usize,
}

/// Returns the first entry, and the bytes after it; `None` if the entry is cut off or its header is too short.
fn split_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let header_bytes = u32_at(bytes, entry::HEADER_SIZE)? as usize;
    if header_bytes < ENTRY_BYTES {
        return None;
    }
    let padded_bytes = size_at(bytes, entry::PAYLOAD_SIZE)?;
    let compressed_bytes = u32_at(bytes, entry::COMPRESSED_SIZE)? as usize;
    let padded = range(bytes, header_bytes, padded_bytes)?;
    let payload = if compressed_bytes != 0 {
        padded.get(..compressed_bytes)?
    } else {
        padded
    };
    let entry = Entry {
        kind: u16_at(bytes, entry::KIND)?,
        sm: u32_at(bytes, entry::SM)?,
        flags: u64_at(bytes, entry::FLAGS)?,
        header: bytes.get(..header_bytes)?,
        payload,
        decompressed_bytes: size_at(bytes, entry::DECOMPRESSED_SIZE)?,
    };
    Some((entry, &bytes[header_bytes + padded_bytes..]))
}

/// A part of a concatenation.
struct Part {
    kind: u16,
    sm: u32,
    /// Offset in the decompressed payload.
    offset: usize,
    bytes: usize,
}

/// Returns the parts of a concatenation, given the header of its entry.
fn parts(header: &[u8]) -> Option<Vec<Part>> {
    let count = u32_at(header, entry::PART_COUNT)? as usize;
    let headers = header.get(entry::PARTS..)?.chunks_exact(PART_BYTES);
    let parts: Option<Vec<_>> = headers
        .take(count)
        .map(|header| {
            Some(Part {
                kind: u16_at(header, entry::KIND)?,
                sm: u32_at(header, entry::SM)?,
                offset: u32_at(header, part::OFFSET)? as usize,
                bytes: size_at(header, part::SIZE)?,
            })
        })
        .collect();
    parts.filter(|parts| parts.len() == count)
}

/// PTX text in a fat binary.
struct Found<'a> {
    sm: u32,
    entry: Entry<'a>,
    /// The part, if the entry is a concatenation.
    part: Option<Part>,
}

/// Returns the PTX text with the highest architecture that a device of architecture `sm` can run.
///
/// # Errors
/// Returns a [`Failure`] if there is no such text.
pub fn ptx(binary: &[u8], sm: u32) -> Result<Vec<u8>, Failure> {
    let header: &[u8; HEADER] = binary
        .first_chunk()
        .ok_or(Failure::Malformed("it is shorter than a header"))?;
    if u16_at(header, header::VERSION) != Some(FORMAT) {
        return Err(Failure::Malformed("its header has an unknown version"));
    }
    let start = usize::from(u16_at(header, header::SIZE).unwrap_or(0));
    if start < HEADER {
        return Err(Failure::NoPtx);
    }
    let end = length(header).ok_or(Failure::Malformed(
        "its header states more bytes than the address space has",
    ))?;
    let mut rest = binary
        .get(start..end)
        .ok_or(Failure::Malformed("it is shorter than its header says"))?;
    let mut best: Option<Found<'_>> = None;
    while !rest.is_empty() {
        let (entry, after) = split_entry(rest).ok_or(Failure::Damaged("an entry is damaged"))?;
        rest = after;
        let is_better = |kind: u16, found: u32, best: &Option<Found<'_>>| {
            kind == KIND_PTX && found <= sm && best.as_ref().is_none_or(|best| best.sm < found)
        };
        if entry.kind == KIND_CONCATENATION {
            let parts = parts(entry.header).ok_or(Failure::Malformed("the headers of an entry's parts are cut off"))?;
            for part in parts {
                if is_better(part.kind, part.sm, &best) {
                    best = Some(Found {
                        sm: part.sm,
                        entry,
                        part: Some(part),
                    });
                }
            }
        } else if is_better(entry.kind, entry.sm, &best) {
            best = Some(Found {
                sm: entry.sm,
                entry,
                part: None,
            });
        }
    }
    let best = best.ok_or(Failure::NoPtx)?;
    let mut text = decompress(&best.entry)?;
    if let Some(part) = best.part {
        let part = range(&text, part.offset, part.bytes);
        text = part
            .ok_or(Failure::Malformed("a part of an entry is cut off"))?
            .to_vec();
    }
    while text.last() == Some(&0) {
        text.pop();
    }
    Ok(text)
}

/// Returns the first ELF file, which is an entry or a part of a concatenation; `None` if there is none, or if its entry
/// or an earlier one is damaged.
pub(crate) fn machine_code(binary: &[u8]) -> Option<Vec<u8>> {
    let start = usize::from(u16_at(binary, header::SIZE)?);
    let mut rest = binary.get(start..)?;
    while !rest.is_empty() {
        let (entry, after) = split_entry(rest)?;
        if entry.kind == KIND_ELF {
            return decompress(&entry).ok();
        }
        if entry.kind == KIND_CONCATENATION
            && let Some(part) = parts(entry.header)?.iter().find(|part| part.kind == KIND_ELF)
        {
            let all = decompress(&entry).ok()?;
            return range(&all, part.offset, part.bytes).map(<[u8]>::to_vec);
        }
        rest = after;
    }
    None
}

/// Maximum length of a decompressed payload in bytes: longer than any PTX text that a compiler writes.
const MAX_TEXT: usize = 1 << 30;
/// Maximum ratio of the length of a decompressed payload to the length of its compressed data. PTX of a thousand equal
/// lines reaches 100.
const MAX_RATIO: usize = 1 << 10;
/// [`MAX_RATIO`] for LZ4: a byte of data stands for at most 255 bytes.
const MAX_RATIO_LZ4: usize = 255;
/// Length in bytes up to which a decompressed payload is accepted, however short its compressed data is.
const SMALL_TEXT: usize = 1 << 16;
/// Maximum number of bytes that a zstd frame may refer back to.
const MAX_WINDOW: u64 = 1 << 27;
/// Minimum of the limit on what a zstd frame may refer back to: encoders declare a window of this size even for short
/// text.
const MIN_WINDOW: u64 = 1 << 23;

/// Returns the decompressed payload of an entry.
fn decompress(entry: &Entry<'_>) -> Result<Vec<u8>, Failure> {
    if entry.flags & (FLAG_LZ4 | FLAG_ZSTD) == 0 {
        return Ok(entry.payload.to_vec());
    }
    let bytes = entry.decompressed_bytes;
    if bytes > MAX_TEXT {
        return Err(Failure::Damaged("an entry is longer than 1 GiB"));
    }
    let most = if entry.flags & FLAG_LZ4 != 0 {
        MAX_RATIO_LZ4
    } else {
        MAX_RATIO
    };
    if bytes > SMALL_TEXT && bytes / most > entry.payload.len() {
        return Err(Failure::Damaged(
            "an entry states a far longer text than its data can have",
        ));
    }
    let mut text = Vec::new();
    let reserved = text.try_reserve_exact(bytes);
    reserved.map_err(|_| Failure::Damaged("an entry is longer than the host's memory"))?;
    if entry.flags & FLAG_LZ4 != 0 {
        text.resize(bytes, 0);
        let written = lz4_flex::block::decompress_into(entry.payload, &mut text);
        let written = written.map_err(|_| Failure::Damaged("the LZ4 data of an entry is damaged"))?;
        text.truncate(written);
        return Ok(text);
    }
    let damaged = || Failure::Damaged("the zstd data of an entry is damaged");
    let mut frames = ruzstd::decoding::FrameDecoder::new();
    frames.set_max_window_size((bytes as u64).next_power_of_two().clamp(MIN_WINDOW, MAX_WINDOW));
    let decoder = ruzstd::decoding::StreamingDecoder::new_with_decoder(entry.payload, frames);
    // Reads no more than the length that the entry states, even if the frame declares another length.
    let mut limited = decoder.map_err(|_| damaged())?.take(bytes as u64);
    let read = limited.read_to_end(&mut text);
    read.map(|_| text).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 6.4 .target sm_52 .address_size 64 // some text, some text, some text, some text";

    /// Returns an entry as compilers write it.
    fn entry(kind: u16, sm: u32, flags: u64, payload: &[u8], bytes: usize, more: &[u8]) -> Vec<u8> {
        let padded = payload.len().next_multiple_of(8);
        let mut entry = vec![0; 64];
        entry.extend(more);
        let header = entry.len();
        let mut set = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, &kind.to_le_bytes());
        set(4, &(header as u32).to_le_bytes());
        set(8, &(padded as u64).to_le_bytes());
        set(
            16,
            &(if flags & (FLAG_LZ4 | FLAG_ZSTD) == 0 {
                0
            } else {
                payload.len() as u32
            })
            .to_le_bytes(),
        );
        set(28, &sm.to_le_bytes());
        set(40, &flags.to_le_bytes());
        set(56, &(bytes as u64).to_le_bytes());
        entry.extend(payload);
        entry.resize(header + padded, 0);
        entry
    }

    fn binary(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut binary = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, HEADER as u8, 0];
        binary.extend((entries.concat().len() as u64).to_le_bytes());
        binary.extend(entries.concat());
        binary
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn concatenation() -> Vec<u8> {
        concatenation_of(&[(KIND_PTX, 52, b"first"), (KIND_PTX, 80, TEXT)])
    }

    fn concatenation_of(contents: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let mut parts = (contents.len() as u32).to_le_bytes().to_vec();
        parts.extend((8 + PART_BYTES as u32 * contents.len() as u32).to_le_bytes());
        let mut all = Vec::new();
        for (kind, sm, text) in contents {
            let mut part = [0; PART_BYTES];
            part[..2].copy_from_slice(&kind.to_le_bytes());
            part[4..8].copy_from_slice(&(all.len() as u32).to_le_bytes());
            part[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
            part[28..32].copy_from_slice(&sm.to_le_bytes());
            all.extend(*text);
            parts.extend(part);
        }
        entry(KIND_CONCATENATION, 0, 0x11 | FLAG_ZSTD, &zstd(&all), all.len(), &parts)
    }

    #[test]
    fn all_compressions() {
        let plain = entry(KIND_PTX, 52, 0x11, TEXT, 0, &[0; 16]);
        let lz4 = lz4_flex::block::compress(TEXT);
        let lz4 = entry(KIND_PTX, 60, 0x11 | FLAG_LZ4, &lz4, TEXT.len(), &[0; 16]);
        let zstd = entry(KIND_PTX, 70, 0x11 | FLAG_ZSTD, &zstd(TEXT), TEXT.len(), &[0; 16]);
        for one in [plain, lz4, zstd, concatenation()] {
            assert_eq!(ptx(&binary(&[one]), 90).as_deref(), Ok(TEXT));
        }
    }

    #[test]
    fn the_highest_architecture_that_the_device_runs() {
        let of = |sm, text: &[u8]| entry(KIND_PTX, sm, 0x11, text, 0, &[]);
        let elf = entry(2, 90, 0x11, b"machine code", 0, &[]);
        let binary = binary(&[of(52, b"52"), elf.clone(), of(100, b"100"), of(80, b"80")]);
        assert_eq!(ptx(&binary, 90).as_deref(), Ok(&b"80"[..]));
        assert_eq!(ptx(&binary, 70).as_deref(), Ok(&b"52"[..]));
        assert_eq!(ptx(&binary, 50), Err(Failure::NoPtx));
    }

    #[test]
    fn the_stated_length_is_bounded_by_the_data() {
        let too_long = Failure::Damaged("an entry states a far longer text than its data can have");
        let damaged = |name| Failure::Damaged(name);
        let lz4 = lz4_flex::block::compress(TEXT);
        let zstd = zstd(TEXT);
        for (flag, data, name) in [
            (FLAG_LZ4, &lz4, "the LZ4 data of an entry is damaged"),
            (FLAG_ZSTD, &zstd, "the zstd data of an entry is damaged"),
        ] {
            let of = |bytes: usize, data: &[u8]| ptx(&binary(&[entry(KIND_PTX, 52, flag, data, bytes, &[])]), 90);
            // The data ends before the stated length, which is not an error.
            assert_eq!(of(SMALL_TEXT, data).as_deref(), Ok(TEXT));
            assert_eq!(of(MAX_TEXT, data), Err(too_long));
            assert_eq!(
                of(MAX_TEXT + 1, data),
                Err(Failure::Damaged("an entry is longer than 1 GiB"))
            );
            assert_eq!(of(1000, &[0xFF; 100]), Err(damaged(name)));
        }
        // LZ4 data of this length cannot have as many bytes as zstd data can.
        let of = |flag: u64| ptx(&binary(&[entry(KIND_PTX, 52, flag, &[0xFF; 1000], 1_000_000, &[])]), 90);
        assert_eq!(of(FLAG_LZ4), Err(too_long));
        assert_eq!(of(FLAG_ZSTD), Err(damaged("the zstd data of an entry is damaged")));
        // `far` declares a window of 1 GiB. `bomb` is 128 KiB of one byte, the most that a block of four bytes can
        // hold.
        let far = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 20 << 3];
        let bomb = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 7 << 3, 0x03, 0x00, 0x10, b'x'];
        let of = |bytes: usize, data: &[u8]| ptx(&binary(&[entry(KIND_PTX, 52, FLAG_ZSTD, data, bytes, &[])]), 90);
        assert_eq!(of(1000, &far), Err(damaged("the zstd data of an entry is damaged")));
        assert_eq!(of(1000, &bomb), Ok(vec![b'x'; 1000]));
        assert_eq!(of(1 << 17, &bomb), Err(too_long));
    }

    #[test]
    fn machine_code_is_found_in_concatenations() {
        let text = (KIND_PTX, 52, TEXT);
        let elf = concatenation_of(&[text, (KIND_ELF, 80, b"eighty"), (KIND_ELF, 90, b"ninety")]);
        assert_eq!(
            machine_code(&binary(std::slice::from_ref(&elf))).as_deref(),
            Some(&b"eighty"[..])
        );
        let alone = entry(KIND_ELF, 90, 0x11, b"an entry", 0, &[]);
        let only_text = concatenation();
        assert_eq!(
            machine_code(&binary(&[only_text.clone(), alone, elf])).as_deref(),
            Some(&b"an entry"[..])
        );
        assert_eq!(machine_code(&binary(&[only_text])), None);
    }

    #[test]
    fn a_header_without_length_has_no_entries() {
        let mut binary = binary(&[entry(KIND_PTX, 52, 0x11, TEXT, 0, &[])]);
        binary[header::SIZE] = 0;
        assert_eq!(ptx(&binary, 90), Err(Failure::NoPtx));
    }

    #[test]
    fn entries_of_zeros_are_errors() {
        let zeros = binary(&[vec![0; 128]]);
        let damaged = Failure::Damaged("an entry is damaged");
        assert_eq!(ptx(&zeros, 90), Err(damaged));
    }

    #[test]
    fn truncated_binaries_are_errors_and_changed_ones_do_not_panic() {
        let good = binary(&[concatenation(), entry(KIND_PTX, 52, 0x11, TEXT, 0, &[])]);
        for at in 0..good.len() {
            assert!(ptx(&good[..at], 90).is_err());
            for bit in [1, 0x80, 0xFF] {
                let mut changed = good.clone();
                changed[at] ^= bit;
                // Some changes are not errors, such as one of a byte in the text.
                let _ = ptx(&changed, 90);
            }
        }
    }
}
