//! Names structures and unions that have no name in the header.
//!
//! bindgen numbers them in the order of the header, so a member that a release inserts would rename those after it.
//! This module names them after the member whose type they are: `CUDA_RESOURCE_DESC_st__res`. The members of an
//! anonymous union belong to the record around it, as in C: `CUmemLocation_st__localized`.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit_mut::VisitMut;

use super::model::Model;

/// The name of fields that have none in C, followed by a number.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// The text before bindgen's numbers.
const NUMBERED: &str = "__bindgen_ty_";

/// The separator between the names of a record and of its member; no name in the header contains it.
pub(crate) const BETWEEN: &str = "__";

/// A record without a name in C: its generated name, and the prefix of the names of its members' types.
struct Named {
    name: String,
    prefix: String,
}

/// Names the unnamed records after the members whose types they are. Hides anonymous members and their records from the
/// documentation.
///
/// # Errors
/// An unnamed record that is not the type of a member, an unnamed type that is not a record, or two records with the
/// same name.
pub(crate) fn call_by_member(model: &mut Model) -> Result<(), String> {
    let mut names: BTreeMap<String, Named> = BTreeMap::new();
    // A record comes before those inside it.
    for record in &mut model.records {
        let prefix = names
            .get(&record.name)
            .map_or(&record.name, |named| &named.prefix)
            .clone();
        for field in fields(&mut record.item) {
            let Some(member) = field.ident.as_ref().map(ToString::to_string) else {
                continue;
            };
            let is_anonymous = member.starts_with(ANONYMOUS);
            if is_anonymous {
                field.attrs.push(syn::parse_quote!(#[doc(hidden)]));
            }
            let mut inside = Numbered(BTreeSet::new());
            inside.visit_type_mut(&mut field.ty);
            for numbered in inside.0 {
                let name = format!("{prefix}{BETWEEN}{member}");
                let prefix = if is_anonymous { &prefix } else { &name };
                let prefix = prefix.clone();
                names.entry(numbered).or_insert(Named { name, prefix });
            }
        }
    }

    let mut taken: BTreeSet<&str> = model.records.iter().map(|r| r.name.as_str()).collect();
    for (numbered, named) in &names {
        // For instance an enumeration inside a record, which no known header has.
        if !taken.contains(numbered.as_str()) {
            return Err(format!("{numbered}, the type of {}, is not a record", named.name));
        }
        if !taken.insert(&named.name) {
            return Err(format!("two records are named {}", named.name));
        }
    }
    let mut rename = Rename(&names);
    for record in &mut model.records {
        rename.visit_item_mut(&mut record.item);
        if let Some(named) = names.get(&record.name) {
            record.name.clone_from(&named.name);
            if named.name != named.prefix {
                hide(&mut record.item);
            }
        }
        if record.name.contains(NUMBERED) {
            return Err(format!("{} is not the type of a member", record.name));
        }
    }
    let layouts = std::mem::take(&mut model.layouts);
    let renamed = layouts.into_iter().map(|(name, layout)| {
        let name = names.get(&name).map_or(name, |named| named.name.clone());
        (name, layout)
    });
    model.layouts = renamed.collect();
    Ok(())
}

fn fields(item: &mut syn::Item) -> Vec<&mut syn::Field> {
    match item {
        syn::Item::Struct(item) => item.fields.iter_mut().collect(),
        syn::Item::Union(item) => item.fields.named.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn hide(item: &mut syn::Item) {
    if let syn::Item::Struct(syn::ItemStruct { attrs, .. }) | syn::Item::Union(syn::ItemUnion { attrs, .. }) = item {
        attrs.push(syn::parse_quote!(#[doc(hidden)]));
    }
}

/// The numbered names in a type.
struct Numbered(BTreeSet<String>);

impl VisitMut for Numbered {
    fn visit_ident_mut(&mut self, ident: &mut syn::Ident) {
        let name = ident.to_string();
        if name.contains(NUMBERED) {
            self.0.insert(name);
        }
    }
}

/// Replaces the numbered names.
struct Rename<'a>(&'a BTreeMap<String, Named>);

impl VisitMut for Rename<'_> {
    fn visit_ident_mut(&mut self, ident: &mut syn::Ident) {
        if let Some(named) = self.0.get(&ident.to_string()) {
            *ident = syn::Ident::new(&named.name, ident.span());
        }
    }
}
