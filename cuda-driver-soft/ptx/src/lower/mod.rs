//! Function bodies: every name resolved, every operand checked against the instruction table, and the result put
//! together as [`ir::Body`].
//!
//! There is one walk for both uses. [`verify`] reports what is wrong and throws the body away; [`lower`], called when the
//! body is first needed, meets nothing that was not accepted before.

mod call;
mod data;
mod frame;
mod memory;
mod operands;
mod ranges;
mod subscript;
mod texture;
mod video;
mod wgmma;

use super::ast::*;
use super::diagnostics::{Diagnostics, Severity};
use super::forms::{Form, Made, Role};
use super::module::Unit;
use super::names::Name;
use super::symbols::{FrameKind, Scopes, Symbol};
use crate::ir::{self, Body, FuncId, InstId, Op, Operand, Reg, RegClass, Type, VarId};
use std::collections::{BTreeSet, HashSet};

/// Registers of one function, at most.
const MOST_REGISTERS: u32 = 1 << 22;

/// What a body needs: functions that it calls or takes the address of, and variables.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) functions: BTreeSet<FuncId>,
    pub(super) variables: BTreeSet<VarId>,
}

/// Checks a body; what it needs is the answer.
pub(super) fn verify(unit: &Unit, id: FuncId, text: &[u8], diagnostics: &mut Diagnostics) -> Uses {
    let mut uses = Uses::default();
    let reporter = Reporter {
        text,
        diagnostics,
        uses: &mut uses,
    };
    Walker::new(unit, id, Some(reporter)).run();
    uses
}

/// The body of a function that was verified.
pub(super) fn lower(unit: &Unit, id: FuncId) -> Body {
    Walker::new(unit, id, None).run()
}

/// Where a verifying walk puts what it finds.
struct Reporter<'a> {
    text: &'a [u8],
    diagnostics: &'a mut Diagnostics,
    uses: &'a mut Uses,
}

/// A branch to a label that is not known yet.
struct Pending {
    label: Name,
    inst: u32,
    /// Which of the targets of a `brx`.
    slot: u32,
    pos: Pos,
}

struct Walker<'u> {
    unit: &'u Unit,
    function: Option<&'u Function>,
    reporter: Option<Reporter<'u>>,
    scopes: Scopes,
    body: Body,
    /// Instructions so far; in a verifying walk `body.insts` stays empty.
    count: u32,
    /// Branches without target yet, by open scope.
    pending: Vec<Vec<Pending>>,
    frame: frame::Frame,
    /// Operands of the instruction at hand.
    dsts: Vec<Option<Reg>>,
    srcs: Vec<Operand>,
    faults: operands::Faults,
    /// The opcode of the instruction at hand, without modifiers.
    root: &'static str,
    /// The opcode as messages name it: `mul.wide`, `bar.sync`.
    name: &'u str,
    /// Its destination is of a floating-point type.
    dest_float: bool,
    /// The labels of the function, once somebody asked.
    labels: Option<HashSet<Name>>,
    /// Names that mean nothing, of the whole function.
    unknown: Vec<(Name, Pos)>,
    /// The register that stands for the condition code, once there is one.
    carry: Option<Reg>,
}

fn class(ty: Type) -> RegClass {
    match ty {
        Type::Pred => RegClass::Pred,
        _ => match ty.size() {
            1 | 2 => RegClass::B16,
            4 => RegClass::B32,
            8 => RegClass::B64,
            _ => RegClass::B128,
        },
    }
}

impl<'u> Walker<'u> {
    fn new(unit: &'u Unit, id: FuncId, reporter: Option<Reporter<'u>>) -> Self {
        let function = unit
            .functions
            .get(id.0 as usize)
            .and_then(|signature| unit.function(signature.item));
        Walker {
            unit,
            function,
            reporter,
            scopes: Scopes::new(),
            body: Body::default(),
            count: 0,
            pending: vec![Vec::new()],
            frame: frame::Frame::default(),
            dsts: Vec::new(),
            srcs: Vec::new(),
            faults: operands::Faults::default(),
            root: "",
            name: "",
            dest_float: false,
            labels: None,
            unknown: Vec::new(),
            carry: None,
        }
    }

