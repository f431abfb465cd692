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
    /// True for a part, or the rest, that `cuDevSmResourceSplitByCount` returned: it cannot be split again.
    pub(crate) split: bool,
}

/// The minimum number of multiprocessors of a part, and the number that its size must be a multiple of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granularity {
    pub(crate) least: u32,
    pub(crate) multiple: u32,
}

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
        split: false,
    })
}

/// Returns the granularity of parts, according to the manual's table of compute capabilities.
pub(crate) fn granularity(device: &Device) -> Granularity {
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
        if self.split || least > self.count {
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
