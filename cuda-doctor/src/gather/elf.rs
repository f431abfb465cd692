//! Reads the headers of ELF files, which name the processor that a library is for.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::findings::Elf;

/// The length in bytes of the part of the header that ends with the number of the processor.
const LENGTH: usize = 20;

/// Reads the header of an ELF file; `None` if the file is not an ELF file or cannot be read.
pub(super) fn read(path: &Path) -> Option<Elf> {
    let mut header = [0; LENGTH];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    parse(&header)
}

fn parse(header: &[u8; LENGTH]) -> Option<Elf> {
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let bits = match header[4] {
        1 => 32,
        2 => 64,
        _ => return None,
    };
    let machine = [header[18], header[19]];
    let number = match header[5] {
        2 => u16::from_be_bytes(machine),
        _ => u16::from_le_bytes(machine),
    };
    let architecture = match number {
        3 => "x86".to_owned(),
        21 => "powerpc64".to_owned(),
        40 => "arm".to_owned(),
        62 => "x86_64".to_owned(),
        183 => "aarch64".to_owned(),
        other => format!("processor {other}"),
    };
    Some(Elf { bits, architecture })
}
