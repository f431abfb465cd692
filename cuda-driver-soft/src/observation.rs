//! Collects the observers of a launch: the profiles of the process and of the calling thread, the checkers, and the
//! stop that `CUDA_SOFT_STOP_AT` requests.

use engine::Observers;
use engine::check::Checker;

use crate::{profile, stop};

/// Returns the observers of a launch that the calling thread makes, including those of these checkers.
pub(crate) fn observers(checkers: &[Checker]) -> Observers {
    let mut observers = profile::observers();
    observers.add(stop::observers());
    for checker in checkers {
        observers.add(checker.observers());
    }
    observers
}
