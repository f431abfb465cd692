//! Chooses the driver to examine.

use cuda_driver::sys::library::is_privileged;

use super::surroundings::Surroundings;
use crate::findings::Choice;

/// Chooses by `CUDA_DRIVER`, then by `CUDA_DRIVER_LIBRARY`, then by the system's search order. `CUDA_DRIVER=software`
/// is skipped if this program does not contain the software driver. In a privileged process, a variable that names a
/// library file is ignored.
///
/// Other programs may choose differently: a program that contains the software driver may use it if `CUDA_DRIVER` is
/// unset, and a program without it need not read `CUDA_DRIVER`.
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
