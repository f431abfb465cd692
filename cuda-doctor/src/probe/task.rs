//! The tasks of child processes: describe a driver, or run the test kernel on a device.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A task for a child process, which receives it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Load the driver and describe it.
    Driver {
        /// The places to look for it, in order.
        places: Vec<Place>,
        /// True if the user named the place, so that a stub there is not passed over.
        is_named: bool,
    },
    /// Run the test kernel on a device.
    Kernel {
        /// The place of the driver.
        place: Place,
        /// The device's number.
        ordinal: u32,
    },
}

/// A place to load a driver from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A path, or a file name for the system's loader.
    File(String),
    /// The software driver in this program.
    Software,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Software => f.write_str("software"),
        }
    }
}
