//! Linkers, which combine PTX, cubins, fat binaries, object files and libraries into one image.

use core::ptr::NonNull;
use core::{fmt, mem, ptr, slice};
use std::ffi::CString;
use std::path::Path;

use crate::borrowed::handle;
use crate::context::Entered;
use crate::error::{Error, dropping};
use crate::jit::{self, Format, JitError, JitOptions};
use crate::library::Library;
use crate::path::c_path;
use crate::refusal::Refusal;
use crate::sys::{self, CUjitInputType, CUresult, Function};
use crate::{Borrowed, Context, Module, Result, checked};

/// A linker, which combines inputs that use each other's functions and variables into one image, for the context's
/// device or another [target](JitOptions::target).
///
/// ```
/// # use cuda_driver::{Context, Device, JitOptions, Linker};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let head = ".version 7.0\n.target sm_52\n.address_size 64\n";
/// let linker = Linker::new(&context, &JitOptions::default())?;
/// linker.add_ptx("callee.ptx", &format!("{head}.visible .func nothing() {{ ret; }}"))?;
/// linker.add_ptx("caller.ptx", &format!("{head}.extern .func nothing();
///     .visible .entry kernel() {{ call nothing; ret; }}"))?;
/// let image = linker.complete()?;
/// println!("linked {} bytes in {} ms", image.as_bytes().len(), image.link_ms());
/// let kernel = image.load(&context)?.function("kernel")?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// A linker may be sent to another thread, but only one thread at a time may use it.
pub struct Linker {
    raw: sys::CUlinkState,
    /// `None` for a borrowed linker.
    context: Option<Context>,
    /// The arrays that the driver keeps, and the logs that it writes, until the linker is destroyed. `None` for a
    /// linker from a raw handle.
    request: Option<jit::Request>,
}

// SAFETY: a linker handle may be used on any thread. It is not `Sync`, because the driver writes the logs in every
// call.
unsafe impl Send for Linker {}

impl Linker {
    /// Creates a linker ([`cuLinkCreate`](checked::link_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for an option that is newer than the driver, `CUDA_ERROR_INVALID_VALUE` for
    /// one that a linker does not accept, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuLinkCreate")]
    #[track_caller]
    pub fn new(context: &Context, options: &JitOptions) -> Result<Self, JitError> {
        let mut request = jit::Request::new(options, Function::cuLinkCreate_v2)?;
        let _current = context.enter()?;
        let (names, values) = request.arrays();
        // SAFETY: each option has a value of its type. The linker owns the arrays and buffers, whose addresses do not
        // change, and destroys the handle before them.
        match unsafe { checked::link_create(names, values) } {
            Ok(raw) => Ok(Self {
                raw,
                context: Some(context.clone()),
                request: Some(request),
            }),
            Err(error) => Err(request.failed(error)),
        }
    }

    /// Adds PTX ([`cuLinkAddData`](checked::link_add_data)). The name is used in messages.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_PTX` with the compiler's messages for PTX that does not compile,
    /// `CUDA_ERROR_INVALID_IMAGE` for text that is not PTX, `CUDA_ERROR_INVALID_SOURCE` for a second definition of a
    /// function or variable, and `CUDA_ERROR_INVALID_VALUE` if `name` contains a NUL byte.
    #[inline]
    #[doc(alias = "cuLinkAddData")]
    #[track_caller]
    pub fn add_ptx(&self, name: &str, ptx: &str) -> Result<(), JitError> {
        self.add_ptx_with(name, ptx, &JitOptions::default())
    }

