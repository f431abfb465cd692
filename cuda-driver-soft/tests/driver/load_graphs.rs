//! Load tests of graphs with conditional nodes, of captures, and of memory and events that several processes share.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Context, Kernel, check, cuda, in_child, ptr};
use crate::stream::{NON_BLOCKING, stream};
use cuda_driver_sys::*;

/// The size of a load.
struct Load {
    threads: u32,
    /// Launches by each thread of graphs with a loop, and as many of captured graphs. A multiple of 10.
    launches: u32,
    /// Processes that share the memory of the first one.
    processes: u32,
    /// Launches on shared memory by each process, the first one included, in each of four rounds.
    shared: u32,
}

const SMALL: Load = Load {
    threads: 4,
    launches: 20,
    processes: 2,
    shared: 40,
};
const LARGE: Load = Load {
    threads: 32,
    launches: 2_000,
    processes: 8,
    shared: 5_000,
};

/// Returns a module with two kernels. `count(handle, p, limit)` increments `*p` and sets the handle's value to 1 if the
/// result is less than the limit, else to 0. `add(p)` adds 1 to `*p` for each thread, atomically across processes.
fn kernels() -> CString {
    let text = "
.version 6.4
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 handle, .param .u64 p, .param .u32 limit) {
    .reg .u64 %rd<3>; .reg .u32 %r<4>; .reg .pred %p;
    ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [p]; ld.param.u32 %r2, [limit];
    ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;
    setp.lt.u32 %p, %r1, %r2; selp.u32 %r3, 1, 0, %p;
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1; st.param.b32 [b], %r3;
      call cudaGraphSetConditional, (a, b); }
    ret;
}
.visible .entry add(.param .u64 p) {
    .reg .u64 %rd;
    ld.param.u64 %rd, [p];
    red.relaxed.sys.global.add.u32 [%rd], 1;
    ret;
}
";
    CString::new(text).unwrap()
}

/// The functions of one module and the module's context, as numbers, which threads can share.
#[derive(Clone, Copy)]
struct Functions {
    context: usize,
    count: usize,
    add: usize,
}

fn function(module: CUmodule, name: &std::ffi::CStr) -> usize {
    let mut function = null_mut();
    check(unsafe { cuda().cuModuleGetFunction(&mut function, module, name.as_ptr()) });
    function as usize
}

/// Adds a node that launches a function with one thread.
fn kernel_node(graph: CUgraph, after: &[CUgraphNode], function: usize, arguments: &mut [*mut c_void]) -> CUgraphNode {
    let params = CUDA_KERNEL_NODE_PARAMS_v2 {
        func: function as CUfunction,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: arguments.as_mut_ptr(),
        ..Default::default()
    };
    let mut node = null_mut();
    check(unsafe { cuda().cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), &params) });
    node
}

/// Adds a node that sets a word to 0.
fn fill_node(graph: CUgraph, after: &[CUgraphNode], cell: CUdeviceptr, context: CUcontext) -> CUgraphNode {
    let params = CUDA_MEMSET_NODE_PARAMS {
        dst: cell,
        elementSize: 4,
        width: 1,
        height: 1,
        ..Default::default()
    };
    let mut node = null_mut();
    check(unsafe { cuda().cuGraphAddMemsetNode(&mut node, graph, after.as_ptr(), after.len(), &params, context) });
    node
}

unsafe extern "system" fn add_one(data: *mut c_void) {
    // SAFETY: the node's data is a counter that lives until the launches of its graph have ended.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

/// Returns a graph that sets `cells[1]` to 0, counts it up to `limit` in a loop, adds 1 to `cells[0]`, and calls a
/// host function, which adds 1 to `called`.
fn looping(functions: Functions, cells: CUdeviceptr, limit: u32, called: &AtomicU32) -> CUgraph {
    let cuda = cuda();
    let context = functions.context as CUcontext;
    let (mut graph, mut node, mut handle) = (null_mut(), null_mut(), 0);
    check(unsafe { cuda.cuGraphCreate(&mut graph, 0) });
    check(unsafe { cuda.cuGraphConditionalHandleCreate(&mut handle, graph, context, 1, 1) });
    let fill = fill_node(graph, &[], cells + 4, context);
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        ..Default::default()
    };
    params.anonymous1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
        size: 1,
        phGraph_out: null_mut(),
        ctx: context,
    };
    check(unsafe { cuda.cuGraphAddNode_v2(&mut node, graph, &fill, null(), 1, &mut params) });
    // SAFETY: the call above wrote the address of an array of one body, which lives as long as the node.
    let body = unsafe { *params.anonymous1.conditional.phGraph_out };
    let (mut cell, mut limit) = (cells + 4, limit);
    kernel_node(
        body,
        &[],
        functions.count,
        &mut [ptr(&mut handle), ptr(&mut cell), ptr(&mut limit)],
    );
    let mut cell = cells;
    let add = kernel_node(graph, &[node], functions.add, &mut [ptr(&mut cell)]);
    let host = CUDA_HOST_NODE_PARAMS {
        fn_: Some(add_one),
        userData: (&raw const *called).cast_mut().cast(),
    };
    check(unsafe { cuda.cuGraphAddHostNode(&mut node, graph, &add, 1, &host) });
    graph
}

