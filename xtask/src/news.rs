//! What a new header asks for that no generator can know: listed by `cargo xtask bindings`, until it is filled in and the
//! new files are committed.

use std::collections::BTreeSet;
use std::process::Command;

use crate::generate::model::{Enumeration, Model};
use crate::generate::registry::Entry;
use crate::generate::{committed, merge, render};
use crate::{read, root};

/// Files that are written by hand, and hold the answers.
struct ByHand {
    constants: String,
    retired: String,
    manifest: String,
}

/// Prints what is left to fill in.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn tell(model: &Model, registry: &[Entry], header: &str) -> Result<(), String> {
    let source = |name: &str| read(&root().join("cuda-driver-sys").join(name));
    let by_hand = ByHand {
        constants: source("src/constants.rs")?,
        retired: source("src/retired.rs")?,
        manifest: source("Cargo.toml")?,
    };
    let mut left = unanswered(model, registry, header, &by_hand);
    match committed::read(of_last_commit) {
        Ok((before, known)) => {
            left.extend(changes(&before, &known, model, registry, &by_hand));
            if merge::version(&before) != merge::version(model) {
                left.extend(mentions(&before)?);
            }
        }
        Err(error) => left.push(format!(
            "the files of the last commit cannot be compared with ({error}): read the diff"
        )),
    }
    if left.is_empty() {
        println!("nothing is left to fill in");
    } else {
        println!("to fill in, and then `cargo xtask bindings` again:");
        for line in left {
            println!("- {line}");
        }
    }
    Ok(())
}

/// A generated file as the last commit has it.
fn of_last_commit(name: &str) -> Result<String, String> {
    let path = format!("HEAD:cuda-driver-sys/src/generated/{name}");
    let output = Command::new("git")
        .current_dir(root())
        .args(["show", &path])
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{path}: {error}"))
}

/// For instance `12.9`.
fn release(model: &Model) -> String {
    let version = merge::version(model);
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The files written by hand that name the release before, if any do.
fn mentions(before: &Model) -> Result<Option<String>, String> {
    let words = format!(
        "{}|{}",
        release(before).replace('.', "\\."),
        merge::version(before)
    );
    // What is generated, what names every release, and what is history.
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
    // 1 is that nothing was found.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git grep: {}", words.trim()));
    }
    let found = String::from_utf8_lossy(&output.stdout);
    let files: Vec<&str> = found.lines().collect();
    Ok((!files.is_empty()).then(|| {
        format!(
            "these files name CUDA {} (file:lines; `git grep -nwE '{words}'` shows them): change what means the newest \
             release: {}",
            release(before),
            files.join(", ")
        )
    }))
}

/// What can be seen from the header and the files alone.
fn unanswered(model: &Model, registry: &[Entry], header: &str, by_hand: &ByHand) -> Vec<String> {
    let mut left = Vec::new();
    let nameless: Vec<&str> = registry
        .iter()
        .filter(|entry| entry.group.is_empty() || entry.does.is_empty())
        .map(|entry| entry.symbol.as_str())
        .collect();
    if !nameless.is_empty() {
        left.push(format!(
            "api/annotations.toml says nothing of {}",
            nameless.join(", ")
        ));
    }
    let dropped: Vec<String> = macros(header)
        .filter(|(name, _)| {
            !model
                .constants
                .iter()
                .any(|constant| constant.name == *name)
        })
        .filter(|(name, _)| !has_word(&by_hand.constants, name))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if !dropped.is_empty() {
        left.push(format!(
            "src/constants.rs lacks macros that bindgen drops: {}",
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
            "bindgen gives unsigned macros a negative value: add them to MISTYPED in build/generate.rs, and to \
             src/constants.rs: {}",
            mistyped.join(", ")
        ));
    }
    let suffix = format!("+{}", release(model));
    if !by_hand.manifest.contains(&format!("{suffix}\"")) {
        left.push(format!("Cargo.toml: the version shall end in {suffix}"));
    }
    left
}

