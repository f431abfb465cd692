//! Runs the groups of a warp in compiled code.

use super::frame::{FrameId, Frames};
use super::run::{Event, run};
use super::{Split, Warp};
use crate::code::action::Action;
use crate::code::compiled::{Compiled, CompiledContext, CompiledEntry, Exit, Function, LaneAddresses, Window};
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::code::registers::Regs;
use crate::fault::FaultKind;
use crate::lanes::{FULL, LANES, Mask};
use crate::memory::warp::AccessCache;
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
}

/// A fault in a group, and its place in the order of the interpreter: instructions run before, and instruction.
type GroupFault = ((u64, u32), Option<(FaultKind, usize)>);

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
    // SAFETY: the registers belong to a frame of this code, which was decoded for this CPU.
    let (at, event) = unsafe { run(m, running.code, running.regs, first, context.mask, end) };
    m.steps = before;
    m.called_steps += u64::from(end - first);
    if event != Event::Stop {
        context.fault_at = at;
        return 1;
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
        if m.windows.len() < compiled.windows {
            m.windows.resize_with(compiled.windows, Window::default);
        }
        let Some(frame) = self.frames[0].as_mut() else {
            return Compilation::Ready(0);
        };
        let regs = frame.file.regs();
        let mut context = CompiledContext {
            addresses: LaneAddresses::default(),
            frame: regs.frame(),
            halves: regs.frame(),
            group: 0,
            pool: compiled.pool.as_ptr(),
            windows: m.windows.as_ptr().cast(),
            shared: m.spaces.shared.host(),
            shared_length: m.spaces.shared.len(),
            local: m.spaces.local.host(),
            local_length: m.spaces.local_length(),
            local_lanes: LaneAddresses::default(),
            quantum: 0,
            steps: 0,
            interpret,
            fault_at: 0,
            mask: 0,
            scheduler: std::ptr::null_mut(),
        };
        let stride = m.spaces.local.stride();
        if stride > 0 {
            context.local_lanes = LaneAddresses::spaced(stride);
        }
        let (mut steps, mut rounds) = (0, 0);
        let mut faults: Option<GroupFault> = None;
        let mut ends = [(0, Exit::Leave); 4];
        let group_mask = Mask::MAX >> (LANES - lanes);
        for (group, end) in ends.iter_mut().enumerate().take(groups) {
            (context.group, context.mask) = (group as u64, group_mask << (group * lanes));
            (context.quantum, context.steps) = (share, 0);
            let first_lane = (group * lanes) as u64;
            context.local = m.spaces.local.host().wrapping_add((first_lane * stride) as usize);
            context.halves = regs.frame().wrapping_add(2 * lanes * group);
            std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
            if m.caches.len() < code.caches as usize {
                m.caches.resize_with(code.caches as usize, AccessCache::default);
            }
            let mut running = Running {
                machine: &mut *m,
                code,
                regs,
            };
            context.scheduler = (&raw mut running).cast::<c_void>();
            let start = compiled.code.address();
            // SAFETY: the code begins with a function of this type.
            let function: Function = unsafe { std::mem::transmute(start) };
            // SAFETY: the context describes a frame of the function that the code was compiled from, and is not used
            // elsewhere meanwhile. The frame has the code's rows, whose values fit the entry. The CPU has AVX2, or
            // there would be no compiled code.
            let ended = unsafe { function(&raw mut context, start.wrapping_add(entry.offset)) };
            std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
            steps = steps.max(context.steps);
            rounds = rounds.max(share - context.quantum.max(0));
            let (at, exit) = (ended as u32, (ended >> 32) as u32);
            if exit == Exit::Fault as u32 {
                let place = (context.steps, context.fault_at);
                let fault = m.fault.take();
                if faults.as_ref().is_none_or(|(first, _)| place < *first) {
                    faults = Some((place, fault));
                }
                continue;
            }
            *end = match exit {
                1 => (at, Exit::Barrier),
                2 => (at, Exit::End),
                _ => (at, Exit::Leave),
            };
        }
        m.steps += steps;
        m.compiled_steps += steps;
        if let Some(((_, at), fault)) = faults {
            // The other groups have stopped elsewhere.
            let lane = fault.as_ref().map_or(0, |(_, lane)| lane % LANES);
            self.stopped = Some(Split {
                frame: 0,
                depth: 0,
                pc: at,
                mask: 1 << lane,
            });
            m.fault = fault;
            return Compilation::Fault(code.lines[at as usize]);
        }
        self.in_vain = if steps < super::WORTH_COMING_BACK {
            self.in_vain + 1
        } else {
            0
        };
        let ends = &ends[..groups];
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
        for (group, (at, _)) in ends.iter().enumerate() {
            self.push(Split {
                frame: 0,
                depth: 0,
                pc: *at,
                mask: group_mask << (group * lanes),
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
