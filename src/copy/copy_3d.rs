//! The builder of copies of rows, rectangles and boxes.

use core::marker::PhantomData;
use core::{fmt, mem, slice};

use super::placed::Placed;
use super::side::{Side, Source, Target};
use crate::stream::synchronize_null;
use crate::sys::{self, CUmemorytype};
use crate::{Context, Result, Stream, checked};

/// A copy of a row, rectangle or box of values. Source and target are host memory, device memory or arrays.
///
/// ```
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::Array;
/// use cuda_driver::array::ArrayShape;
/// use cuda_driver::copy::Copy3d;
///
/// let array = Array::<u16>::new(&context, ArrayShape::d2(8, 4))?;
/// let picture: Vec<u16> = (0..32).collect();
/// Copy3d::new(&picture, &array, [8, 4, 1]).run()?;
///
/// // 3 x 2 values, which start at column 5 of row 1, to the end of rows of 4 values.
/// let mut part = [0u16; 8];
/// Copy3d::new(&array, &mut part, [3, 2, 1])
///     .source_offset([5, 1, 0])
///     .target_offset([1, 0, 0])
///     .run()?;
/// assert_eq!(part, [0, 13, 14, 15, 0, 21, 22, 23]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Extents and offsets are in values, rows and slices; the layers and faces of an array are slices. Memory is a
/// sequence of rows. Without a pitch, rows have no gaps: each is as long as the x-offset plus the width. Without a
/// number of rows, each slice has as many as the y-offset plus the height. Bounds are checked before the driver copies.
///
/// A copy between two contexts is made with `cuMemcpy3DPeer` if the contexts of both sides are known.
#[must_use = "nothing is copied before `run`"]
pub struct Copy3d<'a, T> {
    source: Side<'a>,
    target: Side<'a>,
    extent: [usize; 3],
    values: PhantomData<(&'a [T], &'a mut [T])>,
}

impl<'a, T> Copy3d<'a, T> {
    /// Describes a copy of `extent` values, rows and slices: `[width, 1, 1]` for a row, `[width, height, 1]` for a
    /// rectangle.
    #[inline]
    pub fn new(source: impl Into<Source<'a, T>>, target: impl Into<Target<'a, T>>, extent: [usize; 3]) -> Self {
        Self {
            source: source.into().side,
            target: target.into().side,
            extent,
            values: PhantomData,
        }
    }

    /// Starts at this value, row and slice of the source, instead of at the first.
    #[inline]
    pub const fn source_offset(mut self, offset: [usize; 3]) -> Self {
        self.source.offset = offset;
        self
    }

    /// Starts at this value, row and slice of the target, instead of at the first.
    #[inline]
    pub const fn target_offset(mut self, offset: [usize; 3]) -> Self {
        self.target.offset = offset;
        self
    }

    /// Sets the number of bytes from one row of the source to the next; with 0, rows have no gaps. It has no effect on
    /// an array.
    #[inline]
    pub const fn source_pitch(mut self, bytes: usize) -> Self {
        self.source.pitch = bytes;
        self
    }

    /// Sets the number of bytes from one row of the target to the next; with 0, rows have no gaps. It has no effect on
    /// an array.
    #[inline]
    pub const fn target_pitch(mut self, bytes: usize) -> Self {
        self.target.pitch = bytes;
        self
    }

    /// Sets the number of rows from one slice of the source to the next; with 0, slices have no gaps. It has no effect
    /// on an array.
    #[inline]
    pub const fn source_rows(mut self, rows: usize) -> Self {
        self.source.rows = rows;
        self
    }

    /// Sets the number of rows from one slice of the target to the next; with 0, slices have no gaps. It has no effect
    /// on an array.
    #[inline]
    pub const fn target_rows(mut self, rows: usize) -> Self {
        self.target.rows = rows;
        self
    }

