//! Keeps the interpreter's order of faults for lanes that compiled code has left at different places.
//!
//! Compiled code runs one group of lanes after another. Lanes of a group that diverge run one after another, too. But a
//! fault must be the one that the interpreter finds first. The interpreter runs lanes in step: of two lanes, the one at
//! the lower instruction runs first, and in a loop each round ends for all lanes before the next one begins. So two
//! lanes are compared by the finished rounds of the loops that both are in, the outermost first, and then by their
//! instructions. A fault is held until no lane is left that comes before it.
//!
//! In kernels with instructions whose results depend on the lanes that run them together, such as `activemask`, or on
//! the order of lanes, such as atomic operations with results, lanes in later rounds wait for the others without a
//! fault, too.
//!
//! Lanes that took turns because they jumped backwards too often are not compared. Neither are rounds of loops that
//! compiled code does not count: loops that jump back to their head from several places, loops beyond the first
//! `MOST_LOOPS`, and, in kernels whose code runs some lanes of a group while others wait, loops that lanes leave with a
//! jump to the head of an outer loop.

#![forbid(unsafe_code)]

use super::frame::Frames;
use super::{Pause, Split, Warp};
use crate::code::compiled::{Compiled, CompiledLoop};
use crate::code::function::{Code, SourceMap};
use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::lanes::{self, LANES, Lanes, Mask};
use std::cmp::Ordering;

/// Number of times that lanes may run before a held fault is reported anyway: they may be waiting for the faulty lanes.
const PATIENCE: u32 = 1 << 20;

/// Number of times that lanes may run before those that are ahead continue, in kernels whose instructions keep an
/// order. All groups meet at such an instruction in each round, so that the others soon catch up unless they wait for a
/// lane that is ahead.
const PATIENCE_IN_ORDER: u32 = 1 << 12;

/// A fault that is not reported yet.
#[derive(Debug)]
pub(super) struct HeldFault {
    /// The lanes that ran the instruction.
    pub(super) split: Split,
    /// The first instruction of the step in the kernel, and the one after its last.
    pub(super) insts: (u32, u32),
    /// The fault, as [`Machine::fault`] had it.
    pub(super) fault: Option<(FaultKind, usize)>,
}

impl HeldFault {
    /// Returns true if the kernel's own code has failed an assertion. All lanes that run the same instruction fail.
    fn is_assertion(&self) -> bool {
        self.split.frame == 0 && matches!(self.fault, Some((FaultKind::Assert { .. }, _)))
    }

    /// Returns the lane that raised the fault.
    fn lane(&self) -> usize {
        let first = self.split.mask.trailing_zeros() as usize;
        self.fault.as_ref().map_or(first, |(_, lane)| *lane) % LANES
    }
}

/// The places of the lanes of a warp.
pub(super) struct Order {
    loops: Vec<CompiledLoop>,
    /// The finished rounds of each loop.
    rounds: Vec<Lanes<i64>>,
    /// The instructions of the kernel at which the lanes were last.
    at: Lanes<u32>,
    /// Lanes that run.
    running: Mask,
    faults: Vec<HeldFault>,
    /// Lanes that do not run while a fault is held.
    waiting: Vec<Split>,
    /// True if lanes in later rounds of loops wait for the others.
    in_step: bool,
    /// The instruction at which running lanes stop.
    stop: u32,
    patience: u32,
    /// Number of times that lanes may run before those that are ahead continue.
    patience_in_step: u32,
}

impl Order {
    /// Returns an order for this code in which no lane has a place yet.
    pub(super) fn new(compiled: &Compiled) -> Self {
        let loops = &compiled.loops;
        Order {
            rounds: vec![[0; LANES]; loops.len()],
            loops: loops.clone(),
            in_step: compiled.sees_active_lanes || compiled.ordered,
            at: [u32::MAX; LANES],
            running: 0,
            faults: Vec::new(),
            waiting: Vec::new(),
            stop: u32::MAX,
            patience: PATIENCE,
            patience_in_step: if compiled.sees_active_lanes {
                PATIENCE
            } else {
                PATIENCE_IN_ORDER
            },
        }
    }

    /// Returns the finished rounds of a loop for a lane.
    pub(super) fn rounds(&self, number: usize, lane: usize) -> i64 {
        self.rounds[number][lane]
    }

    /// Sets the place of lanes, with the finished rounds of each loop.
    pub(super) fn place(&mut self, mask: Mask, at: u32, rounds: &[i64]) {
        for lane in lanes::iter(mask) {
            self.at[lane] = at;
            for (all, rounds) in self.rounds.iter_mut().zip(rounds) {
                all[lane] = *rounds;
            }
        }
        self.running &= !mask;
    }

    pub(super) fn hold(&mut self, fault: HeldFault) {
        self.faults.push(fault);
    }

