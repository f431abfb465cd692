//! Tests of rules for the source code of this crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path and the text of each file to which the rules for objects apply: all of `src` except the tests, the
/// chapters of the guide, the checked calls, `lib.rs` and `error.rs`.
fn object_files() -> Vec<(PathBuf, String)> {
    const OTHERS: &[&str] = &["lib.rs", "checked.rs", "error.rs", "tests.rs"];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&src).unwrap().to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                if !["checked", "guide", "tests"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if !OTHERS.contains(&name.as_str()) {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    assert!(files.len() > 15, "{files:?}");
    files
}

/// Returns the lines of a file, each up to its first `//`.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or_default())
}

#[test]
fn objects_call_checked_functions_only() {
    for (path, text) in object_files() {
        for line in code(&text) {
            // Calls are `sys::cuInit(`, `.cuInit(` or `legacy::cuInit(`. Constants such as `Function::cuInit` have no
            // bracket.
            for (at, _) in line.match_indices("cu") {
                let after = &line[at + 2..];
                let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_call = name.starts_with(|c: char| c.is_uppercase())
                    && after[name.len()..].starts_with('(')
                    && line[..at].ends_with(|c: char| !c.is_alphanumeric() && c != '_');
                assert!(!is_call, "{}: a raw call: {line}", path.display());
            }
            assert!(!line.contains("extern \"C\""), "{}: {line}", path.display());
        }
    }
}

/// Returns the heads of a file's functions: the index of the first line, and the text up to the first line that ends
/// with a brace or a semicolon.
fn heads(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut heads = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        let words = line.split("fn ").next().unwrap_or_default();
        let is_head = line.contains("fn ")
            && words
                .split_whitespace()
                .all(|word| ["pub", "pub(crate)", "pub(super)", "const", "unsafe"].contains(&word));
        if is_head {
            let end = lines[number..]
                .iter()
                .position(|line| line.trim_end().ends_with(['{', '}', ';']))
                .unwrap_or_default();
            heads.push((number, lines[number..=number + end].join(" ")));
        }
    }
    heads
}

/// Returns the attributes and the documentation above a line, last line first.
fn above<'a>(lines: &[&'a str], number: usize) -> Vec<&'a str> {
    lines[..number]
        .iter()
        .rev()
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .collect()
}

#[test]
fn every_fallible_function_tells_the_callers_line() {
    let mut seen = 0;
    for (path, text) in object_files() {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for (number, head) in heads(text) {
            let Some((parameters, gives)) = head.split_once("-> Result<") else {
                continue;
            };
            // Errors of type `String` have no location, and results that are passed on already have one.
            if gives.contains(", String>") || parameters.contains(": Result<") {
                continue;
            }
            seen += 1;
            assert!(
                above(&lines, number).contains(&"#[track_caller]"),
                "{}:{}: no #[track_caller]: {head}",
                path.display(),
                number + 1
            );
        }
    }
    assert!(seen > 100, "only {seen} functions were found");
}

/// Returns the numbers of the lines that call checked functions inside a closure, counted from 1.
fn calls_in_closures(text: &str) -> Vec<usize> {
    let text: String = code(text).map(|line| format!("{line}\n")).collect();
    let (mut depth, mut closures, mut calls) = (0usize, Vec::new(), Vec::new());
    let mut parameters = false;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                closures.retain(|&closure| closure <= depth);
            }
            ',' | ';' if !parameters => closures.retain(|&closure| closure < depth),
            // The bar after a closure's parameters; the next arm finds the bar before them.
            '|' if parameters => {
                parameters = false;
                closures.push(depth);
            }
            '|' if "(,={;>".contains(before) || text[..at].trim_end().ends_with("move") => {
                parameters = true;
            }
            'c' if text[at..].starts_with("checked::") && !closures.is_empty() => {
                let name = &text[at + "checked::".len()..];
                if name.starts_with(|c: char| c.is_lowercase()) {
                    calls.push(text[..at].lines().count());
                }
            }
            _ => {}
        }
        if !letter.is_whitespace() {
            before = letter;
        }
    }
    calls
}

#[test]
fn no_object_calls_the_driver_in_a_closure() {
    // `track_caller` of a function does not apply inside its closures: the error would name a line of this crate.
    for (path, text) in object_files() {
        assert_eq!(calls_in_closures(&text), [0; 0], "{}", path.display());
    }
    let text = "\
fn f(a: bool, b: bool) -> bool {
    one.map(|x| unsafe { checked::a(x) });
    two.map(|x, y| {
        g(x, y);
        unsafe { checked::b() }
    });
    three(move || checked::c(), checked::not_there());
    let four = || unsafe {
        checked::d()
    };
    let _ = a || unsafe { checked::not_here() };
    x.map(|x: checked::A| x);
    checked::nor_here()
}
";
    assert_eq!(calls_in_closures(text), [2, 5, 7, 9]);
}

