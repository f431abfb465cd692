//! Exports that copy rectangles and boxes of bytes (`cuMemcpy2D…`, `cuMemcpy3D…`).

use std::ffi::c_void;

use cuda_driver_sys::CUdevice_attribute as Attribute;
use cuda_driver_sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUdeviceptr, CUmemorytype, CUstream};

use super::args::Caller;
use super::exports;
use crate::call::lookup::current_context;
use crate::call::{stream, submit};
use crate::object::stream::NullStream;
use crate::operation::copy::Waits::{self, Asynchronous, Synchronous};
use crate::operation::region::{Base, Extent, Side};
use crate::state::error::{Error, Result};

/// The NULL stream, used by the synchronous copies.
const NULL: CUstream = std::ptr::null_mut();

/// An array and its mipmap level.
type ArrayLevel = (CUarray, u32);

fn base(kind: CUmemorytype, host: *const c_void, device: CUdeviceptr, array: ArrayLevel) -> Base {
    match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => Base::Host(host as u64),
        CUmemorytype::CU_MEMORYTYPE_DEVICE => Base::Device(device),
        CUmemorytype::CU_MEMORYTYPE_UNIFIED => Base::Unified(device),
        CUmemorytype::CU_MEMORYTYPE_ARRAY => Base::Array(array.0 as usize, array.1),
        _ => Base::Nothing,
    }
}

/// Both sides of a rectangle or box copy, and its extent.
pub(super) struct CopySides {
    pub(super) to: Side,
    pub(super) from: Side,
    pub(super) extent: Extent,
}

fn run(
    c: Caller,
    sides: impl FnOnce() -> Result<CopySides>,
    hstream: CUstream,
    mode: NullStream,
    waits: Waits,
) -> Result<()> {
    let stream = stream::for_copy(hstream as usize, mode, waits)?;
    let sides = sides()?;
    submit::copy_box(sides.to, sides.from, sides.extent, &stream, waits, c.host_at())
}

/// Reads a rectangle copy. `aligned` is false for `cuMemcpy2DUnaligned`, which accepts a pitch above the device's
/// limit. The other functions do so only for a single row.
fn rectangle(c: Caller, copy: *const CUDA_MEMCPY2D, aligned: bool) -> Result<CopySides> {
    let copy = c.read(copy)?;
    let side = |kind, host, device, array, x: usize, y: usize, pitch: usize| Side {
        base: base(kind, host, device, (array, 0)),
        offset: [x as u64, y as u64, 0],
        pitch: pitch as u64,
        rows: 0,
    };
    let sides = CopySides {
        to: side(
            copy.dstMemoryType,
            copy.dstHost.cast_const(),
            copy.dstDevice,
            copy.dstArray,
            copy.dstXInBytes,
            copy.dstY,
            copy.dstPitch,
        ),
        from: side(
            copy.srcMemoryType,
            copy.srcHost,
            copy.srcDevice,
            copy.srcArray,
            copy.srcXInBytes,
            copy.srcY,
            copy.srcPitch,
        ),
        extent: Extent {
            width: copy.WidthInBytes as u64,
            height: copy.Height as u64,
            depth: 1,
        },
    };
    let most = current_context().map_or(u64::MAX, |context| {
        context.device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH).into()
    });
    if aligned && copy.Height > 1 && (sides.to.pitch > most || sides.from.pitch > most) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(sides)
}

/// Reads the members that `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER` have in common.
macro_rules! sides_of_box {
    ($copy:expr) => {{
        let copy = $copy;
        CopySides {
            to: Side {
                base: base(
                    copy.dstMemoryType,
                    copy.dstHost.cast_const(),
                    copy.dstDevice,
                    (copy.dstArray, copy.dstLOD as u32),
                ),
                offset: [copy.dstXInBytes as u64, copy.dstY as u64, copy.dstZ as u64],
                pitch: copy.dstPitch as u64,
                rows: copy.dstHeight as u64,
            },
            from: Side {
                base: base(
                    copy.srcMemoryType,
                    copy.srcHost,
                    copy.srcDevice,
                    (copy.srcArray, copy.srcLOD as u32),
                ),
                offset: [copy.srcXInBytes as u64, copy.srcY as u64, copy.srcZ as u64],
                pitch: copy.srcPitch as u64,
                rows: copy.srcHeight as u64,
            },
            extent: Extent {
                width: copy.WidthInBytes as u64,
                height: copy.Height as u64,
                depth: copy.Depth as u64,
            },
        }
    }};
}

pub(super) fn cuboid(c: Caller, copy: *const CUDA_MEMCPY3D) -> Result<CopySides> {
    Ok(sides_of_box!(c.read(copy)?))
}

fn peer(c: Caller, copy: *const CUDA_MEMCPY3D_PEER) -> Result<CopySides> {
    let copy = c.read(copy)?;
    super::copy::check_peers(copy.dstContext, copy.srcContext)?;
    Ok(sides_of_box!(copy))
}

exports! {
    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds [c, mode] (copy: *const CUDA_MEMCPY2D) {
        run(c, || rectangle(c, copy, true), NULL, mode, Synchronous)
    }

    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds [c, mode] (copy: *const CUDA_MEMCPY2D) {
        run(c, || rectangle(c, copy, false), NULL, mode, Synchronous)
    }

    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz [c, mode] (
        copy: *const CUDA_MEMCPY2D,
        hstream: CUstream,
    ) {
        run(c, || rectangle(c, copy, true), hstream, mode, Asynchronous)
    }

    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds [c, mode] (copy: *const CUDA_MEMCPY3D) {
        run(c, || cuboid(c, copy), NULL, mode, Synchronous)
    }

    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz [c, mode] (
        copy: *const CUDA_MEMCPY3D,
        hstream: CUstream,
    ) {
        run(c, || cuboid(c, copy), hstream, mode, Asynchronous)
    }

    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds [c, mode] (copy: *const CUDA_MEMCPY3D_PEER) {
        run(c, || peer(c, copy), NULL, mode, Synchronous)
    }

    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz [c, mode] (
        copy: *const CUDA_MEMCPY3D_PEER,
        hstream: CUstream,
    ) {
        // Driver 580 does not capture these copies: a stream that captures is an error.
        stream::for_work(hstream as usize, mode)?;
        run(c, || peer(c, copy), hstream, mode, Asynchronous)
    }
}
