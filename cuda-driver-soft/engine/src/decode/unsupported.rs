//! The error for an instruction that the engine does not support.

use ptx::ir::{Inst, Op};
use std::fmt;

/// An instruction that the engine does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnsupportedInst {
    /// The instruction in PTX, with its modifiers.
    pub(crate) opcode: String,
    /// Line in the PTX source, from 1.
    pub(crate) line: u32,
}

impl UnsupportedInst {
    pub(super) fn new(inst: &Inst) -> Self {
        UnsupportedInst {
            opcode: match &inst.op {
                Op::Unsupported { opcode } => opcode.clone(),
                op => op.to_string(),
            },
            line: inst.line,
        }
    }
}

impl fmt::Display for UnsupportedInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (PTX line {})", self.opcode, self.line)
    }
}
