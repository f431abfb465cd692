//! Updates executable graphs: changes the operation of one node, or takes the operations of all nodes of another graph
//! with the same topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_driver_sys::CUgraphExecUpdateResult as Difference;

use crate::graph::exec::{Exec, Plan, Step};
use crate::object::place::MemoryPlace;
use crate::object::user_object;
use crate::operation::Operation;
use crate::operation::copy::CopyOperation;
use crate::operation::memory_operation::{Batch, MemoryOperation};
use crate::state::error::{Error, Result};

/// The error of a failed update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) difference: Difference,
    /// The node of the new graph that does not match; 0 for none.
    pub(crate) node: usize,
    /// The dependency of `node` that does not match; 0 for none.
    pub(crate) from: usize,
}

/// Checks that the operation of a node of an executable graph may be changed from `old` to `new`.
fn compare(old: &Operation, new: &Operation) -> std::result::Result<(), Difference> {
    match (old, new) {
        (Operation::Kernel(old), Operation::Kernel(new)) => {
            if old.ready.context != new.ready.context {
                return Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED);
            }
            if old.ready.shape.cooperative != new.ready.shape.cooperative {
                return Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
            }
            Ok(())
        }
        (Operation::Copy(old), Operation::Copy(new)) => compare_copies(old, new),
        (Operation::Fill(old), Operation::Fill(new)) => {
            let owner = |address| match MemoryPlace::device(address, 1) {
                Ok(MemoryPlace::Device(allocation, _)) => Some(allocation.owner),
                _ => None,
            };
            let has_rows = |height: u64| height > 1;
            if owner(old.address) != owner(new.address) || has_rows(old.height) != has_rows(new.height) {
                return Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
            }
            Ok(())
        }
        (Operation::Conditional(old), Operation::Conditional(new)) => {
            let same = old.kind == new.kind && old.bodies.len() == new.bodies.len();
            same.then_some(())
                .ok_or(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED)
        }
        (Operation::Alloc(old), Operation::Alloc(new)) if old.memory.address == new.memory.address => Ok(()),
        (Operation::Free(old), Operation::Free(new)) if old.address == new.address => Ok(()),
        (Operation::Alloc(_), Operation::Alloc(_)) | (Operation::Free(_), Operation::Free(_)) => {
            Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED)
        }
        (Operation::Operations(old), Operation::Operations(new)) => {
            // A `CUstreamBatchMemOpParams` begins with its operation type.
            let kind = |operation: &MemoryOperation| operation.params[0] as u32;
            let kinds = |batch: &Batch| -> Vec<u32> { batch.operations.iter().map(kind).collect() };
            if kinds(old) == kinds(new) {
                Ok(())
            } else {
                Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED)
            }
        }
        (old, new) if old.kind() == new.kind() => Ok(()),
        _ => Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED),
    }
}

/// Checks two copies. The source and the target must each stay pageable or not pageable, and the number of dimensions
/// must not change. The manual is stricter: it requires the same contexts and memory types. Here, all memory that the
/// driver allocated or registered counts as one type.
fn compare_copies(old: &CopyOperation, new: &CopyOperation) -> std::result::Result<(), Difference> {
    let sides = |copy: &CopyOperation| copy.are_pageable().ok();
    let dimensions = |copy: &CopyOperation| (copy.extent.height > 1, copy.extent.depth > 1);
    if sides(old) == sides(new) && dimensions(old) == dimensions(new) {
        Ok(())
    } else {
        Err(Difference::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED)
    }
}

impl Exec {
    /// `cuGraphExec…NodeSetParams`: changes the operation of a node for later launches.
    pub(crate) fn set_operation(&self, node: usize, operation: Operation) -> Result<()> {
        self.with_step(node, |step| {
            compare(&step.operation, &operation).map_err(|difference| {
                host::log!("cannot change node {node:#x} of an executable graph: {difference:?}");
                Error::CUDA_ERROR_INVALID_VALUE
            })?;
            step.operation = operation;
            Ok(())
        })
    }

