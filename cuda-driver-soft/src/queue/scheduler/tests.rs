//! Tests of the scheduler alone, with stand-ins for kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

use super::*;
use crate::queue::work::{Divisible, Fault, WORTH_WAKING};

/// A stand-in for a kernel of a given number of pieces.
struct Pieces {
    /// Number of pieces that are not done.
    left: AtomicU32,
    /// Number of pieces that no thread has taken.
    untaken: AtomicU32,
    fault: Option<u32>,
}

impl Pieces {
    fn new(count: u32, fault: Option<u32>) -> Arc<Self> {
        Arc::new(Pieces {
            left: AtomicU32::new(count),
            untaken: AtomicU32::new(count),
            fault,
        })
    }
}

impl Divisible for Pieces {
    fn piece(&self) -> bool {
        let taken = self.untaken.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1));
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
            code: Error(code),
            message: String::new(),
            details: Vec::new(),
            stderr: None,
        })
    }
}

fn kernel(pieces: &Arc<Pieces>) -> Work {
    let pieces = pieces.clone();
    Work::Kernel(Box::new(move || pieces))
}

fn task(f: impl FnOnce() + Send + 'static) -> Work {
    Work::Run(Box::new(|| {
        f();
        Ok(())
    }))
}

/// A small pseudo-random generator with the same numbers in each run.
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
fn every_task_runs_after_its_dependencies() {
    const TASKS: usize = 2000;
    let scheduler = Scheduler::default();
    let clock = Arc::new(AtomicU64::new(1));
    let times: Arc<Vec<AtomicU64>> = Arc::new((0..TASKS).map(|_| AtomicU64::new(0)).collect());
    let mut numbers = Numbers(7);
    let mut edges: Vec<Vec<usize>> = Vec::new();
    let ids = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for index in 0..TASKS {
            let count = if index == 0 { 0 } else { numbers.below(4) };
            let before: Vec<usize> = (0..count)
                .map(|_| index - 1 - numbers.below(index.min(50) as u64) as usize)
                .collect();
            let after: Vec<TaskId> = before.iter().map(|b| ids.lock().unwrap()[*b]).collect();
            let (clock, times) = (clock.clone(), times.clone());
            let work = match numbers.below(3) {
                0 => {
                    times[index].store(u64::MAX, SeqCst);
                    Work::Join
                }
                _ => task(move || times[index].store(clock.fetch_add(1, SeqCst), SeqCst)),
            };
            let id = scheduler.submit(&after, work, numbers.below(2) * WORTH_WAKING);
            ids.lock().unwrap().push(id);
            edges.push(before);
            if index % 500 == 499 {
                // A waiting thread runs queued work itself, so several threads work at the same time.
                scope.spawn(|| {
                    let all = ids.lock().unwrap().clone();
                    scheduler.wait_all(&all);
                });
            }
        }
        scheduler.wait_all(&ids.lock().unwrap().clone());
    });
    for (index, before) in edges.iter().enumerate() {
        let time = times[index].load(SeqCst);
        assert_ne!(time, 0, "task {index} did not run");
        for b in before {
            let earlier = times[*b].load(SeqCst);
            assert!(earlier == u64::MAX || earlier < time, "task {index} ran before {b}");
        }
    }
}

#[test]
fn a_long_chain_of_joins_needs_no_stack() {
    let scheduler = Scheduler::default();
    let gate = scheduler.submit(&[], task(|| {}), 0);
    let mut last = gate;
    for _ in 0..200_000 {
        last = scheduler.submit(&[last], Work::Join, 0);
    }
    assert!(!scheduler.is_done(last));
    scheduler.wait(gate);
    assert!(scheduler.is_done(last));
}

/// Each condition takes the lock when it is dropped, so it must be dropped without it.
#[test]
fn a_long_chain_of_conditions_needs_no_stack_after_a_fault() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    let dropped = Arc::new(AtomicU32::new(0));
    let failing = scheduler.submit(&[], kernel(&Pieces::new(1, Some(719))), 0);
    let mut last = failing;
    for _ in 0..200_000 {
        let wants = WantsLock(scheduler, dropped.clone());
        let condition = move || {
            let _kept = &wants;
            Ok(false)
        };
        last = scheduler.submit(&[last], Work::Until(Box::new(condition)), 0);
    }
    scheduler.wait(failing);
    assert!(scheduler.is_done(last));
    assert_eq!((scheduler.fault(), dropped.load(SeqCst)), (Some(Error(719)), 200_000));
}

