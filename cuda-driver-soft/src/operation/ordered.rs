//! Records the memory that work uses, for the check of races between work that streams and events do not order.

use crate::check;
use crate::object::place::MemoryPlace;
use crate::queue::order::{self, Moment, Place};
use engine::check::{Checker, Checks, Footprint, OrderedWork, Span, footprint_of_launch};
use engine::{Execution, Launch};
use std::sync::Arc;

/// Work whose races are findings of checkers.
pub(crate) struct Ordered {
    checkers: Vec<Checker>,
    /// Name of the kernel; empty for other work.
    kernel: String,
    /// The work as findings describe it.
    description: String,
}

impl Ordered {
    /// Returns work of this thread with the checkers that compare it; `None` if there are no such checkers, or if all
    /// work of the process is ordered.
    fn new(kernel: &str, description: impl FnOnce() -> String) -> Option<Self> {
        if !order::note_order(check::finds_races) || !order::are_several() {
            return None;
        }
        let mut checkers = check::of_work();
        checkers.retain(|checker| checker.checks().contains(Checks::RACE));
        (!checkers.is_empty()).then(|| Ordered {
            checkers,
            kernel: kernel.to_owned(),
            description: description(),
        })
    }

    pub(super) fn kernel(name: &str) -> Option<Self> {
        Self::new(name, || format!("`{name}`"))
    }

    pub(crate) fn copy(bytes: u64) -> Option<Self> {
        Self::new("", || format!("a copy of {bytes} bytes"))
    }

    pub(crate) fn fill(bytes: u64) -> Option<Self> {
        Self::new("", || format!("a fill of {bytes} bytes"))
    }

    /// Returns the program's own code as work. Returns `None` in the same cases as [`new`](Self::new).
    pub(super) fn host() -> Option<Self> {
        Self::new("", || "the program's own code".to_owned())
    }

    fn add(&self, place: &Place, footprint: &dyn Fn() -> Footprint) {
        for checker in &self.checkers {
            let work = OrderedWork {
                moment: place.moment,
                serial: place.serial,
                kernel: self.kernel.clone(),
                description: self.description.clone(),
                is_after: is_after(place),
            };
            checker.add_work(work, footprint(), &order::is_past);
        }
    }

    /// Records the memory that the running task uses.
    pub(crate) fn used_by_task(&self, spans: &[Span]) {
        if let Some(place) = order::current() {
            self.add(&place, &|| Footprint::of_spans(spans.to_vec()));
        }
    }

    /// Records the memory that the calling thread itself uses.
    pub(crate) fn used_by_host(&self, spans: &[Span]) {
        if let Some(place) = order::by_host() {
            self.add(&place, &|| Footprint::of_spans(spans.to_vec()));
        }
    }
}

/// Returns the predicate of work at this place.
fn is_after(place: &Place) -> Arc<dyn Fn(Moment) -> bool + Send + Sync> {
    let place = place.clone();
    Arc::new(move |moment| place.is_after(moment))
}

/// Starts a launch as part of the task that the calling thread runs. Its accesses are recorded if `ordered` is given.
pub(super) fn start(mut launch: Launch, ordered: Option<Ordered>) -> Arc<Execution> {
    if let Some(ordered) = ordered
        && let Some(place) = order::current()
    {
        let Ordered {
            checkers,
            kernel,
            description,
        } = ordered;
        for checker in checkers {
            let (place, kernel, description) = (place.clone(), kernel.clone(), description.clone());
            let observers = footprint_of_launch(move |footprint| {
                let work = OrderedWork {
                    moment: place.moment,
                    serial: place.serial,
                    kernel,
                    description,
                    is_after: is_after(&place),
                };
                checker.add_work(work, footprint, &order::is_past);
            });
            launch.options.observers.add(observers);
        }
    }
    launch.start()
}

/// Returns the span of the first bytes of a place; none for memory that the driver does not manage, and for tiles of
/// arrays.
pub(crate) fn span(place: &MemoryPlace, bytes: u64, writes: bool) -> Vec<Span> {
    match place {
        MemoryPlace::Device(allocation, address) => vec![Span {
            allocation: allocation.id,
            range: *address..address.saturating_add(bytes),
            writes,
        }],
        MemoryPlace::Host(_) | MemoryPlace::Tiles(_) => Vec::new(),
    }
}
