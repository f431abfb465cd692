//! Pictures of graphs, in the language of Graphviz.

use std::fmt::Write as _;

use super::World;
use super::node::Action;
use crate::driver::error::Result;

/// `cuGraphDebugDotPrint`: a graph with its child graphs.
pub(crate) fn print(world: &World, graph: usize) -> Result<String> {
    let mut text = String::from("digraph dot {\n");
    cluster(world, graph, &mut text)?;
    text.push_str("}\n");
    Ok(text)
}

fn cluster(world: &World, graph: usize, text: &mut String) -> Result<()> {
    let of = world.graph(graph)?;
    let name = |local: u32| format!("graph_{}_node_{local}", of.id);
    let _ = writeln!(text, "subgraph cluster_{0} {{\nlabel=\"graph_{0}\";", of.id);
    for &handle in &of.nodes {
        let node = world.node(handle)?;
        let label = label(&node.action).replace(['"', '\\'], "");
        let _ = writeln!(
            text,
            "\"{}\" [shape=record label=\"{}\\n{label}\"];",
            name(node.local),
            node.local,
        );
        for edge in &node.after {
            let from = world.node(edge.node)?.local;
            let _ = writeln!(text, "\"{}\" -> \"{}\";", name(from), name(node.local));
        }
        if let Action::Child(child) = node.action {
            cluster(world, child, text)?;
        }
    }
    text.push_str("}\n");
    Ok(())
}

fn label(action: &Action) -> String {
    match action {
        Action::Kernel(kernel) => format!(
            "KERNEL {} grid {:?} block {:?} shared {}",
            kernel.ready.function.kernel.name(),
            kernel.ready.shape.grid,
            kernel.ready.shape.block,
            kernel.ready.shape.shared,
        ),
        Action::Copy(copy) => format!("MEMCPY {} bytes", copy.extent.bytes()),
        Action::Fill(fill) => format!(
            "MEMSET {:#x} width {} height {}",
            fill.address, fill.width, fill.height
        ),
        Action::Host(host) => format!("HOST {:#x}", host.function),
        Action::Child(_) => "GRAPH".into(),
        Action::Empty => "EMPTY".into(),
        Action::Record(event) => format!("EVENT_RECORD {:#x}", event.handle),
        Action::Wait(event) => format!("EVENT_WAIT {:#x}", event.handle),
        Action::Alloc(alloc) => format!(
            "MEM_ALLOC {:#x} {} bytes",
            alloc.memory.address, alloc.memory.bytes
        ),
        Action::Operations(batch) => format!("BATCH_MEM_OP {}", batch.operations.len()),
        Action::Free(memory) => format!("MEM_FREE {:#x}", memory.address),
    }
}
