//! Functions: the kernels of a module, their launches, parameters and settings.

mod attribute;
mod occupancy;

use core::ffi::c_void;
use core::fmt;
use std::ffi::CString;

use crate::context::Entered;
use crate::launch::{self, ArgumentError, KernelArgs, LaunchConfig, ParamInfo};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Error, Module, Result, Stream, checked};

pub use self::occupancy::BlockSize;

/// A kernel of a module. It keeps the module loaded, unless it is [borrowed](Self::borrow_raw).
#[derive(Clone)]
pub struct Function {
    raw: sys::CUfunction,
    /// `None` for a borrowed function.
    module: Option<Module>,
}

// SAFETY: a function handle may be used on any thread.
unsafe impl Send for Function {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Function {}

impl Module {
    /// Finds a kernel by its name ([`cuModuleGetFunction`](checked::module_get_function)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no kernel has that name, and `CUDA_ERROR_INVALID_VALUE` if the name is empty.
    #[inline]
    #[doc(alias = "cuModuleGetFunction")]
    #[track_caller]
    pub fn function(&self, name: &str) -> Result<Function> {
        let Ok(name) = CString::new(name) else {
            // No kernel has a name that contains a NUL byte.
            return Err(Error::refused(
                CUresult::CUDA_ERROR_NOT_FOUND,
                sys::Function::cuModuleGetFunction,
                Refusal::NulByte,
            ));
        };
        // SAFETY: the module is live.
        let raw = unsafe { checked::module_get_function(self.as_raw(), &name) }?;
        Ok(Function::new(raw, Some(self.clone())))
    }

    /// Returns the number of kernels ([`cuModuleGetFunctionCount`](checked::module_get_function_count)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuModuleGetFunctionCount")]
    #[track_caller]
    pub fn function_count(&self) -> Result<u32> {
        // SAFETY: the module is live.
        unsafe { checked::module_get_function_count(self.as_raw()) }
    }

    /// Returns all kernels ([`cuModuleEnumerateFunctions`](checked::module_enumerate_functions)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuModuleEnumerateFunctions")]
    #[track_caller]
    pub fn functions(&self) -> Result<Vec<Function>> {
        let count = self.function_count()?;
        // SAFETY: the module is live.
        let found = unsafe { checked::module_enumerate_functions(count, self.as_raw()) }?;
        // If there are fewer kernels than were counted, the remaining handles are null.
        let found = found.into_iter().filter(|function| !function.is_null());
        Ok(found.map(|raw| Function::new(raw, Some(self.clone()))).collect())
    }
}

/// Returns an error if the arguments of a cooperative launch are packed, which the driver does not accept.
#[inline]
#[track_caller]
pub(crate) fn refuse_packed(arguments: &impl KernelArgs) -> Result<()> {
    if arguments.is_packed() {
        return Err(Error::refused(
            CUresult::CUDA_ERROR_INVALID_VALUE,
            sys::Function::cuLaunchCooperativeKernel,
            Refusal::Packed,
        ));
    }
    Ok(())
}

impl Function {
    #[inline]
    pub(crate) const fn new(raw: sys::CUfunction, module: Option<Module>) -> Self {
        Self { raw, module }
    }

