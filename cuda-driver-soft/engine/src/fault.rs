//! Faults: errors raised by a kernel.

#![forbid(unsafe_code)]

use crate::lanes::{self, LANES, number_of, thread_of};
use crate::memory::{Allocation, address_space};
use ptx::ir::{Function, Space};
use std::fmt;

/// The error that ended an execution early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error.
    pub kind: FaultKind,
    /// Name of the launched kernel.
    pub kernel: String,
    /// Line in the PTX source, from 1; 0 if no instruction caused the fault.
    pub line: u32,
    /// Coordinates of the block.
    pub block: [u32; 3],
    /// Number of threads of the block along each axis.
    pub block_size: [u32; 3],
    /// Coordinates of the thread in its block; if several threads raised the fault, of the first one.
    pub thread: [u32; 3],
    /// The state of the thread and its warp; empty if no instruction caused the fault.
    pub report: Report,
}

/// The state of a thread and of its warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The thread's position in each function that it is in, the innermost first.
    pub calls: Vec<Position>,
    /// The positions of the other lanes of the warp.
    pub others: Vec<LaneGroup>,
    /// The lanes of the warp that have exited, as a mask.
    pub exited: u32,
    /// The thread's registers with their values, if the launch reports them: see
    /// [`Options::reports_registers`](crate::Options::reports_registers).
    pub registers: Vec<(String, u64)>,
}

/// A position of threads in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Name of the function in PTX.
    pub function: String,
    /// Line in the PTX source, from 1.
    pub line: u32,
    /// The place in the CUDA source, if the PTX has line information.
    pub source: Option<SourceLine>,
}

/// A line of the CUDA source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// File and line of the call that the compiler has replaced by the function's code.
    pub inlined_at: Option<(String, u32)>,
}

/// Lanes of a warp at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneGroup {
    /// The lanes, as a mask.
    pub lanes: u32,
    /// The state of the lanes.
    pub state: LaneState,
    /// The position of the lanes: the next instruction, or the one at which they wait.
    pub position: Position,
}

/// The state of lanes that have not exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// The lanes can run.
    Running,
    /// The lanes wait at a barrier.
    AtBarrier,
    /// The lanes wait for other lanes of the warp.
    AtCollective,
}

impl Position {
    /// Returns the position of a PTX line of a function; the name is `?` if the function is not known.
    pub(crate) fn of(function: Option<&Function>, line: u32) -> Position {
        Position {
            function: function.map_or("?".into(), |function| function.name.clone()),
            line,
            source: function.and_then(|function| SourceLine::of(function, line)),
        }
    }
}

impl SourceLine {
    /// Returns the place in the source of a PTX line of a function.
    fn of(function: &Function, line: u32) -> Option<SourceLine> {
        let found = function.location(line)?;
        let file = |number| function.source.file(number).unwrap_or("?").to_owned();
        Some(SourceLine {
            file: file(found.place.file),
            line: found.place.line,
            inlined_at: found.inlined_at.map(|at| (file(at.file), at.line)),
        })
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.inlined_at {
            Some((file, line)) => write!(f, ", inlined at {file}:{line}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} ({source}, PTX line {})", self.function, self.line),
            None => write!(f, "{} (PTX line {})", self.function, self.line),
        }
    }
}

impl Report {
    /// Returns the report as lines of text: the calls of the thread, the other lanes of its warp, and its registers.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let [innermost, outer @ ..] = self.calls.as_slice() {
            lines.push(format!("the thread is in {innermost}"));
            lines.extend(outer.iter().map(|call| format!("called from {call}")));
        }
        for LaneGroup { lanes, state, position } in &self.others {
            let state = match (state, lanes.is_power_of_two()) {
                (LaneState::Running, true) => "is at",
                (LaneState::Running, false) => "are at",
                (LaneState::AtBarrier, true) => "waits at a barrier in",
                (LaneState::AtBarrier, false) => "wait at a barrier in",
                (LaneState::AtCollective, true) => "waits for other lanes in",
                (LaneState::AtCollective, false) => "wait for other lanes in",
            };
            lines.push(format!("{} {state} {position}", LaneNumbers(*lanes)));
        }
        if self.exited != 0 {
            let verb = if self.exited.is_power_of_two() { "has" } else { "have" };
            lines.push(format!("{} {verb} exited", LaneNumbers(self.exited)));
        }
        for registers in self.registers.chunks(6) {
            let values = registers.iter().map(|(name, value)| format!("{name} = {value:#x}"));
            lines.push(values.collect::<Vec<_>>().join(", "));
        }
        lines
    }
}

