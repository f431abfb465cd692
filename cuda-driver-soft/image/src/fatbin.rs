//! Fat binaries: several kernel images in one, of which the PTX ones can run here.

use std::io::Read;

/// Bytes of the header that every fat binary starts with.
pub const HEADER: usize = 16;

/// Kind of an entry: PTX text.
const KIND_PTX: u16 = 1;
/// Kind of an entry: several entries compressed as one.
const KIND_CONCATENATION: u16 = 256;
/// In a concatenation, where the number of parts is, and where the headers of the parts begin.
const PARTS: (usize, usize) = (64, 72);
/// Bytes of the header of a part.
const PART: usize = 80;
/// Flag of an entry: the payload is an LZ4 block.
const FLAG_LZ4: u64 = 0x2000;
/// Flag of an entry: the payload is a zstd frame.
const FLAG_ZSTD: u64 = 0x8000;

/// Length of a fat binary in bytes, from its header.
pub fn length(header: &[u8; HEADER]) -> Option<usize> {
    let (header_bytes, content) = (
        u16::from_le_bytes([header[6], header[7]]),
        u64::from_le_bytes(header[8..].try_into().ok()?),
    );
    usize::try_from(content)
        .ok()?
        .checked_add(usize::from(header_bytes))
}

/// Why a fat binary gives no PTX.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is not well formed, or of a version that is not known.
    Malformed(&'static str),
    /// No entry is PTX that the device can take.
    NoPtx,
}

/// One entry.
#[derive(Clone, Copy)]
struct Entry<'a> {
    kind: u16,
    sm: u32,
    flags: u64,
    header: &'a [u8],
    payload: &'a [u8],
    /// Length when decompressed.
    bytes: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The entry at the start of `rest`, and what follows it.
fn entry(rest: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let kind = u16::from_le_bytes(number(rest, 0)?);
    let header = u32::from_le_bytes(number(rest, 4)?) as usize;
    let padded = usize::try_from(u64::from_le_bytes(number(rest, 8)?)).ok()?;
    let compressed = u32::from_le_bytes(number(rest, 16)?) as usize;
    let sm = u32::from_le_bytes(number(rest, 28)?);
    let flags = u64::from_le_bytes(number(rest, 40)?);
    let bytes = usize::try_from(u64::from_le_bytes(number(rest, 56)?)).ok()?;
    let (payload, own) = (
        rest.get(header..header.checked_add(padded)?)?,
        rest.get(..header)?,
    );
    let used = if compressed != 0 {
        payload.get(..compressed)?
    } else {
        payload
    };
    Some((
        Entry {
            kind,
            sm,
            flags,
            header: own,
            payload: used,
            bytes,
        },
        &rest[header + padded..],
    ))
}

/// The parts of a concatenation: their headers are like those of entries, but have the offset into the decompressed payload
/// in place of their own length.
fn parts<'a>(header: &'a [u8]) -> Option<Vec<(Entry<'a>, usize)>> {
    let count = u32::from_le_bytes(number(header, PARTS.0)?) as usize;
    let headers = header.get(PARTS.1..)?.chunks_exact(PART).take(count);
    let parts: Option<Vec<_>> = headers
        .map(|part| {
            let offset = u32::from_le_bytes(number(part, 4)?) as usize;
            let bytes = usize::try_from(u64::from_le_bytes(number(part, 8)?)).ok()?;
            let kind = u16::from_le_bytes(number(part, 0)?);
            let sm = u32::from_le_bytes(number(part, 28)?);
            let flags = u64::from_le_bytes(number(part, 40)?);
            Some((
                Entry {
                    kind,
                    sm,
                    flags,
                    header: part,
                    payload: &[],
                    bytes,
                },
                offset,
            ))
        })
        .collect();
    parts.filter(|p| p.len() == count)
}

