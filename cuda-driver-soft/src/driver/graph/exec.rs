//! Executable graphs: what a graph was when it was instantiated, and its launches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::memory::GraphMemory;
use super::node::{self, Action, EventNode};
use super::{Destroyed, EdgeData, World, next_id, object, world, world_without_fault};
use crate::driver::capture;
use crate::driver::context;
use crate::driver::error::{Error, Result};
use crate::driver::process::{driver, driver_without_fault};
use crate::driver::stream::StreamRef;
use crate::driver::work::{NodeId, Work};
use crate::driver::workers::graph as all_work;

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
pub(crate) const AUTO_FREE: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD`
pub(crate) const UPLOAD: u64 = 2;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY`
const NODE_PRIORITY: u64 = 8;

/// An executable graph.
pub(crate) struct Exec {
    pub(crate) handle: usize,
    pub(crate) id: u32,
    pub(crate) flags: u64,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) plan: Plan,
    /// The end of its last launch: the next one waits for it.
    last: NodeId,
    objects: BTreeMap<usize, u32>,
}

/// The nodes of a graph, as they are launched.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// In the order in which they were made.
    pub(crate) steps: Vec<Step>,
    /// Indices of the steps, each after those that it depends on.
    order: Vec<usize>,
}

#[derive(Clone)]
pub(crate) struct Step {
    /// The node that it was made from.
    pub(crate) node: usize,
    pub(crate) action: Action,
    /// Of a child graph.
    pub(crate) child: Option<Plan>,
    pub(crate) after: Vec<(usize, EdgeData)>,
    pub(crate) enabled: bool,
}

impl Plan {
    pub(crate) fn of(world: &World, graph: usize) -> Result<Self> {
        let nodes = &world.graph(graph)?.nodes;
        let index: HashMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
        let at = |node: usize| index.get(&node).copied().ok_or(Error::INVALID_VALUE);
        let order = world.order(graph)?;
        let order = order.into_iter().map(at).collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::new();
        for &handle in nodes {
            let node = world.node(handle)?;
            let after = node
                .after
                .iter()
                .map(|edge| Ok((at(edge.node)?, edge.data)));
            steps.push(Step {
                node: handle,
                action: node.action.clone(),
                child: match node.action {
                    Action::Child(child) => Some(Plan::of(world, child)?),
                    _ => None,
                },
                after: after.collect::<Result<_>>()?,
                enabled: true,
            });
        }
        Ok(Plan { steps, order })
    }

    /// The step of a node, be it in a child graph.
    pub(crate) fn step(&mut self, node: usize) -> Option<&mut Step> {
        for step in &mut self.steps {
            if step.node == node {
                return Some(step);
            }
            if let Some(found) = step.child.as_mut().and_then(|child| child.step(node)) {
                return Some(found);
            }
        }
        None
    }

    /// Steps that none waits for, in their order.
    pub(crate) fn exits(&self) -> Vec<usize> {
        let waited = |index: usize| {
            self.steps
                .iter()
                .any(|s| s.after.iter().any(|a| a.0 == index))
        };
        (0..self.steps.len()).filter(|&i| !waited(i)).collect()
    }

    /// Whether the memory that copies and fills name is there.
    fn check(&self) -> Result<()> {
        let mut checked = Ok(());
        self.each(&mut |action| {
            let here = match action {
                Action::Copy(copy) => copy.check(),
                Action::Fill(fill) => node::check_fill(fill),
                _ => Ok(()),
            };
            if checked.is_ok() {
                checked = here;
            }
        });
        checked
    }

    /// All actions, those of child graphs too.
    fn each(&self, visit: &mut impl FnMut(&Action)) {
        for step in &self.steps {
            visit(&step.action);
            if let Some(child) = &step.child {
                child.each(visit);
            }
        }
    }
}

impl Step {
    /// Whether it can be switched on and off.
    pub(crate) fn check_switch(&self) -> Result<()> {
        let can = self.action.can_be_disabled();
        can.then_some(()).ok_or(Error::INVALID_VALUE)
    }
}

/// The living executable graph of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Exec>> {
    let found = driver_without_fault()?.graph_execs.get(handle);
    found.map_err(|why| {
        host::log!("executable graph {handle:#x} is {why:?}: a real driver may crash here");
        Error::INVALID_VALUE
    })
}

