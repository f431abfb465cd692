//! Compares the PTX versions and architectures that instructions require with those of ptxas. No verdicts are stored:
//! the test
//! needs `PTXAS`.

use super::{forms, referee};
use ptx::{Sample, samples};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

/// The lowest PTX version, times ten, with which each architecture is tested. It is the version that introduced the
/// architecture; ptxas also accepts lower ones for some.
const FIRST: &[(u32, u32)] = &[
    (20, 20),
    (30, 30),
    (32, 40),
    (35, 31),
    (50, 40),
    (53, 42),
    (60, 50),
    (61, 50),
    (70, 60),
    (72, 61),
    (75, 63),
    (80, 70),
    (86, 71),
    (89, 78),
    (90, 78),
];

/// Every PTX version, times ten.
const VERSIONS: &[u32] = &[
    20, 21, 22, 23, 30, 31, 32, 40, 41, 42, 43, 50, 60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81,
    82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95,
];

/// Returns samples in which each modifier and each number of operands of a row occurs.
fn few_samples() -> Vec<Sample> {
    let mut seen = HashSet::new();
    let mut few = samples();
    few.retain(|sample| {
        let operands = sample.text.matches(',').count();
        let words = sample.opcode.split('.').map(str::to_owned);
        words
            .filter(|word| seen.insert((sample.row, operands, word.clone())))
            .count()
            > 0
    });
    few
}

/// Returns the pairs of a PTX version and an architecture that are compared: each version with the last three
/// architectures that it has, and each architecture with the last version.
fn pairs() -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for &version in VERSIONS {
        let mut known = FIRST.iter().filter(|(_, first)| *first <= version).map(|(sm, _)| *sm);
        pairs.extend(known.next_back().map(|sm| (version, sm)));
        pairs.extend(known.rev().take(2).map(|sm| (version, sm)));
    }
    pairs.extend(FIRST.iter().map(|(sm, _)| (95, *sm)));
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Returns, for each instruction, true if ptxas accepts it. ptxas stops at an unknown word: then it is asked again
/// without that line.
fn accepted_by_ptxas(ptxas: &PathBuf, head: &str, texts: &[String]) -> Vec<bool> {
    let before = head.matches('\n').count();
    let mut left = texts.to_vec();
    let mut accepted = vec![true; texts.len()];
    loop {
        let text = format!("{head}{}\nno_such_instruction;\n}}\n", left.join("\n"));
        let verdict = referee::theirs(ptxas, "requirements", &text);
        let lines = verdict
            .keys()
            .filter_map(|line| (*line as usize).checked_sub(before + 1));
        let last = lines.clone().next_back();
        for line in lines.filter(|line| *line < texts.len()) {
            accepted[line] = false;
        }
        match last.and_then(|line| left.get_mut(line)) {
            Some(text) if !text.is_empty() => text.clear(),
            _ => return accepted,
        }
    }
}

#[test]
#[ignore = "needs PTXAS, the path of NVIDIA's assembler"]
fn requirements_are_those_of_ptxas() {
    let ptxas = referee::ptxas("requirements").expect("PTXAS is set");
    let mut wrong = String::new();
    let few = few_samples();
    for (version, sm) in pairs() {
        let wide = if version >= 83 { Sample::WIDE_REGISTERS } else { "" };
        let head = format!(
            ".version {}.{}\n.target sm_{sm}\n.address_size 64\n.entry k() {{ {} {wide}\n",
            version / 10,
            version % 10,
            Sample::REGISTERS
        );
        let head = if version < 23 {
            head.replace(".address_size 64", "")
        } else {
            head
        };
        let texts: Vec<String> = few
            .iter()
            .filter(|s| version >= 83 || !s.text.contains("%q"))
            .map(|s| s.text.clone())
            .collect();
        let ours = forms::accepted_lines(&head, &texts, referee::ours);
        let theirs = accepted_by_ptxas(&ptxas, &head, &texts);
        for ((text, ours), theirs) in texts.iter().zip(ours).zip(theirs) {
            if ours != theirs {
                let _ = writeln!(wrong, "{version} sm_{sm}: ptxas {theirs}, loader {ours}: {text}");
            }
        }
    }
    println!("{} instructions", few.len());
    assert!(wrong.is_empty(), "{wrong}");
}
