//! GPU core dumps: files that the driver writes when a kernel faults, for `cuda-gdb`. Their settings need a driver from
//! CUDA 12.1 on; on older drivers, environment variables such as `CUDA_ENABLE_COREDUMP_ON_EXCEPTION` have the same
//! effect.

use core::ffi::{CStr, c_int, c_void};
use core::mem::{self, ManuallyDrop};
use core::{fmt, ptr};
use std::sync::Arc;

use crate::error::dropping;
use crate::receivers::Receivers;
use crate::sys::{self, CUCoredumpGenerationFlags, CUcoredumpSettings};
use crate::{Context, Device, Result, checked};

/// The settings of core dumps, for one context or for all contexts of the process.
///
/// ```no_run
/// # fn main() -> cuda_driver::Result<()> {
/// use cuda_driver::coredump::Settings;
///
/// let settings = Settings::global();
/// settings.set_file(c"/tmp/core_%h_%p")?;
/// settings.set_enabled_on_exception(true)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// `None` for all contexts.
    context: Option<&'a Context>,
}

impl Context {
    /// Returns the settings of this context's core dumps.
    #[inline]
    #[must_use]
    pub const fn coredump(&self) -> Settings<'_> {
        Settings { context: Some(self) }
    }
}

impl Settings<'static> {
    /// Returns the settings for all contexts of the process. They must be set before a context is created.
    #[inline]
    #[must_use]
    pub const fn global() -> Self {
        Self { context: None }
    }
}

