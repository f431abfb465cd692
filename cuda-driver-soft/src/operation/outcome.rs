//! How copies and fills end, and what they cost.

use crate::queue::work::Fault;
use crate::state::error::Error;
use engine::memory::BadRange;

/// A guess of how long it takes to move this many bytes, in nanoseconds.
pub(crate) fn cost(bytes: u64) -> u64 {
    bytes / 8
}

/// What comes of a copy or fill when its turn has come. Its memory was there when it was asked for; it may be gone if
/// another stream has freed it meanwhile.
pub(crate) type Done = std::result::Result<(), BadRange>;

/// Memory that is gone when a stream comes to work on it: the code is the one recorded for a copy.
pub(crate) fn gone(gone: BadRange) -> Fault {
    Fault {
        code: Error::CUDA_ERROR_LAUNCH_FAILED,
        message: format!("work of a stream, on memory that was freed before its turn: {gone}"),
        stderr: None,
    }
}

/// Memory that a node names and that is not there when its turn comes.
pub(crate) fn missing(address: u64, bytes: u64) -> BadRange {
    BadRange {
        address,
        bytes,
        inside: None,
    }
}
