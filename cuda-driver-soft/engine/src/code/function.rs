//! A decoded function: its instructions, constants and frame layout.

#![forbid(unsafe_code)]

use super::action::{Action, ValueLocation};
use super::compiled::CompiledSlots;
use super::constant::Constant;
use super::inst::Inst;
use super::registers::{PREDICATE_BYTES, Slot, WIDEST_ROW, lane_bytes};
use super::site::Site;
use ptx::ir::{Body, FuncId, Reg};
use std::fmt;

/// Number of barriers of a block.
pub(crate) const BARRIERS: u32 = 16;

/// A decoded function.
pub(crate) struct Code {
    /// The function in its module.
    pub(crate) id: FuncId,
    /// Instructions. Basic blocks are in the order that the scheduler prefers.
    pub(crate) insts: Vec<Inst>,
    /// Line in the PTX source, by instruction.
    pub(crate) lines: Vec<u32>,
    /// Instructions that the scheduler runs.
    pub(crate) actions: Vec<Action>,
    /// Number of memory instructions that have an access cache.
    pub(crate) caches: u32,
    /// Bytes of a frame's registers.
    pub(crate) frame_bytes: u32,
    /// Constant slots, sorted by lifetime: slot, bytes per lane (0 for a predicate), value.
    pub(crate) constants: Vec<(Slot, u8, Constant)>,
    /// The constants that must be filled again for each block.
    pub(crate) block_constants: Vec<(Slot, u8, Constant)>,
    /// Part of the registers that must be zero when a frame begins: start and length in bytes.
    pub(crate) cleared: (u32, u32),
    /// Slots of the registers, by the register's number in the IR.
    pub(crate) registers: Vec<Slot>,
    /// Locations of the formal parameters.
    pub(crate) params: Vec<ValueLocation>,
    /// Locations of the results at the end of the function.
    pub(crate) returns: Vec<ValueLocation>,
    /// Bytes of local memory of an invocation.
    pub(crate) local_bytes: u32,
    /// Alignment of the local memory, a power of two.
    pub(crate) local_align: u32,
    /// The origin of each decoded instruction. Empty unless the function was decoded for observation.
    pub(crate) sites: Vec<Site>,
    /// For a kernel, the places of the IR's registers and instructions in this code.
    pub(crate) map: Option<SourceMap>,
    /// The function's machine code.
    pub(crate) compiled: CompiledSlots,
}

/// The places of the IR's registers and instructions in a function's code.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct SourceMap {
    /// By register: its slot.
    pub(crate) slots: Vec<Slot>,
    /// By register: the constant that it is an alias of.
    pub(crate) aliases: Vec<Option<Constant>>,
    /// By step of the function (see `plan::steps`): its first instruction, and the one after its last.
    pub(crate) steps: Vec<(u32, u32)>,
    /// The instruction at the end of the function, if a branch leads there.
    pub(crate) end: u32,
}

impl Code {
    /// Returns the code if it has the invariant of the handlers' unsafe code: every slot, read as the widest row, is
    /// inside the frame. Panics otherwise.
    pub(crate) fn check(self) -> Self {
        for inst in &self.insts {
            for slot in inst.slots() {
                let end = u64::from(slot.0) + u64::from(WIDEST_ROW);
                let inside = slot.0.is_multiple_of(PREDICATE_BYTES) && end <= u64::from(self.frame_bytes);
                assert!(inside, "a slot is misaligned or outside the frame");
            }
        }
        self
    }

    /// Returns the names and values of the registers that instructions on the lines before `line` write. `body` is the
    /// function's, and `value` returns a thread's value in a slot of 0 (a predicate), 2, 4 or 8 bytes per lane.
    pub(crate) fn registers_before(
        &self,
        body: &Body,
        line: u32,
        mut value: impl FnMut(Slot, u8) -> u64,
    ) -> Vec<(String, u64)> {
        let before = body.insts.iter().filter(|inst| inst.line < line);
        let mut set: Vec<Reg> = before.flat_map(|inst| inst.dsts.iter().flatten().copied()).collect();
        set.sort_unstable_by_key(|reg| reg.0);
        set.dedup();
        let shown = set.into_iter().filter_map(|reg| {
            let width = lane_bytes(*body.registers.get(reg.0 as usize)?);
            let slot = *self.registers.get(reg.0 as usize)?;
            Some((body.register_name(reg)?, value(slot, width)))
        });
        shown.collect()
    }

    /// Returns true if an instruction that the scheduler runs is a plain barrier with a valid number.
    pub(crate) fn is_plain_barrier(&self, at: u32) -> bool {
        let inst = self.insts.get(at as usize);
        let action = inst.and_then(|inst| self.actions.get(inst.aux as usize));
        matches!(action, Some(Action::Barrier(barrier)) if barrier.plain().is_some_and(|id| id < BARRIERS))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("id", &self.id)
            .field("insts", &self.insts.len())
            .finish_non_exhaustive()
    }
}
