//! The conditions for loading a module: newest PTX version, architecture, unresolved names, number of threads.

/// Conditions for loading a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Newest supported `.version`, as major and minor.
    pub max_version: (u32, u32),
    /// Architecture of the device: 90 for `sm_90`.
    pub sm: u32,
    /// True if the module will be linked with others, which may define the functions and variables that it only
    /// declares.
    pub unresolved: bool,
    /// Number of threads that may check the functions of a long text. The result does not depend on it.
    pub threads: usize,
}

impl Default for Limits {
    /// PTX 9.5 on `sm_90`, without unresolved names, on one thread.
    fn default() -> Self {
        Limits {
            max_version: (9, 5),
            sm: 90,
            unresolved: false,
            threads: 1,
        }
    }
}
