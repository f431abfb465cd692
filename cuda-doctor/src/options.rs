//! Parses the command line.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use cuda_doctor::Task;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Explains why CUDA does or does not work on this machine.

Usage: cuda-doctor [--json] [--timeout SECONDS]

  --json             print the report as JSON
  --timeout SECONDS  give the driver, and then the test kernel on each device, this long (1 to 86400, default 60)
  --help, --version

The report covers the search for the driver's library, the driver and its devices, device nodes and permissions, containers,
and environment variables. A test kernel runs on each device. The driver is called in child processes, so that a crash or a
hang is part of the report. The last line says what to do.

Exit code:
  0  a GPU works: the test kernel gave correct results on each device that the driver shows
  1  there is no GPU to use: no driver, or no device
  2  something is broken, or an option is wrong

The software driver is not a GPU. If the search finds it, the exit code is 1. If you choose it, with CUDA_DRIVER=software, or
with its path in CUDA_DRIVER or CUDA_DRIVER_LIBRARY, the exit code is 0 if the test kernel gives correct results. A CI job
without a GPU can therefore run `CUDA_DRIVER=software soft-cuda run cuda-doctor`.

If you run this program as root, NVIDIA's driver may load its kernel module and make device nodes.";

/// The option with the task of a child process. Users do not need it.
pub(crate) const TASK: &str = "--task";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Options {
    Help,
    Version,
    Report { json: bool, timeout: Duration },
    Task(Task),
}

/// An invalid command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OptionError {
    Unknown(String),
    NoValue(&'static str),
    NotSeconds(String),
    NotATask(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(option) => write!(f, "unknown option {option}; see --help"),
            Self::NoValue(option) => write!(f, "{option} needs a value"),
            Self::NotSeconds(value) => {
                write!(f, "--timeout {value}: give a whole number of seconds from 1 to 86400")
            }
            Self::NotATask(reason) => write!(f, "{TASK} is for this program's own use: {reason}"),
        }
    }
}

impl std::error::Error for OptionError {}

/// Parses the arguments after the program's name.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, OptionError> {
    let mut arguments = arguments
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned());
    let (mut json, mut timeout) = (false, DEFAULT_TIMEOUT);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(Options::Help),
            "--version" | "-V" => return Ok(Options::Version),
            "--json" => json = true,
            "--timeout" => timeout = seconds(arguments.next().ok_or(OptionError::NoValue("--timeout"))?)?,
            TASK => {
                let text = arguments.next().ok_or(OptionError::NoValue(TASK))?;
                let task = serde_json::from_str(&text);
                return task
                    .map(Options::Task)
                    .map_err(|error| OptionError::NotATask(error.to_string()));
            }
            _ => return Err(OptionError::Unknown(argument)),
        }
    }
    Ok(Options::Report { json, timeout })
}

fn seconds(text: String) -> Result<Duration, OptionError> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(OptionError::NotSeconds(text)),
    }
}
