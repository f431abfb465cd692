//! Fills.

use std::ffi::{c_uchar, c_uint, c_ushort};

use cuda_driver_sys::{CUdeviceptr, CUstream};

use super::exports;
use crate::driver::copy::{Fill, Value, Waits, fill};
use crate::driver::error::Result;
use crate::driver::stream::{self, Mode};

/// Without a stream, the call is a synchronous one.
fn row(
    address: CUdeviceptr,
    value: Value,
    count: usize,
    hstream: Option<CUstream>,
    mode: Mode,
) -> Result<()> {
    rows(address, 0, value, count, 1, hstream, mode)
}

fn rows(
    address: CUdeviceptr,
    pitch: usize,
    value: Value,
    width: usize,
    height: usize,
    hstream: Option<CUstream>,
    mode: Mode,
) -> Result<()> {
    let (stream, waits) = match hstream {
        Some(handle) => (
            stream::for_capture(handle as usize, mode)?,
            Waits::Asynchronous,
        ),
        None => (stream::for_work(0, mode)?, Waits::Synchronous),
    };
    let rows = Fill {
        address,
        pitch: pitch as u64,
        value,
        width: width as u64,
        height: height as u64,
    };
    fill(rows, &stream, waits)
}

exports! {
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds [c, mode] (to: CUdeviceptr, value: c_uchar, count: usize) {
        row(to, Value::U8(value), count, None, mode)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds [c, mode] (to: CUdeviceptr, value: c_ushort, count: usize) {
        row(to, Value::U16(value), count, None, mode)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds [c, mode] (to: CUdeviceptr, value: c_uint, count: usize) {
        row(to, Value::U32(value), count, None, mode)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz [c, mode] (to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream) {
        row(to, Value::U8(value), count, Some(stream), mode)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz [c, mode] (to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream) {
        row(to, Value::U16(value), count, Some(stream), mode)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz [c, mode] (to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) {
        row(to, Value::U32(value), count, Some(stream), mode)
    }

    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds [c, mode] (to: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize) {
        rows(to, pitch, Value::U8(value), width, height, None, mode)
    }

    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds [c, mode] (to: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize) {
        rows(to, pitch, Value::U16(value), width, height, None, mode)
    }

    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds [c, mode] (to: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize) {
        rows(to, pitch, Value::U32(value), width, height, None, mode)
    }

    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz [c, mode] (to: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize, stream: CUstream) {
        rows(to, pitch, Value::U8(value), width, height, Some(stream), mode)
    }

    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz [c, mode] (to: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize, stream: CUstream) {
        rows(to, pitch, Value::U16(value), width, height, Some(stream), mode)
    }

    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz [c, mode] (to: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize, stream: CUstream) {
        rows(to, pitch, Value::U32(value), width, height, Some(stream), mode)
    }
}
