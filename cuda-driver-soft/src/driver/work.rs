//! What the device has to do: one graph of nodes for the whole process.
//!
//! A node is a piece of work that waits for other nodes. Streams, events and the rules of the legacy stream are nothing
//! but edges of this graph. Ready nodes are taken in the order in which they were submitted, by whoever has time: a
//! thread that waits for a node runs ready work itself (a hand-over to a sleeping thread and back costs more than most
//! kernels), and a pool of workers (see [`super::workers`]) takes what is large, or what nobody has waited for.
//! Host functions alone run on one thread of their own.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;
use super::hash::IdMap;

/// A node's sequence number, from 1; never reused. 0 is a node that is always done.
pub(crate) type NodeId = u64;

/// Work that several threads may do at once, in pieces: a kernel.
pub(crate) trait Divisible: Send + Sync {
    /// Does a bounded piece; false if there was nothing to take.
    fn piece(&self) -> bool;
    /// All of it is done, or it has failed.
    fn finished(&self) -> bool;
    /// Its fault, once finished.
    fn fault(&self) -> Option<Fault>;
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
    Task(Box<dyn FnOnce() + Send>),
    /// A kernel, started by the thread that takes it.
    Kernel(Box<dyn FnOnce() -> Arc<dyn Divisible> + Send>),
    /// A host function. It is told the code of the fault that happened before, 0 if none.
    Host(Box<dyn FnOnce(u32) + Send>),
}

/// Work that takes longer than waking a sleeping thread, in nanoseconds.
pub(crate) const WORTH_WAKING: u64 = 50_000;

struct Node {
    open: usize,
    successors: Vec<NodeId>,
    work: Option<Work>,
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
    /// Kernels that were started and are not finished: any thread may help.
    running: VecDeque<(NodeId, Arc<dyn Divisible>)>,
    /// Code of the first fault.
    fault: Option<u32>,
    /// Counts finished nodes: tells the workers whether anybody makes progress.
    finished: u64,
    waiting: usize,
    workers: Idle,
}

