//! Writes the checked calls as Rust.

use std::fmt::Write as _;

use super::docs;
use super::facts::Facts;
use super::model::{Call, Parameter};
use super::names;

use crate::kind::{Count, Kind};

/// Returns the file of one group. Its documentation includes the example `src/checked/examples/NAME.md`.
pub(super) fn file(header: &str, name: &str, calls: &[&Call], facts: &Facts<'_>) -> Result<String, String> {
    let group = calls.first().map(|call| call.group.as_str()).unwrap_or_default();
    let page = group.replace('_', "__");
    // The example is included only when rustdoc runs, so that builds do not store the text in the metadata.
    let mut out = format!(
        "{header}\n//! The checked calls of the group \
         [`{group}`](https://docs.nvidia.com/cuda/cuda-driver-api/group__{page}.html) of the manual.\n\
         #![cfg_attr(doc, doc = include_str!(\"../examples/{name}.md\"))]\n\n"
    );
    let (legacy, own): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(|call| call.legacy);
    let own = texts(&own, facts)?;
    out.push_str(&imports(&own, "super::super"));
    out.push_str(&own);
    if !legacy.is_empty() {
        out.push_str("\npub(super) mod legacy {\n");
        let legacy = texts(&legacy, facts)?;
        let imports = imports(&legacy, "super::super::super");
        for line in imports.lines().chain(legacy.lines()) {
            if line.is_empty() {
                out.push('\n');
            } else {
                let _ = writeln!(out, "    {line}");
            }
        }
        out.push_str("}\n");
    }
    Ok(out)
}

fn texts(calls: &[&Call], facts: &Facts<'_>) -> Result<String, String> {
    let mut out = String::new();
    for call in calls {
        out.push('\n');
        out.push_str(&Emitter::new(call, facts)?.text());
    }
    Ok(out)
}

