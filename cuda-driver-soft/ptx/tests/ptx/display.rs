//! Operations print as PTX: every form of the table prints an opcode of the table that stands for the same operation.

use ptx::every_form;
use ptx::ir::Op;
use std::collections::HashSet;

/// An opcode with its modifiers sorted. Types and shapes keep their order, because it matters.
fn normal(opcode: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut ordered = Vec::new();
    for word in opcode.split('.') {
        let kind = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        if kind.starts_with(|c: char| c.is_ascii_digit()) {
            ordered.push(word.to_owned());
        } else {
            words.push(word.to_owned());
        }
    }
    words.sort();
    words.extend(ordered);
    words
}

#[test]
fn every_operation_prints_an_opcode_of_its_own() {
    let forms = every_form();
    let known: HashSet<(Vec<String>, String)> = forms
        .iter()
        .filter_map(|(opcode, op)| Some((normal(opcode), format!("{:?}", op.as_ref()?))))
        .collect();
    let mut wrong: Vec<String> = Vec::new();
    for (opcode, op) in &forms {
        // These print a name without what the table says of them: layouts of `wmma`, or that they do nothing.
        let Some(op) = op else { continue };
        if matches!(
            op,
            Op::Nop | Op::WantsCluster | Op::Mma(ptx::ir::Mma { wmma: true, .. })
        ) {
            continue;
        }
        let printed = op.to_string();
        if !known.contains(&(normal(&printed), format!("{op:?}"))) {
            wrong.push(format!("{opcode} prints {printed}: {op:?}"));
        }
    }
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong
            .iter()
            .step_by(wrong.len() / 100 + 1)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}
