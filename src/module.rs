//! Modules: device code that is loaded into a context.

mod error;
mod image;
mod jit;

use core::{fmt, mem};
use std::ffi::{CStr, CString};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

pub use error::JitError;
pub use jit::JitOptions;

use self::image::Format;
use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Context, DevicePtr, Download, Result, Upload, checked};

/// A module: kernels and variables that were loaded into a context from PTX, a cubin or a fat binary.
///
/// ```no_run
/// # use cuda_driver::{Context, Device, Module};
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let module = Module::load_ptx(&context, "vector_add.ptx")?;
/// let function = module.function("vector_add")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones, functions and variables are references to a module. The last reference unloads the module.
#[derive(Debug, Clone)]
pub struct Module {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: sys::CUmodule,
    /// `None` for a borrowed module.
    context: Option<Context>,
    info_log: String,
}

// SAFETY: a module handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    #[inline]
    #[track_caller]
    fn end(&self) -> Result<()> {
        if self.context.is_none() {
            return Ok(());
        }
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::module_unload(self.raw) }
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        dropping().done(self.end());
    }
}

/// Reads a file.
#[track_caller]
fn read(path: &Path) -> Result<Vec<u8>, JitError> {
    match fs::read(path) {
        Ok(content) => Ok(content),
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::OutOfMemory => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                _ => CUresult::CUDA_ERROR_FILE_NOT_FOUND,
            };
            Err(JitError::refused(
                Error::unasked(code, sys::Function::cuModuleLoad),
                error.to_string(),
            ))
        }
    }
}

/// Returns the error for an image that is rejected without calling the driver.
#[track_caller]
fn refused(reason: String) -> JitError {
    JitError::refused(
        Error::unasked(CUresult::CUDA_ERROR_INVALID_IMAGE, sys::Function::cuModuleLoadDataEx),
        reason,
    )
}

impl Module {
    #[inline]
    fn new(raw: sys::CUmodule, context: &Context) -> Self {
        Self::compiled(raw, context, String::new())
    }

    #[inline]
    fn compiled(raw: sys::CUmodule, context: &Context, info_log: String) -> Self {
        Self {
            inner: Arc::new(Inner {
                raw,
                context: Some(context.clone()),
                info_log,
            }),
        }
    }

    /// Compiles and loads a PTX file ([`cuModuleLoadDataEx`](checked::module_load_data_ex)). Use [`load`](Self::load) for
    /// cubins and fat binaries.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read,
    /// `CUDA_ERROR_INVALID_IMAGE` for a binary, and the errors of [`from_ptx`](Self::from_ptx).
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[doc(alias = "cuModuleLoad")]
    #[track_caller]
    pub fn load_ptx(context: &Context, path: impl AsRef<Path>) -> Result<Self, JitError> {
        let path = path.as_ref();
        let loaded = match read(path) {
            Ok(file) => match image::recognise(&file) {
                Ok(Format::Text(text)) => Self::from_text(context, &text, &JitOptions::default()),
                Ok(Format::Binary) => Err(refused("the file is a binary, not PTX: use `Module::load`".to_owned())),
                Err(reason) => Err(refused(reason)),
            },
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Loads a file with PTX, a cubin or a fat binary. The file is read here and loaded from memory like any
    /// [image](Self::from_image) ([`cuModuleLoadDataEx`](checked::module_load_data_ex)), because `cuModuleLoad` does not
    /// detect a truncated file, and supports only Unicode paths on Windows.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read, and the errors of
    /// [`from_image`](Self::from_image).
    ///
    /// # Safety
    /// Same as [`from_image`](Self::from_image). For PTX, [`load_ptx`](Self::load_ptx) is a safe alternative.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[doc(alias = "cuModuleLoad")]
    #[track_caller]
    pub unsafe fn load(context: &Context, path: impl AsRef<Path>) -> Result<Self, JitError> {
        let path = path.as_ref();
        let loaded = match read(path) {
            // SAFETY: upheld by the caller.
            Ok(image) => unsafe { Self::from_image(context, &image) },
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Compiles and loads PTX ([`cuModuleLoadDataEx`](checked::module_load_data_ex)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_PTX` with the compiler's messages for PTX that does not compile,
    /// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` for a PTX version that is newer than the driver, and `CUDA_ERROR_INVALID_IMAGE`
    /// for text that is not PTX.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub fn from_ptx(context: &Context, ptx: &str) -> Result<Self, JitError> {
        Self::from_ptx_with(context, ptx, &JitOptions::default())
    }

    /// Compiles and loads PTX with options for the compiler.
    ///
    /// # Errors
    /// Same as [`from_ptx`](Self::from_ptx).
    #[inline]
    #[track_caller]
    pub fn from_ptx_with(context: &Context, ptx: &str, options: &JitOptions) -> Result<Self, JitError> {
        let text = ptx.trim_end_matches('\0');
        match image::text(text.as_bytes()) {
            Ok(text) => Self::from_text(context, &text, options),
            Err(reason) => Err(refused(reason)),
        }
    }

    /// Loads an image from memory: PTX, a cubin or a fat binary ([`cuModuleLoadDataEx`](checked::module_load_data_ex)).
    ///
    /// # Errors
    /// Returns the errors of [`from_ptx`](Self::from_ptx), `CUDA_ERROR_NO_BINARY_FOR_GPU` if the image has no code for this
    /// device, and `CUDA_ERROR_INVALID_IMAGE` if the image is truncated.
    ///
    /// # Safety
    /// A cubin or fat binary must be complete, unmodified output of NVIDIA's tools. The driver gets no length and trusts
    /// the offsets inside the image: a damaged one can crash it. Only a truncated image is detected here. For PTX,
    /// [`from_ptx`](Self::from_ptx) and [`load_ptx`](Self::load_ptx) are safe alternatives.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub unsafe fn from_image(context: &Context, image: &[u8]) -> Result<Self, JitError> {
        let options = JitOptions::default();
        match image::recognise(image) {
            Ok(Format::Binary) => {
                // SAFETY: the caller guarantees that the binary is valid, and it ends inside the slice.
                let loaded = unsafe { jit::load(context, image.as_ptr(), &options) };
                loaded.map(|(raw, log)| Self::compiled(raw, context, log))
            }
            Ok(Format::Text(text)) => Self::from_text(context, &text, &options),
            Err(reason) => Err(refused(reason)),
        }
    }

    #[inline]
    #[track_caller]
    fn from_text(context: &Context, text: &CStr, options: &JitOptions) -> Result<Self, JitError> {
        // SAFETY: the text is NUL-terminated, and `image::text` rejects binaries.
        match unsafe { jit::load(context, text.as_ptr().cast(), options) } {
            Ok((raw, log)) => Ok(Self::compiled(raw, context, log)),
            Err(error) => Err(error),
        }
    }

    /// Returns the compiler's info log; with [`JitOptions::verbose`] it lists the resources that each kernel uses. Empty if
    /// the compiler printed nothing, and for a module from a raw handle.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.inner.info_log
    }

    /// Finds a variable by its name ([`cuModuleGetGlobal`](checked::module_get_global)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if there is none of that name, and `CUDA_ERROR_INVALID_VALUE` if the name is empty.
    #[inline]
    #[doc(alias = "cuModuleGetGlobal")]
    #[track_caller]
    pub fn global(&self, name: &str) -> Result<Global> {
        let Ok(name) = CString::new(name) else {
            // No variable has such a name.
            return Err(Error::refused(
                CUresult::CUDA_ERROR_NOT_FOUND,
                sys::Function::cuModuleGetGlobal,
                Refusal::NulByte,
            ));
        };
        // SAFETY: the module is live.
        let found = unsafe { checked::module_get_global(self.inner.raw, &name) }?;
        Ok(Global {
            ptr: DevicePtr::from_raw(found.dptr),
            size: found.bytes,
            module: self.clone(),
        })
    }

    /// Drops this reference. If it is the last one, unloads the module and returns the result
    /// ([`cuModuleUnload`](checked::module_unload)). Otherwise, the last reference does that.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuModuleUnload")]
    #[track_caller]
    pub fn unload(self) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(mut inner) => {
                // Taken before the call: if an interposer panics in it, `drop` must not unload the module again.
                match inner.context.take() {
                    // SAFETY: the handle is live and owned, and this is its last use.
                    Some(_context) => unsafe { checked::module_unload(inner.raw) },
                    None => Ok(()),
                }
            }
            Err(_) => Ok(()),
        }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUmodule {
        self.inner.raw
    }

    /// Takes ownership of a module in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may unload it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUmodule, context: &Context) -> Self {
        Self::new(raw, context)
    }

