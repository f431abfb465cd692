//! Tests of graphs as objects: owners, nodes, edges, and the objects that an executable graph keeps alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cuda_driver::graph::{CopyParams, Edge, FillParams, UserObject};
use cuda_driver::sys::{
    CUgraphDebugDot_flags, CUgraphEdgeData, CUgraphExecUpdateResult, CUgraphInstantiate_flags, CUgraphMem_attribute,
    CUgraphNodeType, CUresult,
};
use cuda_driver::{
    Context, Device, DeviceBuffer, DeviceSliceMut, Event, Function, Graph, GraphExec, LaunchConfig, Module, Stream,
};

use crate::blocking::{SHORT, waits};
use crate::common::{code, driver, driver_version, has_architecture, has_version, needs};
use crate::graph_tools::PTX;

/// A context with the kernels of [`PTX`], a non-blocking stream, and four zeroed values.
struct Setup {
    context: Context,
    module: Module,
    stream: Stream,
    data: DeviceBuffer<u32>,
}

impl Setup {
    fn new() -> Self {
        driver();
        let context = Context::create(Device::first().expect("a device")).expect("a context");
        Self {
            module: Module::from_ptx(&context, PTX).expect("a module"),
            stream: Stream::non_blocking(&context).expect("a stream"),
            data: DeviceBuffer::zeroed(&context, 4).expect("memory"),
            context,
        }
    }

    fn graph(&self) -> Graph {
        Graph::new(&self.context).expect("a graph")
    }

    /// Returns the kernel `step(p, v)`: `*p = 10 * *p + v`.
    fn step(&self) -> Function {
        self.module.function("step").expect("a kernel")
    }

    /// Launches on zeroed memory, waits, and returns the values.
    fn run(&mut self, exec: &GraphExec) -> Vec<u32> {
        self.data.fill_u32(0).expect("a fill");
        self.context.synchronize().expect("its end");
        // SAFETY: the nodes use only the buffer, and nothing else does at the same time.
        unsafe { exec.launch(&self.stream) }.expect("a launch");
        self.stream.synchronize().expect("its end");
        self.data.to_vec().expect("a copy")
    }
}

/// Adds a kernel that appends a digit to the first value.
macro_rules! digit {
    ($s:expr, $graph:expr, $after:expr, $digit:expr) => {{
        // SAFETY: the kernel takes an address and a number.
        unsafe {
            $graph.add_kernel(
                $after,
                &$s.step(),
                LaunchConfig::default(),
                ($s.data.ptr(), $digit as u32),
            )
        }
        .expect("a node")
    }};
}

#[test]
fn nodes_edges_and_queries() {
    let mut s = Setup::new();
    let graph = s.graph();
    // The nodes are not added in the order in which they run.
    let last = digit!(s, graph, &[], 3);
    let first = digit!(s, graph, &[], 1);
    let middle = digit!(s, graph, &[first], 2);
    graph.add_edges(&[Edge::new(middle, last)]).expect("an edge");
    assert_eq!(graph.nodes().expect("nodes"), [last, first, middle]);
    assert_eq!(graph.root_nodes().expect("nodes"), [first]);
    assert_eq!(
        graph.edges().expect("edges"),
        [Edge::new(first, middle), Edge::new(middle, last)]
    );
    assert_eq!(middle.dependencies().expect("edges"), [Edge::new(first, middle)]);
    assert_eq!(middle.dependents().expect("edges"), [Edge::new(middle, last)]);
    assert_eq!(
        first.kind().expect("a kind"),
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
    );
    let params = first.kernel_params().expect("parameters");
    assert_eq!((params.func, params.gridDimX), (s.step().as_raw(), 1));
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(s.run(&exec)[0], 123);

    // Invalid edges.
    let other = s.graph();
    let foreign = other.add_empty(&[]).expect("a node");
    assert_eq!(code(graph.add_empty(&[foreign])).0, 1);
    for edge in [
        Edge::new(first, first),
        Edge::new(first, middle),
        Edge::new(first, foreign),
    ] {
        assert_eq!(code(graph.add_edges(&[edge])).0, 1);
    }
    assert_eq!(code(graph.remove_edges(&[Edge::new(first, last)])).0, 1);
    assert_eq!(code(graph.find_in_clone(first)).0, 1);
    graph.add_edges(&[]).expect("nothing to add");

    // A clone has its own nodes.
    let clone = graph.try_clone().expect("a clone");
    let copied = clone.find_in_clone(middle).expect("a node");
    assert_eq!(copied, clone.nodes().expect("nodes")[2]);
    assert_ne!(copied, middle);
    graph.remove_edges(&[Edge::new(middle, last)]).expect("no edge");
    // SAFETY: the node is not used again.
    unsafe { first.destroy() }.expect("no node");
    assert_eq!(graph.nodes().expect("nodes"), [last, middle]);
    let exec = clone.instantiate().expect("an executable graph");
    graph.destroy().expect("its end");
    clone.destroy().expect("its end");
    assert_eq!(s.run(&exec)[0], 123);
    exec.destroy().expect("its end");
}

