//! The state of a walk over one body, and the steps that all instructions use: names, errors, registers, emitting.

use std::collections::{BTreeSet, HashSet};

use crate::ast::{Function, Inst, Pos, Statement};
use crate::diagnostics::{DiagnosticCode, Diagnostics, MAX_MESSAGE_BYTES, Severity};
use crate::ir::{self, Body, FuncId, Op, Operand, Reg, Type, VarId};
use crate::names::Name;
use crate::scopes::{Scopes, Symbol};
use crate::unit::Unit;

use super::branch;
use super::errors::OperandErrors;
use super::frame::Frame;
use super::types::class;

/// The functions and variables that a body uses.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Functions that the body calls or takes the address of.
    pub(crate) functions: BTreeSet<FuncId>,
    pub(crate) variables: BTreeSet<VarId>,
    /// Number of registers that the body declares or that lowering adds.
    pub(crate) registers: usize,
}

/// The text of the module, for the columns of messages, and the outputs of a verifying walk.
pub(super) struct Reporter<'a> {
    pub(super) text: &'a [u8],
    pub(super) diagnostics: &'a mut Diagnostics,
    pub(super) uses: &'a mut Uses,
}

/// A branch that gets its target when the scope of its label is closed.
pub(super) struct PendingBranch {
    pub(super) label: Name,
    /// Index of the instruction.
    pub(super) inst: u32,
    /// Index among the targets of a `brx`; `None` for `bra`.
    pub(super) slot: Option<u32>,
    pub(super) pos: Pos,
}

/// The state of a walk over one body.
pub(super) struct Walker<'u> {
    pub(super) unit: &'u Unit,
    pub(super) function: Option<&'u Function>,
    /// Present in a verifying walk, which builds no instructions.
    pub(super) reporter: Option<Reporter<'u>>,
    pub(super) scopes: Scopes,
    /// The result so far.
    pub(super) body: Body,
    /// Number of instructions so far. In a verifying walk `body.insts` stays empty.
    pub(super) count: u32,
    /// Number of registers so far. In a verifying walk `body.registers` stays empty: a short declaration can declare
    /// millions of them.
    pub(super) registers: u32,
    /// Branches without targets so far, by open scope.
    pub(super) pending: Vec<Vec<PendingBranch>>,
    pub(super) frame: Frame,
    /// Destinations of the current instruction.
    pub(super) dsts: Vec<Option<Reg>>,
    /// Sources of the current instruction.
    pub(super) srcs: Vec<Operand>,
    /// Errors in the operands of the current instruction.
    pub(super) errors: OperandErrors,
    /// The current opcode without modifiers.
    pub(super) root: &'static str,
    /// The current opcode in messages, such as `mul.wide` and `bar.sync`.
    pub(super) name: &'u str,
    /// True if the destination of the current instruction has a floating-point type.
    pub(super) dest_float: bool,
    /// The labels of the function; filled when they are first needed.
    labels: Option<HashSet<Name>>,
    /// Undeclared names in the whole function.
    pub(super) unknown: Vec<(Name, Pos)>,
    /// The register for the condition code, if an instruction uses it.
    pub(super) carry: Option<Reg>,
    /// Number of targets that further `brx.idx` and `call` instructions may have.
    pub(super) targets_left: usize,
}

impl<'u> Walker<'u> {
    pub(super) fn new(unit: &'u Unit, id: FuncId, reporter: Option<Reporter<'u>>) -> Self {
        let function = unit
            .functions
            .get(id.0 as usize)
            .and_then(|signature| unit.function(signature.item));
        let text_bytes = reporter.as_ref().map_or(0, |r| unit.text_bytes(id, r.text.len()));
        Walker {
            unit,
            function,
            reporter,
            scopes: Scopes::new(),
            body: Body::default(),
            count: 0,
            registers: 0,
            pending: vec![Vec::new()],
            frame: Frame::default(),
            dsts: Vec::new(),
            srcs: Vec::new(),
            errors: OperandErrors::default(),
            root: "",
            name: "",
            dest_float: false,
            labels: None,
            unknown: Vec::new(),
            carry: None,
            targets_left: branch::most_targets(text_bytes),
        }
    }

    /// Returns true if the walk builds instructions, and false if it verifies.
    pub(super) fn builds(&self) -> bool {
        self.reporter.is_none()
    }

    /// Returns the spelling of a name for a message, cut at the length at which the message itself is cut: many
    /// messages may contain the same long name.
    pub(super) fn text(&self, name: Name) -> String {
        self.unit.ast.names.text_up_to(name, MAX_MESSAGE_BYTES)
    }

