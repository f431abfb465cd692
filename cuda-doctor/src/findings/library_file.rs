//! Findings about files of driver libraries, which were read but not loaded.

use serde::{Deserialize, Serialize};

/// A file named like the driver's library. It was read, not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryFile {
    /// The path where it was found.
    pub path: String,
    /// The path without links, if it differs.
    pub real_path: Option<String>,
    /// The role that its folder gives it.
    pub role: LibraryRole,
    /// The driver's version in the name of the file.
    pub version: Option<String>,
    /// The header of the file; `None` if it is not an ELF file or cannot be read.
    pub elf: Option<Elf>,
}

/// The role of a library, by its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibraryRole {
    /// A driver's library.
    Driver,
    /// A newer driver's library for an older kernel module: NVIDIA's forward compatibility package.
    Compatibility,
    /// A toolkit's stub.
    Stub,
}

/// The part of an ELF header that says which programs can load the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elf {
    /// 32 or 64.
    pub bits: u32,
    /// The processor, in the words of [`std::env::consts::ARCH`], or the header's number.
    pub architecture: String,
}
