//! What the device has to do: one graph of nodes for the whole process.
//!
//! A node is a piece of work that waits for other nodes. Streams, events and the rules of the legacy stream are nothing
//! but edges of this graph. Ready nodes are taken in the order in which they were submitted, by whoever has time: a
//! thread that waits for a node runs ready work itself (a hand-over to a sleeping thread and back costs more than most
//! kernels), and a pool of workers (see [`super::workers`]) takes what is large, or what nobody has waited for.
//! Host functions alone run on one thread of their own.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;
use super::hash::IdMap;
use host::console;

/// A node's sequence number, from 1; never reused. 0 is a node that is always done.
pub(crate) type NodeId = u64;

/// Work that several threads may do at once, in pieces: a kernel.
pub(crate) trait Divisible: Send + Sync {
    /// Does a bounded piece; false if there was nothing to take.
    fn piece(&self) -> bool;
    /// All of it is done, or it has failed; no thread is at work on it any more. Once it is, it stays so.
    fn finished(&self) -> bool;
    /// Its fault, once finished.
    fn fault(&self) -> Option<Fault>;
    /// Takes what it has printed, if that is at least so many bytes.
    fn take_text(&self, at_least: usize) -> Vec<u8> {
        let _ = at_least;
        Vec::new()
    }
}

/// Why work failed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The code that calls answer from now on.
    pub(crate) code: u32,
    /// What the log says.
    pub(crate) message: String,
    /// What goes to standard error whether or not there is a log: a failed assertion.
    pub(crate) stderr: Option<String>,
}

/// What a node does.
pub(crate) enum Work {
    /// Nothing: it joins what it waits for.
    Join,
    /// Notes the time at which all that it waits for is done.
    Stamp(Arc<OnceLock<Instant>>),
    /// A copy, a fill, a time stamp: one thread does it, without waiting for anything. Dropped after a fault.
    Task(Box<dyn FnOnce() -> Result<(), Fault> + Send>),
    /// A kernel, started by the thread that takes it.
    Kernel(Box<dyn FnOnce() -> Arc<dyn Divisible> + Send>),
    /// A host function. It is told the code of the fault that happened before, 0 if none.
    Host(Box<dyn FnOnce(u32) + Send>),
    /// Nothing, once a condition holds that the host, or any other work, may make true without a word.
    Until(Condition),
}

/// What is asked until it says yes.
pub(crate) type Condition = Box<dyn FnMut() -> Result<bool, Fault> + Send>;

/// Work that takes longer than waking a sleeping thread, in nanoseconds.
pub(crate) const WORTH_WAKING: u64 = 50_000;

/// Bytes of text that wait for somebody who waits; more than this is written at once.
const MUCH_TEXT: usize = 1 << 20;

struct Node {
    /// Somebody is about to report its fault, and to finish it.
    failed: bool,
    open: usize,
    successors: Vec<NodeId>,
    work: Option<Work>,
    /// A host function, also when it was taken to be run; or anything else that the host may hold up.
    host: bool,
    cost: u64,
}

impl Node {
    /// It takes no time: whoever finishes the last node before it finishes it too.
    fn is_instant(&self) -> bool {
        matches!(self.work, None | Some(Work::Join | Work::Stamp(_)))
    }
}

#[derive(Default)]
struct State {
    last: NodeId,
    /// Nodes that are not done.
    nodes: IdMap<NodeId, Node>,
    /// Nodes that any thread may start.
    ready: BTreeMap<NodeId, Work>,
    /// Host functions that may start.
    host_ready: BTreeMap<NodeId, Work>,
    /// What waits for a condition. While somebody asks, it is not here.
    conditions: BTreeMap<NodeId, Condition>,
    /// Kernels that were started and are not finished: any thread may help, unless work has failed.
    running: VecDeque<Running>,
    /// A host function is being run.
    in_host_function: bool,
    /// Code of the first fault.
    fault: Option<u32>,
    waiting: usize,
    workers: Idle,
    /// What kernels have printed and nobody has written.
    printed: Vec<u8>,
    /// There are kernels that print.
    prints: bool,
    unwanted: Unwanted,
}