#[test]
fn a_panic_in_a_condition_is_a_fault_of_its_task() {
    let scheduler = Scheduler::default();
    scheduler.lock().workers.started = true;
    let panics = scheduler.submit(&[], Work::Until(Box::new(|| panic!("on purpose"))), 0);
    let other = scheduler.submit(&[], Work::Until(Box::new(|| Ok(false))), 0);
    scheduler.wait(panics);
    assert_eq!(scheduler.fault(), Some(Error::CUDA_ERROR_UNKNOWN));
    // Other conditions are abandoned after the fault, not lost.
    assert!(scheduler.is_done(other));
}

#[test]
fn several_threads_wait_for_a_kernel() {
    let scheduler = Scheduler::default();
    let pieces = Pieces::new(10_000, None);
    let id = scheduler.submit(&[], kernel(&pieces), WORTH_WAKING);
    let behind = scheduler.submit(&[id], Work::Join, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| scheduler.wait(behind));
        }
    });
    assert!(pieces.finished() && scheduler.are_done(&[id, behind]));
}

#[test]
fn waiting_tasks_are_dropped_after_a_fault() {
    let scheduler = Scheduler::default();
    let ran = Arc::new(AtomicU32::new(0));
    let count = ran.clone();
    let endless = Pieces::new(u32::MAX, None);
    let other = scheduler.submit(&[], kernel(&endless), WORTH_WAKING);
    let failing = scheduler.submit(&[], kernel(&Pieces::new(3, Some(719))), 0);
    let behind = scheduler.submit(
        &[failing],
        task(move || {
            count.fetch_add(1, SeqCst);
        }),
        0,
    );
    assert_eq!(scheduler.fault(), None);
    scheduler.wait(behind);
    // The kernel that never finishes is abandoned.
    scheduler.wait(other);
    assert_eq!((scheduler.fault(), ran.load(SeqCst)), (Some(Error(719)), 0));
}

#[test]
fn a_panic_ends_its_task_as_a_fault() {
    let scheduler = Scheduler::default();
    let id = scheduler.submit(&[], task(|| panic!("on purpose")), 0);
    scheduler.wait(id);
    assert_eq!(scheduler.fault(), Some(Error::CUDA_ERROR_UNKNOWN));
}

/// A kernel whose pieces end once `open` is set. `inside` counts the threads that run it. If `panics` is set, the piece
/// of a second thread panics. If `fails` is set, the kernel ends with a fault once `open` is set.
#[derive(Default)]
struct Gated {
    inside: AtomicU32,
    open: AtomicU32,
    panics: bool,
    fails: bool,
}

impl Divisible for Gated {
    fn piece(&self) -> bool {
        if self.inside.fetch_add(1, SeqCst) == 1 && self.panics {
            panic!("on purpose, while another thread is inside");
        }
        while self.open.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        self.inside.fetch_sub(1, SeqCst);
        true
    }

    // Without `fails`, only a fault of other work ends the kernel.
    fn finished(&self) -> bool {
        self.fails && self.open.load(SeqCst) != 0
    }

    fn fault(&self) -> Option<Fault> {
        self.fails.then(|| Fault {
            code: Error(719),
            message: String::new(),
            details: Vec::new(),
            stderr: None,
        })
    }
}

#[test]
fn a_kernel_is_not_given_up_while_a_thread_is_inside() {
    for cost in [0, WORTH_WAKING] {
        let scheduler = Scheduler::default();
        let gated = Arc::new(Gated::default());
        let work = gated.clone();
        let id = scheduler.submit(&[], Work::Kernel(Box::new(move || work)), cost);
        std::thread::scope(|scope| {
            scope.spawn(|| scheduler.wait(id));
            while gated.inside.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let failing = scheduler.submit(&[], kernel(&Pieces::new(1, Some(719))), 0);
            scheduler.wait(failing);
            assert_eq!((scheduler.fault(), scheduler.is_done(id)), (Some(Error(719)), false));
            gated.open.store(1, SeqCst);
        });
        assert!(scheduler.is_done(id));
    }
}

/// A kernel of one piece, which the first call of `piece` runs until `open` is set. `finished` may return true before
/// that, as for a kernel that still has output to add.
#[derive(Default)]
struct Prints {
    calls: AtomicU32,
    /// The kernel is finished after this many calls of `piece` besides the first one.
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
    let scheduler = Scheduler::default();
    let prints = Arc::new(Prints {
        others: 1,
        ..Prints::default()
    });
    let work = prints.clone();
    let id = scheduler.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    std::thread::scope(|scope| {
        let waits = || {
            scheduler.wait(id);
            assert_eq!(prints.written.load(SeqCst), 1);
        };
        scope.spawn(waits);
        while prints.calls.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        scope.spawn(waits);
        // The second thread has left and waits for the first one.
        while scheduler.lock().waiting == 0 && !scheduler.is_done(id) {
            std::thread::yield_now();
        }
        let done = scheduler.is_done(id);
        prints.open.store(1, SeqCst);
        assert!(!done);
    });
    assert_eq!(prints.calls.load(SeqCst), 2, "a thread entered a finished kernel");
}

