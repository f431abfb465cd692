//! The choice of the driver to examine, by environment variables or the system's search order.

use serde::{Deserialize, Serialize};

/// The driver to examine, and the reason for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The system's driver, found in the loader's search order.
    #[default]
    Search,
    /// A file that an environment variable names.
    Named {
        /// The variable.
        variable: String,
        /// Its value.
        path: String,
    },
    /// The software driver, chosen by `CUDA_DRIVER=software`.
    Software,
}
