//! Tests of the instruction table as a whole.

use crate::ir::Op;

use super::mods::{is_known, split, type_of};
use super::samples::every_form;
use super::table::{compile, fit, operand_lists, table};

#[test]
fn every_row_compiles() {
    for row in &table().rows {
        let (root, compiled) = compile(row.syntax, 0);
        assert!(!root.is_empty(), "{}", row.syntax);
        for element in &compiled.elements {
            assert!(!element.alternatives.is_empty(), "{}", row.syntax);
            for alternative in &element.alternatives {
                assert!(is_known(alternative), "{alternative} in {}", row.syntax);
            }
        }
        let types = compiled
            .elements
            .iter()
            .filter(|e| e.alternatives.iter().any(|a| type_of(a).is_some()));
        assert!(
            types.clone().all(|e| e.types),
            "types and others in one class: {}",
            row.syntax
        );
    }
}

#[test]
fn every_row_has_a_form() {
    let forms = every_form();
    assert!(forms.len() > 5000, "{}", forms.len());
    for row in &table().rows {
        let (root, compiled) = compile(row.syntax, 0);
        let fits = |(opcode, _): &(String, Option<Op>)| {
            let (found, rest) = opcode.split_at(root.len().min(opcode.len()));
            found == root && (rest.is_empty() || rest.starts_with('.')) && fit(&compiled.elements, &split(rest))
        };
        assert!(forms.iter().any(fits), "no form of {}", row.syntax);
    }
}

#[test]
fn operands_of_a_syntax_line() {
    assert_eq!(operand_lists("d, a{, b}"), [vec!["d", "a", "b"], vec!["d", "a"]]);
    assert_eq!(operand_lists("[a]"), [vec!["[a]"]]);
    assert_eq!(operand_lists(""), [Vec::<&str>::new()]);
}
