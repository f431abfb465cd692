//! Tests of observers: the events that they receive, and results of kernels, which must not depend on observers.

use super::{Arg, Bench};
use crate::code::site::{AccessKind, Site};
use crate::code::watch::{At, BarrierArrival, BlockAt, SiteCount, WorkerObserver};
use crate::fault::Fault;
use crate::lanes::Mask;
use crate::observe::{LaunchObserver, ObservedLaunch, Observer, Observers};
use crate::{Isa, Launch, Progress};
use ptx::ir::{FuncId, Space};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The counts and events of all workers.
#[derive(Default)]
struct Seen {
    /// Runs, lanes, and lanes whose guard holds, by PTX line.
    lines: BTreeMap<u32, [u64; 3]>,
    /// The events, as text.
    events: Vec<String>,
    /// Number of launches that have ended.
    ended: u32,
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

struct LaunchRecorder {
    seen: Arc<Mutex<Seen>>,
    sites: Vec<Vec<Site>>,
}

struct WorkerRecorder {
    seen: Arc<Mutex<Seen>>,
    sites: Vec<Vec<Site>>,
    block: u64,
    events: Vec<String>,
}

impl Observer for Recorder {
    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver> {
        let sites = launch
            .codes
            .iter()
            .map(|c| c.as_ref().map_or_else(Vec::new, |c| c.sites.clone()));
        Arc::new(LaunchRecorder {
            seen: Arc::clone(&self.0),
            sites: sites.collect(),
        })
    }
}

impl LaunchObserver for LaunchRecorder {
    fn worker(&self) -> Box<dyn WorkerObserver> {
        Box::new(WorkerRecorder {
            seen: Arc::clone(&self.seen),
            sites: self.sites.clone(),
            block: 0,
            events: Vec::new(),
        })
    }

    fn end(&self, fault: Option<&Fault>) {
        assert!(fault.is_none());
        self.seen.lock().unwrap().ended += 1;
    }
}

impl WorkerRecorder {
    fn say(&mut self, text: String) {
        self.events.push(format!("block {}: {text}", self.block));
    }
}

impl WorkerObserver for WorkerRecorder {
    fn wants(&mut self, _: FuncId, site: &Site) -> bool {
        !site.accesses.is_empty()
    }

    fn before(&mut self, at: &At<'_>) {
        for access in &at.site().accesses {
            let addresses = at.addresses(access);
            let first = at.mask.trailing_zeros() as usize % 32;
            let (space, address) = At::resolve(access, addresses[first]);
            if space == Space::Shared {
                let bytes = at.bytes(access)[first];
                let kind = match access.kind {
                    AccessKind::Read => "reads",
                    AccessKind::Write => "writes",
                    AccessKind::Atomic => "updates",
                };
                let (warp, lanes) = (at.warp, at.mask);
                self.say(format!(
                    "warp {warp} {kind} {bytes} at {address} first, lanes {lanes:#x}"
                ));
            }
        }
    }

    fn diverge(&mut self, at: &At<'_>, taken: Mask) {
        let (warp, line) = (at.warp, at.site().line);
        self.say(format!("warp {warp} parts in line {line}, {taken:#x}"));
    }

    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        self.block = block.number;
        if first {
            self.say("begins".into());
        }
    }

    fn block_leave(&mut self, _: &BlockAt, done: bool) {
        if done {
            self.say("ends".into());
        }
    }

    fn warp_ran(&mut self, warp: u32, issued: u64) {
        self.say(format!("warp {warp} ran {issued}"));
    }

    fn barrier_arrive(&mut self, warp: u32, arrival: &BarrierArrival) {
        self.say(format!(
            "warp {warp} arrives at {:?} in line {}",
            arrival.id, arrival.line
        ));
    }

    fn barrier_open(&mut self, id: Option<u32>, waits: &dyn Fn(u32) -> bool) {
        let warps: Vec<u32> = (0..64).filter(|w| waits(*w)).collect();
        self.say(format!("{id:?} opens for {warps:?}"));
    }

    fn warp_sync(&mut self, warp: u32, lanes: Mask) {
        self.say(format!("warp {warp} syncs {lanes:#x}"));
    }

    fn warp_end(&mut self, warp: u32) {
        self.say(format!("warp {warp} ends"));
    }

    fn finish(self: Box<Self>, counts: &[Vec<SiteCount>]) {
        let mut seen = self.seen.lock().unwrap();
        for (site, count) in self.sites.iter().flatten().zip(counts.iter().flatten()) {
            let line = seen.lines.entry(site.line).or_default();
            if site.first {
                line[0] += count.runs();
                line[1] += count.lanes();
            }
            if site.effect {
                line[2] += count.lanes();
            }
        }
        seen.events.extend(self.events);
    }
}

