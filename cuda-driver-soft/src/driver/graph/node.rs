//! What the nodes of a graph do, and their work when the graph is launched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::memory::{self, GraphMemory};
use crate::driver::copy::{self, Fill};
use crate::driver::error::{Error, Result};
use crate::driver::event::Event;
use crate::driver::launch::Ready;
use crate::driver::memory::Place;
use crate::driver::memory_operation::Operation;
use crate::driver::rect::{self, Extent, Region, Side};
use crate::driver::work::Work;
use engine::memory::BadRange;
use engine::memory::host::HostRange;

/// What a node does.
#[derive(Clone)]
pub(crate) enum Action {
    Kernel(Arc<KernelNode>),
    Copy(Arc<CopyNode>),
    Fill(Fill),
    Host(HostNode),
    /// The graph of this handle, which the node owns.
    Child(usize),
    Empty,
    Record(EventNode),
    Wait(EventNode),
    Alloc(AllocNode),
    /// Frees memory that a node of some graph allocates.
    Free(Arc<GraphMemory>),
    /// Memory operations, one after the other.
    Operations(Arc<Batch>),
}

impl Action {
    /// `CUgraphNodeType`
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Action::Kernel(_) => 0,
            Action::Copy(_) => 1,
            Action::Fill(_) => 2,
            Action::Host(_) => 3,
            Action::Child(_) => 4,
            Action::Empty => 5,
            Action::Wait(_) => 6,
            Action::Record(_) => 7,
            Action::Alloc(_) => 10,
            Action::Free(_) => 11,
            Action::Operations(_) => 12,
        }
    }

    /// Whether it can be switched off in an executable graph.
    pub(crate) fn can_be_disabled(&self) -> bool {
        matches!(self, Action::Kernel(_) | Action::Copy(_) | Action::Fill(_))
    }

    /// Whether it allocates or frees memory of a graph.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Action::Alloc(_) | Action::Free(_))
    }
}

/// Values of `CUlaunchAttributeValue`, by `CUlaunchAttributeID`.
pub(crate) type Attributes = BTreeMap<u32, [u64; 8]>;

/// `CU_LAUNCH_ATTRIBUTE_PRIORITY`
pub(crate) const PRIORITY: u32 = 8;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`
pub(crate) const COOPERATIVE: u32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`
const CLUSTER: u32 = 4;

/// A launch of a kernel.
pub(crate) struct KernelNode {
    pub(crate) ready: Ready,
    pub(crate) attributes: Attributes,
    /// The `CUkernel` that the function was made of for the node; 0 for none.
    pub(crate) library_kernel: usize,
    arguments: Arc<Arguments>,
}

/// The parameters where a program can read them: it is given pointers to each. They stay where they are when a node gets
/// other ones, for the program may still have the pointers.
struct Arguments {
    values: Box<[Word]>,
    addresses: Box<[usize]>,
    /// The bytes of all of them, and the list by which they are handed over as one buffer, if they were.
    size: Box<usize>,
    extra: Option<Box<[usize]>>,
}

/// Room for a part of the parameters, as aligned as any of them can be.
#[repr(align(16))]
#[derive(Default)]
struct Word([AtomicU64; 2]);