impl Settings<'_> {
    /// Returns a setting as bytes: a C `bool`, a number, or text that ends with a NUL byte
    /// ([`cuCoredumpGetAttribute`](checked::coredump_get_attribute),
    /// [`cuCoredumpGetAttributeGlobal`](checked::coredump_get_attribute_global)). The methods below return the known
    /// settings with their types.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown setting, `CUDA_ERROR_NOT_PERMITTED` if a debugger is attached,
    /// and a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.1.
    #[inline]
    #[doc(alias = "cuCoredumpGetAttribute")]
    #[doc(alias = "cuCoredumpGetAttributeGlobal")]
    #[track_caller]
    pub fn get(&self, setting: CUcoredumpSettings) -> Result<Vec<u8>> {
        match self.context {
            Some(context) => {
                let _current = context.enter()?;
                // SAFETY: the driver checks the setting and returns its size.
                unsafe { checked::coredump_get_attribute(setting) }
            }
            // SAFETY: as above.
            None => unsafe { checked::coredump_get_attribute_global(setting) },
        }
    }

    /// Changes a setting ([`cuCoredumpSetAttribute`](checked::coredump_set_attribute),
    /// [`cuCoredumpSetAttributeGlobal`](checked::coredump_set_attribute_global)). The methods below set the known
    /// settings with their types.
    ///
    /// # Safety
    /// The bytes must be a value of the setting's type; text must end with a NUL byte.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown setting or a wrong size, `CUDA_ERROR_NOT_PERMITTED` if the
    /// setting can no longer be changed, and a [missing-function error](crate::Error::is_missing_function) if the
    /// driver is older than CUDA 12.1.
    #[inline]
    #[doc(alias = "cuCoredumpSetAttribute")]
    #[doc(alias = "cuCoredumpSetAttributeGlobal")]
    #[track_caller]
    pub unsafe fn set(&self, setting: CUcoredumpSettings, value: &[u8]) -> Result<()> {
        match self.context {
            Some(context) => {
                let _current = context.enter()?;
                // SAFETY: upheld by the caller.
                unsafe { checked::coredump_set_attribute(setting, value) }?;
            }
            None => {
                // SAFETY: upheld by the caller.
                unsafe { checked::coredump_set_attribute_global(setting, value) }?;
            }
        }
        Ok(())
    }

    #[inline]
    #[track_caller]
    fn get_bool(&self, setting: CUcoredumpSettings) -> Result<bool> {
        Ok(self.get(setting)?.first().is_some_and(|byte| *byte != 0))
    }

    #[inline]
    #[track_caller]
    fn set_bool(&self, setting: CUcoredumpSettings, value: bool) -> Result<()> {
        // SAFETY: the callers pass settings whose type is a C `bool`.
        unsafe { self.set(setting, &[u8::from(value)]) }
    }

    #[inline]
    #[track_caller]
    fn get_text(&self, setting: CUcoredumpSettings) -> Result<String> {
        let bytes = self.get(setting)?;
        let text = CStr::from_bytes_until_nul(&bytes).map_or(&bytes[..], CStr::to_bytes);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    #[inline]
    #[track_caller]
    fn set_text(&self, setting: CUcoredumpSettings, value: &CStr) -> Result<()> {
        // SAFETY: the callers pass settings that are text, and the text ends with a NUL byte.
        unsafe { self.set(setting, value.to_bytes_with_nul()) }
    }

    /// Returns true if the driver writes a core dump when a kernel faults.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_ENABLE_ON_EXCEPTION")]
    #[track_caller]
    pub fn enabled_on_exception(&self) -> Result<bool> {
        self.get_bool(CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION)
    }

    /// Enables or disables core dumps when a kernel faults.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_ENABLE_ON_EXCEPTION")]
    #[track_caller]
    pub fn set_enabled_on_exception(&self, enabled: bool) -> Result<()> {
        self.set_bool(CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION, enabled)
    }

    /// Returns true if the process aborts, with a core dump of the host, after the core dump of the GPU.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_TRIGGER_HOST")]
    #[track_caller]
    pub fn triggers_host(&self) -> Result<bool> {
        self.get_bool(CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST)
    }

    /// Enables or disables aborting the process, with a core dump of the host, after the core dump of the GPU.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_TRIGGER_HOST")]
    #[track_caller]
    pub fn set_triggers_host(&self, enabled: bool) -> Result<()> {
        self.set_bool(CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST, enabled)
    }

    /// Returns true if core dumps contain no memory and no device code. Newer programs use the
    /// [generation flags](Self::generation_flags).
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_LIGHTWEIGHT")]
    #[track_caller]
    pub fn lightweight(&self) -> Result<bool> {
        self.get_bool(CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT)
    }

    /// Includes memory and device code in core dumps, or leaves them out if `lightweight` is true.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_LIGHTWEIGHT")]
    #[track_caller]
    pub fn set_lightweight(&self, lightweight: bool) -> Result<()> {
        self.set_bool(CUcoredumpSettings::CU_COREDUMP_LIGHTWEIGHT, lightweight)
    }

    /// Returns true if a write to the [pipe](Self::pipe) of the process makes the driver write a core dump.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_ENABLE_USER_TRIGGER")]
    #[track_caller]
    pub fn enabled_by_user(&self) -> Result<bool> {
        self.get_bool(CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER)
    }

    /// Enables or disables core dumps on a write to the [pipe](Self::pipe) of the process. Only the
    /// [`global`](Self::global) settings allow this.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_ENABLE_USER_TRIGGER")]
    #[track_caller]
    pub fn set_enabled_by_user(&self, enabled: bool) -> Result<()> {
        self.set_bool(CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER, enabled)
    }

    /// Returns the name of core-dump files, in which `%h` stands for the host's name, `%p` for the process ID, and `%t`
    /// for the time.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_FILE")]
    #[track_caller]
    pub fn file(&self) -> Result<String> {
        self.get_text(CUcoredumpSettings::CU_COREDUMP_FILE)
    }

    /// Sets the name of core-dump files, of at most 1023 bytes, in the form that [`file`](Self::file) describes.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_FILE")]
    #[track_caller]
    pub fn set_file(&self, name: &CStr) -> Result<()> {
        self.set_text(CUcoredumpSettings::CU_COREDUMP_FILE, name)
    }

    /// Returns the name of the pipe that the driver watches.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_PIPE")]
    #[track_caller]
    pub fn pipe(&self) -> Result<String> {
        self.get_text(CUcoredumpSettings::CU_COREDUMP_PIPE)
    }

    /// Sets the name of the pipe that the driver watches. It can be set once, before
    /// [`set_enabled_by_user`](Self::set_enabled_by_user).
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_PIPE")]
    #[track_caller]
    pub fn set_pipe(&self, name: &CStr) -> Result<()> {
        self.set_text(CUcoredumpSettings::CU_COREDUMP_PIPE, name)
    }

    /// Returns the flags, most of which name a part that core dumps leave out.
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    #[inline]
    #[doc(alias = "CU_COREDUMP_GENERATION_FLAGS")]
    #[track_caller]
    pub fn generation_flags(&self) -> Result<CUCoredumpGenerationFlags> {
        let bytes = self.get(CUcoredumpSettings::CU_COREDUMP_GENERATION_FLAGS)?;
        let number = bytes.first_chunk().copied().map_or(0, u32::from_ne_bytes);
        Ok(CUCoredumpGenerationFlags(number))
    }

    /// Sets the flags, most of which name a part that core dumps leave out.
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    #[inline]
    #[doc(alias = "CU_COREDUMP_GENERATION_FLAGS")]
    #[track_caller]
    pub fn set_generation_flags(&self, flags: CUCoredumpGenerationFlags) -> Result<()> {
        // SAFETY: the number has the type of this setting.
        unsafe { self.set(CUcoredumpSettings::CU_COREDUMP_GENERATION_FLAGS, &flags.0.to_ne_bytes()) }
    }
}

