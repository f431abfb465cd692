//! Trace events of work on streams: its submission, its start and its end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::json::Object;
use crate::trace::recorder::{Recorder, StreamTrack, Track, event, now};
use crate::trace::{with, with_same};

/// A kind of work on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Kernel,
    /// A copy or a fill.
    Copy,
    HostFunction,
}

/// Work on a stream that has been submitted.
pub(crate) struct Job {
    kind: JobKind,
    name: String,
    stream: StreamTrack,
    fields: Object,
    /// Number of blocks of a kernel, or number of bytes of a copy or fill; 0 for a host function.
    size: u64,
    /// Identifies the arrow that a viewer draws from the call to the work.
    arrow: u64,
    /// The number of the recording that has the submission; `None` if nothing was being recorded.
    recording: Option<u64>,
}

impl Job {
    /// Records that the calling thread submits work.
    pub(crate) fn submit(kind: JobKind, name: String, stream: StreamTrack, fields: Object, size: u64) -> Job {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let arrow = LAST.fetch_add(1, Relaxed) + 1;
        let recording = with(|recorder| {
            let track = recorder.thread();
            recorder.write(event("submit", "submit", "s", now(), track).number("id", arrow));
            recorder.number
        });
        Job {
            kind,
            name,
            stream,
            fields,
            size,
            arrow,
            recording,
        }
    }

    /// Records that the work begins, unless the recording that has its submission has ended.
    pub(crate) fn begin(self) -> Span {
        let Job {
            kind,
            name,
            stream,
            fields,
            size,
            arrow,
            recording,
        } = self;
        let category = match kind {
            JobKind::Kernel => "kernel",
            JobKind::Copy => "copy",
            JobKind::HostFunction => "host function",
        };
        let begin = |recorder: &mut Recorder| {
            let (track, branch) = recorder.claim(&stream);
            let at = now();
            recorder.write(event(&name, category, "B", at, track).object("args", fields));
            let arrow = event("submit", "submit", "f", at, track).number("id", arrow);
            recorder.write(arrow.text("bp", "e"));
            SpanPlace {
                recording: recorder.number,
                track,
                branch,
                begin: at,
            }
        };
        let place = recording.and_then(|number| with_same(number, begin));
        Span {
            kind,
            name,
            category,
            stream,
            size,
            place,
        }
    }
}

/// Running work of a stream. Dropping it records its end.
pub(crate) struct Span {
    kind: JobKind,
    name: String,
    category: &'static str,
    stream: StreamTrack,
    size: u64,
    /// `None` after the end, and if the recording had ended at the start.
    place: Option<SpanPlace>,
}

/// The place of running work in a trace.
struct SpanPlace {
    /// The number of the recording.
    recording: u64,
    track: Track,
    /// The branch of the stream.
    branch: usize,
    /// The time of the start.
    begin: u64,
}

impl Span {
    /// Records the end of the work, with its fault if it has failed.
    pub(crate) fn end(mut self, fault: Option<&str>) {
        self.record(fault);
    }

    fn record(&mut self, fault: Option<&str>) {
        let Some(place) = self.place.take() else {
            return;
        };
        with_same(place.recording, |recorder| {
            let at = now();
            let fields = match fault {
                Some(fault) => Object::new().text("fault", fault),
                None => Object::new(),
            };
            recorder.write(event(&self.name, self.category, "E", at, place.track).object("args", fields));
            recorder.release(&self.stream, place.branch);
            let time = Duration::from_nanos(at.saturating_sub(place.begin));
            match self.kind {
                JobKind::Kernel => {
                    let total = recorder.summary.kernels.entry(self.name.clone()).or_default();
                    total.count += 1;
                    total.blocks += self.size;
                    total.time += time;
                }
                JobKind::Copy => {
                    let total = recorder.summary.copies.entry(self.name.clone()).or_default();
                    total.count += 1;
                    total.bytes += self.size;
                    total.time += time;
                }
                JobKind::HostFunction => {}
            }
        });
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.record(None);
    }
}