    /// Queues the kernel in a stream ([`cuLaunchKernel`](checked::launch_kernel)).
    ///
    /// `arguments` is a tuple of values, a reference to a [`ParamBuffer`](crate::ParamBuffer), or a slice of pointers
    /// to the values. The values are copied before the call returns. The current context is not changed: on the null
    /// stream, the caller must make one current; other streams do not need that.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// # let ptx = ".version 7.0 .target sm_52 .address_size 64 .visible .entry f(.param .u64 a, .param .u32 n) { ret; }";
    /// # let function = Module::from_ptx(&context, ptx)?.function("f")?;
    /// # let stream = Stream::new(&context)?;
    /// let n = 1000_u32;
    /// let a = DeviceBuffer::<f32>::zeroed(&context, n as usize)?;
    /// let config = LaunchConfig { grid: n.div_ceil(256).into(), block: 256.into(), ..LaunchConfig::default() };
    /// // SAFETY: the kernel takes an address and a count, and accesses only the buffer, which is freed after the wait.
    /// unsafe { function.launch(&stream, config, (a.ptr(), n)) }?;
    /// stream.synchronize()?;
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Safety
    /// The arguments must have the number, order and types that the kernel was compiled with. All memory that the
    /// kernel accesses must stay allocated until the kernel is done, and must not be accessed by work that does not
    /// wait for it.
    ///
    /// With debug assertions, and if the driver is not older than CUDA 12.4, the number and sizes of the arguments are
    /// [compared](Self::check_args) with the kernel's parameters before the call, unless the arguments are bare
    /// pointers. For a packed buffer with another number of values, only the total length is compared.
    ///
    /// If the stream is being [captured](Stream::capture), the memory must be valid whenever the graph runs, and the
    /// module must stay loaded as long as the graph and everything made from it: pass it to
    /// [`Graph::keep`](crate::Graph::keep).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid grid or block, for more dynamic shared memory than
    /// [`max_dynamic_shared_bytes`](Self::max_dynamic_shared_bytes), and for arguments that do not fit, if the driver
    /// or the comparison detects it; `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES` if a block needs more registers than a
    /// multiprocessor has, `CUDA_ERROR_INVALID_CLUSTER_SIZE` if the kernel [needs a cluster size](Self::needs_cluster)
    /// from the launch, `CUDA_ERROR_INVALID_HANDLE` for a stream of another context, and `CUDA_ERROR_INVALID_CONTEXT`
    /// on the null stream if no context is current. Errors while the kernel runs are returned by later calls.
    #[doc(alias = "cuLaunchKernel")]
    #[inline]
    #[track_caller]
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, arguments: impl KernelArgs) -> Result<()> {
        if cfg!(debug_assertions) {
            self.check_launch(sys::Function::cuLaunchKernel, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.queue(stream, config, arguments) }
    }

    /// Same as [`launch`](Self::launch), without comparing the arguments.
    ///
    /// # Safety
    /// Same as [`launch`](Self::launch).
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn queue(&self, stream: &Stream, config: LaunchConfig, arguments: impl KernelArgs) -> Result<()> {
        let mut storage = arguments.storage();
        let (params, extra) = arguments.pointers(&mut storage);
        let LaunchConfig {
            grid,
            block,
            dynamic_shared_bytes,
        } = config;
        // SAFETY: the function is live as long as its module, the stream is live, and the pointers are to values that
        // outlive the call; the rest is upheld by the caller.
        unsafe {
            checked::launch_kernel(
                self.raw,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                dynamic_shared_bytes,
                stream.as_raw(),
                params,
                extra,
            )
        }
    }

    /// Queues a cooperative launch: all blocks run at once and may wait for each other
    /// ([`cuLaunchCooperativeKernel`](checked::launch_cooperative_kernel)). The driver accepts no packed buffer here.
    ///
    /// # Safety
    /// Same as [`launch`](Self::launch).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` for more blocks than can run at once,
    /// `CUDA_ERROR_INVALID_VALUE` for a packed buffer, and the errors of [`launch`](Self::launch).
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
            self.check_launch(sys::Function::cuLaunchCooperativeKernel, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.queue_cooperative(stream, config, arguments) }
    }

    /// Same as [`launch_cooperative`](Self::launch_cooperative), without comparing the arguments, which are not packed.
    ///
    /// # Safety
    /// Same as [`launch`](Self::launch).
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn queue_cooperative(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        let mut storage = arguments.storage();
        let (params, _) = arguments.pointers(&mut storage);
        let LaunchConfig {
            grid,
            block,
            dynamic_shared_bytes,
        } = config;
        // SAFETY: as in `queue`.
        unsafe {
            checked::launch_cooperative_kernel(
                self.raw,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                dynamic_shared_bytes,
                stream.as_raw(),
                params,
            )
        }
    }

    /// Compares the arguments of a launch with the kernel's parameters. Errors name the driver's function `function`.
    #[inline]
    #[track_caller]
    pub(crate) fn check_launch(&self, function: sys::Function, arguments: &impl KernelArgs) -> Result<()> {
        launch::check_launch(arguments, function, |index| self.param_info(index), || self.name())
    }

