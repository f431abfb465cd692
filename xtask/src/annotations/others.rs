//! The other exports that an annotation names: what is called where it is lacking, and what replaced it.

use std::collections::BTreeSet;

use super::Annotations;
use crate::generate::registry::{Entry, StreamMode};

/// Adds what is wrong with them.
pub(super) fn check(
    annotations: &Annotations,
    entries: &[Entry],
    current: &BTreeSet<String>,
    found: &mut Vec<String>,
) {
    let find = |symbol: &str| entries.iter().find(|entry| entry.symbol == symbol);
    for entry in entries {
        let symbol = &entry.symbol;
        let Some(annotation) = annotations.0.get(symbol) else {
            continue;
        };
        let mut say = |what: String| found.push(format!("[{symbol}] {what}"));
        let replacement = annotations.replacement(symbol);
        match replacement.map(|other| (other, find(other))) {
            None if !current.contains(symbol) && entry.stream != StreamMode::PerThread => say(
                "cannot be called by C programs of today, and does not say what replaced it"
                    .to_owned(),
            ),
            None => {}
            Some((other, None)) => say(format!(
                "is replaced by {other}, which is no exported function"
            )),
            // What is of the 32-bit era has nothing but its successor, old or not.
            Some((other, Some(_)))
                if annotations.describes(symbol) && annotations.replacement(other).is_some() =>
            {
                say(format!("is replaced by {other}, which is itself replaced"));
            }
            Some(_) => {}
        }
        let fallback = annotation.get("fallback").and_then(toml::Value::as_str);
        match fallback.map(|other| (other, find(other))) {
            None if annotation.get("older_lacks").is_some() => {
                say("says what an older export lacks, and names none".to_owned());
            }
            None => {}
            Some((other, None)) => say(format!(
                "falls back to {other}, which is no exported function"
            )),
            Some((other, Some(older))) if older.base != entry.base => say(format!(
                "falls back to {other}, which is of another base name"
            )),
            Some((other, Some(older))) if older.since >= entry.since => {
                say(format!("falls back to {other}, which is not older"));
            }
            Some(_) => {}
        }
    }
}