#[test]
fn edge_data() {
    if driver_version() < 12030 {
        return needs("a driver of CUDA 12.3, which has edge data");
    }
    // Only these devices start a kernel when the blocks of another have started.
    if !has_architecture(90) {
        return;
    }
    let s = Setup::new();
    let graph = s.graph();
    let first = digit!(s, graph, &[], 1);
    let second = digit!(s, graph, &[], 2);
    // The second kernel starts when all blocks of the first have started.
    let data = CUgraphEdgeData {
        from_port: 2,
        to_port: 0,
        type_: 1,
        ..Default::default()
    };
    let edge = Edge::with_data(first, second, data);
    graph.add_edges(&[edge]).expect("an edge");
    assert_eq!(graph.edges().expect("edges"), [edge]);
    assert_eq!(second.dependencies().expect("edges"), [edge]);
    assert_eq!(first.dependents().expect("edges"), [edge]);
    graph.remove_edges(&[edge]).expect("no edge");
    assert_eq!(graph.edges().expect("edges"), []);
}

#[test]
fn copies_fills_and_their_changes() {
    let mut s = Setup::new();
    let graph = s.graph();
    let mut view = s.data.as_mut_slice();
    let fill = FillParams::u32(view.slice_mut(..2).expect("a part"), 7).expect("a fill");
    let fill_node = graph.add_fill(&[], fill).expect("a node");
    let (from, to) = view.into_split_at(2).expect("two parts");
    let copy = CopyParams::device_to_device(to, &from).expect("a copy");
    let copy_node = graph.add_copy(&[fill_node], copy).expect("a node");
    assert_eq!(copy_node.copy_params().expect("parameters").WidthInBytes, 8);
    assert_eq!(fill_node.fill_params().expect("parameters").as_raw().value, 7);
    assert!(fill_node.copy_params().is_err() && copy_node.fill_params().is_err());
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(s.run(&exec), [7, 7, 7, 7]);

    let bytes = FillParams::u8(s.data.slice_mut(..1).expect("a part"), 1);
    exec.set_fill(fill_node, bytes).expect("a change");
    assert_eq!(s.run(&exec), [0x0101_0101, 0, 0x0101_0101, 0]);
    assert!(exec.is_enabled(fill_node).expect("an answer"));
    exec.set_enabled(copy_node, false).expect("a change");
    assert!(!exec.is_enabled(copy_node).expect("an answer"));
    assert_eq!(s.run(&exec), [0x0101_0101, 0, 0, 0]);
    exec.set_enabled(copy_node, true).expect("a change");
    // An executable graph of another graph has other nodes.
    let other = s.graph().instantiate().expect("an executable graph");
    assert_eq!(code(other.set_fill(fill_node, bytes)).0, 1);

    // Changes of the graph take effect when it is instantiated or the executable graph is updated.
    let halves = FillParams::u16(s.data.slice_mut(..1).expect("a part"), 2).expect("a fill");
    fill_node.set_fill(halves).expect("a change");
    assert_eq!(s.run(&exec)[0], 0x0101_0101);
    exec.update(&graph).expect("an update");
    assert_eq!(s.run(&exec), [0x0002_0002, 0, 0x0002_0002, 0]);

    // Invalid parameters.
    let odd = DeviceBuffer::<u8>::alloc(&s.context, 3).expect("memory");
    // SAFETY: the view is only used for its size.
    let view = || unsafe { DeviceSliceMut::<u8>::from_raw_parts(odd.ptr(), 3, None) };
    assert_eq!(code(FillParams::u16(view(), 1)).0, 1);
    assert_eq!(code(FillParams::u32(view(), 1)).0, 1);
    assert_eq!(
        code(CopyParams::device_to_device(
            view(),
            &DeviceBuffer::<u8>::alloc(&s.context, 4).expect("memory")
        ))
        .0,
        1
    );
    let none = s.data.slice_mut(..0).expect("no part");
    assert_eq!(code(graph.add_fill(&[], FillParams::u8(none, 1))).0, 1);
}