const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .b32 s[64];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r6, s;
mad.lo.u32 %r7, %r1, 4, %r6;
mov.u32 %r2, 0;
setp.lt.u32 %p1, %r1, 40;
@%p1 add.u32 %r2, %r2, 5;
@%p1 bra SMALL;
mov.u32 %r2, 9;
bra.uni JOIN;
SMALL: add.u32 %r2, %r2, 1;
JOIN: st.shared.u32 [%r7], %r2;
@%p1 bar.warp.sync 0xff;
bar.sync 0;
ld.shared.u32 %r3, [s+160];
mad.wide.u32 %rd2, %r1, 4, %rd1;
st.global.u32 [%rd2], %r3;
ret;
}";

fn observed(bench: &Bench, out: u64, seen: &Recorder) -> Launch {
    let mut launch = bench.launch("k", 2, 64, &[Arg::U64(out)]);
    launch.options.observers = Observers::of(Arc::new(seen.clone()));
    launch
}

#[test]
fn observers_see_every_instruction_and_event_in_order() {
    let mut bench = Bench::text(
        &TEXT.replace("0xff", "0xffffffff").replace("@%p1 bar.warp", "bar.warp"),
        Isa::best(),
    );
    let out = bench.bytes(256);
    let recorder = Recorder::default();
    let execution = Bench::run(observed(&bench, out, &recorder));
    assert_eq!(execution.fault().map(|f| f.to_string()), None);
    assert_eq!(bench.get(out, 64, u32::from_le_bytes), vec![9; 64]);
    let seen = recorder.0.lock().unwrap();
    assert_eq!(seen.ended, 1);
    // Two blocks of two warps; in the second warp of each, 8 of 32 lanes are below 40.
    let lines: Vec<(u32, [u64; 3])> = seen
        .lines
        .iter()
        .filter(|(line, _)| **line > 0)
        .map(|(l, n)| (*l, *n))
        .collect();
    let all = |line| (line, [4, 128, 128]);
    let want = [
        all(6),
        all(7),
        all(8),
        all(9),
        all(10),
        all(11),
        (12, [4, 128, 80]),
        all(13),
        (14, [2, 48, 48]),
        (15, [2, 48, 48]),
        (16, [4, 80, 80]),
        all(17),
        all(18),
        all(19),
        all(20),
        all(21),
        all(22),
        all(23),
    ];
    assert_eq!(lines, want);
    let of_second: Vec<&str> = seen.events.iter().filter_map(|e| e.strip_prefix("block 1: ")).collect();
    let want = [
        "begins",
        "warp 0 writes 4 at 0 first, lanes 0xffffffff",
        "warp 0 syncs 0xffffffff",
        "warp 0 ran 12",
        "warp 0 arrives at Some(0) in line 19",
        "warp 1 parts in line 13, 0xff",
        "warp 1 writes 4 at 128 first, lanes 0xffffffff",
        "warp 1 syncs 0xffffffff",
        "warp 1 ran 14",
        "warp 1 arrives at Some(0) in line 19",
        "Some(0) opens for [0, 1]",
        "warp 0 reads 4 at 160 first, lanes 0xffffffff",
        "warp 0 ran 4",
        "warp 0 ends",
        "warp 1 reads 4 at 160 first, lanes 0xffffffff",
        "warp 1 ran 4",
        "warp 1 ends",
        "ends",
    ];
    assert_eq!(of_second, want);
}

#[test]
fn guarded_collectives_count_as_one_instruction() {
    let mut bench = Bench::text(&TEXT.replace("0xff", "-1").replace(", 40;", ", 32;"), Isa::best());
    let out = bench.bytes(256);
    let recorder = Recorder::default();
    let execution = Bench::run(observed(&bench, out, &recorder));
    assert_eq!(execution.fault().map(|f| f.to_string()), None);
    let seen = recorder.0.lock().unwrap();
    assert_eq!(seen.lines[&18], [4, 128, 64]);
}

#[test]
fn counts_do_not_depend_on_the_number_of_threads() {
    let count = |threads: u64| {
        let mut bench = Bench::text(&TEXT.replace("0xff", "-1").replace(", 40;", ", 32;"), Isa::best());
        let out = bench.bytes(256);
        let recorder = Recorder::default();
        let mut launch = observed(&bench, out, &recorder);
        launch.grid = [100, 1, 1];
        let execution = launch.start();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| while execution.work(300) == Progress::BudgetSpent {});
            }
        });
        assert!(execution.is_finished());
        let seen = recorder.0.lock().unwrap();
        assert_eq!(seen.ended, 1);
        let mut events = seen.events.clone();
        events.sort();
        (seen.lines.clone(), events)
    };
    let one = count(1);
    assert_eq!(count(2), one);
    assert_eq!(count(8), one);
}
