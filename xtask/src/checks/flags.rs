//! Checks the integer parameters that hold flags.

use crate::annotations::kinds;
use crate::bindings::registry::Entry;
use crate::c_type::CType;
use crate::registry::Registry;

/// Returns the problems with the `flags` of an annotation.
pub(super) fn problems(entry: &Entry, annotation: &toml::Value, registry: &Registry) -> Vec<String> {
    let mut found = Vec::new();
    let empty = toml::Table::new();
    let flags = match annotation.get("flags").map(toml::Value::as_table) {
        None => &empty,
        Some(Some(flags)) => flags,
        Some(None) => return vec!["flags is not a table".to_owned()],
    };
    let kinds = kinds(annotation);
    for (name, of) in flags {
        let Some((_, ty)) = entry.parameters.iter().find(|(other, _)| other == name) else {
            found.push(format!("flags: there is no parameter {name}"));
            continue;
        };
        if !CType::parse(ty).is_number() {
            found.push(format!("flags: {name} has the type {ty}, which is not an integer"));
            continue;
        }
        match of.as_str() {
            Some("0") if kinds.contains_key(name.as_str()) => {
                found.push(format!("flags: {name} is an output, so it cannot be required to be 0"))
            }
            Some("0") => {}
            Some(of) if registry.is_enumeration(of) || registry.constants(of).next().is_some() => {}
            _ => found.push(format!(
                "flags: {name} takes {}, which is neither an enumeration nor a constant",
                of.as_str().unwrap_or("a value that is not a string")
            )),
        }
    }
    for (name, ty) in &entry.parameters {
        let is_flags = name.to_lowercase().ends_with("flags") && CType::parse(ty).is_number();
        if is_flags && !flags.contains_key(name) {
            found.push(format!("{name} has no entry in `flags`"));
        }
    }
    found
}
