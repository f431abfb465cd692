//! Thread block clusters: the size that a launch requests, the size that its kernel requires, and the number that fits
//! on a device. Limits were measured on an H200.

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::Device;
use crate::object::function::Function;
use crate::object::occupancy;
use crate::state::error::{Error, Result};

/// Maximum number of blocks in a cluster without an opt-in.
const MOST_PORTABLE: u32 = 8;
/// Maximum number of blocks in a cluster of a function with `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
const MOST: u32 = 16;
/// Maximum number of blocks on one multiprocessor that count for cluster occupancy.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 8;
/// Multiprocessors in a group. All blocks of a cluster run in one group.
const MULTIPROCESSORS_PER_GROUP: u32 = 18;

/// Returns the maximum number of blocks in a cluster of the function.
pub(crate) fn most_blocks(function: &Function) -> u32 {
    if function.allows_large_clusters() {
        MOST
    } else {
        MOST_PORTABLE
    }
}

/// Returns the number of blocks of a launch in each dimension. The grid of a kernel with `.blocksareclusters` counts
/// clusters.
pub(crate) fn blocks(function: &Function, grid: [u32; 3]) -> [u32; 3] {
    let directives = function.kernel.directives();
    match directives.reqnctapercluster.filter(|_| directives.blocksareclusters) {
        Some(cluster) => [0, 1, 2].map(|i| grid[i].saturating_mul(cluster[i])),
        None => grid,
    }
}

/// Returns the cluster size of a launch from the requested size and the size that the kernel requires, or `None` for a
/// launch without clusters. Returns `CUDA_ERROR_INVALID_CLUSTER_SIZE` if the size does not suit the kernel or the grid,
/// and `CUDA_ERROR_NOT_SUPPORTED` if the device has no clusters.
pub(crate) fn of_launch(
    function: &Function,
    device: &Device,
    asked: Option<[u32; 3]>,
    grid: [u32; 3],
) -> Result<Option<[u32; 3]>> {
    let directives = function.kernel.directives();
    let refuse = |why: &str| {
        host::log!(
            "launch of `{}` with grid {grid:?} and clusters {asked:?}: {why}",
            function.kernel.name()
        );
        Err(Error::CUDA_ERROR_INVALID_CLUSTER_SIZE)
    };
    let cluster = match (asked, function.cluster()) {
        (Some(asked), Some(required)) if asked != required => {
            return refuse(
                "the kernel requires another cluster size (.reqnctapercluster or attributes of the function)",
            );
        }
        (None, None) if directives.explicitcluster => {
            return refuse("the kernel requires a cluster size in the launch (.explicitcluster)");
        }
        (None, None) => return Ok(None),
        (Some(cluster), _) | (None, Some(cluster)) => cluster,
    };
    if cluster
        .iter()
        .zip(blocks(function, grid))
        .any(|(&n, all)| n == 0 || all % n != 0)
    {
        return refuse("the grid is not a multiple of the cluster size");
    }
    let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    let most = directives.maxclusterrank.unwrap_or(u32::MAX).min(most_blocks(function));
    if blocks > most.into() {
        return refuse(&format!(
            "the cluster has {blocks} blocks, but at most {most} are allowed"
        ));
    }
    if device.limit(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0 {
        host::log!("the device does not support clusters; they need compute capability 9.0 or higher");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    Ok(Some(cluster))
}

/// Returns the number of clusters of `blocks` blocks that can be resident at the same time on `all` multiprocessors. A
/// block has `threads` threads and `dynamic` bytes of dynamic shared memory. The result is an estimate: all groups of
/// multiprocessors but the last have the same size here.
pub(crate) fn max_active(
    function: &Function,
    (device, all): (&Device, u32),
    blocks: u32,
    (threads, dynamic): (u32, u64),
) -> u32 {
    let fit = occupancy::blocks_per_multiprocessor(function, device, threads, dynamic);
    let per_multiprocessor = fit.min(BLOCKS_PER_MULTIPROCESSOR);
    let of_group = |multiprocessors: u32| multiprocessors * per_multiprocessor / blocks.max(1);
    all / MULTIPROCESSORS_PER_GROUP * of_group(MULTIPROCESSORS_PER_GROUP) + of_group(all % MULTIPROCESSORS_PER_GROUP)
}
