//! Writes the sections about the driver's library: the search, the files found, the loaded driver, and the functions
//! that it lacks.

use super::section::Section;
use crate::diagnosis::{cuda_version, missing_summary};
use crate::findings::{AttemptResult, Choice, Ending, Findings, LibraryFile, LibraryKind, LibraryRole};

/// The maximum number of missing functions that are named for one CUDA version.
const NAMED: usize = 3;

/// Writes the sections.
pub(super) fn write(findings: &Findings, output: &mut String) {
    search(findings).write(&search_title(findings), output);
    files(findings).write("Libraries on this machine", output);
    driver(findings).write("Driver", output);
    missing(findings, output);
}

fn search_title(findings: &Findings) -> String {
    match &findings.choice {
        Choice::Search => "Search for the driver's library, in order".to_owned(),
        Choice::Named { variable, .. } => format!("The library that {variable} names"),
        Choice::Software => "The software driver in this program, chosen by CUDA_DRIVER".to_owned(),
    }
}

fn search(findings: &Findings) -> Section {
    let mut section = Section::default();
    for attempt in &findings.driver.attempts {
        let result = match &attempt.result {
            AttemptResult::Loaded => "loaded".to_owned(),
            AttemptResult::Stub { path } => format!("passed over: {path} is a toolkit's stub"),
            AttemptResult::Failed { message } => message.clone(),
            AttemptResult::NotTried => "not tried".to_owned(),
        };
        section.row(&attempt.place, result);
    }
    section
}

fn files(findings: &Findings) -> Section {
    let mut section = Section::default();
    for file in &findings.library_files {
        section.row(&file.path, describe(file));
    }
    section
}

fn describe(file: &LibraryFile) -> String {
    let role = match file.role {
        LibraryRole::Driver => "driver's library",
        LibraryRole::Compatibility => "library for forward compatibility",
        LibraryRole::Stub => "toolkit's stub",
    };
    let elf = match &file.elf {
        Some(elf) => format!(", {}-bit {}", elf.bits, elf.architecture),
        None => ", not an ELF file or not readable".to_owned(),
    };
    let real = file
        .real_path
        .as_ref()
        .map_or_else(String::new, |real| format!(", {real}"));
    format!("{role}{elf}{real}")
}

fn driver(findings: &Findings) -> Section {
    let mut section = Section::default();
    let driver = &findings.driver;
    if let Some(library) = &driver.library {
        let kind = match library.kind {
            LibraryKind::Real => "NVIDIA's driver",
            LibraryKind::Software => "software driver of this project, which runs kernels on the CPU",
            LibraryKind::Stub => "toolkit's stub, not a driver",
        };
        section.row("kind", kind);
        section.row("library", library.path.as_deref().unwrap_or("part of this program"));
        if let Some(version) = &library.version {
            section.row("version", version);
        }
        if let Some(version) = driver.cuda_version {
            section.row("CUDA version", cuda_version(version));
        }
    }
    match (&driver.failure, driver.is_initialised) {
        (Some(failure), _) => section.row("start", &failure.message),
        (None, true) => section.row("start", "cuInit succeeded"),
        (None, false) => {}
    }
    if !matches!(findings.driver_ending, Ending::Completed | Ending::NotNeeded) {
        section.row("process", super::devices::ending(&findings.driver_ending));
    }
    section
}

fn missing(findings: &Findings, output: &mut String) {
    let driver = &findings.driver;
    if driver
        .library
        .as_ref()
        .is_some_and(|library| library.kind == LibraryKind::Stub)
    {
        return;
    }
    let Some(summary) = missing_summary(&driver.missing, driver.cuda_version) else {
        return;
    };
    let mut section = Section::default();
    let mut count = 0;
    for group in &driver.missing {
        count += group.functions.len();
        let mut names = group
            .functions
            .iter()
            .take(NAMED)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        if group.functions.len() > NAMED {
            names.push_str(", …");
        }
        section.row(
            format!("since CUDA {}", cuda_version(group.since)),
            format!("{:3}  {names}", group.functions.len()),
        );
    }
    section.row("meaning", summary);
    let newest = cuda_version(cuda_driver::sys::CUDA_VERSION);
    section.write(
        &format!(
            "Functions of CUDA {newest} that the driver lacks: {count} of {}",
            driver.functions
        ),
        output,
    );
}