    /// Copies in the null stream: boxes by [`cuMemcpy3D`](checked::memcpy_3d), all copies between contexts by
    /// [`cuMemcpy3DPeer`](checked::memcpy_3d_peer), rectangles in memory and in the first slice of arrays by
    /// [`cuMemcpy2DUnaligned`](checked::memcpy_2d_unaligned), and rows from or to the first row of arrays by
    /// [`cuMemcpyHtoA`](checked::memcpy_htoa), [`cuMemcpyAtoH`](checked::memcpy_atoh),
    /// [`cuMemcpyDtoA`](checked::memcpy_dtoa), [`cuMemcpyAtoD`](checked::memcpy_atod) and
    /// [`cuMemcpyAtoA`](checked::memcpy_atoa). Host memory is no longer accessed when the method returns, as described
    /// at [`DeviceBuffer`](crate::DeviceBuffer). A copy between contexts is done when it returns.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the box is not inside source and target, if a pitch is shorter than a row,
    /// or if a slice has fewer rows than the y-offset plus the height, and `CUDA_ERROR_INVALID_CONTEXT` if neither side
    /// has a known context and none is current. May return an error from the work that was waited for.
    #[inline]
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cuMemcpy2DUnaligned")]
    #[doc(alias = "cuMemcpy3D")]
    #[doc(alias = "cuMemcpy3DPeer")]
    #[doc(alias = "cuMemcpyHtoA")]
    #[doc(alias = "cuMemcpyAtoH")]
    #[doc(alias = "cuMemcpyDtoA")]
    #[doc(alias = "cuMemcpyAtoD")]
    #[doc(alias = "cuMemcpyAtoA")]
    #[track_caller]
    pub fn run(self) -> Result<()> {
        let Some(plan) = Plan::new(&self.source, &self.target, self.extent, size_of::<T>())? else {
            return Ok(());
        };
        let _current = plan.context().map(Context::enter).transpose()?;
        let Plan { source, target, extent } = &plan;
        let bytes = extent[0];
        // SAFETY: both sides contain the box and are borrowed until the end, host memory of the target exclusively.
        // Bytes of the source are initialised, and any bytes are values of the target. When a call returns, it no
        // longer accesses host memory. The null stream is the one of the context that is current.
        unsafe {
            if plan.is_peer() {
                checked::memcpy_3d_peer(&plan.peer())?;
                // Unmapping or freeing the source may not wait for work of the target's context, which is current.
                return synchronize_null();
            }
            if plan.is_row() {
                match (source.kind, target.kind) {
                    (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_ARRAY) => {
                        return checked::memcpy_htoa(target.array, target.offset[0], plan.host_source());
                    }
                    (CUmemorytype::CU_MEMORYTYPE_ARRAY, CUmemorytype::CU_MEMORYTYPE_HOST) => {
                        return checked::memcpy_atoh(plan.host_target(), source.array, source.offset[0]);
                    }
                    (CUmemorytype::CU_MEMORYTYPE_DEVICE, CUmemorytype::CU_MEMORYTYPE_ARRAY) => {
                        return checked::memcpy_dtoa(target.array, target.offset[0], source.device, bytes);
                    }
                    (CUmemorytype::CU_MEMORYTYPE_ARRAY, CUmemorytype::CU_MEMORYTYPE_DEVICE) => {
                        return checked::memcpy_atod(target.device, source.array, source.offset[0], bytes);
                    }
                    (CUmemorytype::CU_MEMORYTYPE_ARRAY, CUmemorytype::CU_MEMORYTYPE_ARRAY) => {
                        let (to, from) = (target.offset[0], source.offset[0]);
                        return checked::memcpy_atoa(target.array, to, source.array, from, bytes);
                    }
                    _ => {}
                }
            }
            if plan.is_rectangle() {
                return checked::memcpy_2d_unaligned(&plan.rectangle());
            }
            checked::memcpy_3d(&plan.cuboid())
        }
    }