/// `cuGraphInstantiate`
pub(crate) fn instantiate(graph: usize, flags: u64) -> Result<usize> {
    capture::check_unsafe()?;
    let world = world_without_fault()?;
    if world.graph(graph)?.owner.is_some() {
        host::log!("the graph of a node is instantiated with the node's graph");
        return Err(Error::NOT_SUPPORTED);
    }
    if flags & !(AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY) != 0
        || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH
    {
        return Err(Error::INVALID_VALUE);
    }
    context::current()?;
    let plan = Plan::of(&world, graph)?;
    let objects = world.graph(graph)?.objects.clone();
    drop(world);
    plan.check()?;
    claim(&plan)?;
    for (object, count) in &objects {
        object::retain(*object, *count)?;
    }
    let made = driver()?.graph_execs.insert_with(|handle| Exec {
        handle,
        id: next_id(),
        // As recorded, of these alone.
        flags: flags & (AUTO_FREE | DEVICE_LAUNCH),
        state: Mutex::new(State {
            plan,
            last: 0,
            objects,
        }),
    });
    Ok(made.handle)
}

/// The memory that the nodes allocate becomes one executable graph's: no other can have it at the same time.
fn claim(plan: &Plan) -> Result<()> {
    let mut claimed: Vec<Arc<GraphMemory>> = Vec::new();
    let mut refused = false;
    plan.each(&mut |action| {
        if let Action::Alloc(alloc) = action {
            if alloc.memory.claim() {
                claimed.push(alloc.memory.clone());
            } else {
                refused = true;
            }
        }
    });
    if refused {
        host::log!("a graph that allocates memory is instantiated already");
        for memory in claimed {
            memory.unclaim();
        }
        return Err(Error::NOT_SUPPORTED);
    }
    Ok(())
}

/// `cuGraphExecDestroy`: returns at once; launches that are pending go on.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    let exec = get(handle)?;
    let _ = driver()?.graph_execs.remove(handle);
    let (last, objects) = {
        let mut state = exec.lock();
        (state.last, std::mem::take(&mut state.objects))
    };
    exec.lock().plan.each(&mut |action| {
        if let Action::Alloc(alloc) = action {
            alloc.memory.unclaim();
        }
    });
    for (object, count) in objects {
        object::release(object, count, &[last])?;
    }
    Ok(())
}

/// One piece of a launch.
struct Piece {
    work: Option<(Work, u64)>,
    event: Option<Point>,
    /// Indices of pieces; none for what waits for nothing but the stream.
    after: Vec<usize>,
}

enum Point {
    Record(EventNode),
    Wait(EventNode),
}

/// Adds the pieces of a plan, which begins after `entry`; gives those that none of it waits for.
fn pieces(plan: &Plan, entry: &[usize], into: &mut Vec<Piece>) -> Result<Vec<usize>> {
    // Where the end of each step is found.
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); plan.steps.len()];
    let mut waited = vec![false; plan.steps.len()];
    for &index in &plan.order {
        let step = &plan.steps[index];
        let mut after: Vec<usize> = Vec::new();
        for (before, _) in &step.after {
            waited[*before] = true;
            after.extend_from_slice(&ends[*before]);
        }
        if step.after.is_empty() {
            after.extend_from_slice(entry);
        }
        if let Some(child) = &step.child {
            let inside = pieces(child, &after, into)?;
            ends[index] = if inside.is_empty() { after } else { inside };
            continue;
        }
        if let Action::Operations(batch) = &step.action {
            for operation in &batch.operations {
                let work = Some((operation.work(), 0));
                let behind = vec![into.len()];
                let after = std::mem::replace(&mut after, behind);
                into.push(Piece {
                    work,
                    event: None,
                    after,
                });
            }
            ends[index] = after;
            continue;
        }
        let work = if step.enabled {
            node::work(&step.action)?
        } else {
            None
        };
        let event = match &step.action {
            Action::Record(event) => Some(Point::Record(event.clone())),
            Action::Wait(event) => Some(Point::Wait(event.clone())),
            _ => None,
        };
        ends[index] = vec![into.len()];
        into.push(Piece { work, event, after });
    }
    let exits = (0..plan.steps.len()).filter(|&i| !waited[i]);
    Ok(exits.flat_map(|i| ends[i].clone()).collect())
}

