//! Writes the report as text.

use std::fmt::Write as _;

use super::{devices, libraries, machine};
use crate::diagnosis::{Diagnosis, Severity};
use crate::findings::Findings;

/// Returns the report as text; the last line names the next step.
#[must_use]
pub fn text(findings: &Findings, diagnosis: &Diagnosis) -> String {
    let mut output = String::new();
    machine::write(findings, &mut output);
    libraries::write(findings, &mut output);
    devices::write(findings, &mut output);
    problems(diagnosis, &mut output);
    // Writing to a string cannot fail.
    _ = writeln!(output, "What to do: {}", diagnosis.advice);
    output
}

fn problems(diagnosis: &Diagnosis, output: &mut String) {
    if diagnosis.problems.is_empty() {
        return;
    }
    output.push_str("Diagnosis\n");
    for problem in &diagnosis.problems {
        let weight = match problem.severity {
            Severity::Broken => "broken",
            Severity::NoGpu => "no GPU",
            Severity::Note => "note",
        };
        _ = writeln!(output, "  {weight:6}  {}", problem.text);
        if !problem.advice.is_empty() && problem.advice != diagnosis.advice {
            _ = writeln!(output, "  {:6}  To do: {}", "", problem.advice);
        }
    }
    output.push('\n');
}
