//! `cargo xtask directions`: the directions of `annotations.toml` against NVIDIA's Python bindings.
//!
//! Those take what a function reads as arguments and return what it writes, for 513 functions, and say so in what Python's
//! `help` shows: the signature, and the list of what is returned. Where the two disagree, `cuda-driver-sys/api/python-differences.toml` says why,
//! or this fails.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::annotations::{Annotations, counter, kinds, word};
use crate::generate::registry::Entry;
use crate::headers::{self, Package};
use crate::{api, read, root};

/// The bindings, compiled for this machine's Python: they load without a driver. A new CUDA release has its own.
const BINDINGS: Package = Package {
    name: "cuda-bindings",
    version: "13.5.0",
    holds: std::borrow::Cow::Borrowed("cuda/bindings/driver.pxd"),
    sha256: Some("261177cff8aab660dfda04f1b50ebc55fdedcffe58a3fe220726c0d5e573e9d0"),
};

/// What they import.
const IMPORTED: Package = Package {
    name: "cuda-pathfinder",
    version: "1.9.0",
    holds: std::borrow::Cow::Borrowed("cuda/pathfinder/__init__.py"),
    sha256: Some("4ea26c3f6f3bb3c7d2dc725beabfd9cb375e11142ff9a477290eb9b226fd9543"),
};

/// Prints signature and description of every function, as their definitions in Python would stand in a file.
const HELP: &str = r#"
import cuda.bindings.driver as driver
for name in dir(driver):
    text = getattr(driver, name).__doc__ or ""
    if name.startswith("cu") and text.startswith(name + "("):
        signature, _, description = text.partition("\n")
        print("def", signature)
        for line in description.splitlines():
            print("    " + line if line else "")
"#;

/// What parameters are called here, after the header, and what in the Python bindings, where that differs by more
/// than the underscore behind a keyword.
const RENAMED: &[(&str, &str)] = &[
    ("bytes", "numbytes"),
    ("dstStream", "dst"),
    ("flags", "useFlags"),
    ("format", "pformat"),
    ("hGraph", "hGraphExec"),
    ("param", "value"),
    ("remainder", "remaining"),
    ("srcStream", "src"),
    ("type", "typename"),
    ("value", "value_out"),
];

/// Where the differences are explained.
const EXPLAINED: &str = "cuda-driver-sys/api/python-differences.toml";

/// Functions of headers that these bindings are not made from: `cudaProfiler.h`, `cudaEGL.h`, `cudaGL.h`,
/// `cudaVDPAU.h`.
fn is_of_another_header(name: &str) -> bool {
    name.starts_with("cuProfiler")
        || ["EGL", "Egl", "GL", "VDPAU"]
            .iter()
            .any(|part| name.contains(part))
}

/// Compares all of them.
pub(crate) fn run() -> Result<(), String> {
    let source = help()?;
    let entries = api::registry()?;
    let current = api::current()?;
    let annotations = Annotations::read()?;
    let functions = functions(&source);
    let (mut compared, mut parameters) = (0, 0);
    let mut found = BTreeSet::new();
    let ours = functions
        .iter()
        .filter(|function| !is_of_another_header(&function.name));
    for function in ours {
        let entry = export(function, &entries, &current)
            .ok_or_else(|| format!("{} means no export that C programs can call", function.name))?;
        let annotation = annotations
            .of(&entry.symbol)
            .ok_or_else(|| format!("{} has no annotation", entry.symbol))?;
        compared += 1;
        parameters += entry.parameters.len();
        found.extend(differences(function, entry, annotation));
    }
    let explained = explained(&read(&root().join(EXPLAINED))?)?;
    let mut wrong = Vec::new();
    for difference in &found {
        if !explained.contains(difference) {
            wrong.push(format!("not explained: {difference}"));
        }
    }
    for difference in explained.difference(&found) {
        wrong.push(format!(
            "explained, but there is no such difference: {difference}"
        ));
    }
    if wrong.is_empty() {
        println!(
            "{compared} functions with {parameters} parameters compared with {} {} ({} more are of other headers); {} \
             differences, all explained in {EXPLAINED}",
            BINDINGS.name,
            BINDINGS.version,
            functions.len() - compared,
            found.len()
        );
        return Ok(());
    }
    Err(format!("{EXPLAINED}:\n  {}", wrong.join("\n  ")))
}

/// What Python says of all functions.
fn help() -> Result<String, String> {
    let folders = [headers::folder(&BINDINGS), headers::folder(&IMPORTED)];
    headers::fetch(&BINDINGS)?;
    headers::fetch(&IMPORTED)?;
    let path = std::env::join_paths(&folders).map_err(|e| format!("PYTHONPATH: {e}"))?;
    let output = Command::new("python3")
        .args(["-c", HELP])
        .env("PYTHONPATH", path)
        .output()
        .map_err(|e| format!("python3: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "python3 cannot import what was fetched for it (after a change of python3, remove {}): {}",
            folders[0].display(),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("what python3 printed: {e}"))
}

/// One parameter on which the two do not agree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    function: String,
    parameter: String,
    ours: String,
    theirs: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            function,
            parameter,
            ours,
            theirs,
        } = self;
        write!(
            f,
            "{{ function = \"{function}\", parameter = \"{parameter}\", ours = \"{ours}\", theirs = \"{theirs}\" }}"
        )
    }
}

