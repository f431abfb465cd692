//! Asynchronous copies that own their buffers.

use core::mem::ManuallyDrop;

use crate::refusal::Refusal;
use crate::sys::{CUevent_flags, CUresult, Function};
use crate::{
    Context, DeviceBuffer, Download, Error, Event, HostBuffer, Pending, QueueError, Result, Stream, Upload, checked,
};

impl Stream {
    /// Queues a copy from the host to a device ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)). [`Pending::wait`]
    /// returns both buffers when the copy is done. The device buffer may be longer.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the device buffer is shorter, `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if
    /// the stream is being [captured](Self::capture), and `CUDA_ERROR_INVALID_HANDLE` for a default or borrowed stream
    /// whose context is not the context of a buffer. These errors [return the buffers](QueueError::into_value). An
    /// error from earlier asynchronous work may leak them, because the copy may be queued even so.
    #[inline]
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // The full type shows that the error returns the arguments.
    pub fn upload<T: Upload>(
        &self,
        host: HostBuffer<T>,
        device: DeviceBuffer<T>,
    ) -> Result<Pending<(HostBuffer<T>, DeviceBuffer<T>)>, QueueError<(HostBuffer<T>, DeviceBuffer<T>)>> {
        let event = match self.event_for(Function::cuMemcpyHtoDAsync, host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (host, device))),
        };
        // A panic of an interposer must not free what the copy uses.
        let mut used = ManuallyDrop::new(((host, device), event));
        let (host, device) = &mut used.0;
        // SAFETY: both buffers are kept until the event after the copy is done.
        let queued = unsafe { device.copy_from_async(host, self) };
        let (buffers, event) = ManuallyDrop::into_inner(used);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers, &event)),
        }
    }

    /// Queues a copy from a device to the host ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)). [`Pending::wait`]
    /// returns both buffers when the copy is done. The host buffer may be shorter.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the device buffer is shorter, `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if
    /// the stream is being [captured](Self::capture), and `CUDA_ERROR_INVALID_HANDLE` for a default or borrowed stream
    /// whose context is not the context of a buffer. These errors [return the buffers](QueueError::into_value). An
    /// error from earlier asynchronous work may leak them, because the copy may be queued even so.
    #[inline]
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // The full type shows that the error returns the arguments.
    pub fn download<T: Download>(
        &self,
        device: DeviceBuffer<T>,
        host: HostBuffer<T>,
    ) -> Result<Pending<(DeviceBuffer<T>, HostBuffer<T>)>, QueueError<(DeviceBuffer<T>, HostBuffer<T>)>> {
        let event = match self.event_for(Function::cuMemcpyDtoHAsync, host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (device, host))),
        };
        // A panic of an interposer must not free what the copy uses.
        let mut used = ManuallyDrop::new(((device, host), event));
        let (device, host) = &mut used.0;
        // SAFETY: both buffers are kept until the event after the copy is done.
        let queued = unsafe { device.copy_to_async(host, self) };
        let (buffers, event) = ManuallyDrop::into_inner(used);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers, &event)),
        }
    }

    /// Creates an event for a copy by `called` in this stream, which must not be captured: the event would not be
    /// waited for, and the graph could outlive the stream's context. For a default or borrowed stream, the event is in
    /// the stream's context, which must be the context of a buffer: the buffers keep this context alive until the copy
    /// is done.
    #[inline]
    #[track_caller]
    fn event_for(&self, called: Function, host: &Context, device: &Context) -> Result<Event> {
        self.require_uncaptured(called, Refusal::CapturedBuffers)?;
        let context = match self.context() {
            Some(context) => context,
            None => {
                // SAFETY: the stream is live, or a default one.
                let raw = unsafe { checked::stream_get_ctx(self.as_raw()) }?;
                let mut kept = [host, device].into_iter();
                kept.find(|context| context.as_raw() == raw).ok_or_else(|| {
                    let code = CUresult::CUDA_ERROR_INVALID_HANDLE;
                    Error::refused(code, Function::cuEventRecord, Refusal::Elsewhere)
                })?
            }
        };
        Event::with_flags(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }
}
