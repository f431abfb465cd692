//! Prints graphs in the Graphviz DOT language.

use std::fmt::Write as _;

use cuda_driver_sys::CUgraphConditionalNodeType as Kind;

use crate::graph::store::GraphStore;
use crate::operation::{Operation, SemaphoreUse};
use crate::state::error::Result;

/// `cuGraphDebugDotPrint`: prints a graph with its child graphs and bodies.
pub(crate) fn print(store: &GraphStore, graph: usize) -> Result<String> {
    let mut text = String::from("digraph dot {\n");
    cluster(store, graph, &mut text)?;
    text.push_str("}\n");
    Ok(text)
}

fn cluster(store: &GraphStore, graph: usize, text: &mut String) -> Result<()> {
    let of = store.graph(graph)?;
    let name = |local: u32| format!("graph_{}_node_{local}", of.id);
    let _ = writeln!(text, "subgraph cluster_{0} {{\nlabel=\"graph_{0}\";", of.id);
    for &handle in &of.nodes {
        let node = store.node(handle)?;
        let label = label(&node.operation).replace(['"', '\\'], "");
        let _ = writeln!(
            text,
            "\"{}\" [shape=record label=\"{}\\n{label}\"];",
            name(node.local),
            node.local,
        );
        for edge in &node.after {
            let from = store.node(edge.node)?.local;
            let _ = writeln!(text, "\"{}\" -> \"{}\";", name(from), name(node.local));
        }
        match &node.operation {
            Operation::Child(child) => cluster(store, *child, text)?,
            Operation::Conditional(conditional) => {
                for body in &conditional.bodies {
                    cluster(store, *body, text)?;
                }
            }
            _ => {}
        }
    }
    text.push_str("}\n");
    Ok(())
}

fn label(operation: &Operation) -> String {
    match operation {
        Operation::Kernel(kernel) => format!(
            "KERNEL {} grid {:?} block {:?} shared {}",
            kernel.ready.function.kernel.name(),
            kernel.ready.shape.grid,
            kernel.ready.shape.block,
            kernel.ready.shape.shared,
        ),
        Operation::Copy(copy) => format!("MEMCPY {} bytes", copy.extent.bytes()),
        Operation::Fill(fill) => format!("MEMSET {:#x} width {} height {}", fill.address, fill.width, fill.height),
        Operation::Host(host) => format!("HOST {:#x}", host.function),
        Operation::Child(_) => "GRAPH".into(),
        Operation::Conditional(node) => {
            let kind = match node.kind {
                Kind::CU_GRAPH_COND_TYPE_IF => "IF",
                Kind::CU_GRAPH_COND_TYPE_WHILE => "WHILE",
                _ => "SWITCH",
            };
            format!("CONDITIONAL {kind} {:#x}", node.handle.value.handle())
        }
        Operation::Empty => "EMPTY".into(),
        Operation::Record(event) => format!("EVENT_RECORD {:#x}", event.handle),
        Operation::Wait(event) => format!("EVENT_WAIT {:#x}", event.handle),
        Operation::Alloc(alloc) => format!("MEM_ALLOC {:#x} {} bytes", alloc.memory.address, alloc.memory.bytes),
        Operation::Operations(batch) => format!("BATCH_MEM_OP {}", batch.operations.len()),
        Operation::Semaphores(SemaphoreUse::Signal) => "EXT_SEMAS_SIGNAL".into(),
        Operation::Semaphores(SemaphoreUse::Wait) => "EXT_SEMAS_WAIT".into(),
        Operation::Free(memory) => format!("MEM_FREE {:#x}", memory.address),
    }
}