/// Who sleeps, so that nobody is woken in vain.
#[derive(Default)]
struct Idle {
    sleeping: usize,
    /// A worker looks every now and then whether work lies about.
    watching: bool,
    started: bool,
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
                open,
                successors: Vec::new(),
                work: Some(work),
                cost,
            },
        );
        if open == 0 {
            let wake = state.make_ready(id);
            self.wake(&mut state, wake);
        }
        id
    }

    /// Whether a node is done.
    pub(crate) fn is_done(&self, id: NodeId) -> bool {
        id == 0 || !self.lock().nodes.contains_key(&id)
    }

    /// Whether all of these nodes are done.
    pub(crate) fn are_done(&self, ids: &[NodeId]) -> bool {
        let state = self.lock();
        ids.iter().all(|id| !state.nodes.contains_key(id))
    }

    /// The code of the first fault, if work has failed.
    pub(crate) fn fault(&self) -> Option<u32> {
        self.lock().fault
    }

    /// Waits until a node is done, doing ready work meanwhile.
    pub(crate) fn wait(&self, id: NodeId) {
        let mut state = self.lock();
        let mut idle_turns = 0;
        while state.nodes.contains_key(&id) {
            if idle_turns <= state.running.len()
                && let Some(piece) = state.take()
            {
                drop(state);
                let progress = self.run(piece);
                state = self.lock();
                idle_turns = if progress { 0 } else { idle_turns + 1 };
                continue;
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

    /// Waits until all of these nodes are done.
    pub(crate) fn wait_all(&self, ids: &[NodeId]) {
        for &id in ids {
            self.wait(id);
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
                self.finish(
                    id,
                    Some(Fault {
                        code: Error::UNKNOWN.0,
                        message,
                        stderr: None,
                    }),
                );
                true
            }
        }
    }

    fn run_piece(&self, piece: Piece) -> bool {
        match piece {
            Piece::Once(id, Work::Task(task)) => {
                task();
                self.finish(id, None);
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
                    state.running.push_back((id, kernel.clone()));
                }
                drop(state);
                let progress = kernel.piece();
                if kernel.finished() {
                    self.finish(id, kernel.fault());
                    return true;
                }
                if !shared {
                    let mut state = self.lock();
                    state.running.push_back((id, kernel));
                    self.wake(
                        &mut state,
                        Wake {
                            large: true,
                            ..Wake::default()
                        },
                    );
                }
                progress
            }
            Piece::Once(id, Work::Join | Work::Stamp(_) | Work::Host(_)) => {
                self.finish(id, None);
                true
            }
            Piece::Some(id, kernel) => {
                let progress = kernel.piece();
                if kernel.finished() {
                    self.finish(id, kernel.fault());
                    return true;
                }
                progress
            }
        }
    }

    fn finish(&self, id: NodeId, fault: Option<Fault>) {
        let mut state = self.lock();
        // Of several threads that worked on it, the first to see its end reports it.
        let fault = fault.filter(|_| state.nodes.contains_key(&id));
        let mut wake = state.finish(id);
        if let Some(fault) = fault {
            if let Some(line) = &fault.stderr {
                eprintln!("{line}");
            }
            crate::log!("{}", fault.message);
            state.fault.get_or_insert(fault.code);
            // The device is lost to this process: what runs is given up, what waits is dropped when its turn comes.
            while let Some((other, _)) = state.running.pop_front() {
                wake.add(state.finish(other));
            }
        }
        self.wake(&mut state, wake);
    }

    fn wake(&self, state: &mut State, wake: Wake) {
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
        if (wake.small || wake.large || wake.host) && !state.workers.started {
            state.workers.started = true;
            super::workers::start();
        }
    }

    /// A worker's life: large work at once, small work when it has lain about for a while.
    pub(super) fn work_for_ever(&self, watchman: bool) {
        const NAP: Duration = Duration::from_micros(100);
        const NAPS: u32 = 20;
        let mut state = self.lock();
        let mut naps = 0;
        let (mut idle_turns, mut neglected) = (0, false);
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
            let pending = !state.ready.is_empty() || !state.running.is_empty();
            idle_turns = 0;
            state.workers.sleeping += 1;
            if watchman && (pending || naps < NAPS) {
                naps = if pending { 1 } else { naps + 1 };
                let seen = state.finished;
                state.workers.watching = true;
                state = self
                    .work
                    .wait_timeout(state, NAP)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                state.workers.watching = false;
                neglected = pending && seen == state.finished;
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
            while let Some((id, work)) = state.host_ready.pop_first() {
                let fault = state.fault.unwrap_or(0);
                drop(state);
                if let Work::Host(function) = work {
                    function(fault);
                }
                self.finish(id, None);
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
    /// The next piece of work: what is ready first, then a share in what runs, in turn.
    fn take(&mut self) -> Option<Piece> {
        if let Some((id, work)) = self.ready.pop_first() {
            let work = if self.fault.is_some() {
                Work::Join
            } else {
                work
            };
            return Some(Piece::Once(id, work));
        }
        let (id, kernel) = self.running.pop_front()?;
        self.running.push_back((id, kernel.clone()));
        Some(Piece::Some(id, kernel))
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
            self.finished += 1;
            self.running.retain(|(running, _)| *running != id);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

    /// A kernel of so many pieces.
    struct Pieces {
        left: AtomicU32,
        taken: AtomicU32,
        fault: Option<u32>,
    }

    impl Pieces {
        fn new(count: u32, fault: Option<u32>) -> Arc<Self> {
            Arc::new(Pieces {
                left: AtomicU32::new(count),
                taken: AtomicU32::new(count),
                fault,
            })
        }
    }

    impl Divisible for Pieces {
        fn piece(&self) -> bool {
            let taken = self
                .taken
                .fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1));
            if taken.is_ok() {
                std::thread::yield_now();
                self.left.fetch_sub(1, SeqCst);
            }
            taken.is_ok()
        }

        fn finished(&self) -> bool {
            self.left.load(SeqCst) == 0
        }

        fn fault(&self) -> Option<Fault> {
            self.fault.map(|code| Fault {
                code,
                message: String::new(),
                stderr: None,
            })
        }
    }

    fn kernel(pieces: &Arc<Pieces>) -> Work {
        let pieces = pieces.clone();
        Work::Kernel(Box::new(move || pieces))
    }

    fn task(f: impl FnOnce() + Send + 'static) -> Work {
        Work::Task(Box::new(f))
    }

    /// A small generator of numbers that are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    #[test]
    fn every_node_runs_after_those_that_it_waits_for() {
        const NODES: usize = 2000;
        let graph = Graph::default();
        let clock = Arc::new(AtomicU64::new(1));
        let times: Arc<Vec<AtomicU64>> = Arc::new((0..NODES).map(|_| AtomicU64::new(0)).collect());
        let mut numbers = Numbers(7);
        let mut edges: Vec<Vec<usize>> = Vec::new();
        let ids = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for node in 0..NODES {
                let count = if node == 0 { 0 } else { numbers.below(4) };
                let before: Vec<usize> = (0..count)
                    .map(|_| node - 1 - numbers.below(node.min(50) as u64) as usize)
                    .collect();
                let after: Vec<NodeId> = before.iter().map(|b| ids.lock().unwrap()[*b]).collect();
                let (clock, times) = (clock.clone(), times.clone());
                let work = match numbers.below(3) {
                    0 => {
                        times[node].store(u64::MAX, SeqCst);
                        Work::Join
                    }
                    _ => task(move || times[node].store(clock.fetch_add(1, SeqCst), SeqCst)),
                };
                let id = graph.submit(&after, work, numbers.below(2) * WORTH_WAKING);
                ids.lock().unwrap().push(id);
                edges.push(before);
                if node % 500 == 499 {
                    // Several threads wait, and so work, at once.
                    scope.spawn(|| {
                        let all = ids.lock().unwrap().clone();
                        graph.wait_all(&all);
                    });
                }
            }
            graph.wait_all(&ids.lock().unwrap().clone());
        });
        for (node, before) in edges.iter().enumerate() {
            let time = times[node].load(SeqCst);
            assert_ne!(time, 0, "node {node} did not run");
            for b in before {
                let earlier = times[*b].load(SeqCst);
                assert!(
                    earlier == u64::MAX || earlier < time,
                    "node {node} ran before {b}"
                );
            }
        }
    }

    #[test]
    fn a_long_chain_of_joins_needs_no_stack() {
        let graph = Graph::default();
        let gate = graph.submit(&[], task(|| {}), 0);
        let mut last = gate;
        for _ in 0..200_000 {
            last = graph.submit(&[last], Work::Join, 0);
        }
        assert!(!graph.is_done(last));
        graph.wait(gate);
        assert!(graph.is_done(last));
    }

    #[test]
    fn several_threads_share_a_kernel() {
        let graph = Graph::default();
        let pieces = Pieces::new(10_000, None);
        let id = graph.submit(&[], kernel(&pieces), WORTH_WAKING);
        let behind = graph.submit(&[id], Work::Join, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| graph.wait(behind));
            }
        });
        assert!(pieces.finished() && graph.are_done(&[id, behind]));
    }

    #[test]
    fn after_a_fault_what_waits_is_dropped() {
        let graph = Graph::default();
        let ran = Arc::new(AtomicU32::new(0));
        let count = ran.clone();
        let endless = Pieces::new(u32::MAX, None);
        let other = graph.submit(&[], kernel(&endless), WORTH_WAKING);
        let failing = graph.submit(&[], kernel(&Pieces::new(3, Some(719))), 0);
        let behind = graph.submit(
            &[failing],
            task(move || {
                count.fetch_add(1, SeqCst);
            }),
            0,
        );
        assert_eq!(graph.fault(), None);
        graph.wait(behind);
        // The kernel that would never end is given up.
        graph.wait(other);
        assert_eq!((graph.fault(), ran.load(SeqCst)), (Some(719), 0));
    }

    #[test]
    fn a_panic_ends_its_node_as_a_fault() {
        let graph = Graph::default();
        let id = graph.submit(&[], task(|| panic!("on purpose")), 0);
        graph.wait(id);
        assert_eq!(graph.fault(), Some(Error::UNKNOWN.0));
    }

    #[test]
    fn a_stamp_is_the_time_of_the_last_that_it_waits_for() {
        let graph = Graph::default();
        let time = Arc::new(OnceLock::new());
        let id = graph.submit(
            &[],
            task(|| std::thread::sleep(Duration::from_millis(20))),
            0,
        );
        let began = Instant::now();
        let stamp = graph.submit(&[id], Work::Stamp(time.clone()), 0);
        assert!(time.get().is_none());
        graph.wait(stamp);
        assert!(*time.get().unwrap() >= began + Duration::from_millis(20));
    }
}
