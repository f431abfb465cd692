//! Machine code of a kernel, and the part of a warp's state that it shares with the interpreter.

use super::constant::Constant;
use super::registers::Slot;
use super::share::Share;
use host::executable::Executable;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Numbers of lanes in a group for which code can be compiled.
pub(crate) const GROUPS: [u32; 3] = [32, 16, 8];

/// A kernel's machine code for groups of neighbouring lanes.
///
/// When the code begins or ends, the values are in the rows of the frame, so that the interpreter can continue. Inside
/// the code, and when it ends at a barrier or with lanes that wait, the rows of scalar registers are incomplete: only
/// the first lane of a group is valid. The warp completes these rows before the interpreter reads them.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The code. It begins with a function as in [`Function`].
    pub(crate) code: Executable,
    /// Vectors of constants that the code reads.
    pub(crate) pool: Vec<[u32; 8]>,
    /// Number of lanes in a group.
    pub(crate) lanes: u32,
    /// The instructions at which the code can begin, sorted by [`CompiledEntry::at`].
    pub(crate) entries: Vec<CompiledEntry>,
    /// Number of memory instructions that have a [`Window`].
    pub(crate) windows: usize,
    /// The instructions that all groups of a warp run together.
    pub(crate) sites: Vec<CompiledSite>,
    /// The loops whose rounds the code counts. A loop comes before those inside it.
    pub(crate) loops: Vec<CompiledLoop>,
    /// The constants in [`CompiledContext::uniforms`], with their bytes per lane.
    pub(crate) uniforms: Vec<(Constant, u8)>,
    /// The instructions by the way in which they run.
    pub(crate) share: Share,
    /// True if all lanes of a warp run in the interpreter's order.
    pub(crate) ordered: bool,
    /// The places at which some lanes of a group can wait for others.
    pub(crate) waits: Vec<CompiledWait>,
    /// See [`Variant::leaving`].
    pub(crate) leaving: bool,
    /// True if results of instructions depend on the lanes that run them together.
    pub(crate) sees_active_lanes: bool,
}

/// The properties of a launch that its machine code depends on, besides the instruction set of the function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// Number of lanes in a group.
    pub(crate) lanes: u32,
    /// True if `%ntid.x` is a multiple of `lanes`.
    pub(crate) whole: bool,
    /// True if the code leaves at each of its exits, as if each check failed: see
    /// [`Engine::Leaving`](crate::Engine::Leaving).
    pub(crate) leaving: bool,
}

/// The compiled code of a function, made on first use.
#[derive(Debug, Default)]
pub(crate) struct CompiledSlots([[[OnceLock<Option<Compiled>>; 2]; 2]; GROUPS.len()]);

impl CompiledSlots {
    fn slot(&self, variant: Variant) -> Option<&OnceLock<Option<Compiled>>> {
        let index = GROUPS.iter().position(|group| *group == variant.lanes)?;
        Some(&self.0[index][usize::from(variant.whole)][usize::from(variant.leaving)])
    }

    /// Returns the code of this variant, which `compile` makes if there is none yet; `None` if it cannot be compiled.
    pub(crate) fn get(&self, variant: Variant, compile: impl FnOnce() -> Option<Compiled>) -> Option<&Compiled> {
        self.slot(variant)?.get_or_init(compile).as_ref()
    }

    /// Returns the code of this variant if [`get`](Self::get) has made it.
    pub(crate) fn made(&self, variant: Variant) -> Option<&Compiled> {
        self.slot(variant)?.get()?.as_ref()
    }
}

/// An instruction at which compiled code can begin.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Debug)]
pub(crate) struct CompiledEntry {
    /// The instruction in the interpreter's code.
    pub(crate) at: u32,
    /// Offset in bytes of the machine code.
    pub(crate) offset: usize,
    /// Registers that are read from there on, and whose lanes the code takes to be equally spaced or the same: row,
    /// bytes per lane (0 for a predicate), step from lane to lane.
    pub(crate) scalars: Vec<(Slot, u8, i64)>,
    /// As [`scalars`](Self::scalars), for registers that must have the same value in the whole warp: the step is 0.
    pub(crate) of_warp: Vec<(Slot, u8, i64)>,
}

