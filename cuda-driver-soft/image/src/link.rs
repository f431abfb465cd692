//! Linking: several modules become one, in which declarations refer to the definitions of other modules.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ptx::PROVIDED_FUNCTIONS;
use ptx::ir::{
    Address, Body, CallSlot, Callee, Code, FuncId, Function, Module, Op, Operand, Reloc, RelocTarget, Target, VarId,
    Variable,
};

use crate::definitions::{Precedence, is_defined, is_global, is_strong, precedence};

/// A module and its name in messages.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name in messages.
    pub name: String,
    /// The loaded module.
    pub module: Arc<Module>,
}

/// A reference to a name that no input defines.
///
/// `Display` prints the text of NVIDIA's linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedReference {
    /// The name of the function or variable.
    pub symbol: String,
    /// The name of the input that refers to the symbol.
    pub input: String,
}

impl std::fmt::Display for UndefinedReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UndefinedReference { symbol, input } = self;
        write!(f, "Undefined reference to '{symbol}' in '{input}'")
    }
}

/// Returns true if the module or the driver contains the code of the function.
fn has_code(function: &Function) -> bool {
    function.code.is_some() || PROVIDED_FUNCTIONS.contains(&&*function.name)
}

/// Returns true if the module only declares the variable, so that another module must define it. No module defines the
/// dynamic shared memory of a launch.
fn is_external(variable: &Variable) -> bool {
    !is_defined(variable) && !variable.is_dynamic()
}

/// The members of libraries that must be linked with some inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed<'a> {
    /// The indices of the members, in the order in which they are linked.
    pub members: Vec<usize>,
    /// The names that the inputs and these members refer to, and that none of them defines.
    pub missing: HashSet<&'a str>,
}

/// Returns the members of libraries that define names which are otherwise missing. Adds one member at a time: the first
/// that defines a name that is missing then.
pub fn needed<'a>(inputs: &'a [Input], members: &[&'a Module]) -> Needed<'a> {
    let mut definers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (member, module) in members.iter().enumerate() {
        for name in defined(module) {
            definers.entry(name).or_default().push(member);
        }
    }
    let mut known: HashSet<&str> = inputs.iter().flat_map(|input| defined(&input.module)).collect();
    let mut needed = Needed::default();
    // Members, each with a name that it defines and that was missing when the pair was added.
    let mut candidates: BTreeSet<(usize, &str)> = BTreeSet::new();
    let refer = |module, known: &HashSet<&str>, missing: &mut HashSet<&'a str>, candidates: &mut BTreeSet<_>| {
        for name in undefined(module) {
            if !known.contains(name) && missing.insert(name) {
                let definers = definers.get(name).into_iter().flatten();
                candidates.extend(definers.map(|member| (*member, name)));
            }
        }
    };
    for input in inputs {
        refer(&input.module, &known, &mut needed.missing, &mut candidates);
    }
    while let Some((member, name)) = candidates.pop_first() {
        if !needed.missing.contains(name) {
            // Another member has defined the name.
            continue;
        }
        needed.members.push(member);
        for name in defined(members[member]) {
            known.insert(name);
            needed.missing.remove(name);
        }
        refer(members[member], &known, &mut needed.missing, &mut candidates);
    }
    needed
}

/// Returns the names that a module refers to and does not define, and which the driver does not provide.
fn undefined(module: &Module) -> impl Iterator<Item = &str> {
    let used = references(module);
    let functions = used.functions.into_iter().filter_map(|id| {
        let function = module.functions.get(id.0 as usize)?;
        (!has_code(function)).then_some(&*function.name)
    });
    let variables = used.variables.into_iter().filter_map(|id| {
        let variable = module.variables.get(id.0 as usize)?;
        is_external(variable).then_some(&*variable.name)
    });
    functions.chain(variables)
}

/// Returns the names that a module defines for others.
fn defined(module: &Module) -> impl Iterator<Item = &str> {
    let functions = module.functions.iter();
    let functions = functions.filter(|f| is_global(f.linkage) && f.code.is_some());
    let variables = module.variables.iter();
    let variables = variables.filter(|v| is_global(v.linkage) && is_defined(v));
    let functions = functions.map(|f| &*f.name);
    functions.chain(variables.map(|v| &*v.name))
}

