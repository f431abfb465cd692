//! Frames: invocations of functions by lanes of a warp, and the constants in their registers.

#![forbid(unsafe_code)]

use crate::code::compiled::{Compiled, Variant};
use crate::code::constant::{Constant, Lifetime, differs_by_lane};
use crate::code::function::Code;
use crate::code::registers::{RegFile, Slot};
use crate::lanes::{FULL, LANES, Lanes, Mask, thread_of};
use crate::launch::Launch;
use crate::memory::warp::RANK_SHIFT;
use crate::program::loaded::LoadedModule;
use crate::program::shared_layout::SharedLayout;
use ptx::ir::{FuncId, Space, Special};
use std::sync::Arc;

/// Index of a frame in its warp.
pub(crate) type FrameId = u32;

/// An invocation of a function.
pub(crate) struct Frame {
    /// The function.
    pub(crate) function: FuncId,
    /// The registers, of the size that the function's code needs.
    pub(crate) file: RegFile,
    /// The call that the frame returns to; `None` for the kernel itself.
    pub(crate) caller: Option<Caller>,
    /// Start of the local memory.
    pub(crate) local_base: u64,
    /// End of the part of the local memory that every invocation has.
    pub(crate) local_fixed: u64,
    /// End of the local memory with the allocations of `alloca`, in the lane that has most.
    pub(crate) local_end: u64,
    /// End of the local memory by lane, once a stack operation such as `alloca` has run.
    allocated: Option<Box<Lanes<u64>>>,
    /// Lanes in the function or in its callees.
    pub(crate) live: Mask,
}

impl Frame {
    /// Returns the end of each thread's stack.
    pub(crate) fn stack_tops(&self) -> Lanes<u64> {
        match &self.allocated {
            Some(tops) => **tops,
            None => [self.local_fixed; LANES],
        }
    }

    /// Sets the end of each thread's stack.
    pub(crate) fn set_stack_tops(&mut self, tops: Lanes<u64>) {
        self.local_end = tops.iter().copied().fold(self.local_fixed, u64::max);
        self.allocated = Some(Box::new(tops));
    }
}

/// The call that created a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The calling frame.
    pub(crate) frame: FrameId,
    /// The instruction after the call.
    pub(crate) pc: u32,
    /// Index of the call's action in the caller's code.
    pub(crate) action: u32,
}

/// Creates the frames of a launch and reuses their registers.
pub(crate) struct Frames<'e> {
    launch: &'e Launch,
    pub(super) loaded: &'e LoadedModule,
    shared: &'e SharedLayout,
    /// The kernel's code.
    kernel: Option<&'e Code>,
    /// The kernel's machine code, if the launch runs it.
    compiled: Option<&'e Compiled>,
    /// Code by function; `None` for functions that the launch cannot reach.
    codes: &'e [Option<Arc<Code>>],
    /// Registers for reuse, by function; their launch constants are filled.
    pool: Vec<Vec<RegFile>>,
}

/// Limit on the warps of a block that can begin together in compiled code.
pub(super) const MOST_WARPS: usize = 32;

/// `%nwarpid`: warp numbers of a multiprocessor of the virtual device.
const WARPS: u32 = 64;

/// `%nsmid`: multiprocessors of the virtual device.
const MULTIPROCESSORS: u32 = 132;

/// A warp's position in the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpPosition {
    /// Coordinates of the block.
    pub(crate) block: [u32; 3],
    /// Number of the block in the grid.
    pub(crate) number: u64,
    /// Number of the warp in the block.
    pub(crate) warp: u32,
}

impl<'e> Frames<'e> {
    /// Returns the frames of a launch whose functions are decoded.
    pub(crate) fn new(launch: &'e Launch, codes: &'e [Option<Arc<Code>>], machine_code: Option<Variant>) -> Self {
        let kernel = codes[launch.kernel.id().0 as usize].as_deref();
        Frames {
            compiled: kernel.and_then(|code| code.compiled.made(machine_code?)),
            launch,
            loaded: launch.kernel.loaded(),
            shared: launch.kernel.shared_layout(),
            kernel,
            pool: codes.iter().map(|_| Vec::new()).collect(),
            codes,
        }
    }

