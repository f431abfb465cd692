//! Counters of a kernel: how often its instructions run, and their cost on a GPU.
//!
//! The numbers depend only on the kernel, its launch and its data: they are the same on every machine and for every
//! number of host threads, unless threads wait for other blocks or race with them.
//!
//! | file | |
//! | --- | --- |
//! | `counters` | the numbers, and the metrics of Nsight Compute that they correspond to |
//! | `class` | classes of instructions |
//! | `requests` | sectors and bank conflicts of one request |
//! | `shared` | the counts that the workers of a launch share |
//! | `worker` | the counts of one host thread |
//! | `clocks` | the time that warps wait at barriers |
//! | `report` | the numbers of a launch by instruction |
//!
#![doc = include_str!("ncu.md")]
#![forbid(unsafe_code)]

mod class;
mod clocks;
mod counters;
mod report;
mod requests;
mod shared;
mod worker;

pub use counters::Counters;
pub use report::{InstructionProfile, LaunchProfile, SourceLocation};

use crate::observe::{LaunchObserver, ObservedLaunch, Observer, Observers};
use report::LaunchCounts;
use std::sync::{Arc, Mutex, MutexGuard};

/// A collection of the profiles of observed launches.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    launches: Arc<Mutex<Vec<LaunchProfile>>>,
}

impl Profile {
    /// Returns a collection without launches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the observer that adds launches to this collection, for [`Options`](crate::Options).
    pub fn observers(&self) -> Observers {
        Observers::of(Arc::new(self.clone()))
    }

    /// Takes the profiles of the launches that have ended, in the order of their start.
    pub fn take(&self) -> Vec<LaunchProfile> {
        let mut launches = std::mem::take(&mut *self.lock());
        launches.sort_by_key(|launch| launch.number);
        launches
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LaunchProfile>> {
        self.launches.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Observer for Profile {
    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver> {
        let launches = Arc::clone(&self.launches);
        Arc::new(LaunchCounts::new(launch, move |profile| {
            launches
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .push(profile);
        }))
    }
}