/// The indices in the linked module of one input's variables and functions.
#[derive(Clone, Debug, Default)]
struct NewIds {
    variables: Vec<VarId>,
    functions: Vec<FuncId>,
}

impl NewIds {
    fn variable(&self, id: VarId) -> VarId {
        self.variables[id.0 as usize]
    }

    fn function(&self, id: FuncId) -> FuncId {
        self.functions[id.0 as usize]
    }
}

/// A module being linked.
#[derive(Default)]
struct Linker<'a> {
    variables: Vec<Variable>,
    /// The input that defines or declares each variable.
    owners: Vec<usize>,
    /// The input and the index in its module of each function.
    functions: Vec<(usize, usize)>,
    variable_names: HashMap<&'a str, VarId>,
    function_names: HashMap<&'a str, FuncId>,
    /// The new indices of each input.
    new_ids: Vec<NewIds>,
}

/// Links the inputs in order. They must not conflict: see [`Definitions`](crate::Definitions).
///
/// # Errors
/// Returns the references to names that no input defines.
pub fn link(inputs: &[Input]) -> Result<Arc<Module>, Vec<UndefinedReference>> {
    let mut linker = Linker::default();
    linker.new_ids.resize_with(inputs.len(), NewIds::default);
    // Adds all definitions first, so that declarations also find definitions of later inputs.
    for (index, input) in inputs.iter().enumerate() {
        linker.add_variables(index, &input.module);
        linker.add_functions(index, &input.module);
    }
    let undefined: Vec<_> = inputs
        .iter()
        .enumerate()
        .flat_map(|(index, input)| linker.resolve(index, input))
        .collect();
    if undefined.is_empty() {
        Ok(Arc::new(linker.finish(inputs)))
    } else {
        Err(undefined)
    }
}

impl<'a> Linker<'a> {
    fn add_variables(&mut self, input: usize, module: &'a Module) {
        for variable in &module.variables {
            let is_shared_name = is_global(variable.linkage) && is_defined(variable);
            let known = self.variable_names.get(&*variable.name);
            let id = match known.copied().filter(|_| is_shared_name) {
                Some(id) => {
                    // `.weak` and `.common` definitions may be repeated.
                    let first = &mut self.variables[id.0 as usize];
                    let (old, new) = (precedence(first), precedence(variable));
                    if new > old || (new == Precedence::Common && variable.size > first.size) {
                        *first = variable.clone();
                        self.owners[id.0 as usize] = input;
                    }
                    id
                }
                None => {
                    let id = VarId(self.variables.len() as u32);
                    self.variables.push(variable.clone());
                    self.owners.push(input);
                    if is_shared_name {
                        self.variable_names.insert(&variable.name, id);
                    }
                    id
                }
            };
            self.new_ids[input].variables.push(id);
        }
    }

    fn add_functions(&mut self, input: usize, module: &'a Module) {
        for (index, function) in module.functions.iter().enumerate() {
            let is_shared_name = is_global(function.linkage) && function.code.is_some();
            let known = self.function_names.get(&*function.name);
            let id = match known.copied().filter(|_| is_shared_name) {
                Some(id) => {
                    // A `.weak` definition is linked only if no input has another one.
                    if is_strong(function) {
                        self.functions[id.0 as usize] = (input, index);
                    }
                    id
                }
                None => {
                    let id = FuncId(self.functions.len() as u32);
                    self.functions.push((input, index));
                    if is_shared_name {
                        self.function_names.insert(&function.name, id);
                    }
                    id
                }
            };
            self.new_ids[input].functions.push(id);
        }
    }

