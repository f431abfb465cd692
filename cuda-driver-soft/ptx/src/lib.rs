//! PTX text to a typed intermediate representation, with the checks and the messages of NVIDIA's `ptxas`.
//!
//! [`load()`] parses and checks a module. Its result holds an [`ir::Module`], whose function bodies are lowered when
//! they are first used; all errors, including those in bodies, are found by [`load()`].
//!
//! ```
//! use cuda_driver_soft_ptx::{FailureKind, Limits, load};
//!
//! let text = b".version 8.0 .target sm_80 .address_size 64
//!     .entry answer() { .reg .u32 %r; add.u32 %r, 40, 2; ret; }";
//! let loaded = load(text, &Limits::default())?;
//! let body = loaded.module.functions[0].body().expect("a kernel has a body");
//! assert_eq!(body.insts.len(), 2);
//!
//! let failure = load(b".version 99.0", &Limits::default()).unwrap_err();
//! assert_eq!(failure.kind, FailureKind::UnsupportedVersion);
//! # Ok::<(), cuda_driver_soft_ptx::Failure>(())
//! ```
//!
//! | step | module |
//! |--|--|
//! | text to tokens | `lexer` |
//! | tokens to an abstract syntax tree of flat vectors (`ast`); a syntax error ends loading here | `parser` |
//! | module scope: variables, functions, initial values | `module`, with the result in `unit` |
//! | bodies to [`ir::Body`], with every name and type checked | `lower` |
//!
//! `forms` is the instruction table: all opcodes with their modifiers and operands. [`table_rows`], [`samples`],
//! [`every_form`], [`modifier_classes`] and [`unimplemented_opcodes`] show it to tests and to generated documentation.
//!
#![doc = include_str!("rooms.md")]
#![forbid(unsafe_code)]
// The driver writes through `host::console` only; this crate writes nothing.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod ast;
mod diagnostics;
mod forms;
mod hash;
pub mod ir;
mod lexer;
mod limits;
mod load;
mod lower;
mod module;
mod names;
mod parser;
mod requirement;
mod scopes;
mod specials;
mod unit;

pub use diagnostics::{Diagnostic, DiagnosticCode, Severity};
pub use forms::{
    Sample, TableRow, UnimplementedOpcode, every_form, modifier_classes, samples, table_rows, unimplemented_opcodes,
};
pub use limits::Limits;
pub use load::{Failure, FailureKind, Loaded, NOT_RECOGNIZED, load};
pub use module::PROVIDED_FUNCTIONS;
