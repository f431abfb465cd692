//! `cargo xtask news`: compares the newest header with the release before, and lists the questions that only a person
//! can answer. A question whose answer is "no" stays in the list.

use std::collections::BTreeSet;
use std::process::Command;

use crate::bindings::model::{Enumeration, Model};
use crate::bindings::{self, Input, merge, render};
use crate::files::{read, root};
use crate::registry::Registry;
use crate::{headers, plain_names};

/// The texts of the files written by hand that hold the answers.
struct ByHand {
    constants: String,
    retired: String,
    manifest: String,
}

/// Prints the questions.
pub(crate) fn run() -> Result<(), String> {
    let registry = Registry::read()?;
    let header = read(&headers::current()?.join("cuda.h"))?;
    let source = |name: &str| read(&root().join("cuda-driver-sys").join(name));
    let by_hand = ByHand {
        constants: source("src/constants.rs")?,
        retired: source("src/retired.rs")?,
        manifest: source("Cargo.toml")?,
    };
    let before = before()?;
    let mut left = unanswered(&registry, &header, &by_hand);
    left.extend(changes(&before, &registry, &by_hand));
    left.extend(mentions(&before.header)?);
    if left.is_empty() {
        println!("there are no questions");
    }
    for line in left {
        println!("- {line}");
    }
    Ok(())
}

/// Returns the registry of the release before the newest one.
fn before() -> Result<Registry, String> {
    let include = headers::previous()?;
    let header = bindings::read_header(&Input {
        include: include.clone(),
        ..headers::generator_input()?
    })?;
    let typedefs = read(&include.join("cudaTypedefs.h"))?;
    let frozen = read(&headers::frozen()?.join("cuda.h"))?;
    Ok(Registry {
        functions: plain_names::registry(&header.functions, &typedefs, &frozen)?,
        header,
        current: BTreeSet::new(),
        annotations: crate::annotations::Annotations::read()?,
    })
}

/// Returns the CUDA release of a header, for instance `12.9`.
fn release(model: &Model) -> String {
    let version = merge::version(model);
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Returns a question that lists the files written by hand that name the release before; `None` if there are none.
fn mentions(before: &Model) -> Result<Option<String>, String> {
    let words = format!("{}|{}", release(before).replace('.', "\\."), merge::version(before));
    // Generated files, lists of all releases, and history.
    let others = [
        "*/generated/*",
        "*.lock",
        "*.ptx",
        "API.md",
        "CHANGELOG.md",
        "cuda-driver-sys/api",
        "cuda-driver-sys/tests/abi_headers/explained.rs",
    ];
    let others = others.map(|path| format!(":!{path}"));
    let output = Command::new("git")
        .current_dir(root())
        .args(["grep", "-cwE", &words, "--", "."])
        .args(&others)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    // 1 means that there is no match.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git grep: {}", words.trim()));
    }
    let found = String::from_utf8_lossy(&output.stdout);
    let files: Vec<&str> = found.lines().collect();
    Ok((!files.is_empty()).then(|| {
        format!(
            "these files name CUDA {} (file:lines; `git grep -nwE '{words}'` shows them): update those that mean the newest \
             release: {}",
            release(before),
            files.join(", ")
        )
    }))
}

/// Returns the questions about the newest header itself.
fn unanswered(registry: &Registry, header: &str, by_hand: &ByHand) -> Vec<String> {
    let model = &registry.header;
    let mut left = Vec::new();
    let nameless: Vec<&str> = registry
        .functions
        .iter()
        .filter(|entry| entry.group.is_empty() || entry.does.is_empty())
        .map(|entry| entry.symbol.as_str())
        .collect();
    if !nameless.is_empty() {
        left.push(format!(
            "add annotations to cuda-driver-sys/api/annotations.toml: {}",
            nameless.join(", ")
        ));
    }
    let dropped: Vec<String> = macros(header)
        .filter(|(name, _)| !model.constants.iter().any(|constant| constant.name == *name))
        .filter(|(name, _)| !has_word(&by_hand.constants, name))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if !dropped.is_empty() {
        left.push(format!(
            "add the macros that bindgen drops to cuda-driver-sys/src/constants.rs: {}",
            dropped.join(", ")
        ));
    }
    let mistyped: Vec<&str> = macros(header)
        .filter(|(name, value)| {
            is_unsigned(value)
                && model
                    .constants
                    .iter()
                    .any(|constant| constant.name == *name && constant.value < 0)
        })
        .map(|(name, _)| name)
        .collect();
    if !mistyped.is_empty() {
        left.push(format!(
            "bindgen gives these unsigned macros a negative value: add them to MISTYPED in \
             cuda-driver-sys/build/generate.rs, and to cuda-driver-sys/src/constants.rs: {}",
            mistyped.join(", ")
        ));
    }
    let suffix = format!("+{}", release(model));
    if !by_hand.manifest.contains(&format!("{suffix}\"")) {
        left.push(format!("cuda-driver-sys/Cargo.toml: end the version in {suffix}"));
    }
    left
}

