//! Integers that hold flags: which ones.

use super::{Names, kinds};
use crate::generate::registry::Entry;

/// The C types of flags that are no enumeration's.
const NUMBERS: &[&str] = &["int", "unsigned int", "unsigned long long", "cuuint64_t"];

/// What is wrong with what an annotation says of them.
pub(super) fn problems(entry: &Entry, annotation: &toml::Value, names: &Names) -> Vec<String> {
    let mut found = Vec::new();
    let empty = toml::Table::new();
    let flags = match annotation.get("flags").map(toml::Value::as_table) {
        None => &empty,
        Some(Some(flags)) => flags,
        Some(None) => return vec!["flags is no table".to_owned()],
    };
    let kinds = kinds(annotation);
    for (name, of) in flags {
        let Some((_, ty)) = entry.parameters.iter().find(|(other, _)| other == name) else {
            found.push(format!("flags: there is no parameter {name}"));
            continue;
        };
        if !is_number(ty) {
            found.push(format!(
                "flags: {name} is of the type {ty}, which is no number"
            ));
            continue;
        }
        match of.as_str() {
            Some("0") if kinds.contains_key(name.as_str()) => found.push(format!(
                "flags: {name} is given by the driver, so it need not be 0"
            )),
            Some("0") => {}
            Some(of) if is_known(of, names) => {}
            _ => found.push(format!(
                "flags: {name} is of {}, which is no enumeration and no constant",
                of.as_str().unwrap_or("what is no text")
            )),
        }
    }
    for (name, ty) in &entry.parameters {
        if name.to_lowercase().ends_with("flags") && is_number(ty) && !flags.contains_key(name) {
            found.push(format!("{name} are flags, and nothing says which"));
        }
    }
    found
}

fn is_number(ty: &str) -> bool {
    NUMBERS.contains(&ty.trim_end_matches(['*', ' ']))
}

/// Whether there is such an enumeration, such a constant, or for `CU_X_*` a constant that begins so.
fn is_known(of: &str, names: &Names) -> bool {
    let constant = match of.strip_suffix('*') {
        Some(prefix) => format!("pub const {prefix}"),
        None => format!("pub const {of}:"),
    };
    names.constants.contains(&constant)
        || ["flags", "enumeration"].iter().any(|kind| {
            let line = format!("{kind} {of} ");
            let mut lines = names.enumerations.lines();
            lines.any(|other| other.starts_with(&line))
        })
}
