//! Forms: opcodes with one set of modifiers.

use super::operand::OperandSpec;
use super::row::Lowering;

/// An opcode with one set of modifiers.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The opcode without modifiers.
    pub(crate) root: &'static str,
    /// The name in messages: the opcode with the modifiers that ptxas counts as part of its name.
    pub(crate) name: String,
    /// The possible meanings. The number and the types of the operands select one.
    pub(crate) candidates: Vec<Candidate>,
    /// True if the number and the kinds of the operands are not checked, because the opcode is not implemented.
    pub(crate) any_operands: bool,
}

/// One meaning of a form: its operands and its lowering, and the PTX version and architecture that it requires.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) operands: Vec<OperandSpec>,
    pub(crate) lowering: Lowering,
    /// Index of its row in the table; `None` if the table does not have it.
    pub(crate) row: Option<usize>,
    /// Lowest PTX version that has the instruction, times ten.
    pub(crate) ptx: u32,
    /// Lowest architecture that has the instruction; 0 for all.
    pub(crate) sm: u32,
}

impl Candidate {
    /// Returns the order in which modules of this PTX version, times ten, and this architecture try candidates: first
    /// those whose requirements they meet, then those that require the least.
    pub(crate) fn rank(&self, ptx: u32, sm: u32) -> (u32, u32) {
        (self.ptx.max(ptx), self.sm.max(sm))
    }
}

/// The messages for an opcode that has no form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormErrors(pub(crate) Vec<String>);