    /// Borrows a module, which is not unloaded with the returned value.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones, and all functions and variables found in it.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUmodule) -> Self {
        Self {
            inner: Arc::new(Inner {
                raw,
                context: None,
                info_log: String::new(),
            }),
        }
    }

    /// Releases ownership of the handle: no reference unloads the module any more.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUmodule {
        let raw = self.inner.raw;
        // The reference count never reaches zero.
        mem::forget(self);
        raw
    }

    /// Returns the context of the module; `None` for a borrowed module.
    #[inline]
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.inner.context.as_ref()
    }
}

/// A variable of a module, in device memory.
#[derive(Clone)]
pub struct Global {
    ptr: DevicePtr,
    size: usize,
    module: Module,
}

impl Global {
    /// Returns the address, which is valid as long as the module is loaded.
    #[inline]
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// Returns the size in bytes.
    #[inline]
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.size
    }

    /// Copies the variable's first bytes to the host ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the variable is smaller than a `T`, or an error from the work that was waited for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn read<T: Download>(&self) -> Result<T> {
        self.check::<T>(sys::Function::cuMemcpyDtoH)?;
        let _current = self.module.context().map(Context::enter).transpose()?;
        let mut value = [mem::MaybeUninit::<T>::uninit()];
        // SAFETY: the variable lives as long as the module, and is large enough.
        unsafe { checked::memcpy_dtoh(&mut value, self.ptr.as_raw()) }?;
        // SAFETY: the copy is done, and any bytes are a `T`.
        Ok(unsafe { value[0].assume_init() })
    }

    /// Copies a value to the start of the variable ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the variable is smaller than a `T`.
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn write<T: Upload>(&self, value: &T) -> Result<()> {
        self.check::<T>(sys::Function::cuMemcpyHtoD)?;
        let _current = self.module.context().map(Context::enter).transpose()?;
        // SAFETY: the variable lives as long as the module, and is large enough.
        unsafe { checked::memcpy_htod(self.ptr.as_raw(), core::slice::from_ref(value)) }
    }

    #[track_caller]
    fn check<T>(&self, function: sys::Function) -> Result<()> {
        if size_of::<T>() > self.size {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                function,
                Refusal::Variable,
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Global {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global")
            .field("ptr", &self.ptr)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
