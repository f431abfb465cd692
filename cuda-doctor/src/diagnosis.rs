//! Draws conclusions from the findings: problems, their causes, and advice.
#![forbid(unsafe_code)]

mod advice;
mod devices;
mod initialisation;
mod loading;
mod notes;
mod problem;
mod version;

pub use problem::{Cause, Diagnosis, Problem, Severity, Verdict};
pub use version::{cuda_version, missing_summary};

use crate::findings::Findings;

/// Draws conclusions from the findings alone.
#[must_use]
pub fn diagnose(findings: &Findings) -> Diagnosis {
    let mut problems = loading::problems(findings);
    if problems.is_empty() {
        problems = initialisation::problems(findings);
    }
    if problems.is_empty() {
        problems = devices::problems(findings);
    }
    problems.extend(notes::problems(findings));
    // The sort is stable: of the worst problems, the first one found stays first, because users must solve it first.
    problems.sort_by_key(|problem| problem.severity);
    let verdict = match problems.first().map(|problem| problem.severity) {
        Some(Severity::Broken) => Verdict::Broken,
        Some(Severity::NoGpu) => Verdict::NoGpu,
        Some(Severity::Note) | None => Verdict::Works,
    };
    let advice = advice::last_line(findings, &problems, verdict);
    Diagnosis {
        verdict,
        exit_code: verdict.exit_code(),
        problems,
        advice,
    }
}
