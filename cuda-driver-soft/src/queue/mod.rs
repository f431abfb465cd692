//! Streams as queues: the scheduler of all work, the order of work within a context, and stream capture.
#![forbid(unsafe_code)]

pub(crate) mod capture;
pub(crate) mod edge;
pub(crate) mod order;
pub(crate) mod scheduler;
pub(crate) mod streams;
pub(crate) mod work;
