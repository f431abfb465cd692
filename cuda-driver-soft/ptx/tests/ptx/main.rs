//! Tests of the PTX loader against the verdicts of NVIDIA's assembler.
//!
//! The verdicts are stored here, so that the tests need no assembler. With `PTXAS=/path/to/ptxas`, they are also
//! compared with the verdicts of that assembler, and differences are printed.

extern crate cuda_driver_soft_ptx as ptx;

mod display;
mod forms;
mod lowering;
mod operands;
mod referee;
mod robustness;
mod verdicts;
