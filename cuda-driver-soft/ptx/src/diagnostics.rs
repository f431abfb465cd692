//! Errors and warnings about a module, in ptxas's words where it has some, and the JIT logs made of them.

use std::fmt;

use crate::ast::Pos;

/// Severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Does not prevent the module from loading.
    Warning,
    /// The module is refused, and checking continued.
    Error,
    /// The module is refused, and ptxas stops checking here. This crate continues in some cases.
    Fatal,
}

/// The cause of a [`Diagnostic`]. Causes that decide the driver's result or the form of its log have a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticCode {
    /// No PTX version has the number in `.version`, or the driver is too old for it.
    UnsupportedVersion,
    /// The `.target` is newer than the device.
    TargetTooNew,
    /// The text contains a byte that is not ASCII.
    NotAscii,
    /// Any other cause.
    Invalid,
}

/// An error or warning about a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The cause.
    pub code: DiagnosticCode,
    /// Line in the PTX text, from 1; 0 if the diagnostic is about the module as a whole.
    pub line: u32,
    /// Column in bytes, from 1; 0 if the diagnostic is about the module as a whole.
    pub column: u32,
    /// The message, in ptxas's words where it has some.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    /// `line:column: severity: message`, without the line and column if the diagnostic is about the module as a whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::Fatal => "fatal",
        };
        write!(f, "{severity}: {}", self.message)
    }
}

/// The name of the text in ptxas's messages. Drivers call it `'application ptx input'`.
const INPUT: &str = "'ptx input'";

impl Diagnostic {
    /// Returns the line that a driver writes to a JIT log.
    fn log_line(&self) -> String {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error  ",
            Severity::Fatal => "fatal  ",
        };
        if self.code == DiagnosticCode::NotAscii {
            format!("ptxas {severity} : {} on line {}", self.message, self.line)
        } else if self.line > 0 {
            let message = self.message.replace(INPUT, "'application ptx input'");
            format!(
                "ptxas application ptx input, line {}; {severity} : {message}",
                self.line
            )
        } else {
            format!("ptxas {severity} : {}", self.message)
        }
    }

    fn is_warning(&self) -> bool {
        self.severity == Severity::Warning
    }
}

/// The diagnostics of a module, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    all: Vec<Diagnostic>,
    /// The numbers of warnings, errors and fatal errors, in the order of [`Severity`].
    counts: [Count; 3],
    /// Byte offsets of the lines of the text; filled when a column is first needed.
    line_starts: Vec<u32>,
}

/// The number of diagnostics of one severity.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    kept: usize,
    /// Diagnostics that were not kept because there were too many.
    left_out: usize,
}

/// Diagnostics of one severity after this many are counted, but not kept.
const MAX_DIAGNOSTICS: usize = 100_000;

/// A message is cut after this many bytes, because a name can be as long as the text.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1000;

impl Diagnostics {
    fn push(&mut self, mut diagnostic: Diagnostic) {
        let count = &mut self.counts[diagnostic.severity as usize];
        if count.kept >= MAX_DIAGNOSTICS {
            count.left_out += 1;
            return;
        }
        count.kept += 1;
        let message = &mut diagnostic.message;
        if message.len() > MAX_MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
            message.shrink_to_fit();
        }
        self.all.push(diagnostic);
    }

    /// Adds the diagnostics of a later part of the text.
    pub(crate) fn append(&mut self, others: Diagnostics) {
        for diagnostic in others.all {
            self.push(diagnostic);
        }
        for (count, other) in self.counts.iter_mut().zip(others.counts) {
            count.left_out += other.left_out;
        }
    }

    /// Adds a diagnostic about a place in the text.
    pub(crate) fn push_at(&mut self, text: &[u8], pos: Pos, severity: Severity, code: DiagnosticCode, message: String) {
        let column = self.column(text, pos.offset);
        self.push(Diagnostic {
            severity,
            code,
            line: pos.line,
            column,
            message,
        });
    }

    /// Adds a diagnostic about the module as a whole.
    pub(crate) fn push_of_module(&mut self, severity: Severity, code: DiagnosticCode, message: String) {
        self.push(Diagnostic {
            severity,
            code,
            line: 0,
            column: 0,
            message,
        });
    }

    /// Returns the column, from 1, of a byte of the text.
    fn column(&mut self, text: &[u8], offset: u32) -> u32 {
        if self.line_starts.is_empty() {
            let ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n');
            self.line_starts.push(0);
            self.line_starts.extend(ends.map(|(at, _)| at as u32 + 1));
        }
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.wrapping_sub(1));
        1 + offset - start.copied().unwrap_or(0)
    }

    fn count(&self, severity: Severity) -> Count {
        self.counts[severity as usize]
    }

    /// Returns true if there are errors, not only warnings.
    pub(crate) fn has_errors(&self) -> bool {
        self.count(Severity::Error).kept + self.count(Severity::Fatal).kept > 0
    }

    /// Returns true if one of the diagnostics has this code.
    pub(crate) fn contains(&self, code: DiagnosticCode) -> bool {
        self.all.iter().any(|d| d.code == code)
    }

    pub(crate) fn into_vec(self) -> Vec<Diagnostic> {
        self.all
    }

    /// Returns the text for the error log: one line per error, then ptxas's closing line if driver 580 writes one.
    pub(crate) fn error_log(&self) -> String {
        let mut log = String::new();
        let errors = || self.all.iter().filter(|d| !d.is_warning());
        for error in errors() {
            log.push_str(&error.log_line());
            log.push('\n');
        }
        let left_out = self.count(Severity::Error).left_out + self.count(Severity::Fatal).left_out;
        if left_out > 0 {
            log.push_str(&format!("ptxas error   : {left_out} more messages left out\n"));
        }
        // Driver 580 writes no closing line if all errors are about the module as a whole or its `.version`, and none
        // if the `.target` is too new.
        let malformed = errors().any(|d| d.line > 0 && d.code != DiagnosticCode::UnsupportedVersion);
        if malformed && !self.contains(DiagnosticCode::TargetTooNew) {
            log.push_str("ptxas fatal   : Ptx assembly aborted due to errors");
        } else if log.ends_with('\n') {
            log.pop();
        }
        log
    }

    /// Returns the text for the info log: the warnings.
    pub(crate) fn info_log(&self) -> String {
        let warnings = self.all.iter().filter(|d| d.is_warning());
        let mut lines: Vec<String> = warnings.map(Diagnostic::log_line).collect();
        let left_out = self.count(Severity::Warning).left_out;
        if left_out > 0 {
            lines.push(format!("ptxas warning : {left_out} more messages left out"));
        }
        lines.join("\n")
    }
}
