//! Writes the *Safety* section of a checked call.

use super::facts::Facts;
use super::model::Call;
use super::names;
use crate::c_type::CType;
use crate::kind::Kind;

/// Returns the sentences under *Safety*, at least one.
pub(super) fn sentences(call: &Call, facts: &Facts<'_>) -> Vec<String> {
    let is_handle = |ty: &CType| facts.registry.is_handle(&ty.base);
    let (mut handles, mut destroyed, mut released) = (Vec::new(), Vec::new(), Vec::new());
    let mut raw = Vec::new();
    let (mut addresses, mut records) = (Vec::new(), Vec::new());
    let (mut written, mut plain) = (Vec::new(), Vec::new());
    // Listed after single values.
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
            // The call writes a handle behind a pointer, such as `error_node`, but does not use it.
            Kind::In { .. } | Kind::InOut { .. } | Kind::Slice { .. }
                if facts.pointing.contains(&ty.base) && !is_handle(ty) =>
            {
                records.push(name);
            }
            Kind::Buffer { .. } if !ty.is_char() => written.push(name),
            Kind::Value | Kind::In { .. } | Kind::Slice { .. } | Kind::Str { .. } | Kind::Bytes { .. } => {
                plain.push(name)
            }
            _ => {}
        }
    }
    handles.append(&mut many_handles);
    addresses.append(&mut many_addresses);
    // Every call that takes addresses and a stream enqueues work in the stream, except these.
    let queued = !["SetAttribute", "BeginCapture"]
        .iter()
        .any(|word| call.symbol.contains(word))
        && call.parameters.iter().any(|parameter| parameter.ty.base == "CUstream");
    let until = if queued { " until the work is complete" } else { "" };
    let mut out = Vec::new();
    let mut say = |names: &[String], one: &str, several: &str| {
        if let Some(first) = names.first() {
            let promise = if names.len() > 1 || first.starts_with("all of") {
                several
            } else {
                one
            };
            let names = list(names);
            let names = match names.strip_prefix('a') {
                Some(rest) => format!("A{rest}"),
                None => names,
            };
            out.push(format!("{names} must be {promise}"));
        }
    };
    say(
        &handles,
        "a valid handle, or null where the driver accepts null.",
        "valid handles, or null where the driver accepts null.",
    );
    say(
        &destroyed,
        "a live handle, and must not be used again.",
        "live handles, and must not be used again.",
    );
    let released_once =
        "a live handle; the call releases one reference to it, and after the last one it must not be used again.";
    say(&released, released_once, released_once);
    match &call.safety {
        Some(safety) => out.push(safety.clone()),
        None if !raw.is_empty() => out.push(format!("{} must meet the requirements of the manual.", list(&raw))),
        None => {
            let comma = if queued { "," } else { "" };
            let valid = format!("valid for every access of the call{comma}{until}.");
            say(&addresses, &valid, &valid);
            if !records.is_empty() {
                let when = if call.symbol.starts_with("cuGraph") {
                    " whenever the graph runs"
                } else {
                    until
                };
                out.push(format!(
                    "Handles and addresses in {} must be valid{when}, or null where the driver accepts null.",
                    list(&records)
                ));
            }
        }
    }
    if !written.is_empty() {
        out.push(format!(
            "The bytes written to {} must be valid values of its type.",
            list(&written)
        ));
    }
    if !out.is_empty() {
        return out;
    }
    if !plain.is_empty() {
        out.push(format!(
            "{} must meet the requirements of the manual; the driver rejects most other values.",
            list(&plain)
        ));
    }
    if uses_the_current_context(&call.symbol) {
        out.push("The current context must be live: the driver crashes on a destroyed one.".to_owned());
    }
    if out.is_empty() {
        out.push("No preconditions; `unsafe` for uniformity with the other calls.".to_owned());
    }
    out
}

/// Returns true if a call without handles uses the current context itself.
fn uses_the_current_context(symbol: &str) -> bool {
    let base = symbol.trim_end_matches(|c: char| c.is_ascii_digit());
    let base = base.trim_end_matches("_v");
    base == "cuMemGetInfo" || (base.starts_with("cuCtx") && !["cuCtxCreate", "cuCtxGetCurrent"].contains(&base))
}

