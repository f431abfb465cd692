//! Kernel launches: their checks and their work.

use std::sync::Arc;

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::check::of_work;
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::function::Function;
use crate::object::stream::StreamRef;
use crate::object::{cluster, green, library, occupancy, register_limit};
use crate::observation;
use crate::operation::ordered::{self, Ordered};
use crate::operation::progress;
use crate::queue::work::{Divisible, Fault, Work};
use crate::state::error::{Error, Result};
use engine::check::Checker;
use engine::{Execution, GridWorkspace, Launch, Options, Progress};

/// The approximate number of warp instructions that a thread runs before it looks for other work.
const SLICE: u64 = 1 << 16;

/// The configuration of a launch without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchShape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
    /// True if all blocks must be resident at once.
    pub(crate) cooperative: bool,
    /// Blocks per cluster, if the launch sets them. In a [`CheckedLaunch`], also if the function requires them.
    pub(crate) cluster: Option<[u32; 3]>,
}

/// A block of up to this many threads has enough registers with any kernel.
const ALWAYS_FIT: u32 = 256;

/// A launch whose function and configuration are checked, without arguments.
pub(crate) struct CheckedLaunch {
    function: Arc<Function>,
    context: Arc<Context>,
    shape: LaunchShape,
    multiprocessors: Option<Arc<[u32]>>,
}

/// A complete launch that can run any number of times.
#[derive(Clone)]
pub(crate) struct ReadyLaunch {
    pub(crate) function: Arc<Function>,
    pub(crate) context: Arc<Context>,
    pub(crate) shape: LaunchShape,
    /// The multiprocessors of a green context; `None` for all multiprocessors of the device.
    multiprocessors: Option<Arc<[u32]>>,
    /// The parameters in the kernel's layout.
    pub(crate) params: Box<[u8]>,
}

impl ReadyLaunch {
    /// Checks that a multiprocessor has enough registers for a block. Captured launches and new graph nodes are checked
    /// when their graph is instantiated.
    pub(crate) fn check_registers(&self) -> Result<()> {
        let (kernel, device) = (&self.function.kernel, self.context.device);
        let threads: u32 = self.shape.block.iter().product();
        if threads <= ALWAYS_FIT || threads <= register_limit::threads(kernel, device) {
            return Ok(());
        }
        host::log!(
            "launch of `{}` with {threads} threads per block: with {} registers per thread, a block has at most {} \
             threads; use fewer threads, or limit the registers by .maxntid",
            kernel.name(),
            kernel.num_regs(),
            register_limit::threads(kernel, device)
        );
        Err(Error::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    }

    /// Checks a cluster size for the launch.
    pub(crate) fn check_cluster(&self, cluster: Option<[u32; 3]>) -> Result<()> {
        let device = self.context.device;
        cluster::of_launch(&self.function, device, cluster, self.shape.grid).map(drop)
    }

    /// Checks that all blocks of a cooperative launch can be resident at once.
    pub(crate) fn check_resident(&self) -> Result<()> {
        let multiprocessors = self.multiprocessors.as_deref();
        check_resident(&self.function, self.context.device, self.shape, multiprocessors)
    }
}

/// Checks that all blocks of a launch can be resident at once on `multiprocessors`, or on all of the device, if the
/// launch is cooperative.
fn check_resident(
    function: &Function,
    device: &Device,
    shape: LaunchShape,
    multiprocessors: Option<&[u32]>,
) -> Result<()> {
    if !shape.cooperative {
        return Ok(());
    }
    let threads = shape.block.iter().product();
    let resident = occupancy::blocks_per_multiprocessor(function, device, threads, shape.shared.into());
    let all = || device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) as usize;
    let most = u64::from(resident) * multiprocessors.map_or_else(all, <[u32]>::len) as u64;
    let blocks = cluster::blocks(function, shape.grid);
    let blocks = blocks.iter().fold(1u64, |all, &n| all.saturating_mul(n.into()));
    if blocks <= most {
        return Ok(());
    }
    host::log!(
        "cooperative launch of `{}` with {blocks} blocks: at most {most} can be resident at once; use a smaller grid",
        function.kernel.name()
    );
    Err(Error::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
}

impl Divisible for Execution {
    fn piece(&self) -> bool {
        self.work(SLICE) != Progress::NothingToTake
    }

