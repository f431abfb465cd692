//! Checks that the annotations are complete and consistent with the header.

mod flags;
mod others;
mod owners;

use std::collections::BTreeSet;

use crate::annotations::{counter, kinds};
use crate::bindings::registry::{Entry, split_stream};
use crate::c_type::CType;
use crate::kind::Kind;
use crate::registry::Registry;

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
    "no_method",
];

/// Returns an error that lists all problems of a registry's annotations.
pub(crate) fn check(registry: &Registry) -> Result<(), String> {
    let found = problems(registry);
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "cuda-driver-sys/api/annotations.toml: {} problems\n  {}",
        found.len(),
        found.join("\n  ")
    ))
}

fn problems(registry: &Registry) -> Vec<String> {
    let (annotations, entries) = (&registry.annotations, &registry.functions);
    let mut found = Vec::new();
    for (symbol, annotation) in annotations.all() {
        if registry.find(symbol).is_none() {
            found.push(format!("[{symbol}] is not an exported function"));
        }
        let mut say = |what: String| found.push(format!("[{symbol}] {what}"));
        let Some(table) = annotation.as_table() else {
            say("is not a table".to_owned());
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
            if !code.as_str().is_some_and(|code| registry.is_result(code)) {
                say(format!("lists {code}, which is not a result code"));
            }
        }
    }
    others::check(registry, &mut found);
    for entry in entries {
        let symbol = &entry.symbol;
        match annotations.of(symbol) {
            // A twin has the annotation of the function without the suffix.
            None if split_stream(symbol).0 != symbol => {}
            None => found.push(format!("{symbol} has no annotation")),
            Some(annotation) => {
                let entry = annotations.named_as_annotated(entry, entries);
                let mut wrong = directions(&entry, annotation);
                wrong.extend(owners::problems(&entry, &kinds(annotation), registry));
                wrong.extend(flags::problems(&entry, annotation, registry));
                found.extend(wrong.into_iter().map(|what| format!("[{symbol}] {what}")));
            }
        }
    }
    found
}

