//! Streams as queues: the scheduler of all work, the order of work within a context, stream capture, and the edges
//! between the nodes of graphs.
#![forbid(unsafe_code)]

pub(crate) mod capture;
pub(crate) mod edge;
pub(crate) mod order;
pub(crate) mod scheduler;
pub(crate) mod streams;
pub(crate) mod work;
