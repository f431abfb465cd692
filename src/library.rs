//! Libraries: device code that is loaded once for all contexts.

mod kernel;

use core::mem;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

pub use kernel::Kernel;

use crate::error::{Error, dropping};
use crate::jit::{self, Format, JitError, JitOptions};
use crate::refusal::Refusal;
use crate::sys::{self, CUlibraryOption, CUresult};
use crate::{Context, DevicePtr, Global, Module, Result, checked};

/// A library: kernels and variables from PTX, a cubin or a fat binary that every context can use. In the lazy
/// [loading mode](Module::loading_mode), the driver loads it into a context when it is first used there, and in the
/// eager mode into all contexts at once. Needs CUDA 12.0.
///
/// ```
/// # use cuda_driver::{Context, Device, LaunchConfig, Library, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// let library = Library::from_ptx("
/// .version 7.0
/// .target sm_52
/// .address_size 64
/// .visible .global .align 4 .u32 count = 0;
/// .visible .entry increment() {
///     .reg .u32 %n;
///     ld.global.u32 %n, [count];
///     add.u32 %n, %n, 1;
///     st.global.u32 [count], %n;
///     ret;
/// }
/// ")?;
/// let increment = library.kernel("increment")?;
///
/// let context = Context::create(Device::first()?)?;
/// let stream = Stream::new(&context)?;
/// // SAFETY: the kernel takes no arguments and accesses only its variable.
/// unsafe { increment.launch(&stream, LaunchConfig::default(), ()) }?;
/// stream.synchronize()?;
/// // Each context has its own variable.
/// assert_eq!(library.global(&context, "count")?.read::<u32>()?, 1);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Clones, kernels, variables and the library's modules are references to a library. The last reference unloads it.
#[derive(Debug, Clone)]
pub struct Library {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: sys::CUlibrary,
    /// False for a borrowed library.
    owned: bool,
    info_log: String,
    compile_ms: f32,
}

// SAFETY: a library handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    /// Unloads the library if it is owned. No later call unloads it again, even if an interposer panics in this one.
    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        if !mem::replace(&mut self.owned, false) {
            return Ok(());
        }
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::library_unload(self.raw) }
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
const LOAD: sys::Function = sys::Function::cuLibraryLoadData;

impl Library {
    #[inline]
    fn new(raw: sys::CUlibrary, owned: bool, info_log: String, compile_ms: f32) -> Self {
        Self {
            inner: Arc::new(Inner {
                raw,
                owned,
                info_log,
                compile_ms,
            }),
        }
    }

    /// Compiles PTX ([`cuLibraryLoadData`](checked::library_load_data)).
    ///
    /// # Errors
    /// Returns the errors of [`Module::from_ptx`]. The driver returns some only when a kernel is looked up, so this
    /// method looks one up if the compiler printed an error.
    #[inline]
    #[doc(alias = "cuLibraryLoadData")]
    #[track_caller]
    pub fn from_ptx(ptx: &str) -> Result<Self, JitError> {
        Self::from_ptx_with(ptx, &JitOptions::default())
    }

    /// Compiles PTX with options for the compiler ([`cuLibraryLoadData`](checked::library_load_data)).
    ///
    /// # Errors
    /// Same as [`from_ptx`](Self::from_ptx), and `CUDA_ERROR_NOT_SUPPORTED` for an option that is newer than the
    /// driver.
    #[inline]
    #[doc(alias = "cuLibraryLoadData")]
    #[track_caller]
    pub fn from_ptx_with(ptx: &str, options: &JitOptions) -> Result<Self, JitError> {
        match jit::ptx(ptx, LOAD) {
            Ok(text) => Self::from_text(&text, options),
            Err(error) => Err(error),
        }
    }

