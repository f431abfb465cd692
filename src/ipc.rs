//! Inter-process communication (IPC): device memory and events that processes share.
//!
//! A process passes a [`MemoryHandle`] or an [`EventHandle`] to another process as bytes, for instance through a pipe.
//! The process that made a handle cannot open it. IPC works on devices with unified addressing: with NVIDIA's driver on
//! Linux and, more slowly, on Windows; with the software driver on Linux only.

use core::marker::PhantomData;
use core::{fmt, mem};

use crate::error::dropping;
use crate::memory::{device_values, device_views};
use crate::sys::{self, CUevent_flags, CUipcMem_flags};
use crate::{Context, DeviceBuffer, Event, Result, checked};

/// The size of a handle in bytes.
pub const HANDLE_BYTES: usize = 64;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident $raw:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(sys::$raw);

        impl $name {
            /// Returns the handle as bytes.
            #[inline]
            #[must_use]
            pub fn to_bytes(self) -> [u8; HANDLE_BYTES] {
                self.0.reserved.map(|byte| byte as u8)
            }

            /// Creates a handle from the bytes that another process sent.
            #[inline]
            #[must_use]
            pub fn from_bytes(bytes: [u8; HANDLE_BYTES]) -> Self {
                let mut raw = sys::$raw::default();
                raw.reserved = bytes.map(|byte| byte as core::ffi::c_char);
                Self(raw)
            }

            /// Returns C's representation of the handle.
            #[inline]
            #[must_use]
            pub const fn as_raw(self) -> sys::$raw {
                self.0
            }

            /// Returns the handle for C's representation.
            #[inline]
            #[must_use]
            pub const fn from_raw(raw: sys::$raw) -> Self {
                Self(raw)
            }
        }

        impl fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

handle! {
    /// A description of device memory that another process can open with [`IpcBuffer::open`].
    MemoryHandle CUipcMemHandle
}

handle! {
    /// A description of an event that another process can open with [`Event::open_ipc`].
    EventHandle CUipcEventHandle
}

impl<T> DeviceBuffer<T> {
    /// Returns a handle with which another process can open the memory
    /// ([`cuIpcGetMemHandle`](checked::ipc_get_mem_handle)).
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceBuffer};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// let buffer = DeviceBuffer::from_slice(&context, &[1.0f32; 1000])?;
    /// # #[cfg(target_os = "linux")]
    /// let bytes: [u8; 64] = buffer.ipc_handle()?.to_bytes();
    /// // Send them to the other process, and free the buffer after that process has closed its memory.
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an empty buffer and for memory of a pool, and `CUDA_ERROR_NOT_SUPPORTED`
    /// if the device or the operating system does not support IPC.
    #[inline]
    #[doc(alias = "cuIpcGetMemHandle")]
    #[track_caller]
    pub fn ipc_handle(&self) -> Result<MemoryHandle> {
        let _current = self.context().enter()?;
        // SAFETY: the memory is allocated; the driver rejects the address 0.
        let raw = unsafe { checked::ipc_get_mem_handle(self.as_raw()) }?;
        Ok(MemoryHandle(raw))
    }
}

/// Device memory of another process. Dropping closes it; the other process frees it.
///
/// The buffer covers the whole allocation of the other process, even if the handle was made from a part of it. Order
/// the use of the memory here and in the other process with an [event](Event::open_ipc).
pub struct IpcBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    context: Context,
    values: PhantomData<fn() -> T>,
}

impl<T> IpcBuffer<T> {
    /// Opens memory of another process ([`cuIpcOpenMemHandle`](checked::ipc_open_mem_handle)). The number of values
    /// follows from the size of the allocation ([`cuMemGetAddressRange`](checked::mem_get_address_range)).
    ///
    /// # Safety
    /// The handle must come from a process that keeps the memory allocated until this buffer is dropped and all work
    /// that uses it is done.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` in the process that made the handle, `CUDA_ERROR_INVALID_VALUE` for an
    /// invalid handle, and `CUDA_ERROR_TOO_MANY_PEERS` if the devices of both processes cannot be connected.
    #[inline]
    #[doc(alias = "cuIpcOpenMemHandle")]
    #[doc(alias = "cuMemGetAddressRange")]
    #[track_caller]
    pub unsafe fn open(context: &Context, handle: MemoryHandle) -> Result<Self> {
        let _current = context.enter()?;
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
        // SAFETY: upheld by the caller; this is the only valid value of the flags.
        let raw = unsafe { checked::ipc_open_mem_handle(handle.0, flags.0) }?;
        let mut buffer = Self {
            raw,
            len: 0,
            context: context.clone(),
            values: PhantomData,
        };
        // SAFETY: the memory was just opened. If the call fails, `buffer` closes it.
        let range = unsafe { checked::mem_get_address_range(raw) }?;
        buffer.len = range.size.checked_div(size_of::<T>()).unwrap_or(0);
        Ok(buffer)
    }

