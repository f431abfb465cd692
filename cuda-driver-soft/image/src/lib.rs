//! What a program hands over as a kernel image: PTX text, fat binaries, linked images.

#![forbid(unsafe_code)]

pub mod cubin;
pub mod fatbin;
pub mod host;
pub mod link;

/// A kernel image, by its first bytes.
#[derive(Clone, Debug)]
pub enum Image {
    /// PTX text, or what claims to be.
    Text(Vec<u8>),
    /// A fat binary: header and entries.
    FatBinary(Vec<u8>),
    /// An ELF file: a linked image of ours, or machine code, which cannot run here.
    Elf(Vec<u8>),
}

/// First bytes of an ELF file.
pub const ELF_MAGIC: [u8; 4] = [0x7F, b'E', b'L', b'F'];
/// First bytes of a fat binary.
pub const FATBIN_MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
/// First bytes of the structure that a compiler puts around the address of a fat binary.
pub const WRAPPER_MAGIC: [u8; 4] = 0x4662_43B1_u32.to_le_bytes();

impl Image {
    /// The image in a whole file, or in bytes whose length is known.
    pub fn of(bytes: Vec<u8>) -> Image {
        match bytes.first_chunk::<4>() {
            Some(&ELF_MAGIC) => Image::Elf(bytes),
            Some(&FATBIN_MAGIC) => Image::FatBinary(bytes),
            _ => Image::Text(bytes),
        }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Image::Text(bytes) | Image::FatBinary(bytes) | Image::Elf(bytes) => bytes,
        }
    }
}
