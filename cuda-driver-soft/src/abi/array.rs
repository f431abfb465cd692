//! Exports of arrays and mipmapped arrays, and byte copies to and from them.

use std::ffi::{c_uint, c_void};

use cuda_driver_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1, CUarray,
    CUarray_format, CUdeviceptr, CUmipmappedArray, CUstream,
};

use super::args::Caller;
use super::exports;
use crate::call::lookup::current_context;
use crate::call::{stream, submit};
use crate::object::array::{self, ArrayDescriptor};
use crate::object::stream::NullStream;
use crate::operation::copy::Waits::{self, Asynchronous, Synchronous};
use crate::operation::region::{Base, Extent, Side};
use crate::state::error::{Error, Result};

/// The NULL stream, used by the synchronous copies.
const NULL: CUstream = std::ptr::null_mut();

/// Converts an array descriptor of any of the four C structures.
macro_rules! descriptor {
    ($d:expr, $depth:expr, $flags:expr) => {
        $crate::object::array::ArrayDescriptor {
            width: $d.Width as u64,
            height: $d.Height as u64,
            depth: $depth as u64,
            format: $d.Format.0,
            channels: $d.NumChannels,
            flags: $flags,
        }
    };
}
pub(super) use descriptor as array_descriptor;

fn format(descriptor: &ArrayDescriptor) -> CUarray_format {
    CUarray_format(descriptor.format)
}

