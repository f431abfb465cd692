//! Streams as queues: the scheduler of all work, the order of work within a context, and which queues are captured.
#![forbid(unsafe_code)]

pub(crate) mod capture;
pub(crate) mod edge;
pub(crate) mod scheduler;
pub(crate) mod streams;
pub(crate) mod work;