/// What is new or gone since the last commit.
fn changes(
    before: &Model,
    known: &[Entry],
    model: &Model,
    registry: &[Entry],
    by_hand: &ByHand,
) -> Vec<String> {
    let mut left = Vec::new();
    for enumeration in &model.enumerations {
        let is_new = !before
            .enumerations
            .iter()
            .any(|old| old.name == enumeration.name);
        if is_new && !render::FLAG_SETS.contains(&enumeration.name.as_str()) {
            let guess = if looks_like_flags(enumeration) {
                "it looks like one"
            } else {
                "it does not look like one"
            };
            left.push(format!(
                "{} is new: if it is a set of flags ({guess}), add it to FLAG_SETS in build/render.rs",
                enumeration.name
            ));
        }
    }
    let now = names(model);
    let gone: Vec<String> = names(before)
        .into_iter()
        .filter(|name| !now.contains(name) && !has_word(&by_hand.retired, name))
        .collect();
    if !gone.is_empty() {
        left.push(format!(
            "src/retired.rs lacks names that the header no longer has: {}",
            gone.join(", ")
        ));
    }
    // The header's own entries are those that changed; the registry's signatures are the header's already.
    for difference in merge::differences(before, known, model) {
        left.push(format!(
            "{difference}: if old drivers take it too, add it to a list at the top of build/merge.rs"
        ));
    }
    if known.len() != registry.len() {
        left.push(format!(
            "there are {} functions, not {}: put the new counts into the tests and texts (`git grep -nw {}`; `cargo xtask \
             api-md` prints the others)",
            registry.len(),
            known.len(),
            known.len()
        ));
    }
    left
}

/// Whether all values are single bits, or nothing, or unions of the others.
fn looks_like_flags(enumeration: &Enumeration) -> bool {
    let bits: Vec<u32> = enumeration.values.iter().map(|(_, value)| *value).collect();
    let single = bits.iter().filter(|value| value.is_power_of_two()).count();
    let all = bits
        .iter()
        .filter(|value| value.is_power_of_two())
        .fold(0, |all, value| all | value);
    // 1 and 2 alone are as often a choice of two.
    single > 2 && bits.iter().all(|value| value & !all == 0)
        || enumeration.name.to_lowercase().contains("flag")
}

/// Every name of a program that the bindings have, but functions, which never go.
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

/// The macros of a header that stand for a value of the API.
fn macros(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.lines().filter_map(|line| {
        let words = line.trim_start().strip_prefix('#')?.trim_start();
        let (name, value) = words
            .strip_prefix("define")?
            .trim_start()
            .split_once(char::is_whitespace)?;
        let value = value.split("/*").next()?.trim();
        let is_value = (name.starts_with("CU_") || name.starts_with("CUDA_"))
            && name != "CUDA_CB"
            && !name.contains('(');
        (is_value && !value.is_empty()).then_some((name, value))
    })
}

/// Whether a macro's value ends in a number that C takes as unsigned.
fn is_unsigned(value: &str) -> bool {
    let number = value
        .trim_end_matches(')')
        .trim_end_matches(['l', 'L'])
        .strip_suffix(['u', 'U']);
    number.is_some_and(|number| number.ends_with(|c: char| c.is_ascii_hexdigit()))
}

/// Whether a text has a word.
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
    fn macros_without_a_value_and_with_parameters_are_none() {
        let header = "#define CU_A 1\n # define CU_B ((void*)CU_A) /* text */\n#define CU_C\n#define CU_D(x) x\n\
                      #define __CUDA_H__ 1\n#define CUDA_CB __stdcall\n#define cuInit cuInit_v2\n";
        let found: Vec<_> = macros(header).collect();
        assert_eq!(found, [("CU_A", "1"), ("CU_B", "((void*)CU_A)")]);
    }

    #[test]
    fn unsigned_numbers_are_known_by_their_letter() {
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