#[test]
fn host_memory_in_copies() {
    let s = Setup::new();
    let (source, mut target) = ([1_u32, 2, 3, 4], [0_u32; 4]);
    let mut memory = DeviceBuffer::<u32>::zeroed(&s.context, 4).expect("memory");
    let graph = s.graph();
    let up = CopyParams::host_to_device(memory.as_mut_slice(), source.as_ptr());
    let up = graph.add_copy(&[], up).expect("a node");
    let down = CopyParams::device_to_host(target.as_mut_ptr(), &memory);
    graph.add_copy(&[up], down).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    // SAFETY: the arrays and the buffer outlive the launch.
    unsafe { exec.launch(&s.stream) }.expect("a launch");
    s.stream.synchronize().expect("its end");
    // SAFETY: the launch is done.
    let written = unsafe { (&raw const target).read_volatile() };
    assert_eq!(written, source);
}

#[test]
fn kernels_change_and_modules_stay_loaded() {
    let mut s = Setup::new();
    let graph = s.graph();
    let node = digit!(s, graph, &[], 1);
    let exec = graph.instantiate().expect("an executable graph");
    let config = LaunchConfig::default();
    {
        let module = Module::from_ptx(&s.context, PTX).expect("a module");
        let put = module.function("put").expect("a kernel");
        // SAFETY: the kernel takes an address and a number.
        unsafe { exec.set_kernel(node, &put, config, (s.data.ptr(), 8_u32)) }.expect("a change");
        // SAFETY: as above.
        unsafe { node.set_kernel(&put, config, (s.data.ptr(), 9_u32)) }.expect("a change");
    }
    assert_eq!(s.run(&exec)[0], 8);
    assert_eq!(node.kernel_params().expect("parameters").blockDimX, 1);
    exec.update(&graph).expect("an update");
    assert_eq!(s.run(&exec)[0], 9);
    let large = LaunchConfig {
        block: 5000.into(),
        ..config
    };
    // SAFETY: as above.
    let refused = unsafe { exec.set_kernel(node, &s.step(), large, (s.data.ptr(), 1_u32)) };
    assert_eq!(code(refused).0, 1);
    let priority = cuda_driver::sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let mut value = node.kernel_attribute(priority).expect("an attribute");
    value.priority = -1;
    // SAFETY: the member is a number, for which any bits are a valid value.
    unsafe { node.set_kernel_attribute(priority, &value) }.expect("a change");
    let other = digit!(s, graph, &[], 1);
    other.copy_kernel_attributes(node).expect("a copy");
    let copied = other.kernel_attribute(priority).expect("an attribute");
    // SAFETY: as above.
    assert_eq!(unsafe { copied.priority }, -1);
}

#[test]
fn host_functions_run_in_each_launch() {
    let mut s = Setup::new();
    let calls = Arc::new(AtomicU32::new(0));
    let add = |amount: u32| {
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(amount, Ordering::SeqCst);
        }
    };
    let graph = s.graph();
    let node = graph.add_host_fn(&[], add(1)).expect("a node");
    assert!(node.host_params().expect("parameters").fn_.is_some());
    let exec = graph.instantiate().expect("an executable graph");
    s.run(&exec);
    s.run(&exec);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    node.set_host_fn(add(10)).expect("a change");
    s.run(&exec);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    exec.set_host_fn(node, add(100)).expect("a change");
    s.run(&exec);
    assert_eq!(calls.load(Ordering::SeqCst), 103);
    exec.update(&graph).expect("an update");
    drop(graph);
    s.run(&exec);
    assert_eq!(calls.load(Ordering::SeqCst), 113);
}

#[test]
fn a_panic_in_a_graph_resumes_in_a_wait() {
    let s = Setup::new();
    let graph = s.graph();
    graph.add_host_fn(&[], || panic!("in a graph")).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    for _ in 0..2 {
        // SAFETY: the graph uses no memory.
        unsafe { exec.launch(&s.stream) }.expect("a launch");
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| s.stream.synchronize()));
        let payload = waited.expect_err("a panic");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"in a graph"));
    }
    s.stream.synchronize().expect("nothing more");
}

