//! Runs the groups of a warp in compiled code.

use super::frame::{FrameId, Frames};
use super::order::{HeldFault, Order};
use super::run::{Event, run};
use super::{Split, Warp, rounds_of};
use crate::code::action::Action;
use crate::code::compiled::{
    Compiled, CompiledContext, CompiledEntry, CompiledLoop, CompiledSite, CompiledWait, Exit, Function, LaneAddresses,
    MISSING, MOST_GROUPS, MOST_LOOPS, MOST_UNIFORMS, MOST_WAITS, Window,
};
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::code::registers::RegFile;
use crate::lanes::{FULL, LANES, Mask};
use crate::memory::warp::AccessCache;
use crate::ops::matrix;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// The way in which a run in compiled code ended.
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
struct Running<'r, 'm, 'e> {
    machine: &'r mut Machine<'m>,
    code: &'r Code,
    frames: &'r Frames<'e>,
    /// The coordinates and the number of the block.
    block: ([u32; 3], u64),
    /// The warps of the call, by [`CompiledContext::warp`].
    warps: &'r mut [Warp],
    /// The place of the first warp's frame.
    first: *const *mut u8,
    /// Number of lanes in a group.
    lanes: u32,
}

/// The ends of the groups of a warp in compiled code.
pub(super) struct GroupEnds {
    /// By group: the instruction that it reached, and the reason why the code ended there.
    ends: [(u32, Exit); MOST_GROUPS],
    /// Groups of which only some lanes have reached that instruction, with these lanes of the warp.
    some: Vec<(usize, Mask)>,
    /// Lanes that wait elsewhere: their group, the number of the place in [`Compiled::waits`], and the lanes.
    waiting: Vec<(usize, usize, Mask)>,
    /// Instructions run by the group that ran most of them.
    steps: u64,
    /// Instructions run by the group that ran fewest of them.
    fewest: u64,
    /// Backward jumps of the group that took most of them.
    rounds: i64,
    /// By group: the finished rounds of each loop.
    counts: [[i64; MOST_LOOPS]; MOST_GROUPS],
    /// The faults of groups.
    faults: Vec<HeldFault>,
    /// Number of backward jumps that the instructions for the whole warp count as.
    jumps: i64,
    /// The instruction for the whole warp that has raised the fault in [`Machine::fault`].
    failed_at: Option<u32>,
}

impl Default for GroupEnds {
    fn default() -> Self {
        GroupEnds {
            ends: [(0, Exit::Leave); MOST_GROUPS],
            some: Vec::new(),
            waiting: Vec::new(),
            steps: 0,
            fewest: u64::MAX,
            rounds: 0,
            counts: [[0; MOST_LOOPS]; MOST_GROUPS],
            faults: Vec::new(),
            jumps: 0,
            failed_at: None,
        }
    }
}

impl GroupEnds {
    /// Returns the ends of groups that have all run `steps` instructions and returned this result.
    pub(super) fn same(result: u64, steps: u64) -> Self {
        GroupEnds {
            ends: [end_of(result); MOST_GROUPS],
            steps,
            fewest: steps,
            ..GroupEnds::default()
        }
    }

    /// Records the finished loop rounds of the groups that ended in the call of this context before the running group.
    pub(super) fn add_counts(&mut self, context: &CompiledContext, compiled: &Compiled) {
        for group in 0..context.group as usize {
            self.count(context, compiled, group, context.group_quanta[group]);
        }
    }

    /// Records the finished loop rounds of a group that has ended with this quantum.
    fn count(&mut self, context: &CompiledContext, compiled: &Compiled, group: usize, quantum: i64) {
        let counts = self.counts[group].iter_mut().zip(&context.rounds[group]);
        for ((rounds, count), found) in counts.zip(&compiled.loops) {
            // SAFETY: the function `context` has set the counts of all loops for all groups.
            *rounds = found.rounds(unsafe { count.assume_init() }, quantum);
        }
    }

