//! Writes the table of trials, which tests the checked calls: a line for each checked call, with a word for each
//! parameter of the C function. `tests/checked_calls/table.rs` explains the words.

use std::fmt::Write as _;

use super::model::{Call, Parameter};

use crate::kind::{Count, Kind};

/// Returns the text of the table.
pub(super) fn file(header: &str, calls: &[Call]) -> String {
    let mut out = format!(
        "{header}\n//! The trials of all checked calls; `table.rs` explains the words.\n\n\
         use cuda_driver::checked;\n\nuse crate::slots::{{\n    \
         Bool, Buffer, Buffered, Bytes, Chars, Copied, Count, Counted, In, InOption, InOut, InOutOption, Length, List, \
         Out, Slice,\n    \
         SliceMut, SliceMutOption, SliceOption, Str, StrOption, Text, Truth, Value, Vector,\n\
         }};\nuse crate::trial::Case;\n\ntrials! {{\n"
    );
    for call in calls {
        let several = outputs(call) > 1;
        let words = call.parameters.iter().map(|parameter| {
            let word = word(call, parameter);
            if several && is_returned(call, parameter) {
                format!("{word}.{}", parameter.field())
            } else {
                word
            }
        });
        let words: Vec<String> = words.collect();
        let _ = writeln!(out, "    {} = {}({});", call.symbol, call.path(), words.join(", "));
    }
    out.push_str("}\n");
    out
}

/// Returns the number of values that a call returns.
fn outputs(call: &Call) -> usize {
    let parameters = call.parameters.iter();
    parameters.filter(|parameter| is_returned(call, parameter)).count()
}

/// Returns true if a call returns the value of a parameter.
fn is_returned(call: &Call, parameter: &Parameter) -> bool {
    parameter.is_output() || is_changed_count(call, parameter)
}

/// Returns true if a parameter is a count that the caller's slices determine, and that the driver changes.
fn is_changed_count(call: &Call, parameter: &Parameter) -> bool {
    let name = &parameter.name;
    let is_requested = call
        .parameters
        .iter()
        .any(|other| matches!(&other.kind, Kind::List { count } | Kind::Copied { count } if count == name));
    parameter.ty.pointers > 0 && call.is_counted(name) && !is_requested
}

/// Returns the word for a parameter.
fn word(call: &Call, parameter: &Parameter) -> String {
    let counts_vector = call
        .parameters
        .iter()
        .any(|other| matches!(&other.kind, Kind::Vector { count } if *count == parameter.name));
    let or = |optional: bool| if optional { "?" } else { "" };
    match &parameter.kind {
        Kind::Value if is_changed_count(call, parameter) => "counted".to_owned(),
        Kind::Value if call.is_counted(&parameter.name) => "count".to_owned(),
        Kind::Value if counts_vector => "length".to_owned(),
        Kind::Value | Kind::Destroyed | Kind::Released => "value".to_owned(),
        Kind::Raw => "raw".to_owned(),
        Kind::In { optional } => format!("in{}", or(*optional)),
        Kind::InOut { optional } => format!("inout{}", or(*optional)),
        Kind::Str { optional } => format!("str{}", or(*optional)),
        Kind::Slice { count, optional } => format!("in[{}]{}", length(count), or(*optional)),
        Kind::SliceMut { count, optional } => format!("out[{}]{}", length(count), or(*optional)),
        Kind::Bytes { count } => format!("bytes[{}]", length(count)),
        Kind::Buffer { count } if parameter.ty.is_char() => format!("chars[{}]", length(count)),
        Kind::Buffer { count } => format!("buf[{}]", length(count)),
        Kind::Out { .. } => "out".to_owned(),
        Kind::OutArray(size) => format!("out[{size}]"),
        Kind::Truth if parameter.ty.pointers == 0 => "truth".to_owned(),
        Kind::Truth => "bool".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::String { count } => format!("string[{count}]"),
        Kind::Vector { count } => format!("vec[{count}]"),
        Kind::List { count } => format!("list[{count}]"),
        Kind::Copied { count } => format!("copied[{count}]"),
    }
}

/// Returns the text of a count.
fn length(count: &Count) -> String {
    match count {
        Count::Fixed(count) => count.to_string(),
        Count::Pointer { name } => format!("*{name}"),
        Count::Parameter { name, less: 0 } => name.clone(),
        Count::Parameter { name, less } => format!("{name}-{less}"),
    }
}