    fn finished(&self) -> bool {
        self.is_finished()
    }

    fn fault(&self) -> Option<Fault> {
        let fault = Execution::fault(self)?;
        Some(Fault {
            code: Error(fault.code()),
            message: fault.to_string(),
            details: fault.report.lines(),
            stderr: fault.assertion(),
        })
    }

    fn take_text(&self, at_least: usize) -> Vec<u8> {
        self.take_output(at_least)
    }
}

/// A kernel whose faults are also findings of checkers.
struct CheckedKernel {
    execution: Arc<Execution>,
    checkers: Vec<Checker>,
}

impl Divisible for CheckedKernel {
    fn piece(&self) -> bool {
        Divisible::piece(&*self.execution)
    }

    fn finished(&self) -> bool {
        Divisible::finished(&*self.execution)
    }

    fn fault(&self) -> Option<Fault> {
        if let Some(fault) = Execution::fault(&self.execution) {
            for checker in &self.checkers {
                checker.add_fault(&fault, &self.execution.launch().kernel);
            }
        }
        Divisible::fault(&*self.execution)
    }

    fn take_text(&self, at_least: usize) -> Vec<u8> {
        Divisible::take_text(&*self.execution, at_least)
    }
}

/// Returns true if no dimension is 0 or above the limit in its attribute.
fn within(dims: [u32; 3], limits: [Attribute; 3], device: &Device) -> bool {
    dims.iter()
        .zip(limits)
        .all(|(&n, limit)| (1..=device.limit(limit)).contains(&n))
}

/// Checks a block against the function and its device.
pub(crate) fn check_block(block: [u32; 3], function: &Function, device: &Device) -> Result<()> {
    const BLOCK: [Attribute; 3] = [
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    ];
    let threads: u64 = block.iter().map(|&n| u64::from(n)).product();
    if within(block, BLOCK, device) && threads <= u64::from(function.max_threads()) {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Checks a launch on a stream against the function and the device.
pub(crate) fn check_on(function: usize, shape: LaunchShape, stream: &StreamRef) -> Result<CheckedLaunch> {
    let multiprocessors = match stream.green {
        0 => None,
        handle => Some(Arc::clone(&green::get(handle)?.numbers)),
    };
    check(function, shape, &stream.context, multiprocessors)
}

/// Checks a launch in a context against the function and the device. `multiprocessors` are those of a green context;
/// `None` stands for all.
pub(crate) fn check(
    function: usize,
    shape: LaunchShape,
    context: &Arc<Context>,
    multiprocessors: Option<Arc<[u32]>>,
) -> Result<CheckedLaunch> {
    if function == 0 {
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    let function = library::function_for_launch(function, context)?;
    let device = context.device;
    let invalid = |problem: &str| {
        host::log!(
            "launch of `{}` with grid {:?}, block {:?}, {} bytes of shared memory: {problem}",
            function.kernel.name(),
            shape.grid,
            shape.block,
            shape.shared
        );
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    };
    const GRID: [Attribute; 3] = [
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    ];
    if !within(cluster::blocks(&function, shape.grid), GRID, device) {
        return invalid("a grid dimension is 0 or above the device's limit");
    }
    if check_block(shape.block, &function, device).is_err() {
        return invalid("a block dimension is 0 or above the device's limit, or the block has too many threads");
    }
    if function
        .kernel
        .directives()
        .reqntid
        .is_some_and(|required| required.map(|n| n.max(1)) != shape.block)
    {
        return invalid("the kernel requires another block size (.reqntid)");
    }
    if shape.shared > function.max_dynamic_shared() {
        let refused = invalid("the dynamic shared memory exceeds CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES");
        return match shape.cooperative {
            true => Err(Error::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
            false => refused,
        };
    }
    let shared = u64::from(function.kernel.shared_bytes()) + u64::from(shape.shared);
    if shared > u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) {
        return invalid("static and dynamic shared memory exceed the device's limit for a block");
    }
    if !function.kernel.fits_local_memory() {
        return invalid("the kernel's local memory exceeds the device's limit for a thread");
    }
    if let Some(opcode) = function.kernel.unsupported() {
        host::log!("`{}`: unsupported instruction {opcode}", function.kernel.name());
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let shape = LaunchShape {
        cluster: cluster::of_launch(&function, device, shape.cluster, shape.grid)?,
        ..shape
    };
    check_resident(&function, device, shape, multiprocessors.as_deref())?;
    Ok(CheckedLaunch {
        function,
        context: context.clone(),
        shape,
        multiprocessors,
    })
}

impl CheckedLaunch {
    /// Returns the offset and size of each parameter in bytes.
    pub(crate) fn params(&self) -> Vec<(usize, usize)> {
        self.function
            .kernel
            .params()
            .map(|(offset, size)| (offset as usize, size as usize))
            .collect()
    }

    /// Returns the size of all parameters in bytes.
    pub(crate) fn param_bytes(&self) -> usize {
        self.function.kernel.param_bytes() as usize
    }

    /// Adds the arguments. Missing bytes at the end are 0; for excess bytes, returns
    /// `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
    pub(crate) fn with(self, mut params: Vec<u8>) -> Result<ReadyLaunch> {
        let bytes = self.param_bytes();
        if params.len() > bytes {
            host::log!(
                "launch of `{}` with {} bytes of arguments: the kernel takes {bytes} bytes",
                self.function.kernel.name(),
                params.len()
            );
            return Err(Error::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        }
        params.resize(bytes, 0);
        Ok(ReadyLaunch {
            function: self.function,
            context: self.context,
            shape: self.shape,
            multiprocessors: self.multiprocessors,
            params: params.into_boxed_slice(),
        })
    }
}

impl ReadyLaunch {
    /// Returns the theoretical occupancy: the kernel's warps that fit on a multiprocessor at once, divided by the
    /// multiprocessor's maximum number of warps.
    fn occupancy(&self) -> f64 {
        let device = self.context.device;
        let threads: u32 = self.shape.block.iter().product();
        let blocks =
            occupancy::blocks_per_multiprocessor(&self.function, device, threads, u64::from(self.shape.shared));
        let most = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / 32;
        f64::from(blocks * threads.div_ceil(32)) / f64::from(most.max(1))
    }

    /// Returns the work of one launch, and an estimate of its duration in nanoseconds.
    pub(crate) fn work(&self) -> Result<(Work, u64)> {
        self.context.check_alive()?;
        self.check_registers()?;
        self.context.note_launch(&self.function.kernel);
        let device = self.context.device;
        let limit = |attribute| u64::from(device.limit(attribute));
        let threads: u32 = self.shape.block.iter().product();
        let per_multiprocessor = limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)
            .min(limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / u64::from(threads.max(1)));
        let checkers = of_work();
        let workspace = if self.shape.cooperative {
            let made = GridWorkspace::new(self.context.id());
            Some(Arc::new(made.map_err(|_| Error::CUDA_ERROR_OUT_OF_MEMORY)?))
        } else {
            None
        };
        let observers = observation::observers(&checkers);
        let options = Options {
            // The count of registers is an estimate, so it does not limit the number of resident blocks, which is
            // therefore never below a GPU's.
            resident: per_multiprocessor.max(1) * limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            cooperative: self.shape.cooperative,
            cluster: self.shape.cluster,
            workspace,
            multiprocessors: self.multiprocessors.clone(),
            occupancy: if observers.is_empty() { 0.0 } else { self.occupancy() },
            observers,
            ..self.context.launch_options()
        };
        let blocks = cluster::blocks(&self.function, self.shape.grid);
        let launch = Launch {
            kernel: self.function.kernel.clone(),
            grid: blocks,
            block: self.shape.block,
            dynamic_shared: self.shape.shared,
            params: self.params.clone(),
            options,
        };
        let threads = blocks
            .iter()
            .chain(&self.shape.block)
            .fold(1u64, |all, &n| all.saturating_mul(n.into()));
        let ordered = Ordered::kernel(self.function.kernel.name());
        let start = move || -> Arc<dyn Divisible> {
            let execution = ordered::start(launch, ordered);
            let kernel: Arc<dyn Divisible> = if checkers.is_empty() {
                execution.clone()
            } else {
                Arc::new(CheckedKernel {
                    execution: execution.clone(),
                    checkers,
                })
            };
            progress::shown(kernel, &execution)
        };
        Ok((Work::Kernel(Box::new(start)), threads.saturating_mul(5)))
    }
}
