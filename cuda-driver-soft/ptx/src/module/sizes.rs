//! Checks the size limits of constant and shared data.

use std::collections::BTreeSet;

use crate::diagnostics::{DiagnosticCode, Diagnostics, Severity};
use crate::ir::{FuncId, Space, VarId, Variable};
use crate::lower::Uses;
use crate::unit::{MAX_ALIGN, Unit, layout_end};

/// Bytes of `.const` variables that a module can have.
const MAX_CONSTANT: u64 = 0x10000;

/// Returns the bytes of shared memory that a block can have on an architecture.
fn max_shared(sm: u32) -> u64 {
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

/// Checks the total size of the `.const` variables.
pub(super) fn check_constant_data(variables: &[Variable], diagnostics: &mut Diagnostics) {
    let constants = variables.iter().filter(|v| v.space == Space::Const);
    let bytes = layout_end(constants.map(|v| (v.size, v.align)));
    if bytes > MAX_CONSTANT {
        let message = format!("File uses too much global constant data ({bytes:#x} bytes, {MAX_CONSTANT:#x} max)");
        diagnostics.push_of_module(Severity::Error, DiagnosticCode::Invalid, message);
    }
}

/// Limit on the functions and variables that are visited for all kernels. Many kernels that call the same long chain of
/// functions would take quadratic time.
const MOST_VISITS: usize = 1 << 22;

/// Checks the total size of the `.shared` variables that each kernel and the functions that it calls use. Kernels after
/// the limit on visits are not checked; the launch of one that uses too much fails.
pub(super) fn check_shared_data(
    unit: &Unit,
    variables: &[Variable],
    uses: &[Uses],
    sm: u32,
    diagnostics: &mut Diagnostics,
) {
    let max = max_shared(sm);
    let shared = |id: &VarId| variables.get(id.0 as usize).filter(|v| v.space == Space::Shared);
    let all = variables.iter().filter(|v| v.space == Space::Shared);
    let aligned = all.map(|v| v.size.saturating_add(v.align.min(MAX_ALIGN)));
    if aligned.fold(0, u64::saturating_add) <= max {
        return;
    }
    let mut visits = 0;
    let kernels = unit.functions.iter().enumerate();
    for (index, signature) in kernels.filter(|(_, s)| s.entry && s.defined) {
        let mut reached = BTreeSet::from([FuncId(index as u32)]);
        let mut open = vec![FuncId(index as u32)];
        let mut needed = BTreeSet::new();
        while let Some(uses) = open.pop().and_then(|id| uses.get(id.0 as usize)) {
            visits += 1 + uses.variables.len() + uses.functions.len();
            if visits > MOST_VISITS {
                return;
            }
            needed.extend(uses.variables.iter().copied());
            let called = uses.functions.iter().copied();
            open.extend(called.filter(|id| reached.insert(*id)));
        }
        let needed = needed.iter().filter_map(shared);
        let bytes = layout_end(needed.map(|v| (v.size, v.align)));
        if bytes > max {
            let name = unit.ast.names.text(signature.name);
            let message = format!("Entry function '{name}' uses too much shared data ({bytes:#x} bytes, {max:#x} max)");
            diagnostics.push_of_module(Severity::Error, DiagnosticCode::Invalid, message);
        }
    }
}
