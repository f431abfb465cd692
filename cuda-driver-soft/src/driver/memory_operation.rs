//! Stream memory operations: a stream writes a value, or waits until memory has one.
//!
//! Whoever makes memory have the value (the host, a kernel, a copy, another stream) tells nobody: a wait is a node that is
//! asked again and again.

use super::capture;
use super::copy::gone;
use super::error::{Error, Result};
use super::graph::node::{Action, Batch};
use super::memory::Place;
use super::stream::StreamRef;
use super::work::Work;
use engine::memory::{Kind, space};

/// `CU_STREAM_WAIT_VALUE_FLUSH`
const FLUSH: u32 = 1 << 30;
/// There are fewer operations than this in a batch.
const MOST: usize = 256;

/// When a wait is over.
#[derive(Clone, Copy, Debug)]
enum Test {
    /// The value has been reached, in numbers that go round.
    Reached,
    Equal,
    /// A bit of both is set.
    And,
    /// A bit is set in neither.
    Nor,
}

impl Test {
    fn of(flags: u32) -> Result<Test> {
        if flags & FLUSH != 0 {
            host::log!("writes of other devices cannot be flushed (CU_STREAM_WAIT_VALUE_FLUSH)");
            return Err(Error::NOT_SUPPORTED);
        }
        match flags {
            0 => Ok(Test::Reached),
            1 => Ok(Test::Equal),
            2 => Ok(Test::And),
            3 => Ok(Test::Nor),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn holds(self, found: u64, value: u64, bytes: u64) -> bool {
        let unused = 64 - 8 * bytes as u32;
        match self {
            Test::Reached => (found.wrapping_sub(value) << unused) as i64 >= 0,
            Test::Equal => found == value,
            Test::And => found & value != 0,
            Test::Nor => !(found | value) << unused != 0,
        }
    }
}

/// An operation whose arguments are checked.
#[derive(Clone)]
pub(crate) struct Operation {
    what: What,
    /// The `CUstreamBatchMemOpParams` that asked for it.
    pub(crate) params: [u64; 6],
}

#[derive(Clone, Copy)]
enum What {
    Wait(Value, Test),
    Write(Value),
    /// Work of a stream is in order here.
    Barrier,
}

/// A value at a place, of 4 or 8 bytes.
#[derive(Clone, Copy)]
struct Value {
    place: Place,
    address: u64,
    value: u64,
    bytes: u64,
}

impl Value {
    fn new(address: u64, value: u64, bytes: u64) -> Result<Value> {
        let place = Place::device(address, bytes)?;
        // As recorded: not in managed memory, which may be elsewhere.
        let managed = matches!(place, Place::Device(a, _) if a.kind == Kind::Managed);
        if managed || !address.is_multiple_of(bytes) {
            return Err(Error::INVALID_VALUE);
        }
        Ok(Value {
            place,
            address,
            value,
            bytes,
        })
    }
}

/// Waits for a value of 4 or 8 bytes.
pub(crate) fn wait(address: u64, value: u64, bytes: u64, flags: u32) -> Result<Operation> {
    let test = Test::of(flags)?;
    let kind = if bytes == 4 { 1 } else { 4 };
    Ok(Operation {
        what: What::Wait(Value::new(address, value, bytes)?, test),
        params: [kind, address, value, flags.into(), 0, 0],
    })
}

/// Writes a value of 4 or 8 bytes. As recorded, there are no flags.
pub(crate) fn write(address: u64, value: u64, bytes: u64, flags: u32) -> Result<Operation> {
    if flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let what = Value::new(address, value, bytes)?;
    what.place.check_writable()?;
    let kind = if bytes == 4 { 2 } else { 5 };
    Ok(Operation {
        what: What::Write(what),
        params: [kind, address, value, flags.into(), 0, 0],
    })
}

/// A barrier for memory of the system, or of the device alone.
pub(crate) fn barrier(flags: u32) -> Result<Operation> {
    if flags > 1 {
        return Err(Error::INVALID_VALUE);
    }
    Ok(Operation {
        what: What::Barrier,
        params: [6 | u64::from(flags) << 32, 0, 0, 0, 0, 0],
    })
}

/// Checks how many operations there are.
pub(crate) fn check_count(count: usize) -> Result<()> {
    if count < MOST {
        Ok(())
    } else {
        host::log!("{count} memory operations: fewer than {MOST} are done at once");
        Err(Error::INVALID_VALUE)
    }
}

impl Operation {
    /// What a stream, or a graph, does for it.
    pub(crate) fn work(&self) -> Work {
        match self.what {
            What::Wait(value, test) => Work::Until(Box::new(move || {
                let found = value.place.check_still_there();
                let found = found.and_then(|()| space().load(value.address, value.bytes));
                Ok(test.holds(found.map_err(gone)?, value.value, value.bytes))
            })),
            What::Write(value) => Work::Task(Box::new(move || {
                let there = value.place.check_still_there();
                let written =
                    there.and_then(|()| space().store(value.address, value.value, value.bytes));
                written.map_err(gone)
            })),
            What::Barrier => Work::Join,
        }
    }
}

/// Puts operations on a stream, one after the other, or into what the stream captures, as one node.
pub(crate) fn submit(operations: Vec<Operation>, stream: &StreamRef) -> Result<()> {
    if stream.is_capturing() {
        return capture::add(stream, Action::Operations(Batch::new(operations)));
    }
    for operation in operations {
        stream.submit(&[], operation.work(), 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Test;

    #[test]
    fn conditions_as_recorded() {
        // found, value, flags, whether an H200 went on
        let narrow = [
            (5, 5, 0, true),
            (4, 5, 0, false),
            (0x8000_0004, 5, 0, true),
            (0x8000_0005, 5, 0, false),
            (0xffff_ffff, 0, 0, false),
            (0, 0xffff_ffff, 0, true),
            (5, 4, 1, false),
            (6, 2, 2, true),
            (4, 3, 2, false),
            (6, 0, 2, false),
            (0xffff_fff0, 0x0f, 3, false),
            (0xffff_fff0, 0x0e, 3, true),
            (0xffff_ffff, 0, 3, false),
            (0, 0, 3, true),
        ];
        for (found, value, flags, holds) in narrow {
            let test = Test::of(flags).unwrap();
            assert_eq!(
                test.holds(found, value, 4),
                holds,
                "{found:#x} {value:#x} {flags}"
            );
        }
        for (found, value, holds) in [
            (1 << 40, 1 << 40, true),
            ((1 << 40) - 1, 1 << 40, false),
            (0x8000_0000_0000_0001, 2, true),
            (0x7fff_ffff_ffff_ffff, u64::MAX, false),
        ] {
            assert_eq!(
                Test::Reached.holds(found, value, 8),
                holds,
                "{found:#x} {value:#x}"
            );
        }
    }
}