    /// Adds the lanes of other groups in compiled code for which the same assertion has failed in the same round.
    fn add_assertions(&self, split: &Split, fault: &mut Option<(FaultKind, usize)>) {
        let Some((kind @ FaultKind::Assert { .. }, lane)) = fault else {
            return;
        };
        for held in &self.faults {
            let together = (held.split.frame, held.split.pc) == (split.frame, split.pc)
                && self.compare(*lane, held.lane()) == Ordering::Equal;
            let Some((other, _)) = held.fault.as_ref().filter(|_| together) else {
                continue;
            };
            kind.add_lanes(other);
        }
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Returns true if lanes in later rounds of loops wait for the others.
    pub(super) fn is_in_step(&self) -> bool {
        self.in_step
    }

    /// Records that lanes begin to run. Returns the instruction at which they stop.
    pub(super) fn run(&mut self, mask: Mask) -> u32 {
        self.running = mask;
        std::mem::replace(&mut self.stop, u32::MAX)
    }

    /// Records the places that lanes of the kernel's frame have reached. A lane that has run jumps backwards at most
    /// once.
    fn note(&mut self, ready: &[Split]) {
        for split in ready.iter().filter(|split| split.frame == 0) {
            for lane in lanes::iter(split.mask) {
                let before = std::mem::replace(&mut self.at[lane], split.pc);
                let back = self.running >> lane & 1 != 0 && split.pc <= before;
                let Some(begun) = self.loops.iter().position(|l| back && l.head == split.pc) else {
                    continue;
                };
                self.rounds[begun][lane] += 1;
                let range = self.loops[begun].range.clone();
                for inner in begun + 1..self.loops.len() {
                    if range.contains(&self.loops[inner].head) {
                        self.rounds[inner][lane] = 0;
                    }
                }
            }
        }
        self.running = 0;
    }

    /// Returns true if no two of these lanes are in different rounds of a loop.
    fn is_even(&self, live: Mask) -> bool {
        self.loops.iter().zip(&self.rounds).all(|(found, rounds)| {
            let mut inside = lanes::iter(live).filter(|lane| found.range.contains(&self.at[*lane]));
            let Some(first) = inside.next() else { return true };
            inside.all(|lane| rounds[lane] == rounds[first])
        })
    }

    /// Compares the places of two lanes: the lane that the interpreter runs first is less.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        for (found, rounds) in self.loops.iter().zip(&self.rounds) {
            let both = [a, b].iter().all(|lane| found.range.contains(&self.at[*lane]));
            if both && rounds[a] != rounds[b] {
                return rounds[a].cmp(&rounds[b]);
            }
        }
        self.at[a].cmp(&self.at[b])
    }

    /// Returns the lanes of `mask` that are at the same place as `lane`.
    fn beside(&self, lane: usize, mask: Mask) -> Mask {
        let same = lanes::iter(mask).filter(|other| self.compare(lane, *other) == Ordering::Equal);
        same.fold(0, |mask, lane| mask | 1 << lane)
    }

    /// Returns the lane that the interpreter runs first.
    fn first_of(&self, lanes: impl Iterator<Item = usize>) -> Option<usize> {
        lanes.min_by(|a, b| self.compare(*a, *b).then(a.cmp(b)))
    }

    /// Returns those lanes of `all` that run next if there is no fault, and sets the instruction at which they stop.
    fn next_of(&mut self, all: Mask) -> Option<Split> {
        let first = self.first_of(lanes::iter(all))?;
        let places = lanes::iter(all).map(|lane| self.at[lane]);
        self.stop = places.filter(|at| *at > self.at[first]).min().unwrap_or(u32::MAX);
        Some(self.split(first, self.beside(first, all)))
    }

    /// Returns lanes of the kernel's frame that are at the place of a lane.
    fn split(&self, first: usize, mask: Mask) -> Split {
        Split {
            frame: 0,
            depth: 0,
            pc: self.at[first],
            mask,
        }
    }

    /// Takes the lanes that run next, and sets the instruction at which they stop. Returns `Err` with the number of a
    /// fault if the fault comes before all lanes.
    fn next(&mut self) -> Result<Split, usize> {
        let all = self.waiting.iter().fold(0, |mask, split| mask | split.mask);
        let fault = self.first_of(self.faults.iter().map(HeldFault::lane));
        let number = |fault: usize| self.faults.iter().position(|held| held.lane() == fault).unwrap_or(0);
        let fault = fault.unwrap_or(0);
        self.patience -= 1;
        let first = self.first_of(lanes::iter(all)).filter(|_| self.patience > 0);
        let Some(first) = first else {
            return Err(number(fault));
        };
        let mut mask = self.beside(first, all);
        self.stop = match self.compare(fault, first) {
            Ordering::Less => return Err(number(fault)),
            // The interpreter runs all of these lanes at once, and reports the first one. A failed assertion is
            // reported for all of them.
            Ordering::Equal => {
                if !self.faults[number(fault)].is_assertion() {
                    mask &= (1 << fault) - 1;
                }
                if mask == 0 {
                    return Err(number(fault));
                }
                self.faults[number(fault)].insts.1
            }
            Ordering::Greater => {
                let faults = self.faults.iter().map(|held| held.insts.0);
                let places = lanes::iter(all).map(|lane| self.at[lane]).chain(faults);
                places.filter(|at| *at > self.at[first]).min().unwrap_or(u32::MAX)
            }
        };
        for split in &mut self.waiting {
            split.mask &= !mask;
        }
        self.waiting.retain(|split| split.mask != 0);
        Ok(self.split(first, mask))
    }
}