/// Returns the problems with the directions of a function's parameters.
fn directions(entry: &Entry, annotation: &toml::Value) -> Vec<String> {
    let mut found = Vec::new();
    let kinds = kinds(annotation);
    let known: BTreeSet<&str> = entry.parameters.iter().map(|(name, _)| name.as_str()).collect();
    for name in kinds.keys().filter(|name| !known.contains(**name)) {
        found.push(format!("there is no parameter {name}"));
    }
    let counters: BTreeSet<&str> = kinds.values().filter_map(|kind| counter(kind)).collect();
    for name in counters.iter().filter(|name| !known.contains(**name)) {
        found.push(format!("an array is counted by {name}, which is not a parameter"));
    }
    for (name, ty) in &entry.parameters {
        let is_counter = counters.contains(name.as_str());
        match kinds.get(name.as_str()) {
            None if ty.starts_with('*') && !is_counter => {
                found.push(format!("{name} is a pointer ({ty}) without a direction"));
            }
            None => {}
            Some(kind) => {
                let fits = Kind::parse(kind).and_then(|parsed| parsed.fits(&CType::parse(ty)));
                if let Err(why) = fits {
                    found.push(format!("{name}: {kind:?} contradicts the type {ty}: {why}"));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{check, problems};
    use crate::annotations::Annotations;
    use crate::bindings::model::{Alias, Constant, Enumeration, Model};
    use crate::bindings::registry::{Entry, StreamMode};
    use crate::registry::Registry;

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
        let enumeration = |name: &str, value: &str| Enumeration {
            name: name.to_owned(),
            tag: None,
            values: vec![(value.to_owned(), 1)],
        };
        let constant = |name: &str| Constant {
            name: name.to_owned(),
            ty: "u32".to_owned(),
            value: 1,
        };
        let header = Model {
            enumerations: vec![
                enumeration("CUresult", "CUDA_ERROR_INVALID_VALUE"),
                enumeration("CUevent_flags", "CU_EVENT_DEFAULT"),
            ],
            constants: vec![constant("CU_X_ONE"), constant("CU_X_TWO")],
            aliases: vec![Alias {
                name: "CUgraph".to_owned(),
                target: syn::parse_quote!(*mut CUgraph_st),
            }],
            ..Model::default()
        };
        let symbols = entries.iter().map(|entry| entry.symbol.clone());
        problems(&Registry {
            header,
            functions: entries.to_vec(),
            current: symbols.filter(|symbol| !symbol.ends_with("Old")).collect(),
            annotations: Annotations::parse(annotations).expect("TOML"),
        })
    }

    #[test]
    fn committed_annotations_are_complete() {
        if let Some(registry) = Registry::for_tests() {
            check(&registry).expect("no problem");
        }
    }

    #[test]
    fn function_without_annotation_and_annotation_without_function() {
        let entries = [entry("cuInit", &[("Flags", "c_uint")])];
        assert_eq!(
            found("[cuExit]\ngroup = \"A\"\ndoes = \"B.\"", &entries),
            ["[cuExit] is not an exported function", "cuInit has no annotation"]
        );
    }

    #[test]
    fn directions_that_contradict_the_type() {
        let entries = [entry(
            "cuF",
            &[
                ("a", "*const c_int"),
                ("b", "c_int"),
                ("c", "*mut c_int"),
                ("d", "*mut c_char"),
                ("e", "c_uint"),
            ],
        )];
        assert_eq!(
            of_one(
                &[("a", "c_int"), ("b", "f32")],
                "parameters = { a = \"bool\", b = \"bool\" }"
            ),
            ["b: \"bool\" contradicts the type f32: it is passed by value"]
        );
        let text = "[cuF]\ngroup = \"A\"\ndoes = \"B.\"\nresults = [\"INVALID_VALUE\", \"NONE\"]\n\
                    parameters = { a = \"out\", b = \"new:x\", d = \"string[e]\", x = \"in\" }";
        assert_eq!(
            found(text, &entries),
            [
                "[cuF] lists \"NONE\", which is not a result code",
                "[cuF] there is no parameter x",
                "[cuF] a: \"out\" contradicts the type *const c_int: the target is constant",
                "[cuF] b: \"new:x\" contradicts the type c_int: it is passed by value",
                "[cuF] c is a pointer (*mut c_int) without a direction",
            ]
        );
    }

    /// Returns the problems of `cuF` with these parameters and this annotation.
    fn of_one(parameters: &[(&str, &str)], keys: &str) -> Vec<String> {
        let text = format!("[cuF]\ngroup = \"A\"\ndoes = \"B.\"\n{keys}");
        let found = found(&text, &[entry("cuF", parameters)]);
        let bare = found.iter().map(|what| what.strip_prefix("[cuF] "));
        bare.map(|what| what.expect("of the function").to_owned()).collect()
    }

    #[test]
    fn returned_handles_have_an_owner() {
        let parameters = [("a", "*mut CUgraph"), ("b", "CUgraph"), ("c", "*mut c_int")];
        let ask = |kinds| of_one(&parameters, &format!("parameters = {{ {kinds} }}"));
        assert_eq!(ask("a = \"lent@b\", c = \"out\""), [""; 0]);
        assert_eq!(ask("a = \"new?\", c = \"out?\""), [""; 0]);
        assert_eq!(
            ask("a = \"out\", c = \"out\""),
            ["a: \"out\" names no owner of the CUgraph: use new or lent"]
        );
        assert_eq!(
            ask("a = \"lent\", c = \"lent\""),
            ["c: \"lent\" is for handles and addresses, and c_int is neither"]
        );
        assert_eq!(
            ask("a = \"lent@x\", c = \"out\""),
            ["a: \"lent@x\" does not name a parameter that the caller passes"]
        );
        assert_eq!(
            ask("a = \"lent@c\", c = \"out\""),
            ["a: \"lent@c\" does not name a parameter that the caller passes"]
        );
        assert_eq!(
            ask("a = \"out@b\", c = \"out\""),
            [
                "a: \"out@b\" contradicts the type *mut CUgraph: only lent values belong to a parameter",
                "a: \"out@b\" names no owner of the CUgraph: use new or lent"
            ]
        );
        assert_eq!(
            ask("a = \"lent\", b = \"lent\", c = \"out\""),
            ["b: \"lent\" contradicts the type CUgraph: it is passed by value"]
        );
        assert_eq!(
            ask("a = \"lent\", b = \"released?\", c = \"out\""),
            ["b: \"released?\" contradicts the type CUgraph: it cannot be optional"]
        );
        assert_eq!(
            ask("a = \"released\", c = \"out\""),
            ["a: \"released\" contradicts the type *mut CUgraph: only a handle passed by value can be destroyed"]
        );
    }

    #[test]
    fn flags_name_known_sets() {
        let parameters = [("Flags", "c_uint"), ("x", "CUgraph")];
        let ask = |flags| of_one(&parameters, flags);
        for right in ["CUevent_flags", "CUresult", "CU_X_ONE", "CU_X_*", "0"] {
            let text = format!("flags = {{ Flags = \"{right}\" }}");
            assert_eq!(of_one(&parameters, &text), [""; 0], "{right}");
        }
        assert_eq!(ask(""), ["Flags has no entry in `flags`"]);
        assert_eq!(
            ask("flags = { Flags = \"CUnothing\" }"),
            ["flags: Flags takes CUnothing, which is neither an enumeration nor a constant"]
        );
        assert_eq!(
            ask("flags = { Flags = \"CU_Y_*\" }"),
            ["flags: Flags takes CU_Y_*, which is neither an enumeration nor a constant"]
        );
        assert_eq!(
            ask("flags = { Flags = \"CUresult\", x = \"CUresult\", y = \"0\" }"),
            [
                "flags: x has the type CUgraph, which is not an integer",
                "flags: there is no parameter y",
            ]
        );
        assert_eq!(
            of_one(
                &[("pFlags", "*mut c_uint")],
                "parameters = { pFlags = \"out\" }\nflags = { pFlags = \"0\" }"
            ),
            ["flags: pFlags is an output, so it cannot be required to be 0"]
        );
    }

    #[test]
    fn fallbacks_and_replacements_exist() {
        let variant = |symbol: &str, since| Entry {
            base: "cuF".to_owned(),
            since,
            ..entry(symbol, &[])
        };
        let entries = [variant("cuFOld", 2000), variant("cuF", 3000), variant("cuG", 3000)];
        let ask = |old: &str, new: &str| {
            let head = "group = \"A\"\ndoes = \"B.\"";
            let text = format!("[cuFOld]\n{head}\n{old}\n[cuF]\n{head}\n{new}\n[cuG]\n{head}\n");
            found(&text, &entries)
        };
        let replaced = "replaced_by = \"cuF\"";
        assert_eq!(ask(replaced, "fallback = \"cuFOld\""), [""; 0]);
        assert_eq!(
            ask("", ""),
            ["[cuFOld] cannot be called from C with this header, and has no replaced_by"]
        );
        assert_eq!(
            ask("replaced_by = \"cuNone\"", "older_lacks = \"C.\""),
            [
                "[cuFOld] is replaced by cuNone, which is not an exported function",
                "[cuF] has older_lacks but no fallback",
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
            ["[cuF] falls back to cuNone, which is not an exported function"]
        );
        let mut entries = entries;
        entries[0].base = "cuH".to_owned();
        let text = "group = \"A\"\ndoes = \"B.\"\n";
        let text = format!("[cuFOld]\n{text}{replaced}\n[cuF]\n{text}fallback = \"cuFOld\"\n[cuG]\n{text}");
        assert_eq!(
            found(&text, &entries),
            ["[cuF] falls back to cuFOld, which has another base name"]
        );
    }
}
