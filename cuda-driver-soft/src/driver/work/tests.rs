//! The graph on its own, with kernels that are none.

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
    Work::Task(Box::new(|| {
        f();
        Ok(())
    }))
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

/// A kernel that is not finished before its gate is opened; a thread inside it says so.
#[derive(Default)]
struct Gated {
    inside: AtomicU32,
    open: AtomicU32,
    panics: bool,
}

impl Divisible for Gated {
    fn piece(&self) -> bool {
        if self.inside.fetch_add(1, SeqCst) == 1 && self.panics {
            panic!("on purpose, beside another thread");
        }
        while self.open.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        self.inside.fetch_sub(1, SeqCst);
        true
    }

    // It never is: only a fault ends it.
    fn finished(&self) -> bool {
        false
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}

#[test]
fn a_kernel_is_not_given_up_while_a_thread_is_inside() {
    for cost in [0, WORTH_WAKING] {
        let graph = Graph::default();
        let gated = Arc::new(Gated::default());
        let work = gated.clone();
        let id = graph.submit(&[], Work::Kernel(Box::new(move || work)), cost);
        std::thread::scope(|scope| {
            scope.spawn(|| graph.wait(id));
            while gated.inside.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let failing = graph.submit(&[], kernel(&Pieces::new(1, Some(719))), 0);
            graph.wait(failing);
            assert_eq!((graph.fault(), graph.is_done(id)), (Some(719), false));
            gated.open.store(1, SeqCst);
        });
        assert!(graph.is_done(id));
    }
}

/// A kernel of one piece, which still has to write something when it is done.
#[derive(Default)]
struct Prints {
    calls: AtomicU32,
    /// Calls, beside the first one, after which all is done.
    others: u32,
    open: AtomicU32,
    written: AtomicU32,
    text: Mutex<Vec<u8>>,
}

impl Divisible for Prints {
    fn piece(&self) -> bool {
        let first = self.calls.fetch_add(1, SeqCst) == 0;
        while first && self.open.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        self.written.fetch_add(first.into(), SeqCst);
        first
    }

    fn finished(&self) -> bool {
        self.calls.load(SeqCst) > self.others
    }

    fn fault(&self) -> Option<Fault> {
        None
    }

    fn take_text(&self, _: usize) -> Vec<u8> {
        self.text.lock().unwrap().split_off(0)
    }
}

#[test]
fn the_last_thread_to_leave_a_kernel_finishes_it() {
    let graph = Graph::default();
    let prints = Arc::new(Prints {
        others: 1,
        ..Prints::default()
    });
    let work = prints.clone();
    let id = graph.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    std::thread::scope(|scope| {
        let waits = || {
            graph.wait(id);
            assert_eq!(prints.written.load(SeqCst), 1);
        };
        scope.spawn(waits);
        while prints.calls.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        scope.spawn(waits);
        // The second thread has left, and waits for the first one.
        while graph.lock().waiting == 0 && !graph.is_done(id) {
            std::thread::yield_now();
        }
        let done = graph.is_done(id);
        prints.open.store(1, SeqCst);
        assert!(!done);
    });
    assert_eq!(prints.calls.load(SeqCst), 2, "who enters what is done");
}

#[test]
fn nobody_enters_a_kernel_that_is_done() {
    let graph = Graph::default();
    let prints = Arc::new(Prints::default());
    let work = prints.clone();
    let id = graph.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    std::thread::scope(|scope| {
        scope.spawn(|| graph.wait(id));
        // Inside it: all is done but what that thread has still to write.
        while prints.calls.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let other = graph.lock().take();
        prints.open.store(1, SeqCst);
        assert!(other.is_none());
    });
}

#[test]
fn who_waits_writes_what_was_printed() {
    let graph = Graph::default();
    let prints = Arc::new(Prints::default());
    prints.open.store(1, SeqCst);
    *prints.text.lock().unwrap() = b"text of a kernel\n".into();
    let id = graph.submit(&[], Work::Kernel(Box::new(move || prints)), WORTH_WAKING);
    let piece = graph.lock().take().unwrap();
    // As a worker does.
    assert!(graph.run(piece) && graph.is_done(id));
    assert_eq!(graph.lock().printed, b"text of a kernel\n");
    graph.wait(id);
    assert!(graph.lock().printed.is_empty());

    // And who is about to run a host function.
    graph.lock().printed = b"more text of a kernel\n".into();
    let host = (0, Work::Host(Box::new(|_| ())));
    graph.run_host_function(host, 0);
    assert!(graph.lock().printed.is_empty());
}

#[test]
fn a_panic_of_one_thread_leaves_the_kernel_to_the_other() {
    let graph = Graph::default();
    let gated = Arc::new(Gated {
        panics: true,
        ..Gated::default()
    });
    let work = gated.clone();
    let id = graph.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| graph.wait(id));
        }
        while graph.fault().is_none() {
            std::thread::yield_now();
        }
        assert!(!graph.is_done(id));
        gated.open.store(1, SeqCst);
    });
    assert!(graph.is_done(id));
    assert_eq!(graph.fault(), Some(Error::UNKNOWN.0));
}

#[test]
fn who_waits_runs_host_functions_if_no_thread_can() {
    let graph = Graph::default();
    graph.lock().workers.host = HostThread::Refused;
    let told = Arc::new(AtomicU32::new(u32::MAX));
    let seen = told.clone();
    let function = move |fault| {
        assert!(super::super::workers::in_host_function());
        seen.store(fault, SeqCst);
    };
    let id = graph.submit(&[], Work::Host(Box::new(function)), 0);
    let behind = graph.submit(&[id], task(|| {}), 0);
    graph.wait(behind);
    assert_eq!(told.load(SeqCst), 0);
    assert!(!super::super::workers::in_host_function());
}

#[test]
fn who_asks_does_the_work_if_no_thread_can() {
    let graph = Graph::default();
    {
        let workers = &mut graph.lock().workers;
        (workers.started, workers.refused) = (true, true);
        workers.host = HostThread::Refused;
    }
    let host = graph.submit(&[], Work::Host(Box::new(|_| ())), 0);
    let pieces = Pieces::new(3, None);
    let last = graph.submit(&[host], kernel(&pieces), 0);
    let asked = (1..100).find(|_| graph.are_done(&[host, last]));
    // For the host function, and for each piece.
    assert_eq!(asked, Some(4));
}

#[test]
fn small_work_is_done_while_others_finish_what_takes_no_time() {
    let graph: &'static Graph = Box::leak(Box::default());
    graph.lock().workers.started = true;
    std::thread::spawn(|| graph.work_for_ever(true));
    let small = graph.submit(&[], task(|| {}), 0);
    let began = Instant::now();
    while !graph.is_done(small) {
        graph.submit(&[], Work::Join, 0);
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

/// Work that wants the graph's lock when it is dropped.
struct WantsLock(&'static Graph, Arc<AtomicU32>);

impl Drop for WantsLock {
    fn drop(&mut self) {
        drop(self.0.lock());
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn what_is_given_up_is_dropped_without_the_lock() {
    let graph: &'static Graph = Box::leak(Box::default());
    graph.lock().workers.started = true;
    let dropped = Arc::new(AtomicU32::new(0));
    let wants = WantsLock(graph, dropped.clone());
    let failing = graph.submit(&[], kernel(&Pieces::new(1, Some(719))), 0);
    let behind = graph.submit(&[failing], task(move || drop(wants)), 0);
    graph.wait(behind);
    assert_eq!((graph.fault(), dropped.load(SeqCst)), (Some(719), 1));
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
