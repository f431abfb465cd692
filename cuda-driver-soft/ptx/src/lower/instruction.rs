//! Lowers one instruction: finds the form of its opcode, checks its operands, and adds the operation.

use crate::ast::{self, Inst, Pos};
use crate::diagnostics::Severity;
use crate::forms::{Candidate, Form, Lowering, Role, saturates_floats, unmet};
use crate::ir::{Op, Operand, Space, Type};
use crate::scopes::Symbol;

use super::walker::Walker;

/// Index of the lookup table among the sources of `lop3` in PTX.
const LOP3_TABLE: usize = 3;

impl Walker<'_> {
    /// Checks and lowers an instruction.
    pub(super) fn instruction(&mut self, inst: &Inst) {
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
                    ty: Type::Pred, vec: 1, ..
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
        self.errors.clear();
        let operands = unit.ast.operands(inst.operands);
        let first = form.candidates.first();
        let lowering = first.map(|c| &c.lowering);
        if form.any_operands || !lowering.is_some_and(Lowering::is_by_table) {
            self.versions(inst, form, first);
        }
        match lowering {
            Some(Lowering::Bra { uni }) => self.bra(inst, operands, *uni),
            Some(Lowering::Brx { uni }) => self.brx(inst, operands, *uni),
            Some(Lowering::Call { uni }) => self.call(inst, operands, *uni),
            Some(Lowering::Mov { ty, vec }) => self.mov(inst, operands, *ty, *vec),
            Some(Lowering::Mapa { rank }) => self.mapa(inst, form, operands, *rank),
            Some(Lowering::Video(_)) => self.video(inst, form, operands),
            _ if form.any_operands => self.unsupported(inst, operands),
            _ => self.by_table(inst, form, operands),
        }
        self.report_errors(inst);
    }

    /// Checks the PTX version and the target that the opcode requires. [`Walker::versions`] checks those that depend on
    /// the operands.
    fn requirements(&mut self, inst: &Inst, form: &Form) {
        let ast = &self.unit.ast;
        let bare = matches!(
            form.candidates.first().map(|c| &c.lowering),
            Some(Lowering::Op(
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
        match form.root {
            "wgmma" => self.wgmma_target(inst.pos),
            "wmma" => self.wmma_spelling(inst),
            _ => {}
        }
        if form.name == "tensormap.replace" || form.root == "setmaxnreg" {
            self.specific_target(inst);
        }
    }

    /// Checks the PTX version and the target that a candidate of a form requires.
    fn versions(&mut self, inst: &Inst, form: &Form, candidate: Option<&Candidate>) {
        let (version, sm) = (self.unit.ast.feature_version(), self.unit.ast.target.sm);
        let Some(candidate) = candidate.filter(|_| self.is_checking()) else {
            return;
        };
        if candidate.ptx > version || candidate.sm > sm {
            let opcode = String::from_utf8_lossy(self.opcode(inst));
            for message in unmet(form, candidate, &opcode, version, sm) {
                self.error(inst.pos, message);
            }
        }
    }

    /// Checks the modifiers of `wmma` that do not exist in all PTX versions.
    fn wmma_spelling(&mut self, inst: &Inst) {
        let opcode = String::from_utf8_lossy(self.opcode(inst));
        if opcode.contains(".aligned") {
            self.require(inst.pos, ".aligned modifier for wmma", 63, 0);
        }
        if saturates_floats(&opcode) {
            let start = "'.satfinite' modifier on instruction 'wmma.mma' with floating point type";
            if self.unit.ast.version >= (6, 4) {
                let message = format!(
                    "{start} is deprecated since PTX ISA version 6.4 and will be discontinued from future PTX ISA version"
                );
                self.report(Severity::Warning, inst.pos, message);
            }
            let message = format!("{start} may produce unexpected results on sm_70 and later architectures");
            self.report(Severity::Warning, inst.pos, message);
        }
    }

    /// Reports the warnings of driver 580 about `shfl` and `vote` without `.sync`.
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

    /// Checks and lowers an instruction whose operands are described by the table.
    fn by_table(&mut self, inst: &Inst, form: &Form, operands: &[ast::Operand]) {
        let mut found = None;
        let mut fits = false;
        for candidate in form.candidates.iter().filter(|c| c.operands.len() == operands.len()) {
            self.dsts.clear();
            self.srcs.clear();
            self.errors.clear();
            found = Some(candidate);
            for (index, (operand, spec)) in operands.iter().zip(&candidate.operands).enumerate() {
                if !matches!(spec.role, Role::Address | Role::Tensor) {
                    self.operand(index, operand, spec);
                }
            }
            fits = self.errors.is_empty();
            if fits {
                break;
            }
        }
        self.versions(inst, form, found.filter(|_| fits).or(form.candidates.first()));
        let Some(candidate) = found else {
            self.errors.mismatch = true;
            return self.note_unknown(operands);
        };
        self.ranges(inst, operands);
        let specs = candidate.operands.iter().zip(operands);
        let mut addresses = specs
            .filter(|(spec, _)| matches!(spec.role, Role::Address | Role::Tensor))
            .map(|(_, operand)| operand);
        if let Lowering::Pointers(op) = &candidate.lowering {
            let addresses: Vec<_> = addresses.collect();
            return self.pointers(inst, op, &addresses);
        }
        if let Lowering::Tensor(copy) | Lowering::TensorHint(copy) = &candidate.lowering {
            let hint = matches!(candidate.lowering, Lowering::TensorHint(_));
            let addresses: Vec<_> = addresses.collect();
            return self.tensor(inst, *copy, hint, &addresses);
        }
        if let Lowering::StoreThenSignal(op) = &candidate.lowering {
            let addresses: Vec<_> = addresses.collect();
            return self.store_then_signal(inst, op, &addresses);
        }
        self.lower_checked(inst, &candidate.lowering, addresses.next(), operands);
    }

    /// Lowers an instruction whose operands were checked, except its address.
    fn lower_checked(
        &mut self,
        inst: &Inst,
        lowering: &Lowering,
        address: Option<&ast::Operand>,
        operands: &[ast::Operand],
    ) {
        match lowering {
            Lowering::Op(op) => self.emit(inst, op.clone()),
            Lowering::Memory(op) => {
                if let Some(address) = address {
                    self.memory(inst, op, address);
                }
            }
            Lowering::Hint(space) => {
                if let Some(address) = address {
                    self.hint(inst, *space, address);
                }
                self.dsts.clear();
                self.srcs.clear();
                self.emit(inst, Op::Nop);
            }
            Lowering::Policy(value) => {
                if let Some(address) = address {
                    self.hint(inst, Space::Global, address);
                }
                self.srcs = vec![Operand::Imm(*value)];
                self.emit(inst, Op::Mov { ty: Type::B64 });
            }
            Lowering::Texture(op) => self.texture(inst, op, address),
            Lowering::Cvta(op) => self.cvta(inst, op, operands),
            Lowering::Lop3(bool_op) => {
                if self.srcs.len() > LOP3_TABLE
                    && let Operand::Imm(lut) = self.srcs.remove(LOP3_TABLE)
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
            Lowering::Carry { op, reads, writes } => {
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
            Lowering::Wgmma(wgmma) => self.wgmma(inst, *wgmma),
            Lowering::SparseMma(mma) => self.sparse_mma(inst, *mma),
            Lowering::Unsupported => {
                self.dsts.clear();
                self.srcs.clear();
                self.unsupported(inst, &[]);
            }
            Lowering::Pointers(_)
            | Lowering::StoreThenSignal(_)
            | Lowering::Tensor(_)
            | Lowering::TensorHint(_)
            | Lowering::Mapa { .. }
            | Lowering::Mov { .. }
            | Lowering::Video(_)
            | Lowering::Bra { .. }
            | Lowering::Brx { .. }
            | Lowering::Call { .. } => {}
        }
    }

    /// Lowers an instruction that is not implemented. Only the names in `operands` are checked.
    pub(super) fn unsupported(&mut self, inst: &Inst, operands: &[ast::Operand]) {
        self.note_unknown(operands);
        let opcode = String::from_utf8_lossy(self.opcode(inst)).into_owned();
        self.emit(inst, Op::Unsupported { opcode });
    }
}
