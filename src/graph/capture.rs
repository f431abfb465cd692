//! Stream capture: recording the work of a stream as a graph.

use core::mem;

use super::kept::Kept;
use super::node::Node;
use super::owner::Graph;
use crate::refusal::Refusal;
use crate::sys::{self, CUstreamCaptureMode, CUstreamCaptureStatus};
use crate::{Error, Result, Stream, checked};

/// A capture in progress. Dropping it, for instance after a panic, ends the capture and destroys the graph.
struct Capturing<'s> {
    stream: &'s Stream,
}

impl Capturing<'_> {
    /// Calls the function. If it returns, the caller must end the capture; if it panics, dropping `self` does.
    #[inline]
    #[track_caller]
    fn record(self, record: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        let recorded = record(self.stream);
        mem::forget(self);
        recorded
    }
}

impl Drop for Capturing<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle is live.
        destroy(unsafe { checked::stream_end_capture(self.stream.as_raw()) });
    }
}

/// Returns the graph's handle, or the error of the function or of the end of the capture. Destroys the graph if only
/// the function failed.
#[inline]
fn graph_of(recorded: Result<()>, ended: Result<sys::CUgraph>) -> Result<sys::CUgraph> {
    if let Err(error) = recorded {
        destroy(ended);
        return Err(error);
    }
    ended
}

/// Destroys the graph of a capture that failed, if there is one.
#[inline]
fn destroy(graph: Result<sys::CUgraph>) {
    if let Ok(graph) = graph {
        if !graph.is_null() {
            // SAFETY: the graph is owned, and not used again. Errors are ignored.
            let _ = unsafe { checked::graph_destroy(graph) };
        }
    }
}

