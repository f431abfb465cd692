//! Exports that fill memory.

use std::ffi::{c_uchar, c_uint, c_ushort};

use cuda_driver_sys::{CUdeviceptr, CUstream};

use super::exports;
use crate::call::{stream, submit};
use crate::object::stream::NullStream;
use crate::operation::copy::Waits;
use crate::operation::fill::{Fill, FillValue};
use crate::state::error::Result;

/// Fills one row of memory, as [`rows`] does.
fn row(
    address: CUdeviceptr,
    value: FillValue,
    count: usize,
    hstream: Option<CUstream>,
    mode: NullStream,
) -> Result<()> {
    rows(address, 0, value, count, 1, hstream, mode)
}

/// Fills `height` rows of `width` values, `pitch` bytes apart. Without an `hstream`, the call is synchronous and uses
/// the NULL stream.
fn rows(
    address: CUdeviceptr,
    pitch: usize,
    value: FillValue,
    width: usize,
    height: usize,
    hstream: Option<CUstream>,
    mode: NullStream,
) -> Result<()> {
    let (stream, waits) = match hstream {
        Some(handle) => (stream::for_capture(handle as usize, mode)?, Waits::Asynchronous),
        None => (stream::for_work(0, mode)?, Waits::Synchronous),
    };
    let rows = Fill {
        address,
        pitch: pitch as u64,
        value,
        width: width as u64,
        height: height as u64,
    };
    submit::fill(rows, &stream, waits)
}

exports! {
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds [c, mode] (
        to: CUdeviceptr,
        value: c_uchar,
        count: usize,
    ) {
        row(to, FillValue::U8(value), count, None, mode)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds [c, mode] (
        to: CUdeviceptr,
        value: c_ushort,
        count: usize,
    ) {
        row(to, FillValue::U16(value), count, None, mode)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds [c, mode] (
        to: CUdeviceptr,
        value: c_uint,
        count: usize,
    ) {
        row(to, FillValue::U32(value), count, None, mode)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz [c, mode] (
        to: CUdeviceptr,
        value: c_uchar,
        count: usize,
        stream: CUstream,
    ) {
        row(to, FillValue::U8(value), count, Some(stream), mode)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz [c, mode] (
        to: CUdeviceptr,
        value: c_ushort,
        count: usize,
        stream: CUstream,
    ) {
        row(to, FillValue::U16(value), count, Some(stream), mode)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz [c, mode] (
        to: CUdeviceptr,
        value: c_uint,
        count: usize,
        stream: CUstream,
    ) {
        row(to, FillValue::U32(value), count, Some(stream), mode)
    }

    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
    ) {
        rows(to, pitch, FillValue::U8(value), width, height, None, mode)
    }

    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
    ) {
        rows(to, pitch, FillValue::U16(value), width, height, None, mode)
    }

    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
    ) {
        rows(to, pitch, FillValue::U32(value), width, height, None, mode)
    }

    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        stream: CUstream,
    ) {
        rows(
            to,
            pitch,
            FillValue::U8(value),
            width,
            height,
            Some(stream),
            mode,
        )
    }

    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        stream: CUstream,
    ) {
        rows(
            to,
            pitch,
            FillValue::U16(value),
            width,
            height,
            Some(stream),
            mode,
        )
    }

    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz [c, mode] (
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: CUstream,
    ) {
        rows(
            to,
            pitch,
            FillValue::U32(value),
            width,
            height,
            Some(stream),
            mode,
        )
    }
}