    /// Returns true if reports of faults contain registers.
    pub(super) fn reports_registers(&self) -> bool {
        self.launch.options.reports_registers
    }

    /// Returns true if compiled code leaves at each of its exits, for tests.
    #[inline(always)]
    pub(super) fn is_leaving(&self) -> bool {
        self.compiled.is_some_and(|compiled| compiled.leaving)
    }

    /// Returns the bytes past the end of local memory that threads may access.
    #[inline]
    pub(crate) fn slack(&self) -> u64 {
        self.launch.options.slack
    }

    /// Returns true if the launch may run this function.
    pub(crate) fn has(&self, id: FuncId) -> bool {
        self.codes.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// Returns the kernel's code, if it is decoded.
    #[inline(always)]
    pub(crate) fn kernel(&self) -> Option<&'e Code> {
        self.kernel
    }

    /// Returns the kernel's machine code, if the launch runs it.
    #[inline(always)]
    pub(crate) fn compiled(&self) -> Option<&'e Compiled> {
        self.compiled
    }

    /// Returns the code of a function that has a frame. Only decoded functions have one.
    #[inline(always)]
    pub(crate) fn code(&self, id: FuncId) -> &'e Code {
        self.codes[id.0 as usize]
            .as_ref()
            .expect("frames are made for decoded functions")
    }

    /// Creates a frame, without its parameters. Returns `None` if the host is out of memory.
    pub(crate) fn make(
        &mut self,
        function: FuncId,
        position: WarpPosition,
        caller: Option<Caller>,
        local_base: u64,
        live: Mask,
    ) -> Option<Frame> {
        let code = self.code(function);
        let (file, fresh) = match self.pool[function.0 as usize].pop() {
            Some(file) => (file, false),
            None => (RegFile::new(code.frame_bytes)?, true),
        };
        let mut frame = Frame {
            function,
            file,
            caller,
            local_base,
            local_fixed: local_base + u64::from(code.local_bytes),
            local_end: local_base + u64::from(code.local_bytes),
            allocated: None,
            live,
        };
        if !fresh {
            frame.file.clear(code.cleared.0, code.cleared.1);
        }
        self.fill(
            &mut frame,
            position,
            // In a cluster, the registers may come from another block, with another address of shared memory.
            if fresh || self.launch.options.cluster.is_some() {
                Lifetime::Launch
            } else {
                Lifetime::Warp
            },
        );
        Some(frame)
    }

    /// Prepares a kernel's frame for the same warp of another block.
    #[inline]
    pub(crate) fn reuse(&self, frame: &mut Frame, position: WarpPosition, live: Mask) {
        let code = self.code(frame.function);
        let (start, bytes) = code.cleared;
        frame.file.clear(start, bytes);
        frame.live = live;
        (frame.local_end, frame.allocated) = (frame.local_fixed, None);
        self.fill_all(frame, position, code.block_constants.iter());
    }

    /// Clears the registers of a kernel's frame that must be zero in another block. [`fill_block`](Self::fill_block)
    /// does the rest of [`reuse`](Self::reuse).
    #[inline]
    pub(super) fn reuse_later(&self, frame: &mut Frame) {
        let (start, bytes) = self.code(frame.function).cleared;
        frame.file.clear(start, bytes);
    }

    /// Fills the constants that change from block to block, and resets the lanes and the stack.
    pub(super) fn fill_block(&self, frame: &mut Frame, position: WarpPosition, live: Mask) {
        frame.live = live;
        (frame.local_end, frame.allocated) = (frame.local_fixed, None);
        let code = self.code(frame.function);
        self.fill_all(frame, position, code.block_constants.iter());
    }

    /// Sets the constants that compiled code reads from its context to those of a block. `of` is the number of the
    /// block that they were last set for, if any.
    pub(super) fn fill_uniforms(
        &self,
        uniforms: &mut [u64],
        of: &mut Option<u64>,
        compiled: &Compiled,
        (block, number): ([u32; 3], u64),
    ) {
        if *of == Some(number) {
            return;
        }
        let position = WarpPosition { block, number, warp: 0 };
        let filled = of.replace(number).is_some();
        for ((constant, _), value) in compiled.uniforms.iter().zip(uniforms) {
            if filled && constant.lifetime() != Lifetime::Block {
                // The constants that are the same in all blocks come last.
                break;
            }
            *value = match constant {
                Constant::Special(special) => self.special(*special, position, 0),
                constant => self.value(position, constant, 0),
            };
        }
    }

    /// Returns true if the warps of a block of `threads` threads can begin together in compiled code.
    pub(crate) fn begins_together(&self, threads: u32) -> bool {
        let Some((compiled, code)) = self.compiled.zip(self.kernel) else {
            return false;
        };
        // Each warp has local memory of its own, groups that meet at an instruction run one warp at a time, and in the
        // interpreter's order a block may pause between its warps.
        let in_order = compiled.ordered || !compiled.sites.is_empty();
        let plain = code.local_bytes == 0 && !in_order && self.launch.options.cluster.is_none();
        let whole = threads.is_multiple_of(LANES as u32) && threads <= (MOST_WARPS * LANES) as u32;
        plain && whole && compiled.entry(0).is_some_and(|entry| entry.scalars.is_empty())
    }

    /// Returns true if registers of the kernel must be zero when it begins.
    #[inline]
    pub(super) fn clears(&self) -> bool {
        self.kernel.is_none_or(|code| code.cleared.1 > 0)
    }

    /// Takes back a frame whose invocation has ended.
    pub(crate) fn give_back(&mut self, frame: Frame) {
        self.pool[frame.function.0 as usize].push(frame.file);
    }

    /// Fills the constants whose lifetime is `from` or shorter.
    fn fill(&self, frame: &mut Frame, position: WarpPosition, from: Lifetime) {
        let code = self.code(frame.function);
        // Constants are sorted by lifetime.
        let first = code
            .constants
            .partition_point(|(_, _, constant)| constant.lifetime() < from);
        self.fill_all(frame, position, code.constants[first..].iter());
    }

    fn fill_all<'c>(
        &self,
        frame: &mut Frame,
        position: WarpPosition,
        constants: impl Iterator<Item = &'c (Slot, u8, Constant)>,
    ) {
        for (slot, width, constant) in constants {
            let local_base = frame.local_base;
            match constant {
                Constant::Special(special) if differs_by_lane(*special) => {
                    frame.file.set(*slot, *width, FULL, |lane| {
                        self.special(*special, position, lane as u32)
                    });
                }
                Constant::Special(special) => {
                    frame.file.set_all(*slot, *width, self.special(*special, position, 0));
                }
                constant => frame
                    .file
                    .set_all(*slot, *width, self.value(position, constant, local_base)),
            }
        }
    }

    fn value(&self, position: WarpPosition, constant: &Constant, local_base: u64) -> u64 {
        match *constant {
            Constant::Bits(bits) => bits,
            Constant::Special(_) => 0,
            Constant::Param(offset, bytes, signed) => {
                let mut value = [0; 8];
                let (offset, bytes) = (offset as usize, usize::from(bytes));
                if let Some(from) = self.launch.params.get(offset..offset + bytes) {
                    value[..bytes].copy_from_slice(from);
                }
                let value = u64::from_le_bytes(value);
                if signed && bytes < 8 {
                    let shift = 64 - 8 * bytes as u32;
                    ((value << shift) as i64 >> shift) as u64
                } else {
                    value
                }
            }
            Constant::Variable(var, offset) => {
                let base = match self.loaded.module.variables.get(var.0 as usize).map(|v| v.space) {
                    Some(Space::Shared | Space::SharedCluster) => {
                        let rank = self.special(Special::ClusterCtarank, position, 0);
                        u64::from(self.shared.offset(var).unwrap_or(0)) | rank << RANK_SHIFT
                    }
                    _ => self.loaded.address(var).unwrap_or(0),
                };
                base.wrapping_add_signed(offset)
            }
            Constant::Frame(offset) => local_base.wrapping_add_signed(offset),
        }
    }

    fn workspace(&self) -> u64 {
        let workspace = self.launch.options.workspace.as_ref();
        workspace.map_or(0, |w| w.address())
    }

    /// Returns `%reserved_smem_offset_begin`, `_end`, `_cap`, `_0` or `_1`. Cooperative groups use 288 bytes from `_1`
    /// on.
    fn reserved_shared(&self, which: u8) -> u32 {
        let reserved = self.launch.reserved_shared().unwrap_or_default();
        (match which {
            1 => reserved.end,
            2 => reserved.end - reserved.start,
            4 => reserved.start + (reserved.end - reserved.start) / 2,
            _ => reserved.start,
        }) as u32
    }

    fn special(&self, special: Special, position: WarpPosition, lane: u32) -> u64 {
        let Launch { grid, block, .. } = self.launch;
        let part = |of: &[u32; 3], dimension: u8| of.get(usize::from(dimension)).copied().unwrap_or(0);
        let shared = self.shared.dynamic.saturating_add(self.launch.dynamic_shared);
        let explicit = self.launch.options.cluster;
        let cluster = explicit.unwrap_or([1; 3]).map(|n| n.max(1));
        // Computed when they are read: divisions are slow, and few kernels read these registers.
        let each = |of: &dyn Fn(usize) -> u32| -> [u32; 3] { std::array::from_fn(of) };
        let inside = || each(&|i| position.block[i] % cluster[i]);
        u64::from(match special {
            Special::Tid(d) => part(&thread_of(*block, position.warp * 32 + lane), d),
            Special::Ntid(d) => part(block, d),
            Special::Ctaid(d) => part(&position.block, d),
            Special::Nctaid(d) => part(grid, d),
            Special::Clusterid(d) => part(&each(&|i| position.block[i] / cluster[i]), d),
            Special::Nclusterid(d) => part(&each(&|i| grid[i] / cluster[i]), d),
            Special::Laneid => lane,
            Special::Warpid => position.warp,
            Special::Nwarpid => WARPS,
            // Blocks are assigned to the virtual multiprocessors in turn.
            Special::Smid => match self.launch.options.multiprocessors.as_deref() {
                Some(some) if !some.is_empty() => some[(position.number % some.len() as u64) as usize],
                _ => (position.number % u64::from(MULTIPROCESSORS)) as u32,
            },
            Special::Nsmid => MULTIPROCESSORS,
            // Without clusters, each block is a cluster of its own.
            Special::ClusterNctaid(d) => part(&cluster, d),
            Special::ClusterNctarank => cluster.iter().product(),
            Special::ClusterCtaid(d) => part(&inside(), d),
            Special::ClusterCtarank => {
                let inside = inside();
                inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
            }
            Special::IsExplicitCluster => u32::from(explicit.is_some()),
            Special::LanemaskEq => 1 << lane,
            Special::LanemaskLt => (1 << lane) - 1,
            Special::LanemaskLe => u32::MAX >> (31 - lane),
            Special::LanemaskGt => !(u32::MAX >> (31 - lane)),
            Special::LanemaskGe => !((1 << lane) - 1),
            Special::TotalSmemSize | Special::AggrSmemSize => shared,
            Special::DynamicSmemSize => self.launch.dynamic_shared,
            Special::Gridid | Special::CurrentGraphExec => 0,
            Special::ReservedSmemOffset(which) => self.reserved_shared(which),
            // Cooperative groups read the address of the launch's workspace here.
            Special::Envreg(1) => (self.workspace() >> 32) as u32,
            Special::Envreg(2) => self.workspace() as u32,
            Special::Pm(_) | Special::Pm64(_) | Special::Envreg(_) => 0,
            // These registers change while a kernel runs, so that instructions of their own read them.
            Special::Clock | Special::ClockHi | Special::Clock64 => 0,
            Special::Globaltimer | Special::GlobaltimerLo | Special::GlobaltimerHi => 0,
        })
    }
}
