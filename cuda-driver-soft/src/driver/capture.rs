//! Stream capture: what is put on a stream becomes nodes of a graph, and is not done.
//!
//! Each stream of a capture knows the nodes that its next one will depend on. An event that is recorded in the capture
//! carries them; a stream that waits for it joins the capture. All of it is in the [`World`](super::graph::World) of graphs.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::error::{Error, Result};
use super::graph::node::Action;
use super::graph::{Edge, World, world};
use super::lanes::Lane;
use super::stream::StreamRef;

/// What a capture forbids elsewhere: `CUstreamCaptureMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Calls that may wait for the device, in every thread.
    Global = 0,
    /// In the thread that began the capture.
    ThreadLocal = 1,
    /// Nothing.
    Relaxed = 2,
}

impl Mode {
    pub(crate) fn of(number: u32) -> Result<Self> {
        match number {
            0 => Ok(Mode::Global),
            1 => Ok(Mode::ThreadLocal),
            2 => Ok(Mode::Relaxed),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(Mode::Global as u32) };
}

/// `cuThreadExchangeStreamCaptureMode`: as recorded, any number is taken.
pub(crate) fn exchange_mode(mode: u32) -> u32 {
    MODE.replace(mode)
}

/// A stream in a context.
type Key = (u64, Lane);

/// A stream's part of a capture.
#[derive(Default)]
struct Branch {
    /// What its next node depends on.
    after: Vec<Edge>,
    /// It and the legacy stream wait for each other.
    blocking: bool,
    told: Told,
}

/// What a program was given pointers to: kept until it asks again.
#[derive(Default)]
struct Told {
    nodes: Box<[usize]>,
    data: Box<[[u8; 8]]>,
}

struct Capture {
    graph: usize,
    mode: Mode,
    /// The thread that began it.
    thread: Lane,
    origin: Key,
    invalid: bool,
    branches: HashMap<Key, Branch>,
}

/// The captures that go on, by their numbers, and the streams in them.
#[derive(Default)]
pub(crate) struct Captures {
    all: HashMap<u64, Capture>,
    by_stream: HashMap<Key, u64>,
    last: u64,
}

/// How many captures go on: mostly none, and then nobody has to look.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

fn none() -> bool {
    ACTIVE.load(Relaxed) == 0
}

fn key(stream: &StreamRef) -> Key {
    (stream.context.id(), stream.lane)
}

/// What a capture has come to on a stream.
pub(crate) struct Info {
    pub(crate) id: u64,
    /// It goes on, but can only end in an error.
    pub(crate) invalid: bool,
    pub(crate) graph: usize,
    /// Addresses of the nodes, and of `CUgraphEdgeData`, 0 if there are none; valid until the next call about the stream.
    pub(crate) nodes: usize,
    pub(crate) data: usize,
    pub(crate) count: usize,
    /// Some of the data is not that of plain dependencies.
    pub(crate) lossy: bool,
}

/// What an event carries that was recorded in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    capture: u64,
    after: Vec<Edge>,
}

impl Captures {
    /// Whether a capture adds to this graph.
    pub(crate) fn captures_to(&self, graph: usize) -> bool {
        self.all.values().any(|c| c.graph == graph)
    }

    fn of(&mut self, stream: &StreamRef) -> Option<(u64, &mut Capture)> {
        let id = *self.by_stream.get(&key(stream))?;
        Some((id, self.all.get_mut(&id)?))
    }

    /// The capture of a stream that must be valid.
    fn valid(&mut self, stream: &StreamRef) -> Result<(u64, &mut Capture)> {
        let (id, capture) = self.of(stream).ok_or(Error::ILLEGAL_STATE)?;
        if capture.invalid {
            return Err(Error::STREAM_CAPTURE_INVALIDATED);
        }
        Ok((id, capture))
    }

    fn take(&mut self, id: u64) -> Option<Capture> {
        let capture = self.all.remove(&id)?;
        self.by_stream.retain(|_, of| *of != id);
        ACTIVE.store(self.all.len(), Relaxed);
        Some(capture)
    }

    /// Invalidates the captures that `concerned` says yes to; false if there are none.
    fn invalidate(&mut self, concerned: impl Fn(&Capture) -> bool) -> bool {
        let mut any = false;
        for capture in self.all.values_mut().filter(|c| concerned(c)) {
            capture.invalid = true;
            any = true;
        }
        any
    }
}

