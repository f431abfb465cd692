//! Functions and variables that a kernel can reach.

use ptx::ir::{Address, Body, Callee, FuncId, Module, Op, Operand, RelocTarget, VarId};

/// Returns the functions that `entry` may reach by calls, `entry` first. An indirect call without a list of targets may
/// reach every function of `taken`.
pub(super) fn reachable<'a>(module: &Module, entry: FuncId, taken: impl Fn() -> &'a [FuncId]) -> Vec<FuncId> {
    let mut found = vec![entry];
    let mut known = vec![false; module.functions.len()];
    if let Some(known) = known.get_mut(entry.0 as usize) {
        *known = true;
    }
    let mut next = 0;
    let mut indirect = false;
    while next < found.len() {
        let body = module.functions.get(found[next].0 as usize).and_then(|f| f.body());
        next += 1;
        let mut add = |id: FuncId| {
            if let Some(known @ false) = known.get_mut(id.0 as usize) {
                *known = true;
                found.push(id);
            }
        };
        for inst in body.iter().flat_map(|b| &b.insts) {
            let Op::Call { callee, .. } = &inst.op else { continue };
            match callee {
                Callee::Direct(id) => add(*id),
                Callee::Indirect { targets: Some(targets) } => targets.iter().for_each(|id| add(*id)),
                Callee::Indirect { targets: None } if !indirect => {
                    indirect = true;
                    taken().iter().for_each(|id| add(*id));
                }
                Callee::Indirect { targets: None } => {}
            }
        }
    }
    found
}

/// Returns the functions whose addresses the module takes: in initial values, and in the code of any function, as a
/// kernel may store a pointer that another kernel calls.
pub(super) fn taken(module: &Module) -> Vec<FuncId> {
    let relocs = module.variables.iter().flat_map(|v| &v.relocs);
    let in_variables = relocs.filter_map(|r| match r.target {
        RelocTarget::Function(f) => Some(f),
        RelocTarget::Variable(_) => None,
    });
    let insts = module.functions.iter().filter_map(|f| f.body()).flat_map(|b| &b.insts);
    let in_code = insts.flat_map(|i| &i.srcs).filter_map(|s| match s {
        Operand::Address(Address::Function(id)) => Some(*id),
        _ => None,
    });
    let mut all: Vec<FuncId> = in_variables.chain(in_code).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the variables whose addresses a body uses.
pub(super) fn variables_of(body: &Body) -> impl Iterator<Item = VarId> + '_ {
    body.insts.iter().flat_map(|i| &i.srcs).filter_map(|s| match s {
        Operand::Address(Address::Variable { var, .. }) => Some(*var),
        _ => None,
    })
}
