//! The model of the checked calls: their parameters and returned values, read from the annotations and checked.

use std::collections::BTreeMap;

use crate::bindings::registry::{Entry, StreamMode};
use crate::c_type::CType;
use crate::kind::Kind;
use crate::registry::{Registry, plain_names_of};

/// The oldest supported driver: CUDA 11.7.
const OLDEST: u32 = 11070;

/// One checked call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The exported symbol, such as `cuMemAlloc_v2`.
    pub(crate) symbol: String,
    /// The name in `cuda-driver-sys`, such as `cuMemAlloc`.
    pub(super) name: String,
    /// Every name that C programs call the function by.
    pub(super) plain: Vec<String>,
    /// True if `cuda-driver-sys` has the function in `legacy` only.
    pub(super) legacy: bool,
    pub(super) since: u32,
    pub(super) group: String,
    pub(super) does: String,
    pub(super) safety: Option<String>,
    /// The older export that `src/checked/fallback.rs` calls where this export is missing.
    pub(super) fallback: Option<Older>,
    /// The call that replaces this one.
    pub(super) replaced_by: Option<Other>,
    /// The result codes in the manual.
    pub(super) results: Vec<String>,
    /// Parameters that hold flags, and the values that they take.
    pub(super) flags: Vec<(String, String)>,
    pub(super) parameters: Vec<Parameter>,
}

/// The export that is called where a newer one is missing.
#[derive(Debug)]
pub(super) struct Older {
    pub(super) symbol: String,
    pub(super) since: u32,
    /// A sentence that names what the older export cannot do.
    pub(super) lacks: Option<String>,
}

/// Another checked call: its name in `cuda-driver-sys`; `legacy` is true if that name is only in `legacy`.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) name: String,
    pub(super) legacy: bool,
}

/// One parameter of the C function.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) ty: CType,
    pub(super) kind: Kind,
    /// True if C accepts null for the parameter.
    pub(super) nullable: bool,
}

/// Returns one checked call for each function that the annotations describe, sorted by symbol.
pub(crate) fn calls(registry: &Registry) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    let mut names = BTreeMap::new();
    for entry in &registry.functions {
        // A per-thread twin has no annotation of its own; an export with 32-bit device addresses (before CUDA 3.2)
        // has one without `does`.
        if entry.stream == StreamMode::PerThread || !registry.annotations.describes(&entry.symbol) {
            continue;
        }
        let call = read(entry, registry).map_err(|e| format!("annotations.toml: [{}] {e}", entry.symbol))?;
        let name = (super::names::call(&call.name), call.legacy);
        if let Some(other) = names.insert(name, entry.symbol.clone()) {
            return Err(format!("{other} and {} would have the same name in Rust", entry.symbol));
        }
        calls.push(call);
    }
    Ok(calls)
}

fn read(entry: &Entry, registry: &Registry) -> Result<Call, String> {
    let annotation = registry.annotations.own(&entry.symbol);
    let annotation = annotation.ok_or("there is no annotation")?;
    let Other { name, legacy } = rust_name(entry);
    let empty = toml::Table::new();
    let kinds = match annotation.get("parameters") {
        None => &empty,
        Some(table) => table.as_table().ok_or("`parameters` is not a table")?,
    };
    let mut parameters = Vec::new();
    for (name, ty) in &entry.parameters {
        let (kind, nullable) = match kinds.get(name) {
            None => (Kind::Value, false),
            Some(kind) => {
                let kind = kind
                    .as_str()
                    .ok_or_else(|| format!("the direction of {name} is not a string"))?;
                let parsed = Kind::parse(kind).map_err(|why| format!("{name}: {kind:?}: {why}"))?;
                (parsed, kind.ends_with('?'))
            }
        };
        parameters.push(Parameter {
            name: name.clone(),
            ty: CType::parse(ty),
            kind,
            nullable,
        });
    }
    let text = |key: &str| {
        let found = annotation.get(key).and_then(toml::Value::as_str);
        found.map(str::to_owned)
    };
    let named = |key: &str| {
        text(key).map(|symbol| {
            let found = registry.find(&symbol);
            found.ok_or_else(|| format!("{symbol} is not an exported function"))
        })
    };
    let results = annotation.get("results").and_then(toml::Value::as_array);
    let results = results.into_iter().flatten().filter_map(|code| code.as_str());
    let call = Call {
        symbol: entry.symbol.clone(),
        name,
        plain: plain_names_of(entry).into_iter().map(str::to_owned).collect(),
        legacy,
        since: entry.since,
        group: entry.group.clone(),
        does: entry.does.clone(),
        safety: text("safety"),
        fallback: named("fallback").transpose()?.map(|older| Older {
            symbol: older.symbol.clone(),
            since: older.since,
            lacks: text("older_lacks"),
        }),
        replaced_by: named("replaced_by").transpose()?.map(rust_name),
        results: results.map(str::to_owned).collect(),
        flags: flags(annotation),
        parameters,
    };
    call.check()?;
    Ok(call)
}