    /// `cuGraphExecChildGraphNodeSetParams`: takes the operations of a graph with the topology of the node's child
    /// graph.
    pub(crate) fn set_child(&self, node: usize, new: &Plan) -> Result<()> {
        self.with_step(node, |step| {
            let child = step.child.as_mut().ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
            let taken = Arc::make_mut(child).take_over(new);
            taken.map_err(|_| Error::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        })
    }

    /// `cuGraphExecUpdate`: takes the operations of a graph with the same topology. `objects` are the user objects of
    /// that graph.
    ///
    /// On success, the executable graph retains these objects and releases its earlier ones, as on driver 580.
    pub(crate) fn update(&self, new: &Plan, objects: BTreeMap<usize, u32>) -> Result<std::result::Result<(), Refusal>> {
        user_object::retain_all(&objects)?;
        let mut state = self.lock();
        if let Err(refusal) = state.plan.take_over(new) {
            drop(state);
            user_object::release_all(objects, &[])?;
            return Ok(Err(refusal));
        }
        let old = std::mem::replace(&mut state.objects, objects);
        let last = state.last;
        drop(state);
        user_object::release_all(old, &[last])?;
        Ok(Ok(()))
    }
}

impl Plan {
    /// Takes the operations of another plan's nodes; changes nothing if that is not possible.
    fn take_over(&mut self, new: &Plan) -> std::result::Result<(), Refusal> {
        // This copies the steps. The plans of child graphs and bodies are copied when they are changed.
        let mut changed = self.clone();
        // The plans and steps that are left to change, the next one last.
        let mut left = vec![Left::Plan(&mut changed, new)];
        while let Some(next) = left.pop() {
            match next {
                Left::Plan(plan, new) => {
                    let pairs = plan.pair(new)?;
                    let steps = plan.steps.iter_mut().zip(pairs);
                    let steps: Vec<_> = steps.map(|(step, (_, with))| (step, &new.steps[with])).collect();
                    left.extend(steps.into_iter().rev().map(|(step, new)| Left::Step(step, new)));
                }
                Left::Step(step, new) => {
                    step.take_over(new)?;
                    let bodies = step.bodies.iter_mut().zip(&new.bodies).rev();
                    left.extend(bodies.map(|(body, new)| Left::Plan(Arc::make_mut(body), new)));
                    if let (Some(child), Some(new)) = (&mut step.child, &new.child) {
                        left.push(Left::Plan(Arc::make_mut(child), new));
                    }
                }
            }
        }
        *self = changed;
        Ok(())
    }

    /// Pairs the steps with those of another plan; the pairs are in the order of this plan's steps. As documented,
    /// pairs exits (steps without dependents) by the order of their nodes' creation, then the dependencies of paired
    /// steps by the order in which they were added.
    fn pair(&self, new: &Plan) -> std::result::Result<Vec<(usize, usize)>, Refusal> {
        let refuse = |node: usize, from: usize| Refusal {
            difference: Difference::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
            node,
            from,
        };
        let (exits, new_exits) = (self.exits(), new.exits());
        if self.steps.len() != new.steps.len() {
            return Err(refuse(0, 0));
        }
        if exits.len() != new_exits.len() {
            // With N old exits and more new ones, driver 580 reports the new exit before the last N. With fewer, it
            // reports the first new exit.
            let extra = new_exits.iter().rev().nth(exits.len()).or(new_exits.first());
            return Err(refuse(extra.map_or(0, |&i| new.steps[i].node), 0));
        }
        let mut partner: Vec<Option<usize>> = vec![None; self.steps.len()];
        let mut taken = vec![false; new.steps.len()];
        let mut todo: Vec<(usize, usize, usize)> = Vec::new();
        todo.extend(exits.into_iter().zip(new_exits).map(|(a, b)| (a, b, 0)));
        while let Some((old, with, dependent)) = todo.pop() {
            let node = new.steps[with].node;
            match partner[old] {
                Some(known) if known == with => continue,
                None if !taken[with] => {}
                _ => return Err(refuse(dependent, node)),
            }
            (partner[old], taken[with]) = (Some(with), true);
            let (before, new_before) = (&self.steps[old].after, &new.steps[with].after);
            if before.len() != new_before.len() {
                return Err(refuse(node, 0));
            }
            for (a, b) in before.iter().zip(new_before) {
                if a.1 != b.1 {
                    return Err(refuse(node, new.steps[b.0].node));
                }
                todo.push((a.0, b.0, node));
            }
        }
        let pairs = partner.into_iter().enumerate();
        let pairs = pairs.map(|(old, with)| Some((old, with?)));
        pairs.collect::<Option<_>>().ok_or(refuse(0, 0))
    }
}

/// A part of an executable graph that an update has still to change, with the part of the other graph whose operations
/// it takes.
enum Left<'p> {
    Plan(&'p mut Plan, &'p Plan),
    Step(&'p mut Step, &'p Step),
}

impl Step {
    /// Takes the operation of another plan's step, but not the plans of its child graph and bodies. A step with a child
    /// graph keeps its operation, which is only the child's handle.
    fn take_over(&mut self, new: &Step) -> std::result::Result<(), Refusal> {
        compare(&self.operation, &new.operation).map_err(|difference| Refusal {
            difference,
            node: new.node,
            from: 0,
        })?;
        if self.child.is_none() || new.child.is_none() {
            self.operation = new.operation.clone();
        }
        Ok(())
    }
}
