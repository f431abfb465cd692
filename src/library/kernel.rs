//! Kernels of libraries.

use core::ffi::c_void;
use core::fmt;

use super::Library;
use crate::function::refuse_packed;
use crate::launch::{self, ArgumentError, KernelArgs, LaunchAttribute, LaunchConfig, ParamInfo};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Context, Device, Error, Function, Result, Stream, checked};

/// A kernel of a library, for all contexts. It keeps the library loaded, unless it is [borrowed](Self::borrow_raw).
///
/// ```
/// # use cuda_driver::{Context, Device, Library, sys::CUfunction_attribute};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let library = Library::from_ptx(".version 7.0\n.target sm_52\n.address_size 64
/// #     .visible .entry scale(.param .u64 values, .param .f32 factor) { ret; }")?;
/// let kernel = library.kernel("scale")?;
/// // Attributes belong to a kernel and a device; no context is needed.
/// let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
/// kernel.set_attribute(dynamic, 1024, Device::first()?)?;
///
/// let context = Context::create(Device::first()?)?;
/// let function = kernel.function(&context)?;
/// assert_eq!(function.attribute(dynamic)?, 1024);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Clone)]
pub struct Kernel {
    raw: sys::CUkernel,
    /// `None` for a borrowed kernel.
    library: Option<Library>,
}

// SAFETY: a kernel handle may be used on any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Kernel {}

impl Kernel {
    #[inline]
    pub(super) const fn new(raw: sys::CUkernel, library: Option<Library>) -> Self {
        Self { raw, library }
    }

