//! Tests of the driver calls, one source for the software driver and NVIDIA's: `CUDA_DRIVER` chooses the driver under
//! test.
//!
//! Tests that change the state of the process (faults, `cuInit`, the primary context) run in a child process.

#![allow(clippy::incompatible_msrv)] // the software driver, which tests use, needs a newer compiler

#[path = "../common/mod.rs"]
mod common;

mod argument_order;
mod array_objects;
mod arrays;
mod asynchronous;
mod atomics;
mod batches;
mod blocking;
mod capture;
mod capture_objects;
mod capture_rules;
mod clusters;
mod context_objects;
mod contexts;
mod control_flow;
mod conversions;
mod cooperative;
mod cuda_2;
mod device_objects;
mod devices;
mod endless_kernels;
mod error_names;
mod events;
mod fault_without_context;
mod faults;
mod float_arithmetic;
mod function_pointers;
mod graph_memory;
mod graph_nodes;
mod graph_objects;
mod graph_tools;
mod graph_updates;
mod graphs;
mod green_contexts;
mod heap;
mod integer_arithmetic;
mod interop_objects;
mod interprocess;
mod ipc_objects;
mod jit;
mod jit_objects;
mod launch_attribute_objects;
mod launch_attributes;
mod launch_objects;
mod launches;
mod libraries;
mod library_objects;
mod limit_values;
mod limits;
mod linear_algebra;
mod linker;
mod linker_objects;
mod logs;
mod managed_memory;
mod managed_objects;
mod matrices;
mod memory;
mod memory_objects;
mod memory_operations;
mod memory_spaces;
mod modules;
mod no_context;
mod occupancy;
mod order;
mod parameters;
mod peer_objects;
mod pitched_objects;
mod pool_kinds;
mod pool_objects;
mod pools;
mod primary_context;
mod printing;
mod proc_address;
#[cfg(unix)]
mod process_exit;
mod rare_instructions;
mod registers;
mod slices;
mod small_products;
mod start;
mod stream_attributes;
mod streams;
mod tensor_copies;
mod texture_objects;
mod textures;
mod usage_counts;
mod virtual_memory;
mod virtual_memory_objects;
mod warps;
