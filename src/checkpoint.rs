//! Checkpoints: moving the CUDA state of a process to host memory and back, for tools such as CRIU. They need Linux and
//! a driver that supports CUDA 12.8.
//!
//! Tests check these calls with a fake driver that records them, not on a GPU.

use crate::sys::{self, CUcheckpointGpuPair, CUcheckpointLockArgs, CUcheckpointRestoreArgs};
use crate::{Result, checked};

/// A process of this machine whose CUDA state can be saved.
///
/// The steps are [`lock`](Self::lock), [`checkpoint`](Self::checkpoint), [`restore`](Self::restore) and
/// [`unlock`](Self::unlock). CUDA calls of the process wait from the first step to the last one.
///
/// ```no_run
/// # fn main() -> cuda_driver::Result<()> {
/// use cuda_driver::checkpoint::Process;
///
/// let process = Process::with_id(4711);
/// process.lock(10_000)?;
/// process.checkpoint()?;
/// // … its devices are free …
/// process.restore(&[])?;
/// process.unlock()
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    id: i32,
}

impl Process {
    /// Returns the process with this identifier. Makes no driver call: the other methods return an error if the process
    /// does not exist.
    #[inline]
    #[must_use]
    pub const fn with_id(id: i32) -> Self {
        Self { id }
    }

    /// Returns the state of the process ([`cuCheckpointProcessGetState`](checked::checkpoint_process_get_state)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such process, `CUDA_ERROR_NOT_SUPPORTED` if checkpoints are
    /// not supported, and a [missing-function error](crate::Error::is_missing_function) if the driver is older than
    /// CUDA 12.8.
    #[inline]
    #[doc(alias = "cuCheckpointProcessGetState")]
    #[track_caller]
    pub fn state(self) -> Result<sys::CUprocessState> {
        // SAFETY: the driver checks the process.
        unsafe { checked::checkpoint_process_get_state(self.id) }
    }

    /// Returns the ID of the thread that must call [`restore`](Self::restore) in a process that was restored from a
    /// file ([`cuCheckpointProcessGetRestoreThreadId`](checked::checkpoint_process_get_restore_thread_id)).
    ///
    /// # Errors
    /// Same as [`state`](Self::state).
    #[inline]
    #[doc(alias = "cuCheckpointProcessGetRestoreThreadId")]
    #[track_caller]
    pub fn restore_thread(self) -> Result<i32> {
        // SAFETY: the driver checks the process.
        unsafe { checked::checkpoint_process_get_restore_thread_id(self.id) }
    }

    /// Makes CUDA calls of a running process wait, and waits for its work
    /// ([`cuCheckpointProcessLock`](checked::checkpoint_process_lock)). The timeout is in milliseconds; 0 waits
    /// without limit.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the process is not running, `CUDA_ERROR_NOT_READY` after the timeout, and
    /// the errors of [`state`](Self::state).
    #[inline]
    #[doc(alias = "cuCheckpointProcessLock")]
    #[track_caller]
    pub fn lock(self, timeout_ms: u32) -> Result<()> {
        let arguments = CUcheckpointLockArgs {
            timeoutMs: timeout_ms,
            ..Default::default()
        };
        // SAFETY: the driver checks the process.
        unsafe { checked::checkpoint_process_lock(self.id, Some(&arguments)) }
    }

    /// Moves the memory of a locked process from its devices to the host, and frees the devices
    /// ([`cuCheckpointProcessCheckpoint`](checked::checkpoint_process_checkpoint)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the process is not locked, `CUDA_ERROR_NOT_SUPPORTED` if it uses features
    /// that cannot be saved, and the errors of [`state`](Self::state).
    #[inline]
    #[doc(alias = "cuCheckpointProcessCheckpoint")]
    #[track_caller]
    pub fn checkpoint(self) -> Result<()> {
        // SAFETY: the driver checks the process, and needs no arguments.
        unsafe { checked::checkpoint_process_checkpoint(self.id, None) }
    }

    /// Moves the memory of a saved process back to its devices, or to others
    /// ([`cuCheckpointProcessRestore`](checked::checkpoint_process_restore)). The list names a new device for every
    /// device of the process; without a list, the memory returns to the same devices. Call [`init`](crate::init) first,
    /// unless the persistence mode of the devices is enabled.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the process is not saved, `CUDA_ERROR_INVALID_VALUE` for an incomplete
    /// list, and the errors of [`state`](Self::state).
    #[inline]
    #[doc(alias = "cuCheckpointProcessRestore")]
    #[track_caller]
    pub fn restore(self, devices: &[CUcheckpointGpuPair]) -> Result<()> {
        if devices.is_empty() {
            // SAFETY: the driver checks the process, and needs no arguments.
            return unsafe { checked::checkpoint_process_restore(self.id, None) };
        }
        // A copy, because C takes a mutable pointer.
        let mut pairs = devices.to_vec();
        let mut arguments = CUcheckpointRestoreArgs {
            gpuPairs: pairs.as_mut_ptr(),
            // The driver rejects the saturated count.
            gpuPairsCount: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
            ..Default::default()
        };
        // SAFETY: the list lives until the call returns, and the driver checks the process.
        unsafe { checked::checkpoint_process_restore(self.id, Some(&mut arguments)) }
    }

    /// Lets CUDA calls of a locked process run again
    /// ([`cuCheckpointProcessUnlock`](checked::checkpoint_process_unlock)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_ILLEGAL_STATE` if the process is not locked, and the errors of [`state`](Self::state).
    #[inline]
    #[doc(alias = "cuCheckpointProcessUnlock")]
    #[track_caller]
    pub fn unlock(self) -> Result<()> {
        // SAFETY: the driver checks the process, and needs no arguments.
        unsafe { checked::checkpoint_process_unlock(self.id, None) }
    }
}
