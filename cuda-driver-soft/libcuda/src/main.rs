//! `soft-cuda run [OPTIONS] PROGRAM [ARGUMENTS]`: runs a program on the software driver.

mod options;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use options::Run;

const USAGE: &str = "\
soft-cuda run [OPTIONS] PROGRAM [ARGUMENTS]   runs a program on the software CUDA driver
soft-cuda path                                prints the folder that holds the driver, libcuda.so.1
soft-cuda --version

Options of `run`:
  --log          logs why calls fail, and where kernels raise a fault: source line, calls, other lanes of the warp
  --registers    as --log, with the registers of the thread that raised the fault
  --stop-at LINE reports threads that are about to run a line: kernel.cu:12 for the first lane of each warp of the first
                 block, kernel.cu:12,block=1.0.0,thread=3.0.0 for one thread, ptx:40 for a line of the PTX
  --trace FILE   records calls, kernels, copies and host functions; https://ui.perfetto.dev opens the file
  --profile      counts what each kernel does, and prints a table when the program exits
  --profile=FILE writes the counts to a file instead: as HTML with the annotated source for *.html, as JSON for *.json
  --check LIST   runs checks: a comma-separated list of memory, init, race, sync and leaks, or all; with findings, the
                 exit status is 1 instead of 0
  --report FILE  also writes the findings of the checks to a file, one JSON object per line
  --summary      prints totals of calls, kernels and copies, and unsupported calls, when the program exits

The program finds the driver through LD_LIBRARY_PATH; nothing is installed or changed on the system.
CUDA_SOFT_LOG=1 makes the driver log why calls fail. CUDA_SOFT_SLACK=512 lets kernels access up to 512 bytes past the
end of an allocation, or of shared or local memory, where a GPU might not fault either.";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let result = match command.to_str() {
        Some("run") => run(arguments.collect()),
        Some("path") => folder().map(|folder| {
            println!("{}", folder.display());
            ExitCode::SUCCESS
        }),
        Some("--version" | "-V") => {
            println!("soft-cuda {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
        Some("--help" | "-h" | "help") => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(format!("unknown command `{}`\n{USAGE}", command.display())),
    };
    result.unwrap_or_else(|error| {
        eprintln!("soft-cuda: {error}");
        ExitCode::from(2)
    })
}

/// The names of the library that programs look for. Installers of GPU drivers also create `libcuda.so`, so programs
/// that call `dlopen` may look for that name.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Returns a folder that contains the driver under the first of [`NAMES`], and nothing else but the second. To an
/// installed folder, this adds a link for the second name if it is missing and the folder can be changed. For a build,
/// the folder is created, with a link for each name.
fn folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find the path of soft-cuda: {error}"))?;
    let program = program.canonicalize().unwrap_or(program);
    let beside = program.parent().ok_or("the path of soft-cuda has no parent folder")?;
    let installed = beside.join("../lib/soft-cuda");
    let [first, second] = NAMES.map(|name| installed.join(name));
    if first.is_file() {
        if !second.exists() {
            // The folder may be read-only. Most programs look for the first name.
            _ = link(Path::new(NAMES[0]), &second);
        }
        return Ok(installed);
    }
    // Cargo puts the library next to this program, or in `deps` for tests.
    let built = [beside.join("libcuda.so"), beside.join("deps/libcuda.so")];
    let newest = built
        .iter()
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max();
    let (_, library) = newest.ok_or_else(|| {
        format!(
            "no driver in {} or {}: build it with `cargo build -p cuda-driver-soft-libcuda`. `cargo install` installs no \
             libraries; after it, make {} a link to {}, and copy the `libcuda.so` of a build to {}",
            beside.display(),
            installed.display(),
            second.display(),
            NAMES[0],
            first.display()
        )
    })?;
    let folder = beside.join("soft-cuda-lib");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    for name in NAMES {
        let place = folder.join(name);
        if std::fs::read_link(&place).ok().as_deref() != Some(library.as_path()) {
            link(library, &place)?;
        }
    }
    Ok(folder)
}

