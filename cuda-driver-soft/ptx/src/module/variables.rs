//! Builds the variables of module scope, and the static variables (`.global`, `.const` and `.shared`) of functions.

use crate::ast::{DeclSpace, DeclType, Var};
use crate::diagnostics::Severity;
use crate::ir::{Linkage, Opaque, Space, Type, VarId, Variable};
use crate::names::Name;
use crate::scopes::Symbol;
use crate::unit::{Global, alignment, is_alignment};

use super::builder::ModuleBuilder;
use super::init;

impl ModuleBuilder<'_> {
    /// Checks the declaration of a variable in memory, at module scope or in a function.
    pub(super) fn check(&mut self, var: &Var) {
        let ast = self.ast;
        let name = || ast.names.text(var.name);
        if var.ty == DeclType::Scalar(Type::Pred) {
            self.error(
                var.pos,
                format!("Predicate variable '{}' must be in register state space", name()),
            );
        }
        if var.align.is_some_and(|align| !is_alignment(align)) {
            self.error(var.pos, "Alignment must be a power of two".to_owned());
        }
        if var.element() > 16 {
            self.error(var.pos, "Vector type too large, exceeds 128 bit limit".to_owned());
        }
        if var.size.is_none() {
            self.error(var.pos, format!("Variable '{}' is too large", name()));
        }
        if var.linkage == Linkage::Common && var.space != DeclSpace::Global {
            let message = ".common variables must be declared in .global space";
            self.error(var.pos, message.to_owned());
        }
        if var.ty == DeclType::Opaque(Opaque::Sampler) && !self.ast.independent_textures {
            let message = "Instruction or declaration violates .target texmode_unified setting";
            self.error(var.pos, message.to_owned());
        }
        if var.managed && var.space != DeclSpace::Global {
            let message = format!("Illegal attribute '.managed' for symbol '{}'", name());
            self.error(var.pos, message);
        }
    }

    /// Declares a variable of module scope.
    pub(super) fn global_variable(&mut self, item: u32, var: &Var) {
        let name = self.text(var.name);
        let space = match var.space {
            DeclSpace::Global => Space::Global,
            DeclSpace::Const => Space::Const,
            DeclSpace::Shared => Space::Shared,
            // `.tex` is the old spelling of `.global .texref`.
            DeclSpace::Tex => Space::Global,
            DeclSpace::Param => {
                return self.error(
                    var.pos,
                    "Parameter variables may not be declared at module scope".to_owned(),
                );
            }
            DeclSpace::Local | DeclSpace::Reg => {
                let space = if var.space == DeclSpace::Reg { ".reg" } else { ".local" };
                let message = format!("Module-scoped variables in {space} state space are not allowed with ABI");
                return self.error(var.pos, message);
            }
        };
        self.check(var);
        // As in NVIDIA's compiler, arrays are not checked.
        if matches!(var.ty, DeclType::Opaque(_)) && space != Space::Global && var.dims.is_empty() {
            let message = "Texture and surface variables must be declared in .global space";
            self.error(var.pos, message.to_owned());
        }
        let Some(count) = var.count else {
            return self.declare(item, var, space, var.name);
        };
        // `a<3>` declares `a0`, `a1` and `a2`. As in NVIDIA's compiler, variables that the module does not mention do
        // not exist. Without the limit, many ranges with the same name would take quadratic time.
        let mentioned = self.mentions().numbers(name.as_bytes(), count).len();
        if !self.take_room(mentioned, name.len(), var.pos) {
            return;
        }
        for i in self.mentions().numbers(name.as_bytes(), count).to_vec() {
            if let Some(name) = self.ast.names.find(format!("{name}{i}").as_bytes()) {
                self.declare(item, var, space, name);
            }
        }
    }

    /// Declares a variable of module scope under a name.
    fn declare(&mut self, item: u32, var: &Var, space: Space, name: Name) {
        let text = self.text(name);
        let id = VarId(self.variables.len() as u32);
        let symbol = Symbol::Variable {
            var: id,
            element: var.element() as u32,
        };
        match self.globals.get(&name).copied() {
            None => {
                // The name is known in the variable's own initial value.
                self.globals.insert(name, Global { symbol, item });
                let variable = self.variable(var, space, text);
                self.variables.push(variable);
                self.types.push(var.ty);
            }
            Some(Global {
                symbol: Symbol::Variable { var: before, .. },
                ..
            }) => {
                let variable = self.variable(var, space, text.clone());
                let index = before.0 as usize;
                let Some(before) = self.variables.get_mut(index) else {
                    return;
                };
                if self.types.get(index) != Some(&var.ty) {
                    let message = format!("Inconsistent redefinition of variable '{text}'");
                    return self.error(var.pos, message);
                }
                match (before.linkage, variable.linkage) {
                    (_, Linkage::Extern) => {}
                    (Linkage::Extern, Linkage::Internal) => {
                        let message = format!("'.extern' variable '{text}' cannot be resolved by a '.static'");
                        self.error(var.pos, message);
                    }
                    (Linkage::Extern, _) => *before = variable,
                    _ => self.error(var.pos, format!("Duplicate definition of variable '{text}'")),
                }
            }
            Some(_) => self.error(var.pos, format!("Duplicate definition of variable '{text}'")),
        }
    }

    /// Makes a variable with its initial value, and reports errors in that value.
    pub(super) fn variable(&mut self, var: &Var, space: Space, name: String) -> Variable {
        let mut variable = Variable {
            name,
            space,
            linkage: var.linkage,
            size: var.size.unwrap_or(0),
            align: alignment(var),
            init: Vec::new(),
            relocs: Vec::new(),
            managed: var.managed,
            opaque: match (var.ty, var.space) {
                (DeclType::Opaque(opaque), _) => Some(opaque),
                (_, DeclSpace::Tex) => Some(Opaque::Texture),
                _ => None,
            },
        };
        match &var.init {
            Some(init) if matches!(space, Space::Global | Space::Const) && var.linkage != Linkage::Extern => {
                let space_of = |id: VarId| self.variables.get(id.0 as usize).map_or(space, |v| v.space);
                let nodes = self.ast.inits(init);
                match init::value(self.ast, &self.globals, &space_of, var, nodes, self.initial_room) {
                    Ok(value) => {
                        self.initial_room -= value.bytes.len();
                        variable.size = value.size;
                        variable.init = value.bytes;
                        variable.relocs = value.relocs;
                    }
                    Err((pos, message)) => self.report(Severity::Fatal, pos, message),
                }
            }
            Some(_) => {
                let text = self.text(var.name);
                let message = if var.linkage == Linkage::Extern {
                    format!("No initial value is allowed for external symbol '{text}'")
                } else {
                    format!("No initial value is allowed for '{text}' in this state space")
                };
                self.error(var.pos, message);
            }
            None if var.linkage != Linkage::Extern && (var.dims.contains(&None) || var.dims.contains(&Some(0))) => {
                let message = format!("Non-external variable '{}' has incomplete type", variable.name);
                self.error(var.pos, message);
            }
            None => {}
        }
        variable
    }
}
