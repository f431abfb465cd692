//! Tests of the scalar semantics against fingerprints of a GPU's results, over a sample of operands. A form is an
//! instruction with one set of modifiers. The example `referee` runs all forms on a GPU; with `--record`, it wrote
//! `recorded/h200.txt`, which has the forms whose results must be the same.

// The example uses the whole module, this test only the forms and their operands.
#[allow(dead_code)]
#[path = "../examples/referee/forms/mod.rs"]
mod forms;
#[path = "../../../tests/common/needs.rs"]
mod needs;
#[path = "../src/semantics/tests/random.rs"]
mod random;

use forms::form::{self, Expect, Form, OperandKind, STRIDE};
use std::collections::HashMap;

/// The number of forms in the file.
const RECORDED: usize = 1484;

#[test]
fn results_match_the_gpus() {
    let mut forms: HashMap<String, Form> = forms::all()
        .into_iter()
        .filter(|form| form.expect == Expect::Same)
        .map(|form| (form.text.clone(), form))
        .collect();
    let mut operands: HashMap<OperandKind, Vec<[u64; 3]>> = HashMap::new();
    let (mut equal, mut wrong) = (0, Vec::new());
    for line in include_str!("recorded/h200.txt").lines() {
        let Some((hash, text)) = line.split_once(' ').filter(|(hash, _)| *hash != "#") else {
            continue;
        };
        let form = forms
            .remove(text)
            .unwrap_or_else(|| panic!("recorded twice, or not a form that has to be exact: {text}"));
        let sample = operands.entry(form.kind).or_insert_with(|| {
            let all = form::operands(form.kind);
            all.into_iter().step_by(STRIDE).collect()
        });
        let results = sample.iter().map(|&[a, b, c]| (form.eval)(a, b, c));
        if format!("{:016x}", form::hash(results)) == hash {
            equal += 1;
        } else {
            wrong.push(text);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} forms differ from the GPU's results: {wrong:#?}",
        wrong.len()
    );
    assert_eq!(
        equal, RECORDED,
        "the number of forms in the file has changed: update `RECORDED` if that is intended"
    );
    for text in forms.keys() {
        needs::needs(&format!("a GPU to record the results of {text}"));
    }
}