    /// Compares arguments with the kernel's parameters: their number and sizes, and for a packed buffer their offsets
    /// ([`cuFuncGetParamInfo`](checked::func_get_param_info)). Returns false if nothing could be compared, because the
    /// driver is older than CUDA 12.4 or the arguments are bare pointers.
    ///
    /// # Errors
    /// Returns an [`ArgumentError`] for too few or too many arguments, for the first argument that does not fit, and if
    /// the driver's query of the parameters fails.
    #[inline]
    #[doc(alias = "cuFuncGetParamInfo")]
    #[track_caller]
    pub fn check_args(&self, arguments: &impl KernelArgs) -> Result<bool, ArgumentError> {
        launch::compare(arguments, |index| self.param_info(index))
    }

    /// Returns the offset and size of a parameter; the first one has the index 0
    /// ([`cuFuncGetParamInfo`](checked::func_get_param_info)). Returns `None` if the driver is older than CUDA 12.4.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such parameter.
    #[inline]
    #[doc(alias = "cuFuncGetParamInfo")]
    #[track_caller]
    pub fn param_info(&self, index: usize) -> Result<Option<ParamInfo>> {
        // SAFETY: the function is live as long as its module.
        match unsafe { checked::func_get_param_info(self.raw, index) } {
            Ok(info) => Ok(Some(ParamInfo {
                offset: info.param_offset,
                size: info.param_size,
            })),
            Err(error) if error.is_missing_function() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of parameters ([`cuFuncGetParamCount`](checked::func_get_param_count)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuFuncGetParamCount")]
    #[track_caller]
    pub fn param_count(&self) -> Result<usize> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_param_count(self.raw) }
    }

    /// Sets the preferred split between L1 cache and shared memory
    /// ([`cuFuncSetCacheConfig`](checked::func_set_cache_config)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown value.
    #[inline]
    #[doc(alias = "cuFuncSetCacheConfig")]
    #[track_caller]
    pub fn set_cache_config(&self, config: sys::CUfunc_cache) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_set_cache_config(self.raw, config) }
    }

    /// Sets the bank size of shared memory ([`cuFuncSetSharedMemConfig`](checked::func_set_shared_mem_config), which is
    /// deprecated). Devices of compute capability 5.0 and later ignore it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown value.
    #[inline]
    #[doc(alias = "cuFuncSetSharedMemConfig")]
    #[track_caller]
    pub fn set_shared_mem_config(&self, config: sys::CUsharedconfig) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_set_shared_mem_config(self.raw, config) }
    }

    /// Returns true if the kernel's code is loaded, and false if its first launch will load it
    /// ([`cuFuncIsLoaded`](checked::func_is_loaded)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuFuncIsLoaded")]
    #[track_caller]
    pub fn is_loaded(&self) -> Result<bool> {
        // SAFETY: the function is live as long as its module.
        let state = unsafe { checked::func_is_loaded(self.raw) }?;
        Ok(state == sys::CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED)
    }

    /// Loads the kernel's code now instead of at its first launch ([`cuFuncLoad`](checked::func_load)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuFuncLoad")]
    #[track_caller]
    pub fn load(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_load(self.raw) }
    }

    /// Returns the handle of the function's module ([`cuFuncGetModule`](checked::func_get_module)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` for the handle of a library's kernel.
    #[inline]
    #[doc(alias = "cuFuncGetModule")]
    #[track_caller]
    pub fn module_raw(&self) -> Result<sys::CUmodule> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_module(self.raw) }
    }

    /// Returns the kernel's name ([`cuFuncGetName`](checked::func_get_name)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3.
    #[inline]
    #[doc(alias = "cuFuncGetName")]
    #[track_caller]
    pub fn name(&self) -> Result<String> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_name(self.raw) }
    }

    /// Makes the module's context current until the guard is dropped. Does nothing if the context is not known.
    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        match self.module.as_ref().and_then(Module::context) {
            Some(context) => context.enter().map(Some),
            None => Ok(None),
        }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUfunction {
        self.raw
    }

    /// Borrows a function.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value and its clones.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw(raw: sys::CUfunction) -> Self {
        Self::new(raw, None)
    }

    /// Returns the module of the function; `None` for a borrowed function.
    #[inline]
    #[must_use]
    pub const fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }
}

impl fmt::Debug for Function {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.raw.cast::<c_void>()).finish()
    }
}
