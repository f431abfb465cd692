//! Decoded code: instructions with their handlers and operands, and the state that handlers work on.
//!
//! | file | |
//! | --- | --- |
//! | `registers` | the registers of a frame, one row of 32 values each |
//! | `machine` | the worker's state that handlers see |
//! | `inst` | one instruction, and the type of its handlers |
//! | `isa`, `handlers` | the instruction sets, and the compilation of a handler for each |
//! | `action` | instructions that the warp's scheduler runs |
//! | `collective`, `matrix`, `tensor`, `texture` | operands of such instructions |
//! | `constant` | slots that no instruction writes |
//! | `function` | a whole function |
//! | `compiled`, `share` | machine code of a function, and the share of its instructions that run as machine code |
//! | `site`, `watch` | the origin of instructions, and the observers that see them run |

pub(crate) mod action;
pub(crate) mod collective;
pub(crate) mod compiled;
pub(crate) mod constant;
pub(crate) mod function;
pub(crate) mod handlers;
pub(crate) mod inst;
pub(crate) mod isa;
pub(crate) mod machine;
pub(crate) mod matrix;
pub(crate) mod registers;
pub(crate) mod share;
pub(crate) mod site;
pub(crate) mod tensor;
pub(crate) mod texture;
pub(crate) mod watch;
