//! Compares the directions of the parameters with those in NVIDIA's Python bindings, which `cargo xtask directions`
//! recorded.

use std::collections::{BTreeMap, BTreeSet};

use cuda_driver::sys::Function;

use crate::trials::TRIALS;

/// The directions in NVIDIA's bindings: a line per function, a word per parameter.
const THEIRS: &str = include_str!("../../cuda-driver-sys/api/directions.txt");

/// The differences, with their reasons.
const EXPLAINED: &str = include_str!("../../cuda-driver-sys/api/python-differences.toml");

/// Returns the direction that a word of the table stands for; `None` for a count, which is not compared: a checked
/// call computes it from the array, or asks the driver for it.
fn direction(word: &str) -> Option<&'static str> {
    let word = word.trim_end_matches('?');
    Some(match word.split('[').next().unwrap_or(word) {
        "count" | "counted" => return None,
        "value" | "length" | "truth" | "in" | "str" | "bytes" => "in",
        "out" | "bool" | "text" | "string" | "vec" | "list" | "copied" => "out",
        "inout" => "inout",
        "buf" | "chars" => "buf",
        "raw" => "raw",
        other => panic!("the table has the unknown word {other}"),
    })
}

/// Returns the explained differences: function, parameter, our direction and theirs.
fn explained() -> BTreeSet<[String; 4]> {
    let lines = EXPLAINED.lines().filter(|line| line.contains("function ="));
    lines
        .map(|line| {
            let mut values = line.split('"').skip(1).step_by(2).map(str::to_owned);
            std::array::from_fn(|_| values.next().expect("four values"))
        })
        .collect()
}

#[test]
fn directions_are_those_of_nvidia() {
    let lines = THEIRS.lines().filter(|line| !line.starts_with('#'));
    let theirs: BTreeMap<&str, Vec<&str>> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(symbol, words)| (symbol, words.split_whitespace().collect()))
        .collect();
    assert_eq!(theirs.len(), 492);
    let mut differences = BTreeSet::new();
    for (symbol, theirs) in theirs {
        let case = TRIALS.iter().find(|case| case.symbol == symbol);
        let words = case.unwrap_or_else(|| panic!("{symbol} has no trial")).words();
        assert_eq!(words.len(), theirs.len(), "{symbol}");
        let function = Function::by_symbol(symbol).expect("an exported function");
        for (index, (word, theirs)) in words.iter().zip(theirs).enumerate() {
            let Some(ours) = direction(word) else {
                continue;
            };
            // Python takes the address of memory that the caller provides.
            let same = ours == theirs || (theirs == "in" && ["raw", "buf"].contains(&ours));
            if !same {
                let name = function.parameters()[index].name();
                differences.insert([symbol, name, ours, theirs].map(str::to_owned));
            }
        }
    }
    let explained = explained();
    let found: Vec<_> = differences.difference(&explained).collect();
    let gone: Vec<_> = explained.difference(&differences).collect();
    assert!(
        found.is_empty() && gone.is_empty(),
        "python-differences.toml does not explain {found:#?}, and explains {gone:#?}, which do not differ"
    );
}
