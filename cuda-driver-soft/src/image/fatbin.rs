//! Fat binaries: several kernel images in one, of which the PTX ones can run here.

/// Bytes of the header that every fat binary starts with.
pub(crate) const HEADER: usize = 16;

/// Kind of an entry: PTX text.
const KIND_PTX: u16 = 1;
/// Flag of an entry: the payload is an LZ4 block.
const FLAG_LZ4: u64 = 0x2000;
/// Flag of an entry: the payload is a zstd frame.
const FLAG_ZSTD: u64 = 0x8000;

/// Length of a fat binary in bytes, from its header.
pub(crate) fn length(header: &[u8; HEADER]) -> Option<usize> {
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
pub(crate) enum Failure {
    /// It is not well formed, or of a version that is not known.
    Malformed(&'static str),
    /// No entry is PTX that the device can take.
    NoPtx,
    /// The PTX is compressed in a way that cannot be read here.
    Compressed(&'static str),
}

/// One entry.
struct Entry<'a> {
    kind: u16,
    sm: u32,
    flags: u64,
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
    let payload = rest.get(header..header.checked_add(padded)?)?;
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
            payload: used,
            bytes,
        },
        &rest[header + padded..],
    ))
}

/// The PTX of the highest architecture that a device of `sm` can take.
pub(crate) fn ptx(binary: &[u8], sm: u32) -> Result<Vec<u8>, Failure> {
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
    let mut best: Option<Entry<'_>> = None;
    while !rest.is_empty() {
        let (entry, after) = entry(rest).ok_or(Failure::Malformed("an entry runs over the end"))?;
        rest = after;
        if entry.kind == KIND_PTX && entry.sm <= sm && best.as_ref().is_none_or(|b| b.sm < entry.sm)
        {
            best = Some(entry);
        }
    }
    let entry = best.ok_or(Failure::NoPtx)?;
    let mut text = decompress(&entry)?;
    while text.last() == Some(&0) {
        text.pop();
    }
    Ok(text)
}

fn decompress(entry: &Entry<'_>) -> Result<Vec<u8>, Failure> {
    let _ = entry.bytes;
    if entry.flags & FLAG_LZ4 != 0 {
        return Err(Failure::Compressed("LZ4"));
    }
    if entry.flags & FLAG_ZSTD != 0 {
        return Err(Failure::Compressed("zstd"));
    }
    Ok(entry.payload.to_vec())
}
