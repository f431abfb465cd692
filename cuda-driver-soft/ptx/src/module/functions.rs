//! Builds the functions of a module: their declarations, parameters and static variables.

use crate::ast::{DeclSpace, DeclType, Function, Statement};
use crate::ir::{FuncId, Linkage, Space, Type, VarId};
use crate::scopes::Symbol;
use crate::unit::{Global, Signature, alignment, layout_end};

use super::builder::ModuleBuilder;

impl ModuleBuilder<'_> {
    /// Declares a function, and the `.global`, `.const` and `.shared` variables in its body.
    pub(super) fn function(&mut self, item: u32, function: &Function) {
        let name = self.text(function.name);
        let mut signature = Signature {
            name: function.name,
            entry: function.entry,
            returns: function.returns.clone(),
            params: function.params.clone(),
            item,
            defined: function.body.is_some(),
            linkage: function.linkage,
        };
        self.parameters(function);
        match self.globals.get(&function.name).copied() {
            None => {
                let symbol = Symbol::Function(FuncId(self.functions.len() as u32));
                self.functions.push(signature);
                self.globals.insert(function.name, Global { symbol, item });
            }
            Some(Global {
                symbol: Symbol::Function(id),
                ..
            }) => {
                let before = self.functions[id.0 as usize].clone();
                if before.entry != function.entry || (before.defined && signature.defined) {
                    let message = format!("Duplicate definition of function '{name}'");
                    return self.error(function.pos, message);
                }
                if let Some(message) = self.disagreement(&before, function) {
                    self.error(function.pos, message);
                }
                if signature.defined {
                    let (old, new) = (before.linkage, signature.linkage);
                    if old != new && new != Linkage::Internal || old == Linkage::Extern {
                        let message = format!("Inconsistent redefinition of variable '{name}'");
                        self.error(function.pos, message);
                    }
                    if old == Linkage::Extern {
                        let message =
                            format!("Function definition conflicts with '.extern' declaration for function '{name}'");
                        self.error(function.pos, message);
                    }
                    signature.linkage = if new == Linkage::Internal { old } else { new };
                    self.functions[id.0 as usize] = signature;
                }
            }
            Some(_) => self.error(function.pos, format!("Duplicate definition of variable '{name}'")),
        }
        let Some(body) = &function.body else { return };
        for statement in self.ast.statements(body) {
            let Statement::Var(index) = statement else {
                continue;
            };
            let Some(var) = self.ast.vars.get(*index as usize) else {
                continue;
            };
            let space = match var.space {
                DeclSpace::Global | DeclSpace::Tex => Space::Global,
                DeclSpace::Const => Space::Const,
                DeclSpace::Shared => Space::Shared,
                DeclSpace::Local | DeclSpace::Param | DeclSpace::Reg => continue,
            };
            self.check(var);
            let own = self.text(var.name);
            let Some(room) = self.static_name_room.checked_sub(name.len() + 1 + own.len()) else {
                let message = "The names of the static variables of functions have too many bytes".to_owned();
                return self.error(var.pos, message);
            };
            self.static_name_room = room;
            let text = format!("{name}${own}");
            let variable = self.variable(var, space, text);
            self.statics.insert(*index, VarId(self.variables.len() as u32));
            self.variables.push(variable);
            self.types.push(var.ty);
        }
    }

    /// Checks the declarations of the parameters and return parameters.
    fn parameters(&mut self, function: &Function) {
        let ast = self.ast;
        let returns = ast.vars(&function.returns);
        for var in ast.vars(&function.params).iter().chain(returns) {
            let name = || ast.names.text(var.name);
            match var.space {
                DeclSpace::Param => {
                    self.check(var);
                    if var.vec > 1 || var.ty == DeclType::Scalar(Type::F16x2) {
                        let message = format!("Variable '{}' cannot be allocated in .param state space", name());
                        self.error(var.pos, message);
                    }
                }
                DeclSpace::Reg if !function.entry => {}
                _ if function.entry => {
                    let message = format!("Entry parameter '{}' must have .param state space", name());
                    self.error(var.pos, message);
                }
                _ => {
                    let message = format!("Function parameter '{}' must have .reg or .param state space", name());
                    self.error(var.pos, message);
                }
            }
            if function.entry && var.dims.contains(&None) {
                let message = "Parameter to entry function cannot be an incomplete array.";
                self.error(var.pos, message.to_owned());
            }
        }
        if returns.len() > 1 && returns.iter().any(|var| var.space == DeclSpace::Param) {
            let message = "Multiple return parameters require .register state space";
            self.error(function.pos, message.to_owned());
        }
        if function.entry {
            let vars = self.ast.vars(&function.params).iter();
            let bytes = layout_end(vars.map(|v| (v.size().unwrap_or(0), alignment(v))));
            // PTX 8.1 raised the limit for sm_70 and later.
            let most = if self.ast.version >= (8, 1) && self.ast.target.sm >= 70 {
                0x7ffc
            } else {
                0x1100
            };
            if bytes > most {
                let name = self.text(function.name);
                let message =
                    format!("Entry function '{name}' uses too much parameter space ({bytes:#x} bytes, {most:#x} max).");
                self.error(function.pos, message);
            }
        }
    }

    /// Returns a message if two declarations of a function differ.
    fn disagreement(&self, before: &Signature, function: &Function) -> Option<String> {
        let name = self.text(function.name);
        let differ = |part: &str| Some(format!("Inconsistent prototypes of '{name}', {part} differ"));
        let pairs = [
            (
                self.ast.vars(&before.params),
                self.ast.vars(&function.params),
                "parameter",
            ),
            (
                self.ast.vars(&before.returns),
                self.ast.vars(&function.returns),
                "return parameter",
            ),
        ];
        for (a, b, kind) in pairs {
            if a.len() != b.len() {
                return differ("number of parameters");
            }
            for (a, b) in a.iter().zip(b) {
                if a.space != b.space {
                    return differ(&format!("{kind} state space"));
                }
                if a.ty != b.ty || a.dims != b.dims || a.vec != b.vec {
                    return differ(&format!("{kind} types"));
                }
                if alignment(a) != alignment(b) {
                    return differ(&format!("{kind} alignment"));
                }
            }
        }
        None
    }
}
