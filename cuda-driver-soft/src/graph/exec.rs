//! Executable graphs: copies of graphs from the time of instantiation, and their launches.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::CUgraphInstantiate_flags as Flags;

use crate::graph::store::{GraphStore, next_id};
use crate::object::graph_memory::GraphMemory;
use crate::object::stream::StreamRef;
use crate::object::user_object;
use crate::object::{foreign_use, leak};
use crate::operation::timeline::{self, recorded};
use crate::operation::{self, EventUse, Operation, fill};
use crate::queue::edge::EdgeData;
use crate::queue::order;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

mod claims;
mod conditional;

use claims::Claims;

pub(crate) const AUTO_FREE: u64 = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0 as u64;
pub(crate) const UPLOAD: u64 = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0 as u64;
const DEVICE_LAUNCH: u64 = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;
const NODE_PRIORITY: u64 = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0 as u64;

static TABLE: Table<Exec> = Table::new(HandleKind::GraphExec);

/// An executable graph.
pub(crate) struct Exec {
    pub(crate) handle: usize,
    /// A number that is unique among all graphs and executable graphs of the process.
    pub(crate) id: u32,
    /// The flags that `cuGraphExecGetFlags` returns.
    pub(crate) flags: u64,
    state: Mutex<ExecState>,
}

/// The part of an executable graph that updates and launches change.
pub(crate) struct ExecState {
    pub(crate) plan: Plan,
    /// The task that ends the last launch: the next launch waits for it.
    pub(super) last: TaskId,
    /// User objects by handle, with the number of references that the executable graph holds.
    pub(super) objects: BTreeMap<usize, u32>,
    claims: Claims,
    /// The place of each node's step in the plan, once a call has asked for one.
    places: OnceCell<HashMap<usize, StepPlace>>,
}

/// The place of a step.
#[derive(Clone, Copy)]
struct StepPlace {
    /// The node whose child graph or body the step is in; `None` in the outermost plan.
    owner: Option<usize>,
    /// Index of the step in its plan.
    index: usize,
}

/// The nodes of a graph, and the order of their launch.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// The steps in the order in which the nodes were created.
    pub(crate) steps: Vec<Step>,
    /// Indices of the steps, each after its dependencies.
    order: Vec<usize>,
}

/// A node of an executable graph.
#[derive(Clone)]
pub(crate) struct Step {
    /// The node that the step was made from.
    pub(crate) node: usize,
    pub(crate) operation: Operation,
    /// The plan of the child graph, if the node has one.
    pub(crate) child: Option<Arc<Plan>>,
    /// The plans of the bodies of a conditional node. A launch that has begun keeps the plans that it began with.
    pub(crate) bodies: Vec<Arc<Plan>>,
    /// Indices of the steps that this step depends on, with the data of the edges.
    pub(crate) after: Vec<(usize, EdgeData)>,
    /// False if launches skip the operation.
    pub(crate) enabled: bool,
}

/// Drops the plans inside it in a loop, because recursive drops of deeply nested plans could overflow the stack.
impl Drop for Plan {
    fn drop(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        while let Some(mut step) = steps.pop() {
            for inner in step.child.take().into_iter().chain(step.bodies.drain(..)) {
                if let Some(mut inner) = Arc::into_inner(inner) {
                    steps.append(&mut inner.steps);
                }
            }
        }
    }
}

impl Plan {
    /// Copies a graph with its child graphs and bodies. Returns `CUDA_ERROR_INVALID_VALUE` if one of the graphs does
    /// not exist, if dependencies form a cycle, or if a conditional handle that was created for one of the graphs has
    /// no node.
    pub(crate) fn of(store: &GraphStore, graph: usize) -> Result<Self> {
        // Each graph comes after the graph that contains it.
        let mut graphs = vec![graph];
        let mut next = 0;
        while let Some(&graph) = graphs.get(next) {
            next += 1;
            for &node in &store.graph(graph)?.nodes {
                graphs.extend(store.node(node)?.operation.graphs());
            }
        }
        let mut plans: HashMap<usize, Arc<Plan>> = HashMap::new();
        for &inner in graphs[1..].iter().rev() {
            let plan = Arc::new(Plan::of_level(store, inner, &mut plans)?);
            plans.insert(inner, plan);
        }
        Plan::of_level(store, graph, &mut plans)
    }

