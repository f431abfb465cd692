//! Findings about the driver: its library, version, missing functions and devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A driver, as far as it could be examined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The places to look for its library, in order, each with its result.
    pub attempts: Vec<Attempt>,
    /// The library that was loaded.
    pub library: Option<DriverLibrary>,
    /// The CUDA version that it supports: 12040 for 12.4.
    pub cuda_version: Option<u32>,
    /// The number of functions that were looked up: all of the CUDA version of the bindings.
    pub functions: usize,
    /// Functions that it does not export, by the CUDA version that introduced them, oldest first.
    pub missing: Vec<MissingFunctions>,
    /// True if `cuInit` succeeded.
    pub is_initialised: bool,
    /// The first call that failed, unless it concerns one device only.
    pub failure: Option<CallFailure>,
    /// The devices that the driver shows to this process.
    pub devices: Vec<Device>,
}

/// One place to look for the driver's library, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// A path, or a file name that the system's loader searches for.
    pub place: String,
    /// The result of loading it.
    pub result: AttemptResult,
}

/// The result of loading a library from one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// The library was loaded and is the driver.
    Loaded,
    /// The library is a toolkit's stub, which the search passes over.
    Stub {
        /// The stub's path.
        path: String,
    },
    /// The library could not be loaded, is not a driver, or made the process that loaded it crash or hang.
    Failed {
        /// The reason: the system's message, where there is one, or the end of the process.
        message: String,
    },
    /// The place was not tried, because an earlier one holds the driver, or because the process that examines the
    /// driver did not start or did not get that far.
    NotTried,
}

/// A library that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverLibrary {
    /// The place that led to it.
    pub place: String,
    /// The path of the file, with symbolic links resolved where possible; `None` if the library is not a file.
    pub path: Option<String>,
    /// The driver's version in the name of the file: `580.159.04`.
    pub version: Option<String>,
    /// The kind of library.
    pub kind: LibraryKind,
}

/// The kind of a library that exports the driver's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LibraryKind {
    /// NVIDIA's driver, or a library that takes its place.
    Real,
    /// The software driver of this project, which runs kernels on the CPU.
    Software,
    /// A toolkit's stub, for linking only.
    Stub,
}

/// Functions that a driver does not export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFunctions {
    /// The CUDA version that introduced them: 12040 for 12.4.
    pub since: u32,
    /// Their symbols.
    pub functions: Vec<String>,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailure {
    /// The function.
    pub function: String,
    /// The result code; 0 if the function was not called.
    pub code: u32,
    /// The result code's name in C; `None` for an unknown code.
    pub name: Option<String>,
    /// The failure in a sentence.
    pub message: String,
}

/// A device that the driver shows. Properties that the driver did not return are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The number for `cuDeviceGet`.
    pub ordinal: u32,
    /// The device's name.
    pub name: Option<String>,
    /// The device's UUID after `GPU-`, as `CUDA_VISIBLE_DEVICES` of NVIDIA's driver takes it.
    pub uuid: Option<String>,
    /// The address on the PCI bus: `0000:17:00.0`.
    pub pci_bus_id: Option<String>,
    /// The size of its memory in bytes.
    pub memory: Option<u64>,
    /// Attributes by the keys of [`ATTRIBUTES`](crate::attributes::ATTRIBUTES).
    pub attributes: BTreeMap<String, i32>,
}