    /// Queues the kernel in a stream ([`cuLaunchKernel`](checked::launch_kernel)), as [`Function::launch`] does. It
    /// runs in the stream's context.
    ///
    /// # Safety
    /// Same as [`Function::launch`].
    ///
    /// # Errors
    /// Same as [`Function::launch`], and `CUDA_ERROR_NO_BINARY_FOR_GPU` if the library has no code for the stream's
    /// device.
    #[inline]
    #[doc(alias = "cuLaunchKernel")]
    #[track_caller]
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, arguments: impl KernelArgs) -> Result<()> {
        if cfg!(debug_assertions) {
            self.check_launch(sys::Function::cuLaunchKernel, stream, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.as_function().queue(stream, config, arguments) }
    }

    /// Queues a cooperative launch ([`cuLaunchCooperativeKernel`](checked::launch_cooperative_kernel)), as
    /// [`Function::launch_cooperative`] does. It runs in the stream's context.
    ///
    /// # Safety
    /// Same as [`Function::launch`].
    ///
    /// # Errors
    /// Same as [`Function::launch_cooperative`], and `CUDA_ERROR_NO_BINARY_FOR_GPU` if the library has no code for the
    /// stream's device.
    #[inline]
    #[doc(alias = "cuLaunchCooperativeKernel")]
    #[track_caller]
    pub unsafe fn launch_cooperative(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        refuse_packed(&arguments)?;
        if cfg!(debug_assertions) {
            self.check_launch(sys::Function::cuLaunchCooperativeKernel, stream, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.as_function().queue_cooperative(stream, config, arguments) }
    }

    /// Queues the kernel in a stream with attributes ([`cuLaunchKernelEx`](checked::launch_kernel_ex)), as
    /// [`Function::launch_with`] does. It runs in the stream's context.
    ///
    /// # Safety
    /// Same as [`Function::launch_with`].
    ///
    /// # Errors
    /// Same as [`Function::launch_with`], and `CUDA_ERROR_NO_BINARY_FOR_GPU` if the library has no code for the
    /// stream's device.
    #[inline]
    #[doc(alias = "cuLaunchKernelEx")]
    #[track_caller]
    pub unsafe fn launch_with(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        attributes: &[LaunchAttribute<'_>],
        arguments: impl KernelArgs,
    ) -> Result<()> {
        if cfg!(debug_assertions) {
            self.check_launch(sys::Function::cuLaunchKernelEx, stream, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.as_function().queue_with(stream, config, attributes, arguments) }
    }

    /// Returns the kernel as a function, for launches only: they accept a kernel in place of a function.
    #[inline]
    const fn as_function(&self) -> Function {
        Function::new(self.raw.cast(), None)
    }

    /// Compares the arguments of a launch by `function` with the kernel's parameters.
    #[inline]
    #[track_caller]
    fn check_launch(&self, function: sys::Function, stream: &Stream, arguments: &impl KernelArgs) -> Result<()> {
        // Without a current context, driver 580 does not describe the parameters.
        let _current = stream.context().map(Context::enter).transpose()?;
        launch::check_launch(
            arguments,
            function,
            |index| self.current_param_info(index),
            || self.name(),
        )
    }

    /// Compares arguments with the kernel's parameters: their number and sizes, and for a packed buffer their offsets
    /// ([`cuKernelGetParamInfo`](checked::kernel_get_param_info)). Returns false if nothing could be compared, because
    /// the driver is older than CUDA 12.4 or the arguments are bare pointers.
    ///
    /// # Errors
    /// Returns an [`ArgumentError`] for too few or too many arguments, for the first argument that does not fit, and
    /// for a failed query of the parameters.
    #[inline]
    #[doc(alias = "cuKernelGetParamInfo")]
    #[track_caller]
    pub fn check_args(&self, context: &Context, arguments: &impl KernelArgs) -> Result<bool, ArgumentError> {
        let _current = context.enter()?;
        launch::compare(arguments, |index| self.current_param_info(index))
    }

    /// Returns the offset and size of a parameter; the first one has the index 0
    /// ([`cuKernelGetParamInfo`](checked::kernel_get_param_info)). Returns `None` if the driver is older than CUDA
    /// 12.4. The driver needs a context for this query.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such parameter.
    #[inline]
    #[doc(alias = "cuKernelGetParamInfo")]
    #[track_caller]
    pub fn param_info(&self, context: &Context, index: usize) -> Result<Option<ParamInfo>> {
        let _current = context.enter()?;
        self.current_param_info(index)
    }

    /// Same as [`param_info`](Self::param_info), for the current context.
    #[inline]
    #[track_caller]
    fn current_param_info(&self, index: usize) -> Result<Option<ParamInfo>> {
        // SAFETY: the kernel is live as long as its library.
        match unsafe { checked::kernel_get_param_info(self.raw, index) } {
            Ok(info) => Ok(Some(ParamInfo {
                offset: info.param_offset,
                size: info.param_size,
            })),
            Err(error) if error.is_missing_function() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of parameters ([`cuKernelGetParamCount`](checked::kernel_get_param_count)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuKernelGetParamCount")]
    #[track_caller]
    pub fn param_count(&self) -> Result<usize> {
        // SAFETY: the kernel is live as long as its library.
        unsafe { checked::kernel_get_param_count(self.raw) }
    }

    /// Returns an attribute of the kernel on a device ([`cuKernelGetAttribute`](checked::kernel_get_attribute)). No
    /// context is needed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown attribute, and `CUDA_ERROR_INVALID_DEVICE` if there is no such
    /// device.
    #[inline]
    #[doc(alias = "cuKernelGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, attribute: sys::CUfunction_attribute, device: Device) -> Result<i32> {
        // SAFETY: the kernel is live as long as its library.
        unsafe { checked::kernel_get_attribute(attribute, self.raw, device.as_raw()) }
    }

    /// Sets an attribute of the kernel on a device ([`cuKernelSetAttribute`](checked::kernel_set_attribute)). The value
    /// also applies to the kernel's functions in contexts of the device, except those for which
    /// [`Function::set_attribute`] set a value. No context is needed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an attribute that cannot be set, or a value out of range, and
    /// `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuKernelSetAttribute")]
    #[track_caller]
    pub fn set_attribute(&self, attribute: sys::CUfunction_attribute, value: i32, device: Device) -> Result<()> {
        // Driver 580 crashes on a number that is negative in C.
        if i32::try_from(attribute.0).is_err() {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuKernelSetAttribute,
                Refusal::Attribute,
            ));
        }
        // SAFETY: the kernel is live as long as its library, and the driver checks the rest.
        unsafe { checked::kernel_set_attribute(attribute, value, self.raw, device.as_raw()) }
    }

    /// Sets the preferred split between L1 cache and shared memory on a device
    /// ([`cuKernelSetCacheConfig`](checked::kernel_set_cache_config)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown value, and `CUDA_ERROR_INVALID_DEVICE` if there is no such
    /// device.
    #[inline]
    #[doc(alias = "cuKernelSetCacheConfig")]
    #[track_caller]
    pub fn set_cache_config(&self, config: sys::CUfunc_cache, device: Device) -> Result<()> {
        // SAFETY: the kernel is live as long as its library.
        unsafe { checked::kernel_set_cache_config(self.raw, config, device.as_raw()) }
    }

    /// Returns the kernel's name ([`cuKernelGetName`](checked::kernel_get_name)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3.
    #[inline]
    #[doc(alias = "cuKernelGetName")]
    #[track_caller]
    pub fn name(&self) -> Result<String> {
        // SAFETY: the kernel is live as long as its library.
        unsafe { checked::kernel_get_name(self.raw) }
    }

    /// Returns the kernel's function in a context ([`cuKernelGetFunction`](checked::kernel_get_function)), for instance
    /// to query occupancy. The function of a borrowed kernel is borrowed, too.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NO_BINARY_FOR_GPU` if the library has no code for the context's device.
    #[inline]
    #[doc(alias = "cuKernelGetFunction")]
    #[track_caller]
    pub fn function(&self, context: &Context) -> Result<Function> {
        let _current = context.enter()?;
        // SAFETY: the kernel is live as long as its library.
        let raw = unsafe { checked::kernel_get_function(self.raw) }?;
        let module = self.library.as_ref().map(|library| library.module(context));
        Ok(Function::new(raw, module.transpose()?))
    }

    /// Returns the handle of the kernel's library ([`cuKernelGetLibrary`](checked::kernel_get_library)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuKernelGetLibrary")]
    #[track_caller]
    pub fn library_raw(&self) -> Result<sys::CUlibrary> {
        // SAFETY: the kernel is live as long as its library.
        unsafe { checked::kernel_get_library(self.raw) }
    }

    /// Returns the library of the kernel; `None` for a borrowed kernel.
    #[inline]
    #[must_use]
    pub const fn library(&self) -> Option<&Library> {
        self.library.as_ref()
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUkernel {
        self.raw
    }

    /// Borrows a kernel.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones and its functions.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw(raw: sys::CUkernel) -> Self {
        Self::new(raw, None)
    }
}

impl fmt::Debug for Kernel {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.raw.cast::<c_void>()).finish()
    }
}
