//! `cuda-doctor`: explains why CUDA does or does not work on this machine.

mod options;

use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::time::Duration;

use cuda_doctor::{Prober, Surroundings, Task, diagnose, examine, gather, json, open, text};
use options::{HELP, Options, TASK};

/// The exit code for an invalid command line, and for a report that cannot be made or written; the same as for
/// something broken.
const BROKEN: u8 = 2;

fn main() -> ExitCode {
    let done = match options::parse(std::env::args_os().skip(1)) {
        Ok(Options::Help) => print(HELP),
        Ok(Options::Version) => print(concat!("cuda-doctor ", env!("CARGO_PKG_VERSION"))),
        Ok(Options::Task(task)) => {
            examine(&task, &open, &mut io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Ok(Options::Report { json, timeout }) => report(json, timeout),
        Err(error) => Err(io::Error::other(error)),
    };
    done.unwrap_or_else(|error| {
        // Standard error may be closed.
        _ = writeln!(io::stderr(), "cuda-doctor: {error}");
        ExitCode::from(BROKEN)
    })
}

fn print(text: &str) -> io::Result<ExitCode> {
    writeln!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

fn report(as_json: bool, timeout: Duration) -> io::Result<ExitCode> {
    let prober = Prober::new(timeout, command);
    let findings = gather(&Surroundings::of_process(), &prober);
    let diagnosis = diagnose(&findings);
    let report = if as_json {
        let report = json(&findings, &diagnosis)?;
        report + "\n"
    } else {
        text(&findings, &diagnosis)
    };
    io::stdout().write_all(report.as_bytes())?;
    Ok(ExitCode::from(diagnosis.exit_code))
}

/// Returns the command that performs a task in another process of this program.
fn command(task: &Task) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(TASK).arg(serde_json::to_string(task)?);
    Ok(command)
}
