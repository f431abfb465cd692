//! The facts about types that the documentation of the checked calls needs.

use std::collections::BTreeSet;

use crate::bindings::model::{Model, type_text};
use crate::registry::Registry;

/// The registry, and the records that hold handles or addresses.
pub(super) struct Facts<'a> {
    pub(super) registry: &'a Registry,
    pub(super) pointing: Pointing,
}

impl<'a> Facts<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self {
            registry,
            pointing: Pointing::new(&registry.header),
        }
    }
}

/// The records of C that hold handles or addresses.
pub(super) struct Pointing(BTreeSet<String>);

impl Pointing {
    /// Collects the records and aliases that hold a pointer, a device address, or such a record or alias.
    pub(super) fn new(header: &Model) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let records = header
            .records
            .iter()
            .map(|record| (&record.name, field_types(&record.item)));
        let aliases = header
            .aliases
            .iter()
            .map(|alias| (&alias.name, vec![type_text(&alias.target)]));
        let types: Vec<(&String, Vec<String>)> = records.chain(aliases).collect();
        let mut found = BTreeSet::from(["CUdeviceptr_v2".to_owned()]);
        loop {
            let more: Vec<&String> = types
                .iter()
                .filter(|(name, _)| !found.contains(*name))
                .filter(|(_, types)| {
                    types.iter().any(|ty| {
                        let mut words = ty.split(|c| !is_part(c));
                        ty.contains("*mut ")
                            || ty.contains("*const ")
                            || words.any(|word| word == "Option" || found.contains(word))
                    })
                })
                .map(|(name, _)| *name)
                .collect();
            if more.is_empty() {
                return Self(found);
            }
            found.extend(more.into_iter().cloned());
        }
    }

    pub(super) fn contains(&self, record: &str) -> bool {
        self.0.contains(record)
    }
}

/// Returns the types of the fields of a structure or union.
fn field_types(item: &syn::Item) -> Vec<String> {
    let fields = match item {
        syn::Item::Struct(item) => &item.fields,
        syn::Item::Union(item) => {
            return item.fields.named.iter().map(|f| type_text(&f.ty)).collect();
        }
        _ => return Vec::new(),
    };
    fields.iter().map(|field| type_text(&field.ty)).collect()
}

#[cfg(test)]
mod tests {
    use super::Pointing;
    use crate::bindings::model::Model;

    #[test]
    fn records_that_hold_handles_or_addresses() {
        let file: syn::File = syn::parse_quote! {
            pub struct A { pub n: c_int }
            pub struct B { pub ptr: CUdeviceptr }
            pub union C { pub n: c_int, pub b: [B; 2usize] }
            pub type D = C;
            pub type CUdeviceptr = CUdeviceptr_v2;
            pub type CUdeviceptr_v2 = ::core::ffi::c_ulonglong;
            pub type CUstream = *mut CUstream_st;
            pub struct E { pub stream: CUstream }
            pub struct F { pub call: ::core::option::Option<unsafe extern "C" fn()> }
        };
        let pointing = Pointing::new(&Model::from_bindgen(&file).expect("items of bindgen"));
        let found: Vec<&str> = ["A", "B", "C", "D", "E", "F"]
            .into_iter()
            .filter(|record| pointing.contains(record))
            .collect();
        assert_eq!(found, ["B", "C", "D", "E", "F"]);
    }
}
