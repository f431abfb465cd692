//! Finds races between launches, copies, fills and the program's own code: compares the memory that each of them
//! accesses with the memory of all work that is not ordered with it.

use super::Checker;
use super::finding::{AllocationPlace, Checks, Finding};
use super::footprint::{Footprint, Overlap};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError};

/// The predicate of [`OrderedWork::is_after`].
type IsAfter = dyn Fn((u32, u64)) -> bool + Send + Sync;

/// A launch, a copy, a fill or an access of the program's own code, in the order of the program's work.
#[derive(Clone)]
pub struct OrderedWork {
    /// Identifies the work: the number of a chain of ordered work, and the number of this work in the chain.
    pub moment: (u32, u64),
    /// A number that increases with each submission.
    pub serial: u64,
    /// Name of the kernel; empty for other work.
    pub kernel: String,
    /// A description of the work, such as `a copy of 16 bytes`.
    pub description: String,
    /// Returns true for the moments of work that is ordered before this work.
    pub is_after: Arc<IsAfter>,
}

impl fmt::Debug for OrderedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedWork")
            .field("moment", &self.moment)
            .field("serial", &self.serial)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

/// The work that later work may race with.
#[derive(Debug, Default)]
pub(super) struct History {
    works: Vec<(OrderedWork, Footprint)>,
    /// The pairs that were reported, by description and PTX line.
    reported: HashSet<[(String, u32); 2]>,
}

impl Checker {
    /// Adds work, and reports its races with the work that was added before. `is_past` returns true for work that is
    /// ordered before all later work.
    pub fn add_work(&self, work: OrderedWork, footprint: Footprint, is_past: &dyn Fn((u32, u64)) -> bool) {
        let mut found = Vec::new();
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = &mut *history;
        for (other, of_other) in &history.works {
            // Work that counts as ordered after this work may have run first: see the order of host functions.
            if (work.is_after)(other.moment) || (other.is_after)(work.moment) {
                continue;
            }
            // The report begins with the work that was submitted later.
            let ordered = match other.serial < work.serial {
                true => footprint.overlap(of_other).map(|overlap| ([&work, other], overlap)),
                false => of_other.overlap(&footprint).map(|overlap| ([other, &work], overlap)),
            };
            let Some((works, overlap)) = ordered else { continue };
            let line = |i: usize| overlap.places[i].as_ref().map_or(0, |place| place.ptx_line);
            let key = |i: usize| (works[i].description.clone(), line(i));
            if history.reported.insert([key(0), key(1)]) {
                found.push(finding(works, overlap));
            }
        }
        history.works.retain(|(other, _)| !is_past(other.moment));
        history.works.push((work, footprint));
        found.into_iter().for_each(|finding| self.add(finding));
    }
}

fn finding([later, earlier]: [&OrderedWork; 2], overlap: Overlap) -> Finding {
    let verb = |writes: bool| if writes { "writes" } else { "reads" };
    Finding {
        check: Checks::RACE,
        kernel: [&later.kernel, &earlier.kernel]
            .into_iter()
            .find(|kernel| !kernel.is_empty())
            .cloned()
            .unwrap_or_default(),
        problem: format!(
            "{} {} {:#x}, which {} {}, and nothing orders them",
            later.description,
            verb(overlap.writes[0]),
            overlap.address,
            earlier.description,
            verb(overlap.writes[1]),
        ),
        places: overlap.places.into_iter().flatten().collect(),
        allocation: AllocationPlace::of(overlap.address),
        advice: "record an event after the earlier work and let the stream of the later work wait for it, or wait for \
                 the earlier work before the later call",
    }
}