/// Captures work of two streams, which each add 1 to `cells[2]`, and returns its graph. The second stream forks from
/// the first and joins it again.
fn captured(functions: Functions, cells: CUdeviceptr, streams: [CUstream; 2]) -> CUgraph {
    let cuda = cuda();
    let add = Kernel {
        module: null_mut(),
        function: functions.add as CUfunction,
    };
    let (mut graph, mut fork, mut join) = (null_mut(), null_mut(), null_mut());
    let mut cell = cells + 8;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    unsafe {
        check(cuda.cuEventCreate(&mut fork, 2));
        check(cuda.cuEventCreate(&mut join, 2));
        check(cuda.cuStreamBeginCapture_v2(streams[0], mode));
        check(cuda.cuEventRecord(fork, streams[0]));
        check(cuda.cuStreamWaitEvent(streams[1], fork, 0));
        check(add.launch(1, 1, streams[1], &mut [ptr(&mut cell)]));
        check(cuda.cuEventRecord(join, streams[1]));
        check(add.launch(1, 1, streams[0], &mut [ptr(&mut cell)]));
        check(cuda.cuStreamWaitEvent(streams[0], join, 0));
        check(cuda.cuStreamEndCapture(streams[0], &mut graph));
        check(cuda.cuEventDestroy(fork));
        check(cuda.cuEventDestroy(join));
    }
    graph
}