    /// Returns the opcode of an instruction with its modifiers.
    pub(super) fn opcode(&self, inst: &Inst) -> &'u [u8] {
        self.unit.ast.opcodes.string(inst.opcode)
    }

    /// Returns true if the text is part of an instruction's opcode.
    pub(super) fn opcode_contains(&self, inst: &Inst, text: &str) -> bool {
        let mut parts = self.opcode(inst).windows(text.len());
        parts.any(|part| part == text.as_bytes())
    }

    pub(super) fn report(&mut self, severity: Severity, pos: Pos, message: String) {
        if let Some(Reporter { text, diagnostics, .. }) = &mut self.reporter {
            diagnostics.push_at(text, pos, severity, DiagnosticCode::Invalid, message);
        }
    }

    pub(super) fn error(&mut self, pos: Pos, message: String) {
        self.report(Severity::Error, pos, message);
    }

    /// Adds an error in the operands of the current instruction.
    pub(super) fn say(&mut self, pos: Pos, message: String) {
        self.errors.messages.push((Severity::Error, pos, message));
    }

    /// Adds an error that ends with the name of the current instruction.
    pub(super) fn refuse(&mut self, pos: Pos, message: &str) {
        self.say(pos, format!("{message} for instruction '{}'", self.name));
    }

    /// Adds an error for a name that is not declared so far. If any scope of the function has a label with this name,
    /// the error is a mismatch of the operands instead.
    pub(super) fn unknown(&mut self, name: Name, pos: Pos) {
        if self.reporter.is_some() && self.is_label(name) {
            self.errors.mismatch = true;
        } else {
            self.errors.unknown.push((name, pos));
        }
    }

    /// Records that the body uses a function.
    pub(super) fn note_function(&mut self, id: FuncId) {
        if let Some(reporter) = &mut self.reporter {
            reporter.uses.functions.insert(id);
        }
    }

    /// Records that the body uses a variable.
    pub(super) fn note_variable(&mut self, id: VarId) {
        if let Some(reporter) = &mut self.reporter {
            reporter.uses.variables.insert(id);
        }
    }

    /// Returns true if the body is checked, not only lowered.
    pub(super) fn is_checking(&self) -> bool {
        self.reporter.is_some()
    }

    /// Checks that the module may use a feature, which requires PTX version `ptx`, times ten, and architecture `sm`.
    pub(super) fn require(&mut self, pos: Pos, feature: &str, ptx: u32, sm: u32) {
        if self.is_checking() {
            for message in self.unit.ast.unmet(feature, ptx, sm) {
                self.error(pos, message);
            }
        }
    }

    /// Returns the meaning of a name in the function, else in the module.
    pub(super) fn resolve(&self, name: Name) -> Option<Symbol> {
        self.scopes
            .get(name)
            .or_else(|| self.global(name))
            .or_else(|| self.unpadded(name))
    }

    /// Returns the meaning of a name in the module, if it is this function or declared before it.
    fn global(&self, name: Name) -> Option<Symbol> {
        let item = self.function_item();
        self.unit
            .globals
            .get(&name)
            .filter(|g| g.item <= item)
            .map(|g| g.symbol)
    }

    /// Returns the index of the item that is this function.
    fn function_item(&self) -> u32 {
        // Items are sorted by position.
        let here = self.function.map_or(u32::MAX, |f| f.pos.offset);
        let items = &self.unit.ast.items;
        let before = items.partition_point(|item| self.unit.ast.offset(item) <= here);
        before.saturating_sub(1) as u32
    }

    /// Returns the meaning of a name without the leading zeros of its number: `%r04` is `%r4` in a range `%r<…>`.
    fn unpadded(&self, name: Name) -> Option<Symbol> {
        if name.number != Name::PLAIN {
            return None;
        }
        // `unpadded` was made in advance, because many targets of `brx.idx` can be one mention of a long name.
        self.scopes.get_ranged(*self.unit.unpadded.get(&name.prefix)?)
    }

    /// Returns true if any scope of the function has a label with this name.
    pub(super) fn is_label(&mut self, wanted: Name) -> bool {
        let (unit, function) = (self.unit, self.function);
        let labels = self.labels.get_or_insert_with(|| {
            let range = function.and_then(|f| f.body.clone()).unwrap_or(0..0);
            let label = |statement: &Statement| match statement {
                Statement::Label(name, _) => Some(*name),
                _ => None,
            };
            unit.ast.statements(&range).iter().filter_map(label).collect()
        });
        labels.contains(&wanted)
    }

    pub(super) fn new_register(&mut self, ty: Type) -> Reg {
        Reg(self.new_registers(ty, 1))
    }

    /// Adds registers, and returns the number of the first.
    pub(super) fn new_registers(&mut self, ty: Type, count: u32) -> u32 {
        let first = self.registers;
        self.registers += count;
        if self.builds() {
            self.body.registers.resize(self.registers as usize, class(ty));
        }
        first
    }

    /// Adds an instruction with the current operands and the guard of the PTX instruction.
    pub(super) fn emit(&mut self, inst: &Inst, op: Op) {
        let guard = inst.guard.and_then(|(name, negated)| match self.resolve(name) {
            Some(Symbol::Reg {
                first, ty: Type::Pred, ..
            }) => Some((Reg(first), negated)),
            _ => None,
        });
        self.emit_guarded(guard, op, inst.pos.line);
    }

    fn emit_guarded(&mut self, guard: Option<(Reg, bool)>, op: Op, line: u32) {
        self.count += 1;
        if self.builds() {
            let (dsts, srcs) = (self.dsts.clone(), self.srcs.clone());
            self.body.insts.push(ir::Inst {
                guard,
                op,
                dsts,
                srcs,
                line,
            });
        }
    }

    /// Adds an unguarded instruction before the current one, and returns its result, a new register. The current
    /// operands stay as they are.
    pub(super) fn emit_before(&mut self, op: Op, ty: Type, srcs: &[Operand], line: u32) -> Reg {
        let result = self.new_register(ty);
        let dsts = std::mem::replace(&mut self.dsts, vec![Some(result)]);
        let srcs = std::mem::replace(&mut self.srcs, srcs.to_vec());
        self.emit_guarded(None, op, line);
        (self.dsts, self.srcs) = (dsts, srcs);
        result
    }
}
