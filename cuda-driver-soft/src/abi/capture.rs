//! Exports of stream capture: begin, end, query and update a capture, and exchange the capture mode of the thread.

use std::ffi::c_uint;

use cuda_driver_sys::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUstreamUpdateCaptureDependencies_flags as Flags, cuuint64_t,
};

use super::args::{Caller, set};
use super::exports;
use super::graph::edges_from;
use crate::call::{capture, graph, stream};
use crate::object::stream::NullStream;
use crate::queue::capture::{self as captured, CaptureMode};
use crate::state::error::{Error, Result};
use crate::state::gate;

fn begin(hstream: CUstream, mode: NullStream, capture_mode: CUstreamCaptureMode) -> Result<()> {
    gate::healthy()?;
    let capture_mode = CaptureMode::of(capture_mode.0)?;
    let stream = stream::named(hstream as usize, mode)?;
    capture::begin(&stream, capture_mode, None)
}

/// The caller's pointers for a capture's state; NULL for members that it does not request.
struct CaptureOutputs {
    status: *mut CUstreamCaptureStatus,
    id: *mut cuuint64_t,
    graph: *mut CUgraph,
    nodes: *mut *const CUgraphNode,
    data: *mut *const CUgraphEdgeData,
    count: *mut usize,
}

/// Writes the state of a capture. Only the status is written if the stream does not capture or the capture is invalid.
/// Returns `CUDA_ERROR_LOSSY_QUERY` for a request of nodes without the data that their edges have.
fn info(c: Caller, hstream: CUstream, mode: NullStream, outputs: &CaptureOutputs) -> Result<()> {
    use CUstreamCaptureStatus as Status;
    let status = c.out(outputs.status)?;
    let stream = stream::named(hstream as usize, mode)?;
    let Some(info) = captured::info(stream.key())? else {
        status.set(Status::CU_STREAM_CAPTURE_STATUS_NONE);
        return Ok(());
    };
    if info.invalid {
        status.set(Status::CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        return Ok(());
    }
    if info.lossy && outputs.data.is_null() && !outputs.nodes.is_null() {
        return Err(Error::CUDA_ERROR_LOSSY_QUERY);
    }
    status.set(Status::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    set(c.out_or_null(outputs.id), info.id);
    set(c.out_or_null(outputs.graph), info.graph as CUgraph);
    set(c.out_or_null(outputs.nodes), info.nodes as *const CUgraphNode);
    set(c.out_or_null(outputs.data), info.data as *const CUgraphEdgeData);
    set(c.out_or_null(outputs.count), info.count);
    Ok(())
}

/// Returns outputs that request the status only.
fn status_only(status: *mut CUstreamCaptureStatus) -> CaptureOutputs {
    CaptureOutputs {
        status,
        id: std::ptr::null_mut(),
        graph: std::ptr::null_mut(),
        nodes: std::ptr::null_mut(),
        data: std::ptr::null_mut(),
        count: std::ptr::null_mut(),
    }
}

fn update(
    c: Caller,
    hstream: CUstream,
    mode: NullStream,
    nodes: *mut CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    flags: c_uint,
) -> Result<()> {
    const ADD: c_uint = Flags::CU_STREAM_ADD_CAPTURE_DEPENDENCIES.0;
    const SET: c_uint = Flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES.0;
    let stream = stream::named(hstream as usize, mode)?;
    if !matches!(flags, ADD | SET) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let after = edges_from(c, nodes.cast_const(), data, count)?;
    capture::update(&stream, after, flags == SET)
}

exports! {
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz [_c, mode] (
        hstream: CUstream,
        capture_mode: CUstreamCaptureMode,
    ) {
        begin(hstream, mode, capture_mode)
    }

    fn cuStreamBeginCapture | cuStreamBeginCapture_ptsz [_c, mode] (hstream: CUstream) {
        begin(
            hstream,
            mode,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        )
    }

    healthy fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz [c, mode] (
        hstream: CUstream,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        capture_mode: CUstreamCaptureMode,
    ) {
        let capture_mode = CaptureMode::of(capture_mode.0)?;
        let stream = stream::named(hstream as usize, mode)?;
        let after = edges_from(c, nodes, data, count)?;
        capture::begin(&stream, capture_mode, Some((graph as usize, after)))
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUgraph,
    ) {
        let (unwanted, out) = (out.is_null(), c.out_or_null(out));
        let stream = stream::named(hstream as usize, mode)?;
        let ended = capture::end(&stream);
        // If the capture cannot be ended, the graph is NULL.
        set(out, ended.map_or(0, |(graph, _)| graph) as CUgraph);
        match ended {
            // The program passed NULL, so it has no handle with which it could destroy the new graph. It has the handle
            // of a graph that existed before the capture, such as the body of a conditional node.
            Ok((graph, true)) if unwanted => graph::destroy(graph),
            other => other.map(drop),
        }
    }

    inside fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUstreamCaptureStatus,
    ) {
        info(c, hstream, mode, &status_only(out))
    }

    inside fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz [c, mode] (
        hstream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
    ) {
        info(
            c,
            hstream,
            mode,
            &CaptureOutputs {
                id,
                ..status_only(status)
            },
        )
    }

    inside fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz [c, mode] (
        hstream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        count: *mut usize,
    ) {
        info(
            c,
            hstream,
            mode,
            &CaptureOutputs {
                status,
                id,
                graph,
                nodes,
                count,
                data: std::ptr::null_mut(),
            },
        )
    }

    inside fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz [c, mode] (
        hstream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        data: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) {
        info(
            c,
            hstream,
            mode,
            &CaptureOutputs {
                status,
                id,
                graph,
                nodes,
                data,
                count,
            },
        )
    }

    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz [c, mode] (
        hstream: CUstream,
        nodes: *mut CUgraphNode,
        count: usize,
        flags: c_uint,
    ) {
        update(c, hstream, mode, nodes, std::ptr::null(), count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz [c, mode] (
        hstream: CUstream,
        nodes: *mut CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        flags: c_uint,
    ) {
        update(c, hstream, mode, nodes, data, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode [c] (mode: *mut CUstreamCaptureMode) {
        let out = c.out(mode)?;
        let new = c.read(mode.cast_const())?.0;
        out.set(CUstreamCaptureMode(captured::exchange_mode(new)));
        Ok(())
    }
}