/// Returns the descriptor of an array. `out` is false if the caller passed NULL for the result: then returns
/// `CUDA_ERROR_INVALID_VALUE`, but only if the handle is valid.
fn described(array: CUarray, out: bool) -> Result<ArrayDescriptor> {
    let array = array::get(array as usize)?;
    if out {
        Ok(array.descriptor)
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the source or destination of a byte copy. `offset` is in bytes, and in an array it lies in the first row.
fn side(base: Base, offset: usize) -> Side {
    Side {
        base,
        offset: [offset as u64, 0, 0],
        pitch: 0,
        rows: 0,
    }
}

/// A copy of `count` bytes, of which the source, the destination or both are in the first row of an array.
struct ByteCopy {
    c: Caller,
    mode: NullStream,
    stream: CUstream,
    waits: Waits,
    count: usize,
}

impl ByteCopy {
    fn copy(self, to: Side, from: Side) -> Result<()> {
        let stream = stream::for_copy(self.stream as usize, self.mode, self.waits)?;
        // Even a copy of 0 bytes must not have a NULL array or host pointer.
        for side in [&to, &from] {
            if matches!(side.base, Base::Array(0, _) | Base::Host(0)) {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        let extent = Extent {
            width: self.count as u64,
            height: 1,
            depth: 1,
        };
        submit::copy_box(to, from, extent, &stream, self.waits, self.c.host_at())
    }
}

fn in_array(array: CUarray, offset: usize) -> Side {
    side(Base::Array(array as usize, 0), offset)
}

fn in_host(pointer: *const c_void) -> Side {
    side(Base::Host(pointer as u64), 0)
}

fn on_device(address: CUdeviceptr) -> Side {
    side(Base::Device(address), 0)
}

exports! {
    fn cuArrayCreate_v2 [c] (out: *mut CUarray, descriptor: *const CUDA_ARRAY_DESCRIPTOR) {
        let context = current_context()?;
        let (out, d) = (c.out(out)?, c.read(descriptor)?);
        out.set(array::create(&context, descriptor!(d, 0, 0))? as CUarray);
        Ok(())
    }

    fn cuArrayCreate [c] (out: *mut CUarray, descriptor: *const CUDA_ARRAY_DESCRIPTOR_v1) {
        let context = current_context()?;
        let (out, d) = (c.out(out)?, c.read(descriptor)?);
        out.set(array::create(&context, descriptor!(d, 0, 0))? as CUarray);
        Ok(())
    }

    fn cuArray3DCreate_v2 [c] (out: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR) {
        let context = current_context()?;
        let (out, d) = (c.out(out)?, c.read(descriptor)?);
        out.set(array::create(&context, descriptor!(d, d.Depth, d.Flags))? as CUarray);
        Ok(())
    }

    fn cuArray3DCreate [c] (out: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR_v1) {
        let context = current_context()?;
        let (out, d) = (c.out(out)?, c.read(descriptor)?);
        out.set(array::create(&context, descriptor!(d, d.Depth, d.Flags))? as CUarray);
        Ok(())
    }

    healthy fn cuArrayDestroy [_c] (array: CUarray) {
        array::destroy(array as usize)
    }

    healthy fn cuArrayGetDescriptor_v2 [c] (out: *mut CUDA_ARRAY_DESCRIPTOR, array: CUarray) {
        let d = described(array, !out.is_null())?;
        c.out(out)?.set(CUDA_ARRAY_DESCRIPTOR {
            Width: d.width as usize,
            Height: d.height as usize,
            Format: format(&d),
            NumChannels: d.channels,
        });
        Ok(())
    }

    healthy fn cuArrayGetDescriptor [c] (out: *mut CUDA_ARRAY_DESCRIPTOR_v1, array: CUarray) {
        let d = described(array, !out.is_null())?;
        c.out(out)?.set(CUDA_ARRAY_DESCRIPTOR_v1 {
            Width: d.width as c_uint,
            Height: d.height as c_uint,
            Format: format(&d),
            NumChannels: d.channels,
        });
        Ok(())
    }

    healthy fn cuArray3DGetDescriptor_v2 [c] (out: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray) {
        let d = described(array, !out.is_null())?;
        c.out(out)?.set(CUDA_ARRAY3D_DESCRIPTOR {
            Width: d.width as usize,
            Height: d.height as usize,
            Depth: d.depth as usize,
            Format: format(&d),
            NumChannels: d.channels,
            Flags: d.flags,
        });
        Ok(())
    }

    healthy fn cuArray3DGetDescriptor [c] (out: *mut CUDA_ARRAY3D_DESCRIPTOR_v1, array: CUarray) {
        let d = described(array, !out.is_null())?;
        c.out(out)?.set(CUDA_ARRAY3D_DESCRIPTOR_v1 {
            Width: d.width as c_uint,
            Height: d.height as c_uint,
            Depth: d.depth as c_uint,
            Format: format(&d),
            NumChannels: d.channels,
            Flags: d.flags,
        });
        Ok(())
    }

    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for an array of one plane; this driver has no others.
    fn cuArrayGetPlane [c] (out: *mut CUarray, array: CUarray, _plane: c_uint) {
        current_context()?;
        c.out(out)?;
        array::get(array as usize)?;
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }

    fn cuMipmappedArrayCreate [c] (
        out: *mut CUmipmappedArray,
        descriptor: *const CUDA_ARRAY3D_DESCRIPTOR,
        levels: c_uint,
    ) {
        let context = current_context()?;
        let (out, d) = (c.out(out)?, c.read(descriptor)?);
        out.set(
            array::create_mipmap(&context, descriptor!(d, d.Depth, d.Flags), levels)?
                as CUmipmappedArray,
        );
        Ok(())
    }

    healthy fn cuMipmappedArrayGetLevel [c] (out: *mut CUarray, mipmap: CUmipmappedArray, level: c_uint) {
        array::mipmap(mipmap as usize)?;
        let out = c.out(out)?;
        out.set(array::level(mipmap as usize, level)? as CUarray);
        Ok(())
    }

    healthy fn cuMipmappedArrayDestroy [_c] (mipmap: CUmipmappedArray) {
        array::destroy_mipmap(mipmap as usize)
    }

    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds [c, mode] (
        to: CUarray,
        offset: usize,
        from: *const c_void,
        count: usize,
    ) {
        ByteCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            count,
        }
        .copy(in_array(to, offset), in_host(from))
    }

    fn cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz [c, mode] (
        to: CUarray,
        offset: usize,
        from: *const c_void,
        count: usize,
        stream: CUstream,
    ) {
        ByteCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            count,
        }
        .copy(in_array(to, offset), in_host(from))
    }

    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds [c, mode] (
        to: *mut c_void,
        from: CUarray,
        offset: usize,
        count: usize,
    ) {
        ByteCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            count,
        }
        .copy(in_host(to), in_array(from, offset))
    }

    fn cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz [c, mode] (
        to: *mut c_void,
        from: CUarray,
        offset: usize,
        count: usize,
        stream: CUstream,
    ) {
        ByteCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            count,
        }
        .copy(in_host(to), in_array(from, offset))
    }

    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds [c, mode] (
        to: CUarray,
        offset: usize,
        from: CUdeviceptr,
        count: usize,
    ) {
        ByteCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            count,
        }
        .copy(in_array(to, offset), on_device(from))
    }

    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds [c, mode] (
        to: CUdeviceptr,
        from: CUarray,
        offset: usize,
        count: usize,
    ) {
        ByteCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            count,
        }
        .copy(on_device(to), in_array(from, offset))
    }

    fn cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds [c, mode] (
        to: CUarray,
        to_offset: usize,
        from: CUarray,
        from_offset: usize,
        count: usize,
    ) {
        ByteCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            count,
        }
        .copy(in_array(to, to_offset), in_array(from, from_offset))
    }
}