/// Joins names with commas and `and`.
pub(super) fn list(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::sentences;
    use crate::checked::facts::Facts;
    use crate::checked::model::calls;
    use crate::registry::Registry;

    /// Words that the obligations of a call must contain: for arguments of a checked call that crash driver 580 on an
    /// H200, and for those that the manual calls undefined.
    const OBLIGATIONS: &[(&str, &str)] = &[
        ("cuGraphAddKernelNode", "A context must be current"),
        ("cuGraphAddKernelNode_v2", "A context must be current"),
        ("cuCtxSetFlags", "The current context must be live"),
        ("cuCtxGetLimit", "The current context must be live"),
        ("cuCtxPopCurrent_v2", "The current context must be live"),
        ("cuCtxSetCurrent", "The previous current context must be live"),
        ("cuCtxPushCurrent_v2", "`ctx` must be a valid handle"),
        ("cuCtxDestroy_v2", "`ctx` must be a live handle"),
        ("cuCtxDetach", "releases one reference"),
        ("cuMemRelease", "releases one reference"),
        ("cuStreamQuery", "`stream` must be a valid handle"),
        ("cuStreamDestroy_v2", "`stream` must be a live handle"),
        (
            "cuModuleUnload",
            "`module` must be a live handle, and must not be used again",
        ),
        ("cuModuleGetFunction", "`module` must be a valid handle"),
        ("cuFuncGetAttribute", "`func` must be a valid handle"),
        ("cuKernelGetFunction", "`kernel` must be a valid handle"),
        ("cuLinkDestroy", "must not be used again"),
        ("cuFuncSetAttribute", "`attrib` must not be negative"),
        ("cuKernelSetAttribute", "`attrib` must not be negative"),
        ("cuParamSeti", "`offset` must not be negative"),
        ("cuParamSetf", "`offset` must not be negative"),
        ("cuParamSetv", "`offset` must not be negative"),
        ("cuFuncSetBlockShape", "kernel of a library"),
        ("cuStreamAttachMemAsync", "crashes on 0"),
        ("cuModuleLoad", "truncated"),
        ("cuModuleLoadData", "truncated"),
        ("cuModuleLoadFatBinary", "truncated"),
        ("cuModuleLoadDataEx", "a block of 0 threads"),
        ("cuLinkCreate", "a block of 0 threads"),
        ("cuLinkCreate_v2", "a block of 0 threads"),
        ("cuLibraryLoadData", "a block of 0 threads"),
        ("cuLibraryLoadData", "table of functions must not be null"),
        ("cuLibraryLoadData", "until the library is unloaded"),
        ("cuLibraryLoadFromFile", "a block of 0 threads"),
        ("cuLibraryLoadFromFile", "truncated"),
        ("cuLibraryLoadFromFile", "table of functions must not be null"),
        ("cuLinkAddFile_v2", "truncated"),
        ("cuLinkAddData_v2", "undamaged"),
        ("cuLaunchKernel", "`extra` must contain a size"),
        ("cuLaunchHostFunc", "must not wait for work of the driver"),
        ("cuMemcpy", "valid for the copy"),
        ("cuMemcpyAsync", "valid until the copy is complete"),
        ("cuMemcpyHtoD_v2", "`dst_device` must be valid"),
        ("cuImportExternalMemory", "takes ownership of a file descriptor"),
        ("cuImportExternalSemaphore", "takes ownership of a file descriptor"),
        ("cuDestroyExternalSemaphore", "must be complete"),
        ("cuUserObjectRelease", "caller must own `count` references"),
        ("cuCtxFromGreenCtx", "must not be destroyed"),
        ("cuFuncGetModule", "must not be unloaded"),
        ("cuMemcpyBatchAsync", "depend on another"),
        ("cuMemcpyBatchAsync_v2", "depend on another"),
        ("cuMemcpy3DBatchAsync_v2", "depend on another"),
        ("cuFabricCpyBatchAsync", "depend on another"),
        ("cuMemDiscardBatchAsync", "nothing else may read, write or prefetch"),
        (
            "cuMemDiscardAndPrefetchBatchAsync",
            "nothing else may read, write or prefetch",
        ),
        ("cuIpcOpenMemHandle_v2", "must not free the memory"),
        ("cuIpcOpenEventHandle", "after the exporting process"),
        ("cuMulticastUnbind", "must be those"),
    ];

    #[test]
    fn arguments_that_crash_a_driver_are_excluded() {
        let Some(registry) = Registry::for_tests() else {
            return;
        };
        let calls = calls(&registry).expect("the annotations");
        let facts = Facts::new(&registry);
        for (symbol, word) in OBLIGATIONS {
            let call = calls.iter().find(|call| call.symbol == *symbol);
            let call = call.unwrap_or_else(|| panic!("there is no {symbol}"));
            let text = sentences(call, &facts).join(" ");
            assert!(text.contains(word), "{symbol} lacks {word:?}: {text}");
        }
    }
}
