//! `annotations.toml`: who has one, and whether it can be right.

use std::collections::{BTreeMap, BTreeSet};

use crate::generate::registry::{Entry, StreamMode, split_stream};
use crate::{api, read, root};

/// The keys that an annotation may have.
const KEYS: &[&str] = &[
    "group",
    "does",
    "safety",
    "parameters",
    "results",
    "fallback",
    "replaced_by",
];

/// The version whose `_v2` exports replaced those of the 32-bit era.
const WIDENED: u32 = 3020;

/// The annotations by symbol.
pub(crate) struct Annotations(BTreeMap<String, toml::Value>);

impl Annotations {
    /// Reads the file.
    pub(crate) fn read() -> Result<Self, String> {
        let path = root().join("cuda-driver-sys/api/annotations.toml");
        let table: toml::Table = read(&path)?
            .parse()
            .map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(table.into_iter().collect()))
    }

    /// The symbol whose annotation says what an export takes and does: its own; for `_ptds` and `_ptsz` exports that of
    /// the twin without the suffix; where an annotation only says what replaced the export, as those of the 32-bit era
    /// do, that of the replacement.
    fn holder<'a>(&'a self, symbol: &'a str) -> Option<&'a str> {
        let symbol = [symbol, split_stream(symbol).0]
            .into_iter()
            .find(|symbol| self.0.contains_key(*symbol))?;
        match self.replacement(symbol) {
            Some(other) if !self.describes(symbol) => (self.describes(other)).then_some(other),
            _ => Some(symbol),
        }
    }

    fn replacement(&self, symbol: &str) -> Option<&str> {
        self.0.get(symbol)?.get("replaced_by")?.as_str()
    }

    /// The result codes that a symbol's own annotation names.
    pub(crate) fn results(&self, symbol: &str) -> BTreeSet<String> {
        self.0
            .get(symbol)
            .and_then(|annotation| annotation.get("results")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|code| code.as_str().map(str::to_owned))
            .collect()
    }

    /// Whether a symbol's own annotation says what it does.
    pub(crate) fn describes(&self, symbol: &str) -> bool {
        self.0
            .get(symbol)
            .is_some_and(|annotation| annotation.get("does").is_some())
    }

    /// What the file says of an export.
    pub(crate) fn of(&self, symbol: &str) -> Option<&toml::Value> {
        self.0.get(self.holder(symbol)?)
    }

    /// An export with the parameter names that its annotation uses: a few twins call theirs otherwise.
    fn named_as_annotated(&self, entry: &Entry, entries: &[Entry]) -> Entry {
        let mut entry = entry.clone();
        let symbol = entry.symbol.clone();
        let holder = self.holder(&symbol);
        let holder = entries
            .iter()
            .find(|other| Some(other.symbol.as_str()) == holder);
        if let Some(holder) =
            holder.filter(|holder| holder.parameters.len() == entry.parameters.len())
        {
            for ((name, _), (other, _)) in entry.parameters.iter_mut().zip(&holder.parameters) {
                name.clone_from(other);
            }
        }
        entry
    }

    /// The manual's group of an export; empty where there is no annotation.
    pub(crate) fn group(&self, symbol: &str) -> &str {
        self.text(symbol, "group")
    }

    /// The sentence on what an export does; empty where there is no annotation.
    pub(crate) fn does(&self, symbol: &str) -> &str {
        self.text(symbol, "does")
    }

    fn text(&self, symbol: &str, key: &str) -> &str {
        self.of(symbol)
            .and_then(|annotation| annotation.get(key))
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
    }
}

/// Whether an export of the 32-bit era was replaced by another.
fn is_widened(entry: &Entry, other: &Entry) -> bool {
    entry.legacy
        && other.base == entry.base
        && other.since == WIDENED
        && other.stream != StreamMode::PerThread
}

/// Whether an export is of the 32-bit era.
pub(crate) fn is_32_bit(entry: &Entry, entries: &[Entry]) -> bool {
    entries.iter().any(|other| is_widened(entry, other))
}

