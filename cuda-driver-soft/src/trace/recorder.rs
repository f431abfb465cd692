//! The file of a trace, and the names of its tracks.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::json::Object;
use crate::trace::summary::Summary;
use host::console;

/// Records events.
#[derive(Default)]
pub(super) struct Recorder {
    /// The number of the recording. What began in one recording does not end in another.
    pub(super) number: u64,
    file: Option<TraceFile>,
    /// The process and number of each track whose name is written; the number `u64::MAX` stands for the process's own
    /// name.
    named: HashSet<(u32, u64)>,
    /// The branches of each stream: true while work runs in the branch. Each branch has a track. Branch 0 is the stream
    /// itself, the others are for branches of graphs.
    branches: HashMap<u64, Vec<bool>>,
    pub(super) summary: Summary,
}

/// The file of a trace, which other processes may write, too.
struct TraceFile {
    file: File,
    path: PathBuf,
    /// The length in bytes after the last write of this process.
    length: u64,
    /// True if the array was closed by that write.
    is_closed: bool,
    /// True once the process exits or the trace ends: the array is closed after each event.
    exits: bool,
    /// True for a file that cannot be read or shortened, such as a pipe: the array is never closed.
    is_stream: bool,
}

/// Locks a file until it is unlocked or closed.
fn lock(file: &File) {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Some file systems have no locks; then only one process may write at a time.
            _ => return,
        }
    }
}

/// The end of the array of events.
const END: &str = "\n]\n";

impl TraceFile {
    /// Writes an event at the end of the array.
    fn write(&mut self, event: &str) -> io::Result<()> {
        self.change(|exits| event.to_owned() + if exits { END } else { "" })
    }

    /// Closes the array, which makes the file valid JSON.
    fn close(&mut self) -> io::Result<()> {
        self.exits = true;
        if self.is_stream {
            return Ok(());
        }
        if self.is_closed && self.file.metadata()?.len() == self.length {
            return Ok(());
        }
        self.change(|_| END.to_owned())
    }

    /// Adds text to the array: an event, or its end.
    fn change(&mut self, text: impl Fn(bool) -> String) -> io::Result<()> {
        if self.is_stream {
            let before = if self.length <= 1 { "\n" } else { ",\n" };
            let text = before.to_owned() + &text(false);
            self.length = self.length.saturating_add(text.len() as u64);
            return self.file.write_all(text.as_bytes());
        }
        lock(&self.file);
        let changed = self.change_locked(&text(self.exits));
        let _ = self.file.unlock();
        changed
    }

    fn change_locked(&mut self, text: &str) -> io::Result<()> {
        let mut length = self.file.metadata()?.len();
        let mut is_closed = self.is_closed;
        let mut is_empty = length <= 1;
        if length != self.length {
            // Another process has written, and may have closed the array.
            let mut tail = vec![0; length.min(END.len() as u64) as usize];
            self.file.seek(SeekFrom::End(-(tail.len() as i64)))?;
            self.file.read_exact(&mut tail)?;
            is_closed = tail == END.as_bytes();
        }
        if is_closed {
            length -= END.len() as u64;
            self.file.set_len(length)?;
            is_empty = length <= 1;
        }
        self.file.seek(SeekFrom::End(0))?;
        let text = match text {
            END => text.to_owned(),
            _ if is_empty => format!("\n{text}"),
            _ => format!(",\n{text}"),
        };
        self.file.write_all(text.as_bytes())?;
        self.length = length + text.len() as u64;
        self.is_closed = text.ends_with(END);
        Ok(())
    }
}

/// The track in which a viewer shows an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    pub(super) process: u32,
    pub(super) thread: u64,
}

/// A stream with its device.
#[derive(Clone, Debug)]
pub(crate) struct StreamTrack {
    pub(crate) device: i32,
    pub(crate) device_name: String,
    /// A number that no other stream has.
    pub(crate) id: u64,
    pub(crate) name: String,
}

/// Maximum number of branches of a stream. If all are taken, further work shares the last one.
const MOST_BRANCHES: usize = 64;

/// A clock, with its time at `begin` in nanoseconds.
#[derive(Clone, Copy)]
struct Clock {
    begin: Instant,
    nanoseconds: u64,
}

/// Returns the time in nanoseconds since the start of the day (UTC) on which this process recorded its first event.
/// So processes that record into the same file on one day have a common origin.
pub(super) fn now() -> u64 {
    const DAY: u64 = 86_400_000_000_000;
    static CLOCK: std::sync::OnceLock<Clock> = std::sync::OnceLock::new();
    let clock = CLOCK.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock {
            begin: Instant::now(),
            nanoseconds: (since.as_nanos() % u128::from(DAY)) as u64,
        }
    });
    clock.nanoseconds + clock.begin.elapsed().as_nanos() as u64
}

/// Returns the number of the calling thread in the trace.
fn this_thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(LAST.fetch_add(1, Relaxed) + 1);
        }
        number.get()
    })
}

/// Returns the file name of the program, with the number of its process.
fn process_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name} (process {})", std::process::id())
}

/// Returns the name of the calling thread, if it has one.
fn thread_name() -> Option<String> {
    let thread = std::thread::current();
    // Rust does not know the names of threads that C code started.
    let of_system = || std::fs::read_to_string("/proc/thread-self/comm").ok();
    let name = thread.name().map(str::to_owned).or_else(of_system)?;
    Some(name.trim_end().to_owned())
}

