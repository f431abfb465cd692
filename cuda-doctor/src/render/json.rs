//! Writes the report as JSON.

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::findings::Findings;

/// The version of the format; it changes when a field is removed or changes its meaning.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    version: &'a str,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    findings: &'a Findings,
}

/// Returns the report as one JSON object.
///
/// # Errors
/// Returns an error if serialisation fails.
pub fn json(findings: &Findings, diagnosis: &Diagnosis) -> serde_json::Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    serde_json::to_string_pretty(&Report {
        format: FORMAT,
        version,
        diagnosis,
        findings,
    })
}
