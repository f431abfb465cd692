//! Verdicts on PTX text: from the loader, and from the `ptxas` that the environment variable `PTXAS` names.

use ptx::{Limits, Severity};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Error messages by line; line 0 is the module as a whole. Empty if the text is accepted.
pub(crate) type Verdict = BTreeMap<u32, Vec<String>>;

/// The limits with which the stored verdicts were made.
pub(crate) const LIMITS: Limits = Limits {
    max_version: (9, 5),
    sm: 90,
    unresolved: false,
    threads: 1,
};

/// Returns the loader's verdict with [`LIMITS`].
pub(crate) fn ours(text: &str) -> Verdict {
    judged(text, &LIMITS)
}

/// Returns the loader's verdict with these limits.
pub(crate) fn judged(text: &str, limits: &Limits) -> Verdict {
    let mut verdict = Verdict::new();
    if let Err(failure) = ptx::load(text.as_bytes(), limits) {
        for diagnostic in &failure.diagnostics {
            if diagnostic.severity != Severity::Warning {
                let messages = verdict.entry(diagnostic.line).or_default();
                messages.push(diagnostic.message.clone());
            }
        }
        assert!(!verdict.is_empty(), "refused without a message: {failure}");
    }
    verdict
}

/// Returns the assembler to compare with, if `PTXAS` names one; otherwise prints that the test needs it.
pub(crate) fn ptxas(test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PTXAS").map(PathBuf::from);
    if path.is_none() {
        println!("{test}: not compared with ptxas, which needs PTXAS=/path/to/ptxas");
    }
    path
}

/// Returns the verdict of ptxas for `sm_90`, or for `sm_90a` if that is the text's target. `test` becomes part of the
/// name of a temporary file.
pub(crate) fn theirs(ptxas: &PathBuf, test: &str, text: &str) -> Verdict {
    let file = std::env::temp_dir().join(format!("{test}-{}.ptx", std::process::id()));
    std::fs::write(&file, text).expect("the temporary folder can be written");
    let arch = if text.contains(".target sm_90a") {
        "sm_90a"
    } else {
        "sm_90"
    };
    let mut command = Command::new(ptxas);
    command
        .args(["-arch", arch, "-O0", "-o"])
        .arg(if cfg!(windows) { "NUL" } else { "/dev/null" });
    let output = command.arg(&file).output().expect("ptxas runs");
    let _ = std::fs::remove_file(&file);
    let mut verdict = Verdict::new();
    let all = [output.stdout, output.stderr].concat();
    for line in String::from_utf8_lossy(&all).lines() {
        if line.contains("aborted due to errors") || line.contains("; warning") || line.contains("; info") {
            continue;
        }
        let (number, message) = match line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')) {
            Some((number, rest)) => (number.parse().unwrap_or(0), rest),
            None if line.contains("error") || line.contains("fatal") => (0, line),
            None => continue,
        };
        let text = message.split_once(": ").map_or(message, |(_, text)| text);
        verdict.entry(number).or_default().push(text.to_owned());
    }
    assert_eq!(
        output.status.success(),
        verdict.is_empty(),
        "{}",
        String::from_utf8_lossy(&all)
    );
    verdict
}
