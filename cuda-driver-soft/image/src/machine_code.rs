//! The names of the kernels in machine code, for messages. This driver cannot run machine code.

use crate::elf::{ELF_MAGIC, sections};
use crate::fatbin;

/// First part of the name of a section with code; the rest is the name of the kernel or function.
const CODE: &[u8] = b".text.";

/// Returns the names of the kernels and functions whose machine code is in an ELF file, or in the first ELF entry of a
/// fat binary. Damaged sections are skipped.
pub fn kernels(image: &[u8]) -> Vec<String> {
    if image.starts_with(&ELF_MAGIC) {
        return of_elf(image);
    }
    // All entries contain the same kernels, for different architectures.
    let first = fatbin::machine_code(image);
    first.map_or(Vec::new(), |elf| of_elf(&elf))
}

fn of_elf(file: &[u8]) -> Vec<String> {
    let named = sections(file).into_iter().flatten().flatten();
    named
        .filter_map(|section| section.name().strip_prefix(CODE))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::{HEADER_BYTES, IDENT, SECTION_BYTES};

    /// Returns an ELF file with empty sections of these names; the first is the table of names.
    fn elf(names: &[&str]) -> Vec<u8> {
        let mut text = vec![0];
        let mut table = Vec::new();
        for name in names {
            let mut header = [0; SECTION_BYTES];
            header[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            table.push(header);
            text.extend(name.bytes().chain([0]));
        }
        let mut file = vec![0; HEADER_BYTES];
        file[..IDENT.len()].copy_from_slice(&IDENT);
        let table_at = HEADER_BYTES + text.len();
        file[40..48].copy_from_slice(&(table_at as u64).to_le_bytes());
        file[58..60].copy_from_slice(&(SECTION_BYTES as u16).to_le_bytes());
        file[60..62].copy_from_slice(&(names.len() as u16).to_le_bytes());
        table[0][24..32].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
        table[0][32..40].copy_from_slice(&(text.len() as u64).to_le_bytes());
        file.extend(text);
        file.extend(table.concat());
        file
    }

    #[test]
    fn kernels_are_named_by_their_sections() {
        let file = elf(&[".shstrtab", ".text.scale", ".nv.info.scale", ".text.add"]);
        assert_eq!(kernels(&file), ["scale", "add"]);
        // Every shorter file is damaged, and yields no additional names.
        for length in 0..file.len() {
            assert!(kernels(&file[..length]).len() <= 2);
        }
        assert_eq!(kernels(b"text"), Vec::<String>::new());
    }
}