impl Stream {
    /// Records the work that a function queues in this stream as a graph
    /// ([`cuStreamBeginCapture`](checked::stream_begin_capture), [`cuStreamEndCapture`](checked::stream_end_capture)).
    /// The work does not run. Other streams join the capture when they wait for an event that is recorded in it, and
    /// this stream must wait for them in turn before the function returns.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceBuffer, Event, Stream};
    /// use cuda_driver::sys::CUstreamCaptureMode;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    ///
    /// let (stream, other) = (Stream::new(&context)?, Stream::new(&context)?);
    /// let (fork, join) = (Event::new(&context)?, Event::new(&context)?);
    /// let mut left = DeviceBuffer::<u32>::alloc(&context, 100)?;
    /// let mut right = DeviceBuffer::<u32>::alloc(&context, 100)?;
    /// let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    /// let graph = stream.capture(mode, |stream| {
    ///     fork.record(stream)?;
    ///     other.wait_event(&fork)?;
    ///     // SAFETY: both buffers outlive all launches of the graph.
    ///     unsafe { left.fill_u32_async(1, stream) }?;
    ///     // SAFETY: as above.
    ///     unsafe { right.fill_u32_async(2, &other) }?;
    ///     join.record(&other)?;
    ///     stream.wait_event(&join)
    /// })?;
    /// assert_eq!(graph.nodes()?.len(), 2);
    ///
    /// // SAFETY: no other work uses the buffers.
    /// unsafe { graph.instantiate()?.launch(&stream) }?;
    /// stream.synchronize()?;
    /// assert_eq!(right.to_vec()?, [2; 100]);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// The safety conditions of `unsafe` calls in the function must hold at every launch of the graph. In addition, the
    /// module of a captured kernel, the arrays of a captured copy, and the context of a default or borrowed stream or
    /// of another stream that joins must live as long as the graph and everything made from it, also without a launch:
    /// pass them to [`Graph::keep`].
    ///
    /// The context of a graph that was captured in a default or borrowed stream is not known: calls that add or change
    /// nodes that run in the graph's context, such as [`Graph::add_fill`], return `CUDA_ERROR_INVALID_CONTEXT`. Pass the
    /// context to [`Graph::from_raw`] with the handle to make them possible.
    ///
    /// While a stream is captured, many calls fail and invalidate the capture, such as waiting for the stream.
    /// Allocating and freeing memory does so in all modes but `CU_STREAM_CAPTURE_MODE_RELAXED`; in
    /// `CU_STREAM_CAPTURE_MODE_GLOBAL`, even on other threads.
    ///
    /// # Errors
    /// Returns the function's error, `CUDA_ERROR_ILLEGAL_STATE` if the stream is already being captured, and
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` or another capture error for a call that is not allowed in it. The
    /// legacy default stream cannot be captured: for it, the call returns `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
    #[inline]
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cuStreamEndCapture")]
    #[track_caller]
    pub fn capture(&self, mode: CUstreamCaptureMode, record: impl FnOnce(&Self) -> Result<()>) -> Result<Graph> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_begin_capture(self.as_raw(), mode) }?;
        let recorded = Capturing { stream: self }.record(record);
        // SAFETY: as above.
        let raw = graph_of(recorded, unsafe { checked::stream_end_capture(self.as_raw()) })?;
        Ok(Graph::of(raw, self.context().cloned(), Kept::new()))
    }

    /// Adds the work that a function queues in this stream to a graph
    /// ([`cuStreamBeginCaptureToGraph`](checked::stream_begin_capture_to_graph)). `after` lists the nodes that the work
    /// waits for, by their positions in [`Graph::nodes`].
    ///
    /// # Errors
    /// Returns the errors of [`capture`](Self::capture), `CUDA_ERROR_INVALID_VALUE` for a position that has no node,
    /// and a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3. The graph is
    /// destroyed if the call fails.
    #[inline]
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    #[track_caller]
    pub fn capture_to(
        &self,
        graph: Graph,
        after: &[usize],
        mode: CUstreamCaptureMode,
        record: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<Graph> {
        let nodes = graph.nodes()?;
        let found: Option<Vec<_>> = after.iter().map(|at| nodes.get(*at).map(Node::as_raw)).collect();
        let Some(after) = found else {
            return Err(Error::refused(
                sys::CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuStreamBeginCaptureToGraph,
                Refusal::NodeIndex,
            ));
        };
        // SAFETY: all handles are live, and the nodes are of the graph.
        unsafe { checked::stream_begin_capture_to_graph(self.as_raw(), graph.as_raw(), &after, None, mode) }?;
        let (context, kept) = (graph.context().cloned(), graph.kept().clone());
        kept.context(self.context());
        // From now on the capture owns the graph.
        graph.disown();
        let recorded = Capturing { stream: self }.record(record);
        // SAFETY: the handle is live.
        let raw = graph_of(recorded, unsafe { checked::stream_end_capture(self.as_raw()) })?;
        Ok(Graph::of(raw, context, kept))
    }

    /// Returns the state of the stream's capture ([`cuStreamIsCapturing`](checked::stream_is_capturing)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT` for the legacy default stream, while a stream that synchronises
    /// with it is being captured.
    #[inline]
    #[doc(alias = "cuStreamIsCapturing")]
    #[track_caller]
    pub fn capture_status(&self) -> Result<CUstreamCaptureStatus> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_is_capturing(self.as_raw()) }
    }

    /// Returns the state of the stream's capture, its id, its graph, and the nodes that the next work will wait for
    /// ([`cuStreamGetCaptureInfo`](checked::stream_get_capture_info)). The handles are valid while the capture lasts.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT` for the legacy default stream, while a stream that synchronises
    /// with it is being captured.
    ///
    /// # Safety
    /// No other thread may queue work in the capture's streams, or end the capture, at the same time.
    #[inline]
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[track_caller]
    pub unsafe fn capture_info(&self) -> Result<checked::StreamGetCaptureInfo> {
        // SAFETY: the handle is live; the rest is upheld by the caller.
        unsafe { checked::stream_get_capture_info(self.as_raw()) }
    }

    /// Returns the same as [`capture_info`](Self::capture_info), and the data of the edges from the nodes that the next
    /// work will wait for ([`cuStreamGetCaptureInfo_v3`](checked::stream_get_capture_info_v3)).
    ///
    /// # Errors
    /// Returns the errors of [`capture_info`](Self::capture_info), and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3.
    ///
    /// # Safety
    /// Same as [`capture_info`](Self::capture_info).
    #[inline]
    #[doc(alias = "cuStreamGetCaptureInfo_v3")]
    #[track_caller]
    pub unsafe fn capture_info_with_edges(&self) -> Result<checked::StreamGetCaptureInfoV3> {
        // SAFETY: the handle is live; the rest is upheld by the caller.
        unsafe { checked::stream_get_capture_info_v3(self.as_raw()) }
    }

    /// Same as [`update_capture_dependencies`](Self::update_capture_dependencies), with data for the edge from each
    /// node ([`cuStreamUpdateCaptureDependencies_v2`](checked::stream_update_capture_dependencies_v2)).
    ///
    /// # Safety
    /// The nodes must be live, and in the graph of the capture.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the stream is not being captured, `CUDA_ERROR_INVALID_VALUE` if the slices
    /// have different lengths, and a [missing-function error](Error::is_missing_function) if the driver is older than
    /// CUDA 12.3.
    #[inline]
    #[doc(alias = "cuStreamUpdateCaptureDependencies_v2")]
    #[track_caller]
    pub unsafe fn update_capture_edges(
        &self,
        nodes: &[sys::CUgraphNode],
        edges: &[sys::CUgraphEdgeData],
        flags: sys::CUstreamUpdateCaptureDependencies_flags,
    ) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_update_capture_dependencies_v2(self.as_raw(), nodes, Some(edges), flags.0) }
    }

    /// Changes the nodes that the next captured work of this stream waits for
    /// ([`cuStreamUpdateCaptureDependencies`](checked::stream_update_capture_dependencies)). With
    /// `CU_STREAM_ADD_CAPTURE_DEPENDENCIES`, these nodes are added to the present ones; with
    /// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`, they replace them.
    ///
    /// # Safety
    /// The nodes must be live, and in the graph of the capture.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the stream is not being captured.
    #[inline]
    #[doc(alias = "cuStreamUpdateCaptureDependencies")]
    #[track_caller]
    pub unsafe fn update_capture_dependencies(
        &self,
        nodes: &[sys::CUgraphNode],
        flags: sys::CUstreamUpdateCaptureDependencies_flags,
    ) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_update_capture_dependencies(self.as_raw(), nodes, flags.0) }
    }
}

/// Sets the calling thread's capture mode, which determines the calls that captures forbid on the thread, and returns
/// the previous one ([`cuThreadExchangeStreamCaptureMode`](checked::thread_exchange_stream_capture_mode)). A library
/// that must allocate memory while its caller may be capturing sets `CU_STREAM_CAPTURE_MODE_RELAXED` and afterwards the
/// previous mode again.
///
/// # Errors
/// May return an error from earlier asynchronous work.
#[inline]
#[doc(alias = "cuThreadExchangeStreamCaptureMode")]
#[track_caller]
pub fn exchange_capture_mode(mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    let mut mode = mode;
    // SAFETY: no preconditions.
    unsafe { checked::thread_exchange_stream_capture_mode(&mut mode) }?;
    Ok(mode)
}
