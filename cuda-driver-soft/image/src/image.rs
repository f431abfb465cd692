//! Classifies kernel images by their first bytes: PTX text, fat binary, or ELF.

use crate::elf::ELF_MAGIC;
use crate::fatbin::FATBIN_MAGIC;

/// A kernel image, classified by its first bytes.
#[derive(Clone, Debug)]
pub enum Image {
    /// PTX text, or anything else that is neither a fat binary nor an ELF file.
    Text(Vec<u8>),
    /// A fat binary: header and entries.
    FatBinary(Vec<u8>),
    /// An ELF file: a linked image, or machine code, which cannot run here.
    Elf(Vec<u8>),
}

impl Image {
    /// Classifies the bytes of a whole image.
    pub fn of(bytes: Vec<u8>) -> Image {
        match bytes.first_chunk::<4>() {
            Some(&ELF_MAGIC) => Image::Elf(bytes),
            Some(&FATBIN_MAGIC) => Image::FatBinary(bytes),
            _ => Image::Text(bytes),
        }
    }

    /// Returns the bytes of the image.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Image::Text(bytes) | Image::FatBinary(bytes) | Image::Elf(bytes) => bytes,
        }
    }
}
