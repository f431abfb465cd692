//! Linking: several modules become one, in which declarations are the definitions of other modules.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ptx::ir::{
    Address, Body, CallSlot, Callee, Code, FuncId, Function, Linkage, Module, Op, Operand, Reloc,
    RelocTarget, Space, Target, VarId, Variable,
};

/// A module and what it is called in messages.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name in messages.
    pub name: String,
    /// The loaded module.
    pub module: Arc<Module>,
}

/// Functions that the driver itself provides to kernels.
const BUILTIN: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Whether a name is seen by other modules.
fn is_global(linkage: Linkage) -> bool {
    !matches!(linkage, Linkage::Internal)
}

/// Whether it gives a definition that another one may not repeat.
fn is_strong(function: &Function) -> bool {
    function.code.is_some() && matches!(function.linkage, Linkage::Visible)
}

fn is_defined(variable: &Variable) -> bool {
    variable.linkage != Linkage::Extern
}

/// A name that `new` defines though one of the others does, and which one.
pub fn duplicate<'a>(others: &'a [Input], new: &'a Module) -> Option<(&'a str, &'a str)> {
    let functions = new.functions.iter().filter(|f| is_strong(f));
    let variables = new
        .variables
        .iter()
        .filter(|v| v.linkage == Linkage::Visible);
    let of_function = |name: &str| {
        others.iter().find(|i| {
            let mut all = i.module.functions.iter();
            all.any(|f| is_strong(f) && f.name == name)
        })
    };
    let of_variable = |name: &str| {
        others.iter().find(|i| {
            let mut all = i.module.variables.iter();
            all.any(|v| v.linkage == Linkage::Visible && v.name == name)
        })
    };
    let function = functions
        .filter_map(|f| Some((&*f.name, &*of_function(&f.name)?.name)))
        .next();
    function.or_else(|| {
        variables
            .filter_map(|v| Some((&*v.name, &*of_variable(&v.name)?.name)))
            .next()
    })
}

/// The names that inputs refer to and none of them defines.
pub fn undefined(inputs: &[Input]) -> HashSet<&str> {
    let defined: HashSet<&str> = inputs.iter().flat_map(|i| defined(&i.module)).collect();
    let mut missing = HashSet::new();
    for input in inputs {
        let used = references(&input.module);
        let functions = used.functions.iter().filter_map(|id| {
            let function = input.module.functions.get(id.0 as usize)?;
            let own = function.code.is_some() || BUILTIN.contains(&&*function.name);
            (!own).then_some(&*function.name)
        });
        let variables = used.variables.iter().filter_map(|id| {
            let variable = input.module.variables.get(id.0 as usize)?;
            let own = is_defined(variable) || variable.space == Space::Shared;
            (!own).then_some(&*variable.name)
        });
        let names = functions.chain(variables);
        missing.extend(names.filter(|name| !defined.contains(name)));
    }
    missing
}

/// The names that a module defines for others.
pub fn defined(module: &Module) -> impl Iterator<Item = &str> {
    let functions = module.functions.iter();
    let functions = functions.filter(|f| is_global(f.linkage) && f.code.is_some());
    let variables = module.variables.iter();
    let variables = variables.filter(|v| is_global(v.linkage) && is_defined(v));
    let functions = functions.map(|f| &*f.name);
    functions.chain(variables.map(|v| &*v.name))
}

/// Where the things of one input are in the linked module.
#[derive(Clone, Debug, Default)]
struct Places {
    variables: Vec<VarId>,
    functions: Vec<FuncId>,
}

