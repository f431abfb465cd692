//! Attributes of kernels, and launches with attributes.

use super::Function;
use crate::launch::{KernelArgs, LaunchAttribute, LaunchConfig, described};
use crate::refusal::Refusal;
use crate::sys::{self, CUclusterSchedulingPolicy, CUfunction_attribute, CUresult};
use crate::{Dim3, Error, Result, Stream, checked};

/// Returns an error if the driver is too old for an attribute, because such a driver may ignore the attribute.
#[inline]
#[track_caller]
pub(super) fn check_versions(attributes: &[LaunchAttribute<'_>], function: sys::Function) -> Result<()> {
    // The version is not queried if there are no attributes, or only ones that this crate does not know.
    let newest = attributes.iter().map(LaunchAttribute::since).max().unwrap_or(0);
    if newest > sys::Function::cuLaunchKernelEx.since() && sys::DEFAULT.version().is_some_and(|has| has < newest) {
        return Err(Error::refused(
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
            function,
            Refusal::LaunchAttribute,
        ));
    }
    Ok(())
}

impl Function {
    /// Queues the kernel in a stream with attributes ([`cuLaunchKernelEx`](checked::launch_kernel_ex)).
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, Event, LaunchAttribute, LaunchConfig, Module, Stream, sys::CUevent_flags};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// # let ptx = ".version 7.0 .target sm_52 .address_size 64 .visible .entry work() { ret; }";
    /// # let work = Module::from_ptx(&context, ptx)?.function("work")?;
    /// let stream = Stream::new(&context)?;
    /// let started = Event::with_flags(&context, CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
    /// let attributes = [LaunchAttribute::priority(-1), LaunchAttribute::completion_event(&started)];
    /// // SAFETY: the kernel has no parameters.
    /// unsafe { work.launch_with(&stream, LaunchConfig::covering(1000, 256), &attributes, ())? };
    /// started.synchronize()?;
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Safety
    /// Same as [`launch`](Self::launch). With [`LaunchAttribute::programmatic_serialization`], the previous kernel of
    /// the stream may still be running.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the driver is too old for an attribute or the device does not support it,
    /// `CUDA_ERROR_INVALID_CLUSTER_SIZE` for a cluster that is too large, does not divide the grid, or differs from the
    /// [required](Self::required_cluster) one, `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` for more blocks of a
    /// [cooperative](LaunchAttribute::cooperative) launch than can run at once, `CUDA_ERROR_INVALID_HANDLE` for an
    /// event of another context, and the errors of [`launch`](Self::launch).
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
            self.check_launch(sys::Function::cuLaunchKernelEx, &arguments)?;
        }
        // SAFETY: upheld by the caller.
        unsafe { self.queue_with(stream, config, attributes, arguments) }
    }

    /// Same as [`launch_with`](Self::launch_with), without comparing the arguments.
    ///
    /// # Safety
    /// Same as [`launch_with`](Self::launch_with).
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn queue_with(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        attributes: &[LaunchAttribute<'_>],
        arguments: impl KernelArgs,
    ) -> Result<()> {
        check_versions(attributes, sys::Function::cuLaunchKernelEx)?;
        let mut storage = arguments.storage();
        let (params, extra) = arguments.pointers(&mut storage);
        let config = described(&config, attributes, stream.as_raw());
        // SAFETY: the function is live as long as its module, the stream is live, and the pointers are to values and
        // attributes that outlive the call; the rest is upheld by the caller.
        unsafe { checked::launch_kernel_ex(&config, self.raw, params, extra) }
    }

    /// Returns an attribute of the function ([`cuFuncGetAttribute`](checked::func_get_attribute)). Most attributes also
    /// have a method of their own, which returns the value in its own type.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown attribute.
    #[inline]
    #[doc(alias = "cuFuncGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, attribute: CUfunction_attribute) -> Result<i32> {
        // SAFETY: the function is live as long as its module.
        unsafe { checked::func_get_attribute(attribute, self.raw) }
    }

    /// Sets an attribute of the function for all its users ([`cuFuncSetAttribute`](checked::func_set_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an attribute that cannot be set, or a value out of range.
    #[inline]
    #[doc(alias = "cuFuncSetAttribute")]
    #[track_caller]
    pub fn set_attribute(&self, attribute: CUfunction_attribute, value: i32) -> Result<()> {
        // Driver 580 crashes on a number that is negative in C.
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

    /// Sets an attribute to a number. A number above `i32::MAX` is set as `i32::MAX`, which is too large for every
    /// attribute.
    #[inline]
    #[track_caller]
    fn set_number(&self, attribute: CUfunction_attribute, value: u32) -> Result<()> {
        self.set_attribute(attribute, i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// Returns an attribute that is not negative.
    #[inline]
    #[track_caller]
    fn number(&self, attribute: CUfunction_attribute) -> Result<u32> {
        self.attribute(attribute).map(i32::unsigned_abs)
    }
}

/// Defines getters of attributes whose values are numbers and never negative.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $attribute:ident;)*) => {
        impl Function {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver does not know the attribute.
                #[inline]
                #[track_caller]
                pub fn $name(&self) -> Result<u32> {
                    self.number(CUfunction_attribute::$attribute)
                }
            )*
        }
    };
}

