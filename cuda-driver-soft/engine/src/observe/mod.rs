//! Observation of launches: the interface of the checkers, the counters and the debugger.
//!
//! A launch with [`Observers`] is interpreted, and runs code that was decoded for observation. Each host thread that
//! works on it has its own [`WorkerObserver`]s, so that most observers need no locks while a kernel runs. A
//! `WorkerObserver` receives the events of one block at a time. If no block depends on another one, the order of events
//! inside a block does not depend on the number of host threads.

#![forbid(unsafe_code)]

pub(crate) mod pattern;

use crate::code::function::Code;
use crate::code::watch::{Watch, WorkerObserver};
use crate::fault::Fault;
use crate::program::kernel::Kernel;
use ptx::ir::{FuncId, Module};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The observers of a launch: checkers, counters, a debugger. The default is none.
#[derive(Clone, Default)]
pub struct Observers {
    list: Vec<Arc<dyn Observer>>,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("count", &self.list.len()).finish()
    }
}

impl Observers {
    /// Returns a list of one observer.
    pub(crate) fn of(observer: Arc<dyn Observer>) -> Self {
        Observers { list: vec![observer] }
    }

    /// Returns true if the launch is not observed.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds other observers.
    pub fn add(&mut self, others: Observers) {
        self.list.extend(others.list);
    }

    /// Returns true if, for some observer, one host thread at a time must run the blocks of a launch.
    pub(crate) fn one_worker(&self) -> bool {
        self.list.iter().any(|o| o.one_worker())
    }

    /// Starts the observation of a launch.
    pub(crate) fn begin(&self, launch: &ObservedLaunch<'_>) -> Observation {
        Observation {
            list: self.list.iter().map(|o| o.launch(launch)).collect(),
            state: Mutex::default(),
        }
    }
}

/// An observer of launches.
pub(crate) trait Observer: Send + Sync {
    /// Returns true if one host thread at a time must run the blocks of a launch.
    fn one_worker(&self) -> bool {
        false
    }

    /// Returns the observer of a launch that is about to start.
    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver>;
}

/// An observer of one launch.
pub(crate) trait LaunchObserver: Send + Sync {
    /// Returns the observer of a host thread that is about to run blocks. A host thread may have several in turn.
    fn worker(&self) -> Box<dyn WorkerObserver>;

    /// Called once when all workers have finished, before the execution counts as finished. `fault` is the fault that
    /// ended the launch, if there was one.
    fn end(&self, fault: Option<&Fault>) {
        _ = fault;
    }
}

/// A launch that is about to start, as observers see it.
pub(crate) struct ObservedLaunch<'l> {
    /// The kernel.
    pub(crate) kernel: &'l Arc<Kernel>,
    /// Blocks of the grid.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    /// Bytes of shared memory of a block that threads may access: the variables, the dynamic part, the part that the
    /// system reserves, and the bytes past the end that [`Options::slack`](crate::Options::slack) allows.
    pub(crate) shared_bytes: u64,
    /// The part of a block's shared memory that the system reserves.
    pub(crate) reserved_shared: Option<Range<u64>>,
    /// Warps of the launch that a multiprocessor can hold at once, divided by the most that it can hold of any launch;
    /// 0 if unknown.
    pub(crate) occupancy: f64,
    /// Code by function, decoded for observation; `None` for functions that the kernel cannot reach or that are not
    /// supported.
    pub(crate) codes: &'l [Option<Arc<Code>>],
}

impl ObservedLaunch<'_> {
    /// Returns the module.
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.kernel.loaded().module
    }

    /// Returns the code of a function that the kernel can reach.
    pub(crate) fn code(&self, function: FuncId) -> Option<&Arc<Code>> {
        self.codes.get(function.0 as usize)?.as_ref()
    }
}

/// The observers of a started launch.
pub(crate) struct Observation {
    list: Vec<Arc<dyn LaunchObserver>>,
    state: Mutex<ObservationState>,
}

/// The number of workers that have not finished, and true once the launch has ended.
#[derive(Default)]
struct ObservationState {
    workers: u64,
    ended: bool,
}

impl Observation {
    /// Returns the observers of a host thread that is about to run blocks; `None` if the launch is not observed, or has
    /// ended.
    pub(crate) fn worker(&self, codes: &[Option<Arc<Code>>]) -> Option<Box<Watch>> {
        if self.list.is_empty() {
            return None;
        }
        let mut state = self.lock();
        if state.ended {
            return None;
        }
        state.workers += 1;
        drop(state);
        let observers = self.list.iter().map(|o| o.worker()).collect();
        Some(Box::new(Watch::new(observers, codes.iter().map(Option::as_deref))))
    }

    /// Ends a worker: its observers merge their results.
    pub(crate) fn finish_worker(&self, watch: Watch) {
        watch.finish();
        self.lock().workers -= 1;
    }

    /// Ends the observation of a launch whose blocks have all ended. Returns false if some workers have not finished.
    pub(crate) fn end(&self, fault: impl FnOnce() -> Option<Fault>) -> bool {
        if self.list.is_empty() {
            return true;
        }
        let mut state = self.lock();
        if state.workers > 0 {
            return false;
        }
        if !std::mem::replace(&mut state.ended, true) {
            let fault = fault();
            self.list.iter().for_each(|o| o.end(fault.as_ref()));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, ObservationState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