/// An instruction that all groups of a warp run together. Sites have numbers from 1 on.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Debug)]
pub(crate) struct CompiledSite {
    /// The instruction in the interpreter's code.
    pub(crate) at: u32,
    /// Offset in bytes of the machine code with which an arrived group leaves if other groups have not arrived.
    pub(crate) part: usize,
    /// Offset in bytes of the machine code after the instruction.
    pub(crate) resume: usize,
}

/// A place at which some lanes of a group can wait for others.
#[derive(Debug)]
pub(crate) struct CompiledWait {
    /// The instruction in the interpreter's code.
    pub(crate) at: u32,
    /// As [`CompiledEntry::scalars`].
    pub(crate) scalars: Vec<(Slot, u8, i64)>,
}

/// Limit on the basic blocks that some lanes of a group can run, or at which they can wait.
pub(crate) const MOST_WAITS: usize = 256;

/// Limit on the loops whose rounds a kernel's code counts.
pub(crate) const MOST_LOOPS: usize = 8;

/// The count of a loop for lanes that wait at its head before their first round.
pub(crate) const NOT_BEGUN: i64 = i64::MIN;

/// A loop of a kernel, as instructions in the interpreter's code.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledLoop {
    /// The instruction at which each round begins.
    pub(crate) head: u32,
    /// The instructions of the loop.
    pub(crate) range: std::ops::Range<u32>,
    /// True if the rounds are counted by [`CompiledContext::quantum`]: each round takes one from it, and the loop's
    /// count in [`CompiledContext::rounds`] is its value before the first round. This needs a loop in which only the
    /// jumps that begin a round go backwards.
    pub(crate) by_quantum: bool,
}

impl CompiledLoop {
    /// Returns the number of finished rounds that a count stands for.
    pub(crate) fn rounds(&self, count: i64, quantum: i64) -> i64 {
        if count == NOT_BEGUN {
            return 0;
        }
        count.wrapping_sub(if self.by_quantum { quantum } else { 0 })
    }

    /// Returns the count that stands for a number of finished rounds.
    pub(crate) fn count(&self, rounds: i64, quantum: i64) -> i64 {
        rounds.wrapping_add(if self.by_quantum { quantum } else { 0 })
    }
}

impl Compiled {
    /// Returns the entry at an instruction.
    pub(crate) fn entry(&self, at: u32) -> Option<&CompiledEntry> {
        let index = self.entries.binary_search_by_key(&at, |entry| entry.at).ok()?;
        Some(&self.entries[index])
    }

    /// Returns the entry at an instruction that the code has reached from another entry. Tries that entry, which a loop
    /// reaches again, and the next one before the others: a binary search takes as long as a short run of the code.
    pub(crate) fn entry_after(&self, before: &CompiledEntry, at: u32) -> Option<&CompiledEntry> {
        let place = (std::ptr::from_ref(before).addr() - self.entries.as_ptr().addr()) / size_of::<CompiledEntry>();
        let near = self.entries.get(place..)?;
        let found = near.iter().take(2).find(|entry| entry.at == at);
        found.or_else(|| self.entry(at))
    }

    /// Returns a site by its number; `None` for 0.
    pub(crate) fn site(&self, number: u64) -> Option<&CompiledSite> {
        self.sites.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }
}