/// Where the best PTX so far is.
enum Found<'a> {
    Entry(Entry<'a>),
    /// In a concatenation: its entry, and the part's offset and length in bytes.
    Part(Entry<'a>, usize, usize),
}

/// The PTX of the highest architecture that a device of `sm` can take.
pub fn ptx(binary: &[u8], sm: u32) -> Result<Vec<u8>, Failure> {
    let header: &[u8; HEADER] = binary
        .first_chunk()
        .ok_or(Failure::Malformed("shorter than its header"))?;
    if u16::from_le_bytes([header[4], header[5]]) != 1 {
        return Err(Failure::Malformed("version of the header"));
    }
    let start = usize::from(u16::from_le_bytes([header[6], header[7]]));
    let end = length(header).ok_or(Failure::Malformed("length"))?;
    let mut rest = binary
        .get(start..end)
        .ok_or(Failure::Malformed("shorter than its header says"))?;
    let mut best: Option<(u32, Found<'_>)> = None;
    while !rest.is_empty() {
        let (entry, after) = entry(rest).ok_or(Failure::Malformed("an entry runs over the end"))?;
        rest = after;
        let better = |e: &Entry<'_>, best: &Option<(u32, Found<'_>)>| {
            e.kind == KIND_PTX && e.sm <= sm && best.as_ref().is_none_or(|b| b.0 < e.sm)
        };
        if entry.kind == KIND_CONCATENATION {
            let parts = parts(entry.header).ok_or(Failure::Malformed("the parts of an entry"))?;
            for (part, offset) in parts {
                if better(&part, &best) {
                    best = Some((part.sm, Found::Part(entry, offset, part.bytes)));
                }
            }
        } else if better(&entry, &best) {
            best = Some((entry.sm, Found::Entry(entry)));
        }
    }
    let mut text = match best.ok_or(Failure::NoPtx)?.1 {
        Found::Entry(entry) => decompress(&entry)?,
        Found::Part(entry, offset, bytes) => {
            let all = decompress(&entry)?;
            let part = offset
                .checked_add(bytes)
                .and_then(|end| all.get(offset..end));
            part.ok_or(Failure::Malformed("a part runs over the end"))?
                .to_vec()
        }
    };
    while text.last() == Some(&0) {
        text.pop();
    }
    Ok(text)
}

/// Longest PTX text that is decompressed, in bytes: more than any compiler writes.
const MOST: usize = 1 << 30;

fn decompress(entry: &Entry<'_>) -> Result<Vec<u8>, Failure> {
    if entry.bytes > MOST {
        return Err(Failure::Malformed("an entry of more than 1 GiB"));
    }
    if entry.flags & FLAG_LZ4 != 0 {
        return lz4_flex::block::decompress(entry.payload, entry.bytes)
            .map_err(|_| Failure::Malformed("LZ4"));
    }
    if entry.flags & FLAG_ZSTD != 0 {
        let mut source = entry.payload;
        let decoder = ruzstd::decoding::StreamingDecoder::new(&mut source);
        let mut text = Vec::new();
        let decoder = decoder.map_err(|_| Failure::Malformed("zstd"))?;
        // No more than the entry says, whatever the stream claims.
        let read = decoder.take(entry.bytes as u64).read_to_end(&mut text);
        return read.map(|_| text).map_err(|_| Failure::Malformed("zstd"));
    }
    Ok(entry.payload.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 6.4 .target sm_52 .address_size 64 // some text, some text, some text, some text";

    /// An entry as compilers write it.
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
        let mut parts = 2u32.to_le_bytes().to_vec();
        parts.extend(168u32.to_le_bytes());
        let mut all = Vec::new();
        for (sm, text) in [(52u32, &b"first"[..]), (80, TEXT)] {
            let mut part = [0; PART];
            part[..2].copy_from_slice(&KIND_PTX.to_le_bytes());
            part[4..8].copy_from_slice(&(all.len() as u32).to_le_bytes());
            part[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
            part[28..32].copy_from_slice(&sm.to_le_bytes());
            all.extend(text);
            parts.extend(part);
        }
        entry(
            KIND_CONCATENATION,
            0,
            0x11 | FLAG_ZSTD,
            &zstd(&all),
            all.len(),
            &parts,
        )
    }

    #[test]
    fn all_compressions() {
        let plain = entry(KIND_PTX, 52, 0x11, TEXT, 0, &[0; 16]);
        let lz4 = lz4_flex::block::compress(TEXT);
        let lz4 = entry(KIND_PTX, 60, 0x11 | FLAG_LZ4, &lz4, TEXT.len(), &[0; 16]);
        let zstd = entry(
            KIND_PTX,
            70,
            0x11 | FLAG_ZSTD,
            &zstd(TEXT),
            TEXT.len(),
            &[0; 16],
        );
        for one in [plain, lz4, zstd, concatenation()] {
            assert_eq!(ptx(&binary(&[one]), 90).as_deref(), Ok(TEXT));
        }
    }

    #[test]
    fn the_highest_that_the_device_takes() {
        let of = |sm, text: &[u8]| entry(KIND_PTX, sm, 0x11, text, 0, &[]);
        let elf = entry(2, 90, 0x11, b"machine code", 0, &[]);
        let binary = binary(&[of(52, b"52"), elf.clone(), of(100, b"100"), of(80, b"80")]);
        assert_eq!(ptx(&binary, 90).as_deref(), Ok(&b"80"[..]));
        assert_eq!(ptx(&binary, 70).as_deref(), Ok(&b"52"[..]));
        assert_eq!(ptx(&binary, 50), Err(Failure::NoPtx));
    }

    #[test]
    fn damaged_ones_are_errors() {
        let good = binary(&[concatenation(), entry(KIND_PTX, 52, 0x11, TEXT, 0, &[])]);
        for at in 0..good.len() {
            assert!(ptx(&good[..at], 90).is_err());
            for bit in [1, 0x80, 0xFF] {
                let mut changed = good.clone();
                changed[at] ^= bit;
                let _ = ptx(&changed, 90);
            }
        }
    }
}