    /// Adds PTX with options for its compilation ([`cuLinkAddData`](checked::link_add_data)).
    ///
    /// Drivers accept only options of a single compilation here: not `target`, `fallback`, `global_symbols` or `lto`.
    /// The linker's logs contain the messages.
    ///
    /// # Errors
    /// Same as [`add_ptx`](Self::add_ptx), `CUDA_ERROR_NOT_SUPPORTED` for an option that is newer than the driver, and
    /// `CUDA_ERROR_INVALID_VALUE` for one that is not accepted here.
    #[inline]
    #[doc(alias = "cuLinkAddData")]
    #[track_caller]
    pub fn add_ptx_with(&self, name: &str, ptx: &str, options: &JitOptions) -> Result<(), JitError> {
        let text = jit::ptx(ptx, Function::cuLinkAddData_v2)?;
        // SAFETY: the text is PTX, and NUL-terminated.
        unsafe {
            self.add(
                CUjitInputType::CU_JIT_INPUT_PTX,
                name,
                text.as_bytes_with_nul(),
                options,
            )
        }
    }

    /// Reads a PTX file and adds its text ([`cuLinkAddData`](checked::link_add_data)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` with the system's message if the file cannot be read,
    /// `CUDA_ERROR_INVALID_IMAGE` for a binary, and the errors of [`add_ptx`](Self::add_ptx).
    #[inline]
    #[doc(alias = "cuLinkAddData")]
    #[doc(alias = "cuLinkAddFile")]
    #[track_caller]
    pub fn add_ptx_file(&self, path: impl AsRef<Path>) -> Result<(), JitError> {
        let path = path.as_ref();
        let added = match jit::read_ptx(
            path,
            Function::cuLinkAddFile_v2,
            Function::cuLinkAddData_v2,
            "Linker::add_file",
        ) {
            // SAFETY: the text is PTX, and NUL-terminated.
            Ok(text) => unsafe {
                self.add(
                    CUjitInputType::CU_JIT_INPUT_PTX,
                    &path.to_string_lossy(),
                    text.as_bytes_with_nul(),
                    &JitOptions::default(),
                )
            },
            Err(error) => Err(error),
        };
        added.map_err(|error| error.at(path))
    }

    /// Adds an input of any kind from memory: PTX, a cubin, a fat binary, or a host object file or library that
    /// contains them ([`cuLinkAddData`](checked::link_add_data)). The name is used in messages. The same options are
    /// accepted as by [`add_ptx_with`](Self::add_ptx_with).
    ///
    /// # Errors
    /// Returns the errors of [`add_ptx_with`](Self::add_ptx_with), `CUDA_ERROR_INVALID_IMAGE` for data of another kind
    /// and for a truncated cubin or fat binary, and `CUDA_ERROR_NO_BINARY_FOR_GPU` if the input has no code for the
    /// device.
    ///
    /// # Safety
    /// The data must be complete, unmodified output of NVIDIA's tools: a damaged input can crash the driver. For PTX,
    /// [`add_ptx`](Self::add_ptx) is a safe alternative.
    #[inline]
    #[doc(alias = "cuLinkAddData")]
    #[track_caller]
    pub unsafe fn add_data(
        &self,
        kind: CUjitInputType,
        name: &str,
        data: &[u8],
        options: &JitOptions,
    ) -> Result<(), JitError> {
        let refused = |reason| jit::refused(reason, Function::cuLinkAddData_v2);
        match kind {
            CUjitInputType::CU_JIT_INPUT_CUBIN | CUjitInputType::CU_JIT_INPUT_FATBINARY => match jit::recognise(data) {
                Ok(Format::Binary) => {}
                Ok(Format::Text(_)) => {
                    return Err(refused(
                        "the data is text, not a cubin or a fat binary: use `CU_JIT_INPUT_PTX` for PTX".to_owned(),
                    ));
                }
                Err(reason) => return Err(refused(reason)),
            },
            CUjitInputType::CU_JIT_INPUT_PTX => match jit::recognise(data) {
                Ok(Format::Text(text)) => {
                    // SAFETY: the text is PTX, and NUL-terminated.
                    return unsafe { self.add(kind, name, text.as_bytes_with_nul(), options) };
                }
                Ok(Format::Binary) => {
                    return Err(refused(
                        "the data is a binary, not PTX: use the input type of the binary".to_owned(),
                    ));
                }
                Err(reason) => return Err(refused(reason)),
            },
            _ => {}
        }
        // SAFETY: upheld by the caller.
        unsafe { self.add(kind, name, data, options) }
    }