    /// Whether instructions are kept.
    fn builds(&self) -> bool {
        self.reporter.is_none()
    }

    fn text(&self, name: Name) -> String {
        self.unit.ast.names.text(name)
    }

    fn report(&mut self, severity: Severity, pos: Pos, message: String) {
        if let Some(reporter) = &mut self.reporter {
            let column = reporter.diagnostics.column(reporter.text, pos.offset);
            reporter
                .diagnostics
                .push(severity, pos.line, column, message);
        }
    }

    fn error(&mut self, pos: Pos, message: String) {
        self.report(Severity::Error, pos, message);
    }

    fn run(mut self) -> Body {
        let unit = self.unit;
        let Some(function) = self.function else {
            return self.body;
        };
        let Some(range) = &function.body else {
            return self.body;
        };
        self.formals(function);
        let statements = unit
            .ast
            .statements
            .get(range.start as usize..range.end as usize)
            .unwrap_or(&[]);
        for statement in statements {
            match statement {
                Statement::Open => {
                    self.scopes.open();
                    self.frame.open();
                    self.pending.push(Vec::new());
                }
                Statement::Close => self.close(),
                Statement::Label(name, pos) => {
                    if !self
                        .scopes
                        .declare(*name, Symbol::Label(InstId(self.count)))
                    {
                        self.error(
                            *pos,
                            format!("Duplicate definition of label '{}'", self.text(*name)),
                        );
                    }
                }
                Statement::Inst(inst) => self.instruction(inst),
                Statement::Var(index) => self.variable(*index),
                Statement::Prototype {
                    name,
                    prototype,
                    pos,
                } => {
                    if !self.scopes.declare(*name, Symbol::Prototype(*prototype)) {
                        self.error(
                            *pos,
                            format!("Duplicate definition of label '{}'", self.text(*name)),
                        );
                    }
                }
                Statement::Targets {
                    name,
                    calls,
                    list,
                    pos,
                } => {
                    let symbol = Symbol::Targets {
                        calls: *calls,
                        start: list.start,
                        len: list.len,
                    };
                    if !self.scopes.declare(*name, symbol) {
                        self.error(
                            *pos,
                            format!("Duplicate definition of label '{}'", self.text(*name)),
                        );
                    }
                }
                Statement::Loc { file, line, column } => {
                    if self.builds() {
                        self.body
                            .locs
                            .rows
                            .push((InstId(self.count), *file, *line, *column));
                    }
                }
            }
        }
        self.close();
        for (name, pos) in std::mem::take(&mut self.unknown) {
            self.error(pos, format!("Unknown symbol '{}'", self.text(name)));
        }
        (self.body.frame_size, self.body.frame_align) = self.frame.size();
        self.body
    }

