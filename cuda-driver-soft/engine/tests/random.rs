//! Random kernels, which must have the same results in the interpreter and as machine code. The example
//! `random_kernels` runs any number of them.

#[path = "../examples/random_kernels/generate.rs"]
mod generate;
#[path = "../../../tests/common/needs.rs"]
mod needs;
#[path = "../examples/random_kernels/operations.rs"]
mod operations;
#[path = "../examples/random_kernels/reduce.rs"]
mod reduce;
#[path = "../examples/random_kernels/run.rs"]
mod run;
#[path = "../examples/random_kernels/text.rs"]
mod text;
#[path = "../examples/random_kernels/tree.rs"]
mod tree;

use cuda_driver_soft_engine::Engine;
use run::{End, Tier};
use tree::Statement;

#[test]
fn random_kernels_have_one_result() {
    let tiers = Tier::all();
    if !tiers.iter().any(|tier| tier.engine != Engine::Interpreter) {
        needs::needs("a CPU for which kernels are compiled");
    }
    let mut ends = Vec::new();
    for seed in 0..80 {
        let kernel = generate::kernel(seed);
        match run::compare(&kernel, &tiers) {
            Ok(end) => ends.push(end),
            Err(difference) => panic!("seed {seed}: {difference}\n{}", text::ptx(&kernel)),
        }
    }
    // Most kernels run to their end, and some do not.
    let faults = ends.iter().filter(|end| **end == End::Faulted).count();
    assert!((1..30).contains(&faults), "{faults} of {} kernels faulted", ends.len());
}

#[test]
fn kernels_are_the_same_for_the_same_seed() {
    let (kernel, again, other) = (generate::kernel(5), generate::kernel(5), generate::kernel(6));
    assert_eq!(kernel, again);
    assert_ne!(kernel, other);
    assert!(kernel.size() > 5);
}

#[test]
fn reduction_keeps_only_what_the_property_needs() {
    let stores = |statements: &[Statement]| {
        fn count(statements: &[Statement]) -> usize {
            let each = |statement: &Statement| match statement {
                Statement::Store { .. } => 1,
                Statement::If { then, other, .. } => count(then) + count(other),
                Statement::Loop { body, .. } => count(body),
                Statement::Switch { cases, .. } => cases.iter().map(|case| count(case)).sum(),
                _ => 0,
            };
            statements.iter().map(each).sum()
        }
        count(statements)
    };
    let seed = (0..)
        .find(|seed| stores(&generate::kernel(*seed).body) >= 3)
        .unwrap_or_default();
    let small = reduce::reduce(generate::kernel(seed), |kernel| stores(&kernel.body) >= 3);
    assert_eq!((small.size(), small.grid, stores(&small.body)), (3, 1, 3));
}
