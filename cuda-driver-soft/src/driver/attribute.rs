//! Attributes of kernels: what they are, and what may be set.

use super::device::Device;
use super::error::{Error, Result};
use super::profile;
use crate::settings;
use engine::Kernel;

/// `CUfunction_attribute`, by its names in C.
const MAX_THREADS_PER_BLOCK: u32 = 0;
const SHARED_SIZE_BYTES: u32 = 1;
const CONST_SIZE_BYTES: u32 = 2;
const LOCAL_SIZE_BYTES: u32 = 3;
const NUM_REGS: u32 = 4;
const PTX_VERSION: u32 = 5;
const BINARY_VERSION: u32 = 6;
const CACHE_MODE_CA: u32 = 7;
pub(crate) const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
pub(crate) const PREFERRED_SHARED_MEMORY_CARVEOUT: u32 = 9;
const CLUSTER_SIZE_MUST_BE_SET: u32 = 10;
const REQUIRED_CLUSTER_WIDTH: u32 = 11;
const REQUIRED_CLUSTER_DEPTH: u32 = 13;
/// What a cluster must be in each dimension.
pub(crate) const CLUSTER: [u32; 3] = [11, 12, 13];
pub(crate) const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: u32 = 14;
const CLUSTER_SCHEDULING_POLICY_PREFERENCE: u32 = 15;
/// Since CUDA 13.3.
const DEVICE_NODE_UPDATE_SUPPORTED: u32 = 16;
/// Since CUDA 13.4.
const SHARED_MEMORY_MODE: u32 = 17;

/// A size as attributes have it.
pub(crate) fn int(n: impl TryInto<i32>) -> i32 {
    n.try_into().unwrap_or(i32::MAX)
}

/// Shared memory in bytes that a launch may have beside the kernel's own, if nothing was set: what is left of the usual
/// limit, or of all that there is for a kernel that has more than the usual limit already.
fn usual_dynamic_shared(kernel: &Kernel, device: &Device) -> u32 {
    let fixed = kernel.shared_bytes();
    let usual = device.limit(profile::MAX_SHARED_MEMORY_PER_BLOCK);
    if fixed <= usual {
        usual - fixed
    } else {
        most_dynamic_shared(kernel, device)
    }
}

/// Shared memory in bytes that a launch may have beside the kernel's own, if that was asked for.
pub(crate) fn most_dynamic_shared(kernel: &Kernel, device: &Device) -> u32 {
    device
        .limit(profile::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        .saturating_sub(kernel.shared_bytes())
}

/// The value of an attribute where nothing was set.
pub(crate) fn of_kernel(kernel: &Kernel, device: &Device, attribute: u32) -> Result<i32> {
    let version = settings::version();
    Ok(match attribute {
        MAX_THREADS_PER_BLOCK => int(kernel.max_threads_per_block()),
        SHARED_SIZE_BYTES => int(kernel.shared_bytes()),
        CONST_SIZE_BYTES => int(kernel.const_bytes()),
        LOCAL_SIZE_BYTES => int(kernel.local_bytes()),
        NUM_REGS => int(kernel.num_regs()),
        PTX_VERSION => int(kernel.ptx_version()),
        BINARY_VERSION => int(device.profile.sm),
        MAX_DYNAMIC_SHARED_SIZE_BYTES => int(usual_dynamic_shared(kernel, device)),
        PREFERRED_SHARED_MEMORY_CARVEOUT => -1,
        REQUIRED_CLUSTER_WIDTH..=REQUIRED_CLUSTER_DEPTH => {
            let cluster = kernel.directives().reqnctapercluster.unwrap_or([0; 3]);
            int(cluster[(attribute - REQUIRED_CLUSTER_WIDTH) as usize])
        }
        CLUSTER_SIZE_MUST_BE_SET => i32::from(kernel.directives().explicitcluster),
        CACHE_MODE_CA
        | NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        | CLUSTER_SCHEDULING_POLICY_PREFERENCE => 0,
        DEVICE_NODE_UPDATE_SUPPORTED if version >= 13030 => 0,
        SHARED_MEMORY_MODE if version >= 13040 => 0,
        _ => return Err(Error::INVALID_VALUE),
    })
}

/// The value that an attribute has once it was set to `value`; an error for one that cannot be set, or not to this.
pub(crate) fn check(kernel: &Kernel, device: &Device, attribute: u32, value: i32) -> Result<i32> {
    let range = match attribute {
        MAX_DYNAMIC_SHARED_SIZE_BYTES => 0..=int(most_dynamic_shared(kernel, device)),
        PREFERRED_SHARED_MEMORY_CARVEOUT => -1..=100,
        // Whether there is such a cluster is looked at when it is launched.
        REQUIRED_CLUSTER_WIDTH..=REQUIRED_CLUSTER_DEPTH => {
            match of_kernel(kernel, device, attribute)? {
                0 => 0..=i32::MAX,
                required => required..=required,
            }
        }
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED => return Ok((value != 0).into()),
        CLUSTER_SCHEDULING_POLICY_PREFERENCE => 0..=2,
        _ => return Err(Error::INVALID_VALUE),
    };
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Error::INVALID_VALUE)
    }
}
