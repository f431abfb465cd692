//! A function as the engine runs it.

pub(crate) mod isa;
pub(crate) mod machine;
pub(crate) mod registers;

use crate::code::isa::Handler;
use crate::code::registers::{PREDICATE_BYTES, Slot, WIDEST_ROW};
use crate::ops::collective::{Collective, Operands};
use crate::ops::matrix::Matrix;
use crate::ops::texture::Texture;
use ptx::ir::{FuncId, RegClass, Special, VarId};
use std::fmt;

/// One decoded instruction. What the fields mean is up to the handler.
#[derive(Clone, Copy)]
pub(crate) struct Inst {
    /// Runs it for all 32 lanes.
    pub(crate) full: Handler,
    /// Runs it for some lanes.
    pub(crate) masked: Handler,
    /// Destination.
    pub(crate) d: Slot,
    /// First source; of memory instructions the address.
    pub(crate) a: Slot,
    /// Second source.
    pub(crate) b: Slot,
    /// Third source.
    pub(crate) c: Slot,
    /// Fourth operand, or second destination.
    pub(crate) e: Slot,
    /// Another destination: a carry.
    pub(crate) f: Slot,
    /// Of a memory instruction its [`AccessCache`](crate::memory::warp::AccessCache), of a branch the target.
    pub(crate) aux: u32,
    /// Modifiers that are not compiled into the handler.
    pub(crate) mods: u32,
    /// Offset of an address, and the like.
    pub(crate) imm: u64,
}

/// What the interpreter does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Flow {
    /// Goes on with the next.
    Next,
    /// Goes on at [`Machine::target`](machine::Machine::target).
    Jump,
    /// The lanes of [`Machine::taken`](machine::Machine::taken) go to the target, the others to the next.
    Diverge,
    /// Skips the next instruction.
    Skip,
    /// Runs the next instruction for the lanes of [`Machine::taken`](machine::Machine::taken) only.
    Narrow,
    /// Everything that the warp's scheduler does: see [`Action`].
    Act,
    /// The same, at the barrier [`Machine::target`](machine::Machine::target) for all threads of the block.
    Barrier,
    /// The same, at the end of a kernel.
    End,
    /// Goes on with the same instruction in the code for any lanes: see [`Converged`].
    Leave,
    /// Ends the execution: [`Machine::fault`](machine::Machine::fault) says why.
    Fault,
}

/// What an instruction asks of the scheduler; [`Inst::aux`] is its index in [`Code::actions`].
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// `ret`, and `exit` in a kernel's own frame.
    Return,
    /// `exit`
    Exit,
    /// `brx.idx`: by the value of a register.
    Branch {
        /// The index, one per lane.
        index: Slot,
        /// Where to go.
        targets: Vec<u32>,
    },
    /// `call`
    Call(Box<Call>),
    /// `bar`, `barrier`
    Barrier(Barrier),
    /// `shfl`, `vote` and the like, where not all lanes that take part are here.
    Collective(Collective, Operands),
    /// `mma` and the like, which all lanes of a warp do together.
    Matrix(Box<Matrix>),
    /// `tex`, `suld` and their kin.
    Texture(Box<Texture>),
    /// `alloca` and its kin.
    Stack(Stack),
}

/// What is done to the threads' stacks. Addresses are in a row of 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stack {
    /// `alloca`
    Alloca {
        /// Where the address goes.
        to: (Slot, u8),
        /// How many bytes, in a row of the same width.
        size: Slot,
        /// A power of two.
        align: u64,
    },
    /// `stacksave`
    Save((Slot, u8)),
    /// `stackrestore`
    Restore((Slot, u8)),
}

impl Action {
    /// A barrier whose number or count is in a register.
    pub(crate) fn has_operands(&self) -> bool {
        let in_register = |value: &Value| matches!(value, Value::In(_));
        matches!(self, Action::Barrier(b) if b.id.iter().chain(&b.count).any(in_register))
    }
}

/// A call site.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Which function.
    pub(crate) callee: Target,
    /// What it is given.
    pub(crate) args: Vec<Place>,
    /// Where its results go.
    pub(crate) rets: Vec<Place>,
}

