//! A trial of each checked call: what it must pass to C, and what it must give back.

use std::fmt::Write as _;

use super::model::{Call, Count, Kind, Parameter};
use super::names;

/// How many elements arrays have in a trial; one that is counted with `n-1` has one less.
const LENGTH: usize = 3;
/// How many bytes: five elements of 16 bits.
const BYTES: usize = 10;

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

/// What a counter says in a trial.
fn counted(call: &Call, counter: &str) -> usize {
    for parameter in &call.parameters {
        match &parameter.kind {
            Kind::Bytes { count } | Kind::Buffer { count } if count.is(counter) => return BYTES,
            Kind::String { count } if count == counter => return 256,
            _ => {}
        }
    }
    LENGTH
}

fn length(count: &Count) -> usize {
    match count {
        Count::Fixed(count) => *count,
        Count::Parameter { less, .. } => LENGTH - less,
        Count::Pointer { .. } => LENGTH,
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
    } = parameter;
    let name = names::parameter(c_name);
    let pointee = ty.pointee();
    match kind {
        Kind::Value if call.is_counted(c_name) => {
            let base = ty.base();
            if ty.pointers == 0 {
                after.push(format!(
                    "t.passed::<{base}>({index}, &{});",
                    counted(call, c_name)
                ));
            } else if is_list(call, c_name) {
                before.push(format!("t.counts::<{base}>({index}, {LENGTH});"));
                after.push(format!("t.saw({index}, &[0, {LENGTH}]);"));
            } else if is_copied(call, c_name) {
                before.push(format!("t.counts::<{base}>({index}, {LENGTH});"));
                after.push(format!("t.saw({index}, &[0]);"));
            } else {
                before.push(format!(
                    "t.counts::<{base}>({index}, {});",
                    counted(call, c_name) - 1
                ));
                after.push(format!("t.saw({index}, &[{}]);", counted(call, c_name)));
            }
        }
        Kind::Value | Kind::Destroyed | Kind::Raw => {
            let counts_vector = call
                .parameters
                .iter()
                .any(|other| matches!(&other.kind, Kind::Vector { count } if count == c_name));
            let value = if counts_vector {
                LENGTH.to_string()
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
            before.push(format!(
                "let {name}: [{pointee}; {}] = t.value({index});",
                length(count)
            ));
            if must_be_as_long(call, index) {
                let shorter = format!("&{name}[..t.shorter({})]", length(count));
                arguments.push(if *optional {
                    format!("t.present.then_some({shorter})")
                } else {
                    shorter
                });
            } else if *optional {
                arguments.push(format!("t.present.then_some(&{name}[..])"));
            } else {
                arguments.push(format!("&{name}"));
            }
            if *optional {
                after.push(format!("t.passed_if_present({index}, {name}.as_ptr());"));
            } else {
                after.push(format!("t.passed_pointer({index}, {name}.as_ptr());"));
            }
        }
        Kind::SliceMut { count, optional } => {
            let whole = format!("[{pointee}; {}]", length(count));
            before.push(format!("let mut {name}: {whole} = t.value({index});"));
            before.push(format!("t.writes::<{whole}>({index}, 1);"));
            if must_be_as_long(call, index) {
                let shorter = format!("&mut {name}[..t.shorter({})]", length(count));
                arguments.push(if *optional {
                    format!("t.present.then_some({shorter})")
                } else {
                    shorter
                });
            } else if *optional {
                arguments.push(format!("t.present.then_some(&mut {name}[..])"));
            } else {
                arguments.push(format!("&mut {name}"));
            }
            if *optional {
                after.push(format!("t.passed_if_present({index}, {name}.as_ptr());"));
                after.push(format!("t.wrote_if_present({index}, &{name});"));
            } else {
                after.push(format!("t.passed_pointer({index}, {name}.as_ptr());"));
                after.push(format!("t.wrote_through({index}, &{name});"));
            }
        }
        Kind::Bytes { .. } => {
            before.push(format!(
                "let {name}: [u16; {}] = t.value({index});",
                BYTES / 2
            ));
            arguments.push(format!("&{name}"));
            after.push(format!("t.passed_pointer({index}, {name}.as_ptr());"));
        }
        Kind::Buffer { .. } => {
            let whole = if ty.base == "char" {
                format!("[u8; {BYTES}]")
            } else {
                format!("[u16; {}]", BYTES / 2)
            };
            before.push(format!("let mut {name}: {whole} = t.value({index});"));
            before.push(format!("t.writes::<{whole}>({index}, 1);"));
            arguments.push(format!("&mut {name}"));
            after.push(format!("t.passed_pointer({index}, {name}.as_ptr());"));
            after.push(format!("t.wrote_through({index}, &{name});"));
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
        Kind::Truth => {
            before.push(format!("t.writes_truth::<{pointee}>({index});"));
            outputs.push((name, format!("t.gave_truth(VALUE, {index})")));
        }
        Kind::Vector { .. } | Kind::List { .. } => {
            before.push(format!("t.writes::<{}>({index}, {LENGTH});", ty.element()));
            outputs.push((name, format!("t.gave_slice({index}, &VALUE)")));
        }
        Kind::Copied { .. } => {
            before.push(format!("t.points_to::<{}>({index}, {LENGTH});", ty.base()));
            outputs.push((name, format!("t.gave_slice({index}, &VALUE)")));
        }
    }
}