#[test]
fn no_thread_enters_a_finished_kernel() {
    let scheduler = Scheduler::default();
    let prints = Arc::new(Prints::default());
    let work = prints.clone();
    let id = scheduler.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    std::thread::scope(|scope| {
        scope.spawn(|| scheduler.wait(id));
        // The first thread is still inside: everything is done except its output.
        while prints.calls.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let other = scheduler.lock().take();
        prints.open.store(1, SeqCst);
        assert!(other.is_none());
    });
}

#[test]
fn a_waiting_thread_writes_kernel_output() {
    let scheduler = Scheduler::default();
    let prints = Arc::new(Prints::default());
    prints.open.store(1, SeqCst);
    *prints.text.lock().unwrap() = b"text of a kernel\n".into();
    let id = scheduler.submit(&[], Work::Kernel(Box::new(move || prints)), WORTH_WAKING);
    let piece = scheduler.lock().take().unwrap();
    // Runs the kernel as a worker does: without writing its output.
    assert!(scheduler.run(piece) && scheduler.is_done(id));
    assert_eq!(scheduler.lock().printed, b"text of a kernel\n");
    scheduler.wait(id);
    assert!(scheduler.lock().printed.is_empty());

    // Runs a host function as the thread for host functions does: it writes the output first.
    scheduler.lock().printed = b"more text of a kernel\n".into();
    let host = (0, Work::Host(Box::new(|_| ())));
    scheduler.run_host_function(host, 0);
    assert!(scheduler.lock().printed.is_empty());
}

/// With `fails`, the other thread ends the kernel with a second fault, which is not reported.
#[test]
fn a_panic_of_one_thread_leaves_the_kernel_to_the_other() {
    for fails in [false, true] {
        let scheduler = Scheduler::default();
        let gated = Arc::new(Gated {
            panics: true,
            fails,
            ..Gated::default()
        });
        let work = gated.clone();
        let id = scheduler.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| scheduler.wait(id));
            }
            while scheduler.fault().is_none() {
                std::thread::yield_now();
            }
            assert!(!scheduler.is_done(id));
            gated.open.store(1, SeqCst);
        });
        assert!(scheduler.is_done(id));
        assert_eq!(scheduler.fault(), Some(Error::CUDA_ERROR_UNKNOWN));
    }
}

#[test]
fn a_waiting_thread_runs_host_functions_without_a_host_thread() {
    let scheduler = Scheduler::default();
    scheduler.lock().workers.host = HostThread::Refused;
    let received = Arc::new(AtomicU32::new(u32::MAX));
    let seen = received.clone();
    let function = move |fault| {
        assert!(gate::in_host_function());
        seen.store(fault, SeqCst);
    };
    let id = scheduler.submit(&[], Work::Host(Box::new(function)), 0);
    let behind = scheduler.submit(&[id], task(|| {}), 0);
    scheduler.wait(behind);
    assert_eq!(received.load(SeqCst), 0);
    assert!(!gate::in_host_function());
}

#[test]
fn a_querying_thread_works_without_workers() {
    let scheduler = Scheduler::default();
    {
        let workers = &mut scheduler.lock().workers;
        (workers.started, workers.refused) = (true, true);
        workers.host = HostThread::Refused;
    }
    let host = scheduler.submit(&[], Work::Host(Box::new(|_| ())), 0);
    let pieces = Pieces::new(3, None);
    let last = scheduler.submit(&[host], kernel(&pieces), 0);
    let queries = (1..100).find(|_| scheduler.are_done(&[host, last]));
    // One query for the host function, and one for each piece.
    assert_eq!(queries, Some(4));
}

