//! `annotations.toml`: who has one, and whether it can be right.

mod flags;
mod others;
mod owners;

use std::collections::{BTreeMap, BTreeSet};

use crate::generate::registry::{Entry, StreamMode, split_stream};
use crate::{api, read, root};

/// The keys that an annotation may have.
const KEYS: &[&str] = &[
    "group",
    "does",
    "parameters",
    "flags",
    "safety",
    "results",
    "fallback",
    "older_lacks",
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

/// The word of a direction: `out` of `out[n]?`, `out:name` and `out`; `lent` of `lent@parameter`.
pub(crate) fn word(kind: &str) -> &str {
    kind.split(['[', ':', '@', '?']).next().unwrap_or(kind)
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
    let generated = root().join("cuda-driver-sys/src/generated");
    let names = Names {
        enumerations: read(&generated.join("enumerations.rs"))?,
        constants: read(&generated.join("constants.rs"))?,
        current: api::current()?,
    };
    let wrong = problems(&annotations, &entries, &names);
    if wrong.is_empty() {
        println!(
            "{} functions, {} annotations: every function has one, and nothing in them contradicts a type or another one",
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

/// What annotations may name.
struct Names {
    /// The generated `enumerations.rs`.
    enumerations: String,
    /// The generated `constants.rs`.
    constants: String,
    /// The exports that a C program of today can call.
    current: BTreeSet<String>,
}

fn problems(annotations: &Annotations, entries: &[Entry], names: &Names) -> Vec<String> {
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
            let known = code.as_str().is_some_and(|code| {
                let line = format!("    CUDA_ERROR_{code} = ");
                names.enumerations.contains(&line)
            });
            if !known {
                say(format!("names the result {code}, which is none"));
            }
        }
    }
    others::check(annotations, entries, &names.current, &mut found);
    for entry in entries {
        let symbol = &entry.symbol;
        match annotations.of(symbol) {
            // A twin goes with its own.
            None if split_stream(symbol).0 != symbol => {}
            None => found.push(format!("{symbol} has no annotation")),
            Some(annotation) => {
                let entry = annotations.named_as_annotated(entry, entries);
                let mut wrong = directions(&entry, annotation);
                wrong.extend(owners::problems(&entry, &kinds(annotation)));
                wrong.extend(flags::problems(&entry, annotation, names));
                found.extend(wrong.into_iter().map(|what| format!("[{symbol}] {what}")));
            }
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
        "destroyed" | "released" if pointers > 0 => {
            Some("what is behind a pointer is no handle that ends")
        }
        "raw" | "destroyed" | "released" | "string" | "text" | "bytes" | "buf" | "vec" | "bool"
            if kind.ends_with('?') =>
        {
            Some("it is never absent")
        }
        "destroyed" | "released" => None,
        "bool" if ["int", "unsigned int"].contains(&ty) => None,
        "raw" | "in" | "out" | "new" | "lent" | "inout" | "str" | "text" | "string" | "bytes"
        | "buf" | "vec" | "list" | "bool" | "copied"
            if pointers == 0 =>
        {
            Some("it is passed by value")
        }
        "out" | "new" | "lent" | "inout" | "string" | "buf" | "vec" | "list" | "bool"
        | "copied"
            if writes_to_constant =>
        {
            Some("nothing can be written there")
        }
        "text" if !(ty.starts_with("const char") && pointers == 2) => {
            Some("it is no pointer to a string")
        }
        "str" if !(ty.starts_with("const char") && pointers == 1) => Some("it is no string"),
        "string" if !(ty.starts_with("char") && pointers == 1) => Some("it is no buffer for text"),
        "raw" | "in" | "out" | "new" | "lent" | "inout" | "str" | "text" | "string" | "bytes"
        | "buf" | "vec" | "list" | "bool" | "copied" => None,
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
        let symbols = entries.iter().map(|entry| entry.symbol.clone());
        let names = Names {
            enumerations: "    CUDA_ERROR_INVALID_VALUE = 1,\nflags CUset = CUset_enum {\nenumeration CUkind {\n"
                .to_owned(),
            constants: "pub const CU_X_ONE: u32 = 1;\npub const CU_X_TWO: u32 = 2;\n".to_owned(),
            current: symbols.filter(|symbol| !symbol.ends_with("Old")).collect(),
        };
        problems(&annotations, entries, &names)
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
        assert_eq!(
            of_one(
                &[("a", "int"), ("b", "float")],
                "parameters = { a = \"bool\", b = \"bool\" }"
            ),
            ["b: \"bool\" contradicts the type float: it is passed by value"]
        );
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

    /// The problems of `cuF` with these parameters and this annotation.
    fn of_one(parameters: &[(&str, &str)], keys: &str) -> Vec<String> {
        let text = format!("[cuF]\ngroup = \"A\"\ndoes = \"B.\"\n{keys}");
        let found = found(&text, &[entry("cuF", parameters)]);
        let bare = found.iter().map(|what| what.strip_prefix("[cuF] "));
        bare.map(|what| what.expect("of the function").to_owned())
            .collect()
    }

    #[test]
    fn handles_that_are_given_are_somebodys() {
        let parameters = [("a", "CUgraph *"), ("b", "CUgraph"), ("c", "int *")];
        let ask = |kinds| of_one(&parameters, &format!("parameters = {{ {kinds} }}"));
        assert_eq!(ask("a = \"lent@b\", c = \"out\""), [""; 0]);
        assert_eq!(ask("a = \"new?\", c = \"out?\""), [""; 0]);
        assert_eq!(
            ask("a = \"out\", c = \"out\""),
            ["a: \"out\" does not say whose the CUgraph is: new or lent"]
        );
        assert_eq!(
            ask("a = \"lent\", c = \"lent\""),
            ["c: \"lent\" is said of int, which nobody owns"]
        );
        assert_eq!(
            ask("a = \"lent@x\", c = \"out\""),
            ["a: \"lent@x\" names no parameter that is passed"]
        );
        assert_eq!(
            ask("a = \"lent@c\", c = \"out\""),
            ["a: \"lent@c\" names no parameter that is passed"]
        );
        assert_eq!(
            ask("a = \"out@b\", c = \"out\""),
            [
                "a: \"out@b\" does not say whose the CUgraph is: new or lent",
                "a: only what is lent belongs to a parameter"
            ]
        );
        assert_eq!(
            ask("a = \"lent\", b = \"lent\", c = \"out\""),
            ["b: \"lent\" contradicts the type CUgraph: it is passed by value"]
        );
        assert_eq!(
            ask("a = \"lent\", b = \"released?\", c = \"out\""),
            ["b: \"released?\" contradicts the type CUgraph: it is never absent"]
        );
        assert_eq!(
            ask("a = \"released\", c = \"out\""),
            [
                "a: \"released\" contradicts the type CUgraph *: what is behind a pointer is no handle that ends"
            ]
        );
    }

    #[test]
    fn flags_are_of_a_set_that_there_is() {
        let parameters = [("Flags", "unsigned int"), ("x", "CUgraph")];
        let ask = |flags| of_one(&parameters, flags);
        for right in ["CUset", "CUkind", "CU_X_ONE", "CU_X_*", "0"] {
            let text = format!("flags = {{ Flags = \"{right}\" }}");
            assert_eq!(of_one(&parameters, &text), [""; 0], "{right}");
        }
        assert_eq!(ask(""), ["Flags are flags, and nothing says which"]);
        assert_eq!(
            ask("flags = { Flags = \"CUnothing\" }"),
            ["flags: Flags is of CUnothing, which is no enumeration and no constant"]
        );
        assert_eq!(
            ask("flags = { Flags = \"CU_Y_*\" }"),
            ["flags: Flags is of CU_Y_*, which is no enumeration and no constant"]
        );
        assert_eq!(
            ask("flags = { Flags = \"CUset\", x = \"CUset\", y = \"0\" }"),
            [
                "flags: x is of the type CUgraph, which is no number",
                "flags: there is no parameter y",
            ]
        );
        assert_eq!(
            of_one(
                &[("pFlags", "unsigned int *")],
                "parameters = { pFlags = \"out\" }\nflags = { pFlags = \"0\" }"
            ),
            ["flags: pFlags is given by the driver, so it need not be 0"]
        );
    }

    #[test]
    fn older_and_newer_exports_are_right() {
        let variant = |symbol: &str, since| Entry {
            base: "cuF".to_owned(),
            since,
            ..entry(symbol, &[])
        };
        let entries = [
            variant("cuFOld", 2000),
            variant("cuF", 3000),
            variant("cuG", 3000),
        ];
        let ask = |old: &str, new: &str| {
            let head = "group = \"A\"\ndoes = \"B.\"";
            let text = format!("[cuFOld]\n{head}\n{old}\n[cuF]\n{head}\n{new}\n[cuG]\n{head}\n");
            found(&text, &entries)
        };
        let replaced = "replaced_by = \"cuF\"";
        assert_eq!(ask(replaced, "fallback = \"cuFOld\""), [""; 0]);
        assert_eq!(
            ask("", ""),
            ["[cuFOld] cannot be called by C programs of today, and does not say what replaced it"]
        );
        assert_eq!(
            ask("replaced_by = \"cuNone\"", "older_lacks = \"C.\""),
            [
                "[cuFOld] is replaced by cuNone, which is no exported function",
                "[cuF] says what an older export lacks, and names none",
            ]
        );
        assert_eq!(
            ask("replaced_by = \"cuFOld\"", "fallback = \"cuF\""),
            [
                "[cuFOld] is replaced by cuFOld, which is itself replaced",
                "[cuF] falls back to cuF, which is not older",
            ]
        );
        assert_eq!(
            ask(replaced, "fallback = \"cuNone\""),
            ["[cuF] falls back to cuNone, which is no exported function"]
        );
        let mut entries = entries;
        entries[0].base = "cuH".to_owned();
        let text = "group = \"A\"\ndoes = \"B.\"\n";
        let text = format!(
            "[cuFOld]\n{text}{replaced}\n[cuF]\n{text}fallback = \"cuFOld\"\n[cuG]\n{text}"
        );
        assert_eq!(
            found(&text, &entries),
            ["[cuF] falls back to cuFOld, which is of another base name"]
        );
    }
}
