//! What goes wrong inside a kernel.

use crate::memory::{Allocation, space};
use ptx::ir::Space;
use std::fmt;

/// What ended an execution early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The kernel that was launched.
    pub kernel: String,
    /// Line in the PTX source, from 1; 0 where no instruction is to blame.
    pub line: u32,
    /// The block.
    pub block: [u32; 3],
    /// The thread in its block: the first of those concerned.
    pub thread: [u32; 3],
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address outside every allocation, or outside the thread's local memory or the launch's parameters.
    IllegalAddress {
        /// The address, in its own space.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// A store (or an atomic operation) rather than a load.
        write: bool,
        /// The space that the address is in.
        space: Space,
    },
    /// An address outside the block's shared memory.
    SharedOutOfRange {
        /// Offset into the block's shared memory.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// A store rather than a load.
        write: bool,
        /// Bytes of shared memory that the block has.
        available: u32,
    },
    /// An address that is not a multiple of the size of the access.
    Misaligned {
        /// The address, in its own space.
        address: u64,
        /// Bytes of the access.
        size: u32,
        /// A store rather than a load.
        write: bool,
        /// The space that the address is in.
        space: Space,
    },
    /// An address in the shared memory of a block that the cluster does not have.
    NoBlock {
        /// The address, with the rank of the block in its highest eight bits of 32.
        address: u64,
    },
    /// An instruction that only kernels of clusters may use.
    NoCluster,
    /// `trap`
    Trap,
    /// `free` of what was freed before.
    FreedTwice {
        /// The address.
        address: u64,
    },
    /// `__assertfail`
    Assert {
        /// The file of the program's source.
        file: String,
        /// The line there.
        line: u32,
        /// The function.
        function: String,
        /// What does not hold.
        message: String,
    },
    /// A call through a register that holds no function's address.
    InvalidPc {
        /// What the register holds.
        address: u64,
    },
    /// More nested calls, or more local memory, than a thread has.
    StackOverflow {
        /// Bytes of local memory that the thread would need.
        bytes: u64,
    },
    /// A barrier that the threads of a warp reach at different places, or with a number or thread count out of range.
    BarrierMisuse {
        /// Who waits where.
        report: String,
    },
    /// Nothing can run any more.
    Deadlock {
        /// Who waits where.
        report: String,
    },
    /// The launch used up its instruction budget.
    Budget {
        /// The budget, in instructions of a warp.
        instructions: u64,
    },
    /// An instruction that this driver cannot run.
    Unsupported {
        /// The instruction, with its modifiers.
        opcode: String,
    },
    /// The host ran out of memory for the state of a block.
    OutOfMemory,
}

impl Fault {
    /// The line that a failed assertion is to write to stderr.
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

    /// The number of the `CUresult` that a driver answers from now on.
    pub fn code(&self) -> u32 {
        match self.kind {
            FaultKind::IllegalAddress { .. } | FaultKind::StackOverflow { .. } => 700,
            FaultKind::SharedOutOfRange { .. } | FaultKind::NoCluster => 715,
            FaultKind::Misaligned { .. } => 716,
            FaultKind::InvalidPc { .. } => 718,
            FaultKind::Trap | FaultKind::FreedTwice { .. } | FaultKind::NoBlock { .. } => 719,
            FaultKind::Assert { .. } => 710,
            FaultKind::BarrierMisuse { .. }
            | FaultKind::Deadlock { .. }
            | FaultKind::Budget { .. } => 702,
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
                "{} of {size} bytes at {address:#x} of shared memory, of which the block has {available} bytes",
                verb(write)
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
                "access at {address:#x} to the shared memory of block {} of the cluster, which there is not",
                address >> 24
            ),
            FaultKind::NoCluster => {
                f.write_str("an instruction for clusters, in a launch without clusters")
            }
            FaultKind::Trap => f.write_str("trap"),
            FaultKind::Assert {
                file,
                line,
                function,
                message,
            } => {
                write!(f, "{file}:{line}: {function}: Assertion `{message}` failed")
            }
            FaultKind::InvalidPc { address } => write!(
                f,
                "call of {address:#x}, which is no function of the module"
            ),
            FaultKind::FreedTwice { address } => {
                write!(
                    f,
                    "free of {address:#x}, where nothing is allocated any more"
                )
            }
            FaultKind::StackOverflow { bytes } => {
                write!(
                    f,
                    "the stack of a thread would need {bytes} bytes, more than it may have (CU_LIMIT_STACK_SIZE)"
                )
            }
            FaultKind::BarrierMisuse { report } => write!(f, "wrong use of a barrier: {report}"),
            FaultKind::Deadlock { report } => write!(f, "deadlock: {report}"),
            FaultKind::Budget { instructions } => {
                write!(
                    f,
                    "still running after {instructions} instructions of a warp, which is the launch's budget"
                )
            }
            FaultKind::Unsupported { opcode } => {
                write!(f, "the software driver cannot run `{opcode}`")
            }
            FaultKind::OutOfMemory => {
                f.write_str("the host has no memory left for the state of a block")
            }
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

/// What memory of a GPU comes in multiples of, in bytes: it does not fault on what lies in the same one.
const GRANULE: u64 = 512;

/// Says where an address lies relative to the allocation below it.
struct Nearest(u64);

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 4096 {
            return f.write_str("a null pointer");
        }
        match space().nearest(self.0) {
            Some(Allocation { base, bytes, .. }) if self.0 - base < bytes => {
                write!(
                    f,
                    "{} bytes before the end of the {bytes} bytes at {base:#x}",
                    base + bytes - self.0
                )
            }
            Some(Allocation { base, bytes, .. }) if self.0 - base - bytes < 1 << 32 => {
                let past = self.0 - base - bytes;
                write!(
                    f,
                    "{past} bytes past the end of the {bytes} bytes at {base:#x}"
                )?;
                if past < GRANULE {
                    // Whoever brings a program that runs on a GPU wants to know why it does not here.
                    write!(
                        f,
                        ", where a GPU might not fault (CUDA_SOFT_SLACK={GRANULE} allows it)"
                    )?;
                }
                Ok(())
            }
            _ => f.write_str("far from any allocation"),
        }
    }
}
