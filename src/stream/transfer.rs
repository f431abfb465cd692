//! Copies in a stream that own their buffers.

use core::mem::ManuallyDrop;

use super::Stream;
use crate::refusal::Refusal;
use crate::{
    Context, DeviceBuffer, DeviceCopy, Error, Event, HostBuffer, Pending, QueueError, Result,
    checked, sys,
};

impl Stream {
    /// Queues a copy from the host to a device, and gives both buffers back when it is done
    /// ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)). The device's may be longer.
    ///
    /// # Errors
    /// 1 if the device's buffer is shorter; 400 in a default stream if the current context is of neither buffer. The error
    /// [gives the buffers back](QueueError::into_value).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // In full it says that the error gives back what was passed.
    pub fn upload<T: DeviceCopy>(
        &self,
        host: HostBuffer<T>,
        device: DeviceBuffer<T>,
    ) -> Result<
        Pending<(HostBuffer<T>, DeviceBuffer<T>)>,
        QueueError<(HostBuffer<T>, DeviceBuffer<T>)>,
    > {
        let event = match self.event_for(host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (host, device))),
        };
        // A hook's panic must not free what the copy uses.
        let mut buffers = ManuallyDrop::new((host, device));
        let (host, device) = &mut *buffers;
        // SAFETY: both buffers are kept until the event that follows the copy says that it is done.
        let queued = unsafe { device.copy_from_async(host, self) };
        let buffers = ManuallyDrop::into_inner(buffers);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers)),
        }
    }

    /// Queues a copy from a device to the host, and gives both buffers back when it is done
    /// ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)). The device's may be longer.
    ///
    /// # Errors
    /// 1 if the device's buffer is shorter; 400 in a default stream if the current context is of neither buffer. The error
    /// [gives the buffers back](QueueError::into_value).
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    #[allow(clippy::type_complexity)] // In full it says that the error gives back what was passed.
    pub fn download<T: DeviceCopy>(
        &self,
        device: DeviceBuffer<T>,
        host: HostBuffer<T>,
    ) -> Result<
        Pending<(DeviceBuffer<T>, HostBuffer<T>)>,
        QueueError<(DeviceBuffer<T>, HostBuffer<T>)>,
    > {
        let event = match self.event_for(host.context(), device.context()) {
            Ok(event) => event,
            Err(error) => return Err(QueueError::before(error, (device, host))),
        };
        // A hook's panic must not free what the copy uses.
        let mut buffers = ManuallyDrop::new((device, host));
        let (device, host) = &mut *buffers;
        // SAFETY: both buffers are kept until the event that follows the copy says that it is done.
        let queued = unsafe { device.copy_to_async(host, self) };
        let buffers = ManuallyDrop::into_inner(buffers);
        match queued {
            Ok(()) => Pending::after(buffers, event, self),
            Err(error) => Err(QueueError::of_call(error, buffers)),
        }
    }

    /// An event that this stream can record. For a default stream, or one that belongs to someone else, it is of that
    /// buffer's context in which the copy will be: an event of another one might not wait for the copy, and one of a
    /// context that nobody here keeps might not last as long.
    #[track_caller]
    fn event_for(&self, host: &Context, device: Option<&Context>) -> Result<Event> {
        let context = match &self.context {
            Some(context) => context,
            None => {
                // SAFETY: the stream is live, or a default one.
                let raw = unsafe { checked::stream_get_ctx(self.raw) }?;
                let mut kept = [Some(host), device].into_iter().flatten();
                kept.find(|context| context.as_raw() == raw)
                    .ok_or_else(|| {
                        let code = sys::CUresult::CUDA_ERROR_INVALID_HANDLE;
                        Error::refused(code, sys::Function::cuEventRecord, Refusal::Elsewhere)
                    })?
            }
        };
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }
}
