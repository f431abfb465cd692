//! Functions: kernels of a loaded module, and what can be set for their launches.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::attribute;
use super::context::{self, Context};
use super::device::Device;
use super::error::{Error, Result};
use super::library::Kernel;
use super::module::Module;
use super::process::{driver, driver_without_fault};

/// A kernel with the handle that `cuModuleGetFunction` gave it.
pub(crate) struct Function {
    pub(crate) handle: usize,
    pub(crate) module: usize,
    context_id: u64,
    pub(crate) kernel: Arc<engine::Kernel>,
    /// The name, as `cuFuncGetName` points to it.
    pub(crate) name: CString,
    /// What `cuFuncSetAttribute` set, by attribute.
    settings: Mutex<BTreeMap<u32, i32>>,
    /// The kernel of a library that it is in its context.
    of_kernel: OnceLock<Weak<Kernel>>,
    pub(crate) cache_config: AtomicU32,
    old: Mutex<OldLaunch>,
}

/// What the launch functions of CUDA 2.0 remember in the function.
#[derive(Clone, Debug)]
pub(crate) struct OldLaunch {
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    /// What was written for the parameters, and how many bytes of it are handed over.
    pub(crate) params: Vec<u8>,
    pub(crate) size: usize,
}

impl Default for OldLaunch {
    fn default() -> Self {
        OldLaunch {
            block: [1; 3],
            shared: 0,
            params: Vec::new(),
            size: 0,
        }
    }
}

/// The living function of this handle. As recorded, a `CUkernel` is one for launches and occupancy only.
pub(crate) fn get(handle: usize) -> Result<Arc<Function>> {
    driver_without_fault()?
        .functions
        .get(handle)
        .map_err(|why| {
            host::log!("function {handle:#x} is {why:?}");
            Error::INVALID_HANDLE
        })
}

/// The living function of this handle, or the function of a `CUkernel` in the current context.
pub(crate) fn get_or_of_kernel(handle: usize) -> Result<Arc<Function>> {
    match driver_without_fault()?.kernels.get(handle) {
        Ok(kernel) => get(kernel.function_in_current_context()?),
        Err(_) => get(handle),
    }
}

/// The function for a launch on a stream of `context`: one of another context is refused.
pub(crate) fn for_launch(handle: usize, context: &Arc<Context>) -> Result<Arc<Function>> {
    let driver = driver_without_fault()?;
    let function = match driver.kernels.get(handle) {
        Ok(kernel) => driver
            .functions
            .get(kernel.function_in(context)?)
            .map_err(|_| Error::INVALID_HANDLE)?,
        Err(_) => get(handle)?,
    };
    if function.context_id != context.id() {
        host::log!(
            "`{}` belongs to another context than the stream",
            function.kernel.name()
        );
        return Err(Error::INVALID_HANDLE);
    }
    Ok(function)
}

/// What a node of a graph launches: the function, or where there is none the `CUkernel` in the given or else the current
/// context; with its context.
pub(crate) fn for_node(
    handle: usize,
    kernel: usize,
    given: usize,
) -> Result<(usize, Arc<Context>)> {
    if handle != 0 || kernel == 0 {
        let context = get(handle)?.context_id as usize;
        return Ok((handle, context::by_handle(context)?));
    }
    let kernel = driver_without_fault()?.kernels.get(kernel);
    let kernel = kernel.map_err(|_| Error::INVALID_HANDLE)?;
    let context = if given == 0 {
        context::current()?
    } else {
        context::by_handle(given)?
    };
    Ok((kernel.function_in(&context)?, context))
}

impl Function {
    pub(crate) fn new(handle: usize, module: &Module, kernel: Arc<engine::Kernel>) -> Function {
        Function {
            handle,
            module: module.handle,
            context_id: module.context_id,
            name: CString::new(kernel.name()).unwrap_or_default(),
            kernel,
            settings: Mutex::default(),
            of_kernel: OnceLock::new(),
            cache_config: AtomicU32::new(0),
            old: Mutex::default(),
        }
    }

    pub(crate) fn old(&self) -> MutexGuard<'_, OldLaunch> {
        self.old.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device that it was loaded for.
    pub(crate) fn device(&self) -> Result<&'static Device> {
        let context = driver()?.contexts.get(self.context_id as usize);
        Ok(context.map_err(|_| Error::CONTEXT_IS_DESTROYED)?.device)
    }

    /// Dynamic shared memory that a launch may ask for, in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> u32 {
        let most = self.attribute(attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES);
        most.map_or(0, |bytes| bytes.max(0).cast_unsigned())
    }

    /// Clusters of more blocks than any device has may be launched.
    pub(crate) fn allows_large_clusters(&self) -> bool {
        let allowed = self.attribute(attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
        allowed.is_ok_and(|allowed| allowed != 0)
    }

    /// Blocks of the clusters that the kernel, or who set its attributes, requires.
    pub(crate) fn cluster(&self) -> Option<[u32; 3]> {
        let size =
            attribute::CLUSTER.map(|a| self.attribute(a).unwrap_or(0).max(0).cast_unsigned());
        (!size.contains(&0)).then_some(size)
    }

    /// Threads that a block may have, by the kernel's directives.
    pub(crate) fn max_threads(&self) -> u32 {
        self.kernel.max_threads_per_block()
    }

    fn settings(&self) -> MutexGuard<'_, BTreeMap<u32, i32>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the kernel whose attributes it has until it gets its own.
    pub(crate) fn is_of_kernel(&self, kernel: &Arc<Kernel>) {
        self.of_kernel.get_or_init(|| Arc::downgrade(kernel));
    }

    /// `cuFuncGetAttribute`
    pub(crate) fn attribute(&self, attribute: u32) -> Result<i32> {
        let device = self.device()?;
        let own = self.settings().get(&attribute).copied();
        let of_kernel = || self.of_kernel.get()?.upgrade()?.setting(attribute, device);
        match own.or_else(of_kernel) {
            Some(value) => Ok(value),
            None => attribute::of_kernel(&self.kernel, device, attribute),
        }
    }

    /// `cuFuncSetAttribute`: of those that can be set, values in their range.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32) -> Result<()> {
        let value = attribute::check(&self.kernel, self.device()?, attribute, value)?;
        self.settings().insert(attribute, value);
        Ok(())
    }

    /// `cuFuncGetParamInfo`: offset and size in bytes of a parameter.
    pub(crate) fn param(&self, index: usize) -> Result<(usize, usize)> {
        let (offset, size) = self
            .kernel
            .params()
            .nth(index)
            .ok_or(Error::INVALID_VALUE)?;
        Ok((offset as usize, size as usize))
    }
}

/// The device of the current context, for calls about functions that need one.
pub(crate) fn current_device() -> Result<&'static Device> {
    Ok(context::current()?.device)
}
