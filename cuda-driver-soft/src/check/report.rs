//! Reports the findings of the checks of the process: on standard error, and as lines of JSON in the file that
//! `CUDA_SOFT_CHECK_REPORT` names.

use std::fs::OpenOptions;
use std::io::Write;

use crate::json::Object;
use engine::check::Finding;
use host::{console, environment};

/// Writes a line to standard error.
pub(super) fn write_line(text: &str) {
    console::write(console::Stream::Error, format!("cuda-driver-soft: {text}\n").as_bytes());
}

/// Writes a finding to standard error and, if `CUDA_SOFT_CHECK_REPORT` is set, to its file.
pub(super) fn write(finding: &Finding) {
    write_line(&finding.to_string());
    let Some(path) = environment::check_report() else {
        return;
    };
    let mut line = json(finding);
    line.push('\n');
    let file = OpenOptions::new().append(true).create(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        write_line(&format!(
            "CUDA_SOFT_CHECK_REPORT: cannot write to {}: {error}",
            path.display()
        ));
    }
}

/// Returns a finding as a JSON object.
fn json(finding: &Finding) -> String {
    let mut object = Object::new()
        .text("check", finding.check.name())
        .text("kernel", &finding.kernel)
        .text("problem", &finding.problem)
        .text("advice", finding.advice);
    if let Some(place) = finding.places.first() {
        if let Some((file, line)) = &place.source {
            object = object.text("file", file).number("line", line);
        }
        object = object.number("ptx_line", place.ptx_line);
    }
    object.text("report", &finding.to_string()).end()
}
