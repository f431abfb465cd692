//! Functions: kernels of a module.

use core::ffi::c_void;
use core::fmt;
use std::ffi::CString;

use crate::context::Entered;
use crate::launch::{ArgumentError, KernelArgs, LaunchConfig, ParamInfo};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Error, Module, Result, Stream, checked};

/// A kernel of a module. It keeps the module loaded.
#[derive(Clone)]
pub struct Function {
    raw: sys::CUfunction,
    /// `None` for a function that belongs to someone else.
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
    /// Returns `CUDA_ERROR_NOT_FOUND` if there is none of that name, and `CUDA_ERROR_INVALID_VALUE` if the name is empty.
    #[inline]
    #[doc(alias = "cuModuleGetFunction")]
    #[track_caller]
    pub fn function(&self, name: &str) -> Result<Function> {
        let Ok(name) = CString::new(name) else {
            // No kernel's name holds a zero byte.
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
}

impl Function {
    #[inline]
    const fn new(raw: sys::CUfunction, module: Option<Module>) -> Self {
        Self { raw, module }
    }

    /// Queues the kernel in a stream ([`cuLaunchKernel`](checked::launch_kernel)).
    ///
    /// `arguments` is a tuple of values, a [`ParamBuffer`](crate::ParamBuffer), or an array of pointers to the values.
    /// They are copied before the call returns. No context is asked for or set: a stream that was made in one needs
    /// none, and on the null stream one must be current.
    ///
    /// ```no_run
    /// # use cuda_driver::{DeviceBuffer, Function, LaunchConfig, Stream};
    /// # fn f(function: &Function, stream: &Stream, a: DeviceBuffer<f32>, n: u32) -> cuda_driver::Result<()> {
    /// let config = LaunchConfig { grid: n.div_ceil(256).into(), block: 256.into(), ..LaunchConfig::default() };
    /// // SAFETY: the kernel takes an address and a count, and stays inside.
    /// unsafe { function.launch(stream, config, (a.ptr(), n)) }
    /// # }
    /// ```
    ///
    /// # Safety
    /// The arguments are what the kernel was compiled for, in number, order and type. Until it is done, what it accesses
    /// is there and is not used by anyone who does not wait for it.
    ///
    /// # Errors
    /// 1 for a grid or block that is not possible, 701 for one that needs more than there is, 201 on the null stream
    /// with no context current. What goes wrong while the kernel runs is the error of a later call.
    #[doc(alias = "cuLaunchKernel")]
    #[inline]
    #[track_caller]
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        let mut storage = arguments.storage();
        let (params, extra) = arguments.pointers(&mut storage);
        let LaunchConfig {
            grid,
            block,
            dynamic_shared_bytes,
        } = config;
        // SAFETY: the function is live as long as its module, the stream is live, the pointers are to values that
        // outlive the call; the rest is the caller's.
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

    /// The same for a kernel whose blocks run all at once and may wait for each other
    /// ([`cuLaunchCooperativeKernel`](checked::launch_cooperative_kernel)). The driver takes no packed buffer here.
    ///
    /// # Safety
    /// Same as [`launch`](Self::launch).
    ///
    /// # Errors
    /// 720 for more blocks than run at once, 1 for a packed buffer, and as [`launch`](Self::launch).
    #[inline]
    #[doc(alias = "cuLaunchCooperativeKernel")]
    #[track_caller]
    pub unsafe fn launch_cooperative(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        let mut storage = arguments.storage();
        let (params, extra) = arguments.pointers(&mut storage);
        if !extra.is_null() {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuLaunchCooperativeKernel,
                Refusal::Packed,
            ));
        }
        let LaunchConfig {
            grid,
            block,
            dynamic_shared_bytes,
        } = config;
        // SAFETY: as in `launch`.
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

    /// Compares arguments with the parameters that the kernel was compiled with: their number and sizes, and for a
    /// packed buffer their offsets ([`cuFuncGetParamInfo`](checked::func_get_param_info)). `false` says that the driver
    /// cannot tell (before CUDA 12.4), or that the arguments are bare pointers.
    ///
    /// # Errors
    /// The first argument that does not fit.
    #[inline]
    #[doc(alias = "cuFuncGetParamInfo")]
    #[track_caller]
    pub fn check_args(&self, arguments: &impl KernelArgs) -> Result<bool, ArgumentError> {
        let Some(given) = arguments.layout() else {
            return Ok(false);
        };
        let mut index = 0;
        loop {
            match (self.param_info(index), given.get(index)) {
                (Ok(None), _) => return Ok(false),
                (Ok(Some(expected)), Some(given)) => {
                    if expected.size != given.size
                        || (arguments.is_packed() && expected.offset != given.offset)
                    {
                        return Err(ArgumentError::Mismatch {
                            index,
                            expected,
                            given: *given,
                        });
                    }
                }
                (Ok(Some(_)), None) => return Err(ArgumentError::TooFew { given: given.len() }),
                (Err(error), given) if error.code() == CUresult::CUDA_ERROR_INVALID_VALUE => {
                    return match given {
                        None => Ok(true),
                        Some(_) => Err(ArgumentError::TooMany { expected: index }),
                    };
                }
                (Err(error), _) => return Err(ArgumentError::Driver(error)),
            }
            index += 1;
        }
    }

    /// Offset and size of a parameter, counted from 0 ([`cuFuncGetParamInfo`](checked::func_get_param_info)); `None` if
    /// the driver cannot tell (before CUDA 12.4).
    ///
    /// # Errors
    /// 1 if there is no such parameter.
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

    /// One property; its unit is the attribute's ([`cuFuncGetAttribute`](checked::func_get_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown attribute.
    #[inline]
    #[doc(alias = "cuFuncGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, attribute: sys::CUfunction_attribute) -> Result<i32> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_attribute(attribute, self.raw) }
    }

