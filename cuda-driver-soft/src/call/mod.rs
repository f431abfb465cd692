//! The bodies of the driver's functions, whose arguments `abi` has read and converted. They combine the
//! [gate](crate::state::gate), captures, objects and operations.
#![forbid(unsafe_code)]

pub(crate) mod capture;
pub(crate) mod event;
pub(crate) mod free;
pub(crate) mod graph;
pub(crate) mod green;
pub(crate) mod init;
pub(crate) mod ipc;
pub(crate) mod lookup;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod pool;
pub(crate) mod stream;
pub(crate) mod submit;
pub(crate) mod synchronize;
pub(crate) mod teardown;
