//! A trial of each checked call: what it must pass to C, and what it must give back.

use std::fmt::Write as _;

use super::model::{Call, Count, Kind, Parameter};
use super::names;

/// How many elements arrays have in a trial; one that is counted with `n-1` has one less.
const LENGTH: usize = 3;
/// How many bytes: five elements of 16 bits.
const BYTES: usize = 10;
/// How many bytes are offered for a text.
const TEXT: usize = 256;

/// The file of all trials.
pub(super) fn file(header: &str, calls: &[Call]) -> String {
    let mut out = format!(
        "{header}\n//! One trial for each checked call; `recorder.rs` says what they are made of.\n\n\
         use core::ffi::{{c_char, c_void}};\n\nuse cuda_driver::{{checked, sys}};\n\nuse crate::recorder::Trial;\n\n\
         /// An export that has a checked call, and the trial of it.\n\
         type Entry = (&'static str, fn(&mut Trial));\n\n\
         /// All of them.\n\
         pub(crate) const TRIALS: &[Entry] = &[\n"
    );
    for call in calls {
        let _ = writeln!(out, "    (\"{0}\", {0}),", call.symbol);
    }
    out.push_str(
        "];\n\n/// Those with several slices that must be of one length.\npub(crate) const SHARED: &[&str] = &[\n",
    );
    for call in calls.iter().filter(|call| shares_lengths(call)) {
        let _ = writeln!(out, "    \"{}\",", call.symbol);
    }
    out.push_str("];\n");
    for call in calls {
        out.push('\n');
        out.push_str(&trial(call));
    }
    out
}

fn trial(call: &Call) -> String {
    let mut before = Vec::new();
    let mut arguments = Vec::new();
    let mut after = Vec::new();
    let mut outputs: Vec<(String, String)> = Vec::new();
    // A count behind a pointer is given before the other values.
    for (index, parameter) in call.parameters.iter().enumerate() {
        if parameter.ty.pointers > 0
            && call.is_counted(&parameter.name)
            && !is_list(call, &parameter.name)
            && !is_copied(call, &parameter.name)
        {
            let name = names::parameter(&parameter.name);
            outputs.push((name, format!("t.counted(VALUE as u64, {index})")));
        }
    }
    for (index, parameter) in call.parameters.iter().enumerate() {
        one(
            call,
            index,
            parameter,
            &mut before,
            &mut arguments,
            &mut after,
            &mut outputs,
        );
    }
    let module = if call.legacy {
        "checked::legacy"
    } else {
        "checked"
    };
    let function = format!("{module}::{}", names::call(&call.name));
    let mut out = format!("fn {}(t: &mut Trial) {{\n", call.symbol);
    for line in before {
        let _ = writeln!(out, "    {line}");
    }
    let _ = writeln!(
        out,
        "    // SAFETY: the recorder follows no pointer but those that the trial names."
    );
    let _ = writeln!(
        out,
        "    let answer = unsafe {{ {function}({}) }};",
        arguments.join(", ")
    );
    if shares_lengths(call) {
        out.push_str("    if t.uneven {\n        return t.refused(answer);\n    }\n");
    }
    for line in after {
        let _ = writeln!(out, "    {line}");
    }
    if outputs.is_empty() {
        out.push_str("    let _: Option<()> = t.settle(answer);\n");
    } else {
        out.push_str("    let Some(value) = t.settle(answer) else { return };\n");
        for (field, check) in &outputs {
            let value = if outputs.len() == 1 {
                "value".to_owned()
            } else {
                format!("value.{field}")
            };
            let _ = writeln!(out, "    {};", check.replace("VALUE", &value));
        }
    }
    out.push_str("}\n");
    out
}

/// The count of a slice that may be absent or not.
fn slice_count(parameter: &Parameter) -> Option<(&Count, bool)> {
    match &parameter.kind {
        Kind::Slice { count, optional } | Kind::SliceMut { count, optional } => {
            Some((count, *optional))
        }
        _ => None,
    }
}

/// Whether a slice must be as long as another one, which is always there.
fn must_be_as_long(call: &Call, index: usize) -> bool {
    let Some((Count::Parameter { name, .. } | Count::Pointer { name }, _)) =
        call.parameters.get(index).and_then(slice_count)
    else {
        return false;
    };
    let first = call.parameters.iter().position(|other| {
        slice_count(other).is_some_and(|(count, optional)| count.is(name) && !optional)
    });
    first.is_some_and(|first| first != index)
}

fn shares_lengths(call: &Call) -> bool {
    (0..call.parameters.len()).any(|index| must_be_as_long(call, index))
}

/// Whether a list is counted by this parameter.
fn is_list(call: &Call, counter: &str) -> bool {
    call.parameters
        .iter()
        .any(|parameter| matches!(&parameter.kind, Kind::List { count } if count == counter))
}

