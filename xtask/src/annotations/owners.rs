//! Handles and addresses that a function gives: the caller's to destroy, or lent.

use std::collections::BTreeMap;

use super::word;
use crate::checked::is_handle;
use crate::generate::registry::Entry;

/// What is wrong with what an annotation says of them.
pub(super) fn problems(entry: &Entry, kinds: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, ty) in &entry.parameters {
        let Some(kind) = kinds.get(name.as_str()) else {
            continue;
        };
        let word = word(kind);
        if !ty.contains('*') || kind.contains('[') || !["out", "new", "lent"].contains(&word) {
            continue;
        }
        let (said, owner) = match kind.split_once('@') {
            Some((said, owner)) => (said, Some(owner.trim_end_matches('?'))),
            None => (*kind, None),
        };
        let is_owned = is_owned(ty);
        let base = base(ty);
        if is_owned && word == "out" {
            found.push(format!(
                "{name}: {kind:?} does not say whose the {base} is: new or lent"
            ));
        }
        if !is_owned && word != "out" {
            found.push(format!(
                "{name}: {said:?} is said of {base}, which nobody owns"
            ));
        }
        if let Some(owner) = owner {
            if word != "lent" {
                found.push(format!("{name}: only what is lent belongs to a parameter"));
            } else if !is_passed(entry, kinds, owner) {
                found.push(format!(
                    "{name}: {kind:?} names no parameter that is passed"
                ));
            }
        }
    }
    found
}

/// Whether a parameter is given by the caller.
fn is_passed(entry: &Entry, kinds: &BTreeMap<&str, &str>, name: &str) -> bool {
    let parameter = entry.parameters.iter().find(|(other, _)| other == name);
    parameter.is_some_and(|(_, ty)| {
        !ty.contains('*') || kinds.get(name).is_some_and(|kind| word(kind) == "raw")
    })
}

fn base(ty: &str) -> &str {
    ty.trim_start_matches("const ").trim_end_matches(['*', ' '])
}

/// Whether what an output points to is a handle, a device address, or an address.
fn is_owned(ty: &str) -> bool {
    ty.matches('*').count() > 1 || is_handle(base(ty)) || base(ty).starts_with("CUdeviceptr")
}
