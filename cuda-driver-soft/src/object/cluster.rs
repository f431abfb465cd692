//! Clusters: what a launch asks for, what its kernel requires, and how many a device holds at once. As recorded on an H200.

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::Device;
use crate::object::function::Function;
use crate::object::occupancy;
use crate::state::error::{Error, Result};

/// Blocks that any cluster may have.
const PORTABLE: u32 = 8;
/// Blocks that one may have where that was allowed.
const MOST: u32 = 16;
/// Blocks on a multiprocessor that count for clusters.
const PER_MULTIPROCESSOR: u32 = 8;
/// Multiprocessors that a cluster must share: of groups of so many.
const GROUP: u32 = 18;

/// Blocks that a cluster of the function may have.
pub(crate) fn most_blocks(function: &Function) -> u32 {
    if function.allows_large_clusters() {
        MOST
    } else {
        PORTABLE
    }
}

/// The clusters of a launch that asks for some, or whose kernel requires them; `None`: it is not one of clusters.
pub(crate) fn of_launch(
    function: &Function,
    device: &Device,
    asked: Option<[u32; 3]>,
    grid: [u32; 3],
) -> Result<Option<[u32; 3]>> {
    let directives = function.kernel.directives();
    let refuse = |why: &str| {
        host::log!(
            "launch of `{}` with grid {grid:?} in clusters of {asked:?}: {why}",
            function.kernel.name()
        );
        Err(Error::CUDA_ERROR_INVALID_CLUSTER_SIZE)
    };
    let cluster = match (asked, function.cluster()) {
        (Some(asked), Some(required)) if asked != required => {
            return refuse("the kernel requires others");
        }
        (None, None) if directives.explicitcluster => {
            return refuse("the kernel requires that the launch says their size");
        }
        (None, None) => return Ok(None),
        (Some(cluster), _) | (None, Some(cluster)) => cluster,
    };
    if cluster
        .iter()
        .zip(grid)
        .any(|(&n, all)| n == 0 || all % n != 0)
    {
        return refuse("the grid is no multiple of them");
    }
    let blocks = cluster.iter().map(|&n| u64::from(n)).product::<u64>();
    let most = directives
        .maxclusterrank
        .unwrap_or(u32::MAX)
        .min(most_blocks(function));
    if blocks > most.into() {
        return refuse("these are more blocks than a cluster may have");
    }
    if device.limit(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0 {
        host::log!("the device has no clusters");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    Ok(Some(cluster))
}

/// How many clusters of so many blocks are resident at once: an estimate, as multiprocessors are here in groups of one size.
pub(crate) fn max_active(
    function: &Function,
    device: &Device,
    blocks: u32,
    (threads, dynamic): (u32, u64),
) -> u32 {
    let fit = occupancy::blocks_per_multiprocessor(function, device, threads, dynamic);
    let per_multiprocessor = fit.min(PER_MULTIPROCESSOR);
    let all = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let of_group = |multiprocessors: u32| multiprocessors * per_multiprocessor / blocks.max(1);
    all / GROUP * of_group(GROUP) + of_group(all % GROUP)
}
