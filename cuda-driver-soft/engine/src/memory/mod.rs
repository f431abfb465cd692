//! Device memory: one address space for all devices and contexts of the process.
//!
//! An address of device memory is a number that the host cannot dereference: the range it comes from is reserved
//! without access rights, so that a host program which follows a device pointer crashes here as it does beside a GPU.
//! The bytes are elsewhere, in the *backing*. Each 64 KiB page of the address space knows the one allocation that lies
//! on it; the allocation's [`Record`] knows its exact length and the distance to the backing. So every access is checked
//! to one byte, with no signal handler, and safely beside allocation and free on other threads:
//!
//! * `space` is the public face: allocate, free, find, copy, fill;
//! * `pages` goes from an address to a [`Record`] without a lock;
//! * `epochs` keeps a freed backing until no work that might still touch it is in flight;
//! * `access` owns every load and store of device memory that kernels do. Kernels race as they please: Rust's own loads
//!   and stores must not be used for memory that another thread may be writing.
//!
//! Pinned, managed and registered memory keeps its host address: the distance to the backing is zero.

pub(crate) mod access;
pub(crate) mod buffer;
mod epochs;
mod errors;
pub mod host;
mod pages;
mod reserve;
pub mod shared;
mod space;
pub(crate) mod warp;
mod zeroed;

pub use errors::{AlreadyRegistered, BadRange, NotAnAllocation, OutOfMemory};
pub use space::{
    Access, AddressSpace, Allocation, Freed, InFlight, Kind, Physical, Quota, Record, space,
};
