//! Checkers of kernels: for data races, reads of uninitialised memory, and misused barriers. They also turn faults into
//! findings. Another checker finds races between launches, copies, fills and the program's own code.
//!
//! | file | |
//! | --- | --- |
//! | `finding` | sets of checks, and their findings |
//! | `clock`, `order` | the order of threads: vector clocks, barriers, fences |
//! | `warp_access`, `stamp` | an access of a warp, and the record that it leaves |
//! | `shadow`, `parts`, `lane_maps`, `lines`, `together`, `race` | the last accesses to each byte, races with them |
//! | `accesses`, `footprint`, `history` | global memory that launches and other work access, and races between them |
//! | `copies` | copies of `cp.async` and bulk copies that threads have not waited for |
//! | `init` | the bytes that were written |
//! | `sync` | barriers that only a part of a block reaches, and wrong masks |
//! | `plan` | the instructions of a launch as the checkers see them |
//! | `checked_launch` | the state that the workers of a checked launch share, and the states of its blocks and warps |
//! | `observer` | passes the events of a launch to the checkers |
//! | `race_finding` | the findings of the race checker |

#![forbid(unsafe_code)]

mod accesses;
mod checked_launch;
mod clock;
mod copies;
mod finding;
mod footprint;
mod history;
mod init;
mod lane_maps;
mod lines;
mod observer;
mod order;
mod parts;
mod plan;
mod race;
mod race_finding;
mod shadow;
mod stamp;
mod sync;
mod together;
mod warp_access;

pub use accesses::footprint_of_launch;
pub use finding::{AllocationPlace, Checks, Finding, Place, UnknownCheck};
pub use footprint::{Footprint, Span};
pub use history::OrderedWork;

use crate::fault::{Fault, FaultKind};
use crate::memory::{TrackedWrites, address_space};
use crate::observe::Observers;
use crate::program::kernel::Kernel;
use history::History;
use lines::Patterns;
use race::Races;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs checks on launches, and collects the findings. Clones share the findings.
#[derive(Clone)]
pub struct Checker {
    checks: Checks,
    findings: Arc<Mutex<Vec<Finding>>>,
    history: Arc<Mutex<History>>,
    /// The race checker and the patterns of a launch that has ended, kept for the next launch because they are
    /// expensive to make.
    spare: Arc<Mutex<Spare>>,
    /// Called with each new finding.
    report: Option<fn(&Finding)>,
    /// Keeps the written bytes of device memory tracked, for [`Checks::INIT`].
    _tracked: Option<Arc<TrackedWrites>>,
}

/// A race checker and patterns that no launch uses.
#[derive(Default)]
struct Spare {
    races: Option<Box<Races>>,
    patterns: Option<Box<Patterns>>,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker")
            .field("checks", &self.checks)
            .finish_non_exhaustive()
    }
}

impl Checker {
    /// Returns a checker for these checks.
    #[must_use]
    pub fn new(checks: Checks) -> Self {
        let tracked = checks.contains(Checks::INIT);
        Checker {
            checks,
            findings: Arc::default(),
            history: Arc::default(),
            spare: Arc::default(),
            report: None,
            _tracked: tracked.then(|| Arc::new(address_space().track_writes())),
        }
    }

    /// Returns a checker that also passes each finding to a function when it is found.
    #[must_use]
    pub fn reporting(checks: Checks, report: fn(&Finding)) -> Self {
        Checker {
            report: Some(report),
            ..Checker::new(checks)
        }
    }

    /// Returns the checks.
    #[must_use]
    pub fn checks(&self) -> Checks {
        self.checks
    }

    /// Returns the observers for a checked launch; none for `memory` and `leaks` alone.
    #[must_use]
    pub fn observers(&self) -> Observers {
        let observed = [Checks::INIT, Checks::RACE, Checks::SYNC];
        if observed.iter().any(|check| self.checks.contains(*check)) {
            Observers::of(Arc::new(self.clone()))
        } else {
            Observers::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Finding>> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the race checker and the patterns that the next launch may use.
    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a finding, unless it has places and there is one of the same check and kernel with the same PTX lines.
    pub fn add(&self, finding: Finding) {
        let mut findings = self.lock();
        let lines = |f: &Finding| f.places.iter().map(|p| p.ptx_line).collect::<Vec<_>>();
        let known = findings
            .iter()
            .any(|f| (f.check, &f.kernel, lines(f)) == (finding.check, &finding.kernel, lines(&finding)))
            // A leak, or a race without a kernel, has no line to compare.
            && !finding.places.is_empty();
        if !known {
            if let Some(report) = self.report {
                report(&finding);
            }
            findings.push(finding);
        }
    }

    /// Adds the fault of a kernel if one of the checks covers it.
    pub fn add_fault(&self, fault: &Fault, kernel: &Kernel) {
        let (check, address, advice) = match &fault.kind {
            FaultKind::IllegalAddress { address, .. } => (
                Checks::MEMORY,
                Some(*address),
                "compare the index with the size of the buffer before the access",
            ),
            FaultKind::LocalOutOfRange { .. } | FaultKind::SharedOutOfRange { .. } => {
                (Checks::MEMORY, None, "compare the index with the size of the array")
            }
            FaultKind::Misaligned { .. } => (
                Checks::MEMORY,
                None,
                "align the pointer to the size of the type, or access it in smaller parts",
            ),
            FaultKind::FreedTwice { .. } => (Checks::MEMORY, None, "free each allocation once"),
            FaultKind::StackOverflow { .. } => (
                Checks::MEMORY,
                None,
                "raise CU_LIMIT_STACK_SIZE, or use less local memory or fewer nested calls",
            ),
            FaultKind::NoBlock { .. } => (
                Checks::MEMORY,
                None,
                "compare the rank of the block with the number of blocks in the cluster",
            ),
            FaultKind::BarrierMisuse { .. } | FaultKind::BarrierConflict { .. } | FaultKind::Deadlock { .. } => (
                Checks::SYNC,
                None,
                "let all threads that a barrier or mask names reach the same barrier or instruction",
            ),
            _ => return,
        };
        if !self.checks.contains(check) {
            return;
        }
        let functions = &kernel.loaded().module.functions;
        // The function that contains the line.
        let function = functions
            .iter()
            .filter(|f| f.code.is_some() && f.line <= fault.line)
            .max_by_key(|f| f.line);
        let action = match (check, &fault.kind) {
            (_, FaultKind::FreedTwice { .. }) => "frees the memory",
            (_, FaultKind::StackOverflow { .. }) => "needs more stack",
            (Checks::MEMORY, _) => "makes the access",
            _ => "waits here",
        };
        self.add(Finding {
            check,
            kernel: fault.kernel.clone(),
            problem: fault.kind.to_string(),
            places: vec![Place::new(
                function,
                action.into(),
                fault.line,
                fault.block,
                fault.thread,
            )],
            allocation: address.and_then(AllocationPlace::of),
            advice,
        });
    }

    /// Returns the findings so far, in the order in which they were added.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.lock().clone()
    }
}
