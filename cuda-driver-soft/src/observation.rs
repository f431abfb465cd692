//! Collects the observers of a launch: profiles and checks of the process and of the calling thread, and stops.

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
