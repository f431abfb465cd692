//! The debugger's stops: a report of each chosen thread that is about to run a line.

#![forbid(unsafe_code)]

use crate::code::site::Site;
use crate::code::watch::{At, BlockAt, SiteCount, WorkerObserver};
use crate::fault::{LaneGroup, LaneState, Position, Report};
use crate::lanes::{self, LANES, Mask, thread_of};
use crate::observe::{LaunchObserver, ObservedLaunch, Observer, Observers};
use ptx::ir::{FuncId, Function, Module};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A line at which threads are reported, and the threads: `FILE:LINE[,block=X.Y.Z][,thread=X.Y.Z]`.
///
/// The file is a name in `.file`, or its end, or `ptx` for a line of the PTX text. Without a block, the first block of
/// the grid is chosen; without a thread, the first lane of each warp that reaches the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopAt {
    file: String,
    line: u32,
    block: [u32; 3],
    thread: Option<[u32; 3]>,
}

/// The name that means the PTX text in [`StopAt`].
const PTX: &str = "ptx";

/// Limit on the stops that are reported for one launch: a line may be in a loop.
const MOST: u32 = 100;

impl FromStr for StopAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a line such as kernel.cu:12, kernel.cu:12,block=1.0.0,thread=3.0.0 or ptx:40");
        let mut parts = text.split(',');
        let (file, line) = parts
            .next()
            .and_then(|place| place.rsplit_once(':'))
            .ok_or_else(wrong)?;
        let mut stop = StopAt {
            file: file.to_owned(),
            line: line.parse().map_err(|_| wrong())?,
            block: [0; 3],
            thread: None,
        };
        for part in parts {
            match part.split_once('=') {
                Some(("block", value)) => stop.block = coordinates(value).ok_or_else(wrong)?,
                Some(("thread", value)) => stop.thread = Some(coordinates(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        if file.is_empty() || stop.line == 0 {
            return Err(wrong());
        }
        Ok(stop)
    }
}

/// Returns the coordinates in `1.0.0`, `1.0` or `1`.
fn coordinates(text: &str) -> Option<[u32; 3]> {
    let mut all = [0; 3];
    let mut parts = text.split('.');
    for (value, part) in all.iter_mut().zip(&mut parts) {
        *value = part.parse().ok()?;
    }
    parts.next().is_none().then_some(all)
}

/// A thread that has reached the line of a [`StopAt`].
#[derive(Clone, Debug)]
pub struct Stop {
    /// Name of the launched kernel.
    pub kernel: String,
    /// Coordinates of the block.
    pub block: [u32; 3],
    /// Coordinates of the thread in its block.
    pub thread: [u32; 3],
    /// The state of the thread and of its warp. The position of a lane that is not at the line is that of the last
    /// instruction that it has run.
    pub report: Report,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, "{}: stop", self.kernel)?;
        if let Some(position) = self.report.calls.first() {
            write!(f, " in {position}")?;
        }
        write!(f, ", block [{bx},{by},{bz}], thread [{tx},{ty},{tz}]")
    }
}

/// Receives stops.
pub type OnStop = Arc<dyn Fn(&Stop) + Send + Sync>;

impl StopAt {
    /// Returns an observer that calls a function when a chosen thread is about to run the line.
    pub fn observers(self, on_stop: OnStop) -> Observers {
        Observers::of(Arc::new(Debugger { stop: self, on_stop }))
    }

    /// Returns the PTX lines of a function at which threads are reported: of the first instruction after each `.loc`
    /// of the line.
    fn lines(&self, function: &Function) -> Vec<u32> {
        let insts = function.body().map_or(&[][..], |body| &body.insts);
        if self.file == PTX {
            let is_at = insts.iter().any(|inst| inst.line == self.line);
            return if is_at { vec![self.line] } else { Vec::new() };
        }
        let mut lines: Vec<u32> = Vec::new();
        let mut last = None;
        for inst in insts {
            let location = function.location(inst.line);
            let found = location.map(|location| location.ptx_line);
            if found == last {
                continue;
            }
            last = found;
            let is_at = location.is_some_and(|location| {
                let file = function.source.file(location.place.file).unwrap_or_default();
                location.place.line == self.line && is_end(file, &self.file)
            });
            if is_at {
                lines.push(inst.line);
            }
        }
        lines
    }
}

/// Returns true if a path ends with these components.
fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
}

struct Debugger {
    stop: StopAt,
    on_stop: OnStop,
}

impl Observer for Debugger {
    /// Returns true: the state of a warp is kept while its block moves between workers, so that only one of them may
    /// run at a time.
    fn one_worker(&self) -> bool {
        true
    }

    fn launch(&self, launch: &ObservedLaunch<'_>) -> Arc<dyn LaunchObserver> {
        let module = launch.module();
        let reached = module.functions.iter().zip(0..);
        let reached = reached.filter(|(_, id)| launch.code(FuncId(*id)).is_some());
        let lines = reached.flat_map(|(function, id)| {
            let lines = self.stop.lines(function).into_iter();
            lines.map(move |line| (FuncId(id), line))
        });
        Arc::new(DebuggedLaunch(Arc::new(Debugged {
            stop: self.stop.clone(),
            on_stop: self.on_stop.clone(),
            kernel: launch.kernel.name().into(),
            module: module.clone(),
            lines: lines.collect(),
            threads: launch.block,
            left: AtomicU32::new(MOST),
            warps: Mutex::default(),
        })))
    }
}

