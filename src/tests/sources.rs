//! Rules that hold for the text of the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of the objects: all of `src` but what lies under the objects, and the tests.
fn object_files() -> Vec<(PathBuf, String)> {
    const OTHERS: &[&str] = &[
        "lib.rs",
        "checked.rs",
        "error.rs",
        "error_table.rs",
        "tests.rs",
    ];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(&src)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            if path.is_dir() {
                if !["checked", "tests"].contains(&name.as_str()) {
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

/// Lines of code, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
}

#[test]
fn objects_call_checked_functions_only() {
    for (path, text) in object_files() {
        for line in code(&text) {
            // `sys::cuInit(`, `.cuInit(`, `legacy::cuInit(`; constants are `Function::cuInit` without a bracket.
            for (at, _) in line.match_indices("cu") {
                let after = &line[at + 2..];
                let name: String = after
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let is_call = name.starts_with(|c: char| c.is_uppercase())
                    && after[name.len()..].starts_with('(')
                    && line[..at].ends_with(|c: char| !c.is_alphanumeric() && c != '_');
                assert!(!is_call, "{}: a raw call: {line}", path.display());
            }
            assert!(!line.contains("extern \"C\""), "{}: {line}", path.display());
        }
    }
}

#[test]
fn every_fallible_method_tells_the_callers_line() {
    for (path, text) in object_files() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let line = line.trim_start();
            if !line.starts_with("pub ") || !line.contains(" fn ") {
                continue;
            }
            let signature: String = lines[number..]
                .iter()
                .take_while(|l| !l.trim_end().ends_with('{'))
                .copied()
                .collect();
            let last = lines[number..]
                .iter()
                .find(|l| l.trim_end().ends_with('{'))
                .copied()
                .unwrap_or_default();
            let signature = signature + last;
            if !signature.contains("-> Result<") {
                continue;
            }
            let attributes = lines[..number]
                .iter()
                .rev()
                .take_while(|l| l.trim_start().starts_with("#["));
            assert!(
                attributes.clone().any(|l| l.trim() == "#[track_caller]"),
                "{}:{}: no #[track_caller]: {line}",
                path.display(),
                number + 1
            );
        }
    }
}

#[test]
fn no_closure_stands_between_an_object_and_its_call() {
    // A closure's body is a caller of its own: the error would name a line of this crate.
    for (path, text) in object_files() {
        for line in code(&text) {
            let Some(at) = line.find("checked::") else {
                continue;
            };
            let before = &line[..at];
            let closure = before
                .rfind("| ")
                .is_some_and(|bar| before[..bar].contains('|'));
            assert!(!closure, "{}: {line}", path.display());
        }
    }
}

#[test]
fn files_stay_readable() {
    for (path, text) in object_files() {
        assert!(text.lines().count() < 800, "{}", path.display());
    }
}
