//! Every checked call, from the registry, against a library that writes down what reaches it: arguments arrive in the
//! right order and width, outputs come back, and a code becomes an error of the right function.
//!
//! The recorder is this process's default library, so these tests are a program of their own.

#[rustfmt::skip]
#[allow(non_snake_case, unused_imports)]
#[path = "generated/trials.rs"]
mod trials;

mod recorder;

use std::collections::BTreeSet;

use cuda_driver::checked;
use cuda_driver::sys::{CUresult, Function, StreamMode};
use recorder::Trial;
use trials::{SHARED, TRIALS};

/// The exports that must have a checked call: all but those that say their stream mode in the name, and those whose
/// device pointers have 32 bits, which CUDA 3.2 replaced.
fn expected() -> BTreeSet<&'static str> {
    let replaced = |function: Function| {
        function.is_legacy()
            && Function::by_symbol(&format!("{}_v2", function.name()))
                .is_some_and(|newer| newer.since() == 3020)
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
    let tried: BTreeSet<_> = TRIALS.iter().map(|(name, _)| *name).collect();
    assert_eq!(tried.len(), TRIALS.len(), "a trial is there twice");
    assert_eq!(tried, expected);
    assert_eq!(expected.len(), 538);
}

#[test]
fn arguments_arrive_and_outputs_come_back() {
    recorder::install();
    for (name, trial) in TRIALS {
        for present in [true, false] {
            trial(&mut Trial::new(name, present, None));
        }
    }
}

#[test]
fn empty_slices_are_null_and_empty_lists_asked_for_once() {
    recorder::install();
    for (name, trial) in TRIALS {
        trial(&mut Trial::empty(name));
    }
}

#[test]
fn what_nobody_writes_is_zero() {
    recorder::install();
    for (name, trial) in TRIALS {
        trial(&mut Trial::silent(name));
    }
}

#[test]
fn slices_that_share_a_count_are_of_one_length() {
    recorder::install();
    let mut tried = 0;
    for (name, trial) in TRIALS.iter().filter(|(name, _)| SHARED.contains(name)) {
        trial(&mut Trial::uneven(name));
        tried += 1;
    }
    assert_eq!(tried, SHARED.len());
    assert!(tried > 20, "{tried}");
}

#[test]
fn a_code_is_an_error_of_its_function() {
    recorder::install();
    for (name, trial) in TRIALS {
        for code in [1, 77_777] {
            trial(&mut Trial::new(name, true, Some(code)));
        }
    }
}

#[test]
fn a_list_that_no_memory_holds_is_refused() {
    recorder::install();
    for count in [u64::MAX, u64::MAX >> 4, 1 << 50] {
        let trial = Trial::new("cuGraphGetNodes", true, None);
        trial.says::<usize>(2, count);
        // SAFETY: the recorder follows no handle.
        let error = unsafe { checked::graph_get_nodes(std::ptr::null_mut()) }.unwrap_err();
        assert_eq!(error.code(), CUresult::CUDA_ERROR_OUT_OF_MEMORY, "{count}");
        assert_eq!(error.function(), Function::cuGraphGetNodes);
        let text = error.to_string();
        assert!(text.contains("out of host memory"), "{text}");
    }
}