    /// Adds an input of any kind from a file, which the driver reads ([`cuLinkAddFile`](checked::link_add_file)). The
    /// same options are accepted as by [`add_ptx_with`](Self::add_ptx_with).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_FILE_NOT_FOUND` if the file cannot be read, if the path contains a NUL byte or, on Windows,
    /// is not Unicode, and the errors of [`add_data`](Self::add_data), except the one for a truncated binary: see
    /// Safety.
    ///
    /// # Safety
    /// The file must be complete, unmodified output of NVIDIA's tools: the driver crashes on a truncated binary. For
    /// PTX, [`add_ptx_file`](Self::add_ptx_file) is a safe alternative.
    #[inline]
    #[doc(alias = "cuLinkAddFile")]
    #[track_caller]
    pub unsafe fn add_file(
        &self,
        kind: CUjitInputType,
        path: impl AsRef<Path>,
        options: &JitOptions,
    ) -> Result<(), JitError> {
        let path = path.as_ref();
        let Some(name) = c_path(path) else {
            let code = CUresult::CUDA_ERROR_FILE_NOT_FOUND;
            let reason =
                "the path contains a NUL byte or, on Windows, is not Unicode: use `Linker::add_data`".to_owned();
            return Err(JitError::refused(Error::unasked(code, Function::cuLinkAddFile_v2), reason).at(path));
        };
        let mut request = jit::Request::of_input(options, Function::cuLinkAddFile_v2)?;
        let _current = self.enter()?;
        let (names, values) = request.arrays();
        // SAFETY: the handle is live, and each option has a value of its type; the file is upheld by the caller.
        match unsafe { checked::link_add_file(self.raw, kind, &name, names, values) } {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error).at(path)),
        }
    }

    /// Adds an input.
    ///
    /// # Safety
    /// The data must be complete and undamaged, and PTX must be NUL-terminated.
    #[inline]
    #[track_caller]
    unsafe fn add(&self, kind: CUjitInputType, name: &str, data: &[u8], options: &JitOptions) -> Result<(), JitError> {
        let Ok(name) = CString::new(name) else {
            let error = Error::unasked(CUresult::CUDA_ERROR_INVALID_VALUE, Function::cuLinkAddData_v2);
            return Err(JitError::refused(error, "the name contains a NUL byte".to_owned()));
        };
        let mut request = jit::Request::of_input(options, Function::cuLinkAddData_v2)?;
        let _current = self.enter()?;
        let (names, values) = request.arrays();
        // SAFETY: the handle is live, each option has a value of its type, and the driver keeps none of the arguments;
        // the data is upheld by the caller.
        match unsafe { checked::link_add_data(self.raw, kind, data, Some(&name), names, values) } {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Links the inputs ([`cuLinkComplete`](checked::link_complete)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_SOURCE` with the linker's messages for a function or variable that no input defines,
    /// and if an input was rejected because of a second definition. Returns `CUDA_ERROR_INVALID_IMAGE` if the driver
    /// returned no image.
    #[inline]
    #[doc(alias = "cuLinkComplete")]
    #[track_caller]
    pub fn complete(self) -> Result<LinkedImage, JitError> {
        let linked = {
            let _current = self.enter()?;
            // SAFETY: the handle is live.
            unsafe { checked::link_complete(self.raw) }
        };
        match linked {
            Ok(linked) => match NonNull::new(linked.cubin.cast()) {
                Some(image) => Ok(LinkedImage {
                    image,
                    size: linked.size,
                    linker: self,
                }),
                None => {
                    let code = CUresult::CUDA_ERROR_INVALID_IMAGE;
                    Err(self.failed(Error::refused(code, Function::cuLinkComplete, Refusal::NoImage)))
                }
            },
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the linker's error messages so far; empty for a linker from a raw handle.
    #[inline]
    #[must_use]
    pub fn error_log(&self) -> String {
        self.request.as_ref().map(jit::Request::error_log).unwrap_or_default()
    }

    /// Returns the linker's messages so far that are not errors; empty for a linker from a raw handle.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> String {
        self.request.as_ref().map(jit::Request::info_log).unwrap_or_default()
    }

    /// Returns the error of a call with the messages so far.
    #[inline]
    fn failed(&self, error: Error) -> JitError {
        JitError::with_logs(error, self.error_log(), self.info_log())
    }

    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Destroys the linker ([`cuLinkDestroy`](checked::link_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuLinkDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe { checked::link_destroy(mem::replace(&mut self.raw, ptr::null_mut())) }
    }

    /// Takes ownership of a linker that was created in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, no other code may destroy it, and the arrays and buffers
    /// that it was created with must stay valid until it is destroyed.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUlinkState, context: &Context) -> Self {
        Self {
            raw,
            context: Some(context.clone()),
            request: None,
        }
    }

    /// Borrows a linker.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, and must not be used by other threads in that time.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUlinkState) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            context: None,
            request: None,
        })
    }
}

handle! {
    [Linker] CUlinkState,
    leaked: "The options and logs are leaked, because the driver writes to them, and so is the reference to the context.",
    context: "of the linker; `None` for a borrowed linker."
}

impl Drop for Linker {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::link_destroy(self.raw) });
            }
        }
    }
}

impl fmt::Debug for Linker {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// The image that a [`Linker`] made. It owns the linker, which owns the image's memory.
#[derive(Debug)]
pub struct LinkedImage {
    image: NonNull<u8>,
    size: usize,
    linker: Linker,
}

// SAFETY: the memory belongs to the linker, which may be sent.
unsafe impl Send for LinkedImage {}

impl LinkedImage {
    /// Returns the image: a cubin, which can be stored in a file and loaded by [`Module::load`] on a device of the same
    /// architecture.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        // SAFETY: the linker keeps the image, which is not changed, as long as it lives.
        unsafe { slice::from_raw_parts(self.image.as_ptr(), self.size) }
    }

    /// Returns the time that the compiler and the linker took, in milliseconds (`CU_JIT_WALL_TIME`); 0 for a linker
    /// from a raw handle.
    #[inline]
    #[must_use]
    pub fn link_ms(&self) -> f32 {
        self.linker.request.as_ref().map_or(0.0, jit::Request::wall_ms)
    }

    /// Returns the linker's messages that are not errors; with [`JitOptions::verbose`] they list the resources that
    /// each kernel uses.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> String {
        self.linker.info_log()
    }

    /// Loads the image into a context ([`cuModuleLoadDataEx`](checked::module_load_data_ex)). The module does not need
    /// the image afterwards.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NO_BINARY_FOR_GPU` if the image is for another architecture.
    #[inline]
    #[doc(alias = "cuModuleLoadDataEx")]
    #[track_caller]
    pub fn load(&self, context: &Context) -> Result<Module, JitError> {
        // SAFETY: the driver made the image.
        unsafe { Module::from_image(context, self.as_bytes()) }
    }

    /// Loads the image as a library ([`cuLibraryLoadData`](checked::library_load_data)), which does not need the image
    /// afterwards.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NO_BINARY_FOR_GPU` if the image is for another architecture.
    #[inline]
    #[doc(alias = "cuLibraryLoadData")]
    #[track_caller]
    pub fn load_library(&self) -> Result<Library, JitError> {
        // SAFETY: the driver made the image.
        unsafe { Library::from_image(self.as_bytes()) }
    }

    /// Destroys the image and its linker ([`cuLinkDestroy`](checked::link_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuLinkDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        self.linker.destroy()
    }
}
