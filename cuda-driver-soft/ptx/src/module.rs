//! Module scope: variables, functions, initial values. Makes the [`ir::Module`].

mod init;

use super::ast::*;
use super::diagnostics::{Diagnostics, Severity};
use super::forms::{self, Form, FormErrors};
use super::lower;
use super::names::{FastMap, Name};
use super::symbols::{self, SpecialReg, Symbol};
use crate::ir::{self, FuncId, Linkage, Space, Type, VarId};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A parsed module with the names of module scope resolved: all that lowering a body needs.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) ast: Ast,
    pub(super) specials: FastMap<Name, SpecialReg>,
    pub(super) globals: FastMap<Name, Global>,
    pub(super) functions: Vec<Signature>,
    pub(super) spaces: Vec<Space>,
    /// Of each variable, whether it stands for a texture or a surface.
    pub(super) opaques: Vec<Option<ir::Opaque>>,
    /// The module variable that a `.shared`, `.global` or `.const` declaration inside a function became, by its index
    /// in [`Ast::vars`].
    pub(super) statics: FastMap<u32, VarId>,
    /// What each opcode is, by its number; found when first met.
    forms: Vec<OnceLock<Result<Form, FormErrors>>>,
}

/// A name of module scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Global {
    pub(super) symbol: Symbol,
    /// The item that declared it first: names are known only after their declaration.
    pub(super) item: u32,
}

/// A function as the rest of the module sees it.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) name: Name,
    pub(super) entry: bool,
    /// Ranges of [`Ast::vars`].
    pub(super) returns: std::ops::Range<u32>,
    pub(super) params: std::ops::Range<u32>,
    /// Item that defines it, or the first that declares it.
    pub(super) item: u32,
    pub(super) defined: bool,
    pub(super) linkage: Linkage,
}

impl Unit {
    /// What an opcode is.
    pub(super) fn form(&self, opcode: u32) -> Result<&Form, &FormErrors> {
        static NONE: OnceLock<Result<Form, FormErrors>> = OnceLock::new();
        let slot = self.forms.get(opcode as usize).unwrap_or(&NONE);
        let found = slot.get_or_init(|| {
            let text = String::from_utf8_lossy(self.ast.opcodes.string(opcode));
            forms::find(&text)
        });
        found.as_ref()
    }

    /// The function of an item.
    pub(super) fn function(&self, item: u32) -> Option<&Function> {
        match self.ast.items.get(item as usize) {
            Some(Item::Function(function)) => Some(function),
            _ => None,
        }
    }

    /// The declarations of a range.
    pub(super) fn vars(&self, range: &std::ops::Range<u32>) -> &[Var] {
        self.ast
            .vars
            .get(range.start as usize..range.end as usize)
            .unwrap_or(&[])
    }
}

/// Functions that this driver provides itself.
const PROVIDED: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// The alignment of a declared variable.
pub(super) fn alignment(var: &Var) -> u64 {
    var.align
        .unwrap_or(0)
        .max(u64::from(var.ty.size()) * u64::from(var.vec))
        .max(1)
}