/// A launch that is pending when the graph and the executable graph are dropped still calls the function, which is
/// dropped afterwards.
#[test]
fn graphs_dropped_before_their_launch_runs() {
    struct Dropped(mpsc::Sender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let s = Setup::new();
    let (open, gate) = mpsc::channel::<()>();
    let (report, reports) = mpsc::channel();
    s.stream
        .launch_host_fn(move || {
            let _ = gate.recv();
        })
        .expect("a host function");
    let graph = s.graph();
    let value = Dropped(report);
    graph
        .add_host_fn(&[], move || {
            let _ = value.0.send("called");
        })
        .expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    // SAFETY: the graph uses no memory.
    unsafe { exec.launch(&s.stream) }.expect("a launch");
    drop(graph);
    drop(exec);
    open.send(()).expect("a receiver");
    s.stream.synchronize().expect("the end of the work");
    let next = || reports.recv_timeout(Duration::from_secs(60));
    let end = mpsc::RecvTimeoutError::Disconnected;
    assert_eq!([next(), next(), next()], [Ok("called"), Ok("dropped"), Err(end)]);
}

#[test]
fn events_of_nodes_stay_alive() {
    let s = Setup::new();
    let graph = s.graph();
    let made = Arc::new(Event::new(&s.context).expect("an event"));
    let wanted = Arc::new(Event::new(&s.context).expect("an event"));
    let wait = graph.add_wait(&[], &wanted).expect("a node");
    let record = graph.add_record(&[wait], &wanted).expect("a node");
    assert_eq!(wait.awaited_event().expect("an event"), wanted.as_raw());
    record.set_recorded_event(&made).expect("a change");
    wait.set_awaited_event(&wanted).expect("a change");
    assert_eq!(record.recorded_event().expect("an event"), made.as_raw());
    assert!(wait.recorded_event().is_err());
    drop(wanted);
    // NVIDIA's driver crashes if an event of a node is destroyed, so the graph must keep the events alive.
    let exec = graph.instantiate().expect("an executable graph");
    exec.set_awaited_event(wait, &made).expect("a change");
    let last = Arc::new(Event::new(&s.context).expect("an event"));
    exec.set_recorded_event(record, &last).expect("a change");
    let other = Stream::non_blocking(&s.context).expect("a stream");
    let _current = s.context.push().expect("the context");
    let waited = waits(other.as_raw(), SHORT, || {
        made.record(&other).expect("a record");
        drop((graph, made));
        // SAFETY: the graph uses no memory.
        unsafe { exec.launch(&s.stream) }.expect("a launch");
        last.synchronize().expect("its end");
    });
    assert!(waited, "the graph did not wait for the event");
    assert_eq!(Arc::strong_count(&last), 2);
    drop(exec);
    assert_eq!(Arc::strong_count(&last), 1);
}

#[test]
fn graphs_in_graphs() {
    let mut s = Setup::new();
    let inner = s.graph();
    let first = digit!(s, inner, &[], 2);
    let outer = s.graph();
    let before = digit!(s, outer, &[], 1);
    let child = outer.add_child(&[before], &inner).expect("a node");
    let last = digit!(s, outer, &[child], 3);
    // A graph must not contain itself.
    assert_eq!(code(outer.add_child(&[], &outer)).0, 1);
    let own = child.child_graph().expect("a graph");
    assert_eq!(code(own.add_child(&[], &outer)).0, 1);
    assert_eq!(code(outer.add_child(&[], &own)).0, 1);
    // SAFETY: `outer` owns the graph.
    let borrowed = unsafe { Graph::borrow_raw(outer.as_raw()) };
    let child_of_borrowed = borrowed
        .nodes()
        .expect("the nodes")
        .into_iter()
        .find_map(|node| node.child_graph().ok());
    let child_of_borrowed = child_of_borrowed.expect("a graph");
    assert_eq!(code(child_of_borrowed.add_child(&[], &borrowed)).0, 1);
    assert_eq!(code(borrowed.add_child(&[], &child_of_borrowed)).0, 1);
    assert_eq!(code(own.instantiate()), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    let exec = outer.instantiate().expect("an executable graph");
    assert_eq!(s.run(&exec)[0], 123);
    // The node owns a copy of the child graph.
    // SAFETY: the kernel takes an address and a number.
    unsafe { first.set_kernel(&s.step(), LaunchConfig::default(), (s.data.ptr(), 7_u32)) }.expect("a change");
    assert_eq!(s.run(&exec)[0], 123);
    exec.set_child(child, &inner).expect("a change");
    assert_eq!(s.run(&exec)[0], 173);
    assert_eq!(
        code(exec.set_child(child, &outer)),
        CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    );
    digit!(s, inner, &[first], 8);
    let failed = exec.set_child(child, &inner);
    assert_eq!(code(failed), CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    // Changes of the child graph take effect at the next instantiation.
    let node = own.nodes().expect("nodes")[0];
    digit!(s, own, &[node], 9);
    drop(inner);
    let exec = outer.instantiate().expect("an executable graph");
    assert_eq!(s.run(&exec)[0], 1293);
    if has_version(12090) {
        let moved = s.graph();
        digit!(s, moved, &[], 4);
        let raw = moved.as_raw();
        let child = outer.add_owned_child(&[last], moved).expect("a node");
        assert_eq!(child.child_graph().expect("a graph").as_raw(), raw);
        let exec = outer.instantiate().expect("an executable graph");
        assert_eq!(s.run(&exec)[0], 12934);
    }
}

#[test]
fn errors_name_the_node() {
    let mut s = Setup::new();
    let graph = s.graph();
    let first = graph.add_empty(&[]).expect("a node");
    let second = graph.add_empty(&[first]).expect("a node");
    graph.add_edges(&[Edge::new(second, first)]).expect("an edge");
    let error = graph.instantiate().expect_err("a cycle");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(error.to_string().starts_with("cuGraphInstantiate"), "{error}");
    assert_eq!(error.update_result(), None);

    let old = s.graph();
    digit!(s, old, &[], 1);
    let exec = old.instantiate().expect("an executable graph");
    let new = s.graph();
    let fill = FillParams::u8(s.data.as_mut_slice(), 1);
    new.add_fill(&[], fill).expect("a node");
    let error = exec.update(&new).expect_err("another kind");
    let kind = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    assert_eq!((error.update_result(), error.node_index()), (Some(kind), Some(0)));
    assert_eq!(error.instantiate_result(), None);
    let text = error.to_string();
    assert!(
        text.contains("NODE_TYPE_CHANGED") && text.contains("node 0 of the graph, a fill"),
        "{text}"
    );
    // The details survive the conversion by `?`.
    assert_eq!(cuda_driver::Error::from(error).to_string(), text);
    assert_eq!(s.run(&exec)[0], 1);
    let more = s.graph();
    digit!(s, more, &[], 1);
    digit!(s, more, &[], 2);
    let error = exec.update(&more).expect_err("another topology");
    let topology = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    assert_eq!(error.update_result(), Some(topology));
}

#[test]
fn flags_and_uploads() {
    let mut s = Setup::new();
    let graph = s.graph();
    digit!(s, graph, &[], 5);
    let upload = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    let exec = graph
        .instantiate_with(upload, Some(&s.stream))
        .expect("an executable graph");
    exec.upload(&s.stream).expect("an upload");
    assert_eq!(s.run(&exec)[0], 5);
    let free = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let exec = graph.instantiate_with(free, None).expect("an executable graph");
    assert_eq!(exec.flags().expect("flags"), free);
    assert_eq!(code(graph.instantiate_with(CUgraphInstantiate_flags(64), None)).0, 1);
    let path = std::env::temp_dir().join(format!("graph-objects-{}.dot", std::process::id()));
    let verbose = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
    let [plain, text] = [CUgraphDebugDot_flags(0), verbose].map(|flags| {
        graph.write_dot(&path, flags).expect("a file");
        std::fs::read_to_string(&path).expect("the file")
    });
    std::fs::remove_file(&path).expect("no file");
    assert!(plain.starts_with("digraph") && text.starts_with("digraph"), "{text}");
    // The verbose text adds the handle and the parameters of the node.
    assert!(text.len() > plain.len(), "{plain}{text}");
    assert_eq!(code(graph.write_dot("nul\0byte", verbose)).0, 1);
    if driver_version() >= 13010 {
        let ids = [graph.id().expect("a number"), s.graph().id().expect("a number")];
        assert_ne!(ids[0], ids[1]);
        let node = graph.nodes().expect("nodes")[0];
        assert_eq!(node.containing_graph_raw().expect("a graph"), graph.as_raw());
        node.id().expect("a number");
        node.tools_id().expect("a number");
        exec.id().expect("a number");
    } else {
        assert!(graph.id().expect_err("an old driver").is_missing_function());
    }
}

#[test]
fn memory_of_nodes() {
    let mut s = Setup::new();
    let device = Device::first().expect("a device");
    let graph = s.graph();
    let (alloc, memory) = graph.add_alloc(&[], device, 4096).expect("a node");
    assert_eq!(alloc.alloc_params().expect("parameters").dptr, memory.as_raw());
    // SAFETY: the view is only used for its address and its size.
    let view = || unsafe { DeviceSliceMut::<u32>::from_raw_parts(memory, 4, None) };
    let fill = graph
        .add_fill(&[alloc], FillParams::u32(view(), 6).expect("a fill"))
        .expect("a node");
    let copy = CopyParams::device_to_device(s.data.as_mut_slice(), &view()).expect("a copy");
    let copy = graph.add_copy(&[fill], copy).expect("a node");
    let free = graph.add_free(&[copy], memory).expect("a node");
    assert_eq!(free.freed_memory().expect("an address"), memory);
    assert_eq!(code(graph.add_free(&[copy], memory)).0, 1);
    assert_eq!(code(graph.add_free(&[], s.data.ptr())).0, 1);
    assert_eq!(code(graph.add_alloc(&[], device, 0)).0, 1);
    let unsupported = CUresult::CUDA_ERROR_NOT_SUPPORTED;
    assert_eq!(code(graph.try_clone()), unsupported);
    assert_eq!(code(s.graph().add_child(&[], &graph)), unsupported);
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(code(graph.instantiate()), unsupported);
    for _ in 0..2 {
        assert_eq!(s.run(&exec), [6; 4]);
    }
    let used = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    // Checks the mark of reserved memory, because another test resets the mark of used memory.
    let reserved = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    assert!(device.graph_memory(reserved).expect("a number") >= 4096);
    device.trim_graph_memory().expect("a trim");
    device.reset_graph_memory_high(used).expect("a reset");
    let current = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
    assert_eq!(code(device.reset_graph_memory_high(current)).0, 1);
}

#[test]
fn memory_operations() {
    let mut s = Setup::new();
    let write = |address, value| {
        let mut operation = cuda_driver::sys::CUstreamBatchMemOpParams::default();
        operation.writeValue.operation = cuda_driver::sys::CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
        operation.writeValue.address = address;
        operation.writeValue.anonymous1.value = value;
        operation
    };
    let graph = s.graph();
    let (at, next) = (s.data.ptr().as_raw(), s.data.ptr().byte_add(4).as_raw());
    // SAFETY: the addresses are those of the buffer.
    let node = unsafe { graph.add_memory_operations(&[], &[write(at, 1), write(next, 2)]) }.expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(s.run(&exec)[..2], [1, 2]);
    assert_eq!(node.memory_operations().expect("parameters").count, 2);
    // SAFETY: as above.
    unsafe { exec.set_memory_operations(node, &[write(at, 3), write(next, 4)]) }.expect("a change");
    assert_eq!(s.run(&exec)[..2], [3, 4]);
    // SAFETY: as above.
    unsafe { node.set_memory_operations(&[write(at, 5)]) }.expect("a change");
    assert_eq!(node.memory_operations().expect("parameters").count, 1);
}

#[test]
fn user_objects_own_values() {
    struct Dropped(mpsc::Sender<u32>, u32);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(self.1);
        }
    }
    let mut s = Setup::new();
    let (sender, receiver) = mpsc::channel();
    let object = UserObject::new(Dropped(sender.clone(), 1)).expect("a user object");
    drop(object.try_clone().expect("a reference"));
    let graph = s.graph();
    graph.retain(&object).expect("a reference");
    graph.retain(&object).expect("a reference");
    // SAFETY: the graph has references.
    unsafe { graph.release(&object) }.expect("one less");
    let exec = graph.instantiate().expect("an executable graph");
    drop((graph, object));
    s.run(&exec);
    assert!(receiver.try_recv().is_err(), "dropped too early");
    drop(exec);
    // The driver drops the value on a thread of its own.
    assert_eq!(receiver.recv().expect("a value"), 1);
    UserObject::new(Dropped(sender, 2))
        .expect("a user object")
        .release()
        .expect("its end");
    assert_eq!(receiver.recv().expect("a value"), 2);
    // All values were dropped, so no sender is left.
    assert!(receiver.recv().is_err());
}

#[test]
fn values_kept_by_a_graph() {
    let s = Setup::new();
    let value = Arc::new(());
    let graph = s.graph();
    graph.keep(Arc::clone(&value));
    let exec = graph.instantiate().expect("an executable graph");
    let clone = graph.try_clone().expect("a clone");
    drop(graph);
    drop(clone);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(exec);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Nodes of a child graph run in the child's context, so the graphs that contain them keep that context alive.
#[test]
fn contexts_of_child_graphs_stay_alive() {
    let s = Setup::new();
    let graph = s.graph();
    let raw = {
        let other = Context::create(Device::first().expect("a device")).expect("a context");
        let child = Graph::new(&other).expect("a graph");
        child.add_empty(&[]).expect("a node");
        graph.add_child(&[], &child).expect("a node");
        other.as_raw()
    };
    let exec = graph.instantiate().expect("an executable graph");
    drop(graph);
    // SAFETY: the executable graph keeps the context alive.
    let other = unsafe { Context::borrow_raw(raw) };
    other.api_version().expect("a live context");
    drop(exec);

    // An update makes an executable graph use the context of another graph.
    let graph = s.graph();
    graph.add_empty(&[]).expect("a node");
    let exec = graph.instantiate().expect("an executable graph");
    let raw = {
        let other = Context::create(Device::first().expect("a device")).expect("a context");
        let newer = Graph::new(&other).expect("a graph");
        newer.add_empty(&[]).expect("a node");
        exec.update(&newer).expect("an update");
        other.as_raw()
    };
    // SAFETY: as above.
    let other = unsafe { Context::borrow_raw(raw) };
    other.api_version().expect("a live context");
}

#[test]
fn dropped_in_any_order_on_any_thread() {
    let s = Setup::new();
    let graph = s.graph();
    digit!(s, graph, &[], 1);
    let exec = graph.instantiate().expect("an executable graph");
    let Setup {
        context,
        module,
        stream,
        data,
    } = s;
    drop((context, module, data, stream));
    let exec = std::thread::spawn(move || {
        let second = graph.instantiate().expect("the context is still live");
        drop(graph);
        drop(exec);
        second
    });
    drop(exec.join().expect("no panic"));
}

#[test]
fn raw_handles() {
    let mut s = Setup::new();
    let graph = s.graph();
    let node = digit!(s, graph, &[], 4).as_raw();
    let raw = graph.into_raw();
    {
        // SAFETY: the graph lives longer, and is used on this thread only.
        let borrowed = unsafe { Graph::borrow_raw(raw) };
        assert!(borrowed.context().is_none());
        // NVIDIA's driver crashes in these calls if no context is current, so the object checks that first.
        let step = s.step();
        // SAFETY: the function is live.
        let function = unsafe { Function::borrow_raw(step.as_raw()) };
        // SAFETY: the kernel takes an address and a number.
        let added = unsafe { borrowed.add_kernel(&[], &function, LaunchConfig::default(), (s.data.ptr(), 1_u32)) };
        assert_eq!(code(added), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        let handle = borrowed.conditional_handle(None).map(drop);
        assert_eq!(code(handle), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(borrowed.nodes().expect("nodes").len(), 1);
    }
    // SAFETY: the graph is live and has no owner; its module is loaded until the end.
    let graph = unsafe { Graph::from_raw(raw, &s.context) };
    // SAFETY: the node is in the graph.
    let node = unsafe { cuda_driver::graph::Node::from_raw(node, &graph) };
    assert_eq!(node, graph.nodes().expect("nodes")[0]);
    let exec = graph.instantiate().expect("an executable graph").into_raw();
    // SAFETY: the handle is valid during the calls.
    let borrowed = unsafe { GraphExec::borrow_raw(exec) };
    assert_eq!(s.run(&borrowed)[0], 4);
    // SAFETY: the graph is live and has no owner.
    let exec = unsafe { GraphExec::from_raw(exec, &s.context) };
    assert_eq!(exec.as_raw(), borrowed.as_raw());
    exec.destroy().expect("its end");
    let object = UserObject::new(1).expect("a user object").into_raw();
    // SAFETY: the reference is owned.
    drop(unsafe { UserObject::from_raw(object) });
}
