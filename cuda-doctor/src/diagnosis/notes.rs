//! Notes: findings that do not prevent CUDA from working.

use super::problem::{Cause, Problem, Severity};
use super::version::cuda_version;
use crate::findings::{Choice, Findings, LibraryKind};

/// The oldest CUDA version that `cuda-driver` is made for, and the major version of the first driver that supports it.
const OLDEST: (u32, u32) = (11_070, 515);

/// Returns the notes.
pub(super) fn problems(findings: &Findings) -> Vec<Problem> {
    [
        too_old(findings),
        incomplete(findings),
        mismatch(findings),
        software_not_contained(findings),
        ignored(findings),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn note(cause: Cause, text: String, advice: impl Into<String>) -> Problem {
    Problem::new(cause, Severity::Note, text, advice)
}

fn too_old(findings: &Findings) -> Option<Problem> {
    let version = findings.driver.cuda_version?;
    let (oldest, driver) = OLDEST;
    (version < oldest).then(|| {
        note(
            Cause::TooOld,
            format!(
                "The driver supports CUDA {}, but cuda-driver is made for drivers of CUDA {} and later.",
                cuda_version(version),
                cuda_version(oldest)
            ),
            format!("update the driver to {driver} or later."),
        )
    })
}

/// Notes missing functions that the driver's CUDA version should have.
fn incomplete(findings: &Findings) -> Option<Problem> {
    let version = findings.driver.cuda_version?;
    let lacking = findings.driver.missing.iter().filter(|group| group.since <= version);
    let names: Vec<&str> = lacking
        .flat_map(|group| group.functions.iter().map(String::as_str))
        .collect();
    let first = names.first()?;
    let count = match names.len() {
        1 => "1 function".to_owned(),
        count => format!("{count} functions"),
    };
    Some(note(
        Cause::IncompleteLibrary,
        format!(
            "The library supports CUDA {}, but lacks {count} of that or an earlier version, such as {first}.",
            cuda_version(version)
        ),
        "check if a profiler or another tool has put its own library in the driver's place.",
    ))
}

/// Notes a library and a kernel module of different versions with which `cuInit` succeeds, as with NVIDIA's forward
/// compatibility package.
fn mismatch(findings: &Findings) -> Option<Problem> {
    let library = findings.driver.library.as_ref()?;
    let module = findings.system.kernel_module.as_ref()?.version.as_ref()?;
    let version = library.version.as_ref()?;
    (findings.driver.is_initialised && library.kind == LibraryKind::Real && module != version).then(|| {
        note(
            Cause::VersionMismatch,
            format!(
                "The kernel module has version {module} and the driver's library {version}, which work together here."
            ),
            "",
        )
    })
}

fn software_not_contained(findings: &Findings) -> Option<Problem> {
    let is_asked_for = findings.variable("CUDA_DRIVER") == Some("software");
    let library = findings.driver.library.as_ref();
    let is_software = library.is_some_and(|library| library.kind == LibraryKind::Software);
    (is_asked_for && !is_software).then(|| {
        note(
            Cause::Variable,
            "CUDA_DRIVER=software selects the software driver in programs that contain it. This program \
             was built without it and looked for another driver."
                .to_owned(),
            "to examine the software driver, build this program with `--features software`, or run `soft-cuda run cuda-doctor`.",
        )
    })
}

/// Notes variables with paths that are ignored because this process is privileged.
fn ignored(findings: &Findings) -> Option<Problem> {
    if !findings.process.is_privileged || findings.choice != Choice::Search {
        return None;
    }
    let is_path = |value: &&str| !matches!(*value, "software" | "system");
    let driver = findings.variable("CUDA_DRIVER").filter(is_path).map(|_| "CUDA_DRIVER");
    let library = findings.variable("CUDA_DRIVER_LIBRARY").map(|_| "CUDA_DRIVER_LIBRARY");
    let names: Vec<&str> = driver.into_iter().chain(library).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        note(
            Cause::Variable,
            format!(
                "{} {verb} ignored because this process is privileged.",
                names.join(" and ")
            ),
            "",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Findings, ignored};
    use crate::findings::Variable;

    #[test]
    fn a_privileged_process_notes_the_paths_that_it_ignores() {
        let text = |variables: &[(&str, &str)], is_privileged| {
            let mut findings = Findings::default();
            findings.process.is_privileged = is_privileged;
            findings.variables = variables
                .iter()
                .map(|(name, value)| Variable {
                    name: (*name).to_owned(),
                    value: (*value).to_owned(),
                    effect: String::new(),
                })
                .collect();
            ignored(&findings).map(|note| note.text)
        };
        let (driver, library) = (("CUDA_DRIVER", "/a/libcuda.so.1"), ("CUDA_DRIVER_LIBRARY", "/b"));
        let expected = |names: &str| Some(format!("{names} ignored because this process is privileged."));
        assert_eq!(text(&[driver], true), expected("CUDA_DRIVER is"));
        assert_eq!(text(&[library], true), expected("CUDA_DRIVER_LIBRARY is"));
        assert_eq!(
            text(&[driver, library], true),
            expected("CUDA_DRIVER and CUDA_DRIVER_LIBRARY are")
        );
        assert_eq!(text(&[("CUDA_DRIVER", "system")], true), None);
        assert_eq!(text(&[driver, library], false), None);
    }
}
