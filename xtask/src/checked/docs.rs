//! Writes the documentation of a checked call.

use std::fmt::Write as _;

use super::facts::Facts;
use super::model::{Call, Other, Parameter, version};
use super::names;
use super::safety;

use crate::kind::{Kind, Owner};

/// Writes the documentation, and the aliases that let a search find the call.
pub(super) fn write(call: &Call, facts: &Facts<'_>, out: &mut String) {
    let mut paragraphs = vec![call.does.clone()];
    paragraphs.extend(owners(call, facts));
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

/// Returns true if the call returns exactly one value, besides counts that it computes from slices.
fn returns_one(call: &Call) -> bool {
    call.parameters.iter().filter(|p| p.is_output()).count() == 1
}

/// Returns the paragraph about the owners of the returned handles and addresses.
fn owners(call: &Call, facts: &Facts<'_>) -> Option<String> {
    let values: Vec<(&Parameter, &Owner)> = call
        .parameters
        .iter()
        .filter_map(|parameter| match &parameter.kind {
            Kind::Out { owner, .. } => Some((parameter, owner)),
            _ => None,
        })
        .collect();
    let alone = returns_one(call);
    let sentences: Vec<String> = values
        .into_iter()
        .filter_map(|(parameter, owner)| {
            let is_handle = facts.registry.is_handle(&parameter.ty.base);
            let value = if alone {
                let noun = match owner {
                    _ if is_handle => "handle",
                    Owner::Caller => "memory",
                    _ => "address",
                };
                format!("the returned {noun}")
            } else {
                format!("`{}`", parameter.field())
            };
            match owner {
                Owner::Nobody => None,
                Owner::Caller => Some(format!("The caller owns {value}.")),
                Owner::Other => Some(format!("The caller does not own {value}.")),
                Owner::Parameter(name) => {
                    // Only "the returned …" begins with a letter; names begin with a backtick.
                    let value = match value.strip_prefix('t') {
                        Some(rest) => format!("T{rest}"),
                        None => value,
                    };
                    Some(format!("{value} belongs to `{}`.", names::parameter(name)))
                }
            }
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns the paragraph about the C function, its fallback on older drivers, and its replacement.
fn origin(call: &Call) -> String {
    let page = call.group.replace('_', "__");
    let base = call
        .symbol
        .trim_end_matches("_v2")
        .trim_end_matches("_v3")
        .trim_end_matches("_v4");
    let shown = if call.legacy { base } else { call.name.as_str() };
    let mut text = format!(
        "C: [`{shown}`](https://docs.nvidia.com/cuda/cuda-driver-api/group__{page}.html), export `{}`, since CUDA {}.",
        call.symbol,
        version(call.since)
    );
    if let Some(older) = &call.fallback {
        let _ = write!(
            text,
            "\nOn older drivers, the export `{}` (since CUDA {}) is called instead.",
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
            let _ = write!(text, "\nDeprecated: use {newer}.");
        }
        (true, None) => text.push_str("\nDeprecated."),
        (false, Some(newer)) => {
            let _ = write!(text, "\nReplaced by {newer}.");
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

/// Returns the paragraph about the values of flags.
fn flags(call: &Call, facts: &Facts<'_>) -> Option<String> {
    let sentences: Vec<String> = call
        .flags
        .iter()
        .map(|(c_name, of)| {
            let parameter = call.parameters.iter().find(|p| p.name == *c_name);
            let output = parameter.is_some_and(Parameter::is_output);
            let name = match parameter {
                Some(_) if output && returns_one(call) => "The returned value".to_owned(),
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

/// Returns the paragraph about the outputs that are optional in C.
fn asked_for(call: &Call) -> Option<String> {
    let names: Vec<String> = call
        .parameters
        .iter()
        .filter(|parameter| parameter.nullable && parameter.is_output())
        .map(|parameter| format!("`{}`", parameter.field()))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} {} optional in C, and always requested here.",
            safety::list(&names),
            if names.len() == 1 { "is" } else { "are" }
        )
    })
}

/// Returns the paragraph about the result codes in the manual.
fn errors(call: &Call) -> String {
    let codes: Vec<String> = call.results.iter().map(|code| format!("`CUDA_ERROR_{code}`")).collect();
    if codes.is_empty() {
        "The manual lists no result codes.".to_owned()
    } else {
        format!(
            "{}. May also return errors from earlier asynchronous work.",
            safety::list(&codes)
        )
    }
}
