//! Copies and fills.
//!
//! All are checked when they are asked for and done in their stream's order. What the host waits for follows recorded
//! behaviour: copies between device and pageable memory, and nothing else.

use super::capture;
use super::error::{Error, Result};
use super::graph::node::Action;
use super::memory::Place;
use super::process::observe_fault;
use super::stream::StreamRef;
use super::work::{Fault, Work};
use engine::memory::{BadRange, space};

/// Copies from pageable memory up to this many bytes are taken at once and written later.
const STAGED: u64 = 64 << 10;

/// Whether the call that asks for a copy is one of the asynchronous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// `cuMemcpyHtoD` and the like.
    Synchronous,
    /// `…Async`
    Asynchronous,
}

/// A guess of how long it takes to move this many bytes, in nanoseconds.
pub(crate) fn cost(bytes: u64) -> u64 {
    bytes / 8
}

/// What comes of a copy or fill when its turn has come. Its memory was there when it was asked for; it may be gone if another
/// stream has freed it meanwhile.
pub(crate) type Done = std::result::Result<(), BadRange>;

/// Memory that is gone when a stream comes to work on it: the code is the one recorded for a copy.
pub(crate) fn gone(gone: BadRange) -> Fault {
    Fault {
        code: Error::LAUNCH_FAILED.0,
        message: format!("work of a stream, on memory that was freed before its turn: {gone}"),
        stderr: None,
    }
}

/// Copies `bytes` bytes in one piece.
pub(crate) fn copy(
    to: Place,
    from: Place,
    bytes: u64,
    stream: &StreamRef,
    waits: Waits,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    to.check_writable()?;
    match (to, from) {
        (Place::Host(to), Place::Host(from)) => {
            stream.drain();
            observe_fault()?;
            to.copy_from(from);
            Ok(())
        }
        (Place::Device(..), Place::Host(host))
            if waits == Waits::Asynchronous && bytes <= STAGED && !stream.is_idle() =>
        {
            let staged = host.snapshot();
            let Place::Device(_, address) = to else {
                return Err(Error::UNKNOWN);
            };
            let task = move || {
                to.check_still_there()?;
                space().write(address, &staged)
            };
            run(task, cost(bytes), stream, false)
        }
        _ => {
            let wait = host_waits(&to, &from, waits);
            let task = move || {
                to.check_still_there()?;
                from.check_still_there()?;
                match (to, from) {
                    (Place::Device(_, to), Place::Device(_, from)) => space().copy(to, from, bytes),
                    (Place::Device(_, to), Place::Host(from)) => from.write_to(to),
                    (Place::Host(to), Place::Device(_, from)) => to.read_from(from),
                    (Place::Host(to), Place::Host(from)) => {
                        to.copy_from(from);
                        Ok(())
                    }
                }
            };
            run(task, cost(bytes), stream, wait)
        }
    }
}

/// Copies what is there now, whatever the stream has yet to do to it, when the stream's turn has come.
pub(crate) fn copy_what_is_there(
    to: Place,
    from: Place,
    bytes: u64,
    stream: &StreamRef,
) -> Result<()> {
    let staged = match from {
        Place::Host(host) => host.snapshot(),
        Place::Device(_, address) => {
            let mut staged = vec![0; bytes as usize];
            let read = space().read(address, &mut staged);
            read.map_err(|_| Error::INVALID_VALUE)?;
            staged
        }
    };
    let task = move || {
        to.check_still_there()?;
        match to {
            Place::Device(_, address) => space().write(address, &staged),
            Place::Host(host) => {
                host.write(&staged);
                Ok(())
            }
        }
    };
    run(task, cost(bytes), stream, to.is_pageable())
}

/// Whether the host waits for a copy: if pageable memory is on one side, and in the synchronous calls if page-locked memory
/// is.
pub(crate) fn host_waits(to: &Place, from: &Place, waits: Waits) -> bool {
    let pageable = to.is_pageable() || from.is_pageable();
    pageable || (waits == Waits::Synchronous && (is_host(to) || is_host(from)))
}

fn is_host(place: &Place) -> bool {
    match place {
        Place::Device(allocation, _) => allocation.kind.is_host_accessible(),
        Place::Host(_) => true,
    }
}

/// Does a task in the stream's order; at once if the host waits for it and nothing is before it. Memory that another thread
/// freed while the host waited was freed before the call, as far as anybody can tell.
pub(crate) fn run(
    task: impl FnOnce() -> Done + Send + 'static,
    cost: u64,
    stream: &StreamRef,
    wait: bool,
) -> Result<()> {
    if !wait {
        let task = || task().map_err(gone);
        stream.submit(&[], Work::Task(Box::new(task)), cost);
        return Ok(());
    }
    stream.drain();
    observe_fault()?;
    task().map_err(|gone| {
        host::log!("a copy or fill, of memory that was freed meanwhile: {gone}");
        Error::INVALID_VALUE
    })
}

/// The value of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    U8(u8),
    U16(u16),
    U32(u32),
}

impl Value {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Value::U8(_) => 1,
            Value::U16(_) => 2,
            Value::U32(_) => 4,
        }
    }
}

/// Rows of `width` values, `pitch` bytes apart. One row is a plain fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) value: Value,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Fill {
    /// Bytes from the first that is set to the last.
    pub(crate) fn reach(&self) -> Result<u64> {
        let size = self.value.bytes();
        let row = self.width.checked_mul(size).ok_or(Error::INVALID_VALUE)?;
        if !self.address.is_multiple_of(size)
            || (self.height > 1 && (self.pitch < row || !self.pitch.is_multiple_of(size)))
        {
            return Err(Error::INVALID_VALUE);
        }
        let before_last = self.pitch.checked_mul(self.height - 1);
        let all = before_last.and_then(|before| before.checked_add(row));
        all.ok_or(Error::INVALID_VALUE)
    }

    /// The memory; page-locked memory of the host is filled as well.
    pub(crate) fn place(&self) -> Result<Place> {
        let place = Place::device(self.address, self.reach()?)?;
        place.check_writable()?;
        Ok(place)
    }

    /// Sets the values.
    pub(crate) fn run(&self, place: &Place) -> Done {
        place.check_still_there()?;
        for y in 0..self.height {
            let at = self.address + y * self.pitch;
            match self.value {
                Value::U8(v) => space().fill8(at, v, self.width),
                Value::U16(v) => space().fill16(at, v, self.width),
                Value::U32(v) => space().fill32(at, v, self.width),
            }?;
        }
        Ok(())
    }
}

/// Sets memory. As documented, the host waits for it where it can see the memory itself, unless the call is an asynchronous
/// one.
pub(crate) fn fill(fill: Fill, stream: &StreamRef, waits: Waits) -> Result<()> {
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    if stream.is_capturing() {
        // As recorded: where the memory is not there, that is seen when the graph is instantiated.
        fill.reach()?;
        return capture::add(stream, Action::Fill(fill));
    }
    let place = fill.place()?;
    let wait = waits == Waits::Synchronous && is_host(&place);
    run(move || fill.run(&place), cost(fill.reach()?), stream, wait)
}
