//! What a caller of a checked call must promise.

use std::collections::BTreeSet;

use super::docs::Facts;
use super::model::{Call, Kind};
use super::names;
use crate::bindings::model::{Model, type_text};
use crate::c_type::CType;

/// The records of C that hold handles or addresses.
pub(super) struct Pointing(BTreeSet<String>);

impl Pointing {
    /// Collects the records that hold a pointer, a device address, or such a record.
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

    fn contains(&self, record: &str) -> bool {
        self.0.contains(record)
    }
}

/// The sentences, at least one.
pub(super) fn sentences(call: &Call, facts: &Facts<'_>) -> Vec<String> {
    let is_handle = |ty: &CType| facts.registry.is_handle(&ty.base);
    let (mut handles, mut destroyed, mut released) = (Vec::new(), Vec::new(), Vec::new());
    let mut raw = Vec::new();
    let (mut addresses, mut records) = (Vec::new(), Vec::new());
    let (mut written, mut plain) = (Vec::new(), Vec::new());
    // Named behind those that are one.
    let (mut many_handles, mut many_addresses) = (Vec::new(), Vec::new());
    for parameter in &call.parameters {
        let ty = &parameter.ty;
        let name = format!("`{}`", names::parameter(&parameter.name));
        let is_address = ty.base == "CUdeviceptr";
        match &parameter.kind {
            Kind::Value if call.is_counted(&parameter.name) => {}
            Kind::Value if is_handle(ty) => handles.push(name),
            Kind::Value if is_address => addresses.push(name),
            Kind::Destroyed => destroyed.push(name),
            Kind::Released => released.push(name),
            Kind::Raw => raw.push(name),
            Kind::Slice { .. } if ty.pointers == 1 && is_handle(ty) => {
                many_handles.push(format!("all of {name}"));
            }
            Kind::Slice { .. } if is_address => many_addresses.push(format!("all of {name}")),
            // What a handle points to is written, not read.
            Kind::In { .. } | Kind::InOut { .. } | Kind::Slice { .. }
                if facts.pointing.contains(&ty.base) && !is_handle(ty) =>
            {
                records.push(name);
            }
            Kind::Buffer { .. } if !ty.is_char() => written.push(name),
            Kind::Value
            | Kind::In { .. }
            | Kind::Slice { .. }
            | Kind::Str { .. }
            | Kind::Bytes { .. } => plain.push(name),
            _ => {}
        }
    }
    handles.append(&mut many_handles);
    addresses.append(&mut many_addresses);
    // Those that take a stream queue work in it, but for these.
    let queued = !["SetAttribute", "BeginCapture"]
        .iter()
        .any(|word| call.symbol.contains(word))
        && call
            .parameters
            .iter()
            .any(|parameter| parameter.ty.base == "CUstream");
    let until = if queued { " until that is done" } else { "" };
    let mut out = Vec::new();
    let mut say = |names: &[String], promise: &str| {
        if !names.is_empty() {
            let names = list(names);
            let names = match names.strip_prefix('a') {
                Some(rest) => format!("A{rest}"),
                None => names,
            };
            out.push(format!("{names} {promise}"));
        }
    };
    say(
        &handles,
        "must be live, or null where the driver allows it.",
    );
    say(&destroyed, "must be live, and must not be used again.");
    say(
        &released,
        "must be live; the call gives back one use of it, and after the last one it must not be used again.",
    );
    match &call.safety {
        Some(safety) => out.push(safety.clone()),
        None if !raw.is_empty() => say(&raw, "must be what the manual asks for."),
        None => {
            say(
                &addresses,
                &format!(
                    "must be valid for all that the call reads or writes there{}{until}.",
                    if queued { "," } else { "" }
                ),
            );
            if !records.is_empty() {
                let when = if call.symbol.starts_with("cuGraph") {
                    " whenever the graph runs"
                } else {
                    until
                };
                out.push(format!(
                    "Handles and addresses in {} must be valid{when}, or null where the driver allows it.",
                    list(&records)
                ));
            }
        }
    }
    if !written.is_empty() {
        out.push(format!(
            "The bytes that come into {} must be values of its type.",
            list(&written)
        ));
    }
    if !out.is_empty() {
        return out;
    }
    if !plain.is_empty() {
        out.push(format!(
            "{} must be what the manual allows; the driver refuses most of what is not.",
            list(&plain)
        ));
    }
    if uses_the_current_context(&call.symbol) {
        out.push(
            "The context that is current must be live: the driver crashes on one that is gone."
                .to_owned(),
        );
    }
    if out.is_empty() {
        out.push(
            "It takes nothing that could be wrong, and is `unsafe` only as all calls here are."
                .to_owned(),
        );
    }
    out
}

/// The types of the fields of a structure or union.
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

/// Whether a call without handles is about the context that is current, and not only about which one that is.
fn uses_the_current_context(symbol: &str) -> bool {
    let base = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
    let base = base.trim_end_matches("_v");
    base == "cuMemGetInfo"
        || (base.starts_with("cuCtx") && !["cuCtxCreate", "cuCtxGetCurrent"].contains(&base))
}

