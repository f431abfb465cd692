//! Checks the owners of the handles and addresses that a function returns.

use std::collections::BTreeMap;

use crate::annotations::word;
use crate::bindings::registry::Entry;
use crate::c_type::CType;
use crate::registry::Registry;

/// Returns the problems with the owners in an annotation.
pub(super) fn problems(entry: &Entry, kinds: &BTreeMap<&str, &str>, registry: &Registry) -> Vec<String> {
    let mut found = Vec::new();
    for (name, ty) in &entry.parameters {
        let Some(kind) = kinds.get(name.as_str()) else {
            continue;
        };
        let word = word(kind);
        let ty = CType::parse(ty);
        if ty.pointers == 0 || kind.contains('[') || !["out", "new", "lent"].contains(&word) {
            continue;
        }
        let (direction, owner) = match kind.split_once('@') {
            Some((direction, owner)) => (direction, Some(owner.trim_end_matches('?'))),
            None => (*kind, None),
        };
        let base = &ty.base;
        let is_owned = ty.pointers > 1 || registry.is_handle(base) || base.starts_with("CUdeviceptr");
        if is_owned && word == "out" {
            found.push(format!(
                "{name}: {kind:?} names no owner of the {base}: use new or lent"
            ));
        }
        if !is_owned && word != "out" {
            found.push(format!(
                "{name}: {direction:?} is for handles and addresses, and {base} is neither"
            ));
        }
        if let Some(owner) = owner.filter(|_| word == "lent")
            && !is_passed(entry, kinds, owner)
        {
            found.push(format!(
                "{name}: {kind:?} does not name a parameter that the caller passes"
            ));
        }
    }
    found
}

/// Returns true if the caller passes a value for a parameter.
fn is_passed(entry: &Entry, kinds: &BTreeMap<&str, &str>, name: &str) -> bool {
    let parameter = entry.parameters.iter().find(|(other, _)| other == name);
    parameter.is_some_and(|(_, ty)| !ty.starts_with('*') || kinds.get(name).is_some_and(|kind| word(kind) == "raw"))
}