/// Declares types of functions with the calling convention of the machine code, which is the same on all systems.
macro_rules! function_types {
    ($($(#[$doc:meta])* $name:ident = ($($argument:ty),*) -> $result:ty;)*) => {$(
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        pub(crate) type $name = unsafe extern "sysv64" fn($($argument),*) -> $result;
        $(#[$doc])*
        #[cfg(not(target_arch = "x86_64"))]
        pub(crate) type $name = unsafe extern "C" fn($($argument),*) -> $result;
    )*};
}

function_types! {
    /// The function at the beginning of the code. It runs groups from the given address on. The lower half of the
    /// result is the instruction that the last group reached, and the upper half is an [`Exit`].
    Function = (*mut CompiledContext, *const u8) -> u64;
    /// Runs a range of the interpreter's instructions, given by its first instruction and its end, for
    /// [the lanes that run](CompiledContext::running). Returns 0, 1 if an instruction raised a fault, or [`MISSING`].
    /// For a memory instruction, the other arguments are the address of one of these lanes, and the number of the
    /// instruction's window or `u32::MAX`.
    Interpret = (*mut CompiledContext, u32, u32, u64, u32) -> u32;
}

/// The reason why compiled code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Exit {
    /// The interpreter must run the instruction reached.
    Leave = 0,
    /// The instruction reached is a plain barrier of the block.
    Barrier = 1,
    /// The instruction reached is the end of the kernel.
    End = 2,
    /// An instruction raised a fault: [`CompiledContext::fault_at`].
    Fault = 3,
    /// The last group has arrived at a site, but other groups have not, lanes are missing, or lanes take different
    /// sides of a branch there. The site's number is returned instead of an instruction.
    Part = 4,
    /// All groups have arrived at a site, whose instruction the scheduler must run.
    Action = 5,
    /// Lanes of the group are at different places: the running ones at the instruction reached, the others where they
    /// wait. See [`CompiledContext::active`].
    Parted = 6,
}

/// The result of [`Interpret`] if lanes are missing at an instruction that runs for the whole warp.
pub(crate) const MISSING: u32 = 2;

/// The largest number of groups in a warp.
pub(crate) const MOST_GROUPS: usize = 4;

/// One address or distance per lane of a group.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneAddresses([u64; 32]);

impl LaneAddresses {
    /// Returns addresses that are `step` apart.
    pub(crate) fn spaced(step: u64) -> Self {
        LaneAddresses(std::array::from_fn(|lane| lane as u64 * step))
    }
}

/// Limit on the constants that compiled code reads from its context.
pub(crate) const MOST_UNIFORMS: usize = 32;

/// The state that compiled code reads and writes. The code names the fields by their offsets.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CompiledContext {
    /// The addresses of the lanes of an access.
    pub(crate) addresses: LaneAddresses,
    /// The frame's registers.
    pub(crate) frame: *mut u8,
    /// The address of the group's first lane in the registers of 16 bits. Code for groups of 32 lanes does not use it.
    pub(crate) halves: *mut u8,
    /// Number of the group in the warp.
    pub(crate) group: u64,
    /// [`Compiled::pool`].
    pub(crate) pool: *const [u32; 8],
    /// The windows of the memory instructions.
    pub(crate) windows: *const c_void,
    /// The block's shared memory.
    pub(crate) shared: *mut u8,
    /// The length of the shared memory in bytes.
    pub(crate) shared_length: u64,
    /// The local memory of the group's first lane.
    pub(crate) local: *mut u8,
    /// The bytes of local memory that each lane may access.
    pub(crate) local_length: u64,
    /// The distance of each lane's local memory from that of the first lane.
    pub(crate) local_lanes: LaneAddresses,
    /// Values of [`Compiled::uniforms`].
    pub(crate) uniforms: [u64; MOST_UNIFORMS],
    /// Copies of the general registers that hold host addresses, by number of the register.
    pub(crate) hosts: [u64; 16],
    /// Number of groups of the running warp that this call still has to run, including the running one. Groups of 32
    /// lanes do not count it.
    pub(crate) in_warp: u64,
    /// The place of the running warp's frame among the frames of this call. In code for groups of 32 lanes, a machine
    /// register has it, which is written here when the code ends or calls [`Interpret`].
    pub(crate) frames: *const *mut u8,
    /// The end of the frames of this call: [`frames`](Self::frames) when all groups have ended.
    pub(crate) frames_end: *const *mut u8,
    /// The place of the first warp's frame among the frames of this call.
    pub(crate) first_frame: *const *mut u8,
    /// Number of warps of this call.
    pub(crate) warps: u64,
    /// The code passes a barrier by itself as long as its warps have run fewer instructions than this in the call. It
    /// passes none if this is 0. Only code for groups of 32 lanes passes barriers.
    pub(crate) limit: u64,
    /// Instructions that the warps have run from the beginning of the call to the last barrier that the code has passed
    /// by itself, including such barriers.
    pub(crate) passed: u64,
    /// Number of barriers that the code has passed by itself in this call.
    pub(crate) barriers: u64,
    /// The last of these barriers, in the form that the code returns.
    pub(crate) passed_at: u64,
    /// The code after the barrier at which the first group has ended; null if the code does not pass it by itself, and
    /// without a meaning if the group has not ended at a barrier.
    pub(crate) behind: *const u8,
    /// The address from which this call runs each group, since the last barrier that the code has passed by itself.
    pub(crate) entry: *const u8,
    /// The end of the first group, in the form that the code returns; 0 if the first group has not ended. The code
    /// continues with the next group only if a group ends there.
    pub(crate) expected: u64,
    /// The quantum with which each group begins.
    pub(crate) share: i64,
    /// Instructions that the groups before this one have run in this call.
    pub(crate) total: u64,
    /// The number of backward jumps that the group may still take.
    pub(crate) quantum: i64,
    /// Instructions that the group has run. While code for groups of 32 lanes runs, also those of the groups before it.
    pub(crate) steps: u64,
    /// The function for instructions that are not compiled.
    pub(crate) interpret: Interpret,
    /// The instruction that raised a fault.
    pub(crate) fault_at: u32,
    /// The lanes of the group, as lanes of the warp.
    pub(crate) mask: u32,
    /// The code with which each group continues: after the last site at which all groups have met, or the entry if
    /// there was none.
    pub(crate) resume: *const u8,
    /// The number of the site at which each group has arrived; 0 if it has not.
    pub(crate) arrived: [u64; MOST_GROUPS],
    /// [`steps`](Self::steps) of each group that is not running.
    pub(crate) group_steps: [u64; MOST_GROUPS],
    /// [`quantum`](Self::quantum) of each group that is not running.
    pub(crate) group_quanta: [i64; MOST_GROUPS],
    /// Bytes of local memory of all lanes of a group.
    pub(crate) group_local: u64,
    /// State of the warp's scheduler, for `interpret` alone.
    pub(crate) scheduler: *mut c_void,
    /// The step that raised a fault: its first instruction, and its end.
    pub(crate) faulty: [u32; 2],
    /// The lanes of the group that run, from bit 0 on: all bits if all of them do, none while all lanes wait.
    pub(crate) active: u32,
    /// Receives the stores of lanes that do not run. Nothing reads it.
    pub(crate) unread: [u64; 2],
    /// The lanes of the group that wait, by number of the place in [`Compiled::waits`].
    pub(crate) waiting: [u32; MOST_WAITS],
    /// The counts of each group's loops. Entries beyond the kernel's loops are not initialised.
    pub(crate) rounds: [[MaybeUninit<i64>; MOST_LOOPS]; MOST_GROUPS],
}

