//! Records operations in a trace: their submission, and the start and the end of their work.

use std::sync::{Arc, Mutex, PoisonError};

use crate::json::Object;
use crate::object::place::MemoryPlace;
use crate::object::stream::StreamRef;
use crate::operation::Operation;
use crate::operation::copy::{CopyOperation, is_host};
use crate::operation::launch::ReadyLaunch;
use crate::queue::streams::QueueId;
use crate::queue::work::{Divisible, Fault, Work};
use crate::trace::{self, Job, JobKind, Span, StreamTrack};

/// Returns work that records its own start and end. Returns the work unchanged if no trace is being recorded, if `job`
/// returns `None`, and for work other than short work, host functions and kernels. `job` records the submission; it is
/// called only while a trace is being recorded.
pub(crate) fn recorded(work: Work, job: impl FnOnce() -> Option<Job>) -> Work {
    if !trace::on() {
        return work;
    }
    let Some(job) = job() else { return work };
    match work {
        Work::Run(task) => Work::Run(Box::new(move || {
            let span = job.begin();
            let result = task();
            span.end(result.as_ref().err().map(|fault| fault.message.as_str()));
            result
        })),
        Work::Host(function) => Work::Host(Box::new(move |fault| {
            let _span = job.begin();
            function(fault);
        })),
        Work::Kernel(start) => Work::Kernel(Box::new(move || {
            let span = Mutex::new(Some(job.begin()));
            Arc::new(RecordedKernel { kernel: start(), span })
        })),
        other => other,
    }
}

/// A kernel that records its end.
struct RecordedKernel {
    kernel: Arc<dyn Divisible>,
    span: Mutex<Option<Span>>,
}

impl Divisible for RecordedKernel {
    fn piece(&self) -> bool {
        self.kernel.piece()
    }

    fn finished(&self) -> bool {
        self.kernel.finished()
    }

    /// Also records the end of the kernel: the scheduler calls this before it starts work that waits for the kernel.
    fn fault(&self) -> Option<Fault> {
        let fault = self.kernel.fault();
        if let Some(span) = self.span.lock().unwrap_or_else(PoisonError::into_inner).take() {
            span.end(fault.as_ref().map(|fault| fault.message.as_str()));
        }
        fault
    }

    fn take_text(&self, at_least: usize) -> Vec<u8> {
        self.kernel.take_text(at_least)
    }
}

/// Returns the track of a stream.
fn track(stream: &StreamRef) -> StreamTrack {
    let device = stream.context.device;
    StreamTrack {
        device: device.ordinal,
        device_name: device.name(),
        id: stream.id(),
        name: match stream.queue {
            QueueId::Legacy => "default stream".into(),
            QueueId::PerThread(thread) => format!("default stream of thread {thread}"),
            QueueId::Created(handle) => format!("stream {handle:#x}"),
        },
    }
}

/// Records the submission of a kernel launch.
pub(crate) fn submit_kernel(ready: &ReadyLaunch, stream: &StreamRef) -> Job {
    let kernel = &ready.function.kernel;
    let shape = &ready.shape;
    let arguments = kernel.params().map(|(offset, size)| {
        let bytes = ready.params.get(offset as usize..(offset + size) as usize);
        match bytes.unwrap_or_default() {
            bytes @ ([] | [_, _, _, _, _, _, _, _, _, ..]) => format!("{} bytes", bytes.len()),
            bytes => {
                let mut value = [0; 8];
                value[..bytes.len()].copy_from_slice(bytes);
                format!("{:#x}", u64::from_le_bytes(value))
            }
        }
    });
    let mut fields = Object::new()
        .numbers("grid", &shape.grid)
        .numbers("block", &shape.block)
        .number("dynamic shared memory", shape.shared)
        .texts("arguments", arguments);
    if let Some(cluster) = &shape.cluster {
        fields = fields.numbers("cluster", cluster);
    }
    let blocks = shape.grid.iter().map(|&n| u64::from(n)).product();
    Job::submit(JobKind::Kernel, kernel.name().into(), track(stream), fields, blocks)
}

/// Records the submission of a copy between these places.
pub(crate) fn submit_copy(to: &MemoryPlace, from: &MemoryPlace, bytes: u64, stream: &StreamRef) -> Job {
    of_bytes(copy_name(is_host(to), is_host(from)), bytes, stream)
}

/// Returns the name of a copy. Each argument is true for memory of the host.
fn copy_name(to: bool, from: bool) -> String {
    let letter = |host| if host { 'H' } else { 'D' };
    format!("copy {}to{}", letter(from), letter(to))
}

/// Records the submission of a fill.
pub(crate) fn submit_fill(bytes: u64, stream: &StreamRef) -> Job {
    of_bytes("fill".into(), bytes, stream)
}

fn of_bytes(name: String, bytes: u64, stream: &StreamRef) -> Job {
    let fields = Object::new().number("bytes", bytes);
    Job::submit(JobKind::Copy, name, track(stream), fields, bytes)
}

/// Records the submission of a host function, which the trace shows by its address.
pub(crate) fn submit_host_function(address: usize, stream: &StreamRef) -> Job {
    let fields = Object::new().text("function", &format!("{address:#x}"));
    Job::submit(JobKind::HostFunction, "host function".into(), track(stream), fields, 0)
}

/// Records the submission of the operation of a graph node; `None` for an operation that a trace does not show.
pub(crate) fn submit_node(operation: &Operation, stream: &StreamRef) -> Option<Job> {
    match operation {
        Operation::Kernel(launch) => Some(submit_kernel(&launch.ready, stream)),
        Operation::Copy(operation) => Some(of_node(operation, stream)),
        Operation::Fill(operation) => {
            let bytes = operation.width * operation.value.bytes() * operation.height;
            Some(submit_fill(bytes, stream))
        }
        Operation::Host(function) => Some(submit_host_function(function.function, stream)),
        _ => None,
    }
}

fn of_node(copy: &CopyOperation, stream: &StreamRef) -> Job {
    let [to, from] = copy.are_on_host();
    of_bytes(copy_name(to, from), copy.extent.bytes(), stream)
}