/// What a call calls.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// This function.
    Function(FuncId),
    /// A function that the runtime provides.
    Builtin(Builtin),
    /// The function whose address is in a register of 64 bits.
    Indirect(Slot),
}

/// Functions that are declared in PTX and provided by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// `vprintf`
    Vprintf,
    /// `__assertfail`
    Assertfail,
    /// `malloc`
    Malloc,
    /// `free`
    Free,
}

/// Where a value that is passed is in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A predicate.
    Mask(Slot),
    /// A row of registers of this many bytes each: 2, 4, 8, or 16 (two rows).
    Row(Slot, u32),
    /// Bytes of the frame's local memory.
    Frame {
        /// Offset from the frame's start.
        offset: u32,
        /// Bytes.
        size: u32,
    },
}

/// A block barrier instruction.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// What it does.
    pub(crate) op: ptx::ir::BarOp,
    /// The instruction wants all lanes of a warp at the same place.
    pub(crate) aligned: bool,
    /// Its number among those of the block; that of the cluster has none, so that no program can name it.
    pub(crate) id: Option<Value>,
    /// How many threads take part; all of the block if there is none.
    pub(crate) count: Option<Value>,
    /// Of `.red`, the predicate that goes in, and whether it is negated.
    pub(crate) predicate: Option<(Slot, bool)>,
    /// Where the result goes: a predicate, or a row of 32 bits.
    pub(crate) result: Option<Slot>,
}

impl Barrier {
    /// Its number, if it is known and nothing but waiting for all threads is done there.
    #[inline]
    pub(crate) fn plain(&self) -> Option<u32> {
        match (self.op, self.id, &self.count, &self.predicate) {
            (ptx::ir::BarOp::Sync, Some(Value::Is(id)), None, None) => Some(id),
            _ => None,
        }
    }
}

/// A 32-bit operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// Known.
    Is(u32),
    /// In a register.
    In(Slot),
}

/// What a slot that no instruction writes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// These bits.
    Bits(u64),
    /// A special register that does not change while a block runs.
    Special(Special),
    /// A value of the launch's parameters: offset, bytes, and whether it is extended by its sign.
    Param(u32, u8, bool),
    /// Address of a variable in its own space, plus an offset.
    Variable(VarId, i64),
    /// Address of a part of the frame in local space.
    Frame(i64),
}

impl Constant {
    /// When the slot has to be filled.
    pub(crate) fn lifetime(&self) -> Lifetime {
        match self {
            Constant::Special(Special::Tid(_) | Special::Warpid) => Lifetime::Warp,
            Constant::Special(Special::Ctaid(_) | Special::Smid | Special::Clusterid(_)) => {
                Lifetime::Block
            }
            Constant::Special(Special::ClusterCtaid(_) | Special::ClusterCtarank) => {
                Lifetime::Block
            }
            Constant::Frame(_) => Lifetime::Frame,
            _ => Lifetime::Launch,
        }
    }
}

/// How long a constant keeps its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifetime {
    /// The same for all threads of a launch (or the same row for each warp).
    Launch,
    /// The same for one warp in all blocks.
    Warp,
    /// The same for a block.
    Block,
    /// The same for an invocation.
    Frame,
}

/// A decoded function.
pub(crate) struct Code {
    /// The function.
    pub(crate) id: FuncId,
    /// Instructions, blocks in the order in which the scheduler prefers them.
    pub(crate) insts: Vec<Inst>,
    /// For each instruction its line in the PTX source.
    pub(crate) lines: Vec<u32>,
    /// What instructions ask of the scheduler.
    pub(crate) actions: Vec<Action>,
    /// Memory instructions that remember what they accessed.
    pub(crate) caches: u32,
    /// Bytes of a frame's registers.
    pub(crate) frame_bytes: u32,
    /// Slots to fill: where, how wide in bytes (0 for a predicate), with what; by lifetime.
    pub(crate) constants: Vec<(Slot, u8, Constant)>,
    /// Those of them that are to be filled for each block.
    pub(crate) block_constants: Vec<(Slot, u8, Constant)>,
    /// Part of the registers that must be zero when a frame begins: start and bytes.
    pub(crate) cleared: (u32, u32),
    /// Where formal parameters arrive.
    pub(crate) params: Vec<Place>,
    /// Where results are at the end.
    pub(crate) returns: Vec<Place>,
    /// Bytes of local memory of an invocation.
    pub(crate) local_bytes: u32,
    /// Alignment of those, a power of two.
    pub(crate) local_align: u32,
    /// The same once more for warps whose lanes go the same way.
    pub(crate) converged: Option<Converged>,
}

