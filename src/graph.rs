//! Graphs: work that is described once and launched many times.
//!
//! A [`Graph`] is a description: nodes, and edges that order them. It is recorded from a stream
//! ([`Stream::capture`](crate::Stream::capture)) or built node by node. [`instantiate`](crate::Graph::instantiate)
//! makes a [`GraphExec`] from it, which streams launch.
//!
//! ```
//! # use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
//! use cuda_driver::Graph;
//! use cuda_driver::graph::FillParams;
//! # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
//! # cuda_driver::init()?;
//! # let context = Context::create(Device::first()?)?;
//! # let module = Module::from_ptx(&context, "
//! #     .version 7.0
//! #     .target sm_52
//! #     .address_size 64
//! #     .visible .entry add(.param .u64 p, .param .u32 n) {
//! #         .reg .u64 %p; .reg .u32 %v, %n;
//! #         ld.param.u64 %p, [p]; ld.param.u32 %n, [n];
//! #         ld.global.u32 %v, [%p]; add.u32 %v, %v, %n; st.global.u32 [%p], %v;
//! #         ret;
//! #     }")?;
//! # let add = module.function("add")?;
//! let stream = Stream::new(&context)?;
//! let mut value = DeviceBuffer::<u32>::zeroed(&context, 1)?;
//!
//! let graph = Graph::new(&context)?;
//! let fill = graph.add_fill(&[], FillParams::u32(value.as_mut_slice(), 40)?)?;
//! // SAFETY: `add` takes an address and a number.
//! let kernel = unsafe { graph.add_kernel(&[fill], &add, LaunchConfig::default(), (value.ptr(), 1u32)) }?;
//!
//! let exec = graph.instantiate()?;
//! // SAFETY: the buffer outlives the launch, and no other work uses it.
//! unsafe { exec.launch(&stream) }?;
//! stream.synchronize()?;
//! assert_eq!(value.to_vec()?, [41]);
//!
//! // SAFETY: as above.
//! unsafe { exec.set_kernel(kernel, &add, LaunchConfig::default(), (value.ptr(), 2u32)) }?;
//! // SAFETY: as above.
//! unsafe { exec.launch(&stream) }?;
//! stream.synchronize()?;
//! assert_eq!(value.to_vec()?, [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safety
//!
//! Mainly two things are `unsafe`:
//!
//! - Describing a kernel: the driver copies as many bytes as the kernel's parameters have, so the arguments must have
//!   the parameters' types. Other parameters of nodes are `unsafe`, too, if they contain addresses or handles that the
//!   driver does not check.
//! - Launching: [`GraphExec::launch`](crate::GraphExec::launch) has the safety conditions of all kernels and copies of
//!   the graph. Nodes hold addresses, not buffers, so that the same buffer can be in many nodes and can be used between
//!   launches.
//!
//! Most other calls are safe: a graph keeps the contexts, modules, events and host functions of the nodes that are
//! added to it alive, because the driver does not check that they still exist. An executable graph keeps them, too, so
//! the graph may be dropped before it. A captured graph does not keep the modules of its kernels: see
//! [`Graph::keep`](crate::Graph::keep).
//!
//! # Threads
//!
//! The driver does not synchronise access to graphs. A [`Graph`] and a [`GraphExec`] can be moved to another thread,
//! but not shared between threads without a mutex.

mod alloc;
mod batch;
mod capture;
mod child;
mod conditional;
mod copy;
mod device_memory;
mod dot;
mod error;
mod event;
mod exec;
mod fill;
mod host;
mod instantiate;
mod kept;
mod kernel;
mod node;
mod owner;
mod semaphore;
mod update;
mod user_object;

pub use capture::exchange_capture_mode;
pub use child::ChildGraph;
pub use conditional::{Conditional, ConditionalHandle};
pub use copy::CopyParams;
pub use error::GraphError;
pub use exec::GraphExec;
pub use fill::FillParams;
pub use node::{Edge, Node};
pub use owner::Graph;
pub use user_object::UserObject;