#[test]
fn objects_are_found_by_the_names_of_c() {
    // Functions that methods call in addition to the one in their documentation.
    const HELPERS: &[&str] = &["stream_get_ctx", "stream_is_capturing"];
    let (mut called, mut named) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in object_files() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, head) in heads(&text) {
            if !head.trim_start().starts_with("pub ") {
                continue;
            }
            let above = above(&lines, number);
            // The description ends at the first heading.
            let documentation: Vec<&str> = above
                .iter()
                .rev()
                .copied()
                .filter(|line| line.starts_with("///"))
                .take_while(|line| !line.starts_with("/// # "))
                .collect();
            let documentation = documentation.join(" ").replace("crate::checked::", "checked::");
            for link in documentation.split("[`cu").skip(1) {
                let Some((name, rest)) = link.split_once("`](checked::") else {
                    continue;
                };
                let alias = format!("#[doc(alias = \"cu{name}\")]");
                assert!(
                    above.contains(&alias.as_str()),
                    "{}:{}: no {alias}",
                    path.display(),
                    number + 1
                );
                let call = rest.split(')').next().unwrap_or_default();
                named.insert(call.to_owned());
            }
        }
        for line in code(&text) {
            for call in line.split("checked::").skip(1) {
                let name = call.split('(').next().unwrap_or_default();
                if call.contains('(') && name.starts_with(|c: char| c.is_lowercase()) {
                    called.insert(name.to_owned());
                }
            }
        }
    }
    assert!(called.len() > 60, "{called:?}");
    let unnamed: Vec<_> = called
        .difference(&named)
        .filter(|name| !HELPERS.contains(&name.as_str()))
        .collect();
    assert!(unnamed.is_empty(), "no method's documentation links {unnamed:?}");
}

#[test]
fn every_checked_call_is_documented() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checked/generated");
    let mut calls = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some(name) = line.trim_start().strip_prefix("pub unsafe fn ") else {
                continue;
            };
            calls += 1;
            let above = above(&lines, number);
            let any_line = |is_match: &dyn Fn(&str) -> bool| above.iter().any(|line| is_match(line));
            // `above` starts with the last line.
            let first = above.last().unwrap_or(&"");
            assert!(
                first.starts_with("/// ") && first.ends_with('.'),
                "{name}: the first line is not a sentence: {first}"
            );
            assert!(
                any_line(&|line| line.starts_with("/// C: [`cu")
                    && line.contains("](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__")
                    && line.contains("since CUDA ")),
                "{name}: no link to the manual, or no version"
            );
            let safety = above.iter().position(|line| *line == "/// # Safety");
            assert!(
                safety.is_some_and(|at| at > 0 && above[at - 1].starts_with("/// ")),
                "{name}: no safety conditions"
            );
            // The line "C: [`cuName`](link), export `cuExport`, since CUDA 1.2."
            let link = above.iter().find(|line| line.starts_with("/// C: [`cu"));
            let names: Vec<&str> = link.unwrap().split('`').skip(1).step_by(2).collect();
            assert_eq!(names.len(), 2, "{name}: {link:?}");
            for alias in names {
                let alias = format!("#[doc(alias = \"{alias}\")]");
                assert!(above.contains(&alias.as_str()), "{name}: no {alias}");
            }
            for attribute in ["#[inline]", "#[track_caller]"] {
                assert!(above.contains(&attribute), "{name}: no {attribute}");
            }
        }
    }
    assert_eq!(calls, 538);
}

#[test]
fn files_stay_readable() {
    for (path, text) in object_files() {
        assert!(text.lines().count() < 800, "{}", path.display());
    }
}

/// Returns the text of each `impl Drop` block of a file, without line breaks.
fn drops(text: &str) -> Vec<String> {
    let mut drops: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if line.starts_with("impl") && line.contains(" Drop for ") {
            is_inside = true;
            drops.push(String::new());
        }
        if is_inside {
            drops.last_mut().unwrap().push_str(line);
            is_inside = line != "}";
        }
    }
    drops
}

/// `dropping` prevents driver calls in forked processes, and keeps lines of this crate out of error messages.
#[test]
fn every_driver_call_in_a_drop_is_guarded() {
    let mut seen = 0;
    for (path, text) in object_files() {
        for drop in drops(&text) {
            let calls = ["checked::", ".end(", ".pop("].iter().any(|call| drop.contains(call));
            // `Capturing` ends a capture in the function that began it; no value of the type leaves that function.
            let is_local = drop.contains("for Capturing");
            seen += usize::from(calls);
            assert!(
                !calls || is_local || drop.contains("dropping()"),
                "{}: {drop}",
                path.display()
            );
        }
    }
    assert!(seen > 30, "only {seen} drops that make calls were found");
}
