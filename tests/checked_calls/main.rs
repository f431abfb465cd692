//! Tests every checked call against a library that records its calls: arguments arrive in the right order and width,
//! outputs are returned, and an error code becomes an error of the right function.
//!
//! The recorder is this process's default library, so these tests are a program of their own.

mod directions;
mod enumeration;
mod padding;
mod recorder;
mod slots;
#[macro_use]
mod table;
mod trial;
#[rustfmt::skip]
#[path = "generated/trials.rs"]
mod trials;

use std::collections::BTreeSet;

use cuda_driver::checked;
use cuda_driver::sys::{CUresult, Function, StreamMode};
use trial::{Mode, Trial};
use trials::TRIALS;

/// Runs every trial in these modes.
fn run(modes: &[Mode]) {
    recorder::install();
    for case in TRIALS {
        for mode in modes {
            (case.run)(&mut Trial::new(case, *mode));
        }
    }
}

/// Returns the exports that must have a checked call: all except the per-thread twins and the exports that CUDA 3.2
/// replaced, nearly all because of their 32-bit device pointers and sizes.
fn expected() -> BTreeSet<&'static str> {
    let replaced = |function: Function| {
        function.is_legacy()
            && Function::by_symbol(&format!("{}_v2", function.name())).is_some_and(|newer| newer.since() == 3020)
    };
    Function::ALL
        .iter()
        .copied()
        .filter(|&function| function.stream_mode() != StreamMode::PerThread && !replaced(function))
        .map(Function::name)
        .collect()
}

#[test]
fn every_function_has_a_trial() {
    let expected = expected();
    let tried: BTreeSet<_> = TRIALS.iter().map(|case| case.symbol).collect();
    assert_eq!(tried.len(), TRIALS.len(), "an export has two trials");
    assert_eq!(tried, expected);
    assert_eq!(expected.len(), 538);
}

#[test]
fn every_parameter_has_a_word() {
    for case in TRIALS {
        let function = Function::by_symbol(case.symbol).expect("an exported function");
        let parameters = function.parameters();
        assert_eq!(case.words().len(), parameters.len(), "{}", case.symbol);
    }
}

#[test]
fn arguments_arrive_and_outputs_are_returned() {
    run(&[Mode::Full, Mode::Absent]);
}

#[test]
fn empty_slices_are_null_and_empty_lists_are_requested_once() {
    run(&[Mode::Empty]);
}

#[test]
fn unwritten_outputs_are_zero() {
    run(&[Mode::Silent]);
}

#[test]
fn slices_that_share_a_count_must_have_one_length() {
    recorder::install();
    let mut tried = 0;
    for case in TRIALS.iter().filter(|case| case.shares_lengths()) {
        (case.run)(&mut Trial::new(case, Mode::Uneven));
        tried += 1;
    }
    assert_eq!(tried, 30);
}

#[test]
fn a_code_is_an_error_of_its_function() {
    run(&[Mode::Failing(1), Mode::Failing(77_777)]);
}

#[test]
fn a_list_that_does_not_fit_in_memory_is_an_error() {
    recorder::install();
    let case = TRIALS.iter().find(|case| case.symbol == "cuGraphGetNodes");
    let case = case.expect("a trial");
    for count in [u64::MAX, u64::MAX >> 4, 1 << 50] {
        let trial = Trial::new(case, Mode::Full);
        trial.plan_count_of(2, count);
        // SAFETY: the recorder does not dereference handles.
        let error = unsafe { checked::graph_get_nodes(std::ptr::null_mut()) }.unwrap_err();
        assert_eq!(error.code(), CUresult::CUDA_ERROR_OUT_OF_MEMORY, "{count}");
        assert_eq!(error.function(), Function::cuGraphGetNodes);
        let text = error.to_string();
        assert!(text.contains("out of host memory"), "{text}");
    }
}