/// Displays a mask as `lanes 0-3, 7`, or as `lane 7`.
struct LaneNumbers(u32);

impl fmt::Display for LaneNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_power_of_two() { "lane" } else { "lanes" })?;
        let (mut mask, mut separator) = (self.0, " ");
        while mask != 0 {
            let first = mask.trailing_zeros();
            let count = (mask >> first).trailing_ones();
            match count {
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{}", first + count - 1)?,
            }
            mask &= u32::MAX.checked_shl(first + count).unwrap_or(0);
            separator = ", ";
        }
        Ok(())
    }
}

/// The kinds of errors that a kernel can raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address outside all allocations, or outside the launch's parameters, or an access that the memory does not
    /// permit.
    IllegalAddress {
        /// The address in its state space.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// True for a store or atomic operation, false for a load.
        write: bool,
        /// The state space of the address.
        space: Space,
    },
    /// An address outside the local memory of the thread's running function.
    LocalOutOfRange {
        /// The address in local memory.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// True for a store or atomic operation, false for a load.
        write: bool,
        /// Bytes of local memory that the thread has.
        available: u64,
    },
    /// An address outside the block's shared memory.
    SharedOutOfRange {
        /// Offset into the block's shared memory.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// True for a store or atomic operation, false for a load.
        write: bool,
        /// Bytes of shared memory that the block has.
        available: u32,
    },
    /// An address that is not a multiple of the size of the access.
    Misaligned {
        /// The address in its state space.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// True for a store or atomic operation, false for a load.
        write: bool,
        /// The state space of the address.
        space: Space,
    },
    /// A bulk copy whose size is not a multiple of 16 bytes.
    BulkCopySize {
        /// The size in bytes.
        bytes: u32,
    },
    /// A generic address, outside of shared memory, of an `mbarrier` object.
    BarrierNotShared {
        /// The generic address.
        address: u64,
    },
    /// An access to a texel of an array with deferred mapping, where no memory is mapped.
    NoTexelMemory {
        /// The offset in bytes in the array.
        offset: u64,
        /// True for a store or atomic operation, false for a load.
        write: bool,
    },
    /// An address in shared memory of a block that is not in the cluster.
    NoBlock {
        /// The address; bits 24 to 31 are the rank of the block.
        address: u64,
    },
    /// An instruction for clusters, in a launch without clusters.
    NoCluster,
    /// A tensor copy whose operands are invalid.
    TensorCopy {
        /// The reason.
        problem: &'static str,
    },
    /// `trap`
    Trap,
    /// `free` of memory that was freed before.
    FreedTwice {
        /// The address.
        address: u64,
    },
    /// `__assertfail`
    Assert {
        /// The source file.
        file: String,
        /// The line in the source file.
        line: u32,
        /// The function.
        function: String,
        /// The text of the condition that failed.
        message: String,
        /// The lanes of the warp that it failed for at once, as a mask.
        lanes: u32,
    },
    /// An indirect call to an address that is not a function's.
    InvalidPc {
        /// The address.
        address: u64,
    },
    /// A `brx.idx` whose index is not below the number of its labels.
    InvalidBranchIndex {
        /// The index.
        index: u64,
        /// The number of labels.
        labels: usize,
    },
    /// More nested calls or local memory than a thread may have.
    StackOverflow {
        /// Bytes of local memory that the thread would need.
        bytes: u64,
    },
    /// Threads of a warp that wait at different instructions, or a member mask without a lane that runs the
    /// instruction. A GPU would wait for ever.
    BarrierMisuse {
        /// The lanes that wait, and at which lines; or the wrong mask.
        report: String,
    },
    /// A wrong number or thread count of a barrier, or threads that give different ones.
    BarrierConflict {
        /// The wrong number or count; or the lanes that wait, and at which lines.
        report: String,
    },
    /// All threads that have not exited wait for one another.
    Deadlock {
        /// The lanes or warps that wait, and at which lines.
        report: String,
    },
    /// The launch used up its instruction budget.
    Budget {
        /// The budget in warp instructions.
        instructions: u64,
    },
    /// An instruction that the software driver does not support.
    Unsupported {
        /// The instruction in PTX, with its modifiers.
        opcode: String,
    },
    /// The host has no memory for the state of a block, or the running kernels have reached their common limit: half of
    /// the host's memory.
    OutOfMemory,
}

/// The end of the window of shared memory of a GPU, as an offset into a block's shared memory.
const SHARED_WINDOW: u64 = (1 << 24) - 1024;