/// Whether an array of the driver's is counted by this parameter.
fn is_copied(call: &Call, counter: &str) -> bool {
    call.parameters
        .iter()
        .any(|parameter| matches!(&parameter.kind, Kind::Copied { count } if count == counter))
}

/// What a counter says in a trial, and what it says least.
fn counted(call: &Call, counter: &str) -> (usize, usize) {
    for parameter in &call.parameters {
        match &parameter.kind {
            Kind::Bytes { count } | Kind::Buffer { count } if count.is(counter) => {
                return (BYTES, 0);
            }
            Kind::String { count } if count == counter => return (TEXT, TEXT),
            _ => {}
        }
    }
    (LENGTH, least(call, counter))
}

/// The least that a counter can say: slices that are shorter than it are empty then.
fn least(call: &Call, counter: &str) -> usize {
    let slices = call.parameters.iter().filter_map(slice_count);
    let less = slices.filter_map(|(count, _)| match count {
        Count::Parameter { name, less } if name == counter => Some(*less),
        _ => None,
    });
    less.max().unwrap_or(0)
}

/// The length of a slice, and its least.
fn lengths(call: &Call, count: &Count) -> (usize, usize) {
    match count {
        Count::Fixed(count) => (*count, *count),
        Count::Parameter { name, less } => (LENGTH - less, least(call, name) - less),
        Count::Pointer { .. } => (LENGTH, 0),
    }
}

