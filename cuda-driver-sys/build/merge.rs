//! Merges a user's header into the committed bindings. Items in both must agree; if the header is of a newer CUDA
//! version, its other items are added.

#[cfg(any(feature = "bindgen", test))]
use std::collections::BTreeSet;

use super::model::Model;
#[cfg(any(feature = "bindgen", test))]
use super::registry;
use super::registry::Entry;
use super::signature;
#[cfg(any(feature = "bindgen", test))]
use super::unnamed::BETWEEN;

/// Values that grow with the header: its version, and masks of all its flags.
const GROWING_VALUES: &[&str] = &["CUDA_VERSION", "CU_CTX_FLAGS_MASK", "CU_COREDUMP_LIGHTWEIGHT_FLAGS"];

/// Enumerators whose value changed, and all their values. Every driver accepts the committed value.
const CHANGED_VALUES: &[(&str, &[i128])] = &[
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS", &[93, 122]),
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR", &[94, 123]),
];

/// Records whose size or alignment changed, and all their pairs of size and alignment. Their fields kept their offsets.
/// No function takes a pointer to a record whose size changed.
const CHANGED_LAYOUTS: &[(&str, &[(u64, u64)])] = &[
    ("CUtensorMap_st", &[(128, 64), (128, 128)]),
    ("CUdevSmResource_st", &[(4, 4), (12, 4), (16, 4), (20, 4)]),
    ("CUdevResource_st", &[(144, 4), (144, 8)]),
    ("CUdevResource_st__anonymous1", &[(48, 4), (40, 4)]),
    ("CUDA_HOST_NODE_PARAMS_v2_st", &[(16, 8), (24, 8), (32, 8)]),
    ("CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st", &[(24, 8), (32, 8)]),
    ("CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st", &[(24, 8), (32, 8)]),
    ("CUDA_CHILD_GRAPH_NODE_PARAMS_st", &[(8, 8), (16, 8)]),
    ("CUDA_EVENT_RECORD_NODE_PARAMS_st", &[(8, 8), (16, 8)]),
];

/// Padding and reserved fields. Their offsets may differ, because later headers use some of their bytes for new fields.
const CHANGED_FIELDS: &[&str] = &["reserved", "_oversize", "padding", "pad"];

/// Merges a header into the committed bindings. Adds nothing if the header's CUDA version is not newer than theirs.
///
/// # Errors
/// One sentence for each unexpected difference between items in both.
#[cfg(any(feature = "bindgen", test))]
pub(crate) fn merge(
    mut committed: Model,
    mut registry: Vec<Entry>,
    header: &Model,
    typedefs: &str,
) -> Result<(Model, Vec<Entry>), Vec<String>> {
    let differences = differences(&committed, &registry, header);
    if !differences.is_empty() {
        return Err(differences);
    }
    if version(header) > version(&committed) {
        add(&mut committed, header);
        let version = u32::try_from(version(header)).unwrap_or_default();
        registry::extend(&mut registry, &header.functions, typedefs, version);
    }
    Ok((committed, registry))
}

/// Returns the functions of a header that the registry does not contain and that [`merge`] does not add, because the
/// header's CUDA version is not newer than the bindings'. A header that a vendor extended has such functions.
#[cfg(any(feature = "bindgen", test))]
pub(crate) fn left_out<'a>(committed: &Model, registry: &[Entry], header: &'a Model) -> Vec<&'a str> {
    if version(header) > version(committed) {
        return Vec::new();
    }
    let functions = header.functions.iter().map(|function| &*function.name);
    functions
        .filter(|name| registry.iter().all(|entry| entry.symbol != *name))
        .collect()
}

/// Returns the `CUDA_VERSION` of a header or of the bindings; 0 if it is not defined.
pub(crate) fn version(model: &Model) -> i128 {
    model
        .constants
        .iter()
        .find(|constant| constant.name == "CUDA_VERSION")
        .map_or(0, |constant| constant.value)
}

