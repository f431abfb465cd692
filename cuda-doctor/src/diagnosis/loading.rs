//! Finds the problem that keeps the driver from being loaded or examined: an unsupported program or system, no driver,
//! none that loads, a stub, a crash or a hang.

use super::advice;
use super::problem::{Cause, Problem, Severity};
use crate::findings::{
    AttemptResult, Choice, Container, Ending, Findings, LibraryFile, LibraryKind, LibraryRole, Node,
};

/// Returns the problem that keeps the driver from being loaded or examined, if there is one.
pub(super) fn problems(findings: &Findings) -> Vec<Problem> {
    let problem = unsupported(findings)
        .or_else(|| ended(findings))
        .or_else(|| named(findings))
        .or_else(|| stub_loaded(findings))
        .or_else(|| not_loaded(findings));
    problem.into_iter().collect()
}

/// Returns a problem if this is not a 64-bit program, or if the operating system has no CUDA driver.
fn unsupported(findings: &Findings) -> Option<Problem> {
    if findings.process.bits != 64 {
        return Some(Problem::new(
            Cause::ThirtyTwoBit,
            Severity::Broken,
            format!(
                "This program is a {}-bit program, and cuda-driver loads drivers only in 64-bit programs.",
                findings.process.bits
            ),
            "build the program for a 64-bit target.",
        ));
    }
    let os = &findings.process.os;
    if findings.choice == Choice::Search
        && findings.driver.library.is_none()
        && !matches!(os.as_str(), "linux" | "windows")
    {
        return Some(Problem::new(
            Cause::UnsupportedSystem,
            Severity::NoGpu,
            format!("NVIDIA has no CUDA driver for {os}."),
            advice::or_software("run on Linux or Windows"),
        ));
    }
    None
}

/// Returns a problem if the driver crashed or hung while it was examined, or if it could not be examined.
fn ended(findings: &Findings) -> Option<Problem> {
    let mut advice =
        "restart the machine; if that does not help, install the driver again. The system's log (dmesg) may say more.";
    let text = match &findings.driver_ending {
        Ending::Completed | Ending::NotNeeded => return None,
        Ending::TimedOut { step, seconds } => {
            format!("The driver did not answer within {seconds} seconds: {step}.")
        }
        Ending::Crashed { step, status, output } if output.is_empty() => {
            format!("The driver crashed with {status}: {step}.")
        }
        Ending::Crashed { step, status, output } => {
            format!("The driver crashed with {status}: {step}. It printed: {output}")
        }
        Ending::NotStarted { message } => {
            advice = "";
            format!("The process that examines the driver could not be started: {message}.")
        }
    };
    Some(Problem::new(Cause::Crash, Severity::Broken, text, advice))
}

/// Returns a problem if the file that the user named cannot be loaded.
fn named(findings: &Findings) -> Option<Problem> {
    let Choice::Named { variable, path } = &findings.choice else {
        return None;
    };
    if findings.driver.library.is_some() {
        return None;
    }
    let reason = findings
        .driver
        .attempts
        .iter()
        .find_map(|attempt| match &attempt.result {
            AttemptResult::Failed { message } => Some(message.as_str()),
            _ => None,
        });
    let hint = if variable == "CUDA_DRIVER" {
        ", or to software or system"
    } else {
        ""
    };
    Some(Problem::new(
        Cause::NamedLibrary,
        Severity::Broken,
        format!(
            "{variable} names {path}, which cannot be loaded: {}.",
            reason.unwrap_or("no message")
        ),
        format!("set {variable} to the path of libcuda.so.1 (on Windows nvcuda.dll){hint}, or unset it."),
    ))
}

/// Returns a problem if a stub was loaded, either because the user named it, or because it is outside a folder named
/// `stubs`, so that the search did not recognise it.
fn stub_loaded(findings: &Findings) -> Option<Problem> {
    let library = findings.driver.library.as_ref()?;
    if library.kind != LibraryKind::Stub {
        return None;
    }
    let Choice::Named { variable, path } = &findings.choice else {
        let path = library.path.as_deref().unwrap_or(&library.place);
        // In tests, the path of the loaded library begins with the root, but the paths of the files do not.
        let is_stub = |file: &LibraryFile| {
            let real = file.real_path.as_ref();
            path.ends_with(&file.path) || real.is_some_and(|real| path.ends_with(real))
        };
        let driver = driver_files(findings).find(|file| fits(findings, file) && !is_stub(file));
        let driver = driver.filter(|_| path.starts_with('/'));
        return Some(driver.map_or_else(|| stub(findings, path), |file| stub_first(path, file)));
    };
    Some(Problem::new(
        Cause::NamedLibrary,
        Severity::Broken,
        format!("{variable} names {path}, the stub library of a CUDA toolkit, which is for linking only."),
        format!("unset {variable}, so that the system's driver is used."),
    ))
}

