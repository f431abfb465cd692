//! Submits operations to streams: they are queued, run in the calling thread after the stream's work if the call waits,
//! or become nodes of a graph if the stream captures.

use std::sync::Arc;

use crate::call::capture;
use crate::object::foreign_use;
use crate::object::place::MemoryPlace;
use crate::object::sparse::MapChanges;
use crate::object::stream::StreamRef;
use crate::operation::copy::{CopyOperation, Waits, copy_bytes, host_waits, is_synchronous};
use crate::operation::fill::Fill;
use crate::operation::kernel::{Attributes, KernelLaunch, PRIORITY};
use crate::operation::launch::ReadyLaunch;
use crate::operation::memory_operation::{Batch, MemoryOperation};
use crate::operation::ordered::{Ordered, span};
use crate::operation::outcome::{RangeResult, cost, freed_fault};
use crate::operation::region::{Base, Extent, Side, copy_rows, write_rows};
use crate::operation::staged::{Staged, can_be_staged, is_room_for};
use crate::operation::timeline::{self, recorded};
use crate::operation::{HostFunction, Operation};
use crate::queue::scheduler::{observe_fault, scheduler};
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::trace::{self, Job};
use engine::check::Span;
use engine::memory::host::HostRange;

/// Runs a task that uses these places, in stream order. If `wait` is true, waits for the stream and runs the task in
/// the calling thread. If another thread frees the memory during the wait, returns `CUDA_ERROR_INVALID_VALUE`, as for
/// memory that was freed before the call.
///
/// `cost` estimates the duration in nanoseconds, and `job` describes the task in traces. The last argument is for the
/// check of races: the work, or `None` if it is not compared, and the memory that it uses.
fn run(
    places: &[MemoryPlace],
    task: impl FnOnce() -> RangeResult + Send + 'static,
    cost: u64,
    stream: &StreamRef,
    wait: bool,
    job: impl FnOnce() -> Job,
    (ordered, spans): (Option<Ordered>, impl FnOnce() -> Vec<Span>),
) -> Result<()> {
    let ordered = ordered.map(|ordered| (ordered, spans()));
    if !wait {
        let task = || {
            task().map_err(freed_fault)?;
            if let Some((ordered, spans)) = ordered {
                ordered.used_by_task(&spans);
            }
            Ok(())
        };
        let work = recorded(Work::Run(Box::new(task)), || Some(job()));
        let task = stream.submit(&[], work, cost);
        for place in places {
            if let MemoryPlace::Device(allocation, _) = place {
                foreign_use::note(allocation, stream, task);
            }
        }
        return Ok(());
    }
    wait_like_work(stream);
    observe_fault()?;
    let _span = trace::on().then(|| job().begin());
    if let Some((ordered, spans)) = ordered {
        ordered.used_by_host(&spans);
    }
    task().map_err(|gone| {
        host::log!("memory of a copy or fill was freed before the copy or fill ran: {gone}");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Waits until new work of a stream could begin: for the stream, for the legacy stream if the stream is blocking, and
/// for the events that `cuCtxWaitEvent` has named.
fn wait_like_work(stream: &StreamRef) {
    scheduler().wait(stream.submit(&[], Work::Join, 0));
}

/// Returns true if the host waits because the call is synchronous and its context has `CU_CTX_SYNC_MEMOPS`.
fn context_waits(stream: &StreamRef, waits: Waits) -> bool {
    waits == Waits::Synchronous && stream.context.is_synchronous()
}

/// Returns true if the call does not return before a copy that is not staged.
fn call_waits(to: &MemoryPlace, from: &MemoryPlace, stream: &StreamRef, waits: Waits) -> bool {
    host_waits(to, from, waits) || context_waits(stream, waits) || waits == Waits::UntilRead
}

/// Returns true if a copy is staged, because the call must read the source, or because it can be and would otherwise
/// wait for other work. Very many bytes are not staged. A synchronous copy first waits for the work of its stream, as
/// with driver 580, but not for the events that `cuCtxWaitEvent` has named.
fn is_staged(to: &MemoryPlace, from: &MemoryPlace, bytes: u64, stream: &StreamRef, waits: Waits) -> Result<bool> {
    if waits == Waits::UntilRead {
        return Ok(is_room_for(bytes));
    }
    if !can_be_staged(to, from, bytes) || stream.starts_at_once() || context_waits(stream, waits) {
        return Ok(false);
    }
    if waits == Waits::Asynchronous {
        return Ok(true);
    }
    stream.drain();
    observe_fault()?;
    // Work that other threads have submitted meanwhile is no reason to return before the copy.
    Ok(stream.context.is_held())
}

/// Records for the check of races that the call itself reads the source of a staged copy.
fn read_by_call(bytes: u64, source: impl FnOnce() -> Vec<Span>) {
    if let Some(ordered) = Ordered::copy(bytes) {
        let spans = source();
        // Memory of the program is not compared.
        if !spans.is_empty() {
            ordered.used_by_host(&spans);
        }
    }
}

/// Copies a row of bytes. `host` turns an address and a length into memory of the program, which the caller keeps
/// valid.
pub(crate) fn copy_row(
    to: Base,
    from: Base,
    bytes: u64,
    stream: &StreamRef,
    waits: Waits,
    host: impl Fn(u64, u64) -> HostRange,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    if stream.is_capturing() {
        let extent = Extent {
            width: bytes,
            height: 1,
            depth: 1,
        };
        let copy = CopyOperation::new(Side::row(to), Side::row(from), extent, &host)?;
        return capture::add(stream, Operation::Copy(Arc::new(copy)));
    }
    let place = |base| match base {
        Base::Device(address) => MemoryPlace::copied(address, bytes),
        Base::Host(address) | Base::Unified(address) => MemoryPlace::of(host(address, bytes), bytes),
        Base::Array(..) | Base::Nothing => Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    let (to, from) = (place(to)?, place(from)?);
    copy(to, from, bytes, stream, waits)
}

/// Copies `bytes` bytes in one piece.
pub(crate) fn copy(to: MemoryPlace, from: MemoryPlace, bytes: u64, stream: &StreamRef, waits: Waits) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    to.check_writable()?;
    let places = [to, from];
    let job = || timeline::submit_copy(&places[0], &places[1], bytes, stream);
    match (to, from) {
        (MemoryPlace::Host(to), MemoryPlace::Host(from)) => {
            wait_like_work(stream);
            observe_fault()?;
            let _span = trace::on().then(|| job().begin());
            to.copy_from(from);
            Ok(())
        }
        _ if is_staged(&to, &from, bytes, stream, waits)? => {
            read_by_call(bytes, || span(&from, bytes, false));
            let staged = Staged::bytes(&from, bytes)?;
            let task = move || staged.write(&to);
            let used = (Ordered::copy(bytes), || span(&to, bytes, true));
            run(&[to], task, cost(bytes), stream, to.is_pageable(), job, used)
        }
        _ => {
            let wait = call_waits(&to, &from, stream, waits);
            let task = move || copy_bytes(to, from, bytes);
            let used = || [span(&to, bytes, true), span(&from, bytes, false)].concat();
            let used = (Ordered::copy(bytes), used);
            run(&places, task, cost(bytes), stream, wait, job, used)
        }
    }
}

/// Copies a box. `host` turns an address and a length into memory of the program, which the caller keeps valid.
pub(crate) fn copy_box(
    to: Side,
    from: Side,
    extent: Extent,
    stream: &StreamRef,
    waits: Waits,
    host: impl Fn(u64, u64) -> HostRange,
) -> Result<()> {
    if extent.is_empty() {
        return Ok(());
    }
    if stream.is_capturing() {
        let copy = CopyOperation::new(to, from, extent, &host)?;
        return capture::add(stream, Operation::Copy(Arc::new(copy)));
    }
    let (to, from) = (
        to.region(extent, &host)?.locate()?,
        from.region(extent, &host)?.locate()?,
    );
    to.place.check_writable()?;
    let bytes = extent.bytes();
    let reads_fault = from.faults();
    let can_be_staged = !reads_fault && (!to.faults() || waits == Waits::UntilRead);
    if can_be_staged && is_staged(&to.place, &from.place, bytes, stream, waits)? {
        read_by_call(bytes, || from.spans(extent, false));
        let staged = Staged::rows(&from, extent)?;
        let job = || timeline::submit_copy(&to.place, &from.place, bytes, stream);
        let used = (Ordered::copy(bytes), || to.spans(extent, true));
        let target = to.clone();
        let task = move || write_rows(&target, &staged, extent);
        let wait = to.place.is_pageable();
        return run(&[to.place], task, cost(bytes), stream, wait, job, used);
    }
    let wait = call_waits(&to.place, &from.place, stream, waits);
    let places = [to.place, from.place];
    let (writes, reads) = (to.clone(), from.clone());
    // An access to absent memory of an array with deferred mapping is a fault, so the copy runs as a task of the stream
    // even if the call waits. Such a call returns the fault if the source has deferred mapping; otherwise, a later call
    // does.
    let faults = to.faults() || reads_fault;
    let task = move || copy_rows(&to, &from, extent);
    let job = || timeline::submit_copy(&places[0], &places[1], bytes, stream);
    let used = || [writes.spans(extent, true), reads.spans(extent, false)].concat();
    let used = (Ordered::copy(bytes), used);
    run(&places, task, cost(bytes), stream, wait && !faults, job, used)?;
    if wait && faults {
        stream.drain();
    }
    if wait && reads_fault { observe_fault() } else { Ok(()) }
}

/// Sets memory. As documented, a synchronous call waits if the memory is page-locked or managed or has
/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`, or if the context has `CU_CTX_SYNC_MEMOPS`.
pub(crate) fn fill(fill: Fill, stream: &StreamRef, waits: Waits) -> Result<()> {
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    if stream.is_capturing() {
        // Only the address and the pitch are checked: driver 580 reports missing memory when the graph is instantiated.
        fill.reach()?;
        return capture::add(stream, Operation::Fill(fill));
    }
    let place = fill.place()?;
    let wait = waits == Waits::Synchronous && is_synchronous(&place) || context_waits(stream, waits);
    let bytes = fill.reach()?;
    let job = || timeline::submit_fill(fill.bytes(), stream);
    let used = (Ordered::fill(fill.bytes()), || fill.spans());
    run(&[place], move || fill.run(&place), cost(bytes), stream, wait, job, used)
}

/// Launches a kernel. In a capture, `packed` is true if queries of the node return the arguments as one buffer, and
/// false if they return a pointer to each.
pub(crate) fn launch(ready: ReadyLaunch, mut attributes: Attributes, packed: bool, stream: &StreamRef) -> Result<()> {
    if stream.is_capturing() {
        if stream.priority != 0 {
            let priority = u64::from(stream.priority.cast_unsigned());
            let value = [priority, 0, 0, 0, 0, 0, 0, 0];
            attributes.entry(PRIORITY).or_insert(value);
        }
        let launch = KernelLaunch::new(ready, attributes, packed);
        return capture::add(stream, Operation::Kernel(Arc::new(launch)));
    }
    let (work, cost) = ready.work()?;
    let work = recorded(work, || Some(timeline::submit_kernel(&ready, stream)));
    stream.submit(&[], work, cost);
    Ok(())
}

/// Submits the launches of one kernel on several devices, each with the stream that it runs on. With `joins_before`, each
/// launch waits for the earlier work of all these streams; with `joins_after`, later work of these streams waits for all
/// launches.
pub(crate) fn launch_on_devices(
    launches: &[(ReadyLaunch, StreamRef)],
    joins_before: bool,
    joins_after: bool,
) -> Result<()> {
    // If one launch fails, none is submitted.
    let works: Vec<_> = launches.iter().map(|(ready, _)| ready.work()).collect::<Result<_>>()?;
    let join = |after: &[TaskId]| -> Vec<TaskId> {
        let streams = launches.iter().map(|(_, stream)| stream);
        streams.map(|stream| stream.submit(after, Work::Join, 0)).collect()
    };
    let earlier = if joins_before { join(&[]) } else { Vec::new() };
    let launched = works.into_iter().zip(launches).map(|((work, cost), (ready, stream))| {
        let work = recorded(work, || Some(timeline::submit_kernel(ready, stream)));
        stream.submit(&earlier, work, cost)
    });
    let launched: Vec<_> = launched.collect();
    if joins_after {
        join(&launched);
    }
    Ok(())
}

/// Submits a host function.
pub(crate) fn host_function(function: HostFunction, stream: &StreamRef) -> Result<()> {
    if stream.is_capturing() {
        return capture::add(stream, Operation::Host(function));
    }
    let work = recorded(function.work(), || {
        Some(timeline::submit_host_function(function.function, stream))
    });
    stream.submit(&[], work, 0);
    Ok(())
}

/// Submits a function that receives the result code of an earlier fault, or 0 (`CUDA_SUCCESS`) if there is none.
pub(crate) fn callback(call: impl FnOnce(u32) + Send + 'static, stream: &StreamRef) {
    let work = recorded(Work::Host(Box::new(call)), || {
        Some(timeline::submit_host_function(0, stream))
    });
    stream.submit(&[], work, 0);
}

/// Submits changes of the memory of arrays.
pub(crate) fn map_arrays(changes: Vec<MapChanges>, stream: &StreamRef) {
    let task = move || {
        changes.into_iter().for_each(MapChanges::apply);
        Ok(())
    };
    stream.submit(&[], Work::Run(Box::new(task)), 0);
}

/// Submits empty work, so that the call takes part in the order of the stream.
pub(crate) fn join(stream: &StreamRef) {
    stream.submit(&[], Work::Join, 0);
}

/// Submits memory operations, which run one after the other. In a capture, they become one node.
pub(crate) fn memory_operations(operations: Vec<MemoryOperation>, stream: &StreamRef) -> Result<()> {
    if stream.is_capturing() {
        return capture::add(stream, Operation::Operations(Batch::new(operations)));
    }
    for operation in operations {
        stream.submit(&[], operation.work(), 0);
    }
    Ok(())
}
