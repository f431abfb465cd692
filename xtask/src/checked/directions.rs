//! `cargo xtask directions`: whether the annotations agree with NVIDIA's Python bindings on what each call gives back.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Call, Kind};
use crate::headers::{self, Package};

/// The bindings: `driver.pyx` says for each function what it returns.
const BINDINGS: Package = Package {
    name: "cuda-bindings",
    version: "13.0.3",
    holds: "cuda/bindings/driver.pyx",
    sha256: None,
};

/// The CUDA version of those bindings.
const VERSION: u32 = 13000;

/// Bases of which C, and so Python, does not call the newest export.
const NOT_NEWEST: &[(&str, &str)] = &[
    ("cuCtxGetDevice", "cuCtxGetDevice"),
    ("cuCtxSynchronize", "cuCtxSynchronize"),
    ("cuStreamGetCtx", "cuStreamGetCtx"),
    ("cuGraphInstantiate", "cuGraphInstantiateWithFlags"),
];

/// Where the two disagree, and why both are right.
const EXPLAINED: &[(&str, &str)] = &[
    ("cuCheckpointProcessCheckpoint", ARGUMENTS),
    ("cuCheckpointProcessRestore", ARGUMENTS),
    ("cuDevSmResourceSplitByCount", RENAMED),
    ("cuDeviceGetGraphMemAttribute", UNTYPED),
    ("cuDeviceTotalMem_v2", RENAMED),
    ("cuGraphAddMemAllocNode", ARGUMENTS),
    ("cuGraphAddNode_v2", ARGUMENTS),
    ("cuGraphExecNodeSetParams", ARGUMENTS),
    ("cuGraphInstantiateWithParams", ARGUMENTS),
    ("cuGraphNodeGetType", RENAMED),
    ("cuGraphNodeSetParams", ARGUMENTS),
    ("cuLibraryGetGlobal", RENAMED),
    ("cuLibraryGetManaged", RENAMED),
    ("cuLibraryLoadData", OPTIONS),
    ("cuLibraryLoadFromFile", OPTIONS),
    ("cuLinkAddData_v2", OPTIONS),
    ("cuLinkAddFile_v2", OPTIONS),
    ("cuLinkCreate_v2", OPTIONS),
    ("cuLogsDumpToMemory", CALLERS_BUFFER),
    ("cuMemExportToShareableHandle", UNTYPED),
    ("cuMemGetHandleForAddressRange", UNTYPED),
    ("cuMemPoolExportToShareableHandle", UNTYPED),
    ("cuMemPoolGetAttribute", UNTYPED),
    ("cuMemRangeGetAttributes", UNTYPED),
    ("cuMemcpyAtoHAsync_v2", CALLERS_BUFFER),
    ("cuMemcpyAtoH_v2", CALLERS_BUFFER),
    ("cuMemcpyDtoHAsync_v2", CALLERS_BUFFER),
    ("cuMemcpyDtoH_v2", CALLERS_BUFFER),
    ("cuModuleGetGlobal_v2", RENAMED),
    ("cuModuleLoadDataEx", OPTIONS),
    ("cuPointerGetAttribute", UNTYPED),
    ("cuPointerGetAttributes", UNTYPED),
    ("cuStreamGetAttribute", RENAMED),
    (
        "cuTensorMapReplaceAddress",
        "Python changes the object that it is given",
    ),
    (
        "cuTexRefGetBorderColor",
        "Python's documentation names the texture reference by mistake",
    ),
];
const RENAMED: &str = "Python gives the parameter another name";
const UNTYPED: &str =
    "the type depends on another argument: the caller's memory here, an object in Python";
const ARGUMENTS: &str =
    "the driver writes into the arguments' struct, which Python changes in place";
const OPTIONS: &str = "the driver writes results into the option values";
const CALLERS_BUFFER: &str = "the bytes go to the caller's slice here, to an address in Python";

/// Compares, and fails with every disagreement that is not explained.
pub(crate) fn run() -> Result<(), String> {
    let python = returned(&crate::read(&headers::fetch(&BINDINGS)?)?);
    let calls = super::calls()?;
    let mut compared = 0;
    let mut explained: BTreeMap<_, _> = EXPLAINED.iter().copied().collect();
    let mut disagreements = Vec::new();
    for (base, theirs) in &python {
        let Some(call) = called_by(&calls, base) else {
            continue;
        };
        compared += 1;
        let ours = given(call);
        if ours == *theirs {
            continue;
        }
        if explained.remove(call.symbol.as_str()).is_none() {
            disagreements.push(format!(
                "{}: {ours:?} here, {theirs:?} in Python",
                call.symbol
            ));
        }
    }
    disagreements.extend(
        explained
            .keys()
            .map(|symbol| format!("{symbol}: nothing to explain any more")),
    );
    if compared < 440 {
        disagreements.push(format!("only {compared} functions were found in both"));
    }
    if disagreements.is_empty() {
        println!(
            "{compared} functions give back what Python's do; {} of them for a reason that is written down",
            EXPLAINED.len()
        );
        return Ok(());
    }
    Err(disagreements.join("\n"))
}

/// What each function of the Python bindings returns besides the code.
fn returned(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut out = BTreeMap::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line
            .strip_prefix("def cu")
            .and_then(|rest| rest.split('(').next())
        else {
            continue;
        };
        let mut names = BTreeSet::new();
        let mut inside = false;
        // The docstring's first line may be nothing but its quotes.
        let _ = lines.next();
        for line in lines.by_ref() {
            let text = line.trim_end();
            if text == "    \"\"\"" {
                break;
            }
            match text {
                "    Returns" => inside = true,
                "    See Also" | "    Notes" => inside = false,
                _ => {}
            }
            // "    name : type", with the descriptions further in.
            if let Some((name, _)) = text
                .strip_prefix("    ")
                .filter(|rest| inside && !rest.starts_with(' '))
                .and_then(|rest| rest.split_once(" : "))
            {
                names.insert(name.to_owned());
            }
        }
        names.remove("CUresult");
        out.insert(format!("cu{name}"), names);
    }
    out
}

/// The export that Python calls under a base name.
fn called_by<'a>(calls: &'a [Call], base: &str) -> Option<&'a Call> {
    if let Some((_, symbol)) = NOT_NEWEST.iter().find(|(name, _)| *name == base) {
        return calls.iter().find(|call| call.symbol == *symbol);
    }
    calls
        .iter()
        .filter(|call| call.base == base && call.since <= VERSION)
        .max_by_key(|call| call.since)
}

/// The parameters that a call writes through.
fn given(call: &Call) -> BTreeSet<String> {
    call.parameters
        .iter()
        .filter(|parameter| match parameter.kind {
            Kind::Out { .. }
            | Kind::OutArray(_)
            | Kind::InOut { .. }
            | Kind::Text
            | Kind::String { .. }
            | Kind::SliceMut { .. }
            | Kind::Buffer { .. }
            | Kind::Vector { .. }
            | Kind::List { .. } => true,
            Kind::Value => parameter.ty.pointers > 0,
            _ => false,
        })
        .map(|parameter| parameter.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn returns_are_read() {
        let source = "def cuA(x):\n    \"\"\" Text.\n\n    Parameters\n    ----------\n    x : int\n        An x.\n\n    Returns\n    -------\n    \
                      CUresult\n        codes\n    one : int\n        The first : one.\n    two : int\n        Second.\n\n    See Also\n    --------\n    other : thing\n    \"\"\"\n";
        let found = super::returned(source);
        let names: Vec<_> = found["cuA"].iter().map(String::as_str).collect();
        assert_eq!(names, ["one", "two"]);
    }
}
