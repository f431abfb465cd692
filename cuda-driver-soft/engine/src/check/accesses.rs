//! Collects the global memory that a launch accesses, for the check of races between launches and other work.

use super::footprint::{Footprint, Who};
use super::observer::MOST_BYTES;
use super::plan::Plan;
use super::stamp::Strength;
use super::warp_access::{Effect, span};
use crate::code::site::Site;
use crate::code::watch::{At, BlockAt, SiteCount, WorkerObserver};
use crate::fault::Fault;
use crate::lanes::{self, thread_of};
use crate::observe::{LaunchObserver, ObservedLaunch, Observer, Observers};
use ptx::ir::{FuncId, Space};
use std::sync::{Arc, Mutex, PoisonError};

/// Receives the footprint of a launch when it has ended.
type OnEnd = Box<dyn FnOnce(Footprint) + Send>;

/// Returns an observer for one launch, which passes the footprint of the launch to a function when it has ended.
pub fn footprint_of_launch(on_end: impl FnOnce(Footprint) + Send + 'static) -> Observers {
    Observers::of(Arc::new(Accesses(Mutex::new(Some(Box::new(on_end))))))
}

/// The observer of one launch. Until the launch begins, it holds the function that receives the footprint.
struct Accesses(Mutex<Option<OnEnd>>);

impl Observer for Accesses {
    fn one_worker(&self) -> bool {
        true
    }

    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver> {
        let on_end = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Arc::new(LaunchAccesses(Arc::new(Shared {
            plans: Plan::of_launch(launch),
            block: launch.block,
            footprint: Mutex::new(Footprint::of_kernel(launch.kernel)),
            on_end: Mutex::new(on_end),
        })))
    }
}

/// The state of an observed launch, which its workers share.
struct Shared {
    plans: Vec<Vec<Plan>>,
    /// Number of threads of a block in each dimension.
    block: [u32; 3],
    /// The accesses of the launch. A worker takes them out while it runs.
    footprint: Mutex<Footprint>,
    /// Receives the footprint; `None` once the launch has ended.
    on_end: Mutex<Option<OnEnd>>,
}

/// The observer of a launch that has begun.
struct LaunchAccesses(Arc<Shared>);

impl Shared {
    /// Takes the footprint out, and leaves an empty one.
    fn take(&self) -> Footprint {
        std::mem::take(&mut *self.footprint.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LaunchObserver for LaunchAccesses {
    fn worker(&self) -> Box<dyn WorkerObserver> {
        Box::new(AccessWorker {
            footprint: self.0.take(),
            launch: Arc::clone(&self.0),
            index: [0; 3],
        })
    }

    fn end(&self, _: Option<&Fault>) {
        let on_end = self.0.on_end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_end) = on_end {
            on_end(self.0.take());
        }
    }
}

/// The observer of one worker of the launch.
struct AccessWorker {
    launch: Arc<Shared>,
    footprint: Footprint,
    /// Coordinates of the running block.
    index: [u32; 3],
}

impl WorkerObserver for AccessWorker {
    fn wants(&mut self, function: FuncId, site: &Site) -> bool {
        let plans = self.launch.plans.get(function.0 as usize);
        plans.is_some_and(|plans| plans.iter().any(|plan| plan.line == site.line && plan.is_needed()))
    }

    fn before(&mut self, at: &At<'_>) {
        let launch = Arc::clone(&self.launch);
        let plan = &launch.plans[at.code.id.0 as usize][at.pc as usize];
        self.footprint.fenced |= plan.fence.is_some();
        for (access, plan) in at.site().accesses.iter().zip(&plan.accesses) {
            self.footprint.fenced |= plan.release.is_some();
            let (active, addresses, bytes) = at.request(access);
            let is_global =
                |lane: usize| matches!(At::resolve(access, addresses[lane]).0, Space::Global | Space::Generic);
            let mut mask: lanes::Mask = 0;
            for lane in lanes::iter(active) {
                if (1..=MOST_BYTES).contains(&bytes[lane]) && is_global(lane) {
                    mask |= 1 << lane;
                }
            }
            if mask == 0 {
                continue;
            }
            let kind = (
                plan.effect != Effect::Write,
                plan.effect != Effect::Read,
                plan.strong != Strength::Weak,
            );
            let who = |lane: usize| Who {
                function: at.code.id.0,
                line: at.site().line,
                block: self.index,
                thread: thread_of(launch.block, at.warp * 32 + lane as u32),
            };
            let first = mask.trailing_zeros() as usize;
            let same = lanes::iter(mask).all(|lane| bytes[lane] == bytes[first]);
            if same && let Some(range) = span(mask, &addresses, bytes[first].into()) {
                self.footprint.add(range, kind, &|| who(first));
                continue;
            }
            for lane in lanes::iter(mask) {
                let range = addresses[lane]..addresses[lane].saturating_add(bytes[lane].into());
                self.footprint.add(range, kind, &|| who(lane));
            }
        }
    }

    fn block_enter(&mut self, block: &BlockAt, _: bool) {
        self.index = block.index;
    }

    fn finish(self: Box<Self>, _: &[Vec<SiteCount>]) {
        *self.launch.footprint.lock().unwrap_or_else(PoisonError::into_inner) = self.footprint;
    }
}
