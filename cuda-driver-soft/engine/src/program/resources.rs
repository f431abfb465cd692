//! The resources of a kernel, as a compiler's verbose log lists them.

use super::kernel::Kernel;
use crate::code::function::BARRIERS;
use ptx::ir::{Body, FuncId, Op, Operand};

/// Frames are a multiple of this many bytes.
const FRAME_ALIGN: u64 = 8;
/// Size of a register in bytes.
const REGISTER_BYTES: u64 = 4;

/// The resources of a kernel. Registers are an estimate, and so are the bytes of registers that a compiler would keep
/// in local memory because of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of registers that do not fit into the limit.
    pub spilled_bytes: u64,
    /// Number of the block's barriers that the kernel uses, counted from barrier 0 to the highest.
    pub barriers: u32,
    /// Bytes of the kernel's own frame, including the registers that do not fit.
    pub frame_bytes: u64,
    /// Bytes of the kernel's frame and of the largest frame of the functions that it may call, as if none of them
    /// called another.
    pub stack_bytes: u64,
    /// Bytes of static shared memory.
    pub shared_bytes: u32,
    /// Names of the functions that the kernel may call, and the bytes of their frames.
    pub functions: Vec<(String, u64)>,
}

impl Resources {
    /// Returns the resources of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let module = &kernel.loaded().module;
        let function = |id: &FuncId| module.functions.get(id.0 as usize);
        let frame = |body: &Body| u64::from(body.local_bytes).next_multiple_of(FRAME_ALIGN);
        let own = |id: &FuncId| function(id).and_then(|f| f.body()).map_or(0, frame);
        let reachable = kernel.reachable();
        let needed = kernel.loaded().registers(reachable);
        let registers = kernel.num_regs();
        let spilled_bytes = u64::from(needed.saturating_sub(registers)) * REGISTER_BYTES;
        let bodies = reachable.iter().filter_map(function).filter_map(|f| f.body());
        let barriers = bodies.map(barriers).max().unwrap_or(0);
        let called = reachable.iter().skip(1);
        let frame_bytes = reachable.first().map_or(0, own) + spilled_bytes.next_multiple_of(FRAME_ALIGN);
        Resources {
            registers,
            spilled_bytes,
            barriers,
            frame_bytes,
            stack_bytes: frame_bytes + called.clone().map(own).max().unwrap_or(0),
            shared_bytes: kernel.shared_bytes(),
            functions: called
                .filter_map(|id| Some((function(id)?.name.clone(), own(id))))
                .collect(),
        }
    }
}

/// Returns the number of barriers that a function uses, from barrier 0 to the highest: all of them if the number of one
/// is in a register.
fn barriers(body: &Body) -> u32 {
    let of = |inst: &ptx::ir::Inst| match (&inst.op, inst.srcs.first()) {
        (Op::Bar { .. }, Some(Operand::Imm(number))) => (*number as u32).saturating_add(1).min(BARRIERS),
        (Op::Bar { .. }, _) => BARRIERS,
        _ => 0,
    };
    body.insts.iter().map(of).max().unwrap_or(0)
}
