//! What is wrong with a module, in ptxas's words.

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The module loads all the same.
    Warning,
    /// The module is refused; checking went on.
    Error,
    /// The module is refused; checking stopped here.
    Fatal,
}

/// One message about a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Line in the PTX text, from 1; 0 where it is not about a line.
    pub line: u32,
    /// Column in bytes, from 1; 0 where it is not about a line.
    pub column: u32,
    /// What is wrong, in ptxas's words where it has some.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    /// `line:column: severity: message`
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

impl Diagnostic {
    /// The line that a driver writes to a JIT log.
    pub(super) fn log_line(&self) -> String {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error  ",
            Severity::Fatal => "fatal  ",
        };
        if self.message == NOT_ASCII {
            format!("ptxas {severity} : {} on line {}", self.message, self.line)
        } else if self.line > 0 {
            let message = self
                .message
                .replace("'ptx input'", "'application ptx input'");
            format!(
                "ptxas application ptx input, line {}; {severity} : {message}",
                self.line
            )
        } else {
            format!("ptxas {severity} : {}", self.message)
        }
    }
}

/// The messages about a module, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    all: Vec<Diagnostic>,
    errors: usize,
    /// Messages left out because there were too many.
    left_out: usize,
    /// Where the lines of the text start, once a column was asked for.
    lines: Vec<u32>,
}

/// Said of the line where it is, in words of its own.
pub(super) const NOT_ASCII: &str = "Unexpected non-ASCII character encountered";

/// More messages than this are counted only.
const MOST: usize = 100_000;

/// A message is cut after this many bytes: a name can be as long as the text.
const LONGEST: usize = 1000;

impl Diagnostics {
    pub(super) fn push(&mut self, severity: Severity, line: u32, column: u32, message: String) {
        self.errors += usize::from(severity != Severity::Warning);
        let mut message = message;
        message.truncate(message.floor_char_boundary(LONGEST));
        if self.all.len() < MOST || severity == Severity::Fatal {
            self.all.push(Diagnostic {
                severity,
                line,
                column,
                message,
            });
        } else {
            self.left_out += 1;
        }
    }

    /// Column, from 1, of a byte of the text that is being loaded.
    pub(super) fn column(&mut self, text: &[u8], offset: u32) -> u32 {
        if self.lines.is_empty() {
            let ends = text.iter().enumerate().filter(|(_, b)| **b == b'\n');
            self.lines.push(0);
            self.lines.extend(ends.map(|(at, _)| at as u32 + 1));
        }
        let line = self.lines.partition_point(|start| *start <= offset);
        1 + offset - self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0)
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub(super) fn into_vec(self) -> Vec<Diagnostic> {
        self.all
    }

    /// The text for the error log: one line per error, then ptxas's last words.
    pub(super) fn error_log(&self) -> String {
        let mut log = String::new();
        for diagnostic in self.all.iter().filter(|d| d.severity != Severity::Warning) {
            log.push_str(&diagnostic.log_line());
            log.push('\n');
        }
        if self.left_out > 0 {
            log.push_str(&format!(
                "ptxas error   : {} more messages left out\n",
                self.left_out
            ));
        }
        // A driver has no last words where the text as such is right.
        let of_a_line = |d: &Diagnostic| {
            d.severity != Severity::Warning
                && d.line > 0
                && !d.message.starts_with("Unsupported .version")
        };
        let prefix = "SM version specified by .target";
        if self.all.iter().any(of_a_line) && !self.all.iter().any(|d| d.message.starts_with(prefix))
        {
            log.push_str("ptxas fatal   : Ptx assembly aborted due to errors");
        } else if log.ends_with('\n') {
            log.pop();
        }
        log
    }

    /// The text for the info log: the warnings.
    pub(super) fn info_log(&self) -> String {
        let warnings = self.all.iter().filter(|d| d.severity == Severity::Warning);
        warnings
            .map(Diagnostic::log_line)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
