//! What a caller of a checked call must promise.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Call, Kind};
use super::names;

/// The records of C that hold handles or addresses.
pub(super) struct Pointing(BTreeSet<String>);

impl Pointing {
    /// Reads them off the bindings: a record that holds a pointer, a device address, or such a record.
    pub(super) fn read(bindings: &str) -> Self {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut found = BTreeSet::from(["CUdeviceptr_v2".to_owned()]);
        let mut record = "";
        for line in bindings.lines() {
            let head = ["pub struct ", "pub union ", "pub type "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            if let Some(head) = head {
                record = head.split(|c| !is_part(c)).next().unwrap_or_default();
            }
            // Of a field, what comes behind its name.
            let ty = match head {
                Some(head) => head.split_once(" = ").map_or("", |(_, ty)| ty),
                None => line
                    .strip_prefix("    pub ")
                    .and_then(|field| field.split_once(": "))
                    .map_or("", |(_, ty)| ty),
            };
            if ["*mut ", "*const ", "Option<"]
                .iter()
                .any(|word| ty.contains(word))
            {
                found.insert(record.to_owned());
            }
            uses.entry(record)
                .or_default()
                .extend(ty.split(|c| !is_part(c)).filter(|word| !word.is_empty()));
        }
        loop {
            let more: Vec<&str> = uses
                .iter()
                .filter(|(record, _)| !found.contains(**record))
                .filter(|(_, parts)| parts.iter().any(|part| found.contains(*part)))
                .map(|(record, _)| *record)
                .collect();
            if more.is_empty() {
                return Self(found);
            }
            found.extend(more.into_iter().map(str::to_owned));
        }
    }

    fn contains(&self, record: &str) -> bool {
        self.0.contains(record)
    }
}

/// The sentences, at least one.
pub(super) fn sentences(call: &Call, pointing: &Pointing) -> Vec<String> {
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
            Kind::Value if ty.is_handle() => handles.push(name),
            Kind::Value if is_address => addresses.push(name),
            Kind::Destroyed => destroyed.push(name),
            Kind::Released => released.push(name),
            Kind::Raw => raw.push(name),
            Kind::Slice { .. } if ty.pointers == 1 && ty.is_handle() => {
                many_handles.push(format!("all of {name}"));
            }
            Kind::Slice { .. } if is_address => many_addresses.push(format!("all of {name}")),
            // What a handle points to is written, not read.
            Kind::In { .. } | Kind::InOut { .. } | Kind::Slice { .. }
                if pointing.contains(&ty.base) && !ty.is_handle() =>
            {
                records.push(name);
            }
            Kind::Buffer { .. } if ty.base != "char" => written.push(name),
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

    #[test]
    fn records_that_hold_handles_or_addresses() {
        let bindings = "\
pub struct A {
    pub n: c_int,
}
pub struct B {
    pub ptr: CUdeviceptr,
}
pub union C {
    pub n: c_int,
    pub b: [B; 2usize],
}
pub type D = C;
pub type CUdeviceptr = CUdeviceptr_v2;
pub type CUdeviceptr_v2 = c_ulonglong;
pub type CUstream = *mut CUstream_st;
pub struct E {
    pub stream: CUstream,
}
";
        let pointing = Pointing::read(bindings);
        let found: Vec<&str> = ["A", "B", "C", "D", "E"]
            .into_iter()
            .filter(|record| pointing.contains(record))
            .collect();
        assert_eq!(found, ["B", "C", "D", "E"]);
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
        let calls = crate::checked::calls().expect("the registry");
        let bindings = crate::root().join("cuda-driver-sys/src/generated/records.rs");
        let pointing = Pointing::read(&crate::read(&bindings).expect("the bindings"));
        for (symbol, word) in PROMISES {
            let call = calls.iter().find(|call| call.symbol == *symbol);
            let call = call.unwrap_or_else(|| panic!("there is no {symbol}"));
            let text = sentences(call, &pointing).join(" ");
            assert!(text.contains(word), "{symbol} lacks {word:?}: {text}");
        }
    }
}