/// Makes the module, or at least finds out what is wrong with it.
pub(super) fn build(
    ast: Ast,
    text: &[u8],
    limits: &super::Limits,
    diagnostics: &mut Diagnostics,
) -> Option<ir::Module> {
    let mut builder = Builder {
        text,
        diagnostics,
        globals: FastMap::default(),
        variables: Vec::new(),
        types: Vec::new(),
        functions: Vec::new(),
        statics: FastMap::default(),
    };
    for (index, item) in ast.items.iter().enumerate() {
        builder.item(&ast, index as u32, item);
    }
    let Builder {
        globals,
        variables,
        functions,
        statics,
        ..
    } = builder;
    let unit = Arc::new(Unit {
        specials: symbols::specials(&ast.names),
        globals,
        functions,
        spaces: variables.iter().map(|v| v.space).collect(),
        opaques: variables.iter().map(|v| v.opaque).collect(),
        statics,
        forms: (0..ast.opcodes.len()).map(|_| OnceLock::new()).collect(),
        ast,
    });
    let mut uses: Vec<lower::Uses> = Vec::with_capacity(unit.functions.len());
    for (index, signature) in unit.functions.iter().enumerate() {
        uses.push(if signature.defined {
            lower::verify(&unit, FuncId(index as u32), text, diagnostics)
        } else {
            lower::Uses::default()
        });
    }
    let constants = variables.iter().filter(|v| v.space == Space::Const);
    let bytes = constants.fold(0u64, |end, v| {
        end.next_multiple_of(v.align.min(1 << 30))
            .saturating_add(v.size)
    });
    if bytes > 0x10000 {
        let message =
            format!("File uses too much global constant data ({bytes:#x} bytes, 0x10000 max)");
        diagnostics.push(Severity::Error, 0, 0, message);
    }
    if unit.ast.target.debug && !unit.ast.sections {
        let message = "Debug information not found in presence of .target debug";
        diagnostics.push(Severity::Error, 0, 0, message.to_owned());
    }
    if !limits.unresolved {
        for variable in variables
            .iter()
            .filter(|v| v.linkage == Linkage::Extern && v.space != Space::Shared)
        {
            let message = format!(
                "Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier",
                variable.name
            );
            diagnostics.push(Severity::Warning, 0, 0, message);
        }
        let called: BTreeSet<FuncId> = uses
            .iter()
            .flat_map(|u| u.functions.iter().copied())
            .collect();
        for (index, signature) in unit.functions.iter().enumerate() {
            let called = called.contains(&FuncId(index as u32));
            let name = unit.ast.names.text(signature.name);
            if called && !signature.defined && !PROVIDED.contains(&name.as_str()) {
                diagnostics.push(
                    Severity::Fatal,
                    0,
                    0,
                    format!("Unresolved extern function '{name}'"),
                );
                // A driver names the first.
                break;
            }
        }
    }
    shared_data(&unit, &variables, &uses, limits.sm, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let functions = (0..unit.functions.len())
        .map(|index| function(&unit, FuncId(index as u32)))
        .collect();
    Some(ir::Module {
        version: unit.ast.version,
        target: unit.ast.target.clone(),
        variables,
        functions,
    })
}

/// Bytes of shared memory that a block can have on this architecture.
fn most_shared(sm: u32) -> u64 {
    match sm {
        ..70 => 48 << 10,
        70..75 => 96 << 10,
        75..80 => 64 << 10,
        80 | 82 | 87 | 88 => 163 << 10,
        86 | 89 => 99 << 10,
        120.. => 99 << 10,
        _ => 227 << 10,
    }
}

/// Checks the `.shared` variables that each kernel needs, those of the functions that it calls included.
fn shared_data(
    unit: &Unit,
    variables: &[ir::Variable],
    uses: &[lower::Uses],
    sm: u32,
    diagnostics: &mut Diagnostics,
) {
    let shared = |id: &VarId| {
        variables
            .get(id.0 as usize)
            .filter(|v| v.space == Space::Shared)
    };
    let all = variables.iter().filter(|v| v.space == Space::Shared);
    let aligned = all.map(|v| v.size.saturating_add(v.align.min(1 << 30)));
    if aligned.fold(0, u64::saturating_add) <= most_shared(sm) {
        return;
    }
    for (index, signature) in unit
        .functions
        .iter()
        .enumerate()
        .filter(|(_, s)| s.entry && s.defined)
    {
        let mut reached = BTreeSet::from([FuncId(index as u32)]);
        let mut open = vec![FuncId(index as u32)];
        let mut needed = BTreeSet::new();
        while let Some(uses) = open.pop().and_then(|id| uses.get(id.0 as usize)) {
            needed.extend(uses.variables.iter().copied());
            open.extend(
                uses.functions
                    .iter()
                    .copied()
                    .filter(|id| reached.insert(*id)),
            );
        }
        let bytes = needed
            .iter()
            .filter_map(shared)
            .fold(0u64, |end, variable| {
                end.next_multiple_of(variable.align.min(1 << 30))
                    .saturating_add(variable.size)
            });
        let most = most_shared(sm);
        if bytes > most {
            let name = unit.ast.names.text(signature.name);
            let message = format!(
                "Entry function '{name}' uses too much shared data ({bytes:#x} bytes, {most:#x} max)"
            );
            diagnostics.push(Severity::Error, 0, 0, message);
        }
    }
}

fn function(unit: &Arc<Unit>, id: FuncId) -> ir::Function {
    let signature = &unit.functions[id.0 as usize];
    let source = unit.function(signature.item);
    let code = signature.defined.then(|| {
        let unit = Arc::clone(unit);
        ir::Code::lazy(move || lower::lower(&unit, id))
    });
    ir::Function {
        name: unit.ast.names.text(signature.name),
        kind: if signature.entry {
            ir::FunctionKind::Entry
        } else {
            ir::FunctionKind::Device
        },
        linkage: signature.linkage,
        params: parameters(unit, &signature.params),
        returns: parameters(unit, &signature.returns),
        directives: source.map(|f| f.directives.clone()).unwrap_or_default(),
        line: source.map_or(0, |f| f.pos.line),
        code,
    }
}

/// Parameters in order, each at the next offset that its alignment allows.
pub(super) fn parameters(unit: &Unit, range: &std::ops::Range<u32>) -> Vec<ir::Param> {
    let mut offset = 0u64;
    let layout = |var: &Var| {
        let align = alignment(var);
        offset = offset.next_multiple_of(align);
        let size = var.size().unwrap_or(0);
        let param = ir::Param {
            name: unit.ast.names.text(var.name),
            offset,
            size,
            align,
            ty: match var.ty {
                DeclType::Scalar(ty) => ty,
                DeclType::Opaque(_) => Type::B64,
            },
        };
        offset += size;
        param
    };
    unit.vars(range).iter().map(layout).collect()
}

struct Builder<'a> {
    text: &'a [u8],
    diagnostics: &'a mut Diagnostics,
    globals: FastMap<Name, Global>,
    variables: Vec<ir::Variable>,
    /// The types they were declared with.
    types: Vec<DeclType>,
    functions: Vec<Signature>,
    statics: FastMap<u32, VarId>,
}

