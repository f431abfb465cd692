//! Collects the findings on a machine.
#![forbid(unsafe_code)]

mod choose;
mod elf;
mod identity;
mod library_files;
mod nodes;
mod paths;
mod pci;
mod surroundings;
mod system;
mod variables;

use cuda_driver::sys::library::{is_privileged, search_places};

pub use surroundings::Surroundings;

use crate::findings::{Attempt, AttemptResult, Choice, Driver, DriverLibrary, Ending, Findings, KernelRun, Process};
use crate::probe::{Place, Prober, Task, loading};

/// Observes the machine, and examines its driver in child processes.
#[must_use]
pub fn gather(surroundings: &Surroundings, prober: &Prober) -> Findings {
    let user = identity::user(surroundings);
    // Device nodes come first: if this process is root, `cuInit` of NVIDIA's driver creates missing ones.
    let nodes = nodes::find(surroundings, user.as_ref());
    let choice = choose::choose(surroundings);
    let mut findings = Findings {
        process: Process {
            bits: surroundings.bits,
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            is_privileged: is_privileged(),
            user,
        },
        system: system::observe(surroundings),
        variables: variables::find(surroundings),
        nodes,
        library_files: library_files::find(surroundings),
        choice,
        ..Findings::default()
    };
    // The loader refuses to load a driver into a program that is not 64-bit.
    if surroundings.bits == 64 {
        examine(surroundings, prober, &mut findings);
    }
    findings
}

fn examine(surroundings: &Surroundings, prober: &Prober, findings: &mut Findings) {
    let places = places(surroundings, &findings.choice);
    let is_named = findings.choice != Choice::Search;
    let task = Task::Driver {
        places: places.clone(),
        is_named,
    };
    let (driver, ending) = prober.run::<Driver>(&task);
    findings.driver = driver;
    findings.driver_ending = ending;
    let mut interrupted = interrupted(&findings.driver_ending);
    for place in places.iter().skip(findings.driver.attempts.len()) {
        let message = interrupted.take_if(|(step, _)| *step == loading(place));
        findings.driver.attempts.push(Attempt {
            place: place.to_string(),
            result: message.map_or(AttemptResult::NotTried, |(_, message)| AttemptResult::Failed {
                message,
            }),
        });
    }
    if findings.driver_ending != Ending::Completed {
        return;
    }
    let Some(library) = &findings.driver.library else {
        return;
    };
    findings.kernel_runs = kernel_runs(&places, library, &findings.driver, prober);
}

/// Returns the step in which the process that examined the driver ended early, and its end in words.
fn interrupted(ending: &Ending) -> Option<(&str, String)> {
    match ending {
        Ending::Crashed { step, status, .. } => Some((step, format!("the process that loaded it ended with {status}"))),
        Ending::TimedOut { step, seconds } => Some((step, format!("loading it did not end within {seconds} seconds"))),
        Ending::NotNeeded | Ending::Completed | Ending::NotStarted { .. } => None,
    }
}

/// Returns the places to look for the driver, in order.
fn places(surroundings: &Surroundings, choice: &Choice) -> Vec<Place> {
    let files = match choice {
        Choice::Software => return vec![Place::Software],
        Choice::Named { path, .. } => search_places(&surroundings.root, Some(path.into())),
        Choice::Search => search_places(&surroundings.root, None),
    };
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    files.iter().map(|path| Place::File(text(path))).collect()
}

/// Runs the test kernel on each device, each in its own process, because CUDA fails in a process after a fault.
fn kernel_runs(places: &[Place], library: &DriverLibrary, driver: &Driver, prober: &Prober) -> Vec<KernelRun> {
    let Some(place) = places.iter().find(|place| place.to_string() == library.place) else {
        return Vec::new();
    };
    let run = |ordinal| {
        let task = Task::Kernel {
            place: place.clone(),
            ordinal,
        };
        let (result, ending) = prober.run(&task);
        KernelRun {
            ordinal,
            result,
            ending,
        }
    };
    driver.devices.iter().map(|device| run(device.ordinal)).collect()
}
