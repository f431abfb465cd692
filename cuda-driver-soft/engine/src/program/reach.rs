//! Functions and variables that a kernel can reach.

use ptx::ir::{Address, Body, Callee, FuncId, Module, Op, Operand, RelocTarget, VarId};
use std::collections::HashSet;

/// Returns the functions that `entry` may reach by calls, `entry` first. An indirect call without a list of targets may
/// reach every function whose address is taken.
pub(super) fn reachable(module: &Module, entry: FuncId) -> Vec<FuncId> {
    let mut found = vec![entry];
    let mut known = HashSet::from([entry]);
    let mut next = 0;
    let mut indirect = false;
    let mut taken: Vec<FuncId> = module
        .variables
        .iter()
        .flat_map(|v| &v.relocs)
        .filter_map(|r| match r.target {
            RelocTarget::Function(f) => Some(f),
            RelocTarget::Variable(_) => None,
        })
        .collect();
    while next < found.len() {
        let body = module.functions.get(found[next].0 as usize).and_then(|f| f.body());
        next += 1;
        let mut add = |id: FuncId, found: &mut Vec<FuncId>| {
            if known.insert(id) {
                found.push(id);
            }
        };
        for inst in body.iter().flat_map(|b| &b.insts) {
            match &inst.op {
                Op::Call {
                    callee: Callee::Direct(id),
                    ..
                } => add(*id, &mut found),
                Op::Call {
                    callee: Callee::Indirect { targets: Some(targets) },
                    ..
                } => {
                    targets.iter().for_each(|id| add(*id, &mut found));
                }
                Op::Call {
                    callee: Callee::Indirect { targets: None },
                    ..
                } => indirect = true,
                _ => {}
            }
            taken.extend(inst.srcs.iter().filter_map(|s| match s {
                Operand::Address(Address::Function(id)) => Some(*id),
                _ => None,
            }));
        }
        if indirect {
            taken.drain(..).for_each(|id| add(id, &mut found));
        }
    }
    found
}

/// Returns the variables whose addresses a body uses.
pub(super) fn variables_of(body: &Body) -> impl Iterator<Item = VarId> + '_ {
    body.insts.iter().flat_map(|i| &i.srcs).filter_map(|s| match s {
        Operand::Address(Address::Variable { var, .. }) => Some(*var),
        _ => None,
    })
}