numbers! {
    /// Returns the largest number of threads in a block.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK")]
    max_threads_per_block = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    /// Returns the size of the static shared memory in bytes.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES")]
    static_shared_bytes = CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    /// Returns the size of the module's constant memory in bytes.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES")]
    const_bytes = CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES;
    /// Returns the size of each thread's local memory in bytes.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES")]
    local_bytes = CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
    /// Returns the number of registers of a thread.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_NUM_REGS")]
    registers = CU_FUNC_ATTRIBUTE_NUM_REGS;
    /// Returns the architecture that the PTX was generated for: 52 for `sm_52`.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_PTX_VERSION")]
    ptx_version = CU_FUNC_ATTRIBUTE_PTX_VERSION;
    /// Returns the architecture of the machine code: 90 for `sm_90`.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_BINARY_VERSION")]
    binary_version = CU_FUNC_ATTRIBUTE_BINARY_VERSION;
    /// Returns the largest dynamic shared memory of a block in bytes.
    #[doc(alias = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES")]
    max_dynamic_shared_bytes = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

impl Function {
    /// Sets the largest dynamic shared memory of a block in bytes. More than 48 KiB must be requested here before a
    /// launch; static and dynamic shared memory together are at most
    /// [`Attributes::max_shared_memory_per_block_optin`](crate::device::Attributes::max_shared_memory_per_block_optin).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if static and dynamic shared memory together would be more than that.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES")]
    #[track_caller]
    pub fn set_max_dynamic_shared_bytes(&self, bytes: u32) -> Result<()> {
        self.set_number(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            bytes,
        )
    }

    /// Returns the preferred size of a multiprocessor's shared memory, in percent of
    /// [`Attributes::max_shared_memory_per_multiprocessor`](crate::device::Attributes::max_shared_memory_per_multiprocessor);
    /// `None` for the driver's choice. The L1 cache has the rest of the memory that both share.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT")]
    #[track_caller]
    pub fn shared_memory_carveout(&self) -> Result<Option<u32>> {
        let percent = self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)?;
        Ok(u32::try_from(percent).ok())
    }

    /// Sets the preferred size of a multiprocessor's shared memory, in percent of
    /// [`Attributes::max_shared_memory_per_multiprocessor`](crate::device::Attributes::max_shared_memory_per_multiprocessor);
    /// `None` for the driver's choice. The L1 cache has the rest of the memory that both share.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for more than 100.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT")]
    #[track_caller]
    pub fn set_shared_memory_carveout(&self, percent: Option<u32>) -> Result<()> {
        let percent = percent.map_or(-1, |percent| i32::try_from(percent).unwrap_or(i32::MAX));
        self.set_attribute(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            percent,
        )
    }

    /// Returns true if global loads are cached in the L1 cache (the kernel was compiled with `-Xptxas --dlcm=ca`).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_CACHE_MODE_CA")]
    #[track_caller]
    pub fn is_cached_in_l1(&self) -> Result<bool> {
        Ok(self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)? != 0)
    }

    /// Returns true if every launch must have a cluster size.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET")]
    #[track_caller]
    pub fn needs_cluster(&self) -> Result<bool> {
        Ok(self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)? != 0)
    }

    /// Returns the cluster size that the kernel was compiled with or
    /// [`set_required_cluster`](Self::set_required_cluster) set; `None` if there is none.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH")]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT")]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH")]
    #[track_caller]
    pub fn required_cluster(&self) -> Result<Option<Dim3>> {
        let size = Dim3 {
            x: self.number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
            y: self.number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
            z: self.number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
        };
        Ok((size.x != 0).then_some(size))
    }

    /// Sets the cluster size of launches. A launch that specifies another size fails. If one dimension is rejected,
    /// earlier ones may be set.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the kernel was compiled with another cluster size, and if the driver is
    /// older than CUDA 11.8.
    #[inline]
    #[track_caller]
    pub fn set_required_cluster(&self, size: impl Into<Dim3>) -> Result<()> {
        let Dim3 { x, y, z } = size.into();
        self.set_number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, x)?;
        self.set_number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, y)?;
        self.set_number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, z)
    }

    /// Returns true if clusters may have more than 8 blocks, which not every device of the architecture supports.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED")]
    #[track_caller]
    pub fn allows_non_portable_cluster(&self) -> Result<bool> {
        Ok(self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)? != 0)
    }

    /// Allows clusters of more than 8 blocks, which not every device of the architecture supports.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED")]
    #[track_caller]
    pub fn set_non_portable_cluster(&self, allowed: bool) -> Result<()> {
        self.set_number(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            allowed.into(),
        )
    }

    /// Returns the policy that distributes clusters over the multiprocessors.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE")]
    #[track_caller]
    pub fn cluster_scheduling(&self) -> Result<CUclusterSchedulingPolicy> {
        let policy = self.number(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)?;
        Ok(CUclusterSchedulingPolicy(policy as _))
    }

    /// Sets the policy that distributes clusters over the multiprocessors.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown policy, and if the driver is older than CUDA 11.8.
    #[inline]
    #[doc(alias = "CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE")]
    #[track_caller]
    pub fn set_cluster_scheduling(&self, policy: CUclusterSchedulingPolicy) -> Result<()> {
        self.set_number(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            policy.0,
        )
    }
}
