//! Modules: device code that is loaded into a context.

use core::{fmt, mem};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, dropping};
use crate::jit::{self, Format, JitError, JitOptions};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Context, DevicePtr, Download, Result, Upload, checked};

/// A module: kernels and variables that were loaded into a context from PTX, a cubin or a fat binary.
///
/// ```
/// # use cuda_driver::{Context, Device, Module};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let module = Module::from_ptx(&context, "
/// .version 7.0
/// .target sm_52
/// .address_size 64
/// .visible .global .align 4 .u32 answer = 42;
/// .visible .entry nothing() { ret; }
/// ")?;
/// let function = module.function("nothing")?;
/// assert_eq!(module.global("answer")?.read::<u32>()?, 42);
/// # Ok::<(), cuda_driver::Error>(())
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
    owner: Owner,
    info_log: String,
    compile_ms: f32,
}

/// The ownership of a module, which determines what the last reference does.
enum Owner {
    /// The last reference unloads the module.
    Loaded(Context),
    /// The module belongs to a library, which the second field keeps loaded.
    OfLibrary(Context, #[allow(dead_code)] Arc<dyn Send + Sync>),
    /// Another owner unloads the module.
    Foreign,
}

impl fmt::Debug for Owner {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loaded(_) => "Loaded",
            Self::OfLibrary(..) => "OfLibrary",
            Self::Foreign => "Foreign",
        })
    }
}

// SAFETY: a module handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    /// Unloads the module if it is owned. No later call unloads it again, even if an interposer panics in this one.
    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        match mem::replace(&mut self.owner, Owner::Foreign) {
            // SAFETY: the handle is live and owned, and this is its last use.
            Owner::Loaded(_context) => unsafe { checked::module_unload(self.raw) },
            Owner::OfLibrary(..) | Owner::Foreign => Ok(()),
        }
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

/// Errors of loading code name this function of the driver.
const LOAD: sys::Function = sys::Function::cuModuleLoadDataEx;

impl Module {
    #[inline]
    fn new(raw: sys::CUmodule, owner: Owner) -> Self {
        Self::compiled(raw, owner, String::new(), 0.0)
    }

