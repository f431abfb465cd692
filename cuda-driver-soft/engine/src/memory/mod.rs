//! Device memory: one address space for all devices and contexts of the process.
//!
//! A device address is a number that the host cannot dereference: it comes from a range of addresses that is reserved
//! without access rights, so a host program that follows a device pointer crashes, as it does with a GPU. The bytes are
//! elsewhere, in the *backing*. Each device allocation occupies whole pages of 64 KiB, and a table leads from a page to
//! the `Record` of the allocation, which has its exact length and the distance to the backing. So each access is
//! checked to the byte, without a signal handler, and safely while other threads allocate and free. The main modules:
//!
//! * `address_space` is the interface: allocate, map, register, free, find, copy, fill;
//! * `index` holds the allocations in order, behind a lock; `pages` finds the `Record` of an address without one;
//! * `usage` counts bytes by owner, and refuses allocations that exceed a quota;
//! * `epochs` keeps a freed backing until no work that might access it is in flight;
//! * `written` tracks initialised bytes, for a checker;
//! * `access` does every load and store of device memory, except those of compiled kernels. Kernels may race, so Rust's
//!   own loads and stores must not be used for memory that another thread may be writing.
//!
//! Pinned, managed and registered memory keeps its host address: the distance to the backing is zero.

pub(crate) mod access;
mod address_space;
mod addresses;
mod allocation;
pub(crate) mod buffer;
mod epochs;
mod errors;
pub mod host;
mod index;
mod pages;
mod physical;
mod record;
mod reserve;
pub mod shared;
mod usage;
pub(crate) mod warp;
pub(crate) mod written;
mod zeroed;

pub use address_space::{AddressSpace, address_space};
pub(crate) use address_space::{InFlight, TrackedWrites};
pub use allocation::{Access, Allocation, AllocationKind, Freed};
pub use errors::{AlreadyRegistered, BadRange, NotAnAllocation, OutOfMemory};
pub(crate) use pages::PAGE as ALLOCATION_ALIGN;
pub use physical::Physical;
pub use usage::Quota;