    /// Compiles a PTX file. Use [`load`](Self::load) for cubins and fat binaries.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read,
    /// `CUDA_ERROR_INVALID_IMAGE` for a binary, and the errors of [`from_ptx`](Self::from_ptx).
    #[inline]
    #[doc(alias = "cuLibraryLoadFromFile")]
    #[track_caller]
    pub fn load_ptx(path: impl AsRef<Path>) -> Result<Self, JitError> {
        let path = path.as_ref();
        let function = sys::Function::cuLibraryLoadFromFile;
        let loaded = match jit::read_ptx(path, function, LOAD, "Library::load") {
            Ok(text) => Self::from_text(&text, &JitOptions::default()),
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Loads a file with PTX, a cubin or a fat binary, with options for the compiler. Like [`Module::load`], this
    /// method reads the file and loads it from memory.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read, and the errors of
    /// [`from_image_with`](Self::from_image_with).
    ///
    /// # Safety
    /// Same as [`Module::from_image`]. For PTX, [`load_ptx`](Self::load_ptx) is a safe alternative.
    #[inline]
    #[doc(alias = "cuLibraryLoadFromFile")]
    #[track_caller]
    pub unsafe fn load(path: impl AsRef<Path>, options: &JitOptions) -> Result<Self, JitError> {
        let path = path.as_ref();
        let loaded = match jit::read(path, sys::Function::cuLibraryLoadFromFile) {
            // SAFETY: upheld by the caller.
            Ok(image) => unsafe { Self::from_image_with(&image, options) },
            Err(error) => Err(error),
        };
        loaded.map_err(|error| error.at(path))
    }

    /// Loads an image from memory: PTX, a cubin or a fat binary ([`cuLibraryLoadData`](checked::library_load_data)).
    ///
    /// # Errors
    /// Returns the errors of [`Module::from_image`]. Some may be returned only when a kernel is looked up.
    ///
    /// # Safety
    /// Same as [`Module::from_image`].
    #[inline]
    #[doc(alias = "cuLibraryLoadData")]
    #[track_caller]
    pub unsafe fn from_image(image: &[u8]) -> Result<Self, JitError> {
        // SAFETY: upheld by the caller.
        unsafe { Self::from_image_with(image, &JitOptions::default()) }
    }

    /// Loads an image from memory with options for the compiler ([`cuLibraryLoadData`](checked::library_load_data)).
    ///
    /// # Errors
    /// Same as [`from_image`](Self::from_image), and `CUDA_ERROR_NOT_SUPPORTED` for an option that is newer than the
    /// driver.
    ///
    /// # Safety
    /// Same as [`Module::from_image`].
    #[inline]
    #[doc(alias = "cuLibraryLoadData")]
    #[track_caller]
    pub unsafe fn from_image_with(image: &[u8], options: &JitOptions) -> Result<Self, JitError> {
        match jit::recognise(image) {
            // SAFETY: the caller guarantees that the binary is valid, and it ends inside the slice.
            Ok(Format::Binary) => unsafe { Self::of_data(image.as_ptr(), options, false) },
            Ok(Format::Text(text)) => Self::from_text(&text, options),
            Err(reason) => Err(jit::refused(reason, LOAD)),
        }
    }

    /// Loads a cubin or a fat binary that is never freed, for instance one that is part of the program, so that the
    /// driver need not copy it (`CU_LIBRARY_BINARY_IS_PRESERVED`). PTX is also accepted, and is copied.
    ///
    /// # Errors
    /// Same as [`from_image_with`](Self::from_image_with).
    ///
    /// # Safety
    /// Same as [`Module::from_image`].
    #[inline]
    #[doc(alias = "CU_LIBRARY_BINARY_IS_PRESERVED")]
    #[track_caller]
    pub unsafe fn from_static_image(image: &'static [u8], options: &JitOptions) -> Result<Self, JitError> {
        match jit::recognise(image) {
            // SAFETY: the caller guarantees that the binary is valid; it ends inside the slice, and is never freed.
            Ok(Format::Binary) => unsafe { Self::of_data(image.as_ptr(), options, true) },
            Ok(Format::Text(text)) => Self::from_text(&text, options),
            Err(reason) => Err(jit::refused(reason, LOAD)),
        }
    }

    #[inline]
    #[track_caller]
    fn from_text(text: &CStr, options: &JitOptions) -> Result<Self, JitError> {
        // SAFETY: the text is NUL-terminated, and is not a binary.
        unsafe { Self::of_data(text.as_ptr().cast(), options, false) }
    }

    /// Loads an image.
    ///
    /// # Safety
    /// `image` must point to a complete cubin or fat binary, or to NUL-terminated text, and must never be freed if it
    /// is preserved.
    #[inline]
    #[track_caller]
    unsafe fn of_data(image: *const u8, options: &JitOptions, preserved: bool) -> Result<Self, JitError> {
        let mut request = jit::Request::new(options, LOAD)?;
        let (names, values) = request.arrays();
        let library_options: &[CUlibraryOption] = if preserved {
            &[CUlibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED]
        } else {
            &[]
        };
        let mut library_values = [core::ptr::without_provenance_mut(1)];
        let library_values = &mut library_values[..library_options.len()];
        // SAFETY: the image is upheld by the caller; each option has a value of its type, and the buffers live in
        // `request`.
        let loaded =
            unsafe { checked::library_load_data(image.cast(), names, values, library_options, library_values) };
        let library = match loaded {
            Ok(raw) => Self::new(raw, true, request.info_log(), request.wall_ms()),
            Err(error) => return Err(request.failed(error)),
        };
        if !request.error_log().is_empty() {
            // Driver 580 loads code that does not compile, and returns the error from every look-up.
            // SAFETY: the library is live.
            match unsafe { checked::library_get_kernel(library.as_raw(), c"") } {
                Err(error) if error.code() != CUresult::CUDA_ERROR_NOT_FOUND => return Err(request.failed(error)),
                _ => {}
            }
        }
        Ok(library)
    }

    /// Returns the compiler's info log; with [`JitOptions::verbose`] it lists the resources that each kernel uses.
    /// Empty if the compiler printed nothing, if [`JitOptions::log_bytes`] is 0, and for a library from a raw handle.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.inner.info_log
    }

    /// Returns the time that the compiler and the linker took, in milliseconds (`CU_JIT_WALL_TIME`); 0 for a library
    /// from a raw handle.
    #[inline]
    #[must_use]
    pub fn compile_ms(&self) -> f32 {
        self.inner.compile_ms
    }

    /// Finds a kernel by its name ([`cuLibraryGetKernel`](checked::library_get_kernel)). No context is needed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no kernel has that name, and errors of [loading](Self::from_image) that the
    /// driver did not return before.
    #[inline]
    #[doc(alias = "cuLibraryGetKernel")]
    #[track_caller]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let name = c_name(name, sys::Function::cuLibraryGetKernel)?;
        // SAFETY: the library is live.
        let raw = unsafe { checked::library_get_kernel(self.inner.raw, &name) }?;
        Ok(Kernel::new(raw, Some(self.clone())))
    }