    /// Closes the memory ([`cuIpcCloseMemHandle`](checked::ipc_close_mem_handle)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuIpcCloseMemHandle")]
    #[track_caller]
    pub fn close(mut self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the memory is open, and the address is replaced by 0 so that `drop` does not use it.
        unsafe { checked::ipc_close_mem_handle(mem::take(&mut self.raw)) }
    }

    /// Takes ownership of memory that was opened in `context`.
    ///
    /// # Safety
    /// The address must come from [`cuIpcOpenMemHandle`](checked::ipc_open_mem_handle) in that context for memory of at
    /// least `len` values. No other code may close it, and the process that allocated it must keep it as
    /// [`open`](Self::open) requires.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Self {
        Self {
            raw,
            len,
            context: context.clone(),
            values: PhantomData,
        }
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

device_values!(IpcBuffer);
device_views!(IpcBuffer);

impl<T> fmt::Debug for IpcBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpcBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for IpcBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        if self.raw == 0 {
            return;
        }
        // The result of `enter` is not checked: the memory is closed even if the context cannot be made current.
        let current = self.context.enter();
        if let Some(dropping) = dropping() {
            // SAFETY: the memory is open, and this is its last use.
            dropping.done(unsafe { checked::ipc_close_mem_handle(self.raw) });
        }
        drop(current);
    }
}

impl Event {
    /// Creates an event without timing that other processes can open ([`cuEventCreate`](checked::event_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, and `CUDA_ERROR_NOT_SUPPORTED` if the
    /// operating system does not support IPC.
    #[inline]
    #[doc(alias = "CU_EVENT_INTERPROCESS")]
    #[doc(alias = "cuEventCreate")]
    #[track_caller]
    pub fn interprocess(context: &Context) -> Result<Self> {
        let flags = CUevent_flags::CU_EVENT_INTERPROCESS.0 | CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
        Self::with_flags(context, CUevent_flags(flags))
    }

    /// Returns a handle with which another process can open the event
    /// ([`cuIpcGetEventHandle`](checked::ipc_get_event_handle)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` if the event was created without `CU_EVENT_INTERPROCESS`, which
    /// [`interprocess`](Self::interprocess) sets.
    #[inline]
    #[doc(alias = "cuIpcGetEventHandle")]
    #[track_caller]
    pub fn ipc_handle(&self) -> Result<EventHandle> {
        // The driver needs a current context for this call, although it needs none for most calls that take an event.
        let _current = self.context().map(Context::enter).transpose()?;
        // SAFETY: the handle is live.
        let raw = unsafe { checked::ipc_get_event_handle(self.as_raw()) }?;
        Ok(EventHandle(raw))
    }

    /// Opens an event of another process ([`cuIpcOpenEventHandle`](checked::ipc_open_event_handle)). Dropping it closes
    /// it in this process; the other process still has its event.
    ///
    /// # Safety
    /// The handle must come from a process that does not destroy its event until the returned event is dropped and
    /// no stream waits for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` in the process that made the handle, and `CUDA_ERROR_MAP_FAILED` for an
    /// invalid handle.
    #[inline]
    #[doc(alias = "cuIpcOpenEventHandle")]
    #[track_caller]
    pub unsafe fn open_ipc(context: &Context, handle: EventHandle) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: upheld by the caller.
        let raw = unsafe { checked::ipc_open_event_handle(handle.0) }?;
        // SAFETY: the event was just opened in that context.
        Ok(unsafe { Self::from_raw(raw, context) })
    }
}
