//! Stream memory operations: a stream writes a value, or waits until memory has one.
//!
//! Nothing announces that memory has the value, whether the host, a kernel, a copy or another stream writes it: a wait is a
//! task that is asked again and again.

use std::sync::Arc;

use cuda_driver_sys::{CUstreamBatchMemOpType as Type, CUstreamWaitValue_flags as Flags};

use crate::object::place::MemoryPlace;
use crate::operation::outcome::gone;
use crate::queue::work::Work;
use crate::state::error::{Error, Result};
use engine::memory::{Kind, space};

const FLUSH: u32 = Flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
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
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        match Flags(flags) {
            Flags::CU_STREAM_WAIT_VALUE_GEQ => Ok(Test::Reached),
            Flags::CU_STREAM_WAIT_VALUE_EQ => Ok(Test::Equal),
            Flags::CU_STREAM_WAIT_VALUE_AND => Ok(Test::And),
            Flags::CU_STREAM_WAIT_VALUE_NOR => Ok(Test::Nor),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
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
pub(crate) struct MemoryOperation {
    effect: Effect,
    /// The `CUstreamBatchMemOpParams` that asked for it.
    pub(crate) params: [u64; 6],
}

#[derive(Clone, Copy)]
enum Effect {
    Wait(MemoryValue, Test),
    Write(MemoryValue),
    /// Work of a stream is in order here.
    Barrier,
}

/// A value at a place, of 4 or 8 bytes.
#[derive(Clone, Copy)]
struct MemoryValue {
    place: MemoryPlace,
    address: u64,
    value: u64,
    bytes: u64,
}

impl MemoryValue {
    fn new(address: u64, value: u64, bytes: u64) -> Result<MemoryValue> {
        let place = MemoryPlace::device(address, bytes)?;
        // As recorded: not in managed memory, which may be elsewhere.
        let managed = matches!(place, MemoryPlace::Device(a, _) if a.kind == Kind::Managed);
        if managed || !address.is_multiple_of(bytes) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(MemoryValue {
            place,
            address,
            value,
            bytes,
        })
    }
}

/// Waits for a value of 4 or 8 bytes.
pub(crate) fn wait(address: u64, value: u64, bytes: u64, flags: u32) -> Result<MemoryOperation> {
    let test = Test::of(flags)?;
    let kind = if bytes == 4 {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_32
    } else {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_64
    };
    Ok(MemoryOperation {
        effect: Effect::Wait(MemoryValue::new(address, value, bytes)?, test),
        params: [kind.0.into(), address, value, flags.into(), 0, 0],
    })
}

/// Writes a value of 4 or 8 bytes. As recorded, there are no flags.
pub(crate) fn write(address: u64, value: u64, bytes: u64, flags: u32) -> Result<MemoryOperation> {
    if flags != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let written = MemoryValue::new(address, value, bytes)?;
    written.place.check_writable()?;
    let kind = if bytes == 4 {
        Type::CU_STREAM_MEM_OP_WRITE_VALUE_32
    } else {
        Type::CU_STREAM_MEM_OP_WRITE_VALUE_64
    };
    Ok(MemoryOperation {
        effect: Effect::Write(written),
        params: [kind.0.into(), address, value, flags.into(), 0, 0],
    })
}

/// A barrier for memory of the system, or of the device alone.
pub(crate) fn barrier(flags: u32) -> Result<MemoryOperation> {
    if flags > 1 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(MemoryOperation {
        effect: Effect::Barrier,
        params: [
            u64::from(Type::CU_STREAM_MEM_OP_BARRIER.0) | u64::from(flags) << 32,
            0,
            0,
            0,
            0,
            0,
        ],
    })
}

/// Checks how many operations there are.
pub(crate) fn check_count(count: usize) -> Result<()> {
    if count < MOST {
        Ok(())
    } else {
        host::log!("{count} memory operations: fewer than {MOST} are done at once");
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

impl MemoryOperation {
    /// Effect a stream, or a graph, does for it.
    pub(crate) fn work(&self) -> Work {
        match self.effect {
            Effect::Wait(value, test) => Work::Until(Box::new(move || {
                let found = value.place.check_still_there();
                let found = found.and_then(|()| space().load(value.address, value.bytes));
                Ok(test.holds(found.map_err(gone)?, value.value, value.bytes))
            })),
            Effect::Write(value) => Work::Run(Box::new(move || {
                let there = value.place.check_still_there();
                let written =
                    there.and_then(|()| space().store(value.address, value.value, value.bytes));
                written.map_err(gone)
            })),
            Effect::Barrier => Work::Join,
        }
    }
}

/// Memory operations.
pub(crate) struct Batch {
    pub(crate) operations: Vec<MemoryOperation>,
    /// As a program is told of them: it is given a pointer.
    told: Box<[[u64; 6]]>,
}

impl Batch {
    pub(crate) fn new(operations: Vec<MemoryOperation>) -> Arc<Self> {
        let told = operations.iter().map(|operation| operation.params);
        Arc::new(Batch {
            told: told.collect(),
            operations,
        })
    }

    /// Address and number of the `CUstreamBatchMemOpParams`, as long as the node is as it is.
    pub(crate) fn told(&self) -> (usize, usize) {
        (self.told.as_ptr().addr(), self.told.len())
    }
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