/// Returns one sentence for each unexpected difference between items in both the committed bindings and the header.
pub(crate) fn differences(committed: &Model, registry: &[Entry], header: &Model) -> Vec<String> {
    let mut found = Vec::new();
    for theirs in &header.constants {
        let ours = committed.constants.iter().find(|ours| ours.name == theirs.name);
        if let Some(ours) = ours.filter(|ours| ours.value != theirs.value) {
            if !may_be(&theirs.name, &[ours.value, theirs.value]) {
                found.push(format!(
                    "{} is {}, but {} in the header",
                    ours.name, ours.value, theirs.value
                ));
            }
        }
    }
    for theirs in &header.enumerations {
        let Some(ours) = committed.enumerations.iter().find(|ours| ours.name == theirs.name) else {
            continue;
        };
        for (name, value) in &theirs.values {
            let known = ours.values.iter().find(|(ours, _)| ours == name);
            if let Some((_, known)) = known.filter(|(_, known)| known != value) {
                if !may_be(name, &[i128::from(*known), i128::from(*value)]) {
                    found.push(format!("{name} is {known}, but {value} in the header"));
                }
            }
        }
    }
    for (name, theirs) in &header.layouts {
        let Some(ours) = committed.layouts.get(name) else {
            continue;
        };
        let pairs = [(ours.size, ours.align), (theirs.size, theirs.align)];
        if pairs[0] != pairs[1] && !among(CHANGED_LAYOUTS, name, &pairs) {
            found.push(format!(
                "{name} has size {} and alignment {}, but {} and {} in the header",
                ours.size, ours.align, theirs.size, theirs.align
            ));
        }
        for (field, offset) in &theirs.offsets {
            let known = ours.offsets.iter().find(|(ours, _)| ours == field);
            if let Some((_, known)) = known.filter(|(_, known)| known != offset) {
                if !CHANGED_FIELDS.contains(&field.as_str()) {
                    found.push(format!("{name}::{field} is at {known}, but at {offset} in the header"));
                }
            }
        }
    }
    for theirs in &header.functions {
        let Some(ours) = registry.iter().find(|ours| ours.symbol == theirs.name) else {
            continue;
        };
        let different = signature::difference(&ours.parameters, committed, &theirs.parameters, header);
        if let Some((known, seen)) = different {
            found.push(format!("{} takes ({known}), but ({seen}) in the header", ours.symbol));
        }
    }
    found
}

/// Returns true if a list contains all these values for a name.
fn among<T: PartialEq>(list: &[(&str, &[T])], name: &str, these: &[T]) -> bool {
    list.iter()
        .any(|(known, all)| *known == name && these.iter().all(|one| all.contains(one)))
}

/// Returns true if a name may have these values in different headers.
fn may_be(name: &str, values: &[i128]) -> bool {
    GROWING_VALUES.contains(&name) || among(CHANGED_VALUES, name, values)
}

/// Adds the items and enumerators that the committed bindings lack, except functions, which are only in the registry.
/// Existing ones stay unchanged.
#[cfg(any(feature = "bindgen", test))]
fn add(committed: &mut Model, header: &Model) {
    let constants: BTreeSet<String> = committed.constants.iter().map(|c| c.name.clone()).collect();
    committed.constants.extend(
        header
            .constants
            .iter()
            .filter(|c| !constants.contains(&c.name))
            .cloned(),
    );

    for theirs in &header.enumerations {
        match committed.enumerations.iter_mut().find(|ours| ours.name == theirs.name) {
            Some(ours) => {
                let known: BTreeSet<String> = ours.values.iter().map(|(name, _)| name.clone()).collect();
                ours.values
                    .extend(theirs.values.iter().filter(|(name, _)| !known.contains(name)).cloned());
            }
            None => committed.enumerations.push(theirs.clone()),
        }
    }

    let known: BTreeSet<String> = committed
        .records
        .iter()
        .map(|record| record.name.clone())
        .chain(committed.aliases.iter().map(|alias| alias.name.clone()))
        .collect();
    for record in &header.records {
        // An unnamed record inside an existing one belongs to the header's version of it, which is not used.
        let outer = record.name.split(BETWEEN).next().unwrap_or_default();
        if !known.contains(&record.name) && !known.contains(outer) {
            committed.records.push(record.clone());
            if let Some(layout) = header.layouts.get(&record.name) {
                committed.layouts.insert(record.name.clone(), layout.clone());
            }
        }
    }
    committed.aliases.extend(
        header
            .aliases
            .iter()
            .filter(|alias| !known.contains(&alias.name))
            .cloned(),
    );
}