/// Makes `place` a link to `library`, which is absolute or relative to the folder of `place`.
fn link(library: &Path, place: &Path) -> Result<(), String> {
    replace(library, place).map_err(|error| {
        format!(
            "cannot create {}, a link to {}: {error}",
            place.display(),
            library.display()
        )
    })
}

/// Works atomically, because other processes may do the same at the same time.
#[cfg(unix)]
fn replace(library: &Path, place: &Path) -> std::io::Result<()> {
    let mut fresh = place.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    // An earlier process with this id may have left the file behind if it was killed here.
    _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(library, &fresh)?;
    std::fs::rename(&fresh, place)
}

#[cfg(not(unix))]
fn replace(library: &Path, place: &Path) -> std::io::Result<()> {
    let library = place.parent().unwrap_or(Path::new("")).join(library);
    std::fs::copy(library, place).map(|_| ())
}

fn run(arguments: Vec<OsString>) -> Result<ExitCode, String> {
    let run = options::parse(arguments).map_err(|error| format!("{error}\n{USAGE}"))?;
    let checked = run.variable(options::CHECK).is_some();
    let report = run.variable(options::REPORT).map(PathBuf::from);
    if let Some(file) = run.variable(options::TRACE) {
        options::begin_trace(file.as_ref(), &run.program)?;
    }
    let Run {
        mut variables,
        program,
        arguments,
    } = run;
    let mut path = folder()?.into_os_string();
    if let Some(old) = std::env::var_os("LD_LIBRARY_PATH").filter(|old| !old.is_empty()) {
        path.push(":");
        path.push(old);
    }
    let failed = |error: std::io::Error| format!("cannot run {}: {error}", program.display());
    let temporary = report.is_none();
    let report = report.unwrap_or_else(|| {
        let name = format!("soft-cuda-check-{}.jsonl", std::process::id());
        std::env::temp_dir().join(name)
    });
    if checked {
        // The findings are counted in the report. Files that are not regular, such as pipes, cannot be read again.
        if !temporary && report.exists() && !report.is_file() {
            let report = report.display();
            return Err(format!(
                "the report {report} is not a regular file: give `--report` the path of one"
            ));
        }
        let created = if temporary {
            create(&report)
        } else {
            std::fs::write(&report, "")
        };
        created.map_err(|error| format!("cannot write to {}: {error}", report.display()))?;
        variables.push((options::REPORT, report.clone().into()));
    }
    let mut command = Command::new(&program);
    command.args(arguments).env("LD_LIBRARY_PATH", path).envs(variables);
    if !checked {
        return execute(command).map_err(failed);
    }
    let status = command.status();
    let findings = std::fs::read_to_string(&report);
    if temporary {
        _ = std::fs::remove_file(&report);
    }
    let status = status.map_err(failed)?;
    let found = match findings {
        Ok(findings) => findings.lines().count(),
        Err(error) => return Err(format!("cannot read the findings in {}: {error}", report.display())),
    };
    eprintln!("soft-cuda: {found} finding{}", if found == 1 { "" } else { "s" });
    Ok(match code_of(status) {
        0 if found > 0 => ExitCode::from(1),
        code => ExitCode::from(code),
    })
}

/// Creates a file in a folder in which other users may create files, too. Does not follow a link of that name.
fn create(file: &Path) -> std::io::Result<()> {
    // An earlier process with this id may have left the file behind if it was killed.
    _ = std::fs::remove_file(file);
    std::fs::File::create_new(file).map(drop)
}

/// Returns the exit status that a shell reports for a program that has ended: its own, or 128 plus the number of the
/// signal that killed it.
fn code_of(status: std::process::ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Replaces this process with the program, so that signals, exit status and the terminal are the program's. Returns
/// only if this fails.
#[cfg(unix)]
fn execute(mut command: Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn execute(mut command: Command) -> std::io::Result<ExitCode> {
    Ok(ExitCode::from(code_of(command.status()?)))
}