/// What is to be dropped, but not under the lock: it may be large, and what it owns may want the lock.
#[derive(Default)]
struct Unwanted {
    work: Vec<Work>,
    kernels: Vec<Arc<dyn Divisible>>,
}

/// A kernel that several threads may be at work on.
struct Running {
    id: NodeId,
    kernel: Arc<dyn Divisible>,
    /// Threads that are in a piece of it: as long as there are any, it accesses memory.
    inside: usize,
}

/// Who sleeps, so that nobody is woken in vain.
#[derive(Default)]
struct Idle {
    sleeping: usize,
    /// A worker looks every now and then whether work lies about.
    watching: bool,
    started: bool,
    /// The system gave no thread: those who wait or ask do the work.
    refused: bool,
    host: HostThread,
}

/// The thread for host functions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HostThread {
    #[default]
    NotStarted,
    Runs,
    /// The system did not give it: those who wait or ask run host functions.
    Refused,
}

/// The graph and those who sleep on it.
#[derive(Default)]
pub(crate) struct Graph {
    state: Mutex<State>,
    /// A node was finished.
    done: Condvar,
    /// There is work for workers.
    work: Condvar,
    /// There is a host function to run.
    host: Condvar,
    /// Held by who writes what kernels have printed: the next one's text comes after it.
    writing: Mutex<()>,
}

/// What a thread took.
enum Piece {
    Once(NodeId, Work),
    Some(NodeId, Arc<dyn Divisible>),
}

impl Graph {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node that waits for `after`. `cost` is a guess of its duration in nanoseconds.
    pub(crate) fn submit(&self, after: &[NodeId], work: Work, cost: u64) -> NodeId {
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        let mut open = 0;
        for before in after {
            if let Some(node) = state.nodes.get_mut(before) {
                node.successors.push(id);
                open += 1;
            }
        }
        state.nodes.insert(
            id,
            Node {
                failed: false,
                open,
                successors: Vec::new(),
                host: matches!(work, Work::Host(_) | Work::Until(_)),
                work: Some(work),
                cost,
            },
        );
        if open == 0 {
            let wake = state.make_ready(id);
            self.unlock(state, wake);
        }
        id
    }

    /// Whether a node is done; what it printed may be still to come.
    pub(crate) fn is_done(&self, id: NodeId) -> bool {
        id == 0 || !self.lock().nodes.contains_key(&id)
    }

    /// Whether all of these nodes are done, and what they printed is written.
    pub(crate) fn are_done(&self, ids: &[NodeId]) -> bool {
        let mut state = self.lock();
        if !state.are_done(ids) {
            if !state.conditions.is_empty() {
                drop(state);
                self.ask_conditions();
                state = self.lock();
            }
            state = self.help(state);
        }
        let done = state.are_done(ids);
        if done {
            self.write_printed(state);
        }
        done
    }

    /// The nodes that wait for a host function, be it through others.
    pub(crate) fn behind_host_functions(&self) -> HashSet<NodeId> {
        let state = self.lock();
        let hosts = state.nodes.iter().filter(|(_, node)| node.host);
        let mut todo: Vec<NodeId> = hosts.map(|(&id, _)| id).collect();
        let mut behind = HashSet::new();
        while let Some(node) = todo.pop().and_then(|id| state.nodes.get(&id)) {
            let new = node.successors.iter().filter(|&&id| behind.insert(id));
            todo.extend(new);
        }
        behind
    }