/// A closure that gets the process ID and the device of a core dump.
type Receiver = dyn Fn(i32, Device) + Send + Sync;

// Statics are never dropped. With `ManuallyDrop`, this crate does not contain the unused code to drop the closures.
static RECEIVERS: ManuallyDrop<Receivers<Receiver>> = ManuallyDrop::new(Receivers::new());

/// Passes a core dump to the closure that is registered as `number`. The driver calls this function.
#[inline]
unsafe extern "system" fn receive(number: *mut c_void, process: c_int, device: sys::CUdevice) {
    RECEIVERS.with(number.addr(), |receiver| receiver(process, Device::from_raw(device)));
}

/// The registration of a closure that is called before or after the driver writes a core dump. Dropping it unregisters
/// the closure. It needs a driver from CUDA 13.2 on.
pub struct CoredumpCallback {
    raw: sys::CUcoredumpCallbackHandle,
    number: usize,
    is_start: bool,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for CoredumpCallback {}
// SAFETY: as above; no method uses the handle by reference.
unsafe impl Sync for CoredumpCallback {}

impl CoredumpCallback {
    /// Registers a closure that is called before a core dump is written, with the process ID and the device
    /// ([`cuCoredumpRegisterStartCallback`](checked::coredump_register_start_callback)). The closure must not call the
    /// driver, and a panic in it is ignored.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuCoredumpRegisterStartCallback")]
    #[track_caller]
    pub fn on_start(receiver: impl Fn(i32, Device) + Send + Sync + 'static) -> Result<Self> {
        let number = RECEIVERS.add(Arc::new(receiver));
        let data = ptr::without_provenance_mut(number);
        // SAFETY: `receive` does not unwind, and takes any number.
        let raw = unsafe { checked::coredump_register_start_callback(Some(receive), data) };
        Self::registered(raw, number, true)
    }

    /// Registers a closure that is called after a core dump was written, with the process ID and the device
    /// ([`cuCoredumpRegisterCompleteCallback`](checked::coredump_register_complete_callback)). The closure must not
    /// call the driver, and a panic in it is ignored.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuCoredumpRegisterCompleteCallback")]
    #[track_caller]
    pub fn on_complete(receiver: impl Fn(i32, Device) + Send + Sync + 'static) -> Result<Self> {
        let number = RECEIVERS.add(Arc::new(receiver));
        let data = ptr::without_provenance_mut(number);
        // SAFETY: `receive` does not unwind, and takes any number.
        let raw = unsafe { checked::coredump_register_complete_callback(Some(receive), data) };
        Self::registered(raw, number, false)
    }

    #[inline]
    fn registered(raw: Result<sys::CUcoredumpCallbackHandle>, number: usize, is_start: bool) -> Result<Self> {
        match raw {
            Ok(raw) => Ok(Self { raw, number, is_start }),
            Err(error) => {
                RECEIVERS.remove(number);
                Err(error)
            }
        }
    }

    /// Unregisters the closure
    /// ([`cuCoredumpDeregisterStartCallback`](checked::coredump_deregister_start_callback),
    /// [`cuCoredumpDeregisterCompleteCallback`](checked::coredump_deregister_complete_callback)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_DEINITIALIZED` while the process exits.
    #[inline]
    #[doc(alias = "cuCoredumpDeregisterStartCallback")]
    #[doc(alias = "cuCoredumpDeregisterCompleteCallback")]
    #[track_caller]
    pub fn unregister(mut self) -> Result<()> {
        let raw = mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: the handle is live, and null in `self`, so that `drop` does not use it.
        unsafe { self.end(raw) }
    }

    /// # Safety
    /// The handle must be live, and not be used again.
    #[inline]
    #[track_caller]
    unsafe fn end(&self, raw: sys::CUcoredumpCallbackHandle) -> Result<()> {
        if self.is_start {
            // SAFETY: upheld by the caller.
            unsafe { checked::coredump_deregister_start_callback(raw) }
        } else {
            // SAFETY: upheld by the caller.
            unsafe { checked::coredump_deregister_complete_callback(raw) }
        }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUcoredumpCallbackHandle {
        self.raw
    }
}

impl Drop for CoredumpCallback {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { self.end(self.raw) });
            }
        }
        RECEIVERS.remove(self.number);
    }
}

impl fmt::Debug for CoredumpCallback {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoredumpCallback")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
