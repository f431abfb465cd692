//! Everything observed on a machine. The diagnosis depends on nothing else, and the JSON report contains all
//! of it.
#![forbid(unsafe_code)]

mod choice;
mod driver;
mod kernel_run;
mod library_file;
mod node;
mod process;
mod system;

use serde::{Deserialize, Serialize};

pub use choice::Choice;
pub use driver::{Attempt, AttemptResult, CallFailure, Device, Driver, DriverLibrary, LibraryKind, MissingFunctions};
pub use kernel_run::{KernelResult, KernelRun};
pub use library_file::{Elf, LibraryFile, LibraryRole};
pub use node::{Access, Node};
pub use process::{Ending, Process, User, Variable};
pub use system::{Container, Gpu, KernelModule, System};

/// The observations on one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// This process and its user.
    pub process: Process,
    /// Kernel modules, GPUs on the PCI bus, the container, WSL and the Jetson board.
    pub system: System,
    /// The environment variables that are set and affect CUDA programs.
    pub variables: Vec<Variable>,
    /// Device nodes of GPUs, which NVIDIA's kernel modules or WSL create.
    pub nodes: Vec<Node>,
    /// Files of driver libraries and toolkit stubs, on the search path or not.
    pub library_files: Vec<LibraryFile>,
    /// The choice of the driver to examine.
    pub choice: Choice,
    /// The driver, as far as it could be examined.
    pub driver: Driver,
    /// The end of the process that examined the driver.
    pub driver_ending: Ending,
    /// The test kernel's run on each device.
    pub kernel_runs: Vec<KernelRun>,
}

impl Findings {
    /// Returns the value of one of [`variables`](Self::variables); `None` if it is not among them or is empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|variable| variable.name == name)?;
        Some(found.value.as_str()).filter(|value| !value.is_empty())
    }
}
