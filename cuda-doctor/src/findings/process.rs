//! Findings about this process: its user, its environment variables, and the end of each child process.

use serde::{Deserialize, Serialize};

/// This process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// 32 or 64: the width of its pointers.
    pub bits: u32,
    /// The operating system it was built for.
    pub os: String,
    /// The processor it was built for.
    pub architecture: String,
    /// Its user; `None` if the system does not report one.
    pub user: Option<User>,
    /// True if it is privileged, so that environment variables that name a library are ignored.
    pub is_privileged: bool,
}

/// The identity that permissions are checked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user's number.
    pub id: u32,
    /// The numbers of its groups.
    pub groups: Vec<u32>,
    /// True if the process may ignore permission bits.
    pub overrides_permissions: bool,
}

/// An environment variable that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its effect on CUDA programs.
    pub effect: String,
}

/// The end of a child process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was not started, because this program cannot load a driver.
    #[default]
    NotNeeded,
    /// It finished its task.
    Completed,
    /// It did not finish in time and was killed.
    TimedOut {
        /// The step that did not end.
        step: String,
        /// The limit in seconds.
        seconds: u64,
    },
    /// It ended before it finished its task, or ended with an error after it.
    Crashed {
        /// The step in which it ended.
        step: String,
        /// The signal or exit code.
        status: String,
        /// The end of its standard error.
        output: String,
    },
    /// It could not be started.
    NotStarted {
        /// The system's message.
        message: String,
    },
}
