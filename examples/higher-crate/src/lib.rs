//! Vectors of `f32` on a GPU: an example of a crate with a safe interface that uses `cuda-driver`.

mod kernel;

use cuda_driver::sys::{CUresult, Function};
use cuda_driver::{Context, Device, DeviceBuffer, DevicePtr, LaunchConfig, Module, Result, Stream, check};
use kernel::Kernel;

/// PTX of `kernels/vector.cu`.
const PTX: &str = include_str!("../kernels/vector.ptx");

/// Threads per block. The kernel `sum` requires this number.
const THREADS: u32 = 256;

/// A GPU with the kernels of this crate.
#[derive(Debug)]
pub struct Gpu {
    context: Context,
    stream: Stream,
    axpy: Kernel<(f32, DevicePtr, DevicePtr, u32)>,
    sum: Kernel<(DevicePtr, DevicePtr, u32)>,
}

/// A vector in the memory of a [`Gpu`].
#[derive(Debug)]
pub struct Vector(DeviceBuffer<f32>);

impl Gpu {
    /// Loads the kernels on the first device.
    pub fn new() -> Result<Gpu> {
        cuda_driver::init()?;
        let context = Context::create(Device::first()?)?;
        let module = Module::from_ptx(&context, PTX)?;
        Ok(Gpu {
            stream: Stream::new(&context)?,
            // SAFETY: the kernel is `axpy(float, const float*, float*, unsigned)`.
            axpy: unsafe { Kernel::new(module.function("axpy")?) },
            // SAFETY: the kernel is `sum(const float*, float*, unsigned)`.
            sum: unsafe { Kernel::new(module.function("sum")?) },
            context,
        })
    }

    /// Copies values to a new vector.
    pub fn vector(&self, values: &[f32]) -> Result<Vector> {
        DeviceBuffer::from_slice(&self.context, values).map(Vector)
    }

    /// Adds `a * x` to `y`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` for a vector of another [`Gpu`].
    ///
    /// # Panics
    /// Panics if the lengths differ, or if the vectors have 2^32 values or more.
    pub fn axpy(&self, a: f32, x: &Vector, y: &mut Vector) -> Result<()> {
        assert_eq!(x.len(), y.len(), "the vectors differ in length");
        self.check_owner(x)?;
        self.check_owner(y)?;
        let Some(config) = config(x.len()) else { return Ok(()) };
        // SAFETY: both buffers are of this GPU and have this length, and only this call uses `y` until the kernel is
        // done.
        unsafe {
            self.axpy
                .launch(&self.stream, config, (a, x.0.ptr(), y.0.ptr(), x.len()))?
        };
        self.stream.synchronize()
    }

    /// Returns the sum of a vector's values.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` for a vector of another [`Gpu`].
    ///
    /// # Panics
    /// Panics if the vector has 2^32 values or more.
    pub fn sum(&self, x: &Vector) -> Result<f32> {
        self.check_owner(x)?;
        let Some(config) = config(x.len()) else { return Ok(0.0) };
        let sums = DeviceBuffer::<f32>::zeroed(&self.context, config.grid.x as usize)?;
        // SAFETY: `x` is of this GPU and has this length, and `sums` has a value for each block.
        unsafe {
            self.sum
                .launch(&self.stream, config, (x.0.ptr(), sums.ptr(), x.len()))?
        };
        self.stream.synchronize()?;
        Ok(sums.to_vec()?.iter().sum())
    }

    /// Returns an error for a vector of another [`Gpu`], whose memory this one's kernels may be unable to access.
    #[track_caller]
    fn check_owner(&self, vector: &Vector) -> Result<()> {
        if vector.0.context().as_raw() == self.context.as_raw() {
            return Ok(());
        }
        check(CUresult::CUDA_ERROR_INVALID_CONTEXT, Function::cuLaunchKernel)
    }
}

impl Vector {
    /// Copies the values to the host.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        self.0.to_vec()
    }

    fn len(&self) -> u32 {
        u32::try_from(self.0.len()).expect("a vector has fewer than 2^32 values")
    }
}

/// Returns a launch with a thread for each value; `None` without values, because a grid has at least one block.
fn config(len: u32) -> Option<LaunchConfig> {
    (len > 0).then(|| LaunchConfig {
        grid: len.div_ceil(THREADS).into(),
        block: THREADS.into(),
        ..Default::default()
    })
}
