//! Faults: errors raised by a kernel.

#![forbid(unsafe_code)]

use crate::memory::{Allocation, address_space};
use ptx::ir::Space;
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
    /// Coordinates of the thread in its block; of several threads, the first.
    pub thread: [u32; 3],
}

/// The kinds of errors that a kernel can raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address outside all allocations, or outside the launch's parameters.
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
    },
    /// An indirect call to an address that is not a function's, or an index out of range in `brx.idx`.
    InvalidPc {
        /// The address or index.
        address: u64,
    },
    /// More nested calls or local memory than a thread may have.
    StackOverflow {
        /// Bytes of local memory that the thread would need.
        bytes: u64,
    },
    /// A barrier that threads of a warp reach at different instructions, or with a number or thread count out of range.
    BarrierMisuse {
        /// The lanes or warps that wait, and at which lines.
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
    /// The host ran out of memory for the state of a block.
    OutOfMemory,
}

impl Fault {
    /// Returns the line that a failed assertion writes to stderr.
    pub fn assertion(&self) -> Option<String> {
        let FaultKind::Assert {
            file,
            line,
            function,
            message,
        } = &self.kind
        else {
            return None;
        };
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        Some(format!(
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed."
        ))
    }

    /// Returns the number of the sticky `CUresult` of this fault.
    pub fn code(&self) -> u32 {
        match self.kind {
            FaultKind::IllegalAddress { .. } | FaultKind::LocalOutOfRange { .. } | FaultKind::StackOverflow { .. } => {
                700
            }
            FaultKind::SharedOutOfRange { .. } | FaultKind::NoCluster | FaultKind::TensorCopy { .. } => 715,
            FaultKind::Misaligned { .. } => 716,
            FaultKind::InvalidPc { .. } => 718,
            FaultKind::Trap | FaultKind::FreedTwice { .. } | FaultKind::NoBlock { .. } => 719,
            FaultKind::Assert { .. } => 710,
            FaultKind::BarrierMisuse { .. } | FaultKind::Deadlock { .. } | FaultKind::Budget { .. } => 702,
            FaultKind::Unsupported { .. } => 801,
            FaultKind::OutOfMemory => 2,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kernel, self.kind)?;
        if self.line != 0 {
            let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
            write!(
                f,
                " (PTX line {}, block [{bx},{by},{bz}], thread [{tx},{ty},{tz}])",
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
                unnoticed(*address, (*available).into(), *size)
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
                unnoticed(*address, *available, *size)
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
            } => {
                write!(f, "{file}:{line}: {function}: Assertion `{message}` failed")
            }
            FaultKind::InvalidPc { address } => {
                write!(f, "call of {address:#x}, which is not the address of a function")
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
            FaultKind::BarrierMisuse { report } => write!(f, "invalid use of a barrier: {report}"),
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

/// Granularity in bytes of a GPU's memory: an access past the end of an allocation but in its last granule does not
/// fault.
const GRANULE: u64 = 512;

/// Explains an access past the end of a block's or a thread's memory: the program may run without a fault on a GPU,
/// if the access is in the last granule.
fn unnoticed(address: u64, available: u64, size: u32) -> String {
    let end = address.saturating_add(size.into());
    if end > available && end - available <= GRANULE {
        format!(", where a GPU might not fault (CUDA_SOFT_SLACK={GRANULE} allows such accesses)")
    } else {
        String::new()
    }
}

/// Displays where an address lies relative to the allocation below it.
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