/// Returns the name of an export in `cuda-driver-sys`.
fn rust_name(entry: &Entry) -> Other {
    let plain = plain_names_of(entry);
    Other {
        name: plain
            .first()
            .map_or_else(|| entry.symbol.clone(), |name| (*name).to_owned()),
        legacy: entry.legacy,
    }
}

/// Returns the parameters that hold flags, with the annotation's text for each.
fn flags(annotation: &toml::Value) -> Vec<(String, String)> {
    let table = annotation.get("flags").and_then(toml::Value::as_table);
    table
        .into_iter()
        .flatten()
        .filter_map(|(name, flags)| Some((name.clone(), flags.as_str()?.to_owned())))
        .collect()
}

impl Call {
    /// Returns the path of the function in `checked`.
    pub(crate) fn path(&self) -> String {
        let module = if self.legacy { "legacy::" } else { "" };
        format!("{module}{}", super::names::call(&self.name))
    }

    /// Returns true if the checked call finds this count itself, from slices or from the driver, so that the caller
    /// does not pass it. The caller passes the count of a `vec`.
    pub(super) fn is_counted(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| match &parameter.kind {
            Kind::String { count } | Kind::List { count } | Kind::Copied { count } => count == name,
            Kind::Slice { count, .. }
            | Kind::SliceMut { count, .. }
            | Kind::Bytes { count }
            | Kind::Buffer { count } => count.is(name),
            _ => false,
        })
    }

    /// Checks that a name which stands for a versioned export has a fallback if the oldest driver lacks that export, that
    /// a fallback can be called, and that `safety` names only parameters.
    fn check(&self) -> Result<(), String> {
        let is_plain = self.name != self.symbol;
        if is_plain && self.since > OLDEST && self.fallback.is_none() {
            return Err(format!(
                "in C, `{}` means an export that the oldest supported driver lacks: add a `fallback`",
                self.name
            ));
        }
        let is_list = |parameter: &Parameter| matches!(parameter.kind, Kind::List { .. });
        if self.fallback.is_some() && self.parameters.iter().any(is_list) {
            return Err("a call with a `list` cannot have a `fallback`".to_owned());
        }
        self.check_safety()?;
        Ok(())
    }
}

impl Call {
    /// Checks that `safety` names only parameters.
    fn check_safety(&self) -> Result<(), String> {
        let names: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| super::names::parameter(&parameter.name))
            .collect();
        for word in self.safety.iter().flat_map(|text| text.split('`')).skip(1).step_by(2) {
            if !names.iter().any(|name| name == word) {
                return Err(format!("`safety` names `{word}`, which is not a parameter"));
            }
        }
        Ok(())
    }
}

impl Parameter {
    /// Returns true if a call returns the value of the parameter.
    pub(super) fn is_output(&self) -> bool {
        match self.kind {
            // A truth value that is passed by value is an argument.
            Kind::Truth => self.ty.pointers > 0,
            Kind::Out { .. }
            | Kind::OutArray(_)
            | Kind::Text
            | Kind::String { .. }
            | Kind::Vector { .. }
            | Kind::List { .. }
            | Kind::Copied { .. } => true,
            _ => false,
        }
    }

    /// Returns the name of the parameter among the values that a call returns.
    pub(super) fn field(&self) -> String {
        match &self.kind {
            Kind::Out { name: Some(name), .. } => name.clone(),
            _ => super::names::parameter(&self.name),
        }
    }
}

/// Returns a CUDA version as text, `12.5` for 12050.
pub(crate) fn version(since: u32) -> String {
    format!("{}.{}", since / 1000, since % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::calls;
    use crate::annotations::Annotations;
    use crate::bindings::model::Model;
    use crate::bindings::registry::{Entry, StreamMode};
    use crate::registry::Registry;

    #[test]
    fn calls_with_a_list_have_no_fallback() {
        let ask = |kind: &str| {
            let entry = |symbol: &str, since, legacy| Entry {
                symbol: symbol.to_owned(),
                base: "cuF".to_owned(),
                since,
                stream: StreamMode::None,
                aliases: if legacy { Vec::new() } else { vec!["cuF".to_owned()] },
                legacy,
                group: "A".to_owned(),
                does: "B.".to_owned(),
                parameters: [("a", "*mut c_int"), ("n", "*mut usize")]
                    .map(|(name, ty)| (name.to_owned(), ty.to_owned()))
                    .to_vec(),
            };
            let text = format!("[cuF_v2]\ndoes = \"B.\"\nfallback = \"cuF\"\nparameters = {{ a = \"{kind}\" }}");
            let calls = calls(&Registry {
                header: Model::default(),
                functions: vec![entry("cuF", 2000, true), entry("cuF_v2", 12000, false)],
                current: ["cuF_v2".to_owned()].into(),
                annotations: Annotations::parse(&text).expect("TOML"),
            });
            calls.map(drop)
        };
        assert_eq!(ask("out"), Ok(()));
        assert_eq!(
            ask("list[n]"),
            Err("annotations.toml: [cuF_v2] a call with a `list` cannot have a `fallback`".to_owned())
        );
    }
}
