//! A CUDA driver in software: the C ABI of libcuda, running PTX on the CPU.

pub mod exec;
pub mod ir;
pub mod memory;
pub mod ptx;
