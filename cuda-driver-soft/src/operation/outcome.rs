//! Results and costs of copies and fills.

use crate::queue::work::Fault;
use crate::state::error::Error;
use engine::memory::BadRange;

/// Estimates the time to move this many bytes, in nanoseconds.
pub(crate) fn cost(bytes: u64) -> u64 {
    bytes / 8
}

/// The result of a copy or fill when it runs. Its memory was checked when the copy or fill was requested, but may have
/// been freed since; memory of arrays with deferred mapping may never have been mapped.
pub(crate) type RangeResult = std::result::Result<(), BadRange>;

/// Returns the fault of work whose memory does not exist when the work runs. Driver 580 returns
/// `CUDA_ERROR_LAUNCH_FAILED` for a copy.
pub(crate) fn freed_fault(range: BadRange) -> Fault {
    Fault {
        code: Error::CUDA_ERROR_LAUNCH_FAILED,
        message: format!(
            "work of a stream accesses memory that was freed before the work ran, or was never mapped: {range}"
        ),
        details: Vec::new(),
        stderr: None,
    }
}

/// Returns the error of work whose memory does not exist when the work runs.
pub(crate) fn missing(address: u64, bytes: u64) -> BadRange {
    BadRange {
        address,
        bytes,
        inside: None,
    }
}
