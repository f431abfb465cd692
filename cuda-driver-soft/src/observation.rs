//! The observers of launches: all that the environment or the calling thread asks for.

use engine::Observers;

use crate::profile;

/// Returns the observers of a launch that the calling thread makes.
pub(crate) fn observers() -> Observers {
    profile::observers()
}
