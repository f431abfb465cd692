//! Exports that copy memory in one piece, synchronously and in stream order.

use std::ffi::c_void;

use cuda_driver_sys::{CUcontext, CUdeviceptr, CUstream};

use super::args::Caller;
use super::exports;
use crate::call::{stream, submit};
use crate::object::context;
use crate::object::place::MemoryPlace;
use crate::object::stream::NullStream;
use crate::operation::copy::Waits;
use crate::operation::region::Base;
use crate::state::error::Result;
use crate::state::gate;

/// The NULL stream, used by the synchronous copies.
const NULL: CUstream = std::ptr::null_mut();

/// Returns the memory at an address, which may be device memory or memory of the program.
pub(super) fn unified_place(c: Caller, address: u64, bytes: usize) -> Result<MemoryPlace> {
    MemoryPlace::of(c.host(address as *const c_void, bytes), bytes as u64)
}

/// A copy of `bytes` bytes in one piece.
struct LinearCopy {
    c: Caller,
    mode: NullStream,
    stream: CUstream,
    waits: Waits,
    bytes: usize,
    to: Base,
    from: Base,
}

impl LinearCopy {
    fn run(self) -> Result<()> {
        let stream = stream::for_copy(self.stream as usize, self.mode, self.waits)?;
        let bytes = self.bytes as u64;
        submit::copy_row(self.to, self.from, bytes, &stream, self.waits, self.c.host_at())
    }
}

use crate::operation::region::Base::{Device as device, Unified as any};

/// Returns memory of the program.
fn host(pointer: *const c_void) -> Base {
    Base::Host(pointer as u64)
}

/// Checks that no fault was reported, and that the contexts of a peer copy are live; NULL, for the current one, is not
/// checked. The contexts have no other effect, because all memory is in one address space.
pub(super) fn check_peers(to: CUcontext, from: CUcontext) -> Result<()> {
    gate::healthy()?;
    for handle in [to, from] {
        if !handle.is_null() {
            context::by_handle(handle as usize)?;
        }
    }
    Ok(())
}

use crate::operation::copy::Waits::{Asynchronous, Synchronous};

exports! {
    fn cuMemcpy | cuMemcpy_ptds [c, mode] (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        LinearCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            bytes,
            to: any(to),
            from: any(from),
        }
        .run()
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz [c, mode] (
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) {
        LinearCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            bytes,
            to: any(to),
            from: any(from),
        }
        .run()
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds [c, mode] (
        to: CUdeviceptr,
        from: *const c_void,
        bytes: usize,
    ) {
        LinearCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            bytes,
            to: device(to),
            from: host(from),
        }
        .run()
    }

    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz [c, mode] (
        to: CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        stream: CUstream,
    ) {
        LinearCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            bytes,
            to: device(to),
            from: host(from),
        }
        .run()
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds [c, mode] (
        to: *mut c_void,
        from: CUdeviceptr,
        bytes: usize,
    ) {
        LinearCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            bytes,
            to: host(to.cast_const()),
            from: device(from),
        }
        .run()
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz [c, mode] (
        to: *mut c_void,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) {
        LinearCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            bytes,
            to: host(to.cast_const()),
            from: device(from),
        }
        .run()
    }

    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds [c, mode] (
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
    ) {
        LinearCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            bytes,
            to: device(to),
            from: device(from),
        }
        .run()
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz [c, mode] (
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) {
        LinearCopy {
            c,
            mode,
            stream,
            waits: Asynchronous,
            bytes,
            to: device(to),
            from: device(from),
        }
        .run()
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptds [c, mode] (
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
    ) {
        check_peers(to_context, from_context)?;
        LinearCopy {
            c,
            mode,
            stream: NULL,
            waits: Synchronous,
            bytes,
            to: device(to),
            from: device(from),
        }
        .run()
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz [c, mode] (
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    ) {
        check_peers(to_context, from_context)?;
        // Driver 580 does not capture these copies: a stream that captures is an error.
        let stream = stream::for_work(stream as usize, mode)?;
        submit::copy_row(device(to), device(from), bytes as u64, &stream, Asynchronous, c.host_at())
    }
}