    /// Returns the number of kernels ([`cuLibraryGetKernelCount`](checked::library_get_kernel_count)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuLibraryGetKernelCount")]
    #[track_caller]
    pub fn kernel_count(&self) -> Result<u32> {
        // SAFETY: the library is live.
        unsafe { checked::library_get_kernel_count(self.inner.raw) }
    }

    /// Returns all kernels ([`cuLibraryEnumerateKernels`](checked::library_enumerate_kernels)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuLibraryEnumerateKernels")]
    #[track_caller]
    pub fn kernels(&self) -> Result<Vec<Kernel>> {
        let count = self.kernel_count()?;
        // SAFETY: the library is live.
        let found = unsafe { checked::library_enumerate_kernels(count, self.inner.raw) }?;
        let found = found.into_iter().filter(|kernel| !kernel.is_null());
        Ok(found.map(|raw| Kernel::new(raw, Some(self.clone()))).collect())
    }

    /// Returns the library's module in a context ([`cuLibraryGetModule`](checked::library_get_module)). It is unloaded
    /// with the library.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NO_BINARY_FOR_GPU` if the library has no code for the context's device.
    #[inline]
    #[doc(alias = "cuLibraryGetModule")]
    #[track_caller]
    pub fn module(&self, context: &Context) -> Result<Module> {
        let _current = context.enter()?;
        // SAFETY: the library is live.
        let raw = unsafe { checked::library_get_module(self.inner.raw) }?;
        Ok(Module::of_library(raw, context, self.inner.clone()))
    }