    /// Replaces an input's declarations by definitions. Returns the references to names without a definition.
    fn resolve(&mut self, index: usize, input: &Input) -> Vec<UndefinedReference> {
        let module = &input.module;
        let used = references(module);
        let new_ids = &mut self.new_ids[index];
        let mut undefined = Vec::new();
        let mut add_undefined = |symbol: &str| {
            undefined.push(UndefinedReference {
                symbol: symbol.to_owned(),
                input: input.name.clone(),
            });
        };
        for (i, variable) in module.variables.iter().enumerate() {
            if !is_external(variable) {
                continue;
            }
            match self.variable_names.get(&*variable.name) {
                Some(id) => new_ids.variables[i] = *id,
                None if used.variables.contains(&VarId(i as u32)) => add_undefined(&variable.name),
                None => {}
            }
        }
        for (i, function) in module.functions.iter().enumerate() {
            if has_code(function) {
                continue;
            }
            match self.function_names.get(&*function.name) {
                Some(id) => new_ids.functions[i] = *id,
                None if used.functions.contains(&FuncId(i as u32)) => add_undefined(&function.name),
                None => {}
            }
        }
        undefined
    }

    /// Returns the linked module.
    fn finish(mut self, inputs: &[Input]) -> Module {
        let new_ids: Vec<Arc<NewIds>> = self.new_ids.into_iter().map(Arc::new).collect();
        for (variable, owner) in self.variables.iter_mut().zip(self.owners) {
            for reloc in &mut variable.relocs {
                renumber_reloc(reloc, &new_ids[owner]);
            }
        }
        let functions = self.functions.into_iter();
        let functions = functions
            .map(|(input, index)| linked_function(&inputs[input].module, index, &new_ids[input]))
            .collect();
        let modules = || inputs.iter().map(|i| &i.module);
        let newest = modules().max_by_key(|module| module.target.sm);
        // Without inputs the module is empty.
        let no_target = Target {
            sm: 0,
            suffix: None,
            debug: false,
            map_f64_to_f32: false,
        };
        Module {
            version: modules().map(|m| m.version).max().unwrap_or((1, 0)),
            target: newest.map_or(no_target, |module| module.target.clone()),
            variables: self.variables,
            functions,
        }
    }
}

/// The variables and functions to which the code and the initial values of a module refer.
#[derive(Default)]
struct References {
    variables: BTreeSet<VarId>,
    functions: BTreeSet<FuncId>,
}

fn references(module: &Module) -> References {
    let mut found = References::default();
    for reloc in module.variables.iter().flat_map(|v| &v.relocs) {
        match reloc.target {
            RelocTarget::Variable(id) => found.variables.insert(id),
            RelocTarget::Function(id) => found.functions.insert(id),
        };
    }
    for inst in module.functions.iter().filter_map(|f| f.body()).flat_map(|b| &b.insts) {
        let mut operands: Vec<Operand> = inst.srcs.clone();
        if let Op::Call { callee, args, rets, .. } = &inst.op {
            if let Callee::Direct(id) = callee {
                found.functions.insert(*id);
            }
            operands.extend(args.iter().chain(rets).filter_map(|slot| match slot {
                CallSlot::Value(operand) => Some(*operand),
                CallSlot::Frame { .. } => None,
            }));
        }
        for operand in operands {
            match operand {
                Operand::Address(Address::Variable { var, .. }) => found.variables.insert(var),
                Operand::Address(Address::Function(id)) => found.functions.insert(id),
                _ => continue,
            };
        }
    }
    found
}

/// Returns a function of the linked module. Its body is lowered on first use, as in the module that it comes from.
fn linked_function(module: &Arc<Module>, index: usize, new_ids: &Arc<NewIds>) -> Function {
    let function = &module.functions[index];
    let code = function.code.as_ref().map(|_| {
        let (module, new_ids) = (Arc::clone(module), Arc::clone(new_ids));
        Code::lazy(move || {
            let mut body = module.functions[index].body().cloned().unwrap_or_default();
            renumber_body(&mut body, &new_ids);
            body
        })
    });
    Function {
        name: function.name.clone(),
        kind: function.kind,
        linkage: function.linkage,
        params: function.params.clone(),
        returns: function.returns.clone(),
        directives: function.directives.clone(),
        line: function.line,
        code,
        source: Arc::clone(&function.source),
    }
}

