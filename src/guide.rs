//! Guide: pages about topics that concern more than one object.
//!
//! | page | topic |
//! | --- | --- |
//! | [From .cu to a launch](from_cu_to_a_launch) | compiling kernels to PTX, and choosing their architecture |
//! | [Driver or Runtime API](driver_or_runtime) | differences, contexts, and using both in one process |
//! | [Safety](safety) | which calls are `unsafe` and why, threads, drop order, faults |
//! | [Using it in your CI](ci) | tests on the software driver |
//! | [Testing kernels without a GPU](testing_kernels) | tests of results, of counts, and of the absence of races |

#[doc = include_str!("guide/from_cu_to_a_launch.md")]
pub mod from_cu_to_a_launch {}

#[doc = include_str!("guide/driver_or_runtime.md")]
pub mod driver_or_runtime {}

#[doc = include_str!("guide/safety.md")]
pub mod safety {}

#[doc = include_str!("guide/ci.md")]
pub mod ci {}

#[doc = include_str!("guide/testing_kernels.md")]
pub mod testing_kernels {}