impl Builder<'_> {
    fn error(&mut self, pos: Pos, message: String) {
        let column = self.diagnostics.column(self.text, pos.offset);
        self.diagnostics
            .push(Severity::Error, pos.line, column, message);
    }

    fn item(&mut self, ast: &Ast, index: u32, item: &Item) {
        match item {
            Item::Var(var) => {
                if let Some(var) = ast.vars.get(*var as usize) {
                    self.global_variable(ast, index, var);
                }
            }
            Item::Function(function) => self.function(ast, index, function),
            Item::Alias { name, aliasee, pos } => {
                // The alias itself was declared before, by a prototype; from here on it means the aliasee.
                let Some(target) = self.globals.get(aliasee).copied() else {
                    return self.error(
                        *pos,
                        format!("Unknown symbol '{}'", ast.names.text(*aliasee)),
                    );
                };
                match self.globals.get_mut(name) {
                    Some(global) => global.symbol = target.symbol,
                    None => self.error(*pos, format!("Unknown symbol '{}'", ast.names.text(*name))),
                }
            }
        }
    }

    /// The checks that hold for a variable in memory, wherever it is declared.
    fn check(&mut self, ast: &Ast, var: &Var) {
        let name = || ast.names.text(var.name);
        if var.ty == DeclType::Scalar(Type::Pred) {
            self.error(
                var.pos,
                format!(
                    "Predicate variable '{}' must be in register state space",
                    name()
                ),
            );
        }
        if var.align.is_some_and(|a| !a.is_power_of_two()) {
            self.error(var.pos, "Alignment must be a power of two".to_owned());
        }
        if u64::from(var.ty.size()) * u64::from(var.vec) > 16 {
            self.error(
                var.pos,
                "Vector type too large, exceeds 128 bit limit".to_owned(),
            );
        }
        if var.size().is_none() {
            self.error(var.pos, format!("Variable '{}' is too large", name()));
        }
        if var.linkage == Linkage::Common && var.space != DeclSpace::Global {
            let message = ".common variables must be declared in .global space";
            self.error(var.pos, message.to_owned());
        }
        if var.ty == DeclType::Opaque(ir::Opaque::Sampler) && !ast.independent_textures {
            let message = "Instruction or declaration violates .target texmode_unified setting";
            self.error(var.pos, message.to_owned());
        }
        if var.managed && var.space != DeclSpace::Global {
            let message = format!("Illegal attribute '.managed' for symbol '{}'", name());
            self.error(var.pos, message);
        }
    }

    fn global_variable(&mut self, ast: &Ast, item: u32, var: &Var) {
        let name = ast.names.text(var.name);
        let space = match var.space {
            DeclSpace::Global => Space::Global,
            DeclSpace::Const => Space::Const,
            DeclSpace::Shared => Space::Shared,
            // `.tex` is the old spelling of a global of an opaque type.
            DeclSpace::Tex => Space::Global,
            DeclSpace::Param => {
                return self.error(
                    var.pos,
                    "Parameter variables may not be declared at module scope".to_owned(),
                );
            }
            DeclSpace::Local | DeclSpace::Reg => {
                let space = if var.space == DeclSpace::Reg {
                    ".reg"
                } else {
                    ".local"
                };
                let message = format!(
                    "Module-scoped variables in {space} state space are not allowed with ABI"
                );
                return self.error(var.pos, message);
            }
        };
        self.check(ast, var);
        let Some(count) = var.count else {
            return self.declare(ast, item, var, space, var.name);
        };
        // `a<3>` are `a0`, `a1`, `a2`: those that are mentioned.
        for i in 0..count.min(1 << 16) {
            if let Some(name) = ast.names.find(format!("{name}{i}").as_bytes()) {
                self.declare(ast, item, var, space, name);
            }
        }
    }

    /// Declares a variable of module scope under this name.
    fn declare(&mut self, ast: &Ast, item: u32, var: &Var, space: Space, name: Name) {
        let text = ast.names.text(name);
        let id = VarId(self.variables.len() as u32);
        let symbol = Symbol::Variable {
            var: id,
            element: var.element() as u32,
        };
        match self.globals.get(&name).copied() {
            None => {
                // Known from here on: its own initial value may name it.
                self.globals.insert(name, Global { symbol, item });
                let variable = self.variable(ast, var, space, text);
                self.variables.push(variable);
                self.types.push(var.ty);
            }
            Some(Global {
                symbol: Symbol::Variable { var: before, .. },
                ..
            }) => {
                let variable = self.variable(ast, var, space, text.clone());
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
                        let message = format!(
                            "'.extern' variable '{text}' cannot be resolved by a '.static'"
                        );
                        self.error(var.pos, message);
                    }
                    (Linkage::Extern, _) => *before = variable,
                    _ => self.error(
                        var.pos,
                        format!("Duplicate definition of variable '{text}'"),
                    ),
                }
            }
            Some(_) => self.error(
                var.pos,
                format!("Duplicate definition of variable '{text}'"),
            ),
        }
    }

    fn variable(&mut self, ast: &Ast, var: &Var, space: Space, name: String) -> ir::Variable {
        let mut variable = ir::Variable {
            name,
            space,
            linkage: var.linkage,
            size: var.size().unwrap_or(0),
            align: alignment(var),
            init: Vec::new(),
            relocs: Vec::new(),
            managed: var.managed,
            opaque: match (var.ty, var.space) {
                (DeclType::Opaque(opaque), _) => Some(opaque),
                // The old spelling.
                (_, DeclSpace::Tex) => Some(ir::Opaque::Texture),
                _ => None,
            },
        };
        match &var.init {
            Some(init)
                if matches!(space, Space::Global | Space::Const)
                    && var.linkage != Linkage::Extern =>
            {
                let nodes = ast
                    .inits
                    .get(init.start as usize..init.end as usize)
                    .unwrap_or(&[]);
                let space_of =
                    |id: VarId| self.variables.get(id.0 as usize).map_or(space, |v| v.space);
                match init::value(ast, &self.globals, &space_of, var, nodes) {
                    Ok(value) => {
                        variable.size = value.size;
                        variable.init = value.bytes;
                        variable.relocs = value.relocs;
                    }
                    Err((pos, message)) => {
                        let column = self.diagnostics.column(self.text, pos.offset);
                        self.diagnostics
                            .push(Severity::Fatal, pos.line, column, message);
                    }
                }
            }
            Some(_) => {
                let text = ast.names.text(var.name);
                let message = if var.linkage == Linkage::Extern {
                    format!("No initial value is allowed for external symbol '{text}'")
                } else {
                    format!("No initial value is allowed for '{text}' in this state space")
                };
                self.error(var.pos, message);
            }
            None if var.linkage != Linkage::Extern
                && (var.dims.contains(&None) || var.dims.contains(&Some(0))) =>
            {
                let message = format!(
                    "Non-external variable '{}' has incomplete type",
                    variable.name
                );
                self.error(var.pos, message);
            }
            None => {}
        }
        variable
    }

    fn function(&mut self, ast: &Ast, item: u32, function: &Function) {
        let name = ast.names.text(function.name);
        let mut signature = Signature {
            name: function.name,
            entry: function.entry,
            returns: function.returns.clone(),
            params: function.params.clone(),
            item,
            defined: function.body.is_some(),
            linkage: function.linkage,
        };
        self.parameters(ast, function);
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
                if let Some(message) = self.disagreement(ast, &before, function) {
                    self.error(function.pos, message);
                }
                if signature.defined {
                    let (old, new) = (before.linkage, signature.linkage);
                    if old != new && new != Linkage::Internal || old == Linkage::Extern {
                        let message = format!("Inconsistent redefinition of variable '{name}'");
                        self.error(function.pos, message);
                    }
                    if old == Linkage::Extern {
                        let message = format!(
                            "Function definition conflicts with '.extern' declaration for function '{name}'"
                        );
                        self.error(function.pos, message);
                    }
                    signature.linkage = if new == Linkage::Internal { old } else { new };
                    self.functions[id.0 as usize] = signature;
                }
            }
            Some(_) => self.error(
                function.pos,
                format!("Duplicate definition of variable '{name}'"),
            ),
        }
        let Some(body) = &function.body else { return };
        for statement in ast
            .statements
            .get(body.start as usize..body.end as usize)
            .unwrap_or(&[])
        {
            let Statement::Var(index) = statement else {
                continue;
            };
            let Some(var) = ast.vars.get(*index as usize) else {
                continue;
            };
            let space = match var.space {
                DeclSpace::Global | DeclSpace::Tex => Space::Global,
                DeclSpace::Const => Space::Const,
                DeclSpace::Shared => Space::Shared,
                DeclSpace::Local | DeclSpace::Param | DeclSpace::Reg => continue,
            };
            self.check(ast, var);
            let text = format!("{name}${}", ast.names.text(var.name));
            let variable = self.variable(ast, var, space, text);
            self.statics
                .insert(*index, VarId(self.variables.len() as u32));
            self.variables.push(variable);
            self.types.push(var.ty);
        }
    }

    fn parameters(&mut self, ast: &Ast, function: &Function) {
        let returns = list(ast, &function.returns);
        for var in list(ast, &function.params).iter().chain(returns) {
            let name = || ast.names.text(var.name);
            match var.space {
                DeclSpace::Param => {
                    self.check(ast, var);
                    if var.vec > 1 || var.ty == DeclType::Scalar(Type::F16x2) {
                        let message = format!(
                            "Variable '{}' cannot be allocated in .param state space",
                            name()
                        );
                        self.error(var.pos, message);
                    }
                }
                DeclSpace::Reg if !function.entry => {}
                _ if function.entry => {
                    let message =
                        format!("Entry parameter '{}' must have .param state space", name());
                    self.error(var.pos, message);
                }
                _ => {
                    let message = format!(
                        "Function parameter '{}' must have .reg or .param state space",
                        name()
                    );
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
            let vars = list(ast, &function.params);
            let bytes = vars.iter().fold(0u64, |end, var| {
                end.next_multiple_of(alignment(var).min(1 << 30))
                    .saturating_add(var.size().unwrap_or(0))
            });
            let most = if ast.version >= (8, 1) && ast.target.sm >= 70 {
                0x7ffc
            } else {
                0x1100
            };
            if bytes > most {
                let name = ast.names.text(function.name);
                let message = format!(
                    "Entry function '{name}' uses too much parameter space ({bytes:#x} bytes, {most:#x} max)."
                );
                self.error(function.pos, message);
            }
        }
    }

    /// What differs between two declarations of a function.
    fn disagreement(&self, ast: &Ast, before: &Signature, function: &Function) -> Option<String> {
        let name = ast.names.text(function.name);
        let differ = |what: &str| {
            Some(format!(
                "Inconsistent prototypes of '{name}', {what} differ"
            ))
        };
        let pairs = [
            (
                list(ast, &before.params),
                list(ast, &function.params),
                "parameter",
            ),
            (
                list(ast, &before.returns),
                list(ast, &function.returns),
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

/// The declarations of a range.
fn list<'a>(ast: &'a Ast, range: &std::ops::Range<u32>) -> &'a [Var] {
    ast.vars
        .get(range.start as usize..range.end as usize)
        .unwrap_or(&[])
}
