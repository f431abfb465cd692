//! Objects: contexts, streams, events, memory, modules and the other objects of the CUDA manual. The file of each type
//! has the table of its live objects. A context does not list the objects that it owns. When it ends, `call::teardown`
//! removes its modules, textures, arrays and memory; its streams and events stay until the program destroys them.
#![deny(unsafe_code)] // one exception, in `ipc`: counters in memory shared by processes

pub(crate) mod array;
pub(crate) mod array_format;
pub(crate) mod cluster;
pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod external;
pub(crate) mod foreign_use;
pub(crate) mod freed;
pub(crate) mod function;
pub(crate) mod graph_memory;
pub(crate) mod green;
pub(crate) mod ipc;
pub(crate) mod jit;
mod jit_info;
pub(crate) mod kernel_attribute;
pub(crate) mod leak;
pub(crate) mod library;
mod limits;
pub(crate) mod linker;
pub(crate) mod managed;
pub(crate) mod mappings;
pub(crate) mod memory;
pub(crate) mod module;
mod no_ptx;
pub(crate) mod notification;
pub(crate) mod occupancy;
pub(crate) mod pending_free;
pub(crate) mod place;
pub(crate) mod pool;
pub(crate) mod primary;
pub(crate) mod reference;
pub(crate) mod register_limit;
pub(crate) mod resource;
pub(crate) mod sparse;
pub(crate) mod stream;
pub(crate) mod stream_attribute;
pub(crate) mod tensor_map;
pub(crate) mod texture;
pub(crate) mod user_object;
pub(crate) mod virtual_memory;