fn renumber_reloc(reloc: &mut Reloc, new_ids: &NewIds) {
    match &mut reloc.target {
        RelocTarget::Variable(id) => *id = new_ids.variable(*id),
        RelocTarget::Function(id) => *id = new_ids.function(*id),
    }
}

fn renumber_body(body: &mut Body, new_ids: &NewIds) {
    for inst in &mut body.insts {
        for operand in &mut inst.srcs {
            renumber_operand(operand, new_ids);
        }
        if let Op::Call { callee, args, rets, .. } = &mut inst.op {
            match callee {
                Callee::Direct(id) => *id = new_ids.function(*id),
                Callee::Indirect { targets } => {
                    for id in targets.iter_mut().flatten() {
                        *id = new_ids.function(*id);
                    }
                }
            }
            for slot in args.iter_mut().chain(rets) {
                if let CallSlot::Value(operand) = slot {
                    renumber_operand(operand, new_ids);
                }
            }
        }
    }
}

fn renumber_operand(operand: &mut Operand, new_ids: &NewIds) {
    match operand {
        Operand::Address(Address::Variable { var, .. }) => *var = new_ids.variable(*var),
        Operand::Address(Address::Function(id)) => *id = new_ids.function(*id),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::Definitions;

    fn input(name: &str, text: &str) -> Input {
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}");
        let limits = ptx::Limits {
            unresolved: true,
            ..ptx::Limits::default()
        };
        let loaded = ptx::load(text.as_bytes(), &limits);
        Input {
            name: name.to_owned(),
            module: loaded.expect("it is valid").module,
        }
    }

    #[test]
    fn addresses_in_the_value_of_a_common_variable_are_renumbered() {
        let inputs = [
            input("a", ".common .global .u64 x;"),
            input("b", ".global .u32 y; .global .u32 z; .weak .global .u64 x[2] = {z, 0};"),
        ];
        let module = link(&inputs).expect("nothing is undefined");
        let x = &module.variables[0];
        assert_eq!((&*x.name, x.size), ("x", 16));
        let RelocTarget::Variable(target) = x.relocs[0].target else {
            panic!("the value of `x` refers to a function");
        };
        assert_eq!(module.variables[target.0 as usize].name, "z");
    }

    #[test]
    fn one_of_several_definitions_is_chosen() {
        let w = |linkage: &str, rest: &str| format!("{linkage} .global .b32 w{rest};");
        let [common, weak, visible] = [".common", ".weak", ".visible"];
        for (first, new, expected) in [
            (w(common, "[1]"), w(common, "[4]"), Ok((16, 0))),
            (w(common, "[4]"), w(common, "[1]"), Ok((16, 0))),
            (w(common, "[4] = {7}"), w(common, "[1]"), Ok((16, 7))),
            (w(common, "[1]"), w(weak, "[4] = {7}"), Ok((16, 7))),
            (w(weak, "[4]"), w(weak, "[4] = {7}"), Ok((16, 0))),
            (w(weak, "[4] = {7}"), w(visible, "[4] = {8}"), Ok((16, 8))),
            (w(visible, "[4] = {8}"), w(weak, "[4] = {7}"), Ok((16, 8))),
            (
                w(weak, "[4]"),
                w(weak, "[1] = {7}"),
                Err("Size doesn't match for 'w' in 'b', first specified in 'a'"),
            ),
            (
                w(visible, "[1]"),
                w(weak, "[4]"),
                Err("Size doesn't match for 'w' in 'b', first specified in 'a'"),
            ),
            (
                w(common, "[4]"),
                w(weak, "[1] = {7}"),
                Err("Common symbol 'w' in file 'a' has larger size than initialization"),
            ),
            (
                w(visible, "[1] = {7}"),
                w(common, "[4]"),
                Err("Common symbol 'w' in file 'b' has larger size than initialization"),
            ),
            (
                w(visible, "[1]"),
                w(visible, "[4]"),
                Err("Multiple definition of 'w' in 'b', first defined in 'a'"),
            ),
        ] {
            let inputs = [input("a", &first), input("b", &new)];
            let mut definitions = Definitions::default();
            let mut added = inputs.iter().map(|input| definitions.add(&input.name, &input.module));
            let found = match added.find_map(Result::err) {
                Some(conflict) => Err(conflict.to_string()),
                None => {
                    let module = link(&inputs).expect("nothing is undefined");
                    let w = &module.variables[0];
                    Ok((w.size, w.init.first().copied().unwrap_or(0)))
                }
            };
            assert_eq!(found, expected.map_err(str::to_owned), "{first} {new}");
        }
    }

    #[test]
    fn a_weak_function_gives_way_to_another_definition() {
        let f =
            |linkage: &str, value: u32| format!("{linkage} .func (.reg .u32 %r) f() {{ mov.u32 %r, {value}; ret; }}");
        for (first, new, expected) in [
            (f(".weak", 1), f(".weak", 2), 1),
            (f(".weak", 1), f(".visible", 2), 2),
            (f(".visible", 1), f(".weak", 2), 1),
        ] {
            let module = link(&[input("a", &first), input("b", &new)]).expect("nothing is undefined");
            assert_eq!(module.functions.len(), 1);
            let body = module.functions[0].body().expect("it is defined");
            assert_eq!(body.insts[0].srcs, [Operand::Imm(expected)], "{first} {new}");
        }
    }

    #[test]
    fn undefined_references_name_their_input() {
        let inputs = [input(
            "a.ptx",
            ".extern .global .u32 v; .extern .func f(); .entry k() { .reg .u64 %r; mov.u64 %r, v; call f; }",
        )];
        assert_eq!(needed(&inputs, &[]).missing, HashSet::from(["v", "f"]));
        let messages: Vec<String> = link(&inputs)
            .expect_err("two names are undefined")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            messages,
            [
                "Undefined reference to 'v' in 'a.ptx'",
                "Undefined reference to 'f' in 'a.ptx'"
            ]
        );
    }

    #[test]
    fn members_that_define_missing_names_are_needed() {
        let call = |name: &str, callees: &[&str]| {
            let declarations = callees.iter().map(|callee| format!(".extern .func {callee}();\n"));
            let calls = callees.iter().map(|callee| format!("call {callee};\n"));
            let (declarations, calls) = (declarations.collect::<String>(), calls.collect::<String>());
            format!("{declarations}.weak .func {name}() {{\n{calls}ret; }}\n")
        };
        let inputs = [input("main", &(call("main", &["a", "b"]) + &call("c", &[])))];
        let members = [
            call("unused", &["also_unused"]),
            call("b", &[]),
            call("a", &["d", "c", "nowhere"]),
            // Two members define `d`: the first is linked.
            call("d", &["b"]),
            call("d", &[]),
            call("c", &[]),
        ];
        let members: Vec<Input> = members.iter().map(|text| input("member", text)).collect();
        let modules: Vec<&Module> = members.iter().map(|member| &*member.module).collect();
        let expected = Needed {
            members: vec![1, 2, 3],
            missing: HashSet::from(["nowhere"]),
        };
        assert_eq!(needed(&inputs, &modules), expected);
    }

    /// Each member needs the one before it. Looking at all members again for each would take long.
    #[test]
    fn long_chains_of_members_are_linked() {
        const MEMBERS: usize = 3_000;
        let text = |index: usize| {
            let before = index.wrapping_sub(1).min(MEMBERS);
            format!(".extern .func f{before}();\n.visible .func f{index}() {{ call f{before}; ret; }}\n")
        };
        let members: Vec<Input> = (0..MEMBERS).map(|index| input("member", &text(index))).collect();
        let modules: Vec<&Module> = members.iter().map(|member| &*member.module).collect();
        let last = MEMBERS - 1;
        let inputs = [input(
            "main",
            &format!(".extern .func f{last}();\n.entry k() {{ call f{last}; ret; }}"),
        )];
        let needed = needed(&inputs, &modules);
        assert!(needed.members.iter().copied().eq((0..MEMBERS).rev()));
        let outside = format!("f{MEMBERS}");
        assert_eq!(needed.missing, HashSet::from([&*outside]));
    }
}
