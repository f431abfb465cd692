//! The driver's objects and rules, without C: what a call does once its arguments are values.
//!
//! [`process`] knows whether the driver may be called at all; [`context`] has the stack of current contexts, [`lanes`] and
//! [`work`] the order of asynchronous work; [`capture`] turns it into the nodes of a [`graph`]. The other files are the groups of the manual. Handles are numbers that are
//! looked up ([`handle`]), never addresses that are followed.

pub(crate) mod array;
pub(crate) mod attribute;
pub(crate) mod capture;
pub(crate) mod cluster;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod handle;
mod hash;
pub(crate) mod ipc;
pub(crate) mod jit;
mod lanes;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod memory_operation;
pub(crate) mod module;
pub(crate) mod occupancy;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod profile;
pub(crate) mod rect;
pub(crate) mod reference;
pub(crate) mod stream;
pub(crate) mod stream_attribute;
pub(crate) mod tensor_map;
pub(crate) mod texture;
pub(crate) mod virtual_memory;
pub(crate) mod work;
pub(crate) mod workers;
