//! An invocation of a function by lanes of a warp, and the constants in its registers.

use crate::code::registers::{RegFile, Slot};
use crate::code::{Code, Constant, Converged, Lifetime};
use crate::grid::execution::Launch;
use crate::lanes::{FULL, LANES, Lanes, Mask};
use crate::memory::warp::RANK_SHIFT;
use crate::program::Image;
use crate::program::kernel::SharedLayout;
use crate::semantics::affine::{self, Affine, Rows};
use ptx::ir::{FuncId, RegClass, Space, Special};
use std::sync::Arc;

/// Number of a frame in its warp.
pub(crate) type FrameId = u32;

/// An invocation.
pub(crate) struct Frame {
    /// What runs.
    pub(crate) function: FuncId,
    /// Its registers, of the size that the function's code asks for.
    pub(crate) file: RegFile,
    /// Where it goes on when it returns; `None` for the kernel itself.
    pub(crate) caller: Option<Caller>,
    /// Where its local memory begins.
    pub(crate) local_base: u64,
    /// Where that ends which the function always has.
    pub(crate) local_fixed: u64,
    /// Where it ends with what was allocated behind that, in whichever lane that is most.
    pub(crate) local_end: u64,
    /// The same by lane, once there was such an allocation.
    allocated: Option<Box<Lanes<u64>>>,
    /// Lanes that are in it, or in something that it called.
    pub(crate) live: Mask,
}

impl Frame {
    /// Where each thread's stack ends.
    pub(crate) fn stack_tops(&self) -> Lanes<u64> {
        match &self.allocated {
            Some(tops) => **tops,
            None => [self.local_fixed; LANES],
        }
    }

    /// Moves the ends of the threads' stacks.
    pub(crate) fn set_stack_tops(&mut self, tops: Lanes<u64>) {
        self.local_end = tops.iter().copied().fold(self.local_fixed, u64::max);
        self.allocated = Some(Box::new(tops));
    }
}

/// The call that made a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The calling frame.
    pub(crate) frame: FrameId,
    /// The instruction after the call.
    pub(crate) pc: u32,
    /// The call's action in the calling code.
    pub(crate) action: u32,
}

/// What the frames of a launch need, and frames to use again.
pub(crate) struct Frames<'e> {
    launch: &'e Launch,
    image: &'e Image,
    shared: &'e SharedLayout,
    /// How the lanes of each warp lie in the block, if in whole rows.
    rows: Option<Rows>,
    /// That of the kernel.
    kernel: Option<&'e Code>,
    /// By function; `None` for what the launch cannot reach.
    codes: &'e [Option<Arc<Code>>],
    /// By function: registers whose launch constants are in place.
    pool: Vec<Vec<RegFile>>,
}

/// Warps that a multiprocessor of the virtual device has numbers for, for `%nwarpid`.
const WARPS: u32 = 64;

/// Multiprocessors of the virtual device, for `%nsmid`.
const MULTIPROCESSORS: u32 = 132;

/// Which block and warp registers are for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    /// The block.
    pub(crate) block: [u32; 3],
    /// Its number in the grid.
    pub(crate) number: u64,
    /// The warp in the block.
    pub(crate) warp: u32,
}

impl<'e> Frames<'e> {
    /// For a launch whose functions are decoded.
    pub(crate) fn new(launch: &'e Launch, codes: &'e [Option<Arc<Code>>]) -> Self {
        Frames {
            rows: lane_rows(launch.block),
            launch,
            image: launch.kernel.image(),
            shared: launch.kernel.shared_layout(),
            kernel: codes[launch.kernel.id().0 as usize].as_deref(),
            pool: codes.iter().map(|_| Vec::new()).collect(),
            codes,
        }
    }

    /// Whether the launch may run this function.
    pub(crate) fn has(&self, id: FuncId) -> bool {
        self.codes.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// The code of the kernel, if the launch may run it.
    #[inline(always)]
    pub(crate) fn kernel(&self) -> Option<&'e Code> {
        self.kernel
    }