/// The differences that the file explains; each list has a reason.
fn explained(text: &str) -> Result<BTreeSet<Difference>, String> {
    let table: toml::Table = text.parse().map_err(|e| format!("{EXPLAINED}: {e}"))?;
    let mut found = BTreeSet::new();
    let lists = table.get("because").and_then(toml::Value::as_array);
    for list in lists.ok_or_else(|| format!("{EXPLAINED} has no [[because]]"))? {
        let reason = list.get("reason").and_then(toml::Value::as_str);
        if reason.is_none_or(str::is_empty) {
            return Err(format!("{EXPLAINED}: a list without a reason"));
        }
        let differences = list.get("differences").and_then(toml::Value::as_array);
        for difference in differences.into_iter().flatten() {
            let part = |key: &str| {
                let text = difference.get(key).and_then(toml::Value::as_str);
                text.map(str::to_owned)
                    .ok_or_else(|| format!("{EXPLAINED}: {difference} has no {key}"))
            };
            let difference = Difference {
                function: part("function")?,
                parameter: part("parameter")?,
                ours: part("ours")?,
                theirs: part("theirs")?,
            };
            if let Some(twice) = found.replace(difference) {
                return Err(format!("{EXPLAINED}: {twice} is there twice"));
            }
        }
    }
    Ok(found)
}

/// A function of the Python bindings.
struct Function {
    name: String,
    takes: BTreeSet<String>,
    returns: BTreeSet<String>,
}

impl Function {
    /// What becomes of a parameter there.
    fn direction(&self, name: &str) -> &'static str {
        let name = name.trim_end_matches('_');
        let named = |name: &str| {
            let takes = self.takes.contains(name) || self.takes.contains(&format!("{name}_"));
            match (takes, self.returns.contains(name)) {
                (true, false) => Some("in"),
                (false, true) => Some("out"),
                (true, true) => Some("inout"),
                (false, false) => None,
            }
        };
        let other = RENAMED.iter().find(|(ours, _)| *ours == name);
        named(name).or_else(|| named(other?.1)).unwrap_or("none")
    }
}

/// Every function that the source defines.
fn functions(source: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, parameters)) = line
            .strip_prefix("def ")
            .filter(|rest| rest.starts_with("cu"))
            .and_then(|rest| rest.split_once('('))
        else {
            continue;
        };
        let parameters = parameters
            .rsplit_once(')')
            .map_or(parameters, |(list, _)| list);
        let mut returns = BTreeSet::new();
        let mut listing = false;
        while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with(' ')) {
            if line == "    Returns" {
                listing = true;
            } else if line.trim() == "See Also" || line.trim() == "Notes" || line.trim() == "\"\"\""
            {
                listing = false;
            } else if listing
                && !line.starts_with("     ")
                && let Some((name, _)) = line.trim_start().split_once(" : ")
            {
                returns.insert(name.to_owned());
            }
        }
        found.push(Function {
            name: name.to_owned(),
            takes: parameters.split(',').filter_map(parameter).collect(),
            returns,
        });
    }
    found
}

/// The name in `size_t numNodes=0`, `char *name`, `CUipcMemHandle handle: CUipcMemHandle`, `devices: Optional[...]`.
fn parameter(text: &str) -> Option<String> {
    let text = text.split('=').next()?.split(':').next()?.trim();
    let text = text.strip_suffix(" not None").unwrap_or(text);
    // What stands in brackets was split at its commas.
    let name = text.rsplit(' ').next()?.trim_start_matches('*');
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// The export that a Python function calls: what C calls by that name.
fn export<'a>(
    function: &Function,
    entries: &'a [Entry],
    current: &BTreeSet<String>,
) -> Option<&'a Entry> {
    let callable = || {
        entries
            .iter()
            .filter(|entry| current.contains(&entry.symbol))
    };
    callable()
        .find(|entry| entry.symbol == function.name)
        .or_else(|| callable().find(|entry| entry.aliases.contains(&function.name)))
        .or_else(|| callable().find(|entry| entry.base == function.name))
}

/// Where the two disagree. A parameter that only counts others is left out: both take it from, or give it with, what it
/// counts.
fn differences(function: &Function, entry: &Entry, annotation: &toml::Value) -> Vec<Difference> {
    let kinds: BTreeMap<&str, &str> = kinds(annotation);
    let counters: BTreeSet<&str> = kinds.values().filter_map(|kind| counter(kind)).collect();
    let mut found = Vec::new();
    for (name, ty) in &entry.parameters {
        if counters.contains(name.as_str()) {
            continue;
        }
        let ours = match word(kinds.get(name.as_str()).copied().unwrap_or("value")) {
            "bool" if !ty.contains('*') => "in",
            "value" | "destroyed" | "released" | "in" | "str" | "bytes" => "in",
            "out" | "new" | "lent" | "text" | "string" | "vec" | "list" | "bool" | "copied" => {
                "out"
            }
            other => other,
        };
        let theirs = function.direction(name);
        // Memory of the caller's, given by its address there.
        let same = ours == theirs || (theirs == "in" && ["raw", "buf"].contains(&ours));
        if !same {
            found.push(Difference {
                function: entry.symbol.clone(),
                parameter: name.clone(),
                ours: ours.to_owned(),
                theirs: theirs.to_owned(),
            });
        }
    }
    found
}
