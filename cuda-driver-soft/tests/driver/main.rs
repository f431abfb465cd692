//! The driver, called as a C program calls it: through its symbols, right and wrong. What it must answer is what a real
//! driver was seen to answer.

mod common;
mod context;
mod memory;
mod module;
mod process;
mod stream;
mod vector_add;
