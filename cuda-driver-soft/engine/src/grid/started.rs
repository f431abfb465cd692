//! The state of a started launch that its workers share.

#![forbid(unsafe_code)]

use super::queue::BlockQueue;
use super::shape::GridShape;
use crate::code::compiled::Variant;
use crate::code::function::Code;
use crate::fault::{Fault, FaultKind, Report};
use crate::launch::Launch;
use crate::observe::Observation;
use crate::program::history::{Counts, Sums};
use std::sync::{Arc, Mutex, MutexGuard};

/// The part of a started launch that its workers share.
pub(crate) struct StartedLaunch {
    pub(super) launch: Launch,
    /// Decoded code by function; `None` for functions that the kernel cannot reach or that are not supported.
    pub(super) codes: Vec<Option<Arc<Code>>>,
    pub(super) shape: GridShape,
    pub(crate) queue: BlockQueue,
    /// The machine code that warps run where they can.
    pub(super) machine_code: Option<Variant>,
    /// Instructions run so far.
    steps: Sums,
    /// The fault of the lowest cluster, with its number.
    fault: Mutex<Option<(u64, Fault)>>,
    output: Mutex<Vec<u8>>,
    pub(super) observation: Observation,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl StartedLaunch {
    /// Returns a started launch. A launch with a fault has already ended.
    pub(super) fn new(
        launch: Launch,
        (codes, machine_code): (Vec<Option<Arc<Code>>>, Option<Variant>),
        shape: GridShape,
        queue: BlockQueue,
        fault: Option<Fault>,
        observation: Observation,
    ) -> Self {
        if fault.is_some() {
            queue.finish();
        }
        StartedLaunch {
            launch,
            codes,
            shape,
            queue,
            machine_code,
            steps: Sums::default(),
            fault: Mutex::new(fault.map(|fault| (0, fault))),
            output: Mutex::new(Vec::new()),
            observation,
        }
    }

    /// Records a fault in a cluster, and cancels the clusters from it on, because only the lowest fault is reported.
    pub(crate) fn report(&self, number: u64, mut fault: Fault) {
        fault.kernel = self.launch.kernel.name().into();
        {
            let mut first = lock(&self.fault);
            if first.as_ref().is_none_or(|(at, _)| number < *at) {
                *first = Some((number, fault));
            }
        }
        self.queue.cancel_from(number);
    }

    /// Records a fault of a cluster as a whole.
    pub(super) fn report_kind(&self, number: u64, kind: FaultKind) {
        let fault = Fault {
            kind,
            kernel: String::new(),
            line: 0,
            block: self.shape.index(number, 0),
            block_size: self.shape.block,
            thread: [0; 3],
            report: Report::default(),
        };
        self.report(number, fault);
    }

    /// Returns the fault of the lowest cluster so far.
    pub(super) fn fault(&self) -> Option<Fault> {
        lock(&self.fault).as_ref().map(|(_, fault)| fault.clone())
    }

    /// Adds to the instructions run so far.
    pub(super) fn count_steps(&self, counts: Counts) {
        let history = self.launch.kernel.history();
        match self.machine_code {
            Some(_) => history.compiled.add(counts),
            None => history.interpreted.add(counts),
        }
        self.steps.add(counts);
    }

    /// Returns the launch's budget if the instructions counted so far have used it up.
    pub(super) fn spent_budget(&self) -> Option<u64> {
        let budget = self.launch.options.budget;
        budget.filter(|budget| self.steps.get().all >= *budget)
    }

    /// Returns the instructions run so far, as far as the workers have counted them.
    pub(super) fn counts(&self) -> Counts {
        self.steps.get()
    }

    /// Appends output of the kernel.
    pub(super) fn print(&self, text: &[u8]) {
        if !text.is_empty() {
            lock(&self.output).extend_from_slice(text);
        }
    }

    /// Takes the kernel's output if it has at least this many bytes; otherwise returns nothing.
    pub(super) fn take_output(&self, at_least: usize) -> Vec<u8> {
        let mut output = lock(&self.output);
        if output.len() < at_least {
            return Vec::new();
        }
        std::mem::take(&mut *output)
    }
}