/// Names as prose.
pub(super) fn list(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pointing, sentences};
    use crate::bindings::model::Model;
    use crate::checked::docs::Facts;
    use crate::checked::model::calls;
    use crate::registry::Registry;

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

    /// What an H200 with driver 580 was seen to crash on, as far as a checked call can pass it, and what its manual calls
    /// undefined: the word that must be in what a caller promises.
    const PROMISES: &[(&str, &str)] = &[
        ("cuGraphAddKernelNode", "A context must be current"),
        ("cuGraphAddKernelNode_v2", "A context must be current"),
        ("cuCtxSetFlags", "The context that is current must be live"),
        ("cuCtxGetLimit", "The context that is current must be live"),
        (
            "cuCtxPopCurrent_v2",
            "The context that is current must be live",
        ),
        (
            "cuCtxSetCurrent",
            "The context that was current must be live",
        ),
        ("cuCtxPushCurrent_v2", "`ctx` must be live"),
        ("cuCtxDestroy_v2", "`ctx` must be live"),
        ("cuCtxDetach", "gives back one use"),
        ("cuMemRelease", "gives back one use"),
        ("cuStreamQuery", "`stream` must be live"),
        ("cuStreamDestroy_v2", "`stream` must be live"),
        (
            "cuModuleUnload",
            "`module` must be live, and must not be used again",
        ),
        ("cuModuleGetFunction", "`module` must be live"),
        ("cuFuncGetAttribute", "`func` must be live"),
        ("cuKernelGetFunction", "`kernel` must be live"),
        ("cuLinkDestroy", "must not be used again"),
        ("cuFuncSetAttribute", "`attrib` must not be below 0"),
        ("cuKernelSetAttribute", "`attrib` must not be below 0"),
        ("cuParamSeti", "`offset` must not be below 0"),
        ("cuParamSetf", "`offset` must not be below 0"),
        ("cuParamSetv", "`offset` must not be below 0"),
        ("cuFuncSetBlockShape", "kernel of a library"),
        ("cuStreamAttachMemAsync", "crashes on 0"),
        ("cuModuleLoad", "cut off"),
        ("cuModuleLoadData", "cut off"),
        ("cuModuleLoadFatBinary", "cut off"),
        ("cuModuleLoadDataEx", "a block of 0 threads"),
        ("cuLinkCreate", "a block of 0 threads"),
        ("cuLinkCreate_v2", "a block of 0 threads"),
        ("cuLibraryLoadData", "a block of 0 threads"),
        ("cuLibraryLoadData", "table of functions must not be null"),
        ("cuLibraryLoadData", "until the library is unloaded"),
        ("cuLibraryLoadFromFile", "a block of 0 threads"),
        ("cuLibraryLoadFromFile", "cut off"),
        (
            "cuLibraryLoadFromFile",
            "table of functions must not be null",
        ),
        ("cuLinkAddFile_v2", "cut off"),
        ("cuLinkAddData_v2", "undamaged"),
        ("cuLaunchKernel", "`extra` with a size that is there"),
        ("cuLaunchHostFunc", "nor wait for work of the driver"),
        ("cuMemcpy", "valid for the copy"),
        ("cuMemcpyAsync", "valid until the copy is done"),
        ("cuMemcpyHtoD_v2", "`dst_device` must be valid"),
        ("cuImportExternalMemory", "file descriptor is the driver's"),
        (
            "cuImportExternalSemaphore",
            "file descriptor is the driver's",
        ),
        ("cuDestroyExternalSemaphore", "must be done"),
        ("cuUserObjectRelease", "the caller's own"),
        ("cuCtxFromGreenCtx", "must not be destroyed"),
        ("cuFuncGetModule", "must not be unloaded"),
        ("cuMemcpyBatchAsync", "depend on another"),
        ("cuMemcpyBatchAsync_v2", "depend on another"),
        ("cuMemcpy3DBatchAsync_v2", "depend on another"),
        ("cuFabricCpyBatchAsync", "depend on another"),
        (
            "cuMemDiscardBatchAsync",
            "nothing else may read, write or prefetch",
        ),
        (
            "cuMemDiscardAndPrefetchBatchAsync",
            "nothing else may read, write or prefetch",
        ),
        ("cuIpcOpenMemHandle_v2", "must not free it"),
        ("cuIpcOpenEventHandle", "after the process that shares it"),
        ("cuMulticastUnbind", "must be those"),
    ];

    #[test]
    fn what_crashes_a_driver_is_promised_not_to_be_done() {
        let Some(registry) = Registry::for_tests() else {
            return;
        };
        let calls = calls(&registry).expect("the annotations");
        let facts = Facts::new(&registry);
        for (symbol, word) in PROMISES {
            let call = calls.iter().find(|call| call.symbol == *symbol);
            let call = call.unwrap_or_else(|| panic!("there is no {symbol}"));
            let text = sentences(call, &facts).join(" ");
            assert!(text.contains(word), "{symbol} lacks {word:?}: {text}");
        }
    }
}
