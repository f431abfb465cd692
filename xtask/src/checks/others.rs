//! Checks the other exports that an annotation names: the fallback on older drivers, and the replacement.

use crate::bindings::registry::StreamMode;
use crate::registry::Registry;

/// Adds the problems of fallbacks and replacements.
pub(super) fn check(registry: &Registry, found: &mut Vec<String>) {
    let annotations = &registry.annotations;
    for entry in &registry.functions {
        let symbol = &entry.symbol;
        let Some(annotation) = annotations.own(symbol) else {
            continue;
        };
        let mut say = |what: String| found.push(format!("[{symbol}] {what}"));
        let replacement = annotations.replacement(symbol);
        match replacement.map(|other| (other, registry.find(other))) {
            None if !registry.current.contains(symbol) && entry.stream != StreamMode::PerThread => {
                say("cannot be called from C with this header, and has no replaced_by".to_owned());
            }
            None => {}
            Some((other, None)) => say(format!("is replaced by {other}, which is not an exported function")),
            // The replacement of an export of the 32-bit era may be replaced itself.
            Some((other, Some(_))) if annotations.describes(symbol) && annotations.replacement(other).is_some() => {
                say(format!("is replaced by {other}, which is itself replaced"));
            }
            Some(_) => {}
        }
        let fallback = annotation.get("fallback").and_then(toml::Value::as_str);
        match fallback.map(|other| (other, registry.find(other))) {
            None if annotation.get("older_lacks").is_some() => {
                say("has older_lacks but no fallback".to_owned());
            }
            None => {}
            Some((other, None)) => say(format!("falls back to {other}, which is not an exported function")),
            Some((other, Some(older))) if older.base != entry.base => {
                say(format!("falls back to {other}, which has another base name"))
            }
            Some((other, Some(older))) if older.since >= entry.since => {
                say(format!("falls back to {other}, which is not older"));
            }
            Some(_) => {}
        }
    }
}