impl FaultKind {
    /// Adds the lanes of another failed assertion if it is the same one.
    pub(crate) fn add_lanes(&mut self, other: &FaultKind) {
        let FaultKind::Assert { lanes: more, .. } = other else {
            return;
        };
        let FaultKind::Assert { lanes, .. } = self else {
            return;
        };
        let own = std::mem::replace(lanes, *more);
        let is_same = self == other;
        if let FaultKind::Assert { lanes, .. } = self {
            *lanes = own | if is_same { *more } else { 0 };
        }
    }
}

impl Fault {
    /// Returns the lines that a failed assertion writes to stderr, one for each thread of the warp that it failed for;
    /// `None` for other faults.
    pub fn assertion(&self) -> Option<String> {
        let FaultKind::Assert {
            file,
            line,
            function,
            message,
            lanes,
        } = &self.kind
        else {
            return None;
        };
        let [bx, by, bz] = self.block;
        let number = number_of(self.block_size, self.thread);
        let first = number - number % LANES as u32;
        let line_of = |lane: usize| {
            let [tx, ty, tz] = thread_of(self.block_size, first + lane as u32);
            format!(
                "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` \
                 failed."
            )
        };
        let lines: Vec<String> = lanes::iter(*lanes).map(line_of).collect();
        Some(lines.join("\n"))
    }