fn one(
    call: &Call,
    index: usize,
    parameter: &Parameter,
    before: &mut Vec<String>,
    arguments: &mut Vec<String>,
    after: &mut Vec<String>,
    outputs: &mut Vec<(String, String)>,
) {
    let Parameter {
        name: c_name,
        ty,
        kind,
        ..
    } = parameter;
    let name = names::parameter(c_name);
    let pointee = ty.pointee();
    match kind {
        Kind::Value if call.is_counted(c_name) => {
            let base = ty.base();
            let (full, least) = counted(call, c_name);
            if ty.pointers == 0 {
                after.push(format!(
                    "t.passed_count::<{base}>({index}, {full}, {least});"
                ));
            } else if is_list(call, c_name) {
                before.push(format!("t.lists::<{base}>({index}, {LENGTH});"));
                after.push(format!("t.saw_list({index}, {LENGTH});"));
            } else if is_copied(call, c_name) {
                before.push(format!("t.lists::<{base}>({index}, {LENGTH});"));
                after.push(format!("t.saw({index}, &[0]);"));
            } else {
                before.push(format!("t.counts::<{base}>({index}, {full}, {least});"));
                after.push(format!("t.saw_count({index}, {full}, {least});"));
            }
        }
        Kind::Value | Kind::Destroyed | Kind::Released | Kind::Raw => {
            let counts_vector = call
                .parameters
                .iter()
                .any(|other| matches!(&other.kind, Kind::Vector { count } if count == c_name));
            let value = if counts_vector {
                format!("t.count({LENGTH}, 0)")
            } else {
                format!("t.value({index})")
            };
            before.push(format!("let {name}: {} = {value};", ty.rust()));
            arguments.push(name.clone());
            after.push(format!("t.passed({index}, &{name});"));
        }
        Kind::In { optional } => {
            before.push(format!("let {name}: {pointee} = t.value({index});"));
            if *optional {
                arguments.push(format!("t.present.then_some(&{name})"));
                after.push(format!("t.passed_if_present({index}, &raw const {name});"));
            } else {
                arguments.push(format!("&{name}"));
                after.push(format!("t.passed_pointer({index}, &raw const {name});"));
            }
        }
        Kind::InOut { optional } => {
            before.push(format!("let mut {name}: {pointee} = t.value({index});"));
            before.push(format!("t.writes::<{pointee}>({index}, 1);"));
            if *optional {
                arguments.push(format!("t.present.then_some(&mut {name})"));
                after.push(format!("t.passed_if_present({index}, &raw const {name});"));
                after.push(format!("t.wrote_if_present({index}, &{name});"));
            } else {
                arguments.push(format!("&mut {name}"));
                after.push(format!("t.passed_pointer({index}, &raw const {name});"));
                after.push(format!("t.wrote_through({index}, &{name});"));
            }
        }
        Kind::Str { optional } => {
            before.push(format!("let {name} = c\"{c_name}\";"));
            if *optional {
                arguments.push(format!("t.present.then_some({name})"));
                after.push(format!("t.passed_if_present({index}, {name}.as_ptr());"));
            } else {
                arguments.push(name.clone());
                after.push(format!("t.passed_pointer({index}, {name}.as_ptr());"));
            }
        }
        Kind::Slice { count, optional } => {
            let (full, least) = lengths(call, count);
            before.push(format!(
                "let {name}: [{pointee}; {full}] = t.value({index});"
            ));
            arguments.push(slice(call, index, "&", &name, count, *optional));
            after.push(if *optional {
                format!("t.passed_slice_if_present({index}, &{name}, {least});")
            } else {
                format!("t.passed_slice({index}, &{name}, {least});")
            });
        }
        Kind::SliceMut { count, optional } => {
            let (full, least) = lengths(call, count);
            let whole = format!("[{pointee}; {full}]");
            before.push(format!("let mut {name}: {whole} = t.value({index});"));
            before.push(format!("t.writes::<{whole}>({index}, 1);"));
            arguments.push(slice(call, index, "&mut ", &name, count, *optional));
            let if_present = if *optional { "_if_present" } else { "" };
            after.push(format!(
                "t.passed_slice{if_present}({index}, &{name}, {least});"
            ));
            after.push(format!(
                "t.wrote_slice{if_present}({index}, &{name}, {least});"
            ));
        }
        Kind::Bytes { count } => {
            before.push(format!(
                "let {name}: [u16; {}] = t.value({index});",
                BYTES / 2
            ));
            arguments.push(format!("&{name}[..t.length({}, 0)]", BYTES / 2));
            after.push(address(index, &name, count));
        }
        Kind::Buffer { count } => {
            let (whole, full) = if ty.is_char() {
                (format!("[u8; {BYTES}]"), BYTES)
            } else {
                (format!("[u16; {}]", BYTES / 2), BYTES / 2)
            };
            before.push(format!("let mut {name}: {whole} = t.value({index});"));
            before.push(format!("t.writes_array::<{whole}>({index}, 1);"));
            arguments.push(format!("&mut {name}[..t.length({full}, 0)]"));
            after.push(address(index, &name, count));
            after.push(format!("t.wrote_slice({index}, &{name}, 0);"));
        }
        Kind::Out { name: field, .. } => {
            before.push(format!("t.writes::<{pointee}>({index}, 1);"));
            outputs.push((
                field.clone().unwrap_or(name),
                format!("t.gave({index}, &VALUE)"),
            ));
        }
        Kind::OutArray(count) => {
            before.push(format!("t.writes::<[{pointee}; {count}]>({index}, 1);"));
            outputs.push((name, format!("t.gave({index}, &VALUE)")));
        }
        Kind::Text => {
            before.push(format!("t.points_to_text({index});"));
            outputs.push((name, format!("t.gave_text({index}, &VALUE)")));
        }
        Kind::String { .. } => {
            before.push(format!("t.writes_text({index});"));
            outputs.push((name, format!("t.gave_text({index}, &VALUE)")));
        }
        Kind::Truth if ty.pointers == 0 => {
            before.push(format!("let {name} = t.present;"));
            arguments.push(name.clone());
            after.push(format!("t.passed({index}, &{}::from({name}));", ty.base()));
        }
        Kind::Truth => {
            before.push(format!("t.writes_truth::<{pointee}>({index});"));
            outputs.push((name, format!("t.gave_truth(VALUE, {index})")));
        }
        Kind::Vector { .. } => {
            before.push(format!(
                "t.writes_array::<{}>({index}, {LENGTH});",
                ty.element()
            ));
            outputs.push((name, format!("t.gave_vector({index}, &VALUE)")));
        }
        Kind::List { .. } => {
            before.push(format!(
                "t.writes_array::<{}>({index}, {LENGTH});",
                ty.element()
            ));
            after.push(format!("t.asked_with_null({index});"));
            outputs.push((name, format!("t.gave_list({index}, &VALUE)")));
        }
        Kind::Copied { .. } => {
            before.push(format!("t.points_to::<{}>({index}, {LENGTH});", ty.base()));
            outputs.push((name, format!("t.gave_list({index}, &VALUE)")));
        }
    }
}

/// A slice as an argument.
fn slice(
    call: &Call,
    index: usize,
    reference: &str,
    name: &str,
    count: &Count,
    optional: bool,
) -> String {
    let (full, least) = lengths(call, count);
    let part = if must_be_as_long(call, index) {
        format!("[..t.shorter({full}, {least})]")
    } else if full != least {
        format!("[..t.length({full}, {least})]")
    } else if optional {
        "[..]".to_owned()
    } else {
        String::new()
    };
    let slice = format!("{reference}{name}{part}");
    if optional {
        format!("t.present.then_some({slice})")
    } else {
        slice
    }
}

/// Where untyped bytes were said to be: a count behind a pointer may be asked for with null, another one says that nothing
/// is there.
fn address(index: usize, name: &str, count: &Count) -> String {
    match count {
        Count::Pointer { .. } => format!("t.passed_slice({index}, &{name}, 0);"),
        _ => format!("t.passed_pointer({index}, {name}.as_ptr());"),
    }
}