    /// Finds a variable by its name ([`cuLibraryGetGlobal`](checked::library_get_global)). Each context has its own
    /// copy, except for [managed](Self::managed) variables.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no variable has that name.
    #[inline]
    #[doc(alias = "cuLibraryGetGlobal")]
    #[track_caller]
    pub fn global(&self, context: &Context, name: &str) -> Result<Global> {
        let name = c_name(name, sys::Function::cuLibraryGetGlobal)?;
        let _current = context.enter()?;
        // SAFETY: the library is live.
        let found = unsafe { checked::library_get_global(self.inner.raw, &name) }?;
        let ptr = DevicePtr::from_raw(found.dptr);
        Ok(Global::new(ptr, found.bytes, Some(context.clone()), self.inner.clone()))
    }

    /// Finds a managed variable by its name ([`cuLibraryGetManaged`](checked::library_get_managed)). All contexts share
    /// it, and no context is needed to find it; [`Global::read`] and [`Global::write`] need a current context.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if there is no managed variable of that name.
    #[inline]
    #[doc(alias = "cuLibraryGetManaged")]
    #[track_caller]
    pub fn managed(&self, name: &str) -> Result<Global> {
        let name = c_name(name, sys::Function::cuLibraryGetManaged)?;
        // SAFETY: the library is live.
        let found = unsafe { checked::library_get_managed(self.inner.raw, &name) }?;
        let ptr = DevicePtr::from_raw(found.dptr);
        Ok(Global::new(ptr, found.bytes, None, self.inner.clone()))
    }

    /// Returns the address of a unified function by its symbol
    /// ([`cuLibraryGetUnifiedFunction`](checked::library_get_unified_function)). It is valid as long as the library.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if there is no such function, and `CUDA_ERROR_INVALID_VALUE` on devices without
    /// unified functions, such as those of the software driver.
    #[inline]
    #[doc(alias = "cuLibraryGetUnifiedFunction")]
    #[track_caller]
    pub fn unified_function(&self, symbol: &str) -> Result<*mut core::ffi::c_void> {
        let symbol = c_name(symbol, sys::Function::cuLibraryGetUnifiedFunction)?;
        // SAFETY: the library is live.
        unsafe { checked::library_get_unified_function(self.inner.raw, &symbol) }
    }

    /// Drops this reference. If it is the last one, unloads the library and returns the result
    /// ([`cuLibraryUnload`](checked::library_unload)). Otherwise, the last reference does that.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuLibraryUnload")]
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
    pub fn as_raw(&self) -> sys::CUlibrary {
        self.inner.raw
    }

    /// Takes ownership of a library.
    ///
    /// # Safety
    /// The handle must be live, and no other code may unload it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUlibrary) -> Self {
        Self::new(raw, true, String::new(), 0.0)
    }

    /// Borrows a library, which is not unloaded with the returned value.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones, and everything found in it.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUlibrary) -> Self {
        Self::new(raw, false, String::new(), 0.0)
    }

    /// Releases ownership of the handle, so that no reference unloads the library.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUlibrary {
        let raw = self.inner.raw;
        // The reference count never reaches zero.
        mem::forget(self);
        raw
    }
}

/// Returns a name as a C string, or `CUDA_ERROR_NOT_FOUND` for a name that contains a NUL byte, because no kernel and
/// no variable has such a name.
#[inline]
#[track_caller]
fn c_name(name: &str, function: sys::Function) -> Result<CString> {
    match CString::new(name) {
        Ok(name) => Ok(name),
        Err(_) => Err(Error::refused(
            CUresult::CUDA_ERROR_NOT_FOUND,
            function,
            Refusal::NulByte,
        )),
    }
}