/// Code for a warp all of whose lanes run, as long as they go the same way: in [`Code::insts`], behind the code for any
/// lanes. What is the same in all lanes, or affine, is computed once for the warp. Where the lanes part, or something is
/// not as expected, the warp goes on at the same instruction of the code for any lanes.
pub(crate) struct Converged {
    /// Where a warp begins that has new registers: what comes before `entry` is the same for all its blocks.
    pub(crate) first: u32,
    /// Where it begins.
    pub(crate) entry: u32,
    /// It takes `%tid.x` to have the step 1 in each warp, and `%tid.y` and `%tid.z` to be the same in all lanes.
    pub(crate) needs_rows: bool,
    /// Affine constants, by lifetime: where, of which registers, what.
    pub(crate) constants: Vec<(Slot, RegClass, Constant)>,
    /// How many of them live longer than a block.
    pub(crate) kept_constants: usize,
    /// Some instruction reads a row of what is to be filled for each block; else that can wait until a warp leaves.
    pub(crate) reads_block_constants: bool,
    /// Instructions that may leave, in order.
    pub(crate) leaves: Vec<Leave>,
    /// Where a warp may come back, in order of [`Resume::at`].
    pub(crate) resumes: Vec<Resume>,
    /// What [`Leave::spread`] and [`Resume::gathered`] are about: the row, the bytes of its values, and where they are kept.
    pub(crate) kept: Vec<(Slot, u8, Slot)>,
}

/// An instruction at which a warp may leave the code for converged warps.
pub(crate) struct Leave {
    /// The instruction.
    pub(crate) at: u32,
    /// The same in the code for any lanes.
    pub(crate) to: u32,
    /// Registers that are read there, and are not written out as rows: a part of [`Converged::kept`].
    pub(crate) spread: std::ops::Range<usize>,
}

/// Where a warp that has left the code for converged warps may come back, if all lanes are there.
pub(crate) struct Resume {
    /// The instruction in the code for any lanes.
    pub(crate) at: u32,
    /// The same in the code for converged warps.
    pub(crate) to: u32,
    /// Registers that are read from there on and must be affine: a part of [`Converged::kept`].
    pub(crate) gathered: std::ops::Range<usize>,
}

impl Converged {
    /// What has to be done to leave at an instruction.
    pub(crate) fn leave(&self, at: u32) -> Option<&Leave> {
        let index = self.leaves.binary_search_by_key(&at, |leave| leave.at);
        index.ok().map(|index| &self.leaves[index])
    }

    /// What has to be done to come back at an instruction.
    pub(crate) fn resume(&self, at: u32) -> Option<&Resume> {
        let index = self.resumes.binary_search_by_key(&at, |resume| resume.at);
        index.ok().map(|index| &self.resumes[index])
    }
}

impl Inst {
    /// The slots that it may read or write.
    pub(crate) fn slots(&self) -> [Slot; 6] {
        [self.d, self.a, self.b, self.c, self.e, self.f]
    }
}

impl Code {
    /// Checks what the unsafe code of handlers relies on: every slot, read as the widest row, is inside the frame.
    pub(crate) fn check(self) -> Self {
        for inst in &self.insts {
            for slot in inst.slots() {
                let end = u64::from(slot.0) + u64::from(WIDEST_ROW);
                let inside =
                    slot.0.is_multiple_of(PREDICATE_BYTES) && end <= u64::from(self.frame_bytes);
                assert!(inside, "a slot outside the frame");
            }
        }
        self
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
