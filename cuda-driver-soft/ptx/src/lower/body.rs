//! Walks over the statements of a function body and lowers them in order.

use crate::ast::{Pos, Statement};
use crate::ir::{Body, InstId, Op};
use crate::names::Name;
use crate::scopes::Symbol;

use super::walker::{PendingBranch, Walker};

impl Walker<'_> {
    /// Walks over the body and returns it; a verifying walk returns it without instructions.
    pub(super) fn run(mut self) -> Body {
        let unit = self.unit;
        let Some(function) = self.function else {
            return self.body;
        };
        let Some(range) = &function.body else {
            return self.body;
        };
        self.formals(function);
        for statement in unit.ast.statements(range) {
            match statement {
                Statement::Open => {
                    self.scopes.open();
                    self.frame.open();
                    self.pending.push(Vec::new());
                }
                Statement::Close => self.close(),
                Statement::Label(name, pos) => {
                    let symbol = Symbol::Label(InstId(self.count));
                    self.declare_label(*name, symbol, *pos);
                }
                Statement::Inst(inst) => self.instruction(inst),
                Statement::Var(index) => self.variable(*index),
                Statement::Prototype { name, prototype, pos } => {
                    self.declare_label(*name, Symbol::Prototype(*prototype), *pos)
                }
                Statement::Targets { name, calls, list, pos } => {
                    let symbol = Symbol::Targets {
                        calls: *calls,
                        start: list.start,
                        len: list.len,
                    };
                    self.declare_label(*name, symbol, *pos);
                }
            }
        }
        self.close();
        for (name, pos) in std::mem::take(&mut self.unknown) {
            self.error(pos, format!("Unknown symbol '{}'", self.text(name)));
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.uses.registers = self.registers as usize;
        }
        self.body.frame_size = self.frame.size();
        self.body.local_bytes = self.frame.locals();
        self.body.frame_align = self.frame.align();
        self.body
    }

    /// Declares a label, a `.callprototype` or a list of targets.
    fn declare_label(&mut self, name: Name, symbol: Symbol, pos: Pos) {
        if !self.scopes.declare(name, symbol) {
            let message = format!("Duplicate definition of label '{}'", self.text(name));
            self.error(pos, message);
        }
    }

    /// Closes the current scope. Branches to its labels get their targets; other branches are left to the outer scope.
    fn close(&mut self) {
        for pending in self.pending.pop().unwrap_or_default() {
            match self.scopes.innermost(pending.label) {
                Some(Symbol::Label(target)) => self.patch(&pending, target),
                // A name of another kind does not hide the label of an outer scope.
                _ => match self.pending.last_mut() {
                    Some(outer) => outer.push(pending),
                    None => {
                        if self.resolve(pending.label).is_some() {
                            let message = match pending.slot {
                                None => "Label expected for argument 0 of instruction 'bra'",
                                Some(_) => "Illegal branch target, label expected",
                            };
                            self.error(pending.pos, message.to_owned());
                        } else {
                            self.unknown.push((pending.label, pending.pos));
                        }
                    }
                },
            }
        }
        self.scopes.close();
        self.frame.close();
    }

    /// Sets the target of a branch.
    fn patch(&mut self, pending: &PendingBranch, label: InstId) {
        match self.body.insts.get_mut(pending.inst as usize).map(|inst| &mut inst.op) {
            Some(Op::Bra { target, .. }) => *target = label,
            Some(Op::Brx { targets, .. }) => {
                let slot = pending.slot.and_then(|slot| targets.get_mut(slot as usize));
                if let Some(target) = slot {
                    *target = label;
                }
            }
            _ => {}
        }
    }
}