    #[inline]
    fn compiled(raw: sys::CUmodule, owner: Owner, info_log: String, compile_ms: f32) -> Self {
        let inner = Inner {
            raw,
            owner,
            info_log,
            compile_ms,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the module of a library, which `library` keeps loaded.
    #[inline]
    pub(crate) fn of_library(raw: sys::CUmodule, context: &Context, library: Arc<dyn Send + Sync>) -> Self {
        Self::new(raw, Owner::OfLibrary(context.clone(), library))
    }

    /// Compiles and loads a PTX file ([`cuModuleLoadDataEx`](checked::module_load_data_ex)). Use [`load`](Self::load)
    /// for cubins and fat binaries.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read,
    /// `CUDA_ERROR_INVALID_IMAGE` for a binary, and the errors of [`from_ptx`](Self::from_ptx).
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[doc(alias = "cuModuleLoad")]
    #[track_caller]
    pub fn load_ptx(context: &Context, path: impl AsRef<Path>) -> Result<Self, JitError> {
        Self::load_ptx_with(context, path, &JitOptions::default())
    }

    /// Compiles and loads a PTX file with options for the compiler.
    ///
    /// # Errors
    /// Same as [`load_ptx`](Self::load_ptx) and [`from_ptx_with`](Self::from_ptx_with).
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub fn load_ptx_with(context: &Context, path: impl AsRef<Path>, options: &JitOptions) -> Result<Self, JitError> {
        let path = path.as_ref();
        let loaded = match jit::read_ptx(path, sys::Function::cuModuleLoad, LOAD, "Module::load") {
            Ok(text) => Self::from_text(context, &text, options),
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Loads a file with PTX, a cubin or a fat binary. This method reads the file and loads it from memory like any
    /// [image](Self::from_image) ([`cuModuleLoadDataEx`](checked::module_load_data_ex)), because `cuModuleLoad` does
    /// not detect a truncated file, and supports only Unicode paths on Windows.
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
        // SAFETY: upheld by the caller.
        unsafe { Self::load_with(context, path, &JitOptions::default()) }
    }

    /// Loads a file with PTX, a cubin or a fat binary, with options for the compiler.
    ///
    /// # Errors
    /// Same as [`load`](Self::load) and [`from_ptx_with`](Self::from_ptx_with).
    ///
    /// # Safety
    /// Same as [`from_image`](Self::from_image).
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub unsafe fn load_with(context: &Context, path: impl AsRef<Path>, options: &JitOptions) -> Result<Self, JitError> {
        let path = path.as_ref();
        let loaded = match jit::read(path, sys::Function::cuModuleLoad) {
            // SAFETY: upheld by the caller.
            Ok(image) => unsafe { Self::from_image_with(context, &image, options) },
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Compiles and loads PTX ([`cuModuleLoadDataEx`](checked::module_load_data_ex)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_PTX` with the compiler's messages for PTX that does not compile,
    /// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` for a PTX version that is newer than the driver, and
    /// `CUDA_ERROR_INVALID_IMAGE` for text that is not PTX.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[doc(alias = "cuModuleLoadData")]
    #[track_caller]
    pub fn from_ptx(context: &Context, ptx: &str) -> Result<Self, JitError> {
        Self::from_ptx_with(context, ptx, &JitOptions::default())
    }

    /// Compiles and loads PTX with options for the compiler.
    ///
    /// # Errors
    /// Same as [`from_ptx`](Self::from_ptx), and `CUDA_ERROR_NOT_SUPPORTED` for an option that is newer than the
    /// driver.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub fn from_ptx_with(context: &Context, ptx: &str, options: &JitOptions) -> Result<Self, JitError> {
        match jit::ptx(ptx, LOAD) {
            Ok(text) => Self::from_text(context, &text, options),
            Err(error) => Err(error),
        }
    }

    /// Loads an image from memory: PTX, a cubin or a fat binary ([`cuModuleLoadDataEx`](checked::module_load_data_ex)).
    ///
    /// # Errors
    /// Returns the errors of [`from_ptx`](Self::from_ptx), `CUDA_ERROR_NO_BINARY_FOR_GPU` if the image has no code for
    /// the context's device, and `CUDA_ERROR_INVALID_IMAGE` if the image is truncated.
    ///
    /// # Safety
    /// A cubin or fat binary must be complete, unmodified output of NVIDIA's tools. The driver is not given a length
    /// and does not check the offsets inside the image: a damaged image can crash it. This crate detects only a
    /// truncated image. For PTX, [`from_ptx`](Self::from_ptx) and [`load_ptx`](Self::load_ptx) are safe alternatives.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[doc(alias = "cuModuleLoadData")]
    #[doc(alias = "cuModuleLoadFatBinary")]
    #[track_caller]
    pub unsafe fn from_image(context: &Context, image: &[u8]) -> Result<Self, JitError> {
        // SAFETY: upheld by the caller.
        unsafe { Self::from_image_with(context, image, &JitOptions::default()) }
    }

    /// Loads an image from memory with options for the compiler.
    ///
    /// # Errors
    /// Same as [`from_image`](Self::from_image) and [`from_ptx_with`](Self::from_ptx_with).
    ///
    /// # Safety
    /// Same as [`from_image`](Self::from_image).
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub unsafe fn from_image_with(context: &Context, image: &[u8], options: &JitOptions) -> Result<Self, JitError> {
        match jit::recognise(image) {
            // SAFETY: the caller guarantees that the binary is valid, and it ends inside the slice.
            Ok(Format::Binary) => unsafe { Self::of_data(context, image.as_ptr(), options) },
            Ok(Format::Text(text)) => Self::from_text(context, &text, options),
            Err(reason) => Err(jit::refused(reason, LOAD)),
        }
    }

    #[inline]
    #[track_caller]
    fn from_text(context: &Context, text: &CStr, options: &JitOptions) -> Result<Self, JitError> {
        // SAFETY: the text is NUL-terminated, and `jit` returns no binary as text.
        unsafe { Self::of_data(context, text.as_ptr().cast(), options) }
    }

    /// Loads an image.
    ///
    /// # Safety
    /// `image` must point to a complete cubin or fat binary, or to NUL-terminated text.
    #[inline]
    #[track_caller]
    unsafe fn of_data(context: &Context, image: *const u8, options: &JitOptions) -> Result<Self, JitError> {
        let mut request = jit::Request::new(options, LOAD)?;
        let _current = context.enter()?;
        let (names, values) = request.arrays();
        // SAFETY: the image is upheld by the caller; each option has a value of its type, and the buffers live in
        // `request`.
        match unsafe { checked::module_load_data_ex(image.cast(), names, values) } {
            Ok(raw) => {
                let owner = Owner::Loaded(context.clone());
                Ok(Self::compiled(raw, owner, request.info_log(), request.wall_ms()))
            }
            Err(error) => Err(request.failed(error)),
        }
    }

    /// Returns the loading mode of kernels: with their module, or at their first use
    /// ([`cuModuleGetLoadingMode`](checked::module_get_loading_mode)). The environment variable `CUDA_MODULE_LOADING`
    /// sets it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuModuleGetLoadingMode")]
    #[track_caller]
    pub fn loading_mode() -> Result<sys::CUmoduleLoadingMode> {
        // SAFETY: no preconditions.
        unsafe { checked::module_get_loading_mode() }
    }

    /// Returns the compiler's info log; with [`JitOptions::verbose`] it lists the resources that each kernel uses.
    /// Empty if the compiler printed nothing, if [`JitOptions::log_bytes`] is 0, and for a module of a library or from
    /// a raw handle.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.inner.info_log
    }

    /// Returns the time that the compiler and the linker took, in milliseconds (`CU_JIT_WALL_TIME`); 0 for a module of
    /// a library or from a raw handle.
    #[inline]
    #[must_use]
    pub fn compile_ms(&self) -> f32 {
        self.inner.compile_ms
    }

    /// Finds a variable by its name ([`cuModuleGetGlobal`](checked::module_get_global)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no variable has that name, and `CUDA_ERROR_INVALID_VALUE` if the name is
    /// empty.
    #[inline]
    #[doc(alias = "cuModuleGetGlobal")]
    #[track_caller]
    pub fn global(&self, name: &str) -> Result<Global> {
        let Ok(name) = CString::new(name) else {
            // No variable has a name that contains a NUL byte.
            return Err(Error::refused(
                CUresult::CUDA_ERROR_NOT_FOUND,
                sys::Function::cuModuleGetGlobal,
                Refusal::NulByte,
            ));
        };
        // SAFETY: the module is live.
        let found = unsafe { checked::module_get_global(self.inner.raw, &name) }?;
        let ptr = DevicePtr::from_raw(found.dptr);
        Ok(Global::new(
            ptr,
            found.bytes,
            self.context().cloned(),
            self.inner.clone(),
        ))
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
            Ok(mut inner) => inner.end(),
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
        Self::new(raw, Owner::Loaded(context.clone()))
    }

    /// Borrows a module, which is not unloaded with the returned value.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones, and all functions and variables found in
    /// it.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUmodule) -> Self {
        Self::new(raw, Owner::Foreign)
    }

    /// Releases ownership of the handle, so that no reference unloads the module.
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
        match &self.inner.owner {
            Owner::Loaded(context) | Owner::OfLibrary(context, _) => Some(context),
            Owner::Foreign => None,
        }
    }
}

/// A variable of a module or a library, in device memory. It keeps its module or library loaded, unless that is
/// borrowed.
#[derive(Clone)]
pub struct Global {
    ptr: DevicePtr,
    size: usize,
    /// `None` for a variable of a borrowed module, and for a managed variable of a library.
    context: Option<Context>,
    /// The module or library.
    _owner: Arc<dyn Send + Sync>,
}

impl Global {
    #[inline]
    pub(crate) fn new(ptr: DevicePtr, size: usize, context: Option<Context>, owner: Arc<dyn Send + Sync>) -> Self {
        Self {
            ptr,
            size,
            context,
            _owner: owner,
        }
    }

    /// Returns the address, which is valid as long as the module or library is loaded.
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
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the variable is smaller than a `T`, or an error from the work that was
    /// waited for.
    #[inline]
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn read<T: Download>(&self) -> Result<T> {
        self.check::<T>(sys::Function::cuMemcpyDtoH)?;
        let _current = self.context.as_ref().map(Context::enter).transpose()?;
        let mut value = [mem::MaybeUninit::<T>::uninit()];
        // SAFETY: the variable lives as long as its module or library, and is large enough.
        unsafe { checked::memcpy_dtoh(&mut value, self.ptr.as_raw()) }?;
        // SAFETY: the copy is done, and any bytes are a `T`.
        Ok(unsafe { value[0].assume_init() })
    }

    /// Copies a value to the start of the variable ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the variable is smaller than a `T`.
    #[inline]
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn write<T: Upload>(&self, value: &T) -> Result<()> {
        self.check::<T>(sys::Function::cuMemcpyHtoD)?;
        let _current = self.context.as_ref().map(Context::enter).transpose()?;
        // SAFETY: the variable lives as long as its module or library, and is large enough.
        unsafe { checked::memcpy_htod(self.ptr.as_raw(), core::slice::from_ref(value)) }
    }

    #[inline]
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