    /// Queues the copy in a stream: boxes by [`cuMemcpy3DAsync`](checked::memcpy_3d_async), all copies between contexts
    /// by [`cuMemcpy3DPeerAsync`](checked::memcpy_3d_peer_async), rectangles in memory and in the first slice of arrays
    /// by [`cuMemcpy2DAsync`](checked::memcpy_2d_async), and rows between host memory and the first row of arrays by
    /// [`cuMemcpyHtoAAsync`](checked::memcpy_htoa_async) and [`cuMemcpyAtoHAsync`](checked::memcpy_atoh_async). In a
    /// default stream, the caller must make a context current.
    ///
    /// # Safety
    /// Until the copy is done, source and target must stay valid. Host memory of the target must not be accessed, and
    /// host memory of the source must not be written. Other work must not write the source or access the target, unless
    /// it waits for the copy.
    ///
    /// If the stream is being [captured](Stream::capture), this applies whenever the graph runs, and an array must live
    /// as long as the graph and everything made from it: pass it to [`Graph::keep`](crate::Graph::keep).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the box is not inside source and target, if a pitch is shorter than a row,
    /// or if a slice has fewer rows than the y-offset plus the height.
    #[inline]
    #[doc(alias = "cuMemcpy2DAsync")]
    #[doc(alias = "cuMemcpy3DAsync")]
    #[doc(alias = "cuMemcpy3DPeerAsync")]
    #[doc(alias = "cuMemcpyHtoAAsync")]
    #[doc(alias = "cuMemcpyAtoHAsync")]
    #[track_caller]
    pub unsafe fn run_async(self, stream: &Stream) -> Result<()> {
        let Some(plan) = Plan::new(&self.source, &self.target, self.extent, size_of::<T>())? else {
            return Ok(());
        };
        let Plan { source, target, .. } = &plan;
        let queue = stream.as_raw();
        // SAFETY: both sides contain the box; the rest is upheld by the caller.
        unsafe {
            if plan.is_peer() {
                return checked::memcpy_3d_peer_async(&plan.peer(), queue);
            }
            if plan.is_row() {
                match (source.kind, target.kind) {
                    (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_ARRAY) => {
                        return checked::memcpy_htoa_async(target.array, target.offset[0], plan.host_source(), queue);
                    }
                    (CUmemorytype::CU_MEMORYTYPE_ARRAY, CUmemorytype::CU_MEMORYTYPE_HOST) => {
                        return checked::memcpy_atoh_async(plan.host_target(), source.array, source.offset[0], queue);
                    }
                    _ => {}
                }
            }
            if plan.is_rectangle() {
                return checked::memcpy_2d_async(&plan.rectangle(), queue);
            }
            checked::memcpy_3d_async(&plan.cuboid(), queue)
        }
    }
}

impl<T> fmt::Debug for Copy3d<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy3d")
            .field("source", &self.source)
            .field("target", &self.target)
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}

/// A copy whose bounds are checked. Widths are in bytes.
struct Plan<'a> {
    source: Placed<'a>,
    target: Placed<'a>,
    /// Bytes, rows and slices.
    extent: [usize; 3],
}

impl<'a> Plan<'a> {
    /// Checks a copy of values of `value` bytes. Returns `None` if there is nothing to copy.
    #[inline]
    #[track_caller]
    fn new(source: &Side<'a>, target: &Side<'a>, extent: [usize; 3], value: usize) -> Result<Option<Self>> {
        if value == 0 || extent.contains(&0) {
            return Ok(None);
        }
        let source = Placed::new(source, extent, value)?;
        let target = Placed::new(target, extent, value)?;
        let [width, height, depth] = extent;
        Ok(Some(Self {
            source,
            target,
            // Does not saturate: the memory or the array that contains the box has at least as many bytes.
            extent: [width.saturating_mul(value), height, depth],
        }))
    }

