//! Declares the parameters, registers and variables inside a function.

use std::ops::Range;

use crate::ast::{DeclSpace, DeclType, Function, Var};
use crate::ir::{Formal, Reg, RegisterName, Type};
use crate::names::Name;
use crate::scopes::{FrameKind, Symbol};
use crate::unit::{MAX_ALIGN, alignment, is_alignment, offsets};

use super::walker::Walker;

/// Maximum number of registers of one function, checked at each declaration of registers. Registers that lowering adds
/// after the last declaration are not limited.
const MAX_REGISTERS: u32 = 1 << 22;

impl Walker<'_> {
    /// Reports a second declaration of a variable.
    fn duplicate(&mut self, var: &Var) {
        self.error(
            var.pos,
            format!("Duplicate definition of variable '{}'", self.text(var.name)),
        );
    }

    /// Declares the parameters and results of the function.
    pub(super) fn formals(&mut self, function: &Function) {
        let unit = self.unit;
        if function.entry {
            let vars = unit.vars(&function.params);
            for ((decl, var), offset) in function.params.clone().zip(vars).zip(offsets(vars)) {
                let symbol = Symbol::Param {
                    offset: offset as u32,
                    decl,
                };
                if !self.scopes.declare(var.name, symbol) {
                    self.duplicate(var);
                }
            }
            return;
        }
        self.body.returns = self.formal_list(&function.returns, FrameKind::Output);
        self.body.params = self.formal_list(&function.params, FrameKind::Input);
    }

    /// Declares parameters or results of a device function, and returns their places.
    fn formal_list(&mut self, range: &Range<u32>, kind: FrameKind) -> Vec<Formal> {
        let vars = self.unit.vars(range);
        let mut formals = Vec::with_capacity(vars.len());
        for (decl, var) in range.clone().zip(vars) {
            if var.space == DeclSpace::Reg {
                let first = self.registers;
                self.declare_registers(var);
                for i in first..self.registers {
                    formals.push(Formal::Reg(Reg(i)));
                }
            } else if let Some((offset, size)) = self.frame_variable(decl, var, kind) {
                formals.push(Formal::Frame { offset, size });
            }
        }
        formals
    }

    /// Declares a variable in the frame, and returns its offset and size.
    fn frame_variable(&mut self, decl: u32, var: &Var, kind: FrameKind) -> Option<(u32, u32)> {
        let size = var.size.unwrap_or(u64::MAX);
        let local = kind == FrameKind::Local;
        let align = alignment(var).min(MAX_ALIGN);
        let step = size.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        let total = match var.count {
            None => size,
            Some(count) => step.saturating_mul(u64::from(count)),
        };
        let Some(offset) = self.frame.allocate(total, align, local) else {
            self.error(var.pos, format!("Variable '{}' is too large", self.text(var.name)));
            return None;
        };
        self.declare(var, Symbol::Frame { offset, decl, kind }, step as u32);
        Some((offset, size as u32))
    }

    /// Declares registers.
    fn declare_registers(&mut self, var: &Var) {
        if !var.dims.is_empty() {
            let text = self.text(var.name);
            return self.error(
                var.pos,
                format!("Variable '{text}' cannot be allocated into a register"),
            );
        }
        let DeclType::Scalar(ty) = var.ty else {
            return self.error(var.pos, format!("Illegal type of register '{}'", self.text(var.name)));
        };
        if var.vec > 1 && (ty == Type::Pred || ty.size() * var.vec > 16) {
            return self.error(
                var.pos,
                format!("Illegal vector type of register '{}'", self.text(var.name)),
            );
        }
        let count = var.count.unwrap_or(1);
        let count = u64::from(count) * u64::from(var.vec);
        if u64::from(self.registers) + count > u64::from(MAX_REGISTERS) {
            return self.error(
                var.pos,
                format!("Too many registers in one function: more than {MAX_REGISTERS}"),
            );
        }
        let count = count as u32;
        let first = self.new_registers(ty, count);
        if self.builds() {
            self.body.names.push(RegisterName {
                first: Reg(first),
                name: self.unit.ast.names.text(var.name),
                is_range: var.count.is_some(),
                vec: var.vec,
                count,
            });
        }
        let vec = var.vec as u8;
        self.declare(var, Symbol::Reg { first, ty, vec }, var.vec);
    }

    /// Declares the name of a variable, or the names of a range. For a range, the first name means `symbol`, and the
    /// registers, offsets or variables of the others follow at distances of `step`.
    fn declare(&mut self, var: &Var, symbol: Symbol, step: u32) {
        let fresh = match var.count {
            None => self.scopes.declare(var.name, symbol),
            Some(count) if var.name.number == Name::PLAIN => {
                self.scopes.declare_range(var.name.prefix, count, symbol, step)
            }
            // The range `%r1<3>` has a number before `<`: its variables get no names, so they cannot be used.
            Some(_) => true,
        };
        if !fresh {
            self.duplicate(var);
        }
    }

    /// Declares a variable among the statements.
    pub(super) fn variable(&mut self, index: u32) {
        let Some(var) = self.unit.ast.vars.get(index as usize) else {
            return;
        };
        if matches!(var.ty, DeclType::Opaque(_)) && var.space != DeclSpace::Reg {
            let message = "Texture/surface variable must be at module or entry parameter scope";
            return self.error(var.pos, message.to_owned());
        }
        match var.space {
            DeclSpace::Reg => self.declare_registers(var),
            DeclSpace::Local | DeclSpace::Param => {
                if var.ty == DeclType::Scalar(Type::Pred) {
                    let message = format!(
                        "Predicate variable '{}' must be in register state space",
                        self.text(var.name)
                    );
                    self.error(var.pos, message);
                }
                if var.align.is_some_and(|align| !is_alignment(align)) {
                    return self.error(var.pos, "Alignment must be a power of two".to_owned());
                }
                if var.init.is_some() {
                    let text = self.text(var.name);
                    let message = format!("No initial value is allowed for '{text}' in this state space");
                    self.error(var.pos, message);
                }
                if var.dims.contains(&None) || var.dims.contains(&Some(0)) {
                    let text = self.text(var.name);
                    let message = format!("Non-external variable '{text}' has incomplete type");
                    self.error(var.pos, message);
                }
                if var.element() > 16 {
                    self.error(var.pos, "Vector type too large, exceeds 128 bit limit".to_owned());
                }
                let packed = var.vec > 1 || var.ty == DeclType::Scalar(Type::F16x2);
                if var.space == DeclSpace::Param && packed && var.dims.is_empty() {
                    let text = self.text(var.name);
                    let message = format!("Variable '{text}' cannot be allocated in .param state space");
                    self.error(var.pos, message);
                }
                let kind = if var.space == DeclSpace::Local {
                    FrameKind::Local
                } else {
                    FrameKind::Argument
                };
                self.frame_variable(index, var, kind);
            }
            DeclSpace::Shared | DeclSpace::Global | DeclSpace::Const | DeclSpace::Tex => {
                let Some(&id) = self.unit.statics.get(&index) else {
                    return;
                };
                let symbol = Symbol::Variable {
                    var: id,
                    element: var.element() as u32,
                };
                self.declare(var, symbol, 1);
            }
        }
    }
}