impl Recorder {
    /// Makes a recorder that records into a file and the summary, or into the summary only if `path` is `None`. Another
    /// process may have begun the file; `replace` empties it first.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be opened or written.
    pub(super) fn new(path: Option<&Path>, replace: bool) -> io::Result<Recorder> {
        let mut recorder = Recorder::default();
        if let Some(path) = path {
            let mut options = OpenOptions::new();
            options.create(true);
            if replace {
                options.write(true).truncate(true);
            } else if cfg!(windows) {
                // Windows cannot shorten a file that is opened to append.
                options.write(true);
            } else {
                options.append(true);
            }
            let failed = |error: io::Error| named(path, &error);
            // A pipe is not opened to read: if this process were a reader, too, its writes would block for ever instead
            // of failing once the other reader is gone.
            let is_file = !path.exists() || path.is_file();
            let readable = is_file.then(|| options.clone().read(true).open(path).ok()).flatten();
            let is_stream = readable.is_none();
            let mut file = match readable {
                Some(file) => file,
                None => options.open(path).map_err(failed)?,
            };
            // Another process may begin the same file at the same time.
            lock(&file);
            let mut length = file.metadata().map_err(failed)?.len();
            if length == 0 {
                file.write_all(b"[").map_err(failed)?;
                length = 1;
            } else {
                // Differs from the length of the file, so the first write reads the end of the file.
                length = u64::MAX;
            }
            let _ = file.unlock();
            recorder.file = Some(TraceFile {
                file,
                path: path.to_owned(),
                length,
                is_closed: false,
                exits: false,
                is_stream,
            });
        }
        Ok(recorder)
    }

    /// Writes to the file at once, because the process may end at any time. If the write fails, logs that and writes
    /// nothing more to the file.
    fn put(&mut self, put: impl FnOnce(&mut TraceFile) -> io::Result<()>) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = put(file) {
            let line = format!(
                "cuda-driver-soft: the trace ends early: {}\n",
                named(&file.path, &error)
            );
            console::write(console::Stream::Error, line.as_bytes());
            self.file = None;
        }
    }

    /// Writes the end of the file, which makes it valid JSON. Later events are written before it.
    pub(super) fn end(&mut self) {
        self.put(TraceFile::close);
    }

    /// Writes an event.
    pub(super) fn write(&mut self, event: Object) {
        self.put(|file| file.write(&event.end()));
    }

    /// Returns the track of the calling thread.
    pub(super) fn thread(&mut self) -> Track {
        let track = Track {
            process: std::process::id(),
            thread: this_thread(),
        };
        if !self.named.contains(&(track.process, track.thread)) {
            if self.named.insert((track.process, u64::MAX)) {
                self.metadata("process_name", track, &process_name());
            }
            let name = thread_name().unwrap_or_else(|| format!("thread {}", track.thread));
            self.name(track, &name);
        }
        track
    }

    /// Returns a free track for work of a stream, and its branch, which is then taken. Work of one stream runs in
    /// order, except for the branches of a graph: each gets a track of its own.
    pub(super) fn claim(&mut self, stream: &StreamTrack) -> (Track, usize) {
        let branches = self.branches.entry(stream.id).or_default();
        let free = branches.iter().position(|taken| !taken);
        let branch = free.unwrap_or(branches.len()).min(MOST_BRANCHES - 1);
        if branch == branches.len() {
            branches.push(true);
        }
        branches[branch] = true;
        // Process identifiers have at most 22 bits on Linux.
        let device = (stream.device + 1) as u32;
        let track = Track {
            process: device << 24 | std::process::id() & 0xFF_FFFF,
            thread: stream.id.wrapping_mul(MOST_BRANCHES as u64).wrapping_add(branch as u64) & ((1 << 53) - 1),
        };
        if self.named.insert((track.process, u64::MAX)) {
            let name = format!("device {}: {}", stream.device, stream.device_name);
            self.metadata("process_name", track, &name);
        }
        match branch {
            0 => self.name(track, &stream.name),
            _ => self.name(track, &format!("{}, branch {branch} of a graph", stream.name)),
        }
        (track, branch)
    }

    /// Frees a branch that [`claim`](Self::claim) returned.
    pub(super) fn release(&mut self, stream: &StreamTrack, branch: usize) {
        if let Some(taken) = self
            .branches
            .get_mut(&stream.id)
            .and_then(|branches| branches.get_mut(branch))
        {
            *taken = false;
        }
    }

    fn name(&mut self, track: Track, name: &str) {
        if self.named.insert((track.process, track.thread)) {
            self.metadata("thread_name", track, name);
        }
    }

    fn metadata(&mut self, kind: &str, track: Track, name: &str) {
        let event = Object::new()
            .text("name", kind)
            .text("ph", "M")
            .number("pid", track.process)
            .number("tid", track.thread)
            .object("args", Object::new().text("name", name));
        self.write(event);
    }
}

/// Returns an event with the fields that all events have, for the caller to add others.
pub(super) fn event(name: &str, category: &str, phase: &str, at: u64, track: Track) -> Object {
    Object::new()
        .text("name", name)
        .text("cat", category)
        .text("ph", phase)
        .number("ts", format_args!("{}.{:03}", at / 1000, at % 1000))
        .number("pid", track.process)
        .number("tid", track.thread)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot write the trace to {}: {error}", path.display()),
    )
}
