//! Asynchronous copies that own their buffers.

use core::mem::ManuallyDrop;

use crate::refusal::Refusal;
use crate::{
    Context, DeviceBuffer, Download, Error, Event, HostBuffer, Pending, QueueError, Result, Stream, Upload, checked,
    sys,
};

impl Stream {
    /// Queues a copy from the host to a device ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)). [`Pending::wait`]
    /// returns both buffers when the copy is done. The device buffer may be longer.
    ///
    /// Do not call this method while the stream is being [captured](Self::capture): the copy becomes a node of the
    /// graph, waiting for it fails, and the buffers are leaked.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the device buffer is shorter, and `CUDA_ERROR_INVALID_HANDLE` for a
    /// default or borrowed stream whose context is not the context of a buffer. These errors [return the
    /// buffers](QueueError::into_value). An error from earlier asynchronous work may leak them, because the copy may be
    /// queued even so.
    #[inline]
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // The full type shows that the error returns the arguments.
    pub fn upload<T: Upload>(
        &self,
        host: HostBuffer<T>,
        device: DeviceBuffer<T>,
    ) -> Result<Pending<(HostBuffer<T>, DeviceBuffer<T>)>, QueueError<(HostBuffer<T>, DeviceBuffer<T>)>> {
        let event = match self.event_for(host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (host, device))),
        };
        // A panic of an interposer must not free buffers that the copy uses.
        let mut buffers = ManuallyDrop::new((host, device));
        let (host, device) = &mut *buffers;
        // SAFETY: both buffers are kept until the event after the copy is done.
        let queued = unsafe { device.copy_from_async(host, self) };
        let buffers = ManuallyDrop::into_inner(buffers);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers)),
        }
    }

    /// Queues a copy from a device to the host ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)). [`Pending::wait`]
    /// returns both buffers when the copy is done. The host buffer may be shorter.
    ///
    /// Do not call this method while the stream is being [captured](Self::capture): the copy becomes a node of the
    /// graph, waiting for it fails, and the buffers are leaked.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the device buffer is shorter, and `CUDA_ERROR_INVALID_HANDLE` for a
    /// default or borrowed stream whose context is not the context of a buffer. These errors [return the
    /// buffers](QueueError::into_value). An error from earlier asynchronous work may leak them, because the copy may be
    /// queued even so.
    #[inline]
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // The full type shows that the error returns the arguments.
    pub fn download<T: Download>(
        &self,
        device: DeviceBuffer<T>,
        host: HostBuffer<T>,
    ) -> Result<Pending<(DeviceBuffer<T>, HostBuffer<T>)>, QueueError<(DeviceBuffer<T>, HostBuffer<T>)>> {
        let event = match self.event_for(host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (device, host))),
        };
        // A panic of an interposer must not free buffers that the copy uses.
        let mut buffers = ManuallyDrop::new((device, host));
        let (device, host) = &mut *buffers;
        // SAFETY: both buffers are kept until the event after the copy is done.
        let queued = unsafe { device.copy_to_async(host, self) };
        let buffers = ManuallyDrop::into_inner(buffers);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers)),
        }
    }

    /// Creates an event that can be recorded in this stream. For a default or borrowed stream, the event is in the
    /// stream's context, which must be the context of a buffer: the buffers keep this context alive until the copy is
    /// done.
    #[inline]
    #[track_caller]
    fn event_for(&self, host: &Context, device: &Context) -> Result<Event> {
        let context = match self.context() {
            Some(context) => context,
            None => {
                // SAFETY: the stream is live, or a default one.
                let raw = unsafe { checked::stream_get_ctx(self.as_raw()) }?;
                let mut kept = [host, device].into_iter();
                kept.find(|context| context.as_raw() == raw).ok_or_else(|| {
                    let code = sys::CUresult::CUDA_ERROR_INVALID_HANDLE;
                    Error::refused(code, sys::Function::cuEventRecord, Refusal::Elsewhere)
                })?
            }
        };
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }
}
