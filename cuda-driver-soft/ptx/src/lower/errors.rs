//! Collects errors in the operands of one instruction.
//!
//! Errors are collected before they are reported, because a form can have several candidates for its operands. If none
//! fits, only the errors of the last candidate with the same number of operands are reported.

use crate::ast::Pos;
use crate::diagnostics::Severity;
use crate::names::Name;

/// Errors in the operands of one instruction.
#[derive(Default)]
pub(super) struct OperandErrors {
    /// True if a type, width or count does not match.
    pub(super) mismatch: bool,
    /// Undeclared names.
    pub(super) unknown: Vec<(Name, Pos)>,
    /// Errors with a message of their own.
    pub(super) messages: Vec<(Severity, Pos, String)>,
}

impl OperandErrors {
    pub(super) fn is_empty(&self) -> bool {
        !self.mismatch && self.unknown.is_empty() && self.messages.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.mismatch = false;
        self.unknown.clear();
        self.messages.clear();
    }
}
