//! Device memory and page-locked host memory.

mod device;
mod element;
mod host;
mod pitched;
mod pointer;
mod slice;
mod slice_mut;

use crate::{Context, Result, checked, sys};

pub use device::DeviceBuffer;
pub use element::{Download, Upload};
pub use host::HostBuffer;
pub use pitched::PitchedBuffer;
pub use pointer::DevicePtr;
pub use slice::DeviceSlice;
pub use slice_mut::DeviceSliceMut;

/// Waits for all work of a context, and frees memory for which `cuMemFree` alone does not wait. Does nothing for 0.
///
/// # Safety
/// The address must be 0 or an allocation that the caller owns, and this must be its last use.
#[inline]
#[track_caller]
pub(crate) unsafe fn free_after_work(context: &Context, raw: sys::CUdeviceptr) -> Result<()> {
    if raw == 0 {
        return Ok(());
    }
    let _current = context.enter()?;
    // SAFETY: the current context is live.
    unsafe { checked::ctx_synchronize() }?;
    // SAFETY: upheld by the caller.
    unsafe { checked::mem_free(raw) }
}
