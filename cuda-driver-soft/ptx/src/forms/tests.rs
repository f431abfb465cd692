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
                assert!(
                    is_known(alternative),
                    "unknown modifier {alternative} in {}",
                    row.syntax
                );
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
    assert!(forms.len() > 5000, "only {} forms", forms.len());
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

/// The expected messages are those of ptxas 13.0 for `.version 6.0` and `.target sm_30`.
#[test]
fn requirements_are_in_the_words_of_ptxas() {
    for (opcode, expected) in [
        (
            "match.any.sync.b32",
            &["Instruction 'match' requires .target sm_70 or higher"] as &[&str],
        ),
        (
            "redux.sync.add.u32",
            &[
                "Feature 'redux' requires .target sm_80 or higher",
                "Feature 'redux' requires PTX ISA .version 7.0 or later",
            ],
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
            &[
                "Feature 'ldmatrix' requires .target sm_75 or higher",
                "Feature 'ldmatrix' requires PTX ISA .version 6.5 or later",
                "Feature '.m8n8' requires PTX ISA .version 6.5 or later",
                "Modifier '.m8n8' requires .target sm_75 or higher",
            ],
        ),
        (
            "cp.async.ca.shared.global",
            &[
                "Feature 'cp.async' requires PTX ISA .version 7.0 or later",
                "Feature 'cp.async' requires .target sm_80 or higher",
            ],
        ),
        (
            "add.bf16",
            &[
                "Feature '.bf16' requires .target sm_80 or higher",
                "Feature '.bf16' requires PTX ISA .version 7.0 or later",
                "Feature 'add.bf16' requires .target sm_90 or higher",
                "Feature 'add.bf16' requires PTX ISA .version 7.8 or later",
            ],
        ),
        (
            "add.f16",
            &["Feature 'f16 arithemetic and compare instructions' requires .target sm_53 or higher"],
        ),
        ("add.u32", &[]),
    ] {
        let form = super::find(opcode).expect(opcode);
        assert_eq!(
            super::unmet(&form, &form.candidates[0], opcode, 60, 30),
            expected,
            "{opcode}"
        );
    }
}
