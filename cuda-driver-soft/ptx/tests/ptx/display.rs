//! Tests that operations print as PTX: the operation of each form in the table prints an opcode that the table lowers
//! to the same operation.

use ptx::every_form;
use ptx::ir::{Mma, Op};
use std::collections::HashSet;

/// Prefixes of the opcodes whose operation prints another opcode: they are lowered to the operation of another
/// instruction, or the IR does not keep all modifiers (the type of stack instructions).
const OTHERS: &[&str] = &["createpolicy.", "red.async.", "alloca.", "stackrestore.", "stacksave."];

/// Splits an opcode into its words. The first list is sorted. The second list contains types and shapes, the words with
/// digits, in the order of the opcode, because their order matters.
fn modifiers(opcode: &str) -> (Vec<&str>, Vec<&str>) {
    let is_ordered = |word: &&str| {
        let rest = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let (ordered, mut others): (Vec<_>, Vec<_>) = opcode.split('.').partition(is_ordered);
    others.sort_unstable();
    (others, ordered)
}

/// Returns the memory order of an access with `.mmio`.
fn mmio_order(opcode: &str) -> Option<&str> {
    opcode.split_once(".mmio.")?.1.split('.').next()
}

#[test]
fn operations_print_their_opcodes() {
    let forms: Vec<(String, Op)> = every_form()
        .into_iter()
        .filter_map(|(opcode, op)| Some((opcode, op?)))
        .filter(|(opcode, _)| !OTHERS.iter().any(|other| opcode.starts_with(other)))
        .collect();
    let known: HashSet<_> = forms
        .iter()
        .map(|(opcode, op)| (modifiers(opcode), format!("{op:?}")))
        .collect();
    let mut wrong = Vec::new();
    let mut orders = HashSet::new();
    for (opcode, op) in &forms {
        // The memory order of an access with `.mmio` is part of its operation.
        if let Some(order) = mmio_order(opcode) {
            assert_eq!(mmio_order(&op.to_string()), Some(order), "{opcode}");
            orders.insert(order);
        }
        // The IR does not keep the layouts of `wmma.mma`, nor the names of instructions without an effect.
        if matches!(op, Op::Nop | Op::Mma(Mma { wmma: true, .. })) {
            continue;
        }
        let printed = op.to_string();
        if !known.contains(&(modifiers(&printed), format!("{op:?}"))) {
            wrong.push(format!("{opcode} prints {printed}: {op:?}"));
        }
    }
    assert_eq!(orders, HashSet::from(["relaxed", "acquire", "release"]));
    assert!(wrong.is_empty(), "{} wrong forms:\n{}", wrong.len(), wrong.join("\n"));
}
