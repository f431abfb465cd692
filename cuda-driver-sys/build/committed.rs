//! Reads the committed bindings, so that `build.rs` can merge a user's header into them.

use super::model::{Alias, Constant, Enumeration, Layout, Model, Record};
use super::registry::{Entry, StreamMode};

/// Reads the generated files of a folder.
///
/// # Errors
/// A file that is missing or not in the form that `render` writes.
#[cfg(any(feature = "bindgen", test))]
pub(crate) fn read_folder(folder: &std::path::Path) -> Result<(Model, Vec<Entry>), String> {
    read(|name| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    })
}

/// Reads generated files; `text` returns the contents of a file by name.
///
/// # Errors
/// A file that is missing or not in the form that `render` writes.
pub(crate) fn read(text: impl Fn(&str) -> Result<String, String>) -> Result<(Model, Vec<Entry>), String> {
    let mut model = Model {
        constants: lines(&text("constants.rs")?, "constants.rs", constant)?,
        enumerations: enumerations(&text("enumerations.rs")?)?,
        ..Model::default()
    };
    records(&text("records.rs")?, &mut model)?;
    for (name, layout) in lines(&text("layout.rs")?, "layout.rs", layout)? {
        model.layouts.insert(name, layout);
    }
    let registry = functions(&text("functions.rs")?)?;
    Ok((model, registry))
}

/// Returns the items of all lines, except comments and lines for which `parse` returns `None`.
fn lines<T>(text: &str, file: &str, parse: impl Fn(&str) -> Result<Option<T>, String>) -> Result<Vec<T>, String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("//") {
            continue;
        }
        found.extend(parse(line.trim()).map_err(|error| format!("{file}:{}: {error}", number + 1))?);
    }
    Ok(found)
}

fn constant(line: &str) -> Result<Option<Constant>, String> {
    let Some(rest) = line.strip_prefix("pub const ") else {
        return Ok(None);
    };
    let parts = rest.trim_end_matches(';').split_once(": ").and_then(|(name, rest)| {
        let (ty, value) = rest.split_once(" = ")?;
        Some(Constant {
            name: name.to_owned(),
            ty: ty.to_owned(),
            value: value.parse().ok()?,
        })
    });
    parts.map(Some).ok_or_else(|| format!("not a constant: {line}"))
}

fn enumerations(text: &str) -> Result<Vec<Enumeration>, String> {
    let mut found: Vec<Enumeration> = Vec::new();
    for line in text.lines() {
        let head = line
            .strip_prefix("enumeration ")
            .or_else(|| line.strip_prefix("flags "));
        if let Some(head) = head {
            let head = head.trim_end_matches(" {");
            let (name, tag) = head
                .split_once(" = ")
                .map_or((head, None), |(n, t)| (n, Some(t.to_owned())));
            found.push(Enumeration {
                name: name.to_owned(),
                tag,
                values: Vec::new(),
            });
        } else if let Some((name, value)) = line.strip_prefix("    ").and_then(|l| l.split_once(" = ")) {
            let value = value.trim_end_matches(',');
            let value = value
                .strip_prefix("0x")
                .map_or_else(|| value.parse(), |hex| u32::from_str_radix(hex, 16));
            let value = value.map_err(|e| format!("enumerations.rs: {line}: {e}"))?;
            let last = found
                .last_mut()
                .ok_or("enumerations.rs: a value before any enumeration")?;
            last.values.push((name.to_owned(), value));
        }
    }
    Ok(found)
}

fn records(text: &str, model: &mut Model) -> Result<(), String> {
    let file = syn::parse_file(text).map_err(|e| format!("records.rs: {e}"))?;
    for item in file.items {
        match item {
            syn::Item::Struct(ref record) => {
                let name = record.ident.to_string();
                model.records.push(Record { name, item });
            }
            syn::Item::Union(ref record) => {
                let name = record.ident.to_string();
                model.records.push(Record { name, item });
            }
            syn::Item::Type(alias) => {
                model.aliases.push(Alias {
                    name: alias.ident.to_string(),
                    target: *alias.ty,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

fn layout(line: &str) -> Result<Option<(String, Layout)>, String> {
    let Some((head, fields)) = line
        .trim_end_matches('}')
        .split_once('{')
        .filter(|_| !line.starts_with("layout!"))
    else {
        return Ok(None);
    };
    let parts = || {
        let (name, numbers) = head.split_once(':')?;
        let (size, align) = numbers.split_once(',')?;
        let mut layout = Layout {
            size: size.trim().parse().ok()?,
            align: align.trim().parse().ok()?,
            offsets: Vec::new(),
        };
        for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let (field, offset) = field.split_once(": ")?;
            layout.offsets.push((field.to_owned(), offset.parse().ok()?));
        }
        Some((name.to_owned(), layout))
    };
    parts().map(Some).ok_or_else(|| format!("not a layout: {line}"))
}

/// The start of a function: its name, its parameters, and the rest of the line.
type Head<'a> = (String, Vec<(String, String)>, &'a str);

fn head(line: &str) -> Option<Head<'_>> {
    let (name, rest) = line.split_once('(')?;
    let (parameters, rest) = rest.split_once(')')?;
    let mut list = Vec::new();
    for parameter in parameters.split(", ").filter(|parameter| !parameter.is_empty()) {
        let (name, ty) = parameter.split_once(": ")?;
        list.push((name.to_owned(), ty.to_owned()));
    }
    Some((name.to_owned(), list, rest.trim_end_matches(';').trim()))
}

fn functions(text: &str) -> Result<Vec<Entry>, String> {
    let mut registry: Vec<Entry> = Vec::new();
    let mut aliases: Vec<(String, String)> = Vec::new();
    let mut part = "";
    for line in text.lines().map(str::trim) {
        match line {
            "own {" | "legacy {" | "plain {" => part = line,
            "}" => part = "",
            _ if !line.ends_with(';') || part.is_empty() => {}
            _ if part == "plain {" => {
                let alias = line
                    .split_once(" = ")
                    .and_then(|(alias, rest)| Some((alias, rest.split_once('(')?.0)));
                let (alias, symbol) = alias.ok_or_else(|| format!("functions.rs: not a plain name: {line}"))?;
                aliases.push((symbol.to_owned(), alias.to_owned()));
            }
            _ => {
                let entry = function(line, part == "legacy {");
                registry.push(entry.ok_or_else(|| format!("functions.rs: not a function: {line}"))?);
            }
        }
    }
    for entry in &mut registry {
        let own = aliases.iter().filter(|(symbol, _)| *symbol == entry.symbol);
        entry.aliases = own.map(|(_, alias)| alias.clone()).collect();
    }
    registry.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    Ok(registry)
}

fn function(line: &str, legacy: bool) -> Option<Entry> {
    let (symbol, parameters, rest) = head(line)?;
    let (rest, texts) = rest.split_once(" \"")?;
    let (group, doc) = texts.split_once("\" \"")?;
    let mut words = rest.split(' ');
    let (base, since, stream) = (words.next()?, words.next()?, words.next()?);
    let stream = match stream.split('(').next()? {
        "none" => StreamMode::None,
        "legacy" => StreamMode::Legacy,
        "per_thread" => StreamMode::PerThread,
        _ => return None,
    };
    Some(Entry {
        group: group.to_owned(),
        // The documentation is two strings. The second one, which has the version and the link, is not needed.
        does: doc.split_once("\" \"").map_or("", |(does, _)| does).to_owned(),
        symbol,
        base: base.to_owned(),
        since: since.parse().ok()?,
        stream,
        aliases: Vec::new(),
        legacy,
        parameters,
    })
}