    /// Records the end of the running group.
    pub(super) fn add(&mut self, m: &mut Machine<'_>, context: &mut CompiledContext, compiled: &Compiled, result: u64) {
        let group = context.group as usize;
        self.steps = self.steps.max(context.steps);
        self.fewest = self.fewest.min(context.steps);
        self.rounds = self.rounds.max(context.share - context.quantum.max(0));
        self.count(context, compiled, group, context.quantum);
        self.ends[group] = end_of(result);
        if (result >> 32) as u32 == Exit::Fault as u32 {
            let [first, end] = context.faulty;
            self.ends[group] = (first, Exit::Fault);
            let split = Split {
                frame: 0,
                depth: 0,
                pc: context.fault_at,
                mask: context.running(compiled.lanes),
            };
            self.faults.push(HeldFault {
                split,
                insts: (first, end),
                fault: m.fault.take(),
            });
        }
        if context.active != u32::MAX {
            self.some.push((group, context.running(compiled.lanes)));
            context.active = u32::MAX;
            for (number, place) in context.waiting.iter_mut().enumerate().take(compiled.waits.len()) {
                let lanes = std::mem::take(place);
                if lanes != 0 {
                    self.waiting
                        .push((group, number, lanes << (group as u32 * compiled.lanes)));
                }
            }
        }
    }
}

