//! The documentation of a checked call.

use std::fmt::Write as _;

use super::model::{Call, Kind, Other, Owner, Parameter, version};
use super::names;
use super::safety::{self, Pointing};
use crate::registry::Registry;

/// The facts about types and constants that the documentation needs.
pub(super) struct Facts<'a> {
    pub(super) registry: &'a Registry,
    pub(super) pointing: Pointing,
}

impl<'a> Facts<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self {
            registry,
            pointing: Pointing::new(&registry.header),
        }
    }
}

/// Writes the documentation, and the aliases by which a search finds the call.
pub(super) fn write(call: &Call, facts: &Facts<'_>, out: &mut String) {
    let mut paragraphs = vec![call.does.clone()];
    paragraphs.extend(owners(call));
    paragraphs.push(origin(call));
    paragraphs.extend(flags(call, facts));
    paragraphs.extend(asked_for(call));
    paragraphs.push(format!("# Errors\n{}", errors(call)));
    let promises = safety::sentences(call, facts);
    paragraphs.push(format!("# Safety\n{}", promises.join("\n")));
    for line in paragraphs.join("\n\n").lines() {
        let _ = writeln!(out, "///{}{line}", if line.is_empty() { "" } else { " " });
    }
    let mut names = call.plain.clone();
    if !names.contains(&call.symbol) {
        names.push(call.symbol.clone());
    }
    for name in names {
        let _ = writeln!(out, "#[doc(alias = \"{name}\")]");
    }
}

/// Whether what it gives needs no name.
fn gives_one(call: &Call) -> bool {
    call.parameters.iter().filter(|p| p.is_output()).count() == 1
}

/// Whose what it gives is.
fn owners(call: &Call) -> Option<String> {
    let values: Vec<(&Parameter, &Owner)> = call
        .parameters
        .iter()
        .filter_map(|parameter| match &parameter.kind {
            Kind::Out { owner, .. } => Some((parameter, owner)),
            _ => None,
        })
        .collect();
    let alone = gives_one(call);
    let sentences: Vec<String> = values
        .into_iter()
        .filter_map(|(parameter, owner)| {
            let what = if alone {
                "What it gives".to_owned()
            } else {
                format!("`{}`", parameter.field())
            };
            match owner {
                Owner::Nobody => None,
                Owner::Caller => Some(format!("{what} is the caller's to destroy.")),
                Owner::Other => Some(format!("{what} is not the caller's to destroy.")),
                Owner::Parameter(name) => Some(format!(
                    "{what} belongs to `{}`, and goes with it.",
                    names::parameter(name)
                )),
            }
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Where it comes from, what is called where it is lacking, and what does the same better.
fn origin(call: &Call) -> String {
    let page = call.group.replace('_', "__");
    let base = call
        .symbol
        .trim_end_matches("_v2")
        .trim_end_matches("_v3")
        .trim_end_matches("_v4");
    let shown = if call.legacy {
        base
    } else {
        call.name.as_str()
    };
    let mut text = format!(
        "[`{shown}`](https://docs.nvidia.com/cuda/cuda-driver-api/group__{page}.html) in C; the export `{}`, since CUDA {}.",
        call.symbol,
        version(call.since)
    );
    if let Some(older) = &call.fallback {
        let _ = write!(
            text,
            "\nOn drivers before that the older export `{}` is called, which they have since CUDA {}.",
            older.symbol,
            version(older.since)
        );
        if let Some(lacks) = &older.lacks {
            let _ = write!(text, " {lacks}");
        }
    }
    let newer = call.replaced_by.as_ref().map(link);
    match (call.group.ends_with("_DEPRECATED"), newer) {
        (true, Some(newer)) => {
            let _ = write!(
                text,
                "\nDeprecated by CUDA; {newer} is the way to do it today."
            );
        }
        (true, None) => text.push_str("\nDeprecated by CUDA."),
        (false, Some(newer)) => {
            let _ = write!(text, "\nCUDA replaced it by {newer}.");
        }
        (false, None) => {}
    }
    text
}

fn link(other: &Other) -> String {
    let name = names::call(&other.name);
    let module = if other.legacy { "legacy::" } else { "" };
    format!("[`{name}`](crate::checked::{module}{name})")
}

/// What flags are made of.
fn flags(call: &Call, facts: &Facts<'_>) -> Option<String> {
    let sentences: Vec<String> = call
        .flags
        .iter()
        .map(|(c_name, of)| {
            let parameter = call.parameters.iter().find(|p| p.name == *c_name);
            let output = parameter.is_some_and(Parameter::is_output);
            let name = match parameter {
                Some(_) if output && gives_one(call) => "What it gives".to_owned(),
                Some(parameter) if output => format!("`{}`", parameter.field()),
                _ => format!("`{}`", names::parameter(c_name)),
            };
            let verb = if output { "holds" } else { "takes" };
            if of == "0" {
                return format!("{name} must be 0.");
            }
            if facts.registry.is_flag_set(of) {
                return format!("{name} {verb} bits of [`{of}`](crate::sys::{of}).");
            }
            let constants: Vec<String> = facts
                .registry
                .constants(of)
                .map(|constant| format!("[`{constant}`](crate::sys::{constant})"))
                .collect();
            if constants.is_empty() {
                return format!("{name} {verb} a value of [`{of}`](crate::sys::{of}).");
            }
            format!("{name} {verb} bits of {}.", safety::list(&constants))
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join("\n"))
}

/// Of what C may leave out, what this call does.
fn asked_for(call: &Call) -> Option<String> {
    let names: Vec<String> = call
        .parameters
        .iter()
        .filter(|parameter| parameter.nullable && parameter.is_output())
        .map(|parameter| format!("`{}`", parameter.field()))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "C may pass null for {}; this call always asks.",
            safety::list(&names)
        )
    })
}

/// The codes that the manual names.
fn errors(call: &Call) -> String {
    let codes: Vec<String> = call
        .results
        .iter()
        .map(|code| format!("`CUDA_ERROR_{code}`"))
        .collect();
    if codes.is_empty() {
        "The manual names no codes.".to_owned()
    } else {
        format!(
            "The manual names {}; errors of earlier work may come out, too.",
            safety::list(&codes)
        )
    }
}
