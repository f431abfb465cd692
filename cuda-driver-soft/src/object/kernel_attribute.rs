//! Attributes of kernels: their values, and the values that can be set.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::{CUdevice_attribute as Attribute, CUfunction_attribute as Id};

use crate::object::device::Device;
use crate::object::register_limit;
use crate::state::error::{Error, Result};
use crate::state::settings;
use engine::Kernel;

pub(crate) const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = Id::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.0;
pub(crate) const PREFERRED_SHARED_MEMORY_CARVEOUT: u32 = Id::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.0;
pub(crate) const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = Id::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.0;
const REQUIRED_CLUSTER_WIDTH: u32 = Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
const REQUIRED_CLUSTER_DEPTH: u32 = Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH.0;
/// The attributes of the required cluster size, by dimension.
pub(crate) const CLUSTER: [u32; 3] = [
    REQUIRED_CLUSTER_WIDTH,
    Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT.0,
    REQUIRED_CLUSTER_DEPTH,
];

const CLUSTER_SCHEDULING_POLICY: u32 = Id::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE.0;

/// Attribute values set with `cuKernelSetAttribute`, by device and attribute.
#[derive(Debug, Default)]
pub(crate) struct KernelSettings(Mutex<BTreeMap<(i32, u32), i32>>);

impl KernelSettings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(i32, u32), i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, attribute: u32, device: &Device) -> Option<i32> {
        self.lock().get(&(device.ordinal, attribute)).copied()
    }

    pub(crate) fn set(&self, attribute: u32, device: &Device, value: i32) {
        self.lock().insert((device.ordinal, attribute), value);
    }
}

/// Converts a size to an attribute value; a size that is too large becomes the largest value.
pub(crate) fn int(n: impl TryInto<i32>) -> i32 {
    n.try_into().unwrap_or(i32::MAX)
}

/// Returns the default maximum of dynamic shared memory in bytes: the rest of the usual limit after the kernel's static
/// shared memory, or of the opt-in limit if the static part exceeds the usual one.
fn usual_dynamic_shared(kernel: &Kernel, device: &Device) -> u32 {
    let fixed = kernel.shared_bytes();
    let usual = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    if fixed <= usual {
        usual - fixed
    } else {
        most_dynamic_shared(kernel, device)
    }
}

/// Returns the maximum of dynamic shared memory in bytes that can be set.
pub(crate) fn most_dynamic_shared(kernel: &Kernel, device: &Device) -> u32 {
    device
        .limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        .saturating_sub(kernel.shared_bytes())
}

/// Returns true for the attributes that CUDA 11.8 added.
fn is_of_clusters(attribute: u32) -> bool {
    (Id::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET.0..=CLUSTER_SCHEDULING_POLICY).contains(&attribute)
}

/// Returns the value of an attribute that was not set.
pub(crate) fn of_kernel(kernel: &Kernel, device: &Device, attribute: u32) -> Result<i32> {
    let version = settings::version();
    if is_of_clusters(attribute) && version < 11080 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(match Id(attribute) {
        Id::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => {
            let by_registers = register_limit::threads(kernel, device);
            int(kernel.max_threads_per_block().min(by_registers))
        }
        Id::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => int(kernel.shared_bytes()),
        Id::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => int(kernel.const_bytes()),
        Id::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => int(kernel.local_bytes()),
        Id::CU_FUNC_ATTRIBUTE_NUM_REGS => int(kernel.num_regs()),
        Id::CU_FUNC_ATTRIBUTE_PTX_VERSION => int(kernel.ptx_version()),
        Id::CU_FUNC_ATTRIBUTE_BINARY_VERSION => int(device.profile.sm),
        Id::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => int(usual_dynamic_shared(kernel, device)),
        Id::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => -1,
        Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | Id::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
            let cluster = kernel.directives().reqnctapercluster.unwrap_or([0; 3]);
            int(cluster[(attribute - REQUIRED_CLUSTER_WIDTH) as usize])
        }
        Id::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => i32::from(kernel.directives().explicitcluster),
        Id::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA
        | Id::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        | Id::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => 0,
        Id::CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED if version >= 13030 => 0,
        Id::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE if version >= 13040 => 0,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// Returns the value that an attribute has after it was set to `value`, or an error if it is read-only or `value` is
/// out of range.
pub(crate) fn check(kernel: &Kernel, device: &Device, attribute: u32, value: i32) -> Result<i32> {
    if is_of_clusters(attribute) {
        // Returns an error if the reported CUDA version is older than clusters.
        of_kernel(kernel, device, attribute)?;
    }
    let range = match attribute {
        MAX_DYNAMIC_SHARED_SIZE_BYTES => 0..=int(most_dynamic_shared(kernel, device)),
        PREFERRED_SHARED_MEMORY_CARVEOUT => -1..=100,
        // Launches check that a cluster can have this size.
        REQUIRED_CLUSTER_WIDTH..=REQUIRED_CLUSTER_DEPTH => match of_kernel(kernel, device, attribute)? {
            0 => 0..=i32::MAX,
            required => required..=required,
        },
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED => return Ok((value != 0).into()),
        CLUSTER_SCHEDULING_POLICY => 0..=2,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}
