//! Kernel launches in graph nodes, with their attributes and with arguments that the program can read through pointers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cuda_driver_sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, CUlaunchAttributeID as Id,
};

use crate::object::device::Device;
use crate::object::stream_attribute::{self, Window};
use crate::operation::launch::ReadyLaunch;
use crate::queue::work::Work;
use crate::state::error::Result;

/// `CUlaunchAttributeValue`s by `CUlaunchAttributeID`.
pub(crate) type Attributes = BTreeMap<u32, [u64; 8]>;

pub(crate) const PRIORITY: u32 = Id::CU_LAUNCH_ATTRIBUTE_PRIORITY.0;

pub(crate) const COOPERATIVE: u32 = Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE.0;

const WINDOW: u32 = Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW.0;

const CLUSTER: u32 = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.0;

/// A kernel launch in a graph node.
pub(crate) struct KernelLaunch {
    pub(crate) ready: ReadyLaunch,
    pub(crate) attributes: Attributes,
    /// The blocks per cluster that the function requires, if any. They apply if the attributes have no [`CLUSTER`].
    required_cluster: Option<[u32; 3]>,
    arguments: Arc<KernelArguments>,
}

/// The arguments in memory that the program can read through pointers. They keep their addresses when the node gets
/// other arguments of the same layout, because the program may still have the pointers.
struct KernelArguments {
    values: Box<[ArgumentBlock]>,
    addresses: Box<[usize]>,
    /// Size of all arguments in bytes, at an address that `extra` contains.
    size: Box<usize>,
    /// The `extra` list, if the arguments are passed as one buffer.
    extra: Option<Box<[usize]>>,
}

/// 16 bytes of arguments, at a multiple of 16 bytes.
#[repr(align(16))]
#[derive(Default)]
struct ArgumentBlock([AtomicU64; 2]);

impl KernelArguments {
    fn of(ready: &ReadyLaunch, packed: bool) -> Self {
        let bytes = ready.params.len();
        let values: Box<[ArgumentBlock]> = (0..bytes.div_ceil(16)).map(|_| ArgumentBlock::default()).collect();
        let base = values.as_ptr().addr();
        let params = ready.function.kernel.params();
        let addresses = params.map(|(offset, _)| base + offset as usize).collect();
        let size = Box::new(bytes);
        let list = || {
            [
                CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize,
                base,
                CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize,
                std::ptr::from_ref(&*size).addr(),
                0,
            ]
            .into()
        };
        let arguments = KernelArguments {
            extra: packed.then(list),
            size,
            values,
            addresses,
        };
        arguments.write(&ready.params);
        arguments
    }

    fn write(&self, params: &[u8]) {
        let places = self.values.iter().flat_map(|word| &word.0);
        for (place, bytes) in places.zip(params.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            place.store(u64::from_ne_bytes(whole), Relaxed);
        }
    }

    /// Returns true if both have parameters of the same total size and at the same offsets, passed in the same form.
    fn has_same_layout(&self, other: &KernelArguments) -> bool {
        let offsets = |of: &KernelArguments| -> Vec<usize> {
            let base = of.values.as_ptr().addr();
            of.addresses.iter().map(|at| at - base).collect()
        };
        self.size == other.size && self.extra.is_some() == other.extra.is_some() && offsets(self) == offsets(other)
    }
}

/// Returns the blocks per cluster that the attributes set, if they do. A size of zeros sets none.
fn cluster_of(attributes: &Attributes) -> Option<[u32; 3]> {
    let &[xy, z, ..] = attributes.get(&CLUSTER)?;
    let cluster = [xy as u32, (xy >> 32) as u32, z as u32];
    (cluster != [0; 3]).then_some(cluster)
}

/// Checks the access policy window, if the attributes contain one.
pub(crate) fn check_window(attributes: &Attributes, device: &Device) -> Result<()> {
    let Some(words) = attributes.get(&WINDOW) else {
        return Ok(());
    };
    let mut window = Window::default();
    for (bytes, word) in window.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    stream_attribute::check_window(&window, device)
}

impl KernelLaunch {
    /// Creates a launch. With `packed`, queries return the arguments as one buffer.
    pub(crate) fn new(ready: ReadyLaunch, attributes: Attributes, packed: bool) -> Self {
        let required_cluster = ready.function.cluster();
        KernelLaunch::with_cluster(ready, attributes, required_cluster, packed)
    }

    /// Creates a launch. The attributes decide if it is cooperative and how many blocks a cluster has; without a
    /// cluster size in the attributes, the launch has the `required_cluster`.
    fn with_cluster(
        mut ready: ReadyLaunch,
        attributes: Attributes,
        required_cluster: Option<[u32; 3]>,
        packed: bool,
    ) -> Self {
        ready.shape.cooperative = attributes.get(&COOPERATIVE).is_some_and(|value| value[0] as u32 != 0);
        ready.shape.cluster = cluster_of(&attributes).or(required_cluster);
        KernelLaunch {
            arguments: Arc::new(KernelArguments::of(&ready, packed)),
            ready,
            attributes,
            required_cluster,
        }
    }

    /// Returns the addresses of `kernelParams` and `extra`, 0 for one that does not exist. They are valid until the
    /// node gets parameters of another layout.
    pub(crate) fn arguments(&self) -> (usize, usize) {
        match &self.arguments.extra {
            Some(extra) => (0, extra.as_ptr().addr()),
            None if self.arguments.addresses.is_empty() => (0, 0),
            None => (self.arguments.addresses.as_ptr().addr(), 0),
        }
    }

    /// Checks the registers, the cluster size and the size of a cooperative grid. The grid, the cluster size and the
    /// function's attributes are set one after the other, so this can fail although each was accepted.
    pub(crate) fn check(&self) -> Result<()> {
        self.ready.check_registers()?;
        self.check_shape()
    }

    fn check_shape(&self) -> Result<()> {
        self.ready.check_cluster(cluster_of(&self.attributes))?;
        self.ready.check_resident()
    }

    /// Returns the work of one launch, and an estimate of its duration in nanoseconds.
    pub(crate) fn work(&self) -> Result<(Work, u64)> {
        self.check_shape()?;
        self.ready.work()
    }

    /// Returns this launch as the replacement of `old`: if both have arguments of the same layout, it takes over the
    /// addresses of the old arguments.
    pub(crate) fn replace(mut self, old: &KernelLaunch) -> Self {
        if self.arguments.has_same_layout(&old.arguments) {
            old.arguments.write(&self.ready.params);
            self.arguments = old.arguments.clone();
        }
        self
    }

    /// Returns the same launch with other attributes. Returns an error if their access policy window is impossible, if
    /// they change the cluster size to one that does not suit the kernel or the grid, or if they make a launch
    /// cooperative whose blocks cannot all be resident at once.
    pub(crate) fn with_attributes(&self, attributes: Attributes) -> Result<Self> {
        check_window(&attributes, self.ready.context.device)?;
        let cluster = cluster_of(&attributes);
        if cluster != cluster_of(&self.attributes) {
            self.ready.check_cluster(cluster)?;
        }
        let packed = self.arguments.extra.is_some();
        let ready = self.ready.clone();
        let launch = KernelLaunch::with_cluster(ready, attributes, self.required_cluster, packed);
        if launch.ready.shape.cooperative != self.ready.shape.cooperative {
            launch.ready.check_resident()?;
        }
        Ok(launch)
    }
}