impl CompiledContext {
    /// Begins with the first of `count` warps, whose frames are at `first`. See [`limit`](Self::limit).
    pub(crate) fn begin_frames(&mut self, first: *const *mut u8, count: usize, limit: u64) {
        (self.frames, self.frames_end) = (first, first.wrapping_add(count));
        (self.first_frame, self.warps) = (first, count as u64);
        (self.limit, self.passed, self.barriers) = (limit, 0, 0);
    }

    /// Returns the number of warps of this call before the running one. `first` is as for
    /// [`begin_frames`](Self::begin_frames).
    pub(crate) fn warp(&self, first: *const *mut u8) -> usize {
        self.frames.addr().wrapping_sub(first.addr()) / size_of::<*mut u8>()
    }

    /// Returns true if all groups of this call have ended at the same place.
    pub(crate) fn is_over(&self) -> bool {
        self.frames == self.frames_end
    }

    /// Returns the lanes of the group that run, as lanes of the warp. `lanes` is the number of lanes in a group.
    pub(crate) fn running(&self, lanes: u32) -> u32 {
        match self.active {
            u32::MAX => self.mask,
            active => self.mask & active << (self.group as u32 * lanes),
        }
    }
}

/// The part of an allocation that a memory instruction accessed last.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'m> {
    /// The first address.
    pub(crate) base: u64,
    /// The bytes that may be accessed now.
    pub(crate) length: &'m AtomicU64,
    /// Host address minus device address, wrapping.
    pub(crate) to_host: u64,
}

impl Default for Window<'_> {
    /// Returns a window without any bytes.
    fn default() -> Self {
        static NOTHING: AtomicU64 = AtomicU64::new(0);
        Window {
            base: 0,
            length: &NOTHING,
            to_host: 0,
        }
    }
}
