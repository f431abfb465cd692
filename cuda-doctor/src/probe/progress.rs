//! Messages from a child process to its parent: lines of standard output.

use std::io::Write;

use serde::{Deserialize, Serialize};

/// Marks the lines that are messages. A driver may print others.
const MARK: &str = "@cuda-doctor ";

/// A message: all results so far, and the step that begins now.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress<T> {
    pub(super) step: String,
    pub(super) results: T,
    /// True in the last message.
    pub(super) is_complete: bool,
}

impl<T: Serialize> Progress<T> {
    /// Writes the message. Failures to write are ignored, because they mean that the parent has ended.
    fn send(&self, output: &mut dyn Write) {
        if let Ok(json) = serde_json::to_string(self) {
            // A driver may have printed the beginning of a line.
            _ = writeln!(output, "\n{MARK}{json}");
            _ = output.flush();
        }
    }
}

/// Reports that a step begins.
pub(super) fn begin<T: Serialize>(step: impl Into<String>, results: &T, output: &mut dyn Write) {
    let step = step.into();
    Progress {
        step,
        results,
        is_complete: false,
    }
    .send(output);
}

/// Reports the final results.
pub(super) fn complete<T: Serialize>(results: &T, output: &mut dyn Write) {
    let step = "the end of the process".to_owned();
    Progress {
        step,
        results,
        is_complete: true,
    }
    .send(output);
}

/// Parses a line of output; `None` if it is not a message.
pub(super) fn parse<T: for<'a> Deserialize<'a>>(line: &str) -> Option<Progress<T>> {
    let (_, json) = line.split_once(MARK)?;
    serde_json::from_str(json).ok()
}
