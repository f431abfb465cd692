//! Findings about one run of the test kernel.

use serde::{Deserialize, Serialize};

use super::driver::CallFailure;
use super::process::Ending;

/// The test kernel's run on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRun {
    /// The device's number.
    pub ordinal: u32,
    /// The result; `None` if the process did not start, or ended before there was one.
    pub result: Option<KernelResult>,
    /// The end of the process that ran it.
    pub ending: Ending,
}

/// The result of the test kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelResult {
    /// All values are correct.
    Correct,
    /// A value is wrong.
    Wrong {
        /// The index of the first wrong value.
        index: u32,
        /// The value that the kernel should have stored.
        expected: u32,
        /// The value found.
        actual: u32,
    },
    /// The driver could not be loaded, or a call failed.
    Failed(CallFailure),
}

impl KernelRun {
    /// Returns true if the kernel's results are correct and the process that ran it ended without an error.
    #[must_use]
    pub fn is_correct(&self) -> bool {
        self.result == Some(KernelResult::Correct) && self.ending == Ending::Completed
    }
}