impl Exec {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuGraphLaunch`: after what is on the stream, and after its own last launch.
    pub(crate) fn launch(&self, stream: &StreamRef) -> Result<()> {
        let mut state = self.lock();
        let left = self.check_memory(&state.plan)?;
        let mut all = Vec::new();
        let exits = pieces(&state.plan, &[], &mut all)?;
        let points = known_points(&all);
        use_memory(&state.plan);

        let mut recorded = Vec::new();
        let mut lanes = stream.context.lanes();
        let mut start = lanes.submit(stream.lane, &[state.last], Work::Join, 0);
        if !left.is_empty() {
            let free = move || {
                left.iter().for_each(|memory| memory.end_use());
                Ok(())
            };
            start = lanes.submit(stream.lane, &[], Work::Task(Box::new(free)), 0);
        }
        let mut ids: Vec<NodeId> = Vec::with_capacity(all.len());
        for piece in all {
            let mut after: Vec<NodeId> = piece.after.iter().map(|&i| ids[i]).collect();
            if after.is_empty() {
                after.push(start);
            }
            let (work, cost) = match piece.event {
                Some(Point::Record(event)) => {
                    let time = Arc::new(OnceLock::new());
                    let id = all_work().submit(&after, event.event.record_work(&time), 0);
                    recorded.push((event, id, time));
                    ids.push(id);
                    continue;
                }
                Some(Point::Wait(event)) => {
                    let here = recorded
                        .iter()
                        .rev()
                        .find(|(e, ..)| e.handle == event.handle);
                    let before = points.get(&event.handle).copied();
                    after.extend(here.map(|(_, id, _)| *id).or(before));
                    (Work::Join, 0)
                }
                None => piece.work.unwrap_or((Work::Join, 0)),
            };
            ids.push(all_work().submit(&after, work, cost));
        }
        let ends: Vec<NodeId> = exits.iter().map(|&i| ids[i]).collect();
        state.last = lanes.submit(stream.lane, &ends, Work::Join, 0);
        drop(lanes);
        for (event, id, time) in recorded {
            event.event.set_recorded(id, time);
        }
        Ok(())
    }

    /// Whether the memory of its nodes is as a launch needs it; what is still allocated from the last one, and is freed
    /// first.
    fn check_memory(&self, plan: &Plan) -> Result<Vec<Arc<GraphMemory>>> {
        let (mut allocs, mut frees) = (Vec::new(), Vec::new());
        plan.each(&mut |action| match action {
            Action::Alloc(alloc) => allocs.push(alloc.memory.clone()),
            Action::Free(memory) => frees.push(memory.clone()),
            _ => {}
        });
        let ours = |memory: &Arc<GraphMemory>| allocs.iter().any(|m| Arc::ptr_eq(m, memory));
        if frees.iter().any(|m| !ours(m) && !m.is_allocated()) {
            host::log!("the graph is to free memory that is not allocated");
            return Err(Error::INVALID_VALUE);
        }
        let left: Vec<_> = allocs
            .iter()
            .filter(|m| m.is_allocated())
            .cloned()
            .collect();
        if !left.is_empty() && self.flags & AUTO_FREE == 0 {
            host::log!("memory of the graph's last launch is still allocated");
            return Err(Error::INVALID_VALUE);
        }
        for memory in &left {
            memory.leave();
        }
        Ok(left)
    }

    /// The graph that a program has asked for by `cuGraphExecNode…`: a step of a node.
    pub(crate) fn with_step<R>(
        &self,
        node: usize,
        change: impl FnOnce(&mut Step) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.lock();
        let step = state.plan.step(node).ok_or_else(|| {
            host::log!("node {node:#x} is none that the executable graph was made from");
            Error::INVALID_VALUE
        })?;
        change(step)
    }
}

/// What the events that are waited for recorded before the launch. Asked before the lanes are locked, which who records an
/// event locks after the event.
fn known_points(all: &[Piece]) -> HashMap<usize, NodeId> {
    let waits = all.iter().filter_map(|piece| match &piece.event {
        Some(Point::Wait(event)) => Some((event.handle, event.event.node()?)),
        _ => None,
    });
    waits.collect()
}

/// Notes what the nodes will have allocated and freed, as far as calls are concerned.
fn use_memory(plan: &Plan) {
    plan.each(&mut |action| {
        if let Action::Alloc(alloc) = action {
            alloc.memory.begin_use();
        }
    });
    plan.each(&mut |action| {
        if let Action::Free(memory) = action {
            memory.leave();
        }
    });
}

/// `cuGraphDestroy`
pub(crate) fn destroy_graph(graph: usize) -> Result<()> {
    let destroyed: Destroyed = {
        let mut world = world();
        world.destroy(graph)?
    };
    destroyed.end()
}
