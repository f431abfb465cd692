//! Findings about files of driver libraries. They are read from paths and headers, without loading a library.

use serde::{Deserialize, Serialize};

/// A file named like the driver's library: its path and, if it can be read, its header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryFile {
    /// The path where it was found.
    pub path: String,
    /// The path with all symbolic links resolved, if it differs.
    pub real_path: Option<String>,
    /// The role of the library, derived from its folder.
    pub role: LibraryRole,
    /// The driver's version in the real file's name; `None` if that name has none.
    pub version: Option<String>,
    /// The header of the file; `None` if it is not an ELF file or cannot be read.
    pub elf: Option<Elf>,
}

/// The role of a library, derived from its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibraryRole {
    /// The library of an installed driver.
    Driver,
    /// The library of a newer driver for an older kernel module, from NVIDIA's forward compatibility package.
    Compatibility,
    /// A toolkit's stub.
    Stub,
}

/// The part of an ELF header that determines which programs can load the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elf {
    /// The class of the file: 32 or 64 bits.
    pub bits: u32,
    /// The processor, in the words of [`std::env::consts::ARCH`]; `processor N`, with the header's number, for others.
    pub architecture: String,
}
