//! The inputs of the examination that tests replace: the root folder, the environment variables, and properties of this
//! program.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The machine and program to examine. Tests make their own, with a folder of files in place of `/`.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The folder used as `/`.
    pub root: PathBuf,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// The width of this program's pointers in bits.
    pub bits: u32,
    /// True if this program contains the software driver.
    pub has_software: bool,
}

impl Surroundings {
    /// Returns the surroundings of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        Self {
            root: PathBuf::from("/"),
            variables: std::env::vars_os()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            bits: usize::BITS,
            has_software: cfg!(feature = "software"),
        }
    }

    /// Returns the value of a variable that is set and not empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns true if the root is this machine's own.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.root.as_os_str() == "/"
    }
}