impl Arguments {
    fn of(ready: &Ready, packed: bool) -> Self {
        const BUFFER: usize = 1;
        const SIZE: usize = 2;
        let bytes = ready.params.len();
        let values: Box<[Word]> = (0..bytes.div_ceil(16)).map(|_| Word::default()).collect();
        let base = values.as_ptr().addr();
        let params = ready.function.kernel.params();
        let addresses = params.map(|(offset, _)| base + offset as usize).collect();
        let size = Box::new(bytes);
        let list = || [BUFFER, base, SIZE, std::ptr::from_ref(&*size).addr(), 0].into();
        let arguments = Arguments {
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

    /// Whether a program would be told of the same parameters, in the same form.
    fn is_alike(&self, other: &Arguments) -> bool {
        let offsets = |of: &Arguments| -> Vec<usize> {
            let base = of.values.as_ptr().addr();
            of.addresses.iter().map(|at| at - base).collect()
        };
        self.size == other.size
            && self.extra.is_some() == other.extra.is_some()
            && offsets(self) == offsets(other)
    }
}

impl KernelNode {
    /// `packed`: a program is told of the arguments as one buffer.
    pub(crate) fn new(mut ready: Ready, attributes: Attributes, packed: bool) -> Self {
        if let Some(value) = attributes.get(&COOPERATIVE) {
            ready.shape.cooperative = value[0] as u32 != 0;
        }
        if let Some(&[xy, z, ..]) = attributes.get(&CLUSTER) {
            let cluster = [xy as u32, (xy >> 32) as u32, z as u32];
            if cluster != [0; 3] {
                ready.shape.cluster = Some(cluster);
            }
        }
        KernelNode {
            arguments: Arc::new(Arguments::of(&ready, packed)),
            ready,
            attributes,
            library_kernel: 0,
        }
    }

    /// Addresses of what a program reads the arguments from, as long as the node is as it is: `kernelParams`, `extra`.
    pub(crate) fn arguments(&self) -> (usize, usize) {
        match &self.arguments.extra {
            Some(extra) => (0, extra.as_ptr().addr()),
            None if self.arguments.addresses.is_empty() => (0, 0),
            None => (self.arguments.addresses.as_ptr().addr(), 0),
        }
    }

    /// Takes the place of another launch: what that said lies where, stays true as far as it can.
    pub(crate) fn replace(mut self, old: &KernelNode) -> Self {
        if self.arguments.is_alike(&old.arguments) {
            old.arguments.write(&self.ready.params);
            self.arguments = old.arguments.clone();
        }
        self
    }

    /// The same launch with other attributes.
    pub(crate) fn with_attributes(&self, attributes: Attributes) -> Self {
        let packed = self.arguments.extra.is_some();
        let mut node = KernelNode::new(self.ready.clone(), attributes, packed);
        node.library_kernel = self.library_kernel;
        node
    }
}

/// A copy of a row, a rectangle or a box.
pub(crate) struct CopyNode {
    pub(crate) to: Side,
    pub(crate) from: Side,
    pub(crate) extent: Extent,
    reach: [Region; 2],
}

impl CopyNode {
    /// `host` vouches for memory of the program, as long as the node may run.
    pub(crate) fn new(
        to: Side,
        from: Side,
        extent: Extent,
        host: &impl Fn(u64, u64) -> HostRange,
    ) -> Result<Self> {
        if extent.is_empty() {
            return Err(Error::INVALID_VALUE);
        }
        let reach = [to.region(extent, host)?, from.region(extent, host)?];
        let node = CopyNode {
            to,
            from,
            extent,
            reach,
        };
        node.check()?;
        Ok(node)
    }

    /// Whether the memory is there, or will be when a graph has allocated it.
    pub(crate) fn check(&self) -> Result<()> {
        let [to, from] = self.reach.map(|region| find(&region));
        if let Some(place) = to? {
            place.check_writable()?;
        }
        from.map(drop)
    }

    /// Whether the memory on each side is the program's own.
    pub(crate) fn on_host(&self) -> Result<[bool; 2]> {
        let [to, from] = self.reach.map(|region| find(&region));
        Ok([to?, from?].map(|place| place.is_some_and(|p| p.is_pageable())))
    }

    fn run(&self) -> copy::Done {
        let [to, from] = self.reach.map(|region| region.locate());
        match (to, from) {
            (Ok(to), Ok(from)) => rect::copy_rows(&to, &from, self.extent),
            _ => Err(gone(0, self.extent.bytes())),
        }
    }
}

/// The memory that a node names; `None` if a graph is still to allocate it.
fn find(region: &Region) -> Result<Option<Place>> {
    let (address, bytes) = region.range();
    if memory::contain(address, bytes) {
        return Ok(None);
    }
    Ok(Some(region.locate()?.place))
}

/// Whether the memory of a fill is there, or will be when a graph has allocated it.
pub(crate) fn check_fill(fill: &Fill) -> Result<()> {
    if fill.width == 0 || fill.height == 0 {
        return Err(Error::INVALID_VALUE);
    }
    if memory::contain(fill.address, fill.reach()?) {
        return Ok(());
    }
    fill.place().map(drop)
}

/// Memory that a node names and that is not there when its turn comes.
fn gone(address: u64, bytes: u64) -> BadRange {
    BadRange {
        address,
        bytes,
        inside: None,
    }
}

/// A host function.
#[derive(Clone)]
pub(crate) struct HostNode {
    /// Calls the function with the data.
    pub(crate) call: Arc<dyn Fn() + Send + Sync>,
    /// Addresses of the function and of its data.
    pub(crate) function: usize,
    pub(crate) data: usize,
    pub(crate) sync_mode: u32,
}

/// An event that is recorded or waited for.
#[derive(Clone)]
pub(crate) struct EventNode {
    pub(crate) handle: usize,
    pub(crate) event: Arc<Event>,
}

/// Memory that is there once the node has run.
#[derive(Clone)]
pub(crate) struct AllocNode {
    pub(crate) memory: Arc<GraphMemory>,
    pub(crate) ordinal: i32,
}

/// Memory operations.
pub(crate) struct Batch {
    pub(crate) operations: Vec<Operation>,
    /// As a program is told of them: it is given a pointer.
    told: Box<[[u64; 6]]>,
}

impl Batch {
    pub(crate) fn new(operations: Vec<Operation>) -> Arc<Self> {
        let told = operations.iter().map(|operation| operation.params);
        Arc::new(Batch {
            told: told.collect(),
            operations,
        })
    }

    /// Address and number of the `CUstreamBatchMemOpParams`, as long as the node is as it is.
    pub(crate) fn told(&self) -> (usize, usize) {
        (self.told.as_ptr().addr(), self.told.len())
    }
}

/// What a node does when it is its turn, for the graph of all work; `None` for what only joins.
pub(crate) fn work(action: &Action) -> Result<Option<(Work, u64)>> {
    Ok(Some(match action {
        Action::Kernel(kernel) => kernel.ready.work()?,
        Action::Copy(node) => {
            let (cost, node) = (copy::cost(node.extent.bytes()), node.clone());
            let task = move || node.run().map_err(copy::gone);
            (Work::Task(Box::new(task)), cost)
        }
        Action::Fill(fill) => {
            let (cost, fill) = (copy::cost(fill.reach()?), *fill);
            let run = move || {
                let reach = fill.reach().unwrap_or(0);
                let place = fill.place().map_err(|_| gone(fill.address, reach))?;
                fill.run(&place)
            };
            let task = move || run().map_err(copy::gone);
            (Work::Task(Box::new(task)), cost)
        }
        Action::Host(host) => {
            let call = host.call.clone();
            let call = move |fault: u32| {
                if fault == 0 {
                    call();
                }
            };
            (Work::Host(Box::new(call)), 0)
        }
        Action::Free(memory) => {
            let memory = memory.clone();
            let task = move || {
                memory.end_use();
                Ok(())
            };
            (Work::Task(Box::new(task)), 0)
        }
        // A launch takes them one by one.
        Action::Operations(_)
        | Action::Child(_)
        | Action::Empty
        | Action::Record(_)
        | Action::Wait(_)
        | Action::Alloc(_) => return Ok(None),
    }))
}
