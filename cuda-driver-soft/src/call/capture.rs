//! Stream capture: the calls that begin and end it, and the nodes that captured operations become.

use cuda_driver_sys::CUevent_record_flags;

use crate::graph::store::{Destroyed, note, store};
use crate::object::green::GreenContext;
use crate::object::stream::{self, StreamRef};
use crate::operation::Operation;
use crate::queue::capture::{self, CaptureMode, captures};
use crate::queue::edge::Edge;
use crate::queue::streams::QueueId;
use crate::state::error::{Error, Result};

/// `cuStreamBeginCapture` into a new graph, or `cuStreamBeginCaptureToGraph` into an existing one, after some of its
/// nodes.
pub(crate) fn begin(stream: &StreamRef, mode: CaptureMode, into: Option<(usize, Vec<Edge>)>) -> Result<()> {
    let key = stream.key();
    capture::check_legacy(key)?;
    if stream.is_legacy() {
        return Err(Error::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut captures = captures();
    // Checked under the lock: the end of a stream or context first removes it, and then takes the lock to end captures.
    stream.check_live()?;
    if captures.has(key) {
        return Err(Error::CUDA_ERROR_ILLEGAL_STATE);
    }
    let mut store = store();
    let is_new = into.is_none();
    let (graph, after) = match into {
        Some((graph, after)) => {
            store.check_dependencies(graph, &after)?;
            if captures.captures_to(graph) {
                return Err(Error::CUDA_ERROR_ILLEGAL_STATE);
            }
            (graph, after)
        }
        None => (store.create(), Vec::new()),
    };
    captures.begin(key, mode, (graph, is_new), after);
    drop(store);
    drop(captures);
    if is_new {
        note(graph);
    }
    Ok(())
}

/// `cuStreamEndCapture`: returns the graph, and true if the graph was created for the capture. On the stream that began
/// the capture, the capture ends even if the call fails.
pub(crate) fn end(stream: &StreamRef) -> Result<(usize, bool)> {
    let mut captures = captures();
    let capture = captures.end(stream.key())?;
    let mut store = store();
    let ended = capture
        .check()
        .and_then(|()| capture.check_joined(|from| store.reached(from)));
    if ended.is_err() {
        // Driver 580 destroys the graph, even one that existed before the capture. A graph inside another one stays.
        // The call returns the capture's own error, even if the graph stays or releasing a user object fails.
        let destroyed = store.destroy(capture.graph, &captures);
        drop(store);
        drop(captures);
        let _ = destroyed.and_then(Destroyed::end);
    }
    ended.map(|()| (capture.graph, capture.is_new))
}

/// `cuStreamUpdateCaptureDependencies`: replaces the dependencies of the stream's next node, or adds to them.
pub(crate) fn update(stream: &StreamRef, after: Vec<Edge>, replace: bool) -> Result<()> {
    let mut captures = captures();
    let (graph, _) = captures.next(stream.key())?;
    store().check_dependencies(graph, &after)?;
    captures.set_next(stream.key(), after, replace)
}

/// Adds a node for an operation on a capturing stream. The stream's next node depends on it.
pub(crate) fn add(stream: &StreamRef, operation: Operation) -> Result<()> {
    let mut captures = captures();
    let (graph, after) = captures.next(stream.key())?;
    let node = store().add(graph, after, operation)?;
    captures.set_next(stream.key(), vec![Edge::plain(node)], true)
}

/// Returns true if the flags of `cuStreamWaitEvent` or `cuEventRecordWithFlags` request a node that waits for or
/// records the event. Returns `CUDA_ERROR_ILLEGAL_STATE` if they do and the stream does not capture, and
/// `CUDA_ERROR_INVALID_VALUE` for unknown flags.
pub(crate) fn is_external(flags: u32, stream: &StreamRef) -> Result<bool> {
    // `CU_EVENT_WAIT_EXTERNAL` has the same value.
    const EXTERNAL: u32 = CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0;
    match flags {
        0 => Ok(false),
        EXTERNAL if stream.is_capturing() => Ok(true),
        EXTERNAL => Err(Error::CUDA_ERROR_ILLEGAL_STATE),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Ends the capture that a destroyed stream began, and destroys its graph.
pub(crate) fn forget(context: u64, queue: QueueId) {
    forget_where(|of, stream| (of, stream) == (context, queue));
}

/// Ends the captures that the streams of a destroyed context began, and destroys their graphs.
pub(crate) fn forget_context(context: u64) {
    forget_where(|of, _| of == context);
}

/// Ends the captures that the streams of a destroyed green context began, and destroys their graphs.
pub(crate) fn forget_green(green: &GreenContext) {
    forget_where(|_, queue| stream::is_in_green(queue, green));
}

fn forget_where(gone: impl Fn(u64, QueueId) -> bool) {
    let mut captures = captures();
    let graphs = captures.forget(gone);
    let mut store = store();
    let destroyed = graphs.into_iter().map(|graph| store.destroy(graph, &captures));
    let destroyed: Vec<_> = destroyed.collect();
    drop(store);
    drop(captures);
    for of_graph in destroyed.into_iter().flatten() {
        // Errors are dropped: destroying the stream or context succeeds even if releasing a user object fails.
        let _ = of_graph.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{stream as call, teardown};
    use crate::object::context;

    /// Another thread may destroy a stream or its context after the call has looked up the stream.
    #[test]
    fn no_capture_begins_on_a_destroyed_stream() {
        let context = context::for_test();
        let handle = stream::create(&context, None, 0, 0);
        let created = stream::resolve(handle, stream::NullStream::Legacy).unwrap();
        call::destroy(handle).unwrap();
        let error = Err(Error::CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(begin(&created, CaptureMode::Relaxed, None), error);
        assert!(!created.is_capturing());
        let own = StreamRef::of_default(context.clone(), QueueId::of_this_thread());
        teardown::destroy(context.handle).unwrap();
        let error = Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED);
        assert_eq!(begin(&own, CaptureMode::Relaxed, None), error);
        assert!(!own.is_capturing());
    }
}
