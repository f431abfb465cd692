//! Launch configurations: the grid, the block and the dynamic shared memory.
#![forbid(unsafe_code)]

/// A size in three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Dim3 {
    /// The first dimension, in which the threads of a warp are consecutive.
    pub x: u32,
    /// The second dimension.
    pub y: u32,
    /// The third dimension.
    pub z: u32,
}

impl Dim3 {
    /// Returns the number of blocks that cover `threads`: in each dimension the quotient, rounded up. A dimension of
    /// `block` that is 0 counts as 1.
    #[inline]
    #[must_use]
    pub fn covering(threads: impl Into<Self>, block: impl Into<Self>) -> Self {
        let (threads, block) = (threads.into(), block.into());
        Self {
            x: threads.x.div_ceil(block.x.max(1)),
            y: threads.y.div_ceil(block.y.max(1)),
            z: threads.z.div_ceil(block.z.max(1)),
        }
    }
}

impl Default for Dim3 {
    /// Returns 1 in each dimension.
    #[inline]
    fn default() -> Self {
        Self { x: 1, y: 1, z: 1 }
    }
}

impl From<u32> for Dim3 {
    #[inline]
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    #[inline]
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    #[inline]
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

/// The grid, the block and the shared memory of a launch. The default is one block of one thread.
///
/// Later versions may add fields, so end a literal with `..Default::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LaunchConfig {
    /// The number of blocks.
    pub grid: Dim3,
    /// The number of threads in a block.
    pub block: Dim3,
    /// The dynamic shared memory of each block, in bytes.
    pub dynamic_shared_bytes: u32,
}

impl LaunchConfig {
    /// Returns the configuration with blocks of `block` threads, as many as cover `threads` in each dimension, and
    /// without dynamic shared memory. If `threads` is not a multiple of `block` in a dimension, the kernel must ignore
    /// the excess threads of the last blocks.
    ///
    /// ```
    /// use cuda_driver::LaunchConfig;
    ///
    /// let config = LaunchConfig::covering(1000, 256);
    /// assert_eq!((config.grid.x, config.block.x), (4, 256));
    /// let config = LaunchConfig::covering((1920, 1080), (16, 16));
    /// assert_eq!((config.grid.x, config.grid.y), (120, 68));
    /// ```
    #[inline]
    #[must_use]
    pub fn covering(threads: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        let block = block.into();
        Self {
            grid: Dim3::covering(threads, block),
            block,
            dynamic_shared_bytes: 0,
        }
    }
}