/// Makes and launches graphs with a loop and captured graphs, 10 launches of each. All threads use the same functions;
/// each has its own graphs, streams and memory.
fn graphs_of_one_thread(load: &Load, functions: Functions, thread: u32) {
    let cuda = cuda();
    check(unsafe { cuda.cuCtxSetCurrent(functions.context as CUcontext) });
    let (limit, called) = (2 + thread % 5, AtomicU32::new(0));
    let streams = [stream(NON_BLOCKING), stream(NON_BLOCKING)];
    let mut cells = 0;
    unsafe {
        check(cuda.cuMemAlloc(&mut cells, 12));
        check(cuda.cuMemsetD32Async(cells, 0, 3, streams[0]));
        for round in 1..=load.launches / 10 {
            let graphs = [
                looping(functions, cells, limit, &called),
                captured(functions, cells, streams),
            ];
            for graph in graphs {
                let mut exec = null_mut();
                check(cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
                for _ in 0..10 {
                    check(cuda.cuGraphLaunch(exec, streams[0]));
                }
                check(cuda.cuGraphExecDestroy(exec));
                check(cuda.cuGraphDestroy(graph));
            }
            let mut values = [0_u32; 3];
            check(cuda.cuMemcpyDtoHAsync(values.as_mut_ptr().cast(), cells, 12, streams[0]));
            check(cuda.cuStreamSynchronize(streams[0]));
            assert_eq!(values, [10 * round, limit, 20 * round], "thread {thread}");
            assert_eq!(called.load(Ordering::Relaxed), 10 * round, "thread {thread}");
        }
        check(cuda.cuMemFree(cells));
        for stream in streams {
            check(cuda.cuStreamDestroy(stream));
        }
    }
}

fn graphs(load: &Load) {
    let context = Context::new();
    let module = Kernel::from_ptx(&kernels(), "add").module;
    let functions = Functions {
        context: context.0 as usize,
        count: function(module, c"count"),
        add: function(module, c"add"),
    };
    std::thread::scope(|scope| {
        for thread in 0..load.threads {
            scope.spawn(move || graphs_of_one_thread(load, functions, thread));
        }
    });
    check(unsafe { cuda().cuModuleUnload(module) });
}

/// Adds 1 to a word with each of `load.shared` launches.
fn additions(load: &Load, word: CUdeviceptr) {
    let (cuda, mut word) = (cuda(), word);
    let kernel = Kernel::from_ptx(&kernels(), "add");
    let stream = stream(NON_BLOCKING);
    for _ in 0..load.shared {
        check(kernel.launch(1, 1, stream, &mut [ptr(&mut word)]));
    }
    check(unsafe { cuda.cuStreamSynchronize(stream) });
    check(unsafe { cuda.cuStreamDestroy(stream) });
    check(unsafe { cuda.cuModuleUnload(kernel.module) });
}

/// Environment variable with the handle of the shared memory. Only the other processes have it.
const MEMORY: &str = "CUDA_SOFT_TEST_MEMORY";
/// Environment variable with the handle of the shared event.
const EVENT: &str = "CUDA_SOFT_TEST_EVENT";

/// Returns a handle as hexadecimal digits.
fn text<T: Copy>(handle: &T) -> String {
    assert_eq!(size_of::<T>(), 64);
    // SAFETY: handles have 64 bytes.
    let bytes = unsafe { &*std::ptr::from_ref(handle).cast::<[u8; 64]>() };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the handle with these hexadecimal digits.
fn handle<T: Copy>(text: &str) -> T {
    assert_eq!((size_of::<T>(), text.len()), (64, 128));
    let bytes: [u8; 64] = std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
    // SAFETY: handles have 64 bytes, for which any bits are a valid value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// Opens the memory and the event of the first process four times, and adds to the memory each time.
fn other_process(load: &Load, memory: &str) {
    let (cuda, _context) = (cuda(), Context::new());
    let event = handle(&std::env::var(EVENT).unwrap());
    for _ in 0..4 {
        let (mut word, mut opened) = (0, null_mut());
        unsafe {
            check(cuda.cuIpcOpenMemHandle(&mut word, handle(memory), 1));
            check(cuda.cuIpcOpenEventHandle(&mut opened, event));
            check(cuda.cuStreamWaitEvent(null_mut(), opened, 0));
            check(cuda.cuEventSynchronize(opened));
            additions(load, word);
            check(cuda.cuEventDestroy(opened));
            check(cuda.cuIpcCloseMemHandle(word));
        }
    }
}

/// Several processes add to one word, each through its own mapping.
fn processes(load: &Load, test: &str) {
    if !cfg!(target_os = "linux") {
        return; // handles of memory need Linux
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (mut word, mut event, mut result) = (0, null_mut(), 0_u32);
    let (mut memory, mut shared) = (CUipcMemHandle::default(), CUipcEventHandle::default());
    unsafe {
        check(cuda.cuMemAlloc(&mut word, 4));
        check(cuda.cuMemsetD32(word, 0, 1));
        check(cuda.cuEventCreate(&mut event, 6));
        check(cuda.cuIpcGetMemHandle(&mut memory, word));
        check(cuda.cuIpcGetEventHandle(&mut shared, event));
    }
    let children: Vec<_> = (0..load.processes)
        .map(|_| {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", test, "--include-ignored", "--nocapture"]);
            command.env(MEMORY, text(&memory)).env(EVENT, text(&shared));
            command.spawn().unwrap()
        })
        .collect();
    for _ in 0..4 {
        additions(load, word);
        check(unsafe { cuda.cuEventRecord(event, null_mut()) });
    }
    for mut child in children {
        let status = child.wait().unwrap();
        assert!(status.success(), "a process that shares the memory failed: {status}");
    }
    unsafe {
        check(cuda.cuMemcpyDtoH(ptr(&mut result), word, 4));
        check(cuda.cuEventDestroy(event));
        check(cuda.cuMemFree(word));
    }
    assert_eq!(result, 4 * load.shared * (load.processes + 1));
}

fn run(load: &Load, test: &str) {
    if let Ok(memory) = std::env::var(MEMORY) {
        return other_process(load, &memory);
    }
    graphs(load);
    processes(load, test);
}

#[test]
fn a_small_load_of_graphs() {
    let test = "load_graphs::a_small_load_of_graphs";
    in_child(test, &[], || run(&SMALL, test));
}

#[test]
#[ignore = "takes minutes"]
fn a_large_load_of_graphs() {
    let test = "load_graphs::a_large_load_of_graphs";
    in_child(test, &[], || run(&LARGE, test));
}
