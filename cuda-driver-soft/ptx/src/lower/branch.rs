//! Lowers `bra` and `brx.idx`, and limits the branch and call targets of a function.

use crate::ast::{self, Inst, OperandKind, Pos, Selector, Span};
use crate::ir::{InstId, Op, Type};
use crate::scopes::Symbol;

use super::types::source;
use super::walker::{PendingBranch, Walker};

/// Number of targets that a function of any length may have, in all its `brx.idx` and `call` instructions together.
const ANY_FUNCTION: usize = 1 << 12;

/// Further targets for each byte of the function's text.
const PER_BYTE: usize = 8;

/// Returns the limit on the targets of all `brx.idx` and `call` instructions of a function with a text of this length.
/// Many instructions can share one long list, so the number of targets could otherwise grow with the square of the
/// length.
pub(super) fn most_targets(text_bytes: usize) -> usize {
    ANY_FUNCTION.saturating_add(text_bytes.saturating_mul(PER_BYTE))
}

impl Walker<'_> {
    /// Counts the targets of an instruction in a verifying walk. Returns false after adding an error if the function
    /// has too many.
    pub(super) fn count_targets(&mut self, count: usize, kind: &str, pos: Pos) -> bool {
        if self.builds() {
            return true;
        }
        let left = self.targets_left.checked_sub(count);
        self.targets_left = left.unwrap_or(0);
        if left.is_none() {
            let message = format!("Too many {kind} targets in a function of this length");
            self.error(pos, message);
        }
        left.is_some()
    }

    /// Lowers `bra`.
    pub(super) fn bra(&mut self, inst: &Inst, operands: &[ast::Operand], uni: bool) {
        match operands {
            [
                ast::Operand {
                    kind: OperandKind::Name(label, Selector::None),
                    pos,
                },
            ] => {
                let pending = PendingBranch {
                    label: *label,
                    inst: self.count,
                    slot: None,
                    pos: *pos,
                };
                if let Some(scope) = self.pending.last_mut() {
                    scope.push(pending);
                }
                self.emit(inst, Op::Bra { target: InstId(0), uni });
            }
            _ => self.error(
                inst.pos,
                "Label expected for argument 0 of instruction 'bra'".to_owned(),
            ),
        }
    }

    /// Lowers `brx.idx`.
    pub(super) fn brx(&mut self, inst: &Inst, operands: &[ast::Operand], uni: bool) {
        let unit = self.unit;
        let [index, list] = operands else {
            self.errors.mismatch = true;
            return;
        };
        let spec = source(Type::U32);
        self.operand(0, index, &spec);
        let OperandKind::Name(name, Selector::None) = list.kind else {
            self.errors.mismatch = true;
            return;
        };
        let Some(Symbol::Targets {
            calls: false,
            start,
            len,
        }) = self.resolve(name)
        else {
            let message = "Branch target list expected for argument 1 of instruction 'brx.idx'";
            return self.error(list.pos, message.to_owned());
        };
        let labels = unit.ast.operands(Span { start, len });
        if !self.count_targets(labels.len(), "branch", list.pos) {
            return;
        }
        for (slot, label) in labels.iter().enumerate() {
            let OperandKind::Name(name, _) = label.kind else {
                continue;
            };
            let pending = PendingBranch {
                label: name,
                inst: self.count,
                slot: Some(slot as u32),
                pos: label.pos,
            };
            if let Some(scope) = self.pending.last_mut() {
                scope.push(pending);
            }
        }
        let targets = if self.builds() {
            vec![InstId(0); labels.len()]
        } else {
            Vec::new()
        };
        self.emit(inst, Op::Brx { targets, uni });
    }
}
