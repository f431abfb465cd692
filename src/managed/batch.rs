//! Prefetches and discards of several ranges of managed memory in one call.

use crate::{DeviceSlice, Result, Stream, checked, sys};

/// Queues the migration of several ranges to a location
/// ([`cuMemPrefetchBatchAsync`](checked::mem_prefetch_batch_async), since CUDA 13.0).
///
/// # Safety
/// All ranges must be managed memory until the work is done.
///
/// # Errors
/// Returns `CUDA_ERROR_INVALID_VALUE` for an empty list, an empty range, an invalid location, or the null stream.
#[inline]
#[doc(alias = "cuMemPrefetchBatchAsync")]
#[track_caller]
pub unsafe fn prefetch<T>(ranges: &[DeviceSlice<'_, T>], location: sys::CUmemLocation, stream: &Stream) -> Result<()> {
    let (addresses, sizes) = parts(ranges);
    // SAFETY: the stream is live; the rest is upheld by the caller.
    unsafe { checked::mem_prefetch_batch_async(&addresses, &sizes, &[location], &[0], 0, stream.as_raw()) }
}

/// Queues a discard of the contents of several ranges, which are undefined until they are written
/// ([`cuMemDiscardBatchAsync`](checked::mem_discard_batch_async), since CUDA 13.0).
///
/// # Safety
/// All ranges must be managed memory until the work is done, and nothing else may read, write or prefetch them at the
/// same time.
///
/// # Errors
/// Returns `CUDA_ERROR_INVALID_VALUE` for an empty list, an empty range, or the null stream.
#[inline]
#[doc(alias = "cuMemDiscardBatchAsync")]
#[track_caller]
pub unsafe fn discard<T>(ranges: &[DeviceSlice<'_, T>], stream: &Stream) -> Result<()> {
    let (addresses, sizes) = parts(ranges);
    // SAFETY: the stream is live; the rest is upheld by the caller.
    unsafe { checked::mem_discard_batch_async(&addresses, &sizes, 0, stream.as_raw()) }
}

/// Queues the migration of several ranges to a location without their contents, which are undefined until they are
/// written ([`cuMemDiscardAndPrefetchBatchAsync`](checked::mem_discard_and_prefetch_batch_async), since CUDA 13.0).
///
/// # Safety
/// Same as [`discard`].
///
/// # Errors
/// Same as [`prefetch`].
#[inline]
#[doc(alias = "cuMemDiscardAndPrefetchBatchAsync")]
#[track_caller]
pub unsafe fn discard_and_prefetch<T>(
    ranges: &[DeviceSlice<'_, T>],
    location: sys::CUmemLocation,
    stream: &Stream,
) -> Result<()> {
    let (addresses, sizes) = parts(ranges);
    // SAFETY: the stream is live; the rest is upheld by the caller.
    unsafe { checked::mem_discard_and_prefetch_batch_async(&addresses, &sizes, &[location], &[0], 0, stream.as_raw()) }
}

#[inline]
fn parts<T>(ranges: &[DeviceSlice<'_, T>]) -> (Vec<sys::CUdeviceptr>, Vec<usize>) {
    let parts = ranges.iter().map(|range| (range.ptr().as_raw(), range.size_bytes()));
    parts.unzip()
}
