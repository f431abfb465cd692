//! The options of `soft-cuda run`. Each sets environment variables of the driver.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

/// The environment variable that names the file of the trace.
pub(crate) const TRACE: &str = "CUDA_SOFT_TRACE";

/// The environment variable that names the file of the profile, or is `1` for a table.
const PROFILE: &str = "CUDA_SOFT_PROFILE";

/// The environment variable with the list of checks.
pub(crate) const CHECK: &str = "CUDA_SOFT_CHECK";

/// The environment variable that names the file of the findings.
pub(crate) const REPORT: &str = "CUDA_SOFT_CHECK_REPORT";

/// The valid names in a list of checks: the five checks, then `all`.
const CHECKS: [&str; 6] = ["memory", "init", "race", "sync", "leaks", "all"];

/// A program with its arguments and the environment variables to set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) variables: Vec<(&'static str, OsString)>,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// Parses the arguments of `run`. The options end at `--`, or at the first argument that does not begin with `--`.
///
/// # Errors
/// Returns a message for an unknown option or check, an option that is not Unicode, an option without its value,
/// `--report` without `--check`, a path that cannot be made absolute, and a missing program.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Run, String> {
    let mut arguments = arguments.into_iter();
    let mut run = Run::default();
    loop {
        let Some(argument) = arguments.next() else {
            return Err("the command `run` needs a program".into());
        };
        if !argument.as_encoded_bytes().starts_with(b"--") {
            run.program = argument;
            break;
        }
        let Some(option) = argument.to_str() else {
            return Err(format!(
                "the option `{}` is not Unicode: give its value as an argument of its own",
                argument.display()
            ));
        };
        let (name, given) = match option.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (option, None),
        };
        let mut value = || {
            let value = given
                .clone()
                .or_else(|| arguments.next())
                .filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("the option `{name}` needs a value"))
        };
        match name {
            "--" if given.is_none() => {
                run.program = arguments.next().ok_or("the command `run` needs a program")?;
                break;
            }
            // Paths are made absolute, because the program may change its working folder.
            "--trace" => run.variables.push((TRACE, absolute(&value()?)?)),
            "--profile" if given.is_none() => run.variables.push((PROFILE, "1".into())),
            "--profile" => run.variables.push((PROFILE, absolute(&value()?)?)),
            "--log" if given.is_none() => run.variables.push(("CUDA_SOFT_LOG", "1".into())),
            "--registers" if given.is_none() => {
                let names = ["CUDA_SOFT_LOG", "CUDA_SOFT_REGISTERS"];
                run.variables.extend(names.map(|name| (name, "1".into())));
            }
            "--stop-at" => run.variables.push(("CUDA_SOFT_STOP_AT", value()?)),
            "--check" => run.variables.push((CHECK, value()?)),
            "--report" => run.variables.push((REPORT, absolute(&value()?)?)),
            "--summary" if given.is_none() => run.variables.push(("CUDA_SOFT_SUMMARY", "1".into())),
            _ => return Err(format!("unknown option `{option}`")),
        }
    }
    run.arguments = arguments.collect();
    let checks = run.variable(CHECK).map(OsStr::to_string_lossy);
    match checks {
        Some(checks) => {
            let unknown = checks.split(',').find(|name| !CHECKS.contains(&name.trim()));
            if let Some(name) = unknown {
                return Err(format!(
                    "`{name}` is not a check: use {} or all",
                    CHECKS[..5].join(", ")
                ));
            }
        }
        None if run.variable(REPORT).is_some() => return Err("the option `--report` needs `--check`".into()),
        None => {}
    }
    Ok(run)
}

/// Returns the absolute path of a file.
fn absolute(file: &OsStr) -> Result<OsString, String> {
    let whole = std::path::absolute(file);
    let whole = whole.map_err(|error| format!("cannot make {} absolute: {error}", file.display()))?;
    Ok(whole.into())
}

impl Run {
    /// Returns the value of a variable that the options set.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().rfind(|(of, _)| *of == name);
        found.map(|(_, value)| value.as_os_str())
    }
}

/// Creates the file of the trace with an event that names the program. The processes of the program append their
/// events.
///
/// # Errors
/// Returns a message that names the file if it cannot be written.
pub(crate) fn begin_trace(file: &Path, program: &OsStr) -> Result<(), String> {
    let name: String = program.to_string_lossy().chars().filter(|c| !c.is_control()).collect();
    let name = name.replace('\\', "/").replace('"', "'");
    let begin =
        format!("[\n{{\"name\":\"program\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{{\"name\":\"{name}\"}}}}");
    let written = std::fs::File::create(file).and_then(|mut file| file.write_all(begin.as_bytes()));
    written.map_err(|error| format!("cannot write the trace to {}: {error}", file.display()))
}
