//! Functions that PTX declares and the driver provides: `vprintf`, `__assertfail`, `malloc`, `free`,
//! `cudaGraphSetConditional`.

use super::printf::Conversion;
use crate::code::action::Builtin;
use crate::code::machine::Machine;
use crate::conditional;
use crate::fault::FaultKind;
use crate::memory::{AllocationKind, Quota, access, address_space};
use ptx::ir::Space;

/// Number of bytes after which a string in device memory is cut off.
const MAX_TEXT: u64 = 64 * 1024;

/// Approximate number of host bytes that a freed allocation takes in addition to its own.
const FREED_OVERHEAD: u64 = 512;

/// Runs a builtin for one lane and returns its result.
pub(crate) fn run(m: &mut Machine<'_>, builtin: Builtin, args: &[u64; 5], lane: usize) -> Result<u64, FaultKind> {
    match builtin {
        // The programming guide specifies -1 for a null format.
        Builtin::Vprintf if args[0] == 0 => Ok(u64::from(-1i32 as u32)),
        Builtin::Vprintf => {
            let format = text(m, args[0], lane)?;
            let (line, count) = format_values(m, &format, args[1], lane)?;
            m.output.extend_from_slice(&line);
            // The work grows with the length of the text, so count it as instructions.
            m.steps += (format.len() + line.len()) as u64 / 4;
            Ok(count)
        }
        Builtin::Assertfail => {
            let (message, file, function) = (
                text(m, args[0], lane)?,
                text(m, args[1], lane)?,
                text(m, args[3], lane)?,
            );
            let [message, file, function] = [message, file, function].map(|t| String::from_utf8_lossy(&t).into_owned());
            let line = args[2] as u32;
            Err(FaultKind::Assert {
                file,
                line,
                function,
                message,
                lanes: 1 << lane,
            })
        }
        Builtin::Malloc => {
            let bytes = args[0];
            let quota = Quota {
                owners: &[m.owner],
                most: m.heap_limit,
            };
            let heap = |bytes| address_space().alloc_within(AllocationKind::Heap, m.owner, bytes, quota);
            // `malloc(0)` returns an address that no other allocation has.
            Ok(heap(bytes.max(1)).unwrap_or(0))
        }
        Builtin::SetConditional => {
            // An H200 reports an illegal address for a number that is not a handle.
            let set = conditional::set(args[0], args[1] as u32);
            set.then_some(0).ok_or(FaultKind::IllegalAddress {
                address: args[0],
                size: 4,
                write: true,
                space: Space::Global,
            })
        }
        Builtin::Free => {
            let freed = address_space().free_if(args[0], |a| a.kind == AllocationKind::Heap);
            match freed {
                Ok(freed) => {
                    m.freed += freed.bytes + FREED_OVERHEAD;
                    // A warp that frees much memory pauses early: its worker can end then, which releases the memory.
                    m.steps += freed.bytes / 1024;
                    Ok(0)
                }
                Err(not) if not.inside.is_none() && address_space().reserves(args[0]) => {
                    Err(FaultKind::FreedTwice { address: args[0] })
                }
                // Freeing a null pointer, host memory, or an address in a live allocation that `malloc` did not return
                // has no effect.
                _ => Ok(0),
            }
        }
    }
}

/// Reads a value of 1, 4 or 8 bytes at a generic address.
fn value(m: &mut Machine<'_>, address: u64, bytes: u64, lane: usize) -> Result<u64, FaultKind> {
    let (host, _) = m
        .spaces
        .place_lane(Space::Generic, address, lane, (bytes, bytes), false)
        .map_err(|refusal| m.fault_of(refusal, bytes as u32, false))?;
    // SAFETY: `place_lane` returned an aligned place that is valid for the access.
    Ok(unsafe {
        match bytes {
            1 => u64::from(access::load8(host)),
            4 => u64::from(access::load32(host)),
            _ => access::load64(host),
        }
    })
}

/// Reads a string that ends with a NUL byte, or its first [`MAX_TEXT`] bytes if it is longer.
fn text(m: &mut Machine<'_>, address: u64, lane: usize) -> Result<Vec<u8>, FaultKind> {
    let mut text = Vec::new();
    for i in 0..MAX_TEXT {
        match value(m, address.wrapping_add(i), 1, lane)? as u8 {
            0 => break,
            byte => text.push(byte),
        }
    }
    Ok(text)
}

/// Formats like `printf`, and returns the text and the number of values in it. The values are in a buffer at `args`, 4
/// or 8 bytes each, aligned to their size.
fn format_values(m: &mut Machine<'_>, format: &[u8], args: u64, lane: usize) -> Result<(Vec<u8>, u64), FaultKind> {
    let mut out = Vec::new();
    let (mut at, mut count) = (args, 0);
    let mut rest = format;
    while let Some(start) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(&rest[..start]);
        rest = &rest[start + 1..];
        let Some(spec) = Conversion::parse(&mut rest, |bytes| {
            at = aligned(at, bytes);
            let value = value(m, at, bytes, lane);
            at = at.wrapping_add(bytes);
            value
        }) else {
            out.push(b'%');
            continue;
        };
        let spec = spec?;
        if spec.letter == b'%' {
            out.push(b'%');
            continue;
        }
        let bytes = if spec.is_wide() { 8 } else { 4 };
        at = aligned(at, bytes);
        let bits = value(m, at, bytes, lane)?;
        at = at.wrapping_add(bytes);
        count += 1;
        let string = match (spec.letter, bits) {
            (b's', 0) => b"(null)".to_vec(),
            (b's', address) => text(m, address, lane)?,
            _ => Vec::new(),
        };
        spec.write(bits, &string, &mut out);
    }
    out.extend_from_slice(rest);
    Ok((out, count))
}

/// Returns the address rounded up to a multiple of `bytes`, a power of two. Wraps, because the kernel may pass any
/// address.
fn aligned(address: u64, bytes: u64) -> u64 {
    address.wrapping_add(bytes - 1) & !(bytes - 1)
}
