//! Prints graphs in the Graphviz DOT language.

use std::fmt::Write as _;

use cuda_driver_sys::{CUgraphConditionalNodeType as Kind, CUgraphDebugDot_flags as Flags};

use crate::graph::store::{Graph, GraphStore};
use crate::operation::fill::FillValue;
use crate::operation::{Operation, SemaphoreUse};
use crate::state::error::Result;

/// `cuGraphDebugDotPrint`: returns the text of a graph with its child graphs and the bodies of its conditional nodes.
/// The flags choose the details of nodes and edges.
pub(crate) fn print(store: &GraphStore, graph: usize, flags: u32) -> Result<String> {
    let mut text = String::from("digraph dot {\n");
    // The graphs that are not finished, each with the index of its next node. The last one continues first.
    let mut graphs = vec![(graph, 0)];
    while let Some((graph, number)) = graphs.pop() {
        let of = store.graph(graph)?;
        if number == 0 {
            let _ = writeln!(text, "subgraph cluster_{0} {{\nlabel=\"graph_{0}\";", of.id);
        }
        let Some(&handle) = of.nodes.get(number) else {
            text.push_str("}\n");
            continue;
        };
        print_node(store, (of, handle), flags, &mut text)?;
        graphs.push((graph, number + 1));
        let inner = store.node(handle)?.operation.graphs();
        graphs.extend(inner.iter().rev().map(|graph| (*graph, 0)));
    }
    text.push_str("}\n");
    Ok(text)
}

/// Returns true if the flags ask for a detail.
fn wants(flags: u32, detail: Flags) -> bool {
    flags & (detail.0 | Flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0) != 0
}

/// Prints a node without the graphs that it owns.
fn print_node(store: &GraphStore, (of, handle): (&Graph, usize), flags: u32, text: &mut String) -> Result<()> {
    let node = store.node(handle)?;
    let name = |local: u32| format!("graph_{}_node_{local}", of.id);
    let (title, detail, rows) = label(&node.operation);
    let mut label = format!("{}\\n{title}", node.local);
    if wants(flags, Flags::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) {
        let _ = write!(label, "\\nnode handle {handle:#x}");
    }
    if detail.is_some_and(|detail| wants(flags, detail)) {
        let _ = write!(label, "\\n{rows}");
    }
    let label = label.replace('"', "");
    let _ = writeln!(text, "\"{}\" [shape=record label=\"{label}\"];", name(node.local));
    for (number, edge) in node.after.iter().enumerate() {
        let from = store.node(edge.node)?.local;
        let numbered = match wants(flags, Flags::CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO) {
            true => format!(" [headlabel={number}]"),
            false => String::new(),
        };
        let _ = writeln!(text, "\"{}\" -> \"{}\"{numbered};", name(from), name(node.local));
    }
    Ok(())
}

/// Returns the title of a node, the flag that shows its parameters, and the parameters. Neither text contains a
/// backslash, which begins an escape sequence in a label.
fn label(operation: &Operation) -> (String, Option<Flags>, String) {
    let (title, flag, rows) = match operation {
        Operation::Kernel(kernel) => (
            format!("KERNEL {}", kernel.ready.function.kernel.name()),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS),
            format!(
                "grid {:?} block {:?} shared {}",
                kernel.ready.shape.grid, kernel.ready.shape.block, kernel.ready.shape.shared,
            ),
        ),
        Operation::Copy(copy) => (
            "MEMCPY".into(),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS),
            format!(
                "width {} height {} depth {}",
                copy.extent.width, copy.extent.height, copy.extent.depth
            ),
        ),
        Operation::Fill(fill) => {
            let value = match fill.value {
                FillValue::U8(value) => value.into(),
                FillValue::U16(value) => value.into(),
                FillValue::U32(value) => value,
            };
            let size = fill.value.bytes();
            (
                "MEMSET".into(),
                Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS),
                format!(
                    "dptr {:#x} pitch {} value {value} elementSize {size} width {} height {}",
                    fill.address, fill.pitch, fill.width, fill.height
                ),
            )
        }
        Operation::Host(host) => (
            "HOST".into(),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS),
            format!("fn {:#x} userData {:#x}", host.function, host.data),
        ),
        Operation::Child(_) => ("GRAPH".into(), None, String::new()),
        Operation::Conditional(node) => {
            let kind = match node.kind {
                Kind::CU_GRAPH_COND_TYPE_IF => "IF",
                Kind::CU_GRAPH_COND_TYPE_WHILE => "WHILE",
                _ => "SWITCH",
            };
            (
                format!("CONDITIONAL {kind}"),
                Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS),
                format!("handle {:#x}", node.handle.value.handle()),
            )
        }
        Operation::Empty => ("EMPTY".into(), None, String::new()),
        Operation::Record(event) | Operation::Wait(event) => (
            match operation {
                Operation::Record(_) => "EVENT_RECORD".into(),
                _ => "EVENT_WAIT".into(),
            },
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS),
            format!("event {:#x}", event.handle),
        ),
        Operation::Alloc(alloc) => (
            "MEM_ALLOC".into(),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS),
            format!("dptr {:#x} bytesize {}", alloc.memory.address, alloc.memory.bytes),
        ),
        Operation::Operations(batch) => (
            "BATCH_MEM_OP".into(),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS),
            format!("count {}", batch.operations.len()),
        ),
        Operation::Semaphores(SemaphoreUse::Signal) => ("EXT_SEMAS_SIGNAL".into(), None, String::new()),
        Operation::Semaphores(SemaphoreUse::Wait) => ("EXT_SEMAS_WAIT".into(), None, String::new()),
        Operation::Free(memory) => (
            "MEM_FREE".into(),
            Some(Flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS),
            format!("dptr {:#x}", memory.address),
        ),
    };
    (title.replace('\\', ""), flag, rows)
}