/// A launch with stops.
struct Debugged {
    stop: StopAt,
    on_stop: OnStop,
    kernel: String,
    module: Arc<Module>,
    /// The PTX lines at which threads are reported.
    lines: HashSet<(FuncId, u32)>,
    threads: [u32; 3],
    /// The number of stops that may still be reported.
    left: AtomicU32,
    warps: Mutex<HashMap<u32, WarpTrack>>,
}

/// The known state of a warp of the chosen block.
#[derive(Default)]
struct WarpTrack {
    /// The calls of each lane: function and PTX line of the call.
    calls: [Vec<(FuncId, u32)>; LANES],
    /// The last instruction of each lane: function and PTX line.
    last: [Option<(FuncId, u32)>; LANES],
    exited: Mask,
}

struct DebuggedLaunch(Arc<Debugged>);

impl LaunchObserver for DebuggedLaunch {
    fn worker(&self) -> Box<dyn WorkerObserver> {
        Box::new(Follower {
            launch: self.0.clone(),
            in_block: false,
        })
    }
}

/// Follows the warps of the chosen block on one worker.
struct Follower {
    launch: Arc<Debugged>,
    /// True while the worker runs the chosen block.
    in_block: bool,
}

impl Debugged {
    fn position(&self, (function, line): (FuncId, u32)) -> Position {
        Position::of(self.module.functions.get(function.0 as usize), line)
    }

    /// Returns the report of a lane at an instruction.
    fn report(&self, at: &At<'_>, warp: &WarpTrack, lane: usize) -> Report {
        let here = (at.code.id, at.site().line);
        let mut calls = vec![self.position(here)];
        calls.extend(warp.calls[lane].iter().rev().map(|call| self.position(*call)));
        let mut others: Vec<LaneGroup> = Vec::new();
        for other in (0..LANES).filter(|other| *other != lane && at.live >> other & 1 == 1) {
            let position = match (at.mask >> other & 1 == 1, warp.last[other]) {
                (true, _) => self.position(here),
                (false, Some(last)) => self.position(last),
                (false, None) => continue,
            };
            match others.iter_mut().find(|group| group.position == position) {
                Some(group) => group.lanes |= 1 << other,
                None => others.push(LaneGroup {
                    lanes: 1 << other,
                    state: LaneState::Running,
                    position,
                }),
            }
        }
        Report {
            calls,
            others,
            exited: warp.exited,
            registers: self.registers(at, lane),
        }
    }

    /// Returns the registers that the function sets above the line, with their values.
    fn registers(&self, at: &At<'_>, lane: usize) -> Vec<(String, u64)> {
        let function = self.module.functions.get(at.code.id.0 as usize);
        let Some(body) = function.and_then(Function::body) else {
            return Vec::new();
        };
        let value = |slot, width| at.value(slot, width, lane);
        at.code.registers_before(body, at.site().line, value)
    }
}

impl Follower {
    /// Runs a function with the state of a warp, if it belongs to the chosen block.
    fn with(&self, warp: u32, run: impl FnOnce(&Debugged, &mut WarpTrack)) {
        if self.in_block {
            let mut warps = self.launch.warps.lock().unwrap_or_else(PoisonError::into_inner);
            run(&self.launch, warps.entry(warp).or_default());
        }
    }
}

impl WorkerObserver for Follower {
    fn wants(&mut self, _: FuncId, site: &Site) -> bool {
        site.first && !self.launch.lines.is_empty()
    }

    fn before(&mut self, at: &At<'_>) {
        // Other observers may want the other decoded instructions of a PTX instruction.
        if !at.site().first {
            return;
        }
        self.with(at.warp, |launch, warp| {
            let line = at.site().line;
            if launch.lines.contains(&(at.code.id, line)) {
                let thread = |lane: usize| thread_of(launch.threads, at.warp * 32 + lane as u32);
                let chosen = match launch.stop.thread {
                    Some(wanted) => lanes::iter(at.mask).find(|lane| thread(*lane) == wanted),
                    None => lanes::iter(at.mask).next(),
                };
                if let Some(lane) = chosen
                    && launch
                        .left
                        .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                        .is_ok()
                {
                    (launch.on_stop)(&Stop {
                        kernel: launch.kernel.clone(),
                        block: launch.stop.block,
                        thread: thread(lane),
                        report: launch.report(at, warp, lane),
                    });
                }
            }
            lanes::iter(at.mask).for_each(|lane| warp.last[lane] = Some((at.code.id, line)));
        });
    }

    fn block_enter(&mut self, block: &BlockAt, first: bool) {
        self.in_block = block.index == self.launch.stop.block;
        if self.in_block && first {
            self.launch.warps.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn block_leave(&mut self, _: &BlockAt, _: bool) {
        self.in_block = false;
    }

    fn call(&mut self, warp: u32, mask: Mask, _: u32, _: FuncId) {
        self.with(warp, |_, warp| {
            for lane in lanes::iter(mask) {
                // The last instruction of the lane is the call.
                let call = warp.last[lane];
                warp.calls[lane].extend(call);
            }
        });
    }

    fn ret(&mut self, warp: u32, mask: Mask, _: FuncId) {
        self.with(warp, |_, warp| {
            for lane in lanes::iter(mask) {
                warp.calls[lane].pop();
            }
        });
    }

    fn exit(&mut self, warp: u32, mask: Mask) {
        self.with(warp, |_, warp| warp.exited |= mask);
    }

    fn finish(self: Box<Self>, _: &[Vec<SiteCount>]) {}
}
