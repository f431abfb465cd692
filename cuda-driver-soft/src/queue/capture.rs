//! Stream capture: the capturing streams, and the dependencies of the next node of each.
//!
//! An event that is recorded in a capture carries these dependencies; a stream that waits for the event joins the
//! capture. The nodes themselves are in the graphs. A thread that needs the locks of the captures and of the graphs
//! takes the lock of the captures first.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::CUstreamCaptureMode as Mode;

use crate::queue::edge::Edge;
use crate::queue::streams::QueueId;
use crate::state::error::{Error, Result};

/// `CUstreamCaptureMode` of a capture: the threads in which it forbids calls that may wait for the device. A thread can
/// permit them for itself with [`exchange_mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    /// Forbids these calls in every thread.
    Global,
    /// Forbids these calls in the thread that began the capture.
    ThreadLocal,
    /// Forbids nothing.
    Relaxed,
}

impl CaptureMode {
    pub(crate) fn of(number: u32) -> Result<Self> {
        match Mode(number) {
            Mode::CU_STREAM_CAPTURE_MODE_GLOBAL => Ok(CaptureMode::Global),
            Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => Ok(CaptureMode::ThreadLocal),
            Mode::CU_STREAM_CAPTURE_MODE_RELAXED => Ok(CaptureMode::Relaxed),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

thread_local! {
    /// The thread's own mode, a `CUstreamCaptureMode`, which [`check_unsafe`] compares with the mode of each capture.
    static MODE: Cell<u32> = const { Cell::new(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL.0) };
}

/// `cuThreadExchangeStreamCaptureMode`: sets the mode of the calling thread and returns the previous one. Driver 580
/// accepts any number.
pub(crate) fn exchange_mode(mode: u32) -> u32 {
    MODE.replace(mode)
}

/// A stream's identity and properties for captures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamKey {
    /// The number of the stream's context.
    pub(crate) context: u64,
    pub(crate) queue: QueueId,
    /// True if this stream and the legacy stream wait for each other.
    pub(crate) blocking: bool,
}

impl StreamKey {
    fn key(self) -> QueueKey {
        (self.context, self.queue)
    }
}

/// A queue in a context.
type QueueKey = (u64, QueueId);

/// A stream's part of a capture.
#[derive(Default)]
struct CaptureBranch {
    /// The dependencies of the stream's next node.
    after: Vec<Edge>,
    /// True if this stream and the legacy stream wait for each other.
    blocking: bool,
    returned: ReturnedEdges,
}

/// Arrays that the program has pointers to: kept until its next query of the stream, or until the capture ends.
#[derive(Default)]
struct ReturnedEdges {
    nodes: Box<[usize]>,
    data: Box<[[u8; 8]]>,
}

/// An active capture.
pub(crate) struct Capture {
    pub(crate) graph: usize,
    /// True if the graph was created for the capture.
    pub(crate) is_new: bool,
    mode: CaptureMode,
    /// The thread that began the capture.
    thread: QueueId,
    origin: QueueKey,
    invalid: bool,
    branches: HashMap<QueueKey, CaptureBranch>,
}

/// The active captures by number, and the streams in them.
#[derive(Default)]
pub(crate) struct Captures {
    all: HashMap<u64, Capture>,
    by_stream: HashMap<QueueKey, u64>,
    last: u64,
}

/// The number of active captures. Usually 0; then the lock is not taken.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Locks and returns the captures of the process.
pub(crate) fn captures() -> MutexGuard<'static, Captures> {
    static CAPTURES: LazyLock<Mutex<Captures>> = LazyLock::new(Mutex::default);
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if no capture is active.
pub(crate) fn none() -> bool {
    ACTIVE.load(Relaxed) == 0
}

/// The state of a capture on one of its streams.
pub(crate) struct CaptureInfo {
    pub(crate) id: u64,
    /// True if the capture is active but can only end in an error.
    pub(crate) invalid: bool,
    pub(crate) graph: usize,
    /// Addresses of arrays of nodes and of `CUgraphEdgeData`, 0 if they are empty; valid until the next query of the
    /// stream or the end of the capture.
    pub(crate) nodes: usize,
    pub(crate) data: usize,
    pub(crate) count: usize,
    /// True if some of the edges are not plain dependencies.
    pub(crate) lossy: bool,
}

/// The dependencies that an event carries if it was recorded in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    capture: u64,
    after: Vec<Edge>,
}

impl Capture {
    /// Checks that this thread may end the capture, and that the capture is valid.
    pub(crate) fn check(&self) -> Result<()> {
        if self.mode != CaptureMode::Relaxed && self.thread != QueueId::of_this_thread() {
            return Err(Error::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        }
        if self.invalid {
            return Err(Error::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        Ok(())
    }

    /// Checks that all streams have joined the one that began the capture. `reached` returns the nodes of its argument
    /// and all nodes that these depend on.
    pub(crate) fn check_joined(&self, reached: impl FnOnce(&[Edge]) -> HashSet<usize>) -> Result<()> {
        let origin = self.branches.get(&self.origin);
        let reached = reached(origin.map_or(&[][..], |branch| &branch.after));
        let mut all = self.branches.values().flat_map(|branch| &branch.after);
        if all.all(|edge| reached.contains(&edge.node)) {
            return Ok(());
        }
        host::log!(
            "a stream of the capture has not joined its origin stream: record an event on it and wait for it there"
        );
        Err(Error::CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    }
}

impl Captures {
    /// Returns true if a capture adds to this graph.
    pub(crate) fn captures_to(&self, graph: usize) -> bool {
        self.all.values().any(|c| c.graph == graph)
    }

    fn of(&mut self, stream: StreamKey) -> Option<(u64, &mut Capture)> {
        let id = *self.by_stream.get(&stream.key())?;
        Some((id, self.all.get_mut(&id)?))
    }

    /// Begins a capture of this stream into a graph, after some of its nodes. `is_new` is true if the graph was created
    /// for the capture.
    pub(crate) fn begin(
        &mut self,
        stream: StreamKey,
        mode: CaptureMode,
        (graph, is_new): (usize, bool),
        after: Vec<Edge>,
    ) {
        self.last += 1;
        let origin = stream.key();
        let branch = CaptureBranch {
            after,
            ..CaptureBranch::of(stream)
        };
        let capture = Capture {
            graph,
            is_new,
            mode,
            thread: QueueId::of_this_thread(),
            origin,
            invalid: false,
            branches: HashMap::from([(origin, branch)]),
        };
        self.by_stream.insert(origin, self.last);
        self.all.insert(self.last, capture);
        ACTIVE.store(self.all.len(), Relaxed);
    }

    /// Removes and returns the capture that this stream began. A stream that only joined its capture cannot end it: the
    /// capture becomes invalid, and the result is `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED`.
    pub(crate) fn end(&mut self, stream: StreamKey) -> Result<Capture> {
        let (id, capture) = self.of(stream).ok_or(Error::CUDA_ERROR_ILLEGAL_STATE)?;
        if capture.origin != stream.key() {
            capture.invalid = true;
            return Err(Error::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        self.take(id).ok_or(Error::CUDA_ERROR_UNKNOWN)
    }

    /// Removes the captures that these streams began, and returns their graphs.
    pub(crate) fn forget(&mut self, gone: impl Fn(u64, QueueId) -> bool) -> Vec<usize> {
        // A capture that a destroyed stream only joined keeps its branch, which can then never join the origin.
        self.by_stream.retain(|(context, queue), _| !gone(*context, *queue));
        let over = self.all.iter();
        let over = over.filter(|(_, capture)| gone(capture.origin.0, capture.origin.1));
        let over: Vec<u64> = over.map(|(id, _)| *id).collect();
        let over = over.into_iter().filter_map(|id| self.take(id));
        over.map(|capture| capture.graph).collect()
    }

    /// Returns true if the stream captures.
    pub(crate) fn has(&self, stream: StreamKey) -> bool {
        self.by_stream.contains_key(&stream.key())
    }

    /// Returns the graph that a valid capture adds to, and the dependencies of its next node on this stream.
    pub(crate) fn next(&mut self, stream: StreamKey) -> Result<(usize, Vec<Edge>)> {
        let (_, capture) = self.valid(stream)?;
        let branch = capture.branches.get(&stream.key());
        let after = branch.map(|b| b.after.clone()).unwrap_or_default();
        Ok((capture.graph, after))
    }

    /// Replaces the dependencies of the next node on a stream; if `replace` is false, adds to them.
    pub(crate) fn set_next(&mut self, stream: StreamKey, after: Vec<Edge>, replace: bool) -> Result<()> {
        let (_, capture) = self.valid(stream)?;
        let branch = capture.branches.entry(stream.key()).or_default();
        if replace {
            branch.after = after;
        } else {
            branch.join(&after);
        }
        Ok(())
    }

    /// Returns the capture of a stream; an error if it is invalid or there is none.
    fn valid(&mut self, stream: StreamKey) -> Result<(u64, &mut Capture)> {
        let (id, capture) = self.of(stream).ok_or(Error::CUDA_ERROR_ILLEGAL_STATE)?;
        if capture.invalid {
            return Err(Error::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        Ok((id, capture))
    }

    fn take(&mut self, id: u64) -> Option<Capture> {
        let capture = self.all.remove(&id)?;
        self.by_stream.retain(|_, of| *of != id);
        ACTIVE.store(self.all.len(), Relaxed);
        Some(capture)
    }

    /// Invalidates a capture and returns the error.
    fn refuse(&mut self, id: u64, error: Error) -> Result<()> {
        if let Some(capture) = self.all.get_mut(&id) {
            capture.invalid = true;
        }
        Err(error)
    }

    /// Invalidates the captures for which `concerned` returns true; returns false if there are none.
    fn invalidate(&mut self, concerned: impl Fn(&Capture) -> bool) -> bool {
        let mut any = false;
        for capture in self.all.values_mut().filter(|c| concerned(c)) {
            capture.invalid = true;
            any = true;
        }
        any
    }
}

/// Returns the state of the capture of a stream; `None` if the stream does not capture. As the CUDA manual says, the
/// legacy stream cannot be queried while a blocking stream captures.
pub(crate) fn info(stream: StreamKey) -> Result<Option<CaptureInfo>> {
    if none() {
        return Ok(None);
    }
    let mut captures = captures();
    if stream.queue == QueueId::Legacy && captures.all.values().any(blocks(stream)) {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    let Some((id, capture)) = captures.of(stream) else {
        return Ok(None);
    };
    let (invalid, graph) = (capture.invalid, capture.graph);
    let branch = capture.branches.entry(stream.key()).or_default();
    let data = branch.after.iter().map(|edge| {
        let data = edge.data;
        [data.from_port, data.to_port, data.kind, 0, 0, 0, 0, 0]
    });
    branch.returned = ReturnedEdges {
        nodes: branch.after.iter().map(|edge| edge.node).collect(),
        data: data.collect(),
    };
    let count = branch.after.len();
    let address = |place: usize| if count == 0 { 0 } else { place };
    Ok(Some(CaptureInfo {
        id,
        invalid,
        graph,
        nodes: address(branch.returned.nodes.as_ptr().addr()),
        data: address(branch.returned.data.as_ptr().addr()),
        count,
        lossy: branch.returned.data.iter().any(|data| *data != [0; 8]),
    }))
}

impl CaptureBranch {
    fn of(stream: StreamKey) -> Self {
        CaptureBranch {
            blocking: stream.blocking,
            ..CaptureBranch::default()
        }
    }

    /// Adds dependencies to the next node.
    fn join(&mut self, after: &[Edge]) {
        for edge in after {
            if !self.after.iter().any(|e| e.node == edge.node) {
                self.after.push(*edge);
            }
        }
    }
}

/// Invalidates the stream's capture after a failed call. Driver 580 does so for some calls, unless the error is
/// `CUDA_ERROR_INVALID_HANDLE`.
pub(crate) fn invalidate_on_error<T>(stream: StreamKey, result: Result<T>) -> Result<T> {
    if let Err(error) = &result
        && *error != Error::CUDA_ERROR_INVALID_HANDLE
    {
        refuse(stream, *error)?;
    }
    result
}

/// Returns the dependencies that an event carries if it is recorded on this stream; `None` if the stream does not
/// capture. If the capture is invalid, returns `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
pub(crate) fn record(stream: StreamKey) -> Result<Option<Captured>> {
    if none() {
        return Ok(None);
    }
    let mut captures = captures();
    if captures.of(stream).is_none() {
        return Ok(None);
    }
    let (capture, ours) = captures.valid(stream)?;
    let branch = ours.branches.get(&stream.key());
    let after = branch.map(|b| b.after.clone()).unwrap_or_default();
    Ok(Some(Captured { capture, after }))
}

/// `cuStreamWaitEvent` on an event that was recorded in a capture: the stream joins that capture.
pub(crate) fn join(stream: StreamKey, event: &Captured) -> Result<()> {
    check_legacy(stream)?;
    let mut captures = captures();
    let captures = &mut *captures;
    let own = captures.of(stream).map(|(id, capture)| (id, capture.invalid));
    if own.is_some_and(|(_, invalid)| invalid) {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let Some(capture) = captures.all.get_mut(&event.capture) else {
        // The capture that the event was recorded in has ended.
        return match own {
            Some((own, _)) => captures.refuse(own, Error::CUDA_ERROR_INVALID_VALUE),
            None => Err(Error::CUDA_ERROR_INVALID_VALUE),
        };
    };
    if capture.invalid {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    if own.is_some_and(|(own, _)| own != event.capture) {
        capture.invalid = true;
        let own = own.map_or(0, |(own, _)| own);
        return captures.refuse(own, Error::CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if stream.queue == QueueId::Legacy {
        capture.invalid = true;
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    let branch = capture.branches.entry(stream.key());
    branch.or_insert_with(|| CaptureBranch::of(stream)).join(&event.after);
    captures.by_stream.insert(stream.key(), event.capture);
    Ok(())
}

/// Returns `error` and invalidates the capture if the stream captures, for a call that is not permitted then.
pub(crate) fn refuse(stream: StreamKey, error: Error) -> Result<()> {
    if none() {
        return Ok(());
    }
    let mut captures = captures();
    match captures.of(stream).map(|(id, _)| id) {
        Some(id) => captures.refuse(id, error),
        None => Ok(()),
    }
}

/// Returns an error if the stream's capture is invalid.
pub(crate) fn check_valid(stream: StreamKey) -> Result<()> {
    if none() || captures().of(stream).is_none_or(|(_, c)| !c.invalid) {
        return Ok(());
    }
    Err(Error::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
}

/// Returns true if the stream captures.
pub(crate) fn is_capturing(stream: StreamKey) -> bool {
    !none() && captures().of(stream).is_some()
}

/// Returns true if the capture that an event was recorded in has ended.
pub(crate) fn is_over(event: &Captured) -> bool {
    !captures().all.contains_key(&event.capture)
}

/// Returns the error of a query of, or wait for, an event that was recorded in a capture: `error` while the capture is
/// active, `CUDA_ERROR_INVALID_VALUE` once it has ended. If `invalidates` is true, an active capture becomes invalid; a
/// query of elapsed time passes false.
pub(crate) fn refuse_event(event: &Captured, invalidates: bool, error: Error) -> Result<()> {
    let mut captures = captures();
    let Some(capture) = captures.all.get_mut(&event.capture) else {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    };
    capture.invalid |= invalidates;
    Err(error)
}

/// Returns a predicate that is true for a capture with a stream that the legacy stream of this context waits for.
fn blocks(legacy: StreamKey) -> impl Fn(&Capture) -> bool {
    let context = legacy.context;
    move |capture| {
        let mut branches = capture.branches.iter();
        branches.any(|((of, _), branch)| *of == context && branch.blocking)
    }
}

/// Returns an error for work on the legacy stream while a stream captures that the legacy stream waits for, and
/// invalidates the captures of such streams.
pub(crate) fn check_legacy(stream: StreamKey) -> Result<()> {
    if none() || stream.queue != QueueId::Legacy {
        return Ok(());
    }
    if captures().invalidate(blocks(stream)) {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    Ok(())
}

/// Returns an error for a wait for a context, or for an event of all its work, if streams of the context capture.
/// Invalidates their captures.
pub(crate) fn check_context(context: u64) -> Result<()> {
    check_streams(|of, _| of == context)
}

/// Returns an error, and invalidates the captures, if some of these streams capture.
pub(crate) fn check_streams(concerned: impl Fn(u64, QueueId) -> bool) -> Result<()> {
    if none() {
        return Ok(());
    }
    let has = |capture: &Capture| capture.branches.keys().any(|(of, queue)| concerned(*of, *queue));
    if captures().invalidate(has) {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

/// Returns an error for a call that may wait for the device if the calling thread's mode and an active capture forbid
/// it, and invalidates the captures that do.
pub(crate) fn check_unsafe() -> Result<()> {
    if none() {
        return Ok(());
    }
    let mode = CaptureMode::of(MODE.get()).unwrap_or(CaptureMode::Relaxed);
    let thread = QueueId::of_this_thread();
    let forbids = |capture: &Capture| match (mode, capture.mode) {
        (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
        (CaptureMode::Global, CaptureMode::Global) => true,
        _ => capture.thread == thread,
    };
    if captures().invalidate(forbids) {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}