impl Warp {
    /// Forgets the rounds of loops if all lanes continue at one instruction after a barrier. From there on, they run in
    /// step.
    #[cold]
    pub(super) fn forget_rounds(&mut self) {
        let holds = self.order.as_ref().is_some_and(|order| order.is_holding());
        let mut others = self.ready.windows(2);
        if !holds && others.all(|two| (two[0].frame, two[0].pc) == (two[1].frame, two[1].pc)) {
            self.order = None;
        }
    }

    /// Selects the lanes that run next while lanes are at different places. Returns a fault that comes before all of
    /// them.
    #[cold]
    pub(super) fn keep_order(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>) -> Option<Pause> {
        let order = self.order.as_mut()?;
        order.note(&self.ready);
        if order.faults.is_empty() {
            if order.is_even(self.live) {
                self.order = None;
            } else if order.in_step {
                self.run_in_step();
            }
            return None;
        }
        // Called functions run first, unless they may wait for lanes that do not run.
        if self.ready.iter().any(|split| split.frame != 0) && order.patience > 1 {
            order.patience -= 1;
            return None;
        }
        order.waiting.append(&mut self.ready);
        match order.next() {
            Ok(split) => {
                self.ready.push(split);
                None
            }
            Err(number) => {
                let HeldFault { split, mut fault, .. } = order.faults.swap_remove(number);
                order.add_assertions(&split, &mut fault);
                // The report shows these lanes.
                self.ready.append(&mut order.waiting);
                self.ready.extend(order.faults.iter().map(|held| held.split));
                self.order = None;
                self.stopped = Some(split);
                m.fault = fault;
                let frame = self.frames[split.frame as usize].as_ref()?;
                let line = frames.code(frame.function).lines[split.pc as usize];
                Some(Pause::Fault { line })
            }
        }
    }

    /// Makes the lanes that are in the earliest rounds of loops run next. Called functions run first, as always.
    fn run_in_step(&mut self) {
        let Some(order) = self.order.as_mut() else { return };
        order.patience_in_step -= 1;
        if order.patience_in_step == 0 {
            // The lanes may wait for those that are ahead.
            self.order = None;
            return;
        }
        if self.ready.iter().any(|split| split.frame != 0) {
            order.stop = u32::MAX;
            return;
        }
        let all = self.ready.iter().fold(0, |mask, split| mask | split.mask);
        if let Some(next) = order.next_of(all) {
            for split in &mut self.ready {
                split.mask &= !next.mask;
            }
            self.ready.retain(|split| split.mask != 0);
            self.ready.push(next);
        }
    }

    /// Holds a fault that the interpreter has found in a split if lanes may come before it. Returns false if none can.
    #[cold]
    pub(super) fn hold_fault(&mut self, m: &mut Machine<'_>, code: &Code, split: Split) -> bool {
        let Some(order) = &mut self.order else {
            return false;
        };
        let pc = split.pc;
        let step = |map: &SourceMap| {
            let mut steps = map.steps.iter();
            steps.find(|(first, end)| (*first..*end).contains(&pc)).copied()
        };
        let insts = code.map.as_ref().and_then(step).unwrap_or((pc, pc + 1));
        let mut held = HeldFault {
            split,
            insts,
            fault: m.fault.take(),
        };
        let lane = held.lane();
        if split.frame == 0 {
            for lane in lanes::iter(split.mask) {
                order.at[lane] = insts.0;
            }
        } else {
            held.insts = (order.at[lane], order.at[lane] + 1);
        }
        order.running = 0;
        held.split.mask = order.beside(lane, split.mask);
        if let Some((FaultKind::Assert { lanes, .. }, _)) = &mut held.fault {
            *lanes &= held.split.mask;
        }
        let rest = split.mask & !held.split.mask;
        order.hold(held);
        // Lanes in other rounds run the instruction again.
        if rest != 0 {
            self.push(Split {
                pc: insts.0,
                mask: rest,
                ..split
            });
        }
        true
    }
}