    /// The code of a function that the launch may run: all that frames are made for.
    #[inline(always)]
    pub(crate) fn code(&self, id: FuncId) -> &'e Code {
        self.codes[id.0 as usize]
            .as_ref()
            .expect("frames are made for decoded functions")
    }

    /// Makes a frame; its parameters are not there yet. `None` if there is no memory for it.
    pub(crate) fn make(
        &mut self,
        function: FuncId,
        here: Here,
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
            here,
            // Another block of the cluster may have had it, whose shared memory is elsewhere.
            if fresh || self.launch.options.cluster.is_some() {
                Lifetime::Launch
            } else {
                Lifetime::Warp
            },
        );
        Some(frame)
    }

    /// Makes a kernel's frame ready for another block: the warp stays.
    pub(crate) fn reuse(&self, frame: &mut Frame, here: Here, live: Mask) {
        let code = self.code(frame.function);
        let (start, bytes) = code.cleared;
        frame.file.clear(start, bytes);
        frame.live = live;
        (frame.local_end, frame.allocated) = (frame.local_fixed, None);
        if let Some(converged) = self.converged(code, live) {
            self.fill_affine(
                frame,
                here,
                &converged.constants[converged.kept_constants..],
            );
            if !converged.reads_block_constants {
                return;
            }
        }
        self.fill_all(frame, here, code.block_constants.iter());
    }

    /// The code for converged warps, if these lanes may run it.
    fn converged<'c>(&self, code: &'c Code, lanes: Mask) -> Option<&'c Converged> {
        let converged = code.converged.as_ref()?;
        if !self.launch.options.converged {
            return None;
        }
        (lanes == FULL && (self.rows.is_some() || !converged.needs_rows)).then_some(converged)
    }

    /// Where lanes begin in the frame of a kernel, which is new or was made ready for another block.
    pub(crate) fn entry(&self, function: FuncId, lanes: Mask, new: bool) -> u32 {
        let converged = self.converged(self.code(function), lanes);
        converged.map_or(0, |c| if new { c.first } else { c.entry })
    }

    /// Leaves the code for converged warps at an instruction: says where to go on in the code for any lanes, and writes
    /// out what that reads.
    pub(crate) fn leave(&self, frame: &mut Frame, here: Here, at: u32) -> u32 {
        let code = self.code(frame.function);
        let (converged, leave) = code
            .converged
            .as_ref()
            .and_then(|converged| Some((converged, converged.leave(at)?)))
            .expect("instructions that may leave are listed");
        if !converged.reads_block_constants {
            self.fill_all(frame, here, code.block_constants.iter());
        }
        for (row, width, from) in &converged.kept[leave.spread.clone()] {
            let rows = self.rows.unwrap_or(Rows::ONE);
            frame.file.spread(*row, *width, *from, rows);
        }
        leave.to
    }

    /// Whether all lanes of a warp, alone at an instruction of the code for any lanes, may go on in the code for converged
    /// warps: says where, or that the registers are not what it takes them to be.
    pub(crate) fn resume(&self, frame: &mut Frame, at: u32) -> Option<Result<u32, ()>> {
        let code = self.code(frame.function);
        let converged = self.converged(code, frame.live)?;
        if at >= converged.first {
            return None;
        }
        let resume = converged.resume(at)?;
        let rows = self.rows.unwrap_or(Rows::ONE);
        let mut kept = converged.kept[resume.gathered.clone()].iter();
        let affine = kept.all(|(row, width, to)| frame.file.gather(*row, *width, *to, rows));
        Some(if affine { Ok(resume.to) } else { Err(()) })
    }

    /// Takes back a frame that ended.
    pub(crate) fn give_back(&mut self, frame: Frame) {
        self.pool[frame.function.0 as usize].push(frame.file);
    }

    /// Fills the constants that live no longer than `from`.
    fn fill(&self, frame: &mut Frame, here: Here, from: Lifetime) {
        let code = self.code(frame.function);
        if let Some(converged) = &code.converged {
            self.fill_affine(frame, here, &converged.constants);
        }
        // They are sorted by lifetime.
        let first = code
            .constants
            .partition_point(|(_, _, constant)| constant.lifetime() < from);
        self.fill_all(frame, here, code.constants[first..].iter());
    }

    fn fill_affine(&self, frame: &mut Frame, here: Here, constants: &[(Slot, RegClass, Constant)]) {
        for (slot, class, constant) in constants {
            let value = self.affine(frame.local_base, here, *class, constant);
            frame.file.set_affine(*slot, value);
        }
    }

    fn fill_all<'c>(
        &self,
        frame: &mut Frame,
        here: Here,
        constants: impl Iterator<Item = &'c (Slot, u8, Constant)>,
    ) {
        for (slot, width, constant) in constants {
            let local_base = frame.local_base;
            match constant {
                Constant::Special(special) if differs(*special) => {
                    frame.file.set(*slot, *width, FULL, |lane| {
                        self.special(*special, here, lane as u32)
                    });
                }
                Constant::Special(special) => {
                    frame
                        .file
                        .set_all(*slot, *width, self.special(*special, here, 0));
                }
                constant => {
                    frame
                        .file
                        .set_all(*slot, *width, self.value(here, constant, local_base))
                }
            }
        }
    }

    /// A constant in all lanes; those that are neither uniform nor affine are not asked for.
    fn affine(&self, local_base: u64, here: Here, class: RegClass, constant: &Constant) -> Affine {
        let value = match constant {
            Constant::Special(special) if differs(*special) => {
                let rows = self.rows.unwrap_or(Rows::ONE);
                let base = self.special(*special, here, 0);
                let more = |lane| self.special(*special, here, lane).wrapping_sub(base);
                Affine {
                    base,
                    step: if rows.lanes() > 1 { more(1) } else { 0 },
                    row: if rows.count() > 1 {
                        more(rows.lanes())
                    } else {
                        0
                    },
                }
            }
            Constant::Special(special) => affine::uniform(self.special(*special, here, 0)),
            constant => affine::uniform(self.value(here, constant, local_base)),
        };
        match class {
            RegClass::B64 => value,
            _ => affine::truncate(value),
        }
    }

    fn value(&self, here: Here, constant: &Constant, local_base: u64) -> u64 {
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
                let base = match self
                    .image
                    .module
                    .variables
                    .get(var.0 as usize)
                    .map(|v| v.space)
                {
                    Some(Space::Shared | Space::SharedCluster) => {
                        let rank = self.special(Special::ClusterCtarank, here, 0);
                        u64::from(self.shared.offset(var).unwrap_or(0)) | rank << RANK_SHIFT
                    }
                    _ => self.image.address(var).unwrap_or(0),
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

    /// `%reserved_smem_offset_begin`, `_end`, `_cap`, `_0` and `_1`: cooperative groups have 288 bytes from `_1` on.
    fn reserved_shared(&self, which: u8) -> u32 {
        let reserved = self.launch.reserved_shared().unwrap_or_default();
        (match which {
            1 => reserved.end,
            2 => reserved.end - reserved.start,
            4 => reserved.start + (reserved.end - reserved.start) / 2,
            _ => reserved.start,
        }) as u32
    }

    fn special(&self, special: Special, here: Here, lane: u32) -> u64 {
        let Launch { grid, block, .. } = self.launch;
        let part =
            |of: &[u32; 3], dimension: u8| of.get(usize::from(dimension)).copied().unwrap_or(0);
        let shared = self
            .shared
            .dynamic
            .saturating_add(self.launch.dynamic_shared);
        let explicit = self.launch.options.cluster;
        let cluster = explicit.unwrap_or([1; 3]).map(|n| n.max(1));
        let [of_cluster, inside, clusters]: [[u32; 3]; 3] = [
            std::array::from_fn(|i| here.block[i] / cluster[i]),
            std::array::from_fn(|i| here.block[i] % cluster[i]),
            std::array::from_fn(|i| grid[i] / cluster[i]),
        ];
        u64::from(match special {
            Special::Tid(d) => part(&thread_of(*block, here.warp * 32 + lane), d),
            Special::Ntid(d) => part(block, d),
            Special::Ctaid(d) => part(&here.block, d),
            Special::Nctaid(d) => part(grid, d),
            Special::Clusterid(d) => part(&of_cluster, d),
            Special::Nclusterid(d) => part(&clusters, d),
            Special::Laneid => lane,
            Special::Warpid => here.warp,
            Special::Nwarpid => WARPS,
            // Blocks go round the virtual multiprocessors.
            Special::Smid => (here.number % u64::from(MULTIPROCESSORS)) as u32,
            Special::Nsmid => MULTIPROCESSORS,
            // Without clusters, each block is one.
            Special::ClusterNctaid(d) => part(&cluster, d),
            Special::ClusterNctarank => cluster.iter().product(),
            Special::ClusterCtaid(d) => part(&inside, d),
            Special::ClusterCtarank => {
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
            // Where cooperative groups look for what the driver gave a cooperative launch.
            Special::Envreg(1) => (self.workspace() >> 32) as u32,
            Special::Envreg(2) => self.workspace() as u32,
            Special::Pm(_) | Special::Pm64(_) | Special::Envreg(_) => 0,
            // Read by instructions of their own.
            Special::Clock | Special::ClockHi | Special::Clock64 => 0,
            Special::Globaltimer | Special::GlobaltimerLo | Special::GlobaltimerHi => 0,
        })
    }
}

/// Whether a special register is not the same in all lanes of a warp.
fn differs(special: Special) -> bool {
    use Special::*;
    matches!(
        special,
        Tid(_) | Laneid | LanemaskEq | LanemaskLt | LanemaskLe | LanemaskGt | LanemaskGe
    )
}

/// The coordinates of a thread in its block.
pub(crate) fn thread_of(block: [u32; 3], number: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [number % x, number / x % y, number / x / y]
}

/// How the lanes of each warp lie in a block of this shape: in rows along its first dimension, which go on in the second
/// and have the same place in the third. `None`: some other way.
pub(crate) fn lane_rows(block: [u32; 3]) -> Option<Rows> {
    let [x, y, z] = block;
    if x.is_multiple_of(32) || (y <= 1 && z <= 1) {
        return Some(Rows::ONE);
    }
    Rows::of(x).filter(|rows| z <= 1 || y.is_multiple_of(rows.count()))
}
