//! Conditional nodes of executable graphs. When a node runs, it reads the value of its handle and submits the body that
//! the value selects.

use std::sync::Arc;

use cuda_driver_sys::CUgraphConditionalNodeType as Kind;

use super::{LaunchPiece, Plan, pieces};
use crate::object::stream::StreamRef;
use crate::operation::Operation;
use crate::operation::conditional::{ConditionalHandle, ConditionalNode};
use crate::queue::scheduler::scheduler;
use crate::queue::work::{Continuation, Fault, TaskId, Work};
use crate::state::error::Result;

/// Returns the handles of all conditional nodes of a plan.
fn handles(plan: &Plan) -> Vec<Arc<ConditionalHandle>> {
    let mut all = Vec::new();
    plan.each(&mut |operation| {
        if let Operation::Conditional(node) = operation {
            all.push(node.handle.clone());
        }
    });
    all
}

/// Returns the work that begins a launch for all conditional handles of a plan: from then on, kernels can set their
/// values, and those that have a launch value get it. Returns `None` if the plan has no conditional nodes.
pub(super) fn begin(plan: &Plan) -> Option<Work> {
    let handles = handles(plan);
    (!handles.is_empty()).then(|| {
        Work::Run(Box::new(move || {
            handles.iter().for_each(|handle| handle.begin());
            Ok(())
        }))
    })
}

/// Returns the work of a conditional node: the body that the value selects and, for a `while` node, the same work again
/// after the body.
pub(super) fn work(node: Arc<ConditionalNode>, bodies: Vec<Arc<Plan>>, stream: StreamRef) -> Work {
    Work::Then(Box::new(move || {
        let Some(body) = node.chosen().and_then(|index| bodies.get(index)) else {
            return Ok(Continuation {
                after: Vec::new(),
                work: Work::Join,
            });
        };
        let after = submit(body, &stream).map_err(|code| Fault {
            code,
            message: format!("the body of a conditional node cannot be launched: {code:?}"),
            details: Vec::new(),
            stderr: None,
        })?;
        let work = match node.kind {
            Kind::CU_GRAPH_COND_TYPE_WHILE => work(node, bodies, stream),
            _ => Work::Join,
        };
        Ok(Continuation { after, work })
    }))
}

/// Submits the nodes of a body, and returns the tasks that end it.
fn submit(body: &Plan, stream: &StreamRef) -> Result<Vec<TaskId>> {
    let (all, exits) = pieces(body, stream)?;
    let mut ids: Vec<TaskId> = Vec::with_capacity(all.len());
    // Event nodes are not supported in bodies, so no piece has an event.
    for LaunchPiece { work, after, .. } in all {
        let after: Vec<TaskId> = after.iter().map(|&piece| ids[piece]).collect();
        let (work, cost) = work.unwrap_or((Work::Join, 0));
        ids.push(scheduler().submit(&after, work, cost));
    }
    Ok(exits.iter().map(|&piece| ids[piece]).collect())
}