    /// Sets one property, for every user of the function ([`cuFuncSetAttribute`](checked::func_set_attribute)).
    ///
    /// # Errors
    /// 1 for an attribute that cannot be set, or a value out of range.
    #[inline]
    #[doc(alias = "cuFuncSetAttribute")]
    #[track_caller]
    pub fn set_attribute(&self, attribute: sys::CUfunction_attribute, value: i32) -> Result<()> {
        if i32::try_from(attribute.0).is_err() {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuFuncSetAttribute,
                Refusal::Attribute,
            ));
        }
        // SAFETY: the function is live as long as its module, and the driver checks the rest.
        unsafe { checked::func_set_attribute(self.raw, attribute, value) }
    }

    /// Sets how the kernel likes to divide memory between L1 cache and shared memory
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

    /// The kernel's name ([`cuFuncGetName`](checked::func_get_name)).
    ///
    /// # Errors
    /// The driver lacks the function (before CUDA 12.3).
    #[inline]
    #[doc(alias = "cuFuncGetName")]
    #[track_caller]
    pub fn name(&self) -> Result<String> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_name(self.raw) }
    }

    /// How many blocks of `block_size` threads, each with `dynamic_shared` bytes of dynamic shared memory, run on a
    /// multiprocessor at once
    /// ([`cuOccupancyMaxActiveBlocksPerMultiprocessor`](checked::occupancy_max_active_blocks_per_multiprocessor)).
    ///
    /// # Errors
    /// 1 for a block that is not possible.
    #[inline]
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    #[track_caller]
    pub fn max_active_blocks_per_multiprocessor(
        &self,
        block_size: u32,
        dynamic_shared: usize,
    ) -> Result<u32> {
        let block_size = i32::try_from(block_size).unwrap_or(i32::MAX);
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        let blocks = unsafe {
            checked::occupancy_max_active_blocks_per_multiprocessor(
                self.raw,
                block_size,
                dynamic_shared,
            )
        }?;
        Ok(blocks.unsigned_abs())
    }

    /// Makes the module's context current for one call, if it is known.
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

    /// A function that C found in a module, or that belongs to someone else.
    ///
    /// # Safety
    /// The handle stays live as long as the value and its clones.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw(raw: sys::CUfunction) -> Self {
        Self::new(raw, None)
    }

    /// The module that the function was found in, if it is known.
    #[inline]
    #[must_use]
    pub const fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }
}

impl fmt::Debug for Function {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function")
            .field(&self.raw.cast::<c_void>())
            .finish()
    }
}