/// Returns the questions about the differences between two releases.
fn changes(before: &Registry, registry: &Registry, by_hand: &ByHand) -> Vec<String> {
    let model = &registry.header;
    let mut left = Vec::new();
    for enumeration in &model.enumerations {
        let is_new = !before.is_enumeration(&enumeration.name);
        if is_new && !render::FLAG_SETS.contains(&enumeration.name.as_str()) {
            let guess = if looks_like_flags(enumeration) {
                "it looks like one"
            } else {
                "it does not look like one"
            };
            left.push(format!(
                "{} is new: if it is a set of flags ({guess}), add it to FLAG_SETS in \
                 cuda-driver-sys/build/render.rs",
                enumeration.name
            ));
        }
    }
    let now = names(model);
    let gone: Vec<String> = names(&before.header)
        .into_iter()
        .filter(|name| !now.contains(name) && !has_word(&by_hand.retired, name))
        .collect();
    if !gone.is_empty() {
        left.push(format!(
            "add the names that the header no longer has to cuda-driver-sys/src/retired.rs: {}",
            gone.join(", ")
        ));
    }
    for difference in merge::differences(&before.header, &before.functions, model) {
        left.push(format!(
            "{difference}: if old drivers accept it too, add it to a list at the top of \
             cuda-driver-sys/build/merge.rs"
        ));
    }
    let (old, new) = (before.functions.len(), registry.functions.len());
    if old != new {
        left.push(format!(
            "there are {new} functions, not {old}: update the counts in tests and texts (`git grep -nw {old}`; \
             `cargo xtask generate` prints the others)"
        ));
    }
    left
}

/// Returns true if the name contains `flag`, or if more than two values are single bits and the others are zero or
/// combinations of these bits.
fn looks_like_flags(enumeration: &Enumeration) -> bool {
    let bits: Vec<u32> = enumeration.values.iter().map(|(_, value)| *value).collect();
    let single = bits.iter().filter(|value| value.is_power_of_two()).count();
    let all = bits
        .iter()
        .filter(|value| value.is_power_of_two())
        .fold(0, |all, value| all | value);
    // The values 1 and 2 alone may also be a choice between two alternatives.
    single > 2 && bits.iter().all(|value| value & !all == 0) || enumeration.name.to_lowercase().contains("flag")
}

/// Returns every name in the bindings except functions, which are never removed.
fn names(model: &Model) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    names.extend(model.constants.iter().map(|one| one.name.clone()));
    for enumeration in &model.enumerations {
        names.insert(enumeration.name.clone());
        names.extend(enumeration.tag.clone());
        names.extend(enumeration.values.iter().map(|(name, _)| name.clone()));
    }
    names.extend(model.aliases.iter().map(|one| one.name.clone()));
    names.extend(model.records.iter().map(|one| one.name.clone()));
    names
}

/// Returns the macros of a header that are values of the API.
fn macros(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.lines().filter_map(|line| {
        let words = line.trim_start().strip_prefix('#')?.trim_start();
        let (name, value) = words
            .strip_prefix("define")?
            .trim_start()
            .split_once(char::is_whitespace)?;
        let value = value.split("/*").next()?.trim();
        let is_value =
            (name.starts_with("CU_") || name.starts_with("CUDA_")) && name != "CUDA_CB" && !name.contains('(');
        (is_value && !value.is_empty()).then_some((name, value))
    })
}

/// Returns true if a macro's value ends in an unsigned number.
fn is_unsigned(value: &str) -> bool {
    let number = value
        .trim_end_matches(')')
        .trim_end_matches(['l', 'L'])
        .strip_suffix(['u', 'U']);
    number.is_some_and(|number| number.ends_with(|c: char| c.is_ascii_hexdigit()))
}

/// Returns true if a text contains a word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_need_a_value_and_no_parameters() {
        let header = "#define CU_A 1\n # define CU_B ((void*)CU_A) /* text */\n#define CU_C\n#define CU_D(x) x\n\
                      #define __CUDA_H__ 1\n#define CUDA_CB __stdcall\n#define cuInit cuInit_v2\n";
        let found: Vec<_> = macros(header).collect();
        assert_eq!(found, [("CU_A", "1"), ("CU_B", "((void*)CU_A)")]);
    }

    #[test]
    fn unsigned_numbers_have_a_suffix() {
        assert!(is_unsigned("(~0u)"));
        assert!(is_unsigned("0xFFUL"));
        assert!(!is_unsigned("-1"));
        assert!(!is_unsigned("((CUdevice)-1)"));
        assert!(!is_unsigned("CU_MENU"));
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("const CU_A: u32", "CU_A"));
        assert!(!has_word("const CU_AB: u32 = XCU_A", "CU_A"));
    }

    #[test]
    fn flags_are_single_bits_and_their_unions() {
        let enumeration = |name: &str, values: &[u32]| Enumeration {
            name: name.to_owned(),
            tag: None,
            values: values.iter().map(|value| (String::new(), *value)).collect(),
        };
        assert!(looks_like_flags(&enumeration("CUa", &[0, 1, 2, 4, 7])));
        assert!(looks_like_flags(&enumeration("CUa_flags", &[1, 2, 3])));
        assert!(!looks_like_flags(&enumeration("CUa", &[0, 1, 2, 3])));
        assert!(!looks_like_flags(&enumeration("CUa", &[0, 1, 2])));
        assert!(!looks_like_flags(&enumeration("CUa", &[1, 2, 4, 9])));
    }
}