    /// Leaves a scope: branches to its labels get their targets, the others are left to the scope around it.
    fn close(&mut self) {
        for pending in self.pending.pop().unwrap_or_default() {
            match self.scopes.innermost(pending.label) {
                Some(Symbol::Label(target)) => self.patch(&pending, target),
                // A name of another kind in between hides no label: labels are looked for in the scopes around.
                _ => match self.pending.last_mut() {
                    Some(outer) => outer.push(pending),
                    None => {
                        if self.resolve(pending.label).is_some() {
                            let root = "bra";
                            let message =
                                format!("Label expected for argument 0 of instruction '{root}'");
                            self.error(pending.pos, message);
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

    fn patch(&mut self, pending: &Pending, label: InstId) {
        match self
            .body
            .insts
            .get_mut(pending.inst as usize)
            .map(|inst| &mut inst.op)
        {
            Some(Op::Bra { target, .. }) => *target = label,
            Some(Op::Brx { targets, .. }) => {
                if let Some(target) = targets.get_mut(pending.slot as usize) {
                    *target = label;
                }
            }
            _ => {}
        }
    }

    /// What a name means here: in the function, else in the module above it.
    fn resolve(&self, name: Name) -> Option<Symbol> {
        self.scopes
            .get(name)
            .or_else(|| self.global(name))
            .or_else(|| self.unpadded(name))
    }

    fn global(&self, name: Name) -> Option<Symbol> {
        let item = self.function_item();
        self.unit
            .globals
            .get(&name)
            .filter(|g| g.item <= item)
            .map(|g| g.symbol)
    }

    /// The item that this function is.
    fn function_item(&self) -> u32 {
        // The positions of items grow with their index, so the position decides.
        let here = self.function.map_or(u32::MAX, |f| f.pos.offset);
        let items = &self.unit.ast.items;
        let before = items.partition_point(|item| match item {
            Item::Var(var) => self
                .unit
                .ast
                .vars
                .get(*var as usize)
                .is_some_and(|v| v.pos.offset <= here),
            Item::Function(function) => function.pos.offset <= here,
            Item::Alias { pos, .. } => pos.offset <= here,
        });
        before.saturating_sub(1) as u32
    }

    /// `%r04` is `%r4` where a range `%r<…>` was declared.
    fn unpadded(&self, name: Name) -> Option<Symbol> {
        if name.number != Name::PLAIN {
            return None;
        }
        let text = self.unit.ast.names.string(name.prefix);
        let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (prefix, number) = text.split_at(text.len() - digits);
        let zeros = number
            .iter()
            .take_while(|&&b| b == b'0')
            .count()
            .min(digits.saturating_sub(1));
        if zeros == 0 {
            return None;
        }
        let plain = [prefix, &number[zeros..]].concat();
        self.scopes.get_ranged(self.unit.ast.names.find(&plain)?)
    }

    fn new_register(&mut self, ty: Type) -> Reg {
        let reg = Reg(self.body.registers.len() as u32);
        self.body.registers.push(class(ty));
        reg
    }

    /// Adds an instruction with the operands at hand.
    fn emit(&mut self, inst: &Inst, op: Op) {
        let guard = inst
            .guard
            .and_then(|(name, negated)| match self.resolve(name) {
                Some(Symbol::Reg {
                    first,
                    ty: Type::Pred,
                    ..
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

    fn instruction(&mut self, inst: &Inst) {
        let unit = self.unit;
        let form = match unit.form(inst.opcode) {
            Ok(form) => form,
            Err(errors) => {
                for message in &errors.0 {
                    self.error(inst.pos, message.clone());
                }
                return;
            }
        };
        self.root = form.root;
        self.name = &form.name;
        self.requirements(inst, form);
        if let Some((name, _)) = inst.guard {
            match self.resolve(name) {
                Some(Symbol::Reg {
                    ty: Type::Pred,
                    vec: 1,
                    ..
                }) => {}
                None => {
                    self.error(inst.pos, "Predicate expression expected".to_owned());
                    self.unknown.push((name, inst.pos));
                }
                Some(_) => self.error(inst.pos, "Predicate expression expected".to_owned()),
            }
        }
        self.dsts.clear();
        self.srcs.clear();
        self.faults.clear();
        let operands = unit.ast.operands.get(inst.operands.range()).unwrap_or(&[]);
        match form.candidates.first().map(|c| &c.made) {
            Some(Made::Bra { uni }) => self.bra(inst, operands, *uni),
            Some(Made::Brx { uni }) => self.brx(inst, operands, *uni),
            Some(Made::Call { uni }) => self.call(inst, operands, *uni),
            Some(Made::Mov { ty, vec }) => self.mov(inst, operands, *ty, *vec),
            Some(Made::Mapa { rank }) => self.mapa(inst, form, operands, *rank),
            Some(Made::Video(_)) => self.video(inst, form, operands),
            _ if form.any_operands => self.unsupported(inst, operands),
            _ => self.by_table(inst, form, operands),
        }
        self.report_faults(inst);
    }

    fn requirements(&mut self, inst: &Inst, form: &Form) {
        let ast = &self.unit.ast;
        let bare = matches!(
            form.candidates.first().map(|c| &c.made),
            Some(Made::Op(
                Op::Shfl { sync: false, .. } | Op::Vote { sync: false, .. }
            ))
        );
        if bare && ast.target.sm >= 70 && ast.version >= (6, 4) {
            let message = format!(
                "Instruction '{}' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4",
                form.root
            );
            self.error(inst.pos, message);
        }
        if bare {
            self.without_sync(inst.pos, form.root);
        }
        let opcode = String::from_utf8_lossy(ast.opcodes.string(inst.opcode));
        self.require(inst.pos, &opcode, form.ptx, form.sm);
        if form.root == "wgmma" {
            self.wgmma_target(inst.pos);
        }
    }

    /// What a driver says of `shfl` and `vote` without `.sync`.
    fn without_sync(&mut self, pos: Pos, root: &str) {
        let mut messages = vec![format!(
            "Instruction '{root}' without '.sync' may produce unpredictable results on sm_70 and later architectures"
        )];
        if self.unit.ast.version >= (6, 0) {
            messages.push(format!(
                "Instruction '{root}' without '.sync' is deprecated since PTX ISA version 6.0 and will be discontinued \
                 in a future PTX ISA version"
            ));
        }
        for message in messages {
            self.report(Severity::Warning, pos, message);
        }
    }

    /// Something that came with this PTX version, times ten, and this architecture.
    fn require(&mut self, pos: Pos, feature: &str, ptx: u32, sm: u32) {
        if self.reporter.is_none() {
            return;
        }
        let ast = &self.unit.ast;
        if ptx > ast.version.0 * 10 + ast.version.1 {
            let (major, minor) = (ptx / 10, ptx % 10);
            let message =
                format!("Feature '{feature}' requires PTX ISA .version {major}.{minor} or later");
            self.error(pos, message);
        }
        if sm > ast.target.sm {
            let message = format!("Feature '{feature}' requires .target sm_{sm} or higher");
            self.error(pos, message);
        }
    }

    /// An instruction whose operands are as the table says.
    fn by_table(&mut self, inst: &Inst, form: &Form, operands: &[super::ast::Operand]) {
        let mut found = None;
        for candidate in form
            .candidates
            .iter()
            .filter(|c| c.specs.len() == operands.len())
        {
            self.dsts.clear();
            self.srcs.clear();
            self.faults.clear();
            found = Some(candidate);
            for (index, (operand, spec)) in operands.iter().zip(&candidate.specs).enumerate() {
                if spec.role != Role::Address {
                    self.operand(index, operand, spec);
                }
            }
            if self.faults.is_empty() {
                break;
            }
        }
        let Some(candidate) = found else {
            self.faults.mismatch = true;
            return self.note_unknown(operands);
        };
        self.ranges(inst, operands);
        let specs = candidate.specs.iter().zip(operands);
        let mut addresses = specs
            .filter(|(spec, _)| spec.role == Role::Address)
            .map(|(_, operand)| operand);
        if let Made::Pointers(op) = &candidate.made {
            let addresses: Vec<_> = addresses.collect();
            return self.pointers(inst, op, &addresses);
        }
        if let Made::Told(op) = &candidate.made {
            let addresses: Vec<_> = addresses.collect();
            return self.told(inst, op, &addresses);
        }
        self.make(inst, &candidate.made, addresses.next(), operands);
    }

    fn make(
        &mut self,
        inst: &Inst,
        made: &Made,
        address: Option<&super::ast::Operand>,
        operands: &[super::ast::Operand],
    ) {
        match made {
            Made::Op(op) => self.emit(inst, op.clone()),
            Made::Memory(op) => {
                if let Some(address) = address {
                    self.memory(inst, op, address);
                }
            }
            Made::Hint(space) => {
                if let Some(address) = address {
                    self.hint(inst, *space, address);
                }
                self.dsts.clear();
                self.srcs.clear();
                self.emit(inst, Op::Nop);
            }
            Made::Policy(value) => {
                if let Some(address) = address {
                    self.hint(inst, crate::ir::Space::Global, address);
                }
                self.srcs = vec![Operand::Imm(*value)];
                self.emit(inst, Op::Mov { ty: Type::B64 });
            }
            Made::Texture(op) => self.texture(inst, op, address),
            Made::Cvta(op) => self.cvta(inst, op, operands),
            Made::Lop3(bool_op) => {
                // The table is the fourth source.
                if self.srcs.len() > 3
                    && let Operand::Imm(lut) = self.srcs.remove(3)
                {
                    self.emit(
                        inst,
                        Op::Lop3 {
                            lut: lut as u8,
                            bool_op: *bool_op,
                        },
                    );
                }
            }
            Made::Carry { op, reads, writes } => {
                let carry = match self.carry {
                    Some(carry) => carry,
                    None => self.new_register(Type::Pred),
                };
                self.carry = Some(carry);
                if *reads {
                    self.srcs.push(Operand::Reg(carry));
                }
                if *writes {
                    self.dsts.push(Some(carry));
                }
                self.emit(inst, op.clone());
            }
            Made::Wgmma(wgmma) => self.wgmma(inst, *wgmma),
            Made::Unsupported => {
                self.dsts.clear();
                self.srcs.clear();
                self.unsupported(inst, &[]);
            }
            Made::Pointers(_)
            | Made::Told(_)
            | Made::Mapa { .. }
            | Made::Mov { .. }
            | Made::Video(_)
            | Made::Bra { .. }
            | Made::Brx { .. }
            | Made::Call { .. } => {}
        }
    }

    /// An instruction that is not run yet: its names must be known all the same.
    fn unsupported(&mut self, inst: &Inst, operands: &[super::ast::Operand]) {
        self.note_unknown(operands);
        let opcode =
            String::from_utf8_lossy(self.unit.ast.opcodes.string(inst.opcode)).into_owned();
        self.emit(inst, Op::Unsupported { opcode });
    }

    fn bra(&mut self, inst: &Inst, operands: &[super::ast::Operand], uni: bool) {
        match operands {
            [
                super::ast::Operand {
                    kind: OperandKind::Name(label, Selector::None),
                    pos,
                },
            ] => {
                let pending = Pending {
                    label: *label,
                    inst: self.count,
                    slot: 0,
                    pos: *pos,
                };
                if let Some(scope) = self.pending.last_mut() {
                    scope.push(pending);
                }
                self.emit(
                    inst,
                    Op::Bra {
                        target: InstId(0),
                        uni,
                    },
                );
            }
            _ => self.error(
                inst.pos,
                "Label expected for argument 0 of instruction 'bra'".to_owned(),
            ),
        }
    }

    fn brx(&mut self, inst: &Inst, operands: &[super::ast::Operand], uni: bool) {
        let unit = self.unit;
        let [index, list] = operands else {
            self.faults.mismatch = true;
            return;
        };
        let spec = operands::source(Type::U32);
        self.operand(0, index, &spec);
        let OperandKind::Name(name, Selector::None) = list.kind else {
            self.faults.mismatch = true;
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
        let labels = unit
            .ast
            .operands
            .get(Span { start, len }.range())
            .unwrap_or(&[]);
        for (slot, label) in labels.iter().enumerate() {
            let OperandKind::Name(name, _) = label.kind else {
                continue;
            };
            let pending = Pending {
                label: name,
                inst: self.count,
                slot: slot as u32,
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

    /// Whether a label of this name is anywhere in the function.
    fn is_label(&mut self, wanted: Name) -> bool {
        let range = self.function.and_then(|f| f.body.clone()).unwrap_or(0..0);
        let statements = &self.unit.ast.statements;
        let labels = self.labels.get_or_insert_with(|| {
            let all = statements
                .get(range.start as usize..range.end as usize)
                .unwrap_or(&[]);
            let label = |statement: &Statement| match statement {
                Statement::Label(name, _) => Some(*name),
                _ => None,
            };
            all.iter().filter_map(label).collect()
        });
        labels.contains(&wanted)
    }
}
