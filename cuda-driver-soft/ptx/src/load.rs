//! Loading: the steps from text to a checked module.

use std::ffi::CStr;
use std::sync::Arc;

use crate::ast::Pos;
use crate::diagnostics::{Diagnostic, DiagnosticCode, Diagnostics, Severity};
use crate::ir;
use crate::lexer::Lexer;
use crate::limits::Limits;
use crate::{module, parser};

/// Driver 580 logs this for an image that is neither PTX nor machine code.
pub const NOT_RECOGNIZED: &str = "Binary format for key='0', ident='' is not recognized";

/// A loaded module.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Arc<ir::Module>,
    /// The warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The warnings as text for the JIT info log; empty if there are none.
    pub info_log: String,
}

/// The reason why a text was refused, which decides the driver's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The text is not PTX: `CUDA_ERROR_INVALID_IMAGE` (200).
    NotPtx,
    /// No PTX version has the number in `.version`, or it is newer than [`Limits::max_version`]:
    /// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` (222).
    UnsupportedVersion,
    /// The module has errors: `CUDA_ERROR_INVALID_PTX` (218).
    Invalid,
}

/// The error of [`load()`].
#[derive(Clone, Debug)]
pub struct Failure {
    /// The reason.
    pub kind: FailureKind,
    /// The text for the JIT error log.
    pub log: String,
    /// The errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.log)
    }
}

impl std::error::Error for Failure {}

/// Loads a module from PTX text, which ends at the first NUL byte or with the slice.
///
/// # Errors
/// Returns a [`Failure`] if the text is refused. Its kind decides the driver's result, and its log goes to the JIT
/// error log.
pub fn load(text: &[u8], limits: &Limits) -> Result<Loaded, Failure> {
    // `CStr` searches several bytes at a time.
    let text = CStr::from_bytes_until_nul(text).map_or(text, CStr::to_bytes);
    if !starts_like_ptx(text) {
        return Err(Failure {
            kind: FailureKind::NotPtx,
            log: format!("error   : {NOT_RECOGNIZED}"),
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
        _ => Err(Failure {
            kind: if diagnostics.contains(DiagnosticCode::UnsupportedVersion) {
                FailureKind::UnsupportedVersion
            } else {
                FailureKind::Invalid
            },
            log: diagnostics.error_log(),
            diagnostics: diagnostics.into_vec(),
        }),
    }
}

/// Returns true if the first token is `.version`, by which drivers recognise PTX.
fn starts_like_ptx(text: &[u8]) -> bool {
    // The lexer takes less than 4 GiB.
    let head = text.get(..text.len().min(u32::MAX as usize)).unwrap_or(&[]);
    let lexer = Lexer::new(head);
    lexer.text(lexer.token) == b".version"
}

/// Parses and checks a module. Returns `None` if it has errors, which are in the diagnostics.
fn check(text: &[u8], limits: &Limits, diagnostics: &mut Diagnostics) -> Option<ir::Module> {
    if text.len() >= u32::MAX as usize {
        let message = "The PTX text is too long: 4 GiB or more";
        diagnostics.push_of_module(Severity::Fatal, DiagnosticCode::Invalid, message.to_owned());
        return None;
    }
    // `is_ascii` is several times faster than a search.
    if !text.is_ascii()
        && let Some(at) = text.iter().position(|b| !b.is_ascii())
    {
        let line = 1 + text[..at].iter().filter(|&&b| b == b'\n').count() as u32;
        let pos = Pos {
            offset: at as u32,
            line,
        };
        let message = "Unexpected non-ASCII character encountered".to_owned();
        diagnostics.push_at(text, pos, Severity::Fatal, DiagnosticCode::NotAscii, message);
        return None;
    }
    let ast = parser::parse(text, limits, diagnostics).ok()?;
    module::build(ast, text, limits, diagnostics)
}