/// The word of a direction: `out` of `out[n]?`, `out:name` and `out`.
pub(crate) fn word(kind: &str) -> &str {
    kind.split(['[', ':', '?']).next().unwrap_or(kind)
}

/// The parameter that counts an array, of `out[n]`, `out[*n]` and `out[n-1]`.
pub(crate) fn counter(kind: &str) -> Option<&str> {
    let count = kind
        .split_once('[')?
        .1
        .split([']', '-'])
        .next()?
        .trim_start_matches('*');
    (!count.is_empty() && !count.starts_with(|c: char| c.is_ascii_digit())).then_some(count)
}

/// The directions that an annotation gives, by parameter.
pub(crate) fn kinds(annotation: &toml::Value) -> BTreeMap<&str, &str> {
    let table = annotation.get("parameters").and_then(toml::Value::as_table);
    table
        .into_iter()
        .flatten()
        .filter_map(|(name, kind)| Some((name.as_str(), kind.as_str()?)))
        .collect()
}

/// `cargo xtask api --check`.
pub(crate) fn check() -> Result<(), String> {
    let entries = api::registry()?;
    let annotations = Annotations::read()?;
    let enumerations = read(&root().join("cuda-driver-sys/src/generated/enumerations.rs"))?;
    let wrong = problems(&annotations, &entries, &enumerations);
    if wrong.is_empty() {
        println!(
            "{} functions, {} annotations: every function has one, and no direction contradicts a type",
            entries.len(),
            annotations.0.len()
        );
        return Ok(());
    }
    Err(format!(
        "cuda-driver-sys/api/annotations.toml: {} problems\n  {}",
        wrong.len(),
        wrong.join("\n  ")
    ))
}

fn problems(annotations: &Annotations, entries: &[Entry], enumerations: &str) -> Vec<String> {
    let mut found = Vec::new();
    let symbols: BTreeSet<&str> = entries.iter().map(|entry| entry.symbol.as_str()).collect();
    for (symbol, annotation) in &annotations.0 {
        if !symbols.contains(symbol.as_str()) {
            found.push(format!("[{symbol}] is no exported function"));
        }
        let mut say = |what: String| found.push(format!("[{symbol}] {what}"));
        let Some(table) = annotation.as_table() else {
            say("is no table".to_owned());
            continue;
        };
        for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            say(format!("has the unknown key {key}"));
        }
        let replaced = annotations.replacement(symbol).is_some();
        for key in ["group", "does"] {
            if key == "does" && replaced {
                continue;
            }
            if annotation
                .get(key)
                .and_then(toml::Value::as_str)
                .is_none_or(str::is_empty)
            {
                say(format!("has no {key}"));
            }
        }
        let results = annotation.get("results").and_then(toml::Value::as_array);
        for code in results.into_iter().flatten() {
            let known = code
                .as_str()
                .is_some_and(|code| enumerations.contains(&format!("    CUDA_ERROR_{code} = ")));
            if !known {
                say(format!("names the result {code}, which is none"));
            }
        }
        let replacement = annotation.get("replaced_by").and_then(toml::Value::as_str);
        if let Some(other) = replacement.filter(|other| !symbols.contains(other)) {
            say(format!(
                "is replaced by {other}, which is no exported function"
            ));
        }
    }
    for entry in entries {
        let symbol = &entry.symbol;
        match annotations.of(symbol) {
            None => found.push(format!("{symbol} has no annotation")),
            Some(annotation) => found.extend(
                directions(&annotations.named_as_annotated(entry, entries), annotation)
                    .into_iter()
                    .map(|what| format!("[{symbol}] {what}")),
            ),
        }
    }
    found
}

