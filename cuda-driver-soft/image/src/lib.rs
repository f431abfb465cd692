//! Kernel images: the formats that programs pass to `cuModuleLoadData` and to the linker.
//!
//! | image | read by |
//! | --- | --- |
//! | PTX text | (the `ptx` crate) |
//! | fat binaries; only the PTX with the highest architecture that the device runs is used | [`fatbin`] |
//! | linked images, which this driver's linker writes | [`cubin`] |
//! | host objects and libraries with fat binaries | [`fat_binaries`] |
//! | machine code, of which only the names of kernels are read | [`kernels`] |
//!
//! [`Image::of`] recognises an image by its first bytes. [`link`] links several PTX modules into one.
//!
//! ```
//! use cuda_driver_soft_image::{Image, cubin};
//!
//! let source = cubin::Source {
//!     name: "a.ptx".to_owned(),
//!     text: b".version 8.0".to_vec(),
//!     most_registers: None,
//! };
//! let linked = cubin::write(&[source.clone()], Some(90));
//! assert!(matches!(Image::of(linked.clone()), Image::Elf(_)));
//! assert_eq!(cubin::read(&linked).unwrap().sources, [source]);
//! ```
//!
//! # Structure
//!
//! A module uses modules below it in this table, and never one above it:
//!
#![doc = include_str!("rooms.md")]
#![forbid(unsafe_code)]
// The crate writes nothing to the console.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod bytes;
pub mod cubin;
mod definitions;
mod elf;
pub mod fatbin;
mod host_object;
mod image;
pub mod link;
mod machine_code;

pub use definitions::{Conflict, Definitions};
pub use elf::ELF_MAGIC;
pub use fatbin::{FATBIN_MAGIC, WRAPPER_MAGIC};
pub use host_object::{ARCHIVE_MAGIC, fat_binaries};
pub use image::Image;
pub use machine_code::kernels;