/// Links the inputs, in order.
///
/// # Errors
/// A line for each reference that nothing defines, in a real linker's words.
pub fn link(inputs: &[Input]) -> Result<Arc<Module>, Vec<String>> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut functions: Vec<(usize, usize)> = Vec::new();
    let mut variable_names: HashMap<&str, VarId> = HashMap::new();
    let mut function_names: HashMap<&str, FuncId> = HashMap::new();
    let mut places = vec![Places::default(); inputs.len()];
    // Definitions first: declarations then find them wherever they are.
    for (input, place) in inputs.iter().zip(&mut places) {
        for variable in &input.module.variables {
            let shared_name = is_global(variable.linkage) && is_defined(variable);
            let known = shared_name
                .then(|| variable_names.get(&*variable.name).copied())
                .flatten();
            place.variables.push(match known {
                Some(id) => {
                    // `.weak` and `.common` may be repeated; the largest counts.
                    let first = &mut variables[id.0 as usize];
                    if variable.size > first.size
                        || (first.init.is_empty() && !variable.init.is_empty())
                    {
                        *first = variable.clone();
                    }
                    id
                }
                None => {
                    let id = VarId(variables.len() as u32);
                    variables.push(variable.clone());
                    if shared_name {
                        variable_names.insert(&variable.name, id);
                    }
                    id
                }
            });
        }
    }
    for (i, input) in inputs.iter().enumerate() {
        for (j, function) in input.module.functions.iter().enumerate() {
            let shared_name = is_global(function.linkage) && function.code.is_some();
            let known = shared_name
                .then(|| function_names.get(&*function.name).copied())
                .flatten();
            places[i].functions.push(known.unwrap_or_else(|| {
                let id = FuncId(functions.len() as u32);
                functions.push((i, j));
                if shared_name {
                    function_names.insert(&function.name, id);
                }
                id
            }));
        }
    }
    let mut undefined = Vec::new();
    for (input, place) in inputs.iter().zip(&mut places) {
        let used = references(&input.module);
        let mut miss = |name: &str| {
            undefined.push(format!(
                "Undefined reference to '{name}' in '{}'",
                input.name
            ))
        };
        for (i, variable) in input.module.variables.iter().enumerate() {
            // A `.extern .shared` array is the dynamic shared memory of the launch.
            if is_defined(variable) || variable.space == Space::Shared {
                continue;
            }
            match variable_names.get(&*variable.name) {
                Some(id) => place.variables[i] = *id,
                None if used.variables.contains(&VarId(i as u32)) => miss(&variable.name),
                None => {}
            }
        }
        for (i, function) in input.module.functions.iter().enumerate() {
            if function.code.is_some() || BUILTIN.contains(&&*function.name) {
                continue;
            }
            match function_names.get(&*function.name) {
                Some(id) => place.functions[i] = *id,
                None if used.functions.contains(&FuncId(i as u32)) => miss(&function.name),
                None => {}
            }
        }
    }
    if !undefined.is_empty() {
        return Err(undefined);
    }
    let places: Vec<Arc<Places>> = places.into_iter().map(Arc::new).collect();
    let owner = |id: usize| {
        places
            .iter()
            .zip(inputs)
            .find(|(p, i)| owns(p, &i.module, id))
            .map(|(p, _)| p)
    };
    for (id, variable) in variables.iter_mut().enumerate() {
        if let Some(place) = owner(id) {
            variable
                .relocs
                .iter_mut()
                .for_each(|reloc| move_reloc(reloc, place));
        }
    }
    let functions = functions
        .into_iter()
        .map(|(i, j)| move_function(&inputs[i].module, j, &places[i]))
        .collect();
    let newest = inputs.iter().map(|i| &i.module).max_by_key(|m| m.target.sm);
    // Of nothing comes a module without anything in it.
    let nothing = Target {
        sm: 0,
        suffix: None,
        debug: false,
        map_f64_to_f32: false,
    };
    Ok(Arc::new(Module {
        version: inputs
            .iter()
            .map(|i| i.module.version)
            .max()
            .unwrap_or((1, 0)),
        target: newest.map_or(nothing, |m| m.target.clone()),
        variables,
        functions,
    }))
}

/// Whether the variable `id` of the linked module came from this input.
fn owns(places: &Places, module: &Module, id: usize) -> bool {
    let mut own = places.variables.iter().zip(&module.variables);
    own.any(|(place, variable)| place.0 as usize == id && is_defined(variable))
}

/// What the code and the initial values of a module refer to.
#[derive(Default)]
struct References {
    variables: Vec<VarId>,
    functions: Vec<FuncId>,
}

fn references(module: &Module) -> References {
    let mut found = References::default();
    for reloc in module.variables.iter().flat_map(|v| &v.relocs) {
        match reloc.target {
            RelocTarget::Variable(id) => found.variables.push(id),
            RelocTarget::Function(id) => found.functions.push(id),
        }
    }
    for inst in module
        .functions
        .iter()
        .filter_map(|f| f.body())
        .flat_map(|b| &b.insts)
    {
        let mut operands: Vec<Operand> = inst.srcs.clone();
        if let Op::Call {
            callee, args, rets, ..
        } = &inst.op
        {
            if let Callee::Direct(id) = callee {
                found.functions.push(*id);
            }
            operands.extend(args.iter().chain(rets).filter_map(|slot| match slot {
                CallSlot::Value(operand) => Some(*operand),
                CallSlot::Frame { .. } => None,
            }));
        }
        for operand in operands {
            match operand {
                Operand::Address(Address::Variable { var, .. }) => found.variables.push(var),
                Operand::Address(Address::Function(id)) => found.functions.push(id),
                _ => {}
            }
        }
    }
    found
}

fn move_reloc(reloc: &mut Reloc, places: &Places) {
    match &mut reloc.target {
        RelocTarget::Variable(id) => *id = places.variables[id.0 as usize],
        RelocTarget::Function(id) => *id = places.functions[id.0 as usize],
    }
}

fn move_function(module: &Arc<Module>, index: usize, places: &Arc<Places>) -> Function {
    let function = &module.functions[index];
    let code = function.code.as_ref().map(|_| {
        let (module, places) = (Arc::clone(module), Arc::clone(places));
        Code::lazy(move || {
            let mut body = module.functions[index].body().cloned().unwrap_or_default();
            move_body(&mut body, &places);
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
    }
}

fn move_body(body: &mut Body, places: &Places) {
    for inst in &mut body.insts {
        inst.srcs
            .iter_mut()
            .for_each(|operand| move_operand(operand, places));
        if let Op::Call {
            callee, args, rets, ..
        } = &mut inst.op
        {
            match callee {
                Callee::Direct(id) => *id = places.functions[id.0 as usize],
                Callee::Indirect { targets } => {
                    targets
                        .iter_mut()
                        .flatten()
                        .for_each(|id| *id = places.functions[id.0 as usize]);
                }
            }
            for slot in args.iter_mut().chain(rets) {
                if let CallSlot::Value(operand) = slot {
                    move_operand(operand, places);
                }
            }
        }
    }
}

fn move_operand(operand: &mut Operand, places: &Places) {
    match operand {
        Operand::Address(Address::Variable { var, .. }) => *var = places.variables[var.0 as usize],
        Operand::Address(Address::Function(id)) => *id = places.functions[id.0 as usize],
        _ => {}
    }
}
