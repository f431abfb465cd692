//! Module scope: variables, functions and initial values. Makes the [`ir::Module`] from the abstract syntax tree.

mod bodies;
mod builder;
mod functions;
mod init;
mod mentions;
mod sizes;
mod variables;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::ast::Ast;
use crate::diagnostics::{DiagnosticCode, Diagnostics, Severity};
use crate::ir::{self, FuncId, Linkage};
use crate::limits::Limits;
use crate::lower::{self, Uses};
use crate::specials;
use crate::unit::{Unit, parameters};

use builder::ModuleBuilder;

/// Functions that the driver itself provides to kernels.
pub const PROVIDED_FUNCTIONS: [&str; 5] = ["vprintf", "malloc", "free", "__assertfail", "cudaGraphSetConditional"];

/// Makes and checks the module. Returns `None` if there are errors, which are in the diagnostics.
pub(crate) fn build(ast: Ast, text: &[u8], limits: &Limits, diagnostics: &mut Diagnostics) -> Option<ir::Module> {
    let mut builder = ModuleBuilder::new(&ast, text, diagnostics);
    for (index, item) in ast.items.iter().enumerate() {
        builder.item(index as u32, item);
    }
    let ModuleBuilder {
        globals,
        variables,
        functions,
        statics,
        ..
    } = builder;
    let unit = Arc::new(Unit {
        specials: specials::specials(&ast.names),
        unpadded: ast.names.unpadded(),
        globals,
        functions,
        spaces: variables.iter().map(|v| v.space).collect(),
        opaques: variables.iter().map(|v| v.opaque).collect(),
        statics,
        forms: (0..ast.opcodes.len()).map(|_| OnceLock::new()).collect(),
        ast,
    });
    let uses = bodies::verify(&unit, text, limits.threads, diagnostics);
    check_registers(&uses, text, diagnostics);
    sizes::check_constant_data(&variables, diagnostics);
    if unit.ast.target.debug && !unit.ast.sections {
        let message = "Debug information not found in presence of .target debug";
        diagnostics.push_of_module(Severity::Error, DiagnosticCode::Invalid, message.to_owned());
    }
    if !limits.unresolved {
        check_resolved(&unit, &variables, &uses, diagnostics);
    }
    sizes::check_shared_data(&unit, &variables, &uses, limits.sm, diagnostics);
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

/// Checks that the functions do not have far more registers than a text of this length can use: each register takes
/// time and memory when the module is compiled.
fn check_registers(uses: &[Uses], text: &[u8], diagnostics: &mut Diagnostics) {
    const ANY_TEXT: usize = 1 << 22;
    const PER_BYTE: usize = 64;
    let most = ANY_TEXT + PER_BYTE * text.len();
    if uses.iter().map(|u| u.registers).sum::<usize>() > most {
        let message = format!("Too many registers in one module: more than {most}");
        diagnostics.push_of_module(Severity::Error, DiagnosticCode::Invalid, message);
    }
}

/// Checks that all functions that the module uses are defined, or provided by the driver. Undefined variables are only
/// a warning.
fn check_resolved(unit: &Unit, variables: &[ir::Variable], uses: &[Uses], diagnostics: &mut Diagnostics) {
    let external = |v: &&ir::Variable| v.linkage == Linkage::Extern && !v.is_dynamic();
    for variable in variables.iter().filter(external) {
        let message = format!(
            "Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier",
            variable.name
        );
        diagnostics.push_of_module(Severity::Warning, DiagnosticCode::Invalid, message);
    }
    let called: BTreeSet<FuncId> = uses.iter().flat_map(|u| u.functions.iter().copied()).collect();
    for (index, signature) in unit.functions.iter().enumerate() {
        let called = called.contains(&FuncId(index as u32));
        let name = unit.ast.names.text(signature.name);
        if called && !signature.defined && !PROVIDED_FUNCTIONS.contains(&name.as_str()) {
            let message = format!("Unresolved extern function '{name}'");
            diagnostics.push_of_module(Severity::Fatal, DiagnosticCode::Invalid, message);
            // Driver 580 names only the first.
            return;
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
        source: Arc::clone(&unit.ast.source),
    }
}
