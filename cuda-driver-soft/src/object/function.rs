//! Functions: kernels of a loaded module, and their launch settings.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::object::context;
use crate::object::device::Device;
use crate::object::kernel_attribute::{self as attribute, KernelSettings};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

static TABLE: Table<Function> = Table::new(HandleKind::Function);

/// A kernel of a module under the handle that `cuModuleGetFunction` returns.
pub(crate) struct Function {
    pub(crate) handle: usize,
    pub(crate) module: usize,
    pub(crate) context_id: u64,
    device: &'static Device,
    pub(crate) kernel: Arc<engine::Kernel>,
    /// The name; `cuFuncGetName` returns a pointer to it.
    pub(crate) name: CString,
    /// Values set by `cuFuncSetAttribute`.
    settings: Mutex<BTreeMap<u32, i32>>,
    /// Handle and settings of the `CUkernel` that this function belongs to, if any.
    of_kernel: OnceLock<(usize, Weak<KernelSettings>)>,
    old: Mutex<OldLaunch>,
}

/// State that the deprecated launch functions (`cuFuncSetBlockShape`, `cuParamSet…`) keep in the function.
#[derive(Clone, Debug)]
pub(crate) struct OldLaunch {
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// The parameter bytes written so far. A launch passes the first `size` of them.
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

/// Returns the function with this handle, which cannot be a `CUkernel`: driver 580 accepts those only for launches and
/// occupancy, which use `library::function_or_kernel`.
pub(crate) fn get(handle: usize) -> Result<Arc<Function>> {
    TABLE.get(handle).map_err(|missing| {
        host::log!("function {handle:#x} {missing}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Creates a function of a module, which is loaded in a context of `device`, and returns its handle.
pub(crate) fn create(module: usize, context_id: u64, device: &'static Device, kernel: Arc<engine::Kernel>) -> usize {
    let make = |handle| Function {
        handle,
        module,
        context_id,
        device,
        name: CString::new(kernel.name()).unwrap_or_default(),
        kernel,
        settings: Mutex::default(),
        of_kernel: OnceLock::new(),
        old: Mutex::default(),
    };
    TABLE.insert_with(make).handle
}

/// Removes a function whose module is unloaded.
pub(crate) fn remove(handle: usize) {
    let _ = TABLE.remove(handle);
}

impl Function {
    pub(crate) fn old(&self) -> MutexGuard<'_, OldLaunch> {
        self.old.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the device that the function was loaded for, or `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
    pub(crate) fn device(&self) -> Result<&'static Device> {
        let context = context::table().get(self.context_id as usize);
        context.map_err(|_| Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
        Ok(self.device)
    }

    /// Returns the maximum dynamic shared memory of a launch in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> u32 {
        let most = self.value(attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES);
        most.map_or(0, |bytes| bytes.max(0).cast_unsigned())
    }

    /// Returns true if the function may be launched with clusters above the portable size.
    pub(crate) fn allows_large_clusters(&self) -> bool {
        let allowed = self.value(attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
        allowed.is_ok_and(|allowed| allowed != 0)
    }

    /// Returns the cluster size that the kernel's directives or the function's attributes require, if any.
    pub(crate) fn cluster(&self) -> Option<[u32; 3]> {
        let size = attribute::CLUSTER.map(|a| self.value(a).unwrap_or(0).max(0).cast_unsigned());
        (!size.contains(&0)).then_some(size)
    }

    /// Returns the number of threads that `.maxntid` allows in a block, at most 1024; without it, 1024.
    pub(crate) fn max_threads(&self) -> u32 {
        self.kernel.max_threads_per_block()
    }

    fn settings(&self) -> MutexGuard<'_, BTreeMap<u32, i32>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the `CUkernel` of the function, whose settings apply to the attributes that the function does not set
    /// itself.
    pub(crate) fn link_library_kernel(&self, handle: usize, settings: &Arc<KernelSettings>) {
        self.of_kernel.get_or_init(|| (handle, Arc::downgrade(settings)));
    }

    /// Returns the handle of the `CUkernel` that this function belongs to; 0 for a function of a module.
    pub(crate) fn library_kernel(&self) -> usize {
        self.of_kernel.get().map_or(0, |(handle, _)| *handle)
    }

    /// `cuFuncGetAttribute`
    pub(crate) fn attribute(&self, attribute: u32) -> Result<i32> {
        self.device()?;
        self.value(attribute)
    }

    /// Returns an attribute, without a check that the context exists: a launch asks for several attributes.
    fn value(&self, attribute: u32) -> Result<i32> {
        let own = self.settings().get(&attribute).copied();
        let of_kernel = || self.of_kernel.get()?.1.upgrade()?.get(attribute, self.device);
        match own.or_else(of_kernel) {
            Some(value) => Ok(value),
            None => attribute::of_kernel(&self.kernel, self.device, attribute),
        }
    }

    /// `cuFuncSetAttribute`: refuses read-only attributes and values out of range.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32) -> Result<()> {
        let value = attribute::check(&self.kernel, self.device()?, attribute, value)?;
        self.settings().insert(attribute, value);
        Ok(())
    }

    /// `cuFuncGetParamInfo`: returns the offset and size of a parameter in bytes.
    pub(crate) fn param(&self, index: usize) -> Result<(usize, usize)> {
        let (offset, size) = self.kernel.params().nth(index).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        Ok((offset as usize, size as usize))
    }
}
