//! A launch of a kernel: grid, arguments and options.

#![forbid(unsafe_code)]

pub(crate) mod workspace;

use crate::code::isa::Isa;
use crate::observe::Observers;
use crate::program::kernel::Kernel;
use std::ops::Range;
use std::sync::Arc;
use workspace::GridWorkspace;

/// Bytes of shared memory that the system reserves.
const RESERVED_SHARED: u64 = 1 << 10;

/// A launch of a kernel: grid, arguments and options.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Blocks of the grid in x, y and z. The caller has checked the device's limits.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z; at most 1024 in total. The caller has checked the device's limits.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameter buffer: values at the offsets of [`Kernel::params`]. A short buffer is extended with zeros.
    pub params: Box<[u8]>,
    /// Further settings.
    pub options: Options,
}

/// The way in which kernels run. Results are the same, unless a kernel has data races.
///
/// The reported fault is the same, too, with two exceptions. If the lanes of a warp diverge and the interpreter would
/// suspend the warp, another warp of the block may reach its fault first. The interpreter suspends a warp after 128
/// backward jumps if threads of the kernel wait for other threads, otherwise after 1,024 or more. In loops that jump
/// back to their head from several places, the fault may be that of another lane of the warp.
///
/// Until a fault ends a compiled kernel, the lanes after the faulty one may run further than in the interpreter. This
/// can be observed only in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Kernels are interpreted.
    Interpreter,
    /// Kernels are compiled to machine code, and interpreted where that is not possible.
    Compiled {
        /// Number of lanes that the code runs at once: 8, 16 or 32. If 32 are too many for the shape of the block or
        /// for the live values of the kernel, the code runs 16.
        lanes: u32,
    },
    /// As [`Compiled`](Self::Compiled), but each check of the code counts as failed, so that the code always continues
    /// in the interpreter. For tests; it is slow.
    Leaving {
        /// Number of lanes that the code runs at once: 8, 16 or 32. If 32 are too many for the shape of the block or
        /// for the live values of the kernel, the code runs 16.
        lanes: u32,
    },
    /// Kernels are interpreted, or compiled if the numbers of their instructions show that this saves time.
    Auto,
}

impl Engine {
    /// Returns the engine that `CUDA_SOFT_ENGINE` in the environment selects.
    fn chosen() -> Self {
        match host::environment::engine() {
            Some("compiled") => Engine::Compiled { lanes: 32 },
            Some("leaving") => Engine::Leaving { lanes: 32 },
            Some("interpreter") => Engine::Interpreter,
            _ => Engine::Auto,
        }
    }
}

/// Settings of a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The way in which the kernel runs.
    pub engine: Engine,
    /// Approximate limit on the number of warp instructions; `None` for no limit.
    pub budget: Option<u64>,
    /// The instruction set to use.
    pub isa: Isa,
    /// True if the report of a fault contains the thread's registers. The kernel is interpreted then.
    pub reports_registers: bool,
    /// Bytes of local memory per thread for recursive and indirect calls, whose depth is not known before they run. The
    /// frames of direct calls are added; the sum is limited to the local memory that a thread can have.
    pub stack_limit: u64,
    /// Bytes that all kernels of the module's owner may have allocated with `malloc` at the same time.
    pub heap_limit: u64,
    /// True if blocks that see stores of other blocks may run on several host threads at once. This is faster, but
    /// results may differ from run to run.
    pub parallel: bool,
    /// Maximum number of blocks in progress at once. Fewer are in progress if they need much memory.
    pub resident: u64,
    /// True for a cooperative launch. Its blocks may all wait for one another, so the memory that they need does not
    /// limit the number in progress.
    pub cooperative: bool,
    /// Memory in which the blocks of a cooperative launch count arrivals.
    pub workspace: Option<Arc<GridWorkspace>>,
    /// Bytes past the end of shared and of local memory that threads may access.
    pub slack: u64,
    /// Numbers of the virtual multiprocessors that the kernel may use; `None` for all of them.
    pub multiprocessors: Option<Arc<[u32]>>,
    /// Blocks per cluster, for a launch with clusters; the grid is a multiple of it.
    pub cluster: Option<[u32; 3]>,
    /// Warps of the launch that a multiprocessor can hold at once, divided by the most that it can hold of any launch;
    /// 0 if unknown. Observers report this number.
    pub occupancy: f64,
    /// Checkers, counters and other observers. An observed launch runs slower.
    pub observers: Observers,
}

impl Default for Options {
    /// Returns options with no observers, no budget, the instruction set of [`Isa::best`], 128 KiB of stack, a heap of
    /// 8 MiB and 4096 resident blocks. `CUDA_SOFT_ENGINE`, `CUDA_SOFT_PARALLEL` and `CUDA_SOFT_SLACK` in the
    /// environment set `engine`, `parallel` and `slack`.
    fn default() -> Self {
        Options {
            engine: Engine::chosen(),
            budget: None,
            isa: Isa::best(),
            reports_registers: false,
            stack_limit: 128 << 10,
            heap_limit: 8 << 20,
            parallel: host::environment::parallel(),
            resident: 4096,
            cooperative: false,
            workspace: None,
            multiprocessors: None,
            slack: host::environment::slack(),
            cluster: None,
            occupancy: 0.0,
            observers: Observers::default(),
        }
    }
}

impl Launch {
    /// Returns the size of a block's shared memory: the kernel's variables, the dynamic part, and the reserved part if
    /// the kernel uses it.
    pub(crate) fn shared_bytes(&self) -> u64 {
        let dynamic = u64::from(self.dynamic_shared);
        let own = if dynamic == 0 {
            u64::from(self.kernel.shared_bytes())
        } else {
            u64::from(self.kernel.shared_layout().dynamic) + dynamic
        };
        match self.reserved_shared() {
            Some(reserved) => reserved.end,
            None => own,
        }
    }

    /// Returns the part of a block's shared memory that the system reserves. On a GPU it is at the beginning. Here it
    /// is at the end, and exists only for kernels that use it, as cooperative groups of several warps do.
    pub(crate) fn reserved_shared(&self) -> Option<Range<u64>> {
        if !self.kernel.uses_reserved_shared() {
            return None;
        }
        let layout = self.kernel.shared_layout();
        let own = u64::from(layout.dynamic.max(layout.fixed)) + u64::from(self.dynamic_shared);
        let start = own.next_multiple_of(16);
        Some(start..start + RESERVED_SHARED)
    }
}
