//! Runs the groups of a warp in compiled code.

use super::frame::{FrameId, Frames};
use super::order::{HeldFault, Order};
use super::run::{Event, run};
use super::{Split, Warp};
use crate::code::action::Action;
use crate::code::compiled::{
    Compiled, CompiledContext, CompiledEntry, CompiledLoop, CompiledSite, Exit, Function, LaneAddresses, MISSING,
    MOST_GROUPS, MOST_LOOPS, Window,
};
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::code::registers::{RegFile, Regs};
use crate::lanes::{FULL, LANES, Mask};
use crate::memory::warp::AccessCache;
use crate::ops::matrix;
use std::ffi::c_void;

/// The end of a run in compiled code.
pub(super) enum Compilation {
    /// The lanes are ready to continue in the interpreter. Contains the number of backward jumps.
    Ready(i64),
    /// All lanes have arrived at a plain barrier.
    Barrier,
    /// All lanes have reached the end of the kernel.
    End,
    /// A lane raised the fault in [`Machine::fault`], at this line.
    Fault(u32),
}

/// The state that [`interpret`] needs.
struct Running<'r, 'm> {
    machine: &'r mut Machine<'m>,
    code: &'r Code,
    regs: Regs<'r>,
    /// The step that raised a fault.
    faulty: (u32, u32),
}

/// The number of the window of an instruction that has none.
const NO_WINDOW: u32 = u32::MAX;