/// Returns the imports that a text needs.
fn imports(text: &str, checked: &str) -> String {
    const FFI: &[&str] = &["CStr", "c_char", "c_void"];
    const CONVERT: &[&str] = &[
        "TEXT",
        "copied",
        "count",
        "filled",
        "filled_to",
        "or_older",
        "output",
        "same_length",
        "slice",
        "slice_mut",
        "string",
        "text",
        "zeroed",
    ];
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let uses = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let rest = &text[at + name.len()..];
            let after: &[&str] = match name {
                // The length of an array.
                "TEXT" => &["]"],
                // A call, or the function as a value.
                "slice" | "slice_mut" => &["(", ")"],
                "zeroed" => &["::<"],
                // The others are calls or types.
                _ if FFI.contains(&name) => &[""],
                _ => &["("],
            };
            !before.is_some_and(|c| is_part(c) || matches!(c, '.' | '`' | ':'))
                && !rest.starts_with(is_part)
                && after.iter().any(|after| rest.starts_with(after))
        })
    };
    let used = |names: &[&str]| {
        names
            .iter()
            .copied()
            .filter(|name| uses(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut out = String::new();
    let ffi = used(FFI);
    if !ffi.is_empty() {
        let _ = writeln!(out, "use core::ffi::{{{ffi}}};");
    }
    if text.contains("MaybeUninit") {
        out.push_str("use core::mem::MaybeUninit;\n");
    }
    if text.contains("ptr::") {
        out.push_str("use core::ptr;\n");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let convert = used(CONVERT);
    if !convert.is_empty() {
        let _ = writeln!(out, "use {checked}::convert::{{{convert}}};");
    }
    if text.contains("fallback::") {
        let _ = writeln!(out, "use {checked}::fallback;");
    }
    let check = if uses("check") { "{Result, check}" } else { "Result" };
    let _ = writeln!(out, "use crate::sys::{{self, Function}};\nuse crate::{check};");
    if !text.contains(" Function::") {
        out = out.replace("sys::{self, Function}", "sys");
    }
    out
}

/// One value that a call returns.
struct Output {
    field: String,
    ty: String,
    value: String,
}

impl Output {
    /// Returns the variable that holds the value, if no conversion is needed.
    fn variable(&self) -> Option<&str> {
        self.value.strip_prefix("unsafe { ")?.strip_suffix(".assume_init() }")
    }

    /// Returns the SAFETY comment of an `unsafe` conversion.
    fn safety(&self) -> &'static str {
        let is = |conversion: &str| self.value.starts_with(&format!("unsafe {{ {conversion}("));
        if is("copied") {
            "the driver returned this count, and the values are valid until its next call"
        } else if is("text") {
            "null, or a C string of the driver, by the call's contract"
        } else if is("filled") || is("filled_to") {
            "all values were zeroed before the call, which succeeded"
        } else {
            "zeroed before the call, which succeeded"
        }
    }
}

struct Emitter<'a> {
    call: &'a Call,
    rust_name: String,
    generic: bool,
    signature: Vec<String>,
    /// Statements before the call.
    before: Vec<String>,
    arguments: Vec<String>,
    outputs: Vec<Output>,
    facts: &'a Facts<'a>,
    /// For a list: the arguments of the first of two calls, and the name of the count.
    query: Option<(Vec<String>, String)>,
}

impl<'a> Emitter<'a> {
    fn new(call: &'a Call, facts: &'a Facts<'a>) -> Result<Self, String> {
        let mut emitter = Self {
            call,
            rust_name: names::call(&call.name),
            generic: false,
            signature: Vec::new(),
            before: Vec::new(),
            arguments: Vec::new(),
            outputs: Vec::new(),
            facts,
            query: None,
        };
        emitter.counts()?;
        for parameter in &call.parameters {
            emitter.parameter(parameter)?;
        }
        emitter.list_query();
        let mut names: Vec<String> = call
            .parameters
            .iter()
            .map(|parameter| names::parameter(&parameter.name))
            .collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{}: two parameters would be {}", call.symbol, pair[0]));
        }
        Ok(emitter)
    }

    fn function(&self) -> String {
        let module = if self.call.legacy {
            "sys::legacy::function"
        } else {
            "Function"
        };
        format!("{module}::{}", self.call.symbol)
    }

    /// Adds statements that compute the counts from the slices.
    fn counts(&mut self) -> Result<(), String> {
        let function = self.function();
        for counter in &self.call.parameters {
            if !self.call.is_counted(&counter.name) {
                continue;
            }
            let (lengths, optional) = self.lengths(&counter.name);
            let Some((length, others)) = lengths.split_first() else {
                // The driver returns the count of a `list` or `copied` array; see `list_query` and `parameter`.
                if optional.is_empty() {
                    continue;
                }
                return Err(format!(
                    "{}: only optional slices determine {}",
                    self.call.symbol, counter.name
                ));
            };
            for other in others {
                self.before
                    .push(format!("same_length({other}, {length}, {function})?;"));
            }
            for (slice, other) in optional {
                self.before.push(format!(
                    "if let Some({slice}) = &{slice} {{\n    same_length({other}, {length}, {function})?;\n}}"
                ));
            }
            let count = names::parameter(&counter.name);
            let ty = counter.ty.base();
            let mutable = if counter.ty.pointers > 0 { "mut " } else { "" };
            self.before.push(if ty == "usize" {
                format!("let {mutable}{count} = {length};")
            } else {
                format!("let {mutable}{count}: {ty} = count({length}, {function})?;")
            });
            if counter.ty.pointers > 0 {
                self.outputs.push(Output {
                    field: count.clone(),
                    ty,
                    value: count,
                });
            }
        }
        Ok(())
    }

    /// Returns the lengths that a counter must equal, and the names and lengths of optional slices. Also declares the
    /// buffer of a returned string.
    fn lengths(&mut self, counter: &str) -> (Vec<String>, Vec<(String, String)>) {
        let mut lengths = Vec::new();
        let mut absent = Vec::new();
        for parameter in &self.call.parameters {
            let slice = names::parameter(&parameter.name);
            match &parameter.kind {
                Kind::String { count } if count == counter => {
                    self.before.push(format!("let mut {slice} = [0u8; TEXT];"));
                    lengths.push(format!("{slice}.len()"));
                }
                Kind::Slice { count, optional } | Kind::SliceMut { count, optional } if count.is(counter) => {
                    let length = match count {
                        Count::Parameter { less, .. } if *less > 0 => {
                            format!("{slice}.len() + {less}")
                        }
                        _ => format!("{slice}.len()"),
                    };
                    if *optional {
                        absent.push((slice, length));
                    } else {
                        lengths.push(length);
                    }
                }
                Kind::Bytes { count } | Kind::Buffer { count } if count.is(counter) => {
                    lengths.push(format!("size_of_val({slice})"));
                }
                _ => {}
            }
        }
        (lengths, absent)
    }

    fn parameter(&mut self, parameter: &Parameter) -> Result<(), String> {
        let Parameter {
            name: c_name, ty, kind, ..
        } = parameter;
        let name = names::parameter(c_name);
        let counted = self.call.is_counted(c_name);
        let cast = if ty.constant { "" } else { ".cast_mut()" };
        match kind {
            Kind::Value if counted => {
                if ty.pointers > 0 {
                    // For a list, see `list_query`.
                    self.arguments.push(format!("&raw mut {name}"));
                } else {
                    self.arguments.push(name);
                }
            }
            Kind::Value | Kind::Destroyed | Kind::Released | Kind::Raw => {
                self.signature.push(format!("{name}: {}", ty.rust()));
                self.arguments.push(name);
            }
            Kind::In { optional: false } => {
                self.signature.push(format!("{name}: &{}", ty.pointee()));
                self.arguments.push(format!("ptr::from_ref({name}){cast}"));
            }
            Kind::In { optional: true } => {
                self.signature.push(format!("{name}: Option<&{}>", ty.pointee()));
                self.arguments
                    .push(format!("{name}.map_or(ptr::null(), ptr::from_ref){cast}"));
            }
            Kind::InOut { optional: false } => {
                self.signature.push(format!("{name}: &mut {}", ty.pointee()));
                self.arguments.push(format!("ptr::from_mut({name})"));
            }
            Kind::InOut { optional: true } => {
                self.signature.push(format!("{name}: Option<&mut {}>", ty.pointee()));
                self.arguments
                    .push(format!("{name}.map_or(ptr::null_mut(), ptr::from_mut)"));
            }
            Kind::Str { optional: false } => {
                self.signature.push(format!("{name}: &CStr"));
                self.arguments.push(format!("{name}.as_ptr()"));
            }
            Kind::Str { optional: true } => {
                self.signature.push(format!("{name}: Option<&CStr>"));
                self.arguments.push(format!("{name}.map_or(ptr::null(), CStr::as_ptr)"));
            }
            Kind::Slice { count, optional } => {
                let element = match count {
                    Count::Fixed(count) => format!("[{}; {count}]", ty.pointee()),
                    _ => format!("[{}]", ty.pointee()),
                };
                // An array with a count such as `n-1` may be empty although the call reads the other arrays. Driver
                // 580 rejects null for it.
                match count {
                    Count::Parameter { less: 1.., .. } if !*optional => {
                        self.signature.push(format!("{name}: &{element}"));
                        self.arguments.push(format!("{name}.as_ptr(){cast}"));
                    }
                    _ => self.slice(&name, &element, *optional, cast),
                }
            }
            Kind::SliceMut { optional, .. } => {
                let element = ty.pointee();
                if *optional {
                    self.signature.push(format!("{name}: Option<&mut [{element}]>"));
                    self.arguments
                        .push(format!("{name}.map_or(ptr::null_mut(), slice_mut)"));
                } else {
                    self.signature.push(format!("{name}: &mut [{element}]"));
                    self.arguments.push(format!("slice_mut({name})"));
                }
            }
            Kind::Bytes { count } => {
                self.generic = true;
                self.signature.push(format!("{name}: &[T]"));
                // With a count behind a pointer, an empty slice is passed as null, as for `Buffer` below.
                let address = match count {
                    Count::Pointer { .. } => format!("slice({name})"),
                    _ => format!("{name}.as_ptr()"),
                };
                self.arguments.push(format!("{address}.cast::<c_void>(){cast}"));
            }
            Kind::Buffer { count } => {
                let element = if ty.is_char() {
                    "u8"
                } else {
                    self.generic = true;
                    "T"
                };
                self.signature.push(format!("{name}: &mut [{element}]"));
                // With a count behind a pointer, null only requests the count.
                let address = match count {
                    Count::Pointer { .. } => format!("slice_mut({name})"),
                    _ => format!("{name}.as_mut_ptr()"),
                };
                self.arguments.push(format!("{address}.cast::<{}>()", ty.base()));
            }
            Kind::Out { name: field, .. } => {
                self.before
                    .push(format!("let mut {name} = MaybeUninit::<{}>::zeroed();", ty.pointee()));
                self.arguments.push(format!("{name}.as_mut_ptr()"));
                self.outputs.push(Output {
                    field: field.clone().unwrap_or_else(|| name.clone()),
                    ty: ty.pointee(),
                    // The SAFETY comment is written where the value is built.
                    value: format!("unsafe {{ {name}.assume_init() }}"),
                });
            }
            Kind::Truth if ty.pointers == 0 => {
                self.signature.push(format!("{name}: bool"));
                self.arguments.push(format!("{}::from({name})", ty.base()));
            }
            Kind::Truth => {
                self.before.push(format!("let mut {name} = 0;"));
                self.arguments.push(format!("&raw mut {name}"));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: "bool".to_owned(),
                    value: format!("{name} != 0"),
                });
            }
            Kind::Copied { count } => {
                let counter = format!("let mut {} = 0;", names::parameter(count));
                if !self.before.contains(&counter) {
                    self.before.push(counter);
                }
                self.before.push(format!("let mut {name} = ptr::null();"));
                self.arguments.push(format!("&raw mut {name}"));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: format!("Vec<{}>", ty.base()),
                    value: format!("unsafe {{ copied({name}, {}) }}", self.as_usize(count)),
                });
            }
            Kind::OutArray(count) => {
                let element = if ty.is_char() { "u8".to_owned() } else { ty.pointee() };
                self.before.push(format!(
                    "let mut {name} = MaybeUninit::<[{element}; {count}]>::zeroed();"
                ));
                self.arguments
                    .push(format!("{name}.as_mut_ptr().cast::<{}>()", ty.pointee()));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: format!("[{element}; {count}]"),
                    value: format!("unsafe {{ {name}.assume_init() }}"),
                });
            }
            Kind::Text => {
                self.before.push(format!("let mut {name} = ptr::null();"));
                self.arguments.push(format!("&raw mut {name}"));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: "String".to_owned(),
                    value: format!("unsafe {{ text({name}) }}"),
                });
            }
            Kind::String { .. } => {
                self.arguments.push(format!("{name}.as_mut_ptr().cast::<c_char>()"));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: "String".to_owned(),
                    value: format!("string(&{name})"),
                });
            }
            Kind::Vector { count } => {
                let count = self.as_usize(count);
                self.before.push(format!(
                    "let mut {name} = zeroed::<{}>({count}, {})?;",
                    ty.pointee(),
                    self.function()
                ));
                self.arguments
                    .push(format!("{name}.as_mut_ptr().cast::<{}>()", ty.pointee()));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: format!("Vec<{}>", ty.pointee()),
                    value: format!("unsafe {{ filled({name}) }}"),
                });
            }
            Kind::List { count } => {
                let count = self.as_usize(count);
                self.arguments
                    .push(format!("{name}.as_mut_ptr().cast::<{}>()", ty.pointee()));
                self.outputs.push(Output {
                    field: name.clone(),
                    ty: format!("Vec<{}>", ty.element()),
                    value: format!("unsafe {{ filled_to({name}, {count}) }}"),
                });
            }
        }
        Ok(())
    }

    /// Returns a counter as a `usize`.
    fn as_usize(&self, counter: &str) -> String {
        let name = names::parameter(counter);
        let is_usize = self
            .call
            .parameters
            .iter()
            .any(|parameter| parameter.name == counter && parameter.ty.base() == "usize");
        if is_usize { name } else { format!("{name} as usize") }
    }

    fn slice(&mut self, name: &str, element: &str, optional: bool, cast: &str) {
        if optional {
            self.signature.push(format!("{name}: Option<&{element}>"));
            self.arguments.push(format!("{name}.map_or(ptr::null(), slice){cast}"));
        } else {
            self.signature.push(format!("{name}: &{element}"));
            self.arguments.push(format!("slice({name}){cast}"));
        }
    }

    /// Sets the arguments of the first call for a list: its arrays are null, so that it only returns the count.
    fn list_query(&mut self) {
        let lists: Vec<&Parameter> = self
            .call
            .parameters
            .iter()
            .filter(|p| matches!(p.kind, Kind::List { .. }))
            .collect();
        let Some(Kind::List { count }) = lists.first().map(|p| &p.kind) else {
            return;
        };
        let count = names::parameter(count);
        let mut query = Vec::new();
        for (parameter, argument) in self.call.parameters.iter().zip(&self.arguments) {
            query.push(match parameter.kind {
                Kind::List { .. } => "ptr::null_mut()".to_owned(),
                _ => argument.clone(),
            });
        }
        self.query = Some((query, count));
    }

    fn raw_call(&self, arguments: &[String], indent: &str) -> String {
        let module = if self.call.legacy { "sys::legacy" } else { "sys" };
        let one_line = format!("unsafe {{ {module}::{}({}) }}", self.call.symbol, arguments.join(", "));
        if one_line.len() <= 100 {
            return one_line;
        }
        let mut out = format!("unsafe {{\n{indent}    {module}::{}(\n", self.call.symbol);
        for argument in arguments {
            let _ = writeln!(out, "{indent}        {argument},");
        }
        let _ = write!(out, "{indent}    )\n{indent}}}");
        out
    }

    fn struct_name(&self) -> String {
        names::camel(&self.rust_name)
    }

    fn text(&self) -> String {
        let mut out = String::new();
        if self.outputs.len() > 1 {
            self.result_struct(&mut out);
        }
        docs::write(self.call, self.facts, &mut out);
        let returned = match self.outputs.as_slice() {
            [] => "()".to_owned(),
            [one] => one.ty.clone(),
            _ => self.struct_name(),
        };
        if self.signature.len() > 7 {
            out.push_str("#[allow(clippy::too_many_arguments)]\n");
        }
        out.push_str("#[inline]\n#[track_caller]\n");
        let generic = if self.generic { "<T>" } else { "" };
        let head = format!(
            "pub unsafe fn {}{generic}({}) -> Result<{returned}> {{",
            self.rust_name,
            self.signature.join(", ")
        );
        if head.len() <= 100 {
            let _ = writeln!(out, "{head}");
        } else {
            let _ = writeln!(out, "pub unsafe fn {}{generic}(", self.rust_name);
            for parameter in &self.signature {
                let _ = writeln!(out, "    {parameter},");
            }
            let _ = writeln!(out, ") -> Result<{returned}> {{");
        }
        self.body(&mut out);
        out.push_str("}\n");
        out
    }

    fn body(&self, out: &mut String) {
        for statement in &self.before {
            for line in statement.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        let function = self.function();
        if let Some((query, count)) = &self.query {
            let _ = writeln!(out, "    let mut {count} = 0;");
            let _ = writeln!(
                out,
                "    // SAFETY: as for the call below; with null arrays it only returns the count."
            );
            let _ = writeln!(
                out,
                "    let status = {};\n    check(status, {function})?;",
                self.raw_call(query, "    ")
            );
            for parameter in &self.call.parameters {
                if let Kind::List { count: c_count } = &parameter.kind {
                    let name = names::parameter(&parameter.name);
                    let _ = writeln!(
                        out,
                        "    let mut {name} = zeroed::<{}>({}, {function})?;",
                        parameter.ty.element(),
                        self.as_usize(c_count)
                    );
                }
            }
            let _ = writeln!(out, "    if {count} > 0 {{");
            let _ = writeln!(
                out,
                "        // SAFETY: upheld by the caller; each array has as many elements as the count."
            );
            let _ = writeln!(
                out,
                "        let status = {};\n        check(status, {function})?;",
                self.raw_call(&self.arguments, "        ")
            );
            out.push_str("    }\n");
        } else {
            let _ = writeln!(
                out,
                "    // SAFETY: upheld by the caller; all other arguments are local."
            );
            let call = self.raw_call(&self.arguments, "    ");
            let _ = writeln!(out, "    let status = {call};");
            if self.call.fallback.is_some() {
                self.fallback(out);
            }
            if self.outputs.is_empty() {
                let last = if self.call.fallback.is_some() {
                    "Ok(())".to_owned()
                } else {
                    format!("check(status, {function})")
                };
                let _ = writeln!(out, "    {last}");
                return;
            }
            if self.call.fallback.is_none() {
                if let [one] = self.outputs.as_slice()
                    && let Some(variable) = one.variable()
                {
                    let _ = writeln!(
                        out,
                        "    // SAFETY: zeroed before the call, which writes a value if it succeeds.\n    \
                             unsafe {{ output({variable}, status, {function}) }}"
                    );
                    return;
                }
                let _ = writeln!(out, "    check(status, {function})?;");
            }
        }
        let unsafe_value = self.outputs.iter().any(|output| output.value.starts_with("unsafe"));
        if let [one] = self.outputs.as_slice() {
            if unsafe_value {
                let _ = writeln!(out, "    // SAFETY: {}.", one.safety());
            }
            let _ = writeln!(out, "    Ok({})", one.value);
            return;
        }
        let _ = writeln!(out, "    Ok({} {{", self.struct_name());
        for output in &self.outputs {
            if output.value.starts_with("unsafe") {
                let _ = writeln!(out, "        // SAFETY: {}.", output.safety());
            }
            if output.field == output.value {
                let _ = writeln!(out, "        {},", output.field);
            } else {
                let _ = writeln!(out, "        {}: {},", output.field, output.value);
            }
        }
        out.push_str("    })\n");
    }

    /// Writes the call of the older function for drivers that lack the export.
    fn fallback(&self, out: &mut String) {
        let names: Vec<&str> = self
            .signature
            .iter()
            .filter_map(|parameter| parameter.split(':').next())
            .collect();
        let _ = writeln!(
            out,
            "    if let Err(error) = check(status, {}) {{\n        \
             if error.is_missing_function() {{\n            \
             // SAFETY: upheld by the caller; the older function has the same contract.\n            \
             return or_older(error, unsafe {{ fallback::{}({}) }});\n        }}\n        \
             return Err(error);\n    }}",
            self.function(),
            self.rust_name,
            names.join(", ")
        );
    }

    fn result_struct(&self, out: &mut String) {
        let path = if self.call.legacy { "legacy::" } else { "" };
        let _ = writeln!(
            out,
            "/// The values that [`{}`](crate::checked::{path}{}) returns.",
            self.rust_name, self.rust_name
        );
        let copy = if self.outputs.iter().any(|o| o.ty.starts_with("Vec") || o.ty == "String") {
            ""
        } else {
            ", Copy"
        };
        // `CUdevResource` contains a union, so it has no `Debug`.
        let silent = self.outputs.iter().any(|o| o.ty == "sys::CUdevResource");
        let debug = if silent { "" } else { "Debug, " };
        if silent {
            out.push_str("#[allow(missing_debug_implementations)]\n");
        }
        let _ = writeln!(out, "#[derive({debug}Clone{copy})]");
        let _ = writeln!(out, "pub struct {} {{", self.struct_name());
        for output in &self.outputs {
            let _ = writeln!(out, "    /// `{}` in C.", self.c_name(&output.field));
            let _ = writeln!(out, "    pub {}: {},", output.field, output.ty);
        }
        out.push_str("}\n\n");
    }

    /// Returns the name in C of the parameter for an output.
    fn c_name<'b>(&'b self, field: &'b str) -> &'b str {
        self.call
            .parameters
            .iter()
            .find(|parameter| match &parameter.kind {
                Kind::Out { name: Some(name), .. } => name == field,
                _ => names::parameter(&parameter.name) == field,
            })
            .map_or(field, |parameter| parameter.name.as_str())
    }
}
