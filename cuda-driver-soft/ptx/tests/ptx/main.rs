//! The PTX room against what NVIDIA's assembler accepts and refuses.
//!
//! The verdicts are stored here, so that no assembler is needed to run the tests. With `PTXAS=/path/to/ptxas` they are
//! compared with a fresh run of it as well, and what differs is printed.

extern crate cuda_driver_soft_ptx as ptx;

mod forms;
mod lowering;
mod operands;
mod referee;
mod robustness;
mod verdicts;