#[test]
fn small_work_is_done_while_others_finish_instant_tasks() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    std::thread::spawn(|| scheduler.run_worker(true));
    let small = scheduler.submit(&[], task(|| {}), 0);
    let began = Instant::now();
    while !scheduler.is_done(small) {
        scheduler.submit(&[], Work::Join, 0);
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

/// A kernel that ends once two threads are inside.
#[derive(Default)]
struct ForTwo(AtomicU32);

impl Divisible for ForTwo {
    fn piece(&self) -> bool {
        self.0.fetch_add(1, SeqCst);
        while !self.finished() {
            std::thread::yield_now();
        }
        true
    }

    fn finished(&self) -> bool {
        self.0.load(SeqCst) > 1
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}

/// The second worker finds nothing to do while the first one starts the kernel.
#[test]
fn workers_help_with_a_kernel_that_takes_long_to_start() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    for _ in 0..2 {
        std::thread::spawn(|| scheduler.run_worker(false));
    }
    let start = || -> Arc<dyn Divisible> {
        // Time for the other worker to fall asleep.
        std::thread::sleep(Duration::from_millis(100));
        Arc::new(ForTwo::default())
    };
    let id = scheduler.submit(&[], Work::Kernel(Box::new(start)), WORTH_WAKING);
    let began = Instant::now();
    while !scheduler.is_done(id) {
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

/// While another thread polls a condition, the watcher sees none. It must poll again later.
#[test]
fn the_watcher_polls_conditions_that_another_thread_has_polled() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    std::thread::spawn(|| scheduler.run_worker(true));
    let [holds, polls, polled_here] = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let seen = [&holds, &polls, &polled_here].map(Arc::clone);
    let here = std::thread::current().id();
    let condition = move || {
        let [holds, polls, polled_here] = &seen;
        polls.fetch_add(1, SeqCst);
        if std::thread::current().id() == here {
            // Time for the watcher to fall asleep.
            std::thread::sleep(Duration::from_millis(100));
            polled_here.store(1, SeqCst);
        }
        Ok(holds.load(SeqCst) != 0)
    };
    let id = scheduler.submit(&[], Work::Until(Box::new(condition)), 0);
    // After many naps, the watcher sleeps until there is work.
    while polls.load(SeqCst) < 50 {
        std::thread::yield_now();
    }
    while polled_here.load(SeqCst) == 0 {
        scheduler.poll_conditions();
    }
    holds.store(1, SeqCst);
    let began = Instant::now();
    while !scheduler.is_done(id) {
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

/// Work that takes the scheduler's lock when it is dropped.
struct WantsLock(&'static Scheduler, Arc<AtomicU32>);

impl Drop for WantsLock {
    fn drop(&mut self) {
        drop(self.0.lock());
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn abandoned_work_is_dropped_without_the_lock() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    let dropped = Arc::new(AtomicU32::new(0));
    let wants = WantsLock(scheduler, dropped.clone());
    let failing = scheduler.submit(&[], kernel(&Pieces::new(1, Some(719))), 0);
    let behind = scheduler.submit(&[failing], task(move || drop(wants)), 0);
    scheduler.wait(behind);
    assert_eq!((scheduler.fault(), dropped.load(SeqCst)), (Some(Error(719)), 1));
}

#[test]
fn a_stamp_is_the_time_of_its_last_dependency() {
    let scheduler = Scheduler::default();
    let time = Arc::new(OnceLock::new());
    let id = scheduler.submit(&[], task(|| std::thread::sleep(Duration::from_millis(20))), 0);
    let began = Instant::now();
    let stamp = scheduler.submit(&[id], Work::Stamp(time.clone()), 0);
    assert!(time.get().is_none());
    scheduler.wait(stamp);
    assert!(*time.get().unwrap() >= began + Duration::from_millis(20));
}

/// A kernel of two pieces, which two threads must do one after the other. The first one waits until `open` is set.
#[derive(Default)]
struct InTurn {
    first: OnceLock<std::thread::ThreadId>,
    open: AtomicU32,
    done: AtomicU32,
}

impl Divisible for InTurn {
    fn piece(&self) -> bool {
        let here = std::thread::current().id();
        let mut is_first = false;
        let first = *self.first.get_or_init(|| {
            is_first = true;
            here
        });
        while is_first && self.open.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let progress = is_first || first != here && self.done.load(SeqCst) == 1;
        self.done.fetch_add(progress.into(), SeqCst);
        progress
    }

    fn finished(&self) -> bool {
        self.done.load(SeqCst) == 2
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}

/// A kernel that has nothing to do until another one is finished.
struct Behind(Arc<InTurn>);

impl Divisible for Behind {
    fn piece(&self) -> bool {
        self.finished()
    }

    fn finished(&self) -> bool {
        self.0.finished()
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}

/// The first worker cannot go on with the kernel, and the second one sleeps because there was nothing to do.
#[test]
fn a_worker_that_leaves_a_kernel_wakes_another_one() {
    let scheduler: &'static Scheduler = Box::leak(Box::default());
    scheduler.lock().workers.started = true;
    for _ in 0..2 {
        std::thread::spawn(|| scheduler.run_worker(false));
    }
    let in_turn = Arc::new(InTurn::default());
    let work = in_turn.clone();
    let id = scheduler.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    while in_turn.first.get().is_none() {
        std::thread::yield_now();
    }
    let work = Arc::new(Behind(in_turn.clone()));
    scheduler.submit(&[], Work::Kernel(Box::new(move || work)), WORTH_WAKING);
    let sleeps = |state: &Tasks| state.running.len() == 2 && state.workers.sleeping == 1;
    while !sleeps(&scheduler.lock()) {
        std::thread::yield_now();
    }
    in_turn.open.store(1, SeqCst);
    let began = Instant::now();
    while !scheduler.is_done(id) {
        std::thread::yield_now();
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
