//! Functions: kernels of a loaded module, and what can be set for their launches.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::object::context;
use crate::object::device::Device;
use crate::object::kernel_attribute::{self as attribute, KernelSettings};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

static TABLE: Table<Function> = Table::new(HandleKind::Function);

/// A kernel with the handle that `cuModuleGetFunction` gave it.
pub(crate) struct Function {
    pub(crate) handle: usize,
    pub(crate) module: usize,
    pub(crate) context_id: u64,
    pub(crate) kernel: Arc<engine::Kernel>,
    /// The name, as `cuFuncGetName` points to it.
    pub(crate) name: CString,
    /// What `cuFuncSetAttribute` set, by attribute.
    settings: Mutex<BTreeMap<u32, i32>>,
    /// What is set of the kernel of a library that it is in its context.
    of_kernel: OnceLock<Weak<KernelSettings>>,
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
    TABLE.get(handle).map_err(|why| {
        host::log!("function {handle:#x} is {why:?}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Makes a function of a module; its handle.
pub(crate) fn create(module: usize, context_id: u64, kernel: Arc<engine::Kernel>) -> usize {
    let make = |handle| Function::new(handle, module, context_id, kernel);
    TABLE.insert_with(make).handle
}

/// Takes out a function whose module is unloaded.
pub(crate) fn remove(handle: usize) {
    let _ = TABLE.remove(handle);
}

impl Function {
    fn new(handle: usize, module: usize, context_id: u64, kernel: Arc<engine::Kernel>) -> Function {
        Function {
            handle,
            module,
            context_id,
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
        let context = context::table().get(self.context_id as usize);
        Ok(context
            .map_err(|_| Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)?
            .device)
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

    /// Notes the settings of a kernel, which it has until it gets its own.
    pub(crate) fn is_of_kernel(&self, settings: &Arc<KernelSettings>) {
        self.of_kernel.get_or_init(|| Arc::downgrade(settings));
    }

    /// `cuFuncGetAttribute`
    pub(crate) fn attribute(&self, attribute: u32) -> Result<i32> {
        let device = self.device()?;
        let own = self.settings().get(&attribute).copied();
        let of_kernel = || self.of_kernel.get()?.upgrade()?.get(attribute, device);
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
            .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        Ok((offset as usize, size as usize))
    }
}