/// What is wrong with the directions of a function's parameters.
fn directions(entry: &Entry, annotation: &toml::Value) -> Vec<String> {
    let mut found = Vec::new();
    let kinds = kinds(annotation);
    let known: BTreeSet<&str> = entry
        .parameters
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    for name in kinds.keys().filter(|name| !known.contains(**name)) {
        found.push(format!("there is no parameter {name}"));
    }
    let counters: BTreeSet<&str> = kinds.values().filter_map(|kind| counter(kind)).collect();
    for name in counters.iter().filter(|name| !known.contains(**name)) {
        found.push(format!("no parameter {name} counts anything"));
    }
    for (name, ty) in &entry.parameters {
        let is_counter = counters.contains(name.as_str());
        match kinds.get(name.as_str()) {
            None if ty.contains('*') && !is_counter => {
                found.push(format!("{name} is a pointer ({ty}) without a direction"));
            }
            None => {}
            Some(kind) => {
                if let Some(why) = contradiction(kind, ty) {
                    found.push(format!("{name}: {kind:?} contradicts the type {ty}: {why}"));
                }
            }
        }
    }
    found
}

/// Why a direction cannot be that of a C type.
fn contradiction(kind: &str, ty: &str) -> Option<&'static str> {
    let pointers = ty.matches('*').count();
    let writes_to_constant = pointers == 1 && ty.starts_with("const ");
    match word(kind) {
        "destroyed" if pointers > 0 => Some("what is behind a pointer is no handle that ends"),
        "destroyed" => None,
        "raw" | "in" | "out" | "new" | "inout" | "str" | "text" | "string" | "bytes" | "buf"
        | "vec" | "list" | "bool" | "copied"
            if pointers == 0 =>
        {
            Some("it is passed by value")
        }
        "out" | "new" | "inout" | "string" | "buf" | "vec" | "list" | "bool" | "copied"
            if writes_to_constant =>
        {
            Some("nothing can be written there")
        }
        "text" if !(ty.starts_with("const char") && pointers == 2) => {
            Some("it is no pointer to a string")
        }
        "str" if !(ty.starts_with("const char") && pointers == 1) => Some("it is no string"),
        "string" if !(ty.starts_with("char") && pointers == 1) => Some("it is no buffer for text"),
        "raw" | "in" | "out" | "new" | "inout" | "str" | "text" | "string" | "bytes" | "buf"
        | "vec" | "list" | "bool" | "copied" => None,
        _ => Some("there is no such direction"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(symbol: &str, parameters: &[(&str, &str)]) -> Entry {
        let owned = parameters
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned()));
        Entry {
            symbol: symbol.to_owned(),
            base: symbol.to_owned(),
            since: 2000,
            stream: StreamMode::None,
            aliases: Vec::new(),
            legacy: false,
            group: String::new(),
            does: String::new(),
            parameters: owned.collect(),
        }
    }

    fn found(annotations: &str, entries: &[Entry]) -> Vec<String> {
        let table: toml::Table = annotations.parse().expect("TOML");
        let annotations = Annotations(table.into_iter().collect());
        problems(&annotations, entries, "    CUDA_ERROR_INVALID_VALUE = 1,")
    }

    #[test]
    fn committed_annotations_are_complete() {
        check().expect("no problem");
    }

    #[test]
    fn function_without_annotation_and_annotation_without_function() {
        let entries = [entry("cuInit", &[("Flags", "unsigned int")])];
        assert_eq!(
            found("[cuExit]\ngroup = \"A\"\ndoes = \"B.\"", &entries),
            [
                "[cuExit] is no exported function",
                "cuInit has no annotation"
            ]
        );
    }

    #[test]
    fn directions_that_contradict_the_type() {
        let entries = [entry(
            "cuF",
            &[
                ("a", "const int *"),
                ("b", "int"),
                ("c", "int *"),
                ("d", "char *"),
                ("e", "unsigned int"),
            ],
        )];
        let text = "[cuF]\ngroup = \"A\"\ndoes = \"B.\"\nresults = [\"INVALID_VALUE\", \"NONE\"]\n\
                    parameters = { a = \"out\", b = \"new:x\", d = \"string[e]\", x = \"in\" }";
        assert_eq!(
            found(text, &entries),
            [
                "[cuF] names the result \"NONE\", which is none",
                "[cuF] there is no parameter x",
                "[cuF] a: \"out\" contradicts the type const int *: nothing can be written there",
                "[cuF] b: \"new:x\" contradicts the type int: it is passed by value",
                "[cuF] c is a pointer (int *) without a direction",
            ]
        );
    }
}