fn stub(findings: &Findings, path: &str) -> Problem {
    Problem::new(
        Cause::StubOnly,
        Severity::NoGpu,
        format!("{path} is the stub library of a CUDA toolkit, for linking only. There is a toolkit, but no driver."),
        advice::install(&findings.system),
    )
}

/// Returns the problem that the loader finds a stub before a driver's library for this processor.
fn stub_first(stub: &str, file: &LibraryFile) -> Problem {
    Problem::new(
        Cause::StubFirst,
        Severity::Broken,
        format!(
            "The system's loader finds {stub}, the stub library of a CUDA toolkit, instead of the driver's {}.",
            file.path
        ),
        "remove the stub's folder from LD_LIBRARY_PATH, and delete links named libcuda.so.1 that lead to the stub.",
    )
}

/// Returns the files of installed drivers.
fn driver_files(findings: &Findings) -> impl Iterator<Item = &LibraryFile> {
    let files = findings.library_files.iter();
    files.filter(|file| file.role == LibraryRole::Driver)
}

/// Returns true if a file is a 64-bit library for the processor of this program.
fn fits(findings: &Findings, file: &LibraryFile) -> bool {
    let elf = file.elf.as_ref();
    elf.is_some_and(|elf| elf.bits == 64 && elf.architecture == findings.process.architecture)
}

/// Returns a problem if no driver was loaded.
fn not_loaded(findings: &Findings) -> Option<Problem> {
    if findings.driver.library.is_some() {
        return None;
    }
    if let Some(file) = driver_files(findings).find(|file| fits(findings, file)) {
        return Some(matching_file(findings, file));
    }
    let elf_files = || driver_files(findings).filter_map(|file| Some((file, file.elf.as_ref()?)));
    if let Some((file, _)) = elf_files().find(|(_, elf)| elf.bits == 32) {
        return Some(Problem::new(
            Cause::ThirtyTwoBit,
            Severity::Broken,
            format!(
                "{} is the driver's library for 32-bit programs, and no 64-bit library for {} is installed.",
                file.path, findings.process.architecture
            ),
            "install the driver's 64-bit libraries (on Debian and Ubuntu the package libcuda1 or libnvidia-compute).",
        ));
    }
    if let Some((file, elf)) = elf_files().next() {
        return Some(Problem::new(
            Cause::OtherProcessor,
            Severity::Broken,
            format!(
                "{} is for {}, but this program is for {}.",
                file.path, elf.architecture, findings.process.architecture
            ),
            "install the driver for this processor, or build the program for the library's processor.",
        ));
    }
    if let Some(file) = driver_files(findings).next() {
        let message = message_for(findings, file).unwrap_or("it is not a library, or this user cannot read it");
        return Some(Problem::new(
            Cause::NotLoadable,
            Severity::Broken,
            format!("{} cannot be loaded: {message}.", file.path),
            "let this user read the file, or install the driver again.",
        ));
    }
    if let Some(path) = stub_path(findings) {
        return Some(stub(findings, path));
    }
    Some(nothing(findings))
}

/// Returns the problem with an installed library for this processor that was not loaded: it is broken, the loader finds
/// a stub first, or the loader does not search its folder.
fn matching_file(findings: &Findings, file: &LibraryFile) -> Problem {
    if let Some(message) = message_for(findings, file) {
        return Problem::new(
            Cause::NotLoadable,
            Severity::Broken,
            format!("{} cannot be loaded: {message}.", file.path),
            "install the driver again, in the same version as the kernel module.",
        );
    }
    if let Some(stub) = stub_tried(findings) {
        return stub_first(stub, file);
    }
    if let Some((name, message)) = found_by_name(findings) {
        return Problem::new(
            Cause::NotLoadable,
            Severity::Broken,
            format!("{name} cannot be loaded: {message}."),
            "install the driver again, in the same version as the kernel module.",
        );
    }
    let folder = file.path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    Problem::new(
        Cause::NotSearched,
        Severity::Broken,
        format!(
            "The driver's library is {}, where the system's loader does not look.",
            file.path
        ),
        format!(
            "add {folder} to LD_LIBRARY_PATH, or set CUDA_DRIVER_LIBRARY={}.",
            file.path
        ),
    )
}