impl StreamRef {
    /// Whether what is put on it is captured.
    pub(crate) fn is_capturing(&self) -> bool {
        !none() && world().captures.of(self).is_some()
    }

    fn branch(&self) -> Branch {
        Branch {
            blocking: self.is_blocking(),
            ..Branch::default()
        }
    }
}

/// `cuStreamBeginCapture`, to a new graph, or to one that is there, after some of its nodes.
pub(crate) fn begin(
    stream: &StreamRef,
    mode: Mode,
    into: Option<(usize, Vec<Edge>)>,
) -> Result<()> {
    check_legacy(stream)?;
    if stream.lane == Lane::Legacy {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut world = world();
    if world.captures.of(stream).is_some() {
        return Err(Error::ILLEGAL_STATE);
    }
    let mut branch = stream.branch();
    let graph = match into {
        Some((graph, after)) => {
            world.check_dependencies(graph, &after)?;
            branch.after = after;
            graph
        }
        None => world.create(),
    };
    let captures = &mut world.captures;
    captures.last += 1;
    let id = captures.last;
    let origin = key(stream);
    captures.by_stream.insert(origin, id);
    let capture = Capture {
        graph,
        mode,
        thread: Lane::of_this_thread(),
        origin,
        invalid: false,
        branches: HashMap::from([(origin, branch)]),
    };
    captures.all.insert(id, capture);
    ACTIVE.store(captures.all.len(), Relaxed);
    Ok(())
}

/// `cuStreamEndCapture`: the graph. A capture that fails is over as well.
pub(crate) fn end(stream: &StreamRef) -> Result<usize> {
    let mut world = world();
    let (id, capture) = world.captures.of(stream).ok_or(Error::ILLEGAL_STATE)?;
    if capture.origin != key(stream) {
        capture.invalid = true;
        return Err(Error::STREAM_CAPTURE_UNMATCHED);
    }
    let capture = world.captures.take(id).ok_or(Error::UNKNOWN)?;
    let ended = check_end(&world, &capture);
    if ended.is_err() {
        // As recorded, also one that was there before.
        let destroyed = world.destroy(capture.graph);
        drop(world);
        destroyed?.end()?;
    }
    ended.map(|()| capture.graph)
}

fn check_end(world: &World, capture: &Capture) -> Result<()> {
    if capture.mode != Mode::Relaxed && capture.thread != Lane::of_this_thread() {
        return Err(Error::STREAM_CAPTURE_WRONG_THREAD);
    }
    if capture.invalid {
        return Err(Error::STREAM_CAPTURE_INVALIDATED);
    }
    let origin = capture.branches.get(&capture.origin);
    let origin = origin.map_or(&[][..], |branch| &branch.after);
    let joined = |branch: &Branch| world.reaches(origin, &branch.after);
    if capture.branches.values().all(joined) {
        Ok(())
    } else {
        host::log!(
            "a stream that took part in the capture was not joined with the one that began it"
        );
        Err(Error::STREAM_CAPTURE_UNJOINED)
    }
}

/// What a capture has come to on a stream; `None` if none goes on. As documented, the legacy stream cannot be asked about
/// while a blocking stream captures.
pub(crate) fn info(stream: &StreamRef) -> Result<Option<Info>> {
    if none() {
        return Ok(None);
    }
    let mut world = world();
    if stream.lane == Lane::Legacy && world.captures.all.values().any(blocks(stream)) {
        return Err(Error::STREAM_CAPTURE_IMPLICIT);
    }
    let Some((id, capture)) = world.captures.of(stream) else {
        return Ok(None);
    };
    let (invalid, graph) = (capture.invalid, capture.graph);
    let branch = capture.branches.entry(key(stream)).or_default();
    let data = branch.after.iter().map(|edge| {
        let data = edge.data;
        [data.from_port, data.to_port, data.kind, 0, 0, 0, 0, 0]
    });
    branch.told = Told {
        nodes: branch.after.iter().map(|edge| edge.node).collect(),
        data: data.collect(),
    };
    let count = branch.after.len();
    let address = |place: usize| if count == 0 { 0 } else { place };
    Ok(Some(Info {
        id,
        invalid,
        graph,
        nodes: address(branch.told.nodes.as_ptr().addr()),
        data: address(branch.told.data.as_ptr().addr()),
        count,
        lossy: branch.told.data.iter().any(|data| *data != [0; 8]),
    }))
}

/// `cuStreamUpdateCaptureDependencies`: sets what the next node depends on, or adds to it.
pub(crate) fn update(stream: &StreamRef, after: Vec<Edge>, replace: bool) -> Result<()> {
    let mut world = world();
    let (id, capture) = world.captures.valid(stream)?;
    let graph = capture.graph;
    world.check_dependencies(graph, &after)?;
    let capture = world.captures.all.get_mut(&id).ok_or(Error::UNKNOWN)?;
    let branch = capture.branches.entry(key(stream)).or_default();
    if replace {
        branch.after = after;
    } else {
        branch.join(&after);
    }
    Ok(())
}

impl Branch {
    /// Makes the next node depend on these, too.
    fn join(&mut self, after: &[Edge]) {
        for edge in after {
            if !self.after.iter().any(|e| e.node == edge.node) {
                self.after.push(*edge);
            }
        }
    }
}

/// A wrong call on a stream: as recorded, some spoil the capture that the stream is in, unless a handle was wrong.
pub(crate) fn spoil<T>(stream: &StreamRef, result: Result<T>) -> Result<T> {
    if let Err(error) = &result
        && *error != Error::INVALID_HANDLE
    {
        refuse(stream, *error)?;
    }
    result
}

/// Makes a node of what is put on a capturing stream.
pub(crate) fn add(stream: &StreamRef, action: Action) -> Result<()> {
    add_with(stream, |world, graph, after| {
        world.add(graph, after, action)
    })
}

/// The same, of a node that `make` adds.
pub(crate) fn add_with(
    stream: &StreamRef,
    make: impl FnOnce(&mut World, usize, Vec<Edge>) -> Result<usize>,
) -> Result<()> {
    let mut world = world();
    let (id, capture) = world.captures.valid(stream)?;
    let graph = capture.graph;
    let branch = capture.branches.get(&key(stream));
    let after = branch.map(|b| b.after.clone()).unwrap_or_default();
    let node = make(&mut world, graph, after)?;
    let capture = world.captures.all.get_mut(&id).ok_or(Error::UNKNOWN)?;
    let branch = capture.branches.entry(key(stream)).or_default();
    branch.after = vec![Edge::plain(node)];
    Ok(())
}

/// What an event carries that is recorded on this stream; `None` if it does not capture.
pub(crate) fn record(stream: &StreamRef) -> Result<Option<Captured>> {
    if none() {
        return Ok(None);
    }
    let mut world = world();
    if world.captures.of(stream).is_none() {
        return Ok(None);
    }
    let (capture, ours) = world.captures.valid(stream)?;
    let branch = ours.branches.get(&key(stream));
    let after = branch.map(|b| b.after.clone()).unwrap_or_default();
    Ok(Some(Captured { capture, after }))
}

/// `cuStreamWaitEvent` of an event that was recorded in a capture: the stream joins it.
pub(crate) fn join(stream: &StreamRef, event: &Captured) -> Result<()> {
    check_legacy(stream)?;
    let mut world = world();
    let captures = &mut world.captures;
    let own = captures
        .of(stream)
        .map(|(id, capture)| (id, capture.invalid));
    if own.is_some_and(|(_, invalid)| invalid) {
        return Err(Error::STREAM_CAPTURE_INVALIDATED);
    }
    let Some(capture) = captures.all.get_mut(&event.capture) else {
        // It is over.
        return match own {
            Some((own, _)) => captures.refuse(own, Error::INVALID_VALUE),
            None => Err(Error::INVALID_VALUE),
        };
    };
    if capture.invalid {
        return Err(Error::STREAM_CAPTURE_INVALIDATED);
    }
    if own.is_some_and(|(own, _)| own != event.capture) {
        capture.invalid = true;
        let own = own.map_or(0, |(own, _)| own);
        return captures.refuse(own, Error::STREAM_CAPTURE_MERGE);
    }
    if stream.lane == Lane::Legacy {
        capture.invalid = true;
        return Err(Error::STREAM_CAPTURE_IMPLICIT);
    }
    let branch = capture.branches.entry(key(stream));
    branch.or_insert_with(|| stream.branch()).join(&event.after);
    captures.by_stream.insert(key(stream), event.capture);
    Ok(())
}

impl Captures {
    /// Invalidates a capture, and gives the error.
    fn refuse(&mut self, id: u64, error: Error) -> Result<()> {
        if let Some(capture) = self.all.get_mut(&id) {
            capture.invalid = true;
        }
        Err(error)
    }
}

/// Refuses what cannot be done while a stream captures: the capture ends in an error.
pub(crate) fn refuse(stream: &StreamRef, error: Error) -> Result<()> {
    if none() {
        return Ok(());
    }
    let mut world = world();
    match world.captures.of(stream).map(|(id, _)| id) {
        Some(id) => world.captures.refuse(id, error),
        None => Ok(()),
    }
}

/// Refuses what is put on a stream whose capture is spoiled.
pub(crate) fn check_valid(stream: &StreamRef) -> Result<()> {
    if none() || world().captures.of(stream).is_none_or(|(_, c)| !c.invalid) {
        return Ok(());
    }
    Err(Error::STREAM_CAPTURE_INVALIDATED)
}

/// Whether the capture that an event was recorded in is over.
pub(crate) fn is_over(event: &Captured) -> bool {
    !world().captures.all.contains_key(&event.capture)
}

/// An event that was recorded in a capture was asked about, or waited for, by the host: the capture is spoiled, unless it is
/// over, or only times were asked for.
pub(crate) fn refuse_event(event: &Captured, spoils: bool) -> Result<()> {
    let mut world = world();
    let Some(capture) = world.captures.all.get_mut(&event.capture) else {
        return Err(Error::INVALID_VALUE);
    };
    capture.invalid |= spoils;
    Err(Error::CAPTURED_EVENT)
}

/// Whether a stream of a capture is one that the legacy stream of this context waits for.
fn blocks(legacy: &StreamRef) -> impl Fn(&Capture) -> bool {
    let context = legacy.context.id();
    move |capture| {
        let mut branches = capture.branches.iter();
        branches.any(|((of, _), branch)| *of == context && branch.blocking)
    }
}

/// Refuses work on the legacy stream while a stream captures that it would have to wait for.
pub(crate) fn check_legacy(stream: &StreamRef) -> Result<()> {
    if none() || stream.lane != Lane::Legacy {
        return Ok(());
    }
    if world().captures.invalidate(blocks(stream)) {
        return Err(Error::STREAM_CAPTURE_IMPLICIT);
    }
    Ok(())
}

/// Refuses to wait for a context in which streams capture.
pub(crate) fn check_context(context: u64) -> Result<()> {
    if none() {
        return Ok(());
    }
    let in_context = |capture: &Capture| capture.branches.keys().any(|(of, _)| *of == context);
    if world().captures.invalidate(in_context) {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

/// Refuses what may wait for the device, where the calling thread's mode and the captures that go on forbid it.
pub(crate) fn check_unsafe() -> Result<()> {
    if none() {
        return Ok(());
    }
    let mode = Mode::of(MODE.get()).unwrap_or(Mode::Relaxed);
    let thread = Lane::of_this_thread();
    let forbids = |capture: &Capture| match (mode, capture.mode) {
        (Mode::Relaxed, _) | (_, Mode::Relaxed) => false,
        (Mode::Global, Mode::Global) => true,
        _ => capture.thread == thread,
    };
    if world().captures.invalidate(forbids) {
        return Err(Error::STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

/// A stream is destroyed: the capture that it began is over.
pub(crate) fn forget(context: u64, lane: Lane) {
    forget_where(|stream| *stream == (context, lane));
}

/// A context is destroyed, and its streams with it.
pub(crate) fn forget_context(context: u64) {
    forget_where(|stream| stream.0 == context);
}

fn forget_where(gone: impl Fn(&Key) -> bool) {
    if none() {
        return;
    }
    let mut world = world();
    let captures = &mut world.captures;
    // What they joined keeps their part, with which nobody can join it any more.
    captures.by_stream.retain(|stream, _| !gone(stream));
    let over = captures.all.iter().filter(|(_, c)| gone(&c.origin));
    let over: Vec<u64> = over.map(|(id, _)| *id).collect();
    let graphs = over.into_iter().filter_map(|id| captures.take(id));
    let graphs: Vec<usize> = graphs.map(|capture| capture.graph).collect();
    let destroyed: Vec<_> = graphs.into_iter().map(|g| world.destroy(g)).collect();
    drop(world);
    for of_graph in destroyed.into_iter().flatten() {
        // As in `cuGraphDestroy`; whoever destroys a stream is not told.
        let _ = of_graph.end();
    }
}
