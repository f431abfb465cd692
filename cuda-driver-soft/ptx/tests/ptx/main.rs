//! Tests of the PTX loader: its verdicts against those of NVIDIA's assembler `ptxas` (`forms`, `operands`,
//! `requirements`, `verdicts`), its intermediate representation (`lowering`, `display`), and damaged and large texts
//! (`robustness`).
//!
//! The verdicts are stored here, except those of `requirements`, so that the other tests need no assembler. With
//! `PTXAS=/path/to/ptxas`, the loader is also compared with that assembler, and a test fails if they disagree.

extern crate cuda_driver_soft_ptx as ptx;

mod display;
mod forms;
mod lowering;
mod operands;
mod referee;
mod requirements;
mod robustness;
mod verdicts;
