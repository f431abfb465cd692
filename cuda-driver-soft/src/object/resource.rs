//! Device resources: sets of multiprocessors of a device, from which green contexts are created.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::{self, Device};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

/// Some multiprocessors of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiprocessors {
    pub(crate) device: i32,
    /// Number of the first; the others follow.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The granularity of parts of these multiprocessors, with `least` 0 for a part, or the rest, that
    /// `cuDevSmResourceSplitByCount` returned: it cannot be split again.
    pub(crate) granularity: Granularity,
    /// Flags of the group that `cuDevSmResourceSplit` made.
    pub(crate) flags: u32,
}

/// The minimum number of multiprocessors of a part, and the number that its size must be a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granularity {
    pub(crate) least: u32,
    pub(crate) multiple: u32,
}

/// A group of multiprocessors that `cuDevSmResourceSplit` requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRequest {
    /// Number of multiprocessors; 0 for as many as there are.
    pub(crate) count: u32,
    /// Number of multiprocessors that run a cluster together; 0 for the device's granularity.
    pub(crate) coscheduled: u32,
    /// Same for larger clusters, where possible; 0 for `coscheduled`. Has no effect here.
    pub(crate) preferred: u32,
    /// `CU_DEV_SM_RESOURCE_GROUP_*`
    pub(crate) flags: u32,
}

/// `CU_DEV_SM_RESOURCE_GROUP_BACKFILL`: the number of multiprocessors need not be a multiple of those that run a cluster
/// together.
const BACKFILL: u32 = cuda_driver_sys::CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0;

/// The result of splitting multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Number of parts.
    pub(crate) parts: u32,
    /// Number of multiprocessors of each part.
    pub(crate) each: u32,
}

/// The resources of a descriptor.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) device: i32,
    /// The sum of the parts' counts, at most the number of multiprocessors of the device.
    pub(crate) multiprocessors: u32,
    /// The numbers of the multiprocessors, each once, in ascending order.
    pub(crate) numbers: Arc<[u32]>,
}

/// Descriptors live as long as the process: no call destroys one.
static DESCRIPTORS: Table<Descriptor> = Table::new(HandleKind::ResourceDescriptor);

/// Returns all multiprocessors of a device.
pub(crate) fn of_device(ordinal: i32) -> Result<Multiprocessors> {
    let device = device::get(ordinal)?;
    Ok(Multiprocessors {
        device: device.ordinal,
        first: 0,
        count: device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        granularity: granularity(device),
        flags: 0,
    })
}

/// Returns the granularity of parts, according to the manual's table of compute capabilities.
fn granularity(device: &Device) -> Granularity {
    let (least, multiple) = match device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
        ..=6 => (1, 1),
        7 => (2, 2),
        8 => (4, 2),
        _ => (8, 8),
    };
    Granularity { least, multiple }
}

impl Multiprocessors {
    /// Splits these multiprocessors into parts of at least `least` multiprocessors each. Returns
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if there are fewer, or if they are a part already. With `scattered`,
    /// the multiprocessors of a part need not be close to each other, so parts can be smaller.
    pub(crate) fn split(self, least: u32, scattered: bool) -> Result<Split> {
        if self.granularity.least == 0 || least > self.count {
            return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        }
        let granularity = granularity(device::get(self.device)?);
        let (smallest, multiple) = if scattered {
            (granularity.least.min(2), granularity.multiple.min(2))
        } else {
            (granularity.least, granularity.multiple)
        };
        let each = least.max(smallest).next_multiple_of(multiple).min(self.count);
        Ok(Split {
            parts: self.count / each.max(1),
            each,
        })
    }

    /// Splits off a group for each request, in order, and returns the groups and the remainder. A group has 0
    /// multiprocessors if the request asks for as many as there are, and there are too few.
    ///
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a request that the manual does not permit, and
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if there are too few multiprocessors.
    pub(crate) fn groups(self, requests: &[GroupRequest]) -> Result<(Vec<Self>, Self)> {
        if self.granularity.least == 0 {
            return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        }
        let device = device::get(self.device)?;
        let (default, most) = match device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
            ..=8 => (2, 2),
            _ => (granularity(device).multiple, 32),
        };
        // The remainder can be split again, but nothing is promised about its clusters.
        let pairs = Granularity { least: 2, multiple: 2 };
        let mut rest = Self {
            granularity: pairs,
            ..self
        };
        let mut groups = Vec::with_capacity(requests.len());
        for request in requests {
            let coscheduled = if request.coscheduled == 0 {
                default
            } else {
                request.coscheduled
            };
            let preferred = if request.preferred == 0 {
                coscheduled
            } else {
                request.preferred
            };
            let backfill = request.flags & BACKFILL != 0;
            let step = if backfill { 2 } else { coscheduled };
            let valid = request.flags & !BACKFILL == 0
                && coscheduled.is_multiple_of(2)
                && coscheduled <= most
                && preferred >= coscheduled
                && request.count.is_multiple_of(2)
                && request.count.is_multiple_of(step);
            if !valid {
                host::log!("cannot split multiprocessors: the manual does not permit {request:?} for this device");
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            let count = match request.count {
                0 if rest.count < coscheduled => 0,
                0 => rest.count / step * step,
                count if (coscheduled..=rest.count).contains(&count) => count,
                _ => {
                    host::log!("cannot split multiprocessors: {} are left for {request:?}", rest.count);
                    return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
                }
            };
            groups.push(Self {
                count,
                granularity: Granularity {
                    least: coscheduled,
                    multiple: coscheduled,
                },
                flags: request.flags,
                ..rest
            });
            rest.first += count;
            rest.count -= count;
        }
        Ok((groups, rest))
    }
}

/// `cuDevResourceGenerateDesc`: returns the handle of a new descriptor.
pub(crate) fn describe(resources: &[Multiprocessors]) -> Result<usize> {
    let Some(first) = resources.first() else {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    };
    // The manual allows several resources only from one split; driver 580 takes those of different splits.
    if resources.iter().any(|part| part.device != first.device) {
        return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    let all = of_device(first.device)?.count;
    let sum: u64 = resources.iter().map(|part| u64::from(part.count)).sum();
    let multiprocessors = sum.min(u64::from(all)) as u32;
    let numbers: BTreeSet<u32> = resources
        .iter()
        .flat_map(|part| part.first..part.first + part.count)
        .collect();
    let mut made = 0;
    DESCRIPTORS.insert_with(|handle| {
        made = handle;
        Descriptor {
            device: first.device,
            multiprocessors,
            numbers: numbers.iter().copied().collect(),
        }
    });
    Ok(made)
}

/// Returns the descriptor with this handle.
pub(crate) fn descriptor(handle: usize) -> Result<Arc<Descriptor>> {
    DESCRIPTORS.get(handle).map_err(|missing| {
        host::log!("resource descriptor {handle:#x} {missing}; the NVIDIA driver may crash here");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}