/// Returns the instruction that the code has reached, and the reason why it ended there, from its result. All reasons
/// other than a barrier and the end of the kernel count as [`Exit::Leave`].
pub(super) fn end_of(result: u64) -> (u32, Exit) {
    let exit = match (result >> 32) as u32 {
        1 => Exit::Barrier,
        2 => Exit::End,
        _ => Exit::Leave,
    };
    (result as u32, exit)
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
/// The context is the one that [`call`] passes to the compiled code, which calls this function.
unsafe fn interpret(context: *mut CompiledContext, first: u32, end: u32, address: u64, window: u32) -> u32 {
    // SAFETY: as promised by the caller; the compiled code does not run meanwhile.
    let context = unsafe { &mut *context };
    // SAFETY: `call` has put a pointer to a value of this type there, and does not use the value meanwhile.
    let running = unsafe { &mut *context.scheduler.cast::<Running<'_, '_, '_>>() };
    let (m, group) = (&mut *running.machine, context.group as usize);
    let Some(warp) = running.warps.get_mut(context.warp(running.first)) else {
        return 1;
    };
    warp.catch_up(running.frames, running.block);
    (m.live, m.warp) = (warp.live, warp.position.warp);
    let Some(frame) = warp.frames[0].as_mut() else {
        return 1;
    };
    // The compiled code counts these instructions, and those up to the last barrier that it has passed.
    let before = m.steps;
    m.steps += context.passed;
    let lanes = context.running(running.lanes);
    // Groups that run an instruction together use the caches of the warp.
    let together = lanes == FULL && m.group_caches.len() > 1;
    if !together {
        std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
    }
    // SAFETY: the registers belong to a frame of this code, which was decoded for this CPU.
    let (at, event) = unsafe { run(m, running.code, frame.file.regs(), first, lanes, end) };
    if !together {
        std::mem::swap(&mut m.caches, &mut m.group_caches[group]);
        m.called_steps += u64::from(end - first);
    }
    m.steps = before;
    if m.has_freed_much() {
        context.limit = 0;
    }
    match event {
        Event::Stop => {}
        Event::Act if lanes == FULL => return MISSING,
        _ => {
            context.fault_at = at;
            context.faulty = [first, end];
            return 1;
        }
    }
    if window != NO_WINDOW
        && let Some(record) = m.spaces.flight.lookup(address)
        && let Some(window) = m.windows.get_mut(window as usize)
    {
        // The access was permitted, so the instruction may access the rest of the allocation, too.
        *window = Window {
            base: record.base(),
            length: record.length_variable(),
            to_host: record.delta(),
        };
    }
    0
}
}

/// Returns a context for the first group of a warp or block, with the block's shared memory, and without frames. When
/// the code has ended, the caller puts the context back into [`Machine::context`], because it takes longer to make a
/// new one than to run a small block. Fields that are not set here are the same for all blocks, or are written before
/// they are read; between calls, pointers to frames and to the scheduler may dangle.
pub(super) fn context(
    m: &mut Machine<'_>,
    frames: &Frames<'_>,
    code: &Code,
    compiled: &Compiled,
    block: ([u32; 3], u64),
    share: i64,
) -> Box<CompiledContext> {
    let mut context = m.context.take().unwrap_or_else(|| first_context(m, code, compiled));
    frames.fill_uniforms(&mut context.uniforms, &mut m.uniforms_of, compiled, block);
    (context.shared, context.shared_length) = (m.spaces.shared.host(), m.spaces.shared.len());
    (context.local, context.local_length) = (std::ptr::null_mut(), 0);
    (context.arrived, context.group_steps) = ([0; MOST_GROUPS], [0; MOST_GROUPS]);
    if context.active != u32::MAX {
        (context.active, context.waiting) = (u32::MAX, [0; MOST_WAITS]);
    }
    begin(&mut context, compiled, share);
    context
}

/// Prepares a context for the first group of a warp or block. The frames are not set.
pub(super) fn begin(context: &mut CompiledContext, compiled: &Compiled, share: i64) {
    let groups = LANES / compiled.lanes as usize;
    context.in_warp = groups as u64;
    context.group = 0;
    context.mask = Mask::MAX >> (LANES - compiled.lanes as usize);
    (context.expected, context.total, context.steps) = (0, 0, 0);
    (context.share, context.quantum) = (share, share);
    context.group_quanta = [share; MOST_GROUPS];
    for (number, found) in compiled.loops.iter().enumerate() {
        for counts in context.rounds.iter_mut().take(groups) {
            counts[number].write(found.count(0, share));
        }
    }
}

/// Returns a context whose fields have the values that are the same for all blocks, and prepares the machine for it.
#[cold]
fn first_context(m: &mut Machine<'_>, code: &Code, compiled: &Compiled) -> Box<CompiledContext> {
    m.group_caches.resize_with(LANES / compiled.lanes as usize, Vec::new);
    for caches in &mut m.group_caches {
        caches.resize_with(code.caches as usize, AccessCache::default);
    }
    m.windows.resize_with(compiled.windows, Window::default);
    m.uniforms_of = None;
    Box::new(CompiledContext {
        addresses: LaneAddresses::default(),
        frame: std::ptr::null_mut(),
        halves: std::ptr::null_mut(),
        group: 0,
        pool: compiled.pool.as_ptr(),
        windows: m.windows.as_ptr().cast(),
        shared: std::ptr::null_mut(),
        shared_length: 0,
        local: std::ptr::null_mut(),
        local_length: 0,
        local_lanes: LaneAddresses::default(),
        uniforms: [0; MOST_UNIFORMS],
        hosts: [0; 16],
        in_warp: 0,
        frames: std::ptr::null(),
        frames_end: std::ptr::null(),
        first_frame: std::ptr::null(),
        warps: 0,
        limit: 0,
        passed: 0,
        barriers: 0,
        passed_at: 0,
        behind: std::ptr::null(),
        entry: std::ptr::null(),
        expected: 0,
        share: 0,
        total: 0,
        quantum: 0,
        steps: 0,
        interpret,
        fault_at: 0,
        mask: 0,
        resume: std::ptr::null(),
        arrived: [0; MOST_GROUPS],
        group_steps: [0; MOST_GROUPS],
        group_quanta: [0; MOST_GROUPS],
        group_local: 0,
        scheduler: std::ptr::null_mut(),
        faulty: [0; 2],
        active: u32::MAX,
        unread: [0; 2],
        waiting: [0; MOST_WAITS],
        rounds: [[MaybeUninit::uninit(); MOST_LOOPS]; MOST_GROUPS],
    })
}

/// Runs groups in compiled code from an address on: the rest of the running warp and all warps after it, as long as
/// they end at the same place. Returns the result of the last one.
#[allow(clippy::too_many_arguments)]
pub(super) fn call(
    context: &mut CompiledContext,
    m: &mut Machine<'_>,
    frames: &Frames<'_>,
    code: &Code,
    compiled: &Compiled,
    from: *const u8,
    block: ([u32; 3], u64),
    warps: &mut [Warp],
) -> u64 {
    let mut running = Running {
        machine: m,
        code,
        frames,
        block,
        warps,
        first: context.frames,
        lanes: compiled.lanes,
    };
    context.scheduler = (&raw mut running).cast::<c_void>();
    context.entry = from;
    // SAFETY: the code begins with a function of this type.
    let function: Function = unsafe { std::mem::transmute(compiled.code.address()) };
    // SAFETY: the context describes frames of the function that the code was compiled from, and is not used elsewhere
    // meanwhile. The frames have the code's rows, whose values fit the code at the address. The CPU has AVX2, or there
    // would be no compiled code.
    let result = unsafe { function(context, from) };
    if compiled.lanes == LANES as u32 {
        context.steps -= context.total;
    }
    result
}

/// Runs the groups of a warp from group `first` on, until each has ended.
#[allow(clippy::too_many_arguments)]
pub(super) fn run_each(
    context: &mut CompiledContext,
    m: &mut Machine<'_>,
    frames: &Frames<'_>,
    code: &Code,
    (compiled, entry): (&Compiled, &CompiledEntry),
    block: ([u32; 3], u64),
    warp: &mut Warp,
    first: usize,
    found: &mut GroupEnds,
) {
    let Some(frame) = warp.frames[0].as_mut() else {
        return;
    };
    let (base, lanes) = (frame.file.regs().frame(), compiled.lanes as usize);
    let groups = LANES / lanes;
    let group_mask = Mask::MAX >> (LANES - lanes);
    let start = compiled.code.address();
    let stride = m.spaces.local.stride();
    context.frame = base;
    (context.arrived, context.group_steps) = ([0; MOST_GROUPS], [0; MOST_GROUPS]);
    (context.group_quanta, context.group_local) = ([context.share; MOST_GROUPS], lanes as u64 * stride);
    context.resume = start.wrapping_add(entry.offset);
    let mut next = first;
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
        (context.in_warp, context.expected, context.total) = (1, 0, 0);
        context.begin_frames(std::ptr::null(), 1, 0);
        context.local = m.spaces.local.host().wrapping_add(group * lanes * stride as usize);
        context.halves = base.wrapping_add(2 * lanes * group);
        let warps = std::slice::from_mut(warp);
        let result = call(context, m, frames, code, compiled, from, block, warps);
        // The code may have continued with further groups by itself: this is the last one that it ran.
        let group = context.group as usize;
        (context.group_quanta[group], context.group_steps[group]) = (context.quantum, context.steps);
        let (at, exit) = (result as u32, (result >> 32) as u32);
        next = group + 1;
        if exit == Exit::Part as u32 {
            context.arrived[group] = u64::from(at);
        } else if exit == Exit::Action as u32 {
            let (Some(site), Some(frame)) = (compiled.site(u64::from(at)), warp.frames[0].as_mut()) else {
                break;
            };
            let Ok(more) = act(m, code, &mut frame.file, site.at) else {
                found.failed_at = Some(site.at);
                return;
            };
            found.jumps += more;
            context.resume = start.wrapping_add(site.resume);
            next = 0;
        } else {
            context.arrived[group] = 0;
            found.add(m, context, compiled, result);
        }
        if next == groups && !leaving {
            (leaving, next) = (true, 0);
        }
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
            let mut of_warp = entry.of_warp.iter();
            scalars.all(|(slot, width, step)| frame.file.is_affine(*slot, *width, *step, compiled.lanes))
                && of_warp.all(|(slot, width, step)| frame.file.is_affine(*slot, *width, *step, LANES as u32))
        };
        if !affine {
            self.vain_returns += 1;
        }
        affine.then_some((compiled, entry))
    }

    /// Runs each group of the warp in compiled code, unless [`phase::run`](super::phase::run) has done so. No other
    /// lanes are ready, and none are parked.
    pub(super) fn run_groups(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        code: &Code,
        (compiled, entry): (&Compiled, &CompiledEntry),
        share: i64,
    ) -> Compilation {
        let ends = self.group_ends.take().unwrap_or_else(|| {
            let block = (self.position.block, self.position.number);
            let mut context = context(m, frames, code, compiled, block, share);
            (context.local, context.local_length) = (m.spaces.local.host(), m.spaces.local_length());
            let stride = m.spaces.local.stride();
            if stride > 0 {
                context.local_lanes = LaneAddresses::spaced(stride);
            }
            if let Some(order) = &self.order {
                let lanes = compiled.lanes as usize;
                for (number, found) in compiled.loops.iter().enumerate() {
                    for (group, counts) in context.rounds.iter_mut().enumerate().take(LANES / lanes) {
                        counts[number].write(found.count(order.rounds(number, group * lanes), share));
                    }
                }
            }
            let mut found = GroupEnds::default();
            run_each(
                &mut context,
                m,
                frames,
                code,
                (compiled, entry),
                block,
                self,
                0,
                &mut found,
            );
            m.context = Some(context);
            found
        });
        self.finish_groups(m, frames, code, compiled, ends)
    }

    /// Makes the lanes ready at the instructions at which their groups have ended.
    fn finish_groups(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        code: &Code,
        compiled: &Compiled,
        run: GroupEnds,
    ) -> Compilation {
        let lanes = compiled.lanes as usize;
        let group_mask = Mask::MAX >> (LANES - lanes);
        let GroupEnds {
            ends,
            some,
            waiting,
            steps,
            fewest,
            rounds,
            counts,
            faults,
            jumps,
            failed_at,
        } = run;
        if let Some(at) = failed_at {
            self.stopped = Some(Split {
                frame: 0,
                depth: 0,
                pc: at,
                mask: FULL,
            });
            return Compilation::Fault(code.lines[at as usize]);
        }
        // In the interpreter's order, groups that are behind catch up in the interpreter, which counts their
        // instructions.
        let steps = if compiled.ordered { steps.min(fewest) } else { steps };
        m.steps += steps;
        m.compiled_steps += steps;
        self.vain_returns = if steps < super::WORTH_COMING_BACK {
            self.vain_returns + 1
        } else {
            0
        };
        let ends = &ends[..LANES / lanes];
        let mask_of = |group: usize| {
            let found = some.iter().find(|(other, _)| *other == group);
            found.map_or(group_mask << (group * lanes), |(_, lanes)| *lanes)
        };
        let waiting: Vec<_> = waiting
            .into_iter()
            .filter_map(|(group, number, lanes)| Some((group, compiled.waits.get(number)?, lanes)))
            .collect();
        let places = ends.iter().enumerate().filter(|(group, _)| mask_of(*group) != 0);
        let places = places.map(|(group, (at, _))| (group, *at));
        let waits = waiting.iter().map(|(group, wait, _)| (*group, wait.at));
        if faults.is_empty() && is_even(&compiled.loops, places.chain(waits), &counts) {
            self.order = None;
        } else {
            let order = self.order.get_or_insert_with(|| Box::new(Order::new(compiled)));
            for (group, (at, _)) in ends.iter().enumerate() {
                order.place(mask_of(group), *at, &counts[group]);
            }
            for (group, wait, lanes) in &waiting {
                order.place(*lanes, wait.at, &counts[*group]);
            }
            faults.into_iter().for_each(|fault| order.hold(fault));
        }
        let first = ends[0];
        if some.is_empty() && ends.iter().all(|end| *end == first) {
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
            if *exit == Exit::Fault || mask_of(group) == 0 {
                continue;
            }
            if *exit == Exit::Barrier {
                self.complete_group(compiled, *at + 1, group as u32);
            }
            self.push(Split {
                frame: 0,
                depth: 0,
                pc: *at,
                mask: mask_of(group),
            });
        }
        for (group, CompiledWait { at, scalars }, lanes) in waiting {
            if let Some(frame) = self.frames[0].as_mut() {
                for (slot, width, step) in scalars {
                    frame
                        .file
                        .spread_group(*slot, *width, *step, compiled.lanes, group as u32);
                }
            }
            self.push(Split {
                frame: 0,
                depth: 0,
                pc: *at,
                mask: lanes,
            });
        }
        Compilation::Ready(rounds + jumps)
    }

    /// Writes the lanes of scalars that compiled code has not written at a barrier. The interpreter and reports read
    /// them.
    pub(crate) fn complete_rows(&mut self, frames: &Frames<'_>) {
        if let (Some(at), Some(compiled)) = (self.trusted.take(), frames.compiled()) {
            for group in 0..LANES as u32 / compiled.lanes {
                self.complete_group(compiled, at, group);
            }
        }
    }

    /// Writes the lanes of scalars of a group that continues at an instruction, as
    /// [`complete_rows`](Self::complete_rows) does for all groups.
    fn complete_group(&mut self, compiled: &Compiled, at: u32, group: u32) {
        if let (Some(entry), Some(frame)) = (compiled.entry(at), self.frames[0].as_mut()) {
            for (slot, width, step) in &entry.scalars {
                frame.file.spread_group(*slot, *width, *step, compiled.lanes, group);
            }
        }
    }

    /// Returns true if a barrier instruction is a plain barrier, and sets [`Machine::target`] to its number.
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
/// Returns `Err` if it raised the fault in [`Machine::fault`].
fn act(m: &mut Machine<'_>, code: &Code, file: &mut RegFile, at: u32) -> Result<i64, ()> {
    let before = m.steps;
    if let Some(Action::Matrix(call)) = code.actions.get(code.insts[at as usize].aux as usize) {
        matrix::run(m, file, call, FULL)?;
    }
    Ok(rounds_of(m.steps - before))
}

/// Returns true if no two groups have ended in different rounds of a loop. `ends` are groups with the instructions that
/// they have reached.
fn is_even(
    loops: &[CompiledLoop],
    ends: impl Iterator<Item = (usize, u32)> + Clone,
    rounds: &[[i64; MOST_LOOPS]],
) -> bool {
    loops.iter().enumerate().all(|(number, found)| {
        let inside = ends.clone().filter(|(_, at)| found.range.contains(at));
        let mut rounds = inside.map(|(group, _)| rounds[group][number]);
        let first = rounds.next();
        rounds.all(|other| Some(other) == first)
    })
}
