//! Builds the functions of a module: their declarations, parameters and static variables.

use std::ops::Range;

use crate::ast::{DeclSpace, DeclType, Function, Pos, Statement, Var};
use crate::ir::{FuncId, Linkage, Space, Type, VarId};
use crate::names::Name;
use crate::scopes::Symbol;
use crate::unit::{Global, Signature, alignment, layout_end};

use super::builder::ModuleBuilder;

/// The declarations of a function's parameters and return parameters.
type Prototype<'a> = (&'a Range<u32>, &'a Range<u32>);

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
        if signature.defined && signature.linkage == Linkage::Extern {
            let message = format!("Function definition conflicts with '.extern' declaration for function '{name}'");
            self.error(function.pos, message);
        }
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
                let declared = (&function.params, &function.returns);
                let shown = self.shown(function.name);
                for part in self.differences((&before.params, &before.returns), declared) {
                    let message = format!("Inconsistent prototypes of '{shown}', {part} differ");
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
            self.statics.insert(*index, VarId(self.variables.len() as u32));
            self.static_variables(&name, var, space);
        }
    }

    /// Adds a static variable of a function, or the variables of a range.
    fn static_variables(&mut self, function: &str, var: &Var, space: Space) {
        let own = self.text(var.name);
        for i in 0..var.count.unwrap_or(1) {
            let number = var.count.map_or(String::new(), |_| i.to_string());
            // Many variables can have the name of one function.
            let bytes = function.len() + own.len() + number.len() + 1;
            if !self.take_room(1, bytes, var.pos) {
                return;
            }
            let variable = self.variable(var, space, format!("{function}${own}{number}"));
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
            if var.name == Name::SINK && !function.entry {
                self.error(var.pos, "Illegal parameter name '_'".to_owned());
            }
            match var.space {
                DeclSpace::Param => {
                    self.check(var);
                    let packed = var.vec > 1 || var.ty == DeclType::Scalar(Type::F16x2);
                    let opaque = matches!(var.ty, DeclType::Opaque(_)) && !function.entry && function.body.is_some();
                    // As in NVIDIA's compiler, arrays of these types are allowed.
                    if (packed || opaque) && var.dims.is_empty() {
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
            if function.entry && (var.dims.contains(&None) || var.dims.contains(&Some(0))) {
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
            let bytes = layout_end(vars.map(|v| (v.size.unwrap_or(0), alignment(v))));
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

    /// Makes a declared function an alias of another function, as `.alias` requests.
    pub(super) fn alias(&mut self, name: Name, aliasee: Name, pos: Pos) {
        let mut found = [None, None];
        for (found, name) in found.iter_mut().zip([name, aliasee]) {
            let Some(global) = self.globals.get(&name) else {
                return self.error(pos, format!("Unknown symbol '{}'", self.text(name)));
            };
            *found = match global.symbol {
                Symbol::Function(id) => Some(id),
                _ => None,
            };
        }
        let [alias, target] = [name, aliasee].map(|name| self.shown(name));
        let [Some(own), Some(id)] = found else {
            let variables = [&alias, &target]
                .into_iter()
                .zip(found)
                .filter(|(_, found)| found.is_none());
            for (variable, _) in variables {
                self.error(pos, format!("Cannot define alias to variable object '{variable}'"));
            }
            return;
        };
        let [before, function] = [own, id].map(|id| self.functions[id.0 as usize].clone());
        if before.name != name {
            // Prototypes are compared once for each alias, so that the time is linear in the text.
            let other = self.shown(before.name);
            return self.error(
                pos,
                format!("'{alias}' is already aliased to '{other}' and cannot be redefined"),
            );
        }
        if let Some(global) = self.globals.get_mut(&name) {
            global.symbol = Symbol::Function(id);
        }
        if before.defined {
            self.error(pos, format!("Illegal redefinition of function '{alias}' as alias"));
        }
        if name == aliasee {
            return self.error(pos, "Cannot alias a function to itself".to_owned());
        }
        for (name, signature) in [(&alias, &before), (&target, &function)] {
            if signature.entry {
                self.error(pos, format!("Cannot define alias to entry function '{name}'"));
            }
        }
        for part in self.differences((&before.params, &before.returns), (&function.params, &function.returns)) {
            self.error(
                pos,
                format!("Mismatch in prototype of alias '{alias}' and aliasee '{target}'. {part} differ(s)"),
            );
        }
        let scope = match function.linkage {
            Linkage::Weak => ".weak",
            Linkage::Extern => ".extern",
            _ => return,
        };
        self.error(pos, format!("Function '{target}' with {scope} scope cannot be aliased"));
    }

    /// Returns the parts in which two prototypes differ.
    fn differences(&self, one: Prototype<'_>, other: Prototype<'_>) -> Vec<&'static str> {
        let mut parts = Vec::new();
        for (a, b) in [(one.0, other.0), (one.1, other.1)] {
            let (a, b) = (self.ast.vars(a), self.ast.vars(b));
            if a.len() != b.len() {
                parts.push("number of parameters");
                continue;
            }
            for (a, b) in a.iter().zip(b) {
                if a.ty != b.ty || a.dims != b.dims || a.vec != b.vec {
                    parts.push("parameter types");
                }
                if alignment(a) != alignment(b) {
                    parts.push("parameter alignment");
                }
                if a.space != b.space {
                    parts.push("parameter state space");
                }
            }
        }
        parts
    }
}
