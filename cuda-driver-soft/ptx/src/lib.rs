//! PTX text to typed intermediate representation.
//!
//! | step | file |
//! |--|--|
//! | text → lexemes | `lexer` |
//! | lexemes → `ast::Ast`, flat vectors; syntax errors stop here | `parser/` |
//! | what opcodes, modifiers and operands there are | `forms/`, the instruction table |
//! | module scope: variables, functions, initial values | `module` |
//! | bodies → [`ir::Body`], every name and type checked | `lower/` |
//!
//! [`load`] checks everything, bodies too, so that a module that loads can be lowered without an error; a body is lowered
//! for good when it is first needed. Messages are ptxas's own words where it has some (`diagnostics`).

#![forbid(unsafe_code)]

mod ast;
mod diagnostics;
mod forms;
pub mod ir;
mod lexer;
mod lower;
mod module;
mod names;
mod parser;
mod symbols;

pub use diagnostics::{Diagnostic, Severity};
pub use forms::{Sample, TableRow, every_form, later_roots, modifier_classes, samples, table_rows};

use diagnostics::Diagnostics;
use std::sync::Arc;

/// What the loading driver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Newest `.version`, as major and minor.
    pub max_version: (u32, u32),
    /// Architecture of the device: 90 for `sm_90`.
    pub sm: u32,
    /// The module is to be linked with others: functions that it calls may be defined elsewhere.
    pub unresolved: bool,
}

impl Default for Limits {
    /// PTX 9.5 on sm_90.
    fn default() -> Self {
        Limits {
            max_version: (9, 5),
            sm: 90,
            unresolved: false,
        }
    }
}

/// A module that was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Arc<ir::Module>,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The warnings as text for the JIT info log; empty without any.
    pub info_log: String,
}

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It is no PTX: `CUDA_ERROR_INVALID_IMAGE` (200).
    NotPtx,
    /// Its `.version` is newer than [`Limits::max_version`], or does not exist: `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` (222).
    UnsupportedVersion,
    /// There are errors in it: `CUDA_ERROR_INVALID_PTX` (218).
    Invalid,
}

/// A text that was refused.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What for.
    pub kind: FailureKind,
    /// The text for the JIT error log.
    pub log: String,
    /// The messages, with line and column.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.log)
    }
}

impl std::error::Error for Failure {}

/// Loads a module from PTX text, which ends at the first NUL or with the slice.
///
/// # Errors
/// [`Failure`], whose kind decides the driver's code and whose log is what goes to the JIT error log.
pub fn load(text: &[u8], limits: &Limits) -> Result<Loaded, Failure> {
    let text = text.split(|&b| b == 0).next().unwrap_or(&[]);
    if !starts_like_ptx(text) {
        return Err(Failure {
            kind: FailureKind::NotPtx,
            log: "ptxas error   : Binary format for key='0', ident='' is not recognized".to_owned(),
            diagnostics: Vec::new(),
        });
    }
    let mut diagnostics = Diagnostics::default();
    match check(text, limits, &mut diagnostics) {
        Some(module) if !diagnostics.has_errors() => Ok(Loaded {
            module: Arc::new(module),
            info_log: diagnostics.info_log(),
            diagnostics: diagnostics.into_vec(),
        }),
        _ => {
            let log = diagnostics.error_log();
            let diagnostics = diagnostics.into_vec();
            let version = diagnostics
                .last()
                .is_some_and(|d| d.message.starts_with("Unsupported .version"));
            let kind = if version {
                FailureKind::UnsupportedVersion
            } else {
                FailureKind::Invalid
            };
            Err(Failure {
                kind,
                log,
                diagnostics,
            })
        }
    }
}

/// Whether the first lexeme is `.version`: what a driver goes by.
fn starts_like_ptx(text: &[u8]) -> bool {
    let head = text.get(..text.len().min(u32::MAX as usize)).unwrap_or(&[]);
    let lexer = lexer::Lexer::new(head);
    lexer.text(lexer.token) == b".version"
}

fn check(text: &[u8], limits: &Limits, diagnostics: &mut Diagnostics) -> Option<ir::Module> {
    if text.len() >= u32::MAX as usize {
        diagnostics.push(
            Severity::Fatal,
            0,
            0,
            "PTX text of 4 GiB or more".to_owned(),
        );
        return None;
    }
    if let Some(at) = text.iter().position(|b| !b.is_ascii()) {
        let line = 1 + text[..at].iter().filter(|&&b| b == b'\n').count() as u32;
        let message = diagnostics::NOT_ASCII;
        let column = diagnostics.column(text, at as u32);
        diagnostics.push(Severity::Fatal, line, column, message.to_owned());
        return None;
    }
    let ast = parser::parse(text, limits, diagnostics).ok()?;
    module::build(ast, text, limits, diagnostics)
}