    /// Returns the number of the sticky `CUresult` of this fault.
    pub fn code(&self) -> u32 {
        match self.kind {
            // CUDA_ERROR_ILLEGAL_ADDRESS
            FaultKind::IllegalAddress { .. }
            | FaultKind::LocalOutOfRange { .. }
            | FaultKind::StackOverflow { .. }
            | FaultKind::NoTexelMemory { .. } => 700,
            // On an H200, an access past the block's shared memory but inside the window faults like any other illegal
            // address. The window begins with 1 KiB that the system reserves.
            FaultKind::SharedOutOfRange { address, size, .. } if size <= 16 && address < SHARED_WINDOW => 700,
            // CUDA_ERROR_ILLEGAL_INSTRUCTION
            FaultKind::SharedOutOfRange { .. }
            | FaultKind::BarrierNotShared { .. }
            | FaultKind::BarrierConflict { .. }
            | FaultKind::NoCluster
            | FaultKind::TensorCopy { .. } => 715,
            // CUDA_ERROR_MISALIGNED_ADDRESS
            FaultKind::Misaligned { .. } | FaultKind::BulkCopySize { .. } => 716,
            // CUDA_ERROR_INVALID_PC
            FaultKind::InvalidPc { .. } | FaultKind::InvalidBranchIndex { .. } => 718,
            // CUDA_ERROR_LAUNCH_FAILED
            FaultKind::Trap | FaultKind::FreedTwice { .. } | FaultKind::NoBlock { .. } => 719,
            // CUDA_ERROR_ASSERT
            FaultKind::Assert { .. } => 710,
            // CUDA_ERROR_LAUNCH_TIMEOUT
            FaultKind::BarrierMisuse { .. } | FaultKind::Deadlock { .. } | FaultKind::Budget { .. } => 702,
            // CUDA_ERROR_NOT_SUPPORTED
            FaultKind::Unsupported { .. } => 801,
            // CUDA_ERROR_OUT_OF_MEMORY
            FaultKind::OutOfMemory => 2,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kernel, self.kind)?;
        if self.line != 0 {
            let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
            let source = self.report.calls.first().and_then(|call| call.source.as_ref());
            f.write_str(" (")?;
            if let Some(source) = source {
                write!(f, "{source}, ")?;
            }
            write!(
                f,
                "PTX line {}, block [{bx},{by},{bz}], thread [{tx},{ty},{tz}])",
                self.line
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |write: &bool| if *write { "write" } else { "read" };
        match self {
            FaultKind::IllegalAddress {
                address,
                size,
                write,
                space,
            } => {
                write!(
                    f,
                    "illegal {} of {size} bytes at {address:#x} in {} memory",
                    verb(write),
                    name(*space)
                )?;
                match *space {
                    Space::Global | Space::Generic | Space::Const => {
                        write!(f, ", {}", Nearest(*address))
                    }
                    _ => Ok(()),
                }
            }
            FaultKind::SharedOutOfRange {
                address,
                size,
                write,
                available,
            } => write!(
                f,
                "{} of {size} bytes at {address:#x} of shared memory, but the block has only {available} bytes{}",
                verb(write),
                slack_hint(*address, (*available).into(), *size)
            ),
            FaultKind::LocalOutOfRange {
                address,
                size,
                write,
                available,
            } => write!(
                f,
                "illegal {} of {size} bytes at {address:#x} in local memory, but the thread has only {available} \
                 bytes{}",
                verb(write),
                slack_hint(*address, *available, *size)
            ),
            FaultKind::Misaligned {
                address,
                size,
                write,
                space,
            } => write!(
                f,
                "misaligned {} of {size} bytes at {address:#x} in {} memory",
                verb(write),
                name(*space)
            ),
            FaultKind::BulkCopySize { bytes } => {
                write!(f, "bulk copy of {bytes} bytes, which is not a multiple of 16 bytes")
            }
            FaultKind::BarrierNotShared { address } => {
                write!(
                    f,
                    "mbarrier at generic address {address:#x}, which is not in shared memory"
                )
            }
            FaultKind::NoTexelMemory { offset, write } => write!(
                f,
                "{} of the texel at byte {offset} of an array, where no memory is mapped",
                verb(write)
            ),
            FaultKind::NoBlock { address } => write!(
                f,
                "access at {address:#x} to shared memory of block {}, which is not in the cluster",
                address >> 24
            ),
            FaultKind::NoCluster => f.write_str("an instruction for clusters, in a launch without clusters"),
            FaultKind::TensorCopy { problem } => write!(f, "invalid tensor copy: {problem}"),
            FaultKind::Trap => f.write_str("trap"),
            FaultKind::Assert {
                file,
                line,
                function,
                message,
                ..
            } => {
                write!(f, "{file}:{line}: {function}: Assertion `{message}` failed")
            }
            FaultKind::InvalidPc { address } => {
                write!(f, "call of {address:#x}, which is not the address of a function")
            }
            FaultKind::InvalidBranchIndex { index, labels } => {
                write!(f, "brx.idx with index {index}, but its list has {labels} labels")
            }
            FaultKind::FreedTwice { address } => {
                write!(f, "free of {address:#x}, which was freed before")
            }
            FaultKind::StackOverflow { bytes } => {
                write!(
                    f,
                    "stack overflow: a thread needs {bytes} bytes of stack, more than its limit (CU_LIMIT_STACK_SIZE)"
                )
            }
            FaultKind::BarrierMisuse { report } | FaultKind::BarrierConflict { report } => {
                write!(f, "invalid use of a barrier: {report}")
            }
            FaultKind::Deadlock { report } => write!(f, "deadlock: {report}"),
            FaultKind::Budget { instructions } => {
                write!(f, "the launch exceeded its budget of {instructions} warp instructions")
            }
            FaultKind::Unsupported { opcode } => {
                write!(f, "unsupported instruction `{opcode}`")
            }
            FaultKind::OutOfMemory => f.write_str("out of host memory for the state of a block"),
        }
    }
}

fn name(space: Space) -> &'static str {
    match space {
        Space::Generic | Space::Global => "global",
        Space::Shared | Space::SharedCluster => "shared",
        Space::Local => "local",
        Space::Const => "constant",
        Space::Param => "parameter",
    }
}

/// Granularity in bytes of a GPU's memory. An access past the end of an allocation does not fault if it is in the last
/// granule of the allocation.
const GRANULE: u64 = 512;

/// Explains an access past the end of a block's or a thread's memory: the program may run without a fault on a GPU,
/// if the access is in the last granule.
fn slack_hint(address: u64, available: u64, size: u32) -> String {
    let end = address.saturating_add(size.into());
    if end > available && end - available <= GRANULE {
        format!(", where a GPU might not fault (CUDA_SOFT_SLACK={GRANULE} allows such accesses)")
    } else {
        String::new()
    }
}

/// Displays the position of an address relative to the allocation below it.
struct Nearest(u64);

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 4096 {
            return f.write_str("a null pointer");
        }
        match address_space().nearest(self.0) {
            Some(Allocation { base, bytes, .. }) if self.0 - base < bytes => {
                write!(
                    f,
                    "{} bytes before the end of the {bytes} bytes at {base:#x}",
                    base + bytes - self.0
                )
            }
            Some(Allocation { base, bytes, .. }) if self.0 - base - bytes < 1 << 32 => {
                let past = self.0 - base - bytes;
                write!(f, "{past} bytes past the end of the {bytes} bytes at {base:#x}")?;
                if past < GRANULE {
                    // The program may run without a fault on a GPU: explain the difference.
                    write!(
                        f,
                        ", where a GPU might not fault (CUDA_SOFT_SLACK={GRANULE} allows such accesses)"
                    )?;
                }
                Ok(())
            }
            _ => f.write_str("far from any allocation"),
        }
    }
}