/// Returns the loader's message for a file that it tried and could not load.
fn message_for<'a>(findings: &'a Findings, file: &LibraryFile) -> Option<&'a str> {
    findings
        .driver
        .attempts
        .iter()
        .find_map(|attempt| match &attempt.result {
            AttemptResult::Failed { message } if attempt.place.ends_with(&file.path) => Some(message.as_str()),
            _ => None,
        })
}

/// Returns the file name and the loader's message if the loader found the driver's library by its name, but could not
/// load it: the library is broken, or lacks another one.
fn found_by_name(findings: &Findings) -> Option<(&str, &str)> {
    let mut attempts = findings.driver.attempts.iter();
    let by_name = attempts.find(|attempt| !attempt.place.contains('/'))?;
    let AttemptResult::Failed { message } = &by_name.result else {
        return None;
    };
    // `libcuda.so.1: cannot open shared object file: No such file or directory` of glibc, and musl's `Error loading
    // shared library libcuda.so.1: No such file or directory`. A message about a missing dependency names that library.
    let is_absent = message.contains(&format!("{}: ", by_name.place)) && message.contains("No such file");
    (!is_absent).then_some((&by_name.place, message))
}

/// Returns the path of a stub that the search passed over.
fn stub_tried(findings: &Findings) -> Option<&str> {
    findings
        .driver
        .attempts
        .iter()
        .find_map(|attempt| match &attempt.result {
            AttemptResult::Stub { path } => Some(path.as_str()),
            _ => None,
        })
}

/// Returns the path of a stub that was tried, or of one elsewhere.
fn stub_path(findings: &Findings) -> Option<&str> {
    let found = || {
        findings
            .library_files
            .iter()
            .find(|file| file.role == LibraryRole::Stub)
    };
    stub_tried(findings).or_else(|| found().map(|file| file.path.as_str()))
}

/// Returns the problem of a machine where no driver library was found.
fn nothing(findings: &Findings) -> Problem {
    let system = &findings.system;
    if let Some(container) = &system.container {
        return no_library_in_container(findings, container);
    }
    if let Some(module) = &system.kernel_module {
        let version = module.version.as_deref().unwrap_or("of unknown version");
        return Problem::new(
            Cause::NoDriver,
            Severity::Broken,
            format!("NVIDIA's kernel module {version} is loaded, but libcuda.so.1 is not installed."),
            "install the driver's CUDA libraries, in the same version as the kernel module (on Debian the package libcuda1, on \
             Ubuntu libnvidia-compute).",
        );
    }
    let text = match &system.gpus {
        Some(gpus) if gpus.is_empty() => "There is no CUDA driver, and no NVIDIA GPU on the PCI bus.".to_owned(),
        Some(gpus) => {
            let addresses: Vec<&str> = gpus.iter().map(|gpu| gpu.address.as_str()).collect();
            let gpus = if gpus.len() == 1 { "GPU" } else { "GPUs" };
            format!("There is no CUDA driver for the {gpus} at {}.", addresses.join(", "))
        }
        None => "There is no CUDA driver.".to_owned(),
    };
    Problem::new(Cause::NoDriver, Severity::NoGpu, text, advice::install(system))
}

fn no_library_in_container(findings: &Findings, container: &Container) -> Problem {
    let capabilities = findings.variable("NVIDIA_DRIVER_CAPABILITIES").unwrap_or("all");
    let has_compute = capabilities
        .split(',')
        .any(|part| matches!(part.trim(), "all" | "compute"));
    if findings.nodes.iter().any(Node::is_gpu) && !has_compute {
        return Problem::new(
            Cause::Container,
            Severity::Broken,
            format!(
                "This container has a GPU, but not the driver's library: NVIDIA_DRIVER_CAPABILITIES={capabilities} lacks compute."
            ),
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        );
    }
    let host = if findings.system.kernel_module.is_some() {
        "The host has NVIDIA's driver, but this"
    } else {
        "This"
    };
    Problem::new(
        Cause::Container,
        Severity::NoGpu,
        format!(
            "{host} container ({}) was started without the driver's library.",
            container.runtime
        ),
        advice::install(&findings.system),
    )
}
