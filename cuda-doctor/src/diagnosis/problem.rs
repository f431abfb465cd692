//! The types of the diagnosis: its verdict, and problems with their cause, severity and advice.

use serde::Serialize;

/// The conclusions from the findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The overall result.
    pub verdict: Verdict,
    /// The program's exit code for this verdict.
    pub exit_code: u8,
    /// Problems and notes, the worst first.
    pub problems: Vec<Problem>,
    /// The next step, in a sentence or two.
    pub advice: String,
}

/// The overall result: CUDA works, there is no GPU, or something is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The driver that was chosen works: the test kernel gave correct results on each device.
    Works,
    /// There is no GPU to use.
    NoGpu,
    /// Something is broken: the driver, a GPU, this program or a setting.
    Broken,
}

impl Verdict {
    /// Returns the exit code of the program.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Works => 0,
            Self::NoGpu => 1,
            Self::Broken => 2,
        }
    }
}

/// A problem or a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind of problem, for programs that read the report.
    pub cause: Cause,
    /// Its severity.
    pub severity: Severity,
    /// The problem in a sentence or two.
    pub text: String,
    /// The remedy; empty if there is nothing to do.
    pub advice: String,
}

impl Problem {
    pub(super) fn new(cause: Cause, severity: Severity, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            cause,
            severity,
            text: text.into(),
            advice: advice.into(),
        }
    }
}

/// The severity of a problem. The variants are in order from the worst on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something is broken.
    Broken,
    /// There is no GPU to use.
    NoGpu,
    /// Worth knowing; nothing is broken.
    Note,
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// This is a 32-bit program, or the only driver library is for 32-bit programs.
    ThirtyTwoBit,
    /// The driver's library is for another processor.
    OtherProcessor,
    /// NVIDIA has no CUDA driver for this operating system.
    UnsupportedSystem,
    /// No driver library is installed.
    NoDriver,
    /// Only a toolkit's stub library is installed.
    StubOnly,
    /// A toolkit's stub library is found instead of the driver's library.
    StubFirst,
    /// The file that an environment variable names cannot be loaded or is not a driver.
    NamedLibrary,
    /// A driver library is installed where the loader does not look.
    NotSearched,
    /// A driver library was found, and the system cannot load it.
    NotLoadable,
    /// The container was started without the driver or without devices.
    Container,
    /// The versions of the kernel module and the library differ, or this GPU does not support the forward compatibility
    /// library.
    VersionMismatch,
    /// The driver's CUDA version is older than the oldest one that `cuda-driver` is made for.
    TooOld,
    /// This user is not allowed to open the device nodes.
    Permissions,
    /// NVIDIA's kernel module is not loaded.
    NoKernelModule,
    /// The driver shows no device.
    NoDevice,
    /// `CUDA_VISIBLE_DEVICES` hides the devices.
    HiddenDevices,
    /// `cuInit`, or listing the devices, failed for a reason that no other cause describes.
    Initialisation,
    /// The driver crashed or did not answer, or the process that examines it could not be started.
    Crash,
    /// The test kernel failed, stored wrong values, or gave no result.
    Kernel,
    /// The driver is the software driver, which runs kernels on the CPU.
    SoftwareDriver,
    /// The library lacks functions of its CUDA version or an earlier one.
    IncompleteLibrary,
    /// An environment variable has no effect, or its value is invalid.
    Variable,
}