    /// Returns the context in which the copy is made, if it is known.
    #[inline]
    fn context(&self) -> Option<&'a Context> {
        self.target.context.or(self.source.context)
    }

    /// Returns true if the contexts of both sides are known, and differ.
    #[inline]
    fn is_peer(&self) -> bool {
        matches!((self.source.context, self.target.context), (Some(from), Some(to)) if from != to)
    }

    /// Returns true if the copy is of one row, which is the first row of each array.
    #[inline]
    fn is_row(&self) -> bool {
        self.is_rectangle() && self.extent[1] == 1 && self.source.offset[1] == 0 && self.target.offset[1] == 0
    }

    /// Returns true if the copy is of one slice, which is the first slice of each array.
    #[inline]
    fn is_rectangle(&self) -> bool {
        self.extent[2] == 1 && self.source.offset[2] == 0 && self.target.offset[2] == 0
    }

    /// Returns the bytes of the source, for a copy of one row.
    ///
    /// # Safety
    /// The source must be in host memory, and must stay borrowed as long as the returned slice is used.
    #[inline]
    unsafe fn host_source(&self) -> &[u8] {
        // SAFETY: the memory contains the row; the rest is upheld by the caller.
        unsafe { slice::from_raw_parts(self.source.host.cast(), self.extent[0]) }
    }

    /// Returns the bytes of the target, for a copy of one row.
    ///
    /// # Safety
    /// The target must be in host memory, and must stay borrowed as long as the returned slice is used.
    #[inline]
    #[allow(clippy::mut_from_ref)] // The memory does not belong to `self`.
    unsafe fn host_target(&self) -> &mut [mem::MaybeUninit<u8>] {
        // SAFETY: the memory contains the row; the rest is upheld by the caller.
        unsafe { slice::from_raw_parts_mut(self.target.host.cast(), self.extent[0]) }
    }

    #[inline]
    fn rectangle(&self) -> sys::CUDA_MEMCPY2D {
        let Self { source, target, extent } = self;
        sys::CUDA_MEMCPY2D {
            srcXInBytes: source.offset[0],
            srcY: source.offset[1],
            srcMemoryType: source.kind,
            srcHost: source.host,
            srcDevice: source.device,
            srcArray: source.array,
            srcPitch: source.pitch,
            dstXInBytes: target.offset[0],
            dstY: target.offset[1],
            dstMemoryType: target.kind,
            dstHost: target.host,
            dstDevice: target.device,
            dstArray: target.array,
            dstPitch: target.pitch,
            WidthInBytes: extent[0],
            Height: extent[1],
        }
    }

    #[inline]
    fn cuboid(&self) -> sys::CUDA_MEMCPY3D {
        let Self { source, target, extent } = self;
        sys::CUDA_MEMCPY3D {
            srcXInBytes: source.offset[0],
            srcY: source.offset[1],
            srcZ: source.offset[2],
            srcMemoryType: source.kind,
            srcHost: source.host,
            srcDevice: source.device,
            srcArray: source.array,
            srcPitch: source.pitch,
            srcHeight: source.rows,
            dstXInBytes: target.offset[0],
            dstY: target.offset[1],
            dstZ: target.offset[2],
            dstMemoryType: target.kind,
            dstHost: target.host,
            dstDevice: target.device,
            dstArray: target.array,
            dstPitch: target.pitch,
            dstHeight: target.rows,
            WidthInBytes: extent[0],
            Height: extent[1],
            Depth: extent[2],
            ..Default::default()
        }
    }

    #[inline]
    fn peer(&self) -> sys::CUDA_MEMCPY3D_PEER {
        let Self { source, target, extent } = self;
        let context = |side: &Placed<'_>| side.context.map_or(core::ptr::null_mut(), Context::as_raw);
        sys::CUDA_MEMCPY3D_PEER {
            srcXInBytes: source.offset[0],
            srcY: source.offset[1],
            srcZ: source.offset[2],
            srcMemoryType: source.kind,
            srcDevice: source.device,
            srcArray: source.array,
            srcContext: context(source),
            srcPitch: source.pitch,
            srcHeight: source.rows,
            dstXInBytes: target.offset[0],
            dstY: target.offset[1],
            dstZ: target.offset[2],
            dstMemoryType: target.kind,
            dstDevice: target.device,
            dstArray: target.array,
            dstContext: context(target),
            dstPitch: target.pitch,
            dstHeight: target.rows,
            WidthInBytes: extent[0],
            Height: extent[1],
            Depth: extent[2],
            ..Default::default()
        }
    }
}
