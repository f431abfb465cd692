//! Copies in one piece.

use std::ffi::c_void;
use std::sync::Arc;

use cuda_driver_sys::{CUcontext, CUdeviceptr, CUstream};

use super::args::Caller;
use super::exports;
use crate::driver::capture;
use crate::driver::context;
use crate::driver::copy::{Waits, copy};
use crate::driver::error::{Error, Result};
use crate::driver::graph::node::{Action, CopyNode};
use crate::driver::memory::Place;
use crate::driver::process::driver_without_fault;
use crate::driver::rect::{Base, Extent, Side};
use crate::driver::stream::{self, Mode};

/// The NULL stream, which the synchronous copies work on.
const NULL: CUstream = std::ptr::null_mut();

/// Memory at an address that may be the device's or the program's.
pub(super) fn anywhere(c: Caller, address: u64, bytes: usize) -> Result<Place> {
    Place::of(c.host(address as *const c_void, bytes), bytes as u64)
}

struct Copy {
    c: Caller,
    mode: Mode,
    stream: CUstream,
    waits: Waits,
    bytes: usize,
    to: Base,
    from: Base,
}

impl Copy {
    fn run(self) -> Result<()> {
        driver_without_fault()?;
        let stream = match self.waits {
            Synchronous => stream::for_work(self.stream as usize, self.mode)?,
            Asynchronous => stream::for_capture(self.stream as usize, self.mode)?,
        };
        if self.bytes == 0 {
            return Ok(());
        }
        if stream.is_capturing() {
            let extent = Extent {
                width: self.bytes as u64,
                height: 1,
                depth: 1,
            };
            let host =
                |address: u64, bytes: u64| self.c.host(address as *const c_void, bytes as usize);
            let (to, from) = (Side::row(self.to), Side::row(self.from));
            let node = CopyNode::new(to, from, extent, &host)?;
            return capture::add(&stream, Action::Copy(Arc::new(node)));
        }
        let place = |base| match base {
            Base::Device(address) => Place::device(address, self.bytes as u64),
            Base::Host(address) | Base::Unified(address) => anywhere(self.c, address, self.bytes),
            Base::Array(..) | Base::Nothing => Err(Error::INVALID_VALUE),
        };
        let (to, from) = (place(self.to)?, place(self.from)?);
        copy(to, from, self.bytes as u64, &stream, self.waits)
    }
}

use Base::{Device as device, Unified as any};

/// Memory of the program.
fn host(pointer: *const c_void) -> Base {
    Base::Host(pointer as u64)
}

/// Contexts of a peer copy must live; NULL is the current one. What they are does not matter: all memory is in one address space.
pub(super) fn check_peers(to: CUcontext, from: CUcontext) -> Result<()> {
    driver_without_fault()?;
    for handle in [to, from] {
        if !handle.is_null() {
            context::by_handle(handle as usize)?;
        }
    }
    Ok(())
}

use Waits::{Asynchronous, Synchronous};

exports! {
    fn cuMemcpy | cuMemcpy_ptds [c, mode] (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        Copy { c, mode, stream: NULL, waits: Synchronous, bytes, to: any(to), from: any(from) }.run()
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz [c, mode] (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        Copy { c, mode, stream, waits: Asynchronous, bytes, to: any(to), from: any(from) }.run()
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds [c, mode] (to: CUdeviceptr, from: *const c_void, bytes: usize) {
        Copy { c, mode, stream: NULL, waits: Synchronous, bytes, to: device(to), from: host(from) }.run()
    }

    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz [c, mode] (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) {
        Copy { c, mode, stream, waits: Asynchronous, bytes, to: device(to), from: host(from) }.run()
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds [c, mode] (to: *mut c_void, from: CUdeviceptr, bytes: usize) {
        Copy { c, mode, stream: NULL, waits: Synchronous, bytes, to: host(to.cast_const()), from: device(from) }.run()
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz [c, mode] (to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        Copy { c, mode, stream, waits: Asynchronous, bytes, to: host(to.cast_const()), from: device(from) }.run()
    }

    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds [c, mode] (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        Copy { c, mode, stream: NULL, waits: Synchronous, bytes, to: device(to), from: device(from) }.run()
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz [c, mode] (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        Copy { c, mode, stream, waits: Asynchronous, bytes, to: device(to), from: device(from) }.run()
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptds [c, mode] (to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize) {
        check_peers(to_context, from_context)?;
        Copy { c, mode, stream: NULL, waits: Synchronous, bytes, to: device(to), from: device(from) }.run()
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz [c, mode] (to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, stream: CUstream) {
        check_peers(to_context, from_context)?;
        // As recorded: these are not captured.
        stream::for_work(stream as usize, mode)?;
        Copy { c, mode, stream, waits: Asynchronous, bytes, to: device(to), from: device(from) }.run()
    }
}
