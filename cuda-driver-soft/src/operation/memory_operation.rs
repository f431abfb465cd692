//! Stream memory operations: write a value, wait for a value in memory, or order accesses by a barrier.
//!
//! The host, kernels, copies and other streams write memory without notifying waits, so the scheduler polls the
//! condition of a wait.

use std::sync::Arc;

use cuda_driver_sys::{CUstreamBatchMemOpType as Type, CUstreamWaitValue_flags as Flags};

use crate::object::place::MemoryPlace;
use crate::operation::outcome::freed_fault;
use crate::queue::work::Work;
use crate::state::error::{Error, Result};
use engine::memory::{AllocationKind, address_space};

const FLUSH: u32 = Flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
/// A batch must have fewer operations than this.
const MOST: usize = 256;

/// The condition that ends a wait.
#[derive(Clone, Copy, Debug)]
enum WaitCondition {
    /// `found - value`, with wrap-around, is not negative as a signed number of the value's width.
    Reached,
    Equal,
    /// `found & value` is not 0.
    And,
    /// `!(found | value)` is not 0 in the width of the value.
    Nor,
}

impl WaitCondition {
    fn of(flags: u32) -> Result<WaitCondition> {
        if flags & FLUSH != 0 {
            host::log!("CU_STREAM_WAIT_VALUE_FLUSH is not supported");
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        match Flags(flags) {
            Flags::CU_STREAM_WAIT_VALUE_GEQ => Ok(WaitCondition::Reached),
            Flags::CU_STREAM_WAIT_VALUE_EQ => Ok(WaitCondition::Equal),
            Flags::CU_STREAM_WAIT_VALUE_AND => Ok(WaitCondition::And),
            Flags::CU_STREAM_WAIT_VALUE_NOR => Ok(WaitCondition::Nor),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    fn holds(self, found: u64, value: u64, bytes: u64) -> bool {
        let unused = 64 - 8 * bytes as u32;
        match self {
            WaitCondition::Reached => (found.wrapping_sub(value) << unused) as i64 >= 0,
            WaitCondition::Equal => found == value,
            WaitCondition::And => found & value != 0,
            WaitCondition::Nor => !(found | value) << unused != 0,
        }
    }
}

/// An operation with checked arguments.
#[derive(Clone)]
pub(crate) struct MemoryOperation {
    effect: MemoryEffect,
    /// The `CUstreamBatchMemOpParams` of the operation.
    pub(crate) params: [u64; 6],
}

#[derive(Clone, Copy)]
enum MemoryEffect {
    Wait(MemoryValue, WaitCondition),
    Write(MemoryValue),
    /// No work of its own: stream order is a sufficient barrier here.
    Barrier,
}

/// A value of 4 or 8 bytes at an address.
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
        // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for managed memory.
        let managed = matches!(place, MemoryPlace::Device(a, _) if a.kind == AllocationKind::Managed);
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

/// Creates a wait for a value of 4 or 8 bytes.
pub(crate) fn wait(address: u64, value: u64, bytes: u64, flags: u32) -> Result<MemoryOperation> {
    let test = WaitCondition::of(flags)?;
    let kind = if bytes == 4 {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_32
    } else {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_64
    };
    Ok(MemoryOperation {
        effect: MemoryEffect::Wait(MemoryValue::new(address, value, bytes)?, test),
        params: [kind.0.into(), address, value, flags.into(), 0, 0],
    })
}

/// Creates a write of a value of 4 or 8 bytes. Driver 580 accepts no flags.
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
        effect: MemoryEffect::Write(written),
        params: [kind.0.into(), address, value, flags.into(), 0, 0],
    })
}

/// Creates a barrier for system or device memory.
pub(crate) fn barrier(flags: u32) -> Result<MemoryOperation> {
    if flags > 1 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(MemoryOperation {
        effect: MemoryEffect::Barrier,
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

/// Checks the number of operations in a batch.
pub(crate) fn check_count(count: usize) -> Result<()> {
    if count < MOST {
        Ok(())
    } else {
        host::log!("a batch of {count} memory operations must have fewer than {MOST}");
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

impl MemoryOperation {
    /// Returns the work that performs the operation.
    pub(crate) fn work(&self) -> Work {
        match self.effect {
            MemoryEffect::Wait(value, test) => Work::Until(Box::new(move || {
                let found = value.place.check_still_there();
                let found = found.and_then(|()| address_space().load(value.address, value.bytes));
                Ok(test.holds(found.map_err(freed_fault)?, value.value, value.bytes))
            })),
            MemoryEffect::Write(value) => Work::Run(Box::new(move || {
                let there = value.place.check_still_there();
                let written = there.and_then(|()| address_space().store(value.address, value.value, value.bytes));
                written.map_err(freed_fault)
            })),
            MemoryEffect::Barrier => Work::Join,
        }
    }
}

/// A batch of memory operations.
pub(crate) struct Batch {
    pub(crate) operations: Vec<MemoryOperation>,
    /// A copy of the parameters that the program reads through a pointer.
    params: Box<[[u64; 6]]>,
}

impl Batch {
    pub(crate) fn new(operations: Vec<MemoryOperation>) -> Arc<Self> {
        let params = operations.iter().map(|operation| operation.params);
        Arc::new(Batch {
            params: params.collect(),
            operations,
        })
    }

    /// Returns the address and number of the `CUstreamBatchMemOpParams`, which are valid until the node changes.
    pub(crate) fn params(&self) -> (usize, usize) {
        (self.params.as_ptr().addr(), self.params.len())
    }
}

#[cfg(test)]
mod tests {
    use super::WaitCondition;

    #[test]
    fn conditions_match_those_of_an_h200() {
        // found, value, flags, true if an H200 ended the wait
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
            let test = WaitCondition::of(flags).unwrap();
            assert_eq!(test.holds(found, value, 4), holds, "{found:#x} {value:#x} {flags}");
        }
        for (found, value, holds) in [
            (1 << 40, 1 << 40, true),
            ((1 << 40) - 1, 1 << 40, false),
            (0x8000_0000_0000_0001, 2, true),
            (0x7fff_ffff_ffff_ffff, u64::MAX, false),
        ] {
            assert_eq!(
                WaitCondition::Reached.holds(found, value, 8),
                holds,
                "{found:#x} {value:#x}"
            );
        }
    }
}