    /// Returns the plan of a graph, given the plans of the graphs directly in it.
    fn of_level(store: &GraphStore, graph: usize, plans: &mut HashMap<usize, Arc<Plan>>) -> Result<Self> {
        let mut plan_of = |graph: &usize| plans.remove(graph).ok_or(Error::CUDA_ERROR_INVALID_VALUE);
        let nodes = &store.graph(graph)?.nodes;
        let index: HashMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
        let at = |node: usize| index.get(&node).copied().ok_or(Error::CUDA_ERROR_INVALID_VALUE);
        if store.has_unused_handle(graph)? {
            host::log!("a conditional handle of the graph has no node: add a conditional node with the handle");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let order = store.order(graph)?;
        let order = order.into_iter().map(at).collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::new();
        for &handle in nodes {
            let node = store.node(handle)?;
            let after = node.after.iter().map(|edge| Ok((at(edge.node)?, edge.data)));
            steps.push(Step {
                node: handle,
                operation: node.operation.clone(),
                child: match &node.operation {
                    Operation::Child(child) => Some(plan_of(child)?),
                    _ => None,
                },
                bodies: match &node.operation {
                    Operation::Conditional(of) => of.bodies.iter().map(&mut plan_of).collect::<Result<_>>()?,
                    _ => Vec::new(),
                },
                after: after.collect::<Result<_>>()?,
                enabled: true,
            });
        }
        Ok(Plan { steps, order })
    }

    /// Returns the places of all steps, also of those in child graphs and bodies, by node.
    fn places(&self) -> HashMap<usize, StepPlace> {
        let mut places = HashMap::new();
        let mut plans = vec![(None, self)];
        while let Some((owner, plan)) = plans.pop() {
            for (index, step) in plan.steps.iter().enumerate() {
                places.insert(step.node, StepPlace { owner, index });
                let inner = step.child.iter().chain(&step.bodies);
                plans.extend(inner.map(|plan| (Some(step.node), &**plan)));
            }
        }
        places
    }

    /// Returns the indices of the steps without dependents, in ascending order.
    pub(crate) fn exits(&self) -> Vec<usize> {
        let mut waited = vec![false; self.steps.len()];
        for (before, _) in self.steps.iter().flat_map(|step| &step.after) {
            waited[*before] = true;
        }
        (0..self.steps.len()).filter(|&i| !waited[i]).collect()
    }

    /// Checks that the memory of copies and fills exists, and that the device can run the kernels. Returns the first
    /// error.
    fn check(&self) -> Result<()> {
        let mut checked = Ok(());
        self.each(&mut |operation| {
            let here = match operation {
                Operation::Copy(copy) => copy.check(),
                Operation::Fill(fill) => fill::check(fill),
                Operation::Kernel(kernel) => kernel.check(),
                _ => Ok(()),
            };
            if checked.is_ok() {
                checked = here;
            }
        });
        checked
    }

    /// Visits all operations, also those of child graphs and bodies.
    fn each(&self, visit: &mut impl FnMut(&Operation)) {
        let mut levels = vec![self.steps.iter()];
        while let Some(level) = levels.last_mut() {
            let Some(step) = level.next() else {
                levels.pop();
                continue;
            };
            visit(&step.operation);
            let inner = step.bodies.iter().rev().chain(&step.child);
            levels.extend(inner.map(|plan| plan.steps.iter()));
        }
    }
}

impl ExecState {
    /// Returns the step of a node, which may also be in a child graph or a body.
    fn step(&mut self, node: usize) -> Option<&mut Step> {
        let places = self.places.get_or_init(|| self.plan.places());
        // The step and the steps that it is in, the outermost last.
        let mut path = vec![(node, *places.get(&node)?)];
        while let Some(owner) = path.last()?.1.owner {
            path.push((owner, *places.get(&owner)?));
        }
        let mut step = self.plan.steps.get_mut(path.pop()?.1.index)?;
        while let Some((node, place)) = path.pop() {
            let is_here = |plan: &Arc<Plan>| plan.steps.get(place.index).is_some_and(|step| step.node == node);
            let mut inner = step.child.iter_mut().chain(&mut step.bodies);
            let plan = inner.find(|plan| is_here(plan))?;
            step = Arc::make_mut(plan).steps.get_mut(place.index)?;
        }
        Some(step)
    }
}

impl Step {
    /// Checks that the step can be enabled and disabled.
    pub(crate) fn check_switch(&self) -> Result<()> {
        let can = self.operation.can_be_disabled();
        can.then_some(()).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the live executable graph with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Exec>> {
    let found = TABLE.get(handle);
    found.map_err(|why| {
        host::log!("executable graph {handle:#x} {why}; the NVIDIA driver may crash here");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Checks the flags of `cuGraphInstantiate`: automatic frees and launches from the device exclude each other.
pub(crate) fn check_flags(flags: u64) -> Result<()> {
    let unknown = flags & !(AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY) != 0;
    if unknown || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}

/// Makes an executable graph from a plan and returns its handle. The executable graph adds references to `objects`, the
/// user objects of its graph.
pub(crate) fn create(plan: Plan, flags: u64, objects: BTreeMap<usize, u32>) -> Result<usize> {
    plan.check()?;
    let claims = Claims::of(&plan)?;
    user_object::retain_all(&objects)?;
    let made = TABLE.insert_with(|handle| Exec {
        handle,
        id: next_id(),
        // Driver 580 returns only these flags from `cuGraphExecGetFlags`.
        flags: flags & (AUTO_FREE | DEVICE_LAUNCH),
        state: Mutex::new(ExecState {
            plan,
            last: 0,
            objects,
            claims,
            places: OnceCell::new(),
        }),
    });
    leak::note("executable graph", &TABLE, made.handle, None);
    Ok(made.handle)
}

/// `cuGraphExecDestroy`: returns immediately; pending launches still run.
pub(crate) fn destroy(exec: &Exec) -> Result<()> {
    let _ = TABLE.remove(exec.handle);
    let (last, objects) = {
        let mut state = exec.lock();
        state.claims = Claims::default();
        (state.last, std::mem::take(&mut state.objects))
    };
    user_object::release_all(objects, &[last])
}

/// A part of a launch that becomes one task.
struct LaunchPiece {
    /// The work, and an estimate of its duration in nanoseconds; `None` for an event and if there is nothing to do.
    work: Option<(Work, u64)>,
    event: Option<EventPoint>,
    /// Indices of the pieces that this one waits for; empty if it waits only for the start of the launch.
    after: Vec<usize>,
}

/// The use of an event by a node.
enum EventPoint {
    Record(EventUse),
    Wait(EventUse),
}

/// A plan whose steps are being divided into pieces.
struct PlanPieces<'p> {
    plan: &'p Plan,
    /// The pieces after which the plan begins.
    entry: Vec<usize>,
    /// The last pieces of each step.
    ends: Vec<Vec<usize>>,
    /// By step: true if another step waits for it.
    waited: Vec<bool>,
    /// The index of the next step in [`Plan::order`].
    next: usize,
}

impl<'p> PlanPieces<'p> {
    fn new(plan: &'p Plan, entry: Vec<usize>) -> Self {
        PlanPieces {
            plan,
            entry,
            ends: vec![Vec::new(); plan.steps.len()],
            waited: vec![false; plan.steps.len()],
            next: 0,
        }
    }

    /// Returns the index of the next step and the pieces that it waits for; `None` if all steps have their pieces.
    fn next(&mut self) -> Option<(usize, Vec<usize>)> {
        let index = *self.plan.order.get(self.next)?;
        self.next += 1;
        let step = &self.plan.steps[index];
        let mut after: Vec<usize> = Vec::new();
        for (before, _) in &step.after {
            self.waited[*before] = true;
            after.extend_from_slice(&self.ends[*before]);
        }
        if step.after.is_empty() {
            after.extend_from_slice(&self.entry);
        }
        Some((index, without_repeats(after)))
    }

    /// Returns the pieces that no other step of the plan waits for; if there are none, those after which the plan
    /// begins.
    fn exits(&self) -> Vec<usize> {
        let exits = (0..self.plan.steps.len()).filter(|&i| !self.waited[i]);
        let exits: Vec<usize> = exits.flat_map(|i| self.ends[i].iter().copied()).collect();
        if exits.is_empty() {
            self.entry.clone()
        } else {
            without_repeats(exits)
        }
    }
}

/// Returns the pieces, each once. Several empty child graphs end with the same pieces: without this, the number of
/// pieces could double with each level of such graphs.
fn without_repeats(mut pieces: Vec<usize>) -> Vec<usize> {
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// Returns the pieces of a plan, each after those that it waits for, and the indices of those that no other piece waits
/// for.
fn pieces(plan: &Plan, stream: &StreamRef) -> Result<(Vec<LaunchPiece>, Vec<usize>)> {
    let mut into: Vec<LaunchPiece> = Vec::new();
    // The plans whose pieces are not complete, the innermost last.
    let mut outer: Vec<PlanPieces<'_>> = Vec::new();
    let mut level = PlanPieces::new(plan, Vec::new());
    loop {
        let Some((index, mut after)) = level.next() else {
            let exits = level.exits();
            let Some(before) = outer.pop() else {
                return Ok((into, exits));
            };
            level = before;
            let index = level.plan.order[level.next - 1];
            level.ends[index] = exits;
            continue;
        };
        let step = &level.plan.steps[index];
        if let Some(child) = &step.child {
            outer.push(std::mem::replace(&mut level, PlanPieces::new(child, after)));
            continue;
        }
        let ends = &mut level.ends;
        if let Operation::Operations(batch) = &step.operation {
            for operation in &batch.operations {
                let work = Some((operation.work(), 0));
                let behind = vec![into.len()];
                let after = std::mem::replace(&mut after, behind);
                into.push(LaunchPiece {
                    work,
                    event: None,
                    after,
                });
            }
            ends[index] = after;
            continue;
        }
        let work = if let Operation::Conditional(node) = &step.operation {
            Some((conditional::work(node.clone(), step.bodies.clone(), stream.clone()), 0))
        } else if step.enabled {
            let work = operation::work(&step.operation)?;
            work.map(|(work, cost)| (recorded(work, || timeline::submit_node(&step.operation, stream)), cost))
        } else {
            None
        };
        let event = match &step.operation {
            Operation::Record(event) => Some(EventPoint::Record(event.clone())),
            Operation::Wait(event) => Some(EventPoint::Wait(event.clone())),
            _ => None,
        };
        ends[index] = vec![into.len()];
        into.push(LaunchPiece { work, event, after });
    }
}

impl Exec {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ExecState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuGraphLaunch`: the nodes run after earlier work on the stream, and after the last launch of this executable
    /// graph.
    pub(crate) fn launch(&self, stream: &StreamRef) -> Result<()> {
        let mut state = self.lock();
        let mut left = self.check_memory(&state.plan)?;
        let (all, exits) = pieces(&state.plan, stream)?;
        let points = known_points(&all);
        // Nothing can fail from here on. Memory that another call has freed in the meantime is not freed again.
        left.retain(|memory| memory.mark_freed());
        use_memory(&state.plan);

        order::note_several();
        let mut recorded = Vec::new();
        // The tasks of the last records of events in this launch, by event handle.
        let mut here = HashMap::new();
        let mut queues = stream.context.queues();
        let mut start = queues.submit(stream.queue, &[state.last], Work::Join, 0);
        if !left.is_empty() {
            let free = move || {
                left.iter().for_each(|memory| memory.end_use());
                Ok(())
            };
            start = queues.submit(stream.queue, &[], Work::Run(Box::new(free)), 0);
        }
        if let Some(begin) = conditional::begin(&state.plan) {
            start = queues.submit(stream.queue, &[start], begin, 0);
        }
        let mut ids: Vec<TaskId> = Vec::with_capacity(all.len());
        for piece in all {
            let mut after: Vec<TaskId> = piece.after.iter().map(|&i| ids[i]).collect();
            if after.is_empty() {
                after.push(start);
            }
            let (work, cost) = match piece.event {
                Some(EventPoint::Record(event)) => {
                    let time = Arc::new(OnceLock::new());
                    let id = scheduler().submit(&after, event.event.record_work(&time), 0);
                    here.insert(event.handle, id);
                    recorded.push((event, id, time));
                    ids.push(id);
                    continue;
                }
                Some(EventPoint::Wait(event)) => {
                    after.extend(here.get(&event.handle).or(points.get(&event.handle)));
                    (Work::Join, 0)
                }
                None => piece.work.unwrap_or((Work::Join, 0)),
            };
            ids.push(scheduler().submit(&after, work, cost));
        }
        let ends: Vec<TaskId> = exits.iter().map(|&i| ids[i]).collect();
        state.last = queues.submit(stream.queue, &ends, Work::Join, 0);
        drop(queues);
        note_copies(&state.plan, stream, state.last);
        for (event, id, time) in recorded {
            event.event.set_recorded(id, time);
        }
        Ok(())
    }

    /// Checks that the memory of the plan's nodes is ready for a launch. Returns memory that is still allocated from
    /// the last launch and must be freed first.
    fn check_memory(&self, plan: &Plan) -> Result<Vec<Arc<GraphMemory>>> {
        let (mut allocs, mut frees) = (Vec::new(), Vec::new());
        plan.each(&mut |operation| match operation {
            Operation::Alloc(alloc) => allocs.push(alloc.memory.clone()),
            Operation::Free(memory) => frees.push(memory.clone()),
            _ => {}
        });
        let ours: HashSet<*const GraphMemory> = allocs.iter().map(Arc::as_ptr).collect();
        if frees
            .iter()
            .any(|m| !ours.contains(&Arc::as_ptr(m)) && !m.is_allocated())
        {
            host::log!("the graph frees memory that is not allocated: launch the graph that allocates it first");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let left: Vec<_> = allocs.iter().filter(|m| m.is_allocated()).cloned().collect();
        if !left.is_empty() && self.flags & AUTO_FREE == 0 {
            host::log!(
                "memory of the last launch is still allocated: free it or set \
                 CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH"
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(left)
    }

    /// Calls `change` with the step of a node, for the `cuGraphExecNode…` functions.
    pub(crate) fn with_step<R>(&self, node: usize, change: impl FnOnce(&mut Step) -> Result<R>) -> Result<R> {
        let mut state = self.lock();
        let step = state.step(node).ok_or_else(|| {
            host::log!("node {node:#x} is not in the graph that the executable graph was made from");
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
        change(step)
    }
}

/// Returns the tasks of the last records of the events that nodes wait for, by event handle. Called before the queues
/// are locked: recording an event locks the event first and then the queues.
fn known_points(all: &[LaunchPiece]) -> HashMap<usize, TaskId> {
    let waits = all.iter().filter_map(|piece| match &piece.event {
        Some(EventPoint::Wait(event)) => Some((event.handle, event.event.task()?)),
        _ => None,
    });
    waits.collect()
}

/// Records the memory of other contexts that the copies of a launch use until `last`, the task that ends the launch. As
/// on an H200, calls that free the memory do not wait for fills and kernels of graphs.
fn note_copies(plan: &Plan, stream: &StreamRef, last: TaskId) {
    plan.each(&mut |operation| {
        if let Operation::Copy(copy) = operation {
            copy.allocations()
                .for_each(|allocation| foreign_use::note(&allocation, stream, last));
        }
    });
}

/// Marks the memory of the nodes as allocated or freed for later calls.
fn use_memory(plan: &Plan) {
    plan.each(&mut |operation| {
        if let Operation::Alloc(alloc) = operation {
            alloc.memory.begin_use();
        }
    });
    plan.each(&mut |operation| {
        if let Operation::Free(memory) = operation {
            memory.mark_freed();
        }
    });
}
