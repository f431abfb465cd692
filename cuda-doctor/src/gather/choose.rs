//! Chooses the driver to examine.

use cuda_driver::sys::library::is_privileged;

use super::surroundings::Surroundings;
use crate::findings::Choice;

/// Chooses as programs do: `CUDA_DRIVER` decides for programs that support both drivers, then `CUDA_DRIVER_LIBRARY`,
/// then the search. A privileged process ignores paths in variables.
pub(super) fn choose(surroundings: &Surroundings) -> Choice {
    let named = |variable: &str, path: &str| Choice::Named {
        variable: variable.to_owned(),
        path: path.to_owned(),
    };
    match surroundings.variable("CUDA_DRIVER") {
        Some("software") if surroundings.has_software => return Choice::Software,
        None | Some("software" | "system") => {}
        Some(path) if !is_privileged() => return named("CUDA_DRIVER", path),
        Some(_) => {}
    }
    match surroundings.variable("CUDA_DRIVER_LIBRARY") {
        Some(path) if !is_privileged() => named("CUDA_DRIVER_LIBRARY", path),
        _ => Choice::Search,
    }
}