/// Defines a function with the calling convention of the machine code.
macro_rules! called_by_code {
    ($(#[$doc:meta])* unsafe fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty $body:block) => {
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        unsafe extern "sysv64" fn $name($($argument: $ty),*) -> $result $body
        $(#[$doc])*
        #[cfg(not(target_arch = "x86_64"))]
        unsafe extern "C" fn $name($($argument: $ty),*) -> $result $body
    };
}

called_by_code! {
/// Runs instructions that are not compiled: see [`Interpret`](crate::code::compiled::Interpret).
///
/// # Safety
/// The context is the one that [`Warp::run_groups`] passes to the compiled code, which calls this.
unsafe fn interpret(context: *mut CompiledContext, first: u32, end: u32, address: u64, window: u32) -> u32 {
    // SAFETY: as promised by the caller; the compiled code does not run meanwhile.
    let context = unsafe { &mut *context };
    // SAFETY: `run_groups` has put a pointer to a value of this type there, which it does not use meanwhile.
    let running = unsafe { &mut *context.scheduler.cast::<Running<'_, '_>>() };
    let m = &mut *running.machine;
    // The compiled code counts these instructions.
    let before = m.steps;
    let whole = context.mask == FULL;
    let group = context.group as usize;
    if !whole {
        std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
    }
    // SAFETY: the registers belong to a frame of this code, which was decoded for this CPU.
    let (at, event) = unsafe { run(m, running.code, running.regs, first, context.mask, end) };
    if !whole {
        std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
        m.called_steps += u64::from(end - first);
    }
    m.steps = before;
    match event {
        Event::Stop => {}
        Event::Act if whole => return MISSING,
        _ => {
            context.fault_at = at;
            running.faulty = (first, end);
            return 1;
        }
    }
    if window != NO_WINDOW
        && let Some(record) = m.spaces.flight.lookup(address)
        && let Some(window) = m.windows.get_mut(window as usize)
    {
        // The access was permitted, so the record permits more of its kind.
        *window = Window {
            base: record.base(),
            length: record.remaining(),
            to_host: record.delta(),
        };
    }
    0
}
}

impl Warp {
    /// Returns the compiled code with which all lanes can continue at an instruction, if there is any.
    pub(super) fn compiled_entry<'e>(
        &mut self,
        frames: &Frames<'e>,
        id: FrameId,
        pc: u32,
    ) -> Option<(&'e Compiled, &'e CompiledEntry)> {
        let compiled = frames.compiled()?;
        if id != 0 || self.live != FULL {
            return None;
        }
        let entry = compiled.entry(pc)?;
        let frame = self.frames[0].as_mut()?;
        let trusted = self.trusted.take() == Some(pc);
        let affine = trusted || {
            let mut scalars = entry.scalars.iter();
            scalars.all(|(slot, width, step)| frame.file.is_affine(*slot, *width, *step, compiled.lanes))
        };
        if !affine {
            self.in_vain += 1;
        }
        affine.then_some((compiled, entry))
    }

    /// Runs each group of the warp in compiled code. No other lanes are ready, and none are parked.
    pub(super) fn run_groups(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        code: &Code,
        (compiled, entry): (&Compiled, &CompiledEntry),
        share: i64,
    ) -> Compilation {
        let lanes = compiled.lanes as usize;
        let groups = LANES / lanes;
        m.group_caches.resize_with(groups, Vec::new);
        for caches in &mut m.group_caches {
            if caches.len() < code.caches as usize {
                caches.resize_with(code.caches as usize, AccessCache::default);
            }
        }
        if m.windows.len() < compiled.windows {
            m.windows.resize_with(compiled.windows, Window::default);
        }
        let Some(frame) = self.frames[0].as_mut() else {
            return Compilation::Ready(0);
        };
        let base = frame.file.regs().frame();
        let start = compiled.code.address();
        let stride = m.spaces.local.stride();
        let mut context = CompiledContext {
            addresses: LaneAddresses::default(),
            frame: base,
            halves: base,
            group: 0,
            pool: compiled.pool.as_ptr(),
            windows: m.windows.as_ptr().cast(),
            shared: m.spaces.shared.host(),
            shared_length: m.spaces.shared.len(),
            local: m.spaces.local.host(),
            local_length: m.spaces.local_length(),
            local_lanes: LaneAddresses::default(),
            hosts: [0; 16],
            quantum: 0,
            steps: 0,
            interpret,
            fault_at: 0,
            mask: 0,
            resume: start.wrapping_add(entry.offset),
            arrived: [0; MOST_GROUPS],
            group_steps: [0; MOST_GROUPS],
            group_quanta: [share; MOST_GROUPS],
            group_local: lanes as u64 * stride,
            scheduler: std::ptr::null_mut(),
            rounds: [[0; MOST_LOOPS]; MOST_GROUPS],
        };
        for (number, found) in compiled.loops.iter().enumerate() {
            for (group, counts) in context.rounds.iter_mut().enumerate().take(groups) {
                let finished = self
                    .order
                    .as_ref()
                    .map_or(0, |order| order.rounds(number, group * lanes));
                counts[number] = found.count(finished, share);
            }
        }
        if stride > 0 {
            context.local_lanes = LaneAddresses::spaced(stride);
        }
        let mut rounds = 0;
        let mut faults = Vec::new();
        let mut ends = [(0, Exit::Leave); MOST_GROUPS];
        let group_mask = Mask::MAX >> (LANES - lanes);
        let mut next = 0;
        // Groups that have arrived at a site leave there once all others have ended elsewhere.
        let mut leaving = false;
        while next < groups {
            let group = next;
            let mut from = context.resume;
            if leaving {
                match compiled.site(context.arrived[group]) {
                    Some(CompiledSite { part, .. }) => from = start.wrapping_add(*part),
                    None => {
                        next += 1;
                        continue;
                    }
                }
            }
            (context.group, context.mask) = (group as u64, group_mask << (group * lanes));
            (context.quantum, context.steps) = (context.group_quanta[group], context.group_steps[group]);
            let first_lane = (group * lanes) as u64;
            context.local = m.spaces.local.host().wrapping_add((first_lane * stride) as usize);
            context.halves = base.wrapping_add(2 * lanes * group);
            let mut running = Running {
                machine: &mut *m,
                code,
                regs: frame.file.regs(),
                faulty: (0, 0),
            };
            context.scheduler = (&raw mut running).cast::<c_void>();
            // SAFETY: the code begins with a function of this type.
            let function: Function = unsafe { std::mem::transmute(start) };
            // SAFETY: the context describes a frame of the function that the code was compiled from, and is not used
            // elsewhere meanwhile. The frame has the code's rows, whose values fit the entry. The CPU has AVX2, or
            // there would be no compiled code.
            let ended = unsafe { function(&raw mut context, from) };
            let faulty = running.faulty;
            // The code goes on with other groups by itself.
            let group = context.group as usize;
            (context.group_quanta[group], context.group_steps[group]) = (context.quantum, context.steps);
            let (at, exit) = (ended as u32, (ended >> 32) as u32);
            next = group + 1;
            if exit == Exit::Part as u32 {
                context.arrived[group] = u64::from(at);
            } else if exit == Exit::Action as u32 {
                let Some(site) = compiled.site(u64::from(at)) else {
                    break;
                };
                let Ok(more) = act(m, code, &mut frame.file, site.at) else {
                    self.stopped = Some(Split {
                        frame: 0,
                        depth: 0,
                        pc: site.at,
                        mask: FULL,
                    });
                    return Compilation::Fault(code.lines[site.at as usize]);
                };
                rounds += more;
                context.resume = start.wrapping_add(site.resume);
                next = 0;
            } else {
                context.arrived[group] = 0;
                ends[group] = match exit {
                    1 => (at, Exit::Barrier),
                    2 => (at, Exit::End),
                    3 => (faulty.0, Exit::Fault),
                    _ => (at, Exit::Leave),
                };
                if exit == Exit::Fault as u32 {
                    let split = Split {
                        frame: 0,
                        depth: 0,
                        pc: context.fault_at,
                        mask: group_mask << (group * lanes),
                    };
                    faults.push(HeldFault {
                        split,
                        insts: faulty,
                        fault: m.fault.take(),
                    });
                }
            }
            if next == groups && !leaving {
                (leaving, next) = (true, 0);
            }
        }
        let steps = context.group_steps[..groups].iter().copied().fold(0, u64::max);
        let jumps = context.group_quanta[..groups].iter().map(|left| share - (*left).max(0));
        rounds += jumps.fold(0, i64::max);
        m.steps += steps;
        m.compiled_steps += steps;
        self.in_vain = if steps < super::WORTH_COMING_BACK {
            self.in_vain + 1
        } else {
            0
        };
        let ends = &ends[..groups];
        let mask_of = |group: usize| group_mask << (group * lanes);
        for (counts, quantum) in context.rounds.iter_mut().zip(context.group_quanta) {
            for (count, found) in counts.iter_mut().zip(&compiled.loops) {
                *count = found.rounds(*count, quantum);
            }
        }
        if faults.is_empty() && is_even(&compiled.loops, ends, &context.rounds) {
            self.order = None;
        } else {
            let order = self.order.get_or_insert_with(|| Box::new(Order::new(&compiled.loops)));
            for (group, (at, _)) in ends.iter().enumerate() {
                order.place(mask_of(group), *at, &context.rounds[group]);
            }
            faults.into_iter().for_each(|fault| order.hold(fault));
        }
        let first = ends[0];
        if ends.iter().all(|end| *end == first) {
            match first {
                (_, Exit::End) => return Compilation::End,
                (at, Exit::Barrier) if self.arrives_at_plain(m, code, at) => {
                    self.ready.push(Split {
                        frame: 0,
                        depth: 0,
                        pc: at,
                        mask: FULL,
                    });
                    self.arrive_at(m, frames, at);
                    self.trusted = Some(at + 1);
                    return Compilation::Barrier;
                }
                _ => {}
            }
        }
        for (group, (at, exit)) in ends.iter().enumerate() {
            if *exit == Exit::Fault {
                continue;
            }
            self.push(Split {
                frame: 0,
                depth: 0,
                pc: *at,
                mask: mask_of(group),
            });
        }
        Compilation::Ready(rounds)
    }

    /// Returns true if an instruction is a plain barrier, and sets [`Machine::target`] to its number.
    fn arrives_at_plain(&self, m: &mut Machine<'_>, code: &Code, at: u32) -> bool {
        let inst = &code.insts[at as usize];
        let Some(Action::Barrier(barrier)) = code.actions.get(inst.aux as usize) else {
            return false;
        };
        match barrier.plain() {
            Some(id) => {
                m.target = id;
                true
            }
            None => false,
        }
    }
}

/// Runs an instruction of the scheduler for the whole warp, and returns the number of backward jumps that it counts as.
/// `Err`: it raised the fault in [`Machine::fault`].
fn act(m: &mut Machine<'_>, code: &Code, file: &mut RegFile, at: u32) -> Result<i64, ()> {
    let before = m.steps;
    if let Some(Action::Matrix(call)) = code.actions.get(code.insts[at as usize].aux as usize) {
        matrix::run(m, file, call, FULL)?;
    }
    // A long instruction counts as several rounds of a short loop.
    Ok(((m.steps - before) / 16).cast_signed())
}

/// Returns true if no two groups have ended in different rounds of a loop.
fn is_even(loops: &[CompiledLoop], ends: &[(u32, Exit)], rounds: &[[i64; MOST_LOOPS]]) -> bool {
    loops.iter().enumerate().all(|(number, found)| {
        let inside = ends.iter().zip(rounds).filter(|((at, _), _)| found.range.contains(at));
        let mut rounds = inside.map(|(_, rounds)| rounds[number]);
        let first = rounds.next();
        rounds.all(|other| Some(other) == first)
    })
}
