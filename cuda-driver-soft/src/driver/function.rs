//! Functions: kernels of a loaded module, and what can be set for their launches.

use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{self, Context};
use super::device::Device;
use super::error::{Error, Result};
use super::module::Module;
use super::process::{driver, driver_without_fault};
use super::profile;
use crate::exec;

/// A kernel with the handle that `cuModuleGetFunction` gave it.
pub(crate) struct Function {
    pub(crate) handle: usize,
    pub(crate) module: usize,
    context_id: u64,
    pub(crate) kernel: Arc<exec::Kernel>,
    /// The name, as `cuFuncGetName` points to it.
    pub(crate) name: CString,
    max_dynamic_shared: AtomicI32,
    carveout: AtomicI32,
    cluster: [AtomicI32; 3],
    non_portable_cluster: AtomicI32,
    cluster_scheduling: AtomicI32,
    pub(crate) cache_config: AtomicU32,
    old: Mutex<OldLaunch>,
}

/// What the launch functions of CUDA 2.0 remember in the function.
#[derive(Clone, Debug, Default)]
pub(crate) struct OldLaunch {
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) params: Vec<u8>,
}

/// `CUfunction_attribute`, by its names in C.
pub(crate) mod attribute {
    pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 0;
    pub(crate) const SHARED_SIZE_BYTES: u32 = 1;
    pub(crate) const CONST_SIZE_BYTES: u32 = 2;
    pub(crate) const LOCAL_SIZE_BYTES: u32 = 3;
    pub(crate) const NUM_REGS: u32 = 4;
    pub(crate) const PTX_VERSION: u32 = 5;
    pub(crate) const BINARY_VERSION: u32 = 6;
    pub(crate) const CACHE_MODE_CA: u32 = 7;
    pub(crate) const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
    pub(crate) const PREFERRED_SHARED_MEMORY_CARVEOUT: u32 = 9;
    pub(crate) const CLUSTER_SIZE_MUST_BE_SET: u32 = 10;
    pub(crate) const REQUIRED_CLUSTER_WIDTH: u32 = 11;
    pub(crate) const REQUIRED_CLUSTER_DEPTH: u32 = 13;
    pub(crate) const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = 14;
    pub(crate) const CLUSTER_SCHEDULING_POLICY_PREFERENCE: u32 = 15;
    pub(crate) const DEVICE_NODE_UPDATE_SUPPORTED: u32 = 16;
    pub(crate) const SHARED_MEMORY_MODE: u32 = 17;
}

/// A size as attributes have it.
pub(crate) fn int(n: impl TryInto<i32>) -> i32 {
    n.try_into().unwrap_or(i32::MAX)
}

/// The living function of this handle, or the function of a `CUkernel` in the current context.
pub(crate) fn get(handle: usize) -> Result<Arc<Function>> {
    let driver = driver_without_fault()?;
    driver
        .functions
        .get(handle)
        .or_else(|why| match driver.kernels.get(handle) {
            Ok(kernel) => driver
                .functions
                .get(kernel.function_in_current_context()?)
                .map_err(|_| Error::INVALID_HANDLE),
            Err(_) => {
                crate::log!("function {handle:#x} is {why:?}");
                Err(Error::INVALID_HANDLE)
            }
        })
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
        crate::log!(
            "`{}` belongs to another context than the stream",
            function.kernel.name()
        );
        return Err(Error::INVALID_HANDLE);
    }
    Ok(function)
}

impl Function {
    pub(crate) fn new(handle: usize, module: &Module, kernel: Arc<exec::Kernel>) -> Function {
        let name = CString::new(kernel.name()).unwrap_or_default();
        // A kernel that has more than the usual limit already may have what there is.
        let fixed = kernel.shared_bytes();
        let limit = |attribute| module.context().map_or(0, |c| c.device.limit(attribute));
        let usual = limit(profile::MAX_SHARED_MEMORY_PER_BLOCK);
        let dynamic = if fixed <= usual {
            usual - fixed
        } else {
            limit(profile::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).saturating_sub(fixed)
        };
        let cluster = kernel.directives().reqnctapercluster.unwrap_or([0; 3]);
        Function {
            handle,
            module: module.handle,
            context_id: module.context_id,
            kernel,
            name,
            max_dynamic_shared: AtomicI32::new(int(dynamic)),
            carveout: AtomicI32::new(-1),
            cluster: cluster.map(|n| AtomicI32::new(n as i32)),
            non_portable_cluster: AtomicI32::new(0),
            cluster_scheduling: AtomicI32::new(0),
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
        self.max_dynamic_shared.load(Relaxed) as u32
    }

    /// Threads that a block may have, by the kernel's directives and by the registers that it needs.
    pub(crate) fn max_threads(&self) -> u32 {
        self.kernel.max_threads_per_block()
    }

    /// `cuFuncGetAttribute`
    pub(crate) fn attribute(&self, attribute: u32) -> Result<i32> {
        use attribute::*;
        Ok(match attribute {
            MAX_THREADS_PER_BLOCK => int(self.max_threads()),
            SHARED_SIZE_BYTES => int(self.kernel.shared_bytes()),
            CONST_SIZE_BYTES => int(self.kernel.const_bytes()),
            LOCAL_SIZE_BYTES => int(self.kernel.local_bytes()),
            NUM_REGS => int(self.kernel.num_regs()),
            PTX_VERSION => int(self.kernel.ptx_version()),
            BINARY_VERSION => int(self.device()?.profile.sm),
            CACHE_MODE_CA
            | CLUSTER_SIZE_MUST_BE_SET
            | DEVICE_NODE_UPDATE_SUPPORTED
            | SHARED_MEMORY_MODE => 0,
            MAX_DYNAMIC_SHARED_SIZE_BYTES => self.max_dynamic_shared.load(Relaxed),
            PREFERRED_SHARED_MEMORY_CARVEOUT => self.carveout.load(Relaxed),
            REQUIRED_CLUSTER_WIDTH..=REQUIRED_CLUSTER_DEPTH => {
                self.cluster[(attribute - REQUIRED_CLUSTER_WIDTH) as usize].load(Relaxed)
            }
            NON_PORTABLE_CLUSTER_SIZE_ALLOWED => self.non_portable_cluster.load(Relaxed),
            CLUSTER_SCHEDULING_POLICY_PREFERENCE => self.cluster_scheduling.load(Relaxed),
            _ => return Err(Error::INVALID_VALUE),
        })
    }

    /// `cuFuncSetAttribute`: of those that can be set, values in their range.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32) -> Result<()> {
        use attribute::*;
        let (slot, range) = match attribute {
            MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let most = self
                    .device()?
                    .limit(profile::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
                let left = int(most) - int(self.kernel.shared_bytes());
                (&self.max_dynamic_shared, 0..=left)
            }
            PREFERRED_SHARED_MEMORY_CARVEOUT => (&self.carveout, -1..=100),
            REQUIRED_CLUSTER_WIDTH..=REQUIRED_CLUSTER_DEPTH => (
                &self.cluster[(attribute - REQUIRED_CLUSTER_WIDTH) as usize],
                0..=8,
            ),
            NON_PORTABLE_CLUSTER_SIZE_ALLOWED => (&self.non_portable_cluster, 0..=1),
            CLUSTER_SCHEDULING_POLICY_PREFERENCE => (&self.cluster_scheduling, 0..=2),
            _ => return Err(Error::INVALID_VALUE),
        };
        if !range.contains(&value) {
            return Err(Error::INVALID_VALUE);
        }
        slot.store(value, Relaxed);
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