    /// Where the system gave no threads, does a piece of the work: else it would never be done for one who only asks.
    fn help<'g>(&'g self, mut state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        if state.workers.host == HostThread::Refused
            && let Some((function, fault)) = state.take_host_function()
        {
            drop(state);
            super::workers::as_host_function(|| self.run_host_function(function, fault));
            return self.lock();
        }
        if state.workers.refused
            && let Some(piece) = state.take()
        {
            drop(state);
            self.run(piece);
            return self.lock();
        }
        state
    }

    /// Writes what kernels that are done have printed: as a real driver does, when somebody asks whether work is done or
    /// waits for it, in that thread.
    fn write_printed(&self, state: MutexGuard<'_, State>) {
        let prints = state.prints;
        drop(state);
        if prints {
            // Also if another thread has taken the text: it may still be writing.
            let _order = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let text = std::mem::take(&mut self.lock().printed);
            if !text.is_empty() {
                console::write(console::Stream::Output, &text);
            }
        }
    }

    /// The code of the first fault, if work has failed.
    pub(crate) fn fault(&self) -> Option<u32> {
        self.lock().fault
    }

    /// Waits until a node is done, doing ready work meanwhile, and writes what was printed.
    pub(crate) fn wait(&self, id: NodeId) {
        self.wait_all(&[id]);
    }

    /// Waits until all of these nodes are done, and writes what was printed.
    pub(crate) fn wait_all(&self, ids: &[NodeId]) {
        for &id in ids {
            self.wait_until_done(id);
        }
        self.write_printed(self.lock());
    }

    fn wait_until_done(&self, id: NodeId) {
        let mut state = self.lock();
        let mut idle_turns = 0;
        while state.nodes.contains_key(&id) {
            // First: a kernel that runs may wait for what it does.
            if state.workers.host == HostThread::Refused
                && let Some((function, fault)) = state.take_host_function()
            {
                drop(state);
                super::workers::as_host_function(|| self.run_host_function(function, fault));
                state = self.lock();
                continue;
            }
            if idle_turns <= state.running.len()
                && let Some(piece) = state.take()
            {
                drop(state);
                let progress = self.run(piece);
                state = self.lock();
                idle_turns = if progress { 0 } else { idle_turns + 1 };
                continue;
            }
            if !state.conditions.is_empty() {
                drop(state);
                let held = self.ask_conditions();
                state = self.lock();
                if held || !state.nodes.contains_key(&id) {
                    continue;
                }
            }
            state.waiting += 1;
            // The limit is for kernels that gave up a slice: their blocks can be taken again, which nobody announces.
            let (guard, _) = self
                .done
                .wait_timeout(state, Duration::from_millis(1))
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.waiting -= 1;
            idle_turns = 0;
        }
    }

    /// Runs what was taken; false if there was nothing to do in it. A panic inside counts as a fault: the node must end, or
    /// those who wait for it would wait for ever.
    fn run(&self, piece: Piece) -> bool {
        let (Piece::Once(id, _) | Piece::Some(id, _)) = &piece;
        let id = *id;
        match catch_unwind(AssertUnwindSafe(|| self.run_piece(piece))) {
            Ok(progress) => progress,
            Err(_) => {
                let message = "a panic inside the driver's work, see above".into();
                let fault = Fault {
                    code: Error::UNKNOWN.0,
                    message,
                    stderr: None,
                };
                let first = self.report(id, fault);
                let mut state = self.lock();
                let mut wake = Wake::default();
                // Other threads may be inside the same kernel: the last to leave finishes it.
                if state.leave(id).is_none() && first {
                    wake = state.finish(id);
                }
                wake.add(state.give_up());
                self.unlock(state, wake);
                true
            }
        }
    }

    fn run_piece(&self, piece: Piece) -> bool {
        match piece {
            Piece::Once(id, Work::Task(task)) => {
                let failed = task().err();
                self.finish(id, failed);
                true
            }
            Piece::Once(id, Work::Kernel(start)) => {
                let kernel = start();
                // Small kernels are done in one piece; large ones go at once where other threads find them.
                let mut state = self.lock();
                let shared = state
                    .nodes
                    .get(&id)
                    .is_some_and(|node| node.cost >= WORTH_WAKING);
                if shared {
                    state.running.push_back(Running {
                        id,
                        kernel: kernel.clone(),
                        inside: 1,
                    });
                }
                drop(state);
                let progress = kernel.piece();
                self.leave(id, kernel, progress) || progress
            }
            Piece::Once(id, Work::Join | Work::Stamp(_) | Work::Host(_) | Work::Until(_)) => {
                self.finish(id, None);
                true
            }
            Piece::Some(id, kernel) => {
                let progress = kernel.piece();
                self.leave(id, kernel, progress) || progress
            }
        }
    }

    /// The calling thread leaves a kernel that it did a piece of. The last one to leave finishes it, if it is done: before
    /// that, another thread may still have something to do for it. True if this thread has finished it.
    fn leave(&self, id: NodeId, kernel: Arc<dyn Divisible>, progress: bool) -> bool {
        let mut state = self.lock();
        let inside = state.leave(id);
        let finished = inside.unwrap_or(0) == 0 && kernel.finished();
        if !progress && inside.is_some() && !finished && state.fault.is_none() {
            // There is nothing to tell. Those who wait would come, find as little, and wake one another.
            return false;
        }
        let ends = finished || inside.is_none() && state.fault.is_some();
        state.keep_text(&*kernel, if ends { 1 } else { MUCH_TEXT });
        if finished {
            // Nobody is to enter it any more.
            state.running.retain(|running| running.id != id);
            drop(state);
            self.finish(id, kernel.fault());
            return true;
        }
        let wake = match inside {
            Some(_) => state.give_up(),
            None if state.fault.is_some() => state.finish(id),
            None => {
                state.running.push_back(Running {
                    id,
                    kernel,
                    inside: 0,
                });
                Wake {
                    large: true,
                    ..Wake::default()
                }
            }
        };
        let much_text = state.printed.len() >= MUCH_TEXT;
        self.unlock(state, wake);
        if much_text {
            self.write_printed(self.lock());
        }
        false
    }

    fn finish(&self, id: NodeId, fault: Option<Fault>) {
        let first = fault.is_none_or(|fault| self.report(id, fault));
        let mut state = self.lock();
        let mut wake = Wake::default();
        if first {
            wake = state.finish(id);
        }
        wake.add(state.give_up());
        let conditions = !state.conditions.is_empty();
        self.unlock(state, wake);
        if conditions {
            // This work may be what they wait for.
            self.ask_conditions();
        }
    }

    /// Makes a fault the process's, and then says what it is: while nobody waits for this, and before anybody who waits
    /// for the node learns of it. False if another thread that worked on the same node does so.
    fn report(&self, id: NodeId, fault: Fault) -> bool {
        let mut state = self.lock();
        match state.nodes.get_mut(&id) {
            Some(node) if !node.failed => node.failed = true,
            _ => return false,
        }
        state.fault.get_or_insert(fault.code);
        drop(state);
        if let Some(line) = &fault.stderr {
            console::write(console::Stream::Error, format!("{line}\n").as_bytes());
        }
        host::log!("{}", fault.message);
        true
    }

    fn run_host_function(&self, (id, work): (NodeId, Work), fault: u32) {
        if let Work::Host(function) = work {
            // What kernels before it printed comes before what it prints.
            self.write_printed(self.lock());
            function(fault);
        }
        let mut state = self.lock();
        state.in_host_function = false;
        if !state.host_ready.is_empty() {
            self.host.notify_one();
        }
        drop(state);
        self.finish(id, None);
    }

    /// Wakes those whom a change concerns, and gives the lock back. What may take long comes after that: to start threads,
    /// to drop what nobody wants any more.
    fn unlock(&self, mut state: MutexGuard<'_, State>, wake: Wake) {
        if state.waiting > 0 {
            self.done.notify_all();
        }
        if wake.host {
            self.host.notify_one();
        }
        if wake.large && state.workers.sleeping > 0 {
            self.work.notify_all();
        } else if wake.small && !state.workers.watching && state.workers.sleeping > 0 {
            // All: only the watchman takes small work, and which sleeper is the watchman is not known here.
            self.work.notify_all();
        }
        let any = wake.small || wake.large || wake.host;
        let start = any && !std::mem::replace(&mut state.workers.started, any);
        let start_host = wake.host && state.workers.host == HostThread::NotStarted;
        if start_host {
            state.workers.host = HostThread::Runs;
        }
        let unwanted = std::mem::take(&mut state.unwanted);
        drop(state);
        drop(unwanted);
        if start && !super::workers::start() {
            self.lock().workers.refused = true;
        }
        if start_host && !super::workers::start_host() {
            self.lock().workers.host = HostThread::Refused;
        }
    }

    /// A worker's life: large work at once, small work when it has lain about for a while.
    pub(super) fn work_for_ever(&self, watchman: bool) {
        const NAP: Duration = Duration::from_micros(100);
        const LONG_NAP: Duration = Duration::from_millis(1);
        const NAPS: u32 = 20;
        let mut state = self.lock();
        let mut naps = 0;
        let (mut idle_turns, mut neglected) = (0, false);
        let mut asked = 0_u32;
        loop {
            let wanted = neglected || state.has_large_work();
            if wanted
                && idle_turns <= state.running.len()
                && let Some(piece) = state.take()
            {
                drop(state);
                let progress = self.run(piece);
                state = self.lock();
                idle_turns = if progress { 0 } else { idle_turns + 1 };
                continue;
            }
            if watchman && !state.conditions.is_empty() {
                drop(state);
                let held = self.ask_conditions();
                state = self.lock();
                if held {
                    asked = 0;
                    continue;
                }
                asked += 1;
            }
            let conditions = !state.conditions.is_empty();
            let pending = !state.ready.is_empty() || !state.running.is_empty();
            idle_turns = 0;
            state.workers.sleeping += 1;
            if watchman && (pending || conditions || naps < NAPS) {
                naps = if pending { 1 } else { naps + 1 };
                let oldest = state.oldest();
                state.workers.watching = true;
                // What has not come for a while is asked for less often.
                let nap = match conditions && !pending && asked > NAPS {
                    true => LONG_NAP,
                    false => NAP,
                };
                state = self
                    .work
                    .wait_timeout(state, nap)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                state.workers.watching = false;
                // Not: nothing was done meanwhile. Who asks in a loop may do much, and never this.
                neglected = oldest.is_some_and(|id| state.lies_about(id));
            } else {
                (naps, neglected) = (0, false);
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.workers.sleeping -= 1;
        }
    }

    /// The life of the thread that runs host functions.
    pub(super) fn run_host_functions_for_ever(&self) {
        let mut state = self.lock();
        loop {
            while let Some((function, fault)) = state.take_host_function() {
                drop(state);
                self.run_host_function(function, fault);
                state = self.lock();
            }
            state = self
                .host
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Whom a change concerns.
#[derive(Clone, Copy, Default)]
struct Wake {
    host: bool,
    small: bool,
    large: bool,
}

impl Wake {
    fn add(&mut self, other: Wake) {
        self.host |= other.host;
        self.small |= other.small;
        self.large |= other.large;
    }
}

impl State {
    fn are_done(&self, ids: &[NodeId]) -> bool {
        ids.iter().all(|id| !self.nodes.contains_key(id))
    }

    /// The next piece of work: what is ready first, then a share in what runs, in turn.
    fn take(&mut self) -> Option<Piece> {
        if let Some((id, work)) = self.ready.pop_first() {
            let work = if self.fault.is_some() {
                self.unwanted.work.push(work);
                Work::Join
            } else {
                work
            };
            return Some(Piece::Once(id, work));
        }
        if self.fault.is_some() {
            return None;
        }
        // Not one that is done: if threads went in and out of it, none of them would be the last to leave.
        let at = self.running.iter().position(|r| !r.kernel.finished())?;
        let mut running = self.running.remove(at)?;
        running.inside += 1;
        let piece = Piece::Some(running.id, running.kernel.clone());
        self.running.push_back(running);
        Some(piece)
    }

    /// A thread has left a kernel: how many are still inside. `None` if it is not among those that several threads share.
    fn leave(&mut self, id: NodeId) -> Option<usize> {
        let running = self.running.iter_mut().find(|r| r.id == id)?;
        running.inside = running.inside.saturating_sub(1);
        Some(running.inside)
    }

    /// Takes over what a kernel has printed, if that is at least so many bytes.
    fn keep_text(&mut self, kernel: &dyn Divisible, at_least: usize) {
        let text = kernel.take_text(at_least);
        self.prints |= !text.is_empty();
        self.printed.extend(text);
    }

    /// After a fault the device is lost to this process: kernels that run are given up as soon as no thread is inside, and
    /// conditions at once; what waits is dropped when its turn comes.
    fn give_up(&mut self) -> Wake {
        let mut wake = Wake::default();
        if self.fault.is_some() {
            let empty = self.running.iter().filter(|r| r.inside == 0);
            let given_up: Vec<NodeId> = empty.map(|r| r.id).collect();
            let conditions = std::mem::take(&mut self.conditions);
            for id in given_up.into_iter().chain(conditions.keys().copied()) {
                wake.add(self.finish(id));
            }
            let conditions = conditions.into_values().map(Work::Until);
            self.unwanted.work.extend(conditions);
        }
        wake
    }

    /// The next host function, and the code of the fault that it is told. One at a time.
    fn take_host_function(&mut self) -> Option<((NodeId, Work), u32)> {
        if self.in_host_function {
            return None;
        }
        let next = self.host_ready.pop_first()?;
        self.in_host_function = true;
        Some((next, self.fault.unwrap_or(0)))
    }

    /// The oldest work that anybody could do.
    fn oldest(&self) -> Option<NodeId> {
        let ready = self.ready.first_key_value().map(|(id, _)| *id);
        self.running.iter().map(|r| r.id).chain(ready).min()
    }

    /// Whether anybody could still do this work.
    fn lies_about(&self, id: NodeId) -> bool {
        self.ready.contains_key(&id) || self.running.iter().any(|r| r.id == id)
    }

    fn has_large_work(&self) -> bool {
        !self.running.is_empty()
            || self
                .ready
                .keys()
                .take(8)
                .any(|id| self.nodes.get(id).is_some_and(|n| n.cost >= WORTH_WAKING))
    }

    /// A node has nothing left to wait for.
    fn make_ready(&mut self, id: NodeId) -> Wake {
        let Some(node) = self.nodes.get_mut(&id) else {
            return Wake::default();
        };
        if node.is_instant() {
            return self.finish(id);
        }
        let large = node.cost >= WORTH_WAKING;
        match node.work.take() {
            None => self.finish(id),
            Some(work @ Work::Host(_)) => {
                self.host_ready.insert(id, work);
                Wake {
                    host: true,
                    ..Wake::default()
                }
            }
            Some(Work::Until(_)) if self.fault.is_some() => self.finish(id),
            Some(Work::Until(condition)) => {
                self.conditions.insert(id, condition);
                // Somebody is to ask.
                Wake {
                    small: true,
                    ..Wake::default()
                }
            }
            Some(work) => {
                self.ready.insert(id, work);
                Wake {
                    small: true,
                    large,
                    ..Wake::default()
                }
            }
        }
    }

    /// Takes a node out and releases those that waited for it. Without recursion: a chain of joins may be long.
    fn finish(&mut self, id: NodeId) -> Wake {
        let mut wake = Wake::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let Some(node) = self.nodes.remove(&id) else {
                continue;
            };
            if let Some(Work::Stamp(time)) = node.work {
                time.get_or_init(Instant::now);
            }
            if let Some(at) = self.running.iter().position(|running| running.id == id)
                && let Some(given_up) = self.running.remove(at)
            {
                self.keep_text(&*given_up.kernel, 1);
                self.unwanted.kernels.push(given_up.kernel);
            }
            for next in node.successors {
                let Some(successor) = self.nodes.get_mut(&next) else {
                    continue;
                };
                successor.open -= 1;
                if successor.open > 0 {
                    continue;
                }
                if successor.is_instant() {
                    todo.push(next);
                } else {
                    wake.add(self.make_ready(next));
                }
            }
        }
        wake
    }
}

mod conditions;
#[cfg(test)]
mod tests;
