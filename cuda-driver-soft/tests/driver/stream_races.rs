//! Tests of the check for races between work of different streams: pairs of programs, with and without the order that
//! CUDA requires.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use crate::common::{Context, Kernel, check, cuda, lacks_software, ptr, software};
use crate::stream::{Door, hold};
use cuda_driver_soft::{Checks, Finding};
use cuda_driver_sys::*;

/// Kernels: `bump` adds 1 to an element per thread, `look` copies an element per thread, and `count` atomically adds 1
/// to one word for each thread. `count` has no line information, so findings give its line in this text.
const TEXT: &str = "
.version 7.7
.target sm_52
.address_size 64
.visible .entry bump(.param .b64 at)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    .loc 1 3 1
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, 1;
    .loc 1 4 1
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry look(.param .b64 at, .param .b64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [at];
    ld.param.u64 %rd3, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    add.u64 %rd3, %rd3, %rd2;
    .loc 1 9 1
    ld.global.u32 %r2, [%rd1];
    .loc 1 10 1
    st.global.u32 [%rd3], %r2;
    ret;
}
.visible .entry count(.param .b64 at)
{
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [at];
    red.global.add.u32 [%rd1], 1;
    ret;
}
.file 1 \"streams.cu\"
";

const BYTES: usize = 256;
const NON_BLOCKING: u32 = 1;

/// Two streams that do not wait for each other or for the default stream, an event, three buffers, and the kernels.
struct Work {
    a: CUstream,
    b: CUstream,
    event: CUevent,
    x: CUdeviceptr,
    y: CUdeviceptr,
    z: CUdeviceptr,
    bump: Kernel,
    look: Kernel,
    count: Kernel,
}

impl Work {
    fn new() -> Self {
        let text = CString::new(TEXT).unwrap();
        let mut work = Work {
            a: null_mut(),
            b: null_mut(),
            event: null_mut(),
            x: 0,
            y: 0,
            z: 0,
            bump: Kernel::from_ptx(&text, "bump"),
            look: Kernel::from_ptx(&text, "look"),
            count: Kernel::from_ptx(&text, "count"),
        };
        let cuda = cuda();
        unsafe {
            check(cuda.cuStreamCreate(&mut work.a, NON_BLOCKING));
            check(cuda.cuStreamCreate(&mut work.b, NON_BLOCKING));
            check(cuda.cuEventCreate(&mut work.event, 0));
            for buffer in [&mut work.x, &mut work.y, &mut work.z] {
                check(cuda.cuMemAlloc(buffer, BYTES));
                check(cuda.cuMemsetD8(*buffer, 0, BYTES));
            }
            check(cuda.cuCtxSynchronize());
        }
        work
    }

    /// Adds 1 to 32 elements: the first half of a buffer.
    fn bump(&self, stream: CUstream, mut at: CUdeviceptr) {
        check(self.bump.launch(1, 32, stream, &mut [ptr(&mut at)]));
    }

    /// Copies 32 elements: the first half of a buffer.
    fn look(&self, stream: CUstream, mut at: CUdeviceptr, mut out: CUdeviceptr) {
        check(self.look.launch(1, 32, stream, &mut [ptr(&mut at), ptr(&mut out)]));
    }

    /// Adds 64 to the first element of a buffer.
    fn count(&self, stream: CUstream, mut at: CUdeviceptr) {
        check(self.count.launch(2, 32, stream, &mut [ptr(&mut at)]));
    }

    fn record(&self, stream: CUstream) {
        check(unsafe { cuda().cuEventRecord(self.event, stream) });
    }

    fn wait(&self, stream: CUstream) {
        check(unsafe { cuda().cuStreamWaitEvent(stream, self.event, 0) });
    }

    fn synchronize(&self, stream: CUstream) {
        check(unsafe { cuda().cuStreamSynchronize(stream) });
    }

    fn fill(&self, stream: CUstream, at: CUdeviceptr) {
        check(unsafe { cuda().cuMemsetD8Async(at, 1, BYTES, stream) });
    }
}

/// Runs a program, and returns the findings of the check for races.
fn found(program: impl FnOnce(&Work)) -> Vec<Finding> {
    let _context = Context::new();
    let checks = cuda_driver_soft::check(Checks::RACE).unwrap();
    program(&Work::new());
    check(unsafe { cuda().cuCtxSynchronize() });
    checks.finish()
}

/// Checks that a program has no race.
#[track_caller]
fn right(program: impl FnOnce(&Work)) {
    if software() {
        assert_eq!(found(program), []);
    }
}

/// Checks that a program has one race, between accesses in these lines of kernels; the line of the later access is the
/// first. Copies and fills have no line.
#[track_caller]
fn wrong(lines: &[u32], program: impl FnOnce(&Work)) {
    if lacks_software() {
        return;
    }
    let found = found(program);
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = found[0].to_string();
    assert_eq!(found[0].check, Checks::RACE, "{text}");
    let at: Vec<u32> = found[0].places.iter().map(|place| place.line()).collect();
    assert_eq!(at, lines, "{text}");
    let allocation = found[0].allocation.as_ref().unwrap();
    assert_eq!((allocation.bytes, allocation.offset), (BYTES as u64, 0), "{text}");
}

#[test]
fn kernels_of_two_streams_need_an_event() {
    wrong(&[9, 4], |w| {
        w.bump(w.a, w.x);
        w.look(w.b, w.x, w.y);
    });
    wrong(&[4, 9], |w| {
        w.look(w.a, w.x, w.y);
        w.bump(w.b, w.x);
    });
    // In the first program the event is recorded too early; in the second the wrong stream waits for it.
    wrong(&[9, 4], |w| {
        w.record(w.a);
        w.bump(w.a, w.x);
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
    });
    wrong(&[9, 4], |w| {
        w.bump(w.a, w.x);
        w.record(w.a);
        w.wait(w.a);
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.record(w.a);
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
    });
    // The order goes through a third stream.
    right(|w| {
        w.bump(w.a, w.x);
        w.record(w.a);
        w.wait(null_mut());
        w.bump(null_mut(), w.y);
        w.record(null_mut());
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
    });
}

#[test]
fn the_host_orders_what_it_waits_for() {
    wrong(&[9, 4], |w| {
        w.bump(w.a, w.x);
        w.synchronize(w.b);
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.synchronize(w.a);
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        check(unsafe { cuda().cuCtxSynchronize() });
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.record(w.a);
        check(unsafe { cuda().cuEventSynchronize(w.event) });
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        while unsafe { cuda().cuStreamQuery(w.a) }.0 != 0 {
            std::thread::yield_now();
        }
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.record(w.a);
        while unsafe { cuda().cuEventQuery(w.event) }.0 != 0 {
            std::thread::yield_now();
        }
        w.look(w.b, w.x, w.y);
    });
}

#[test]
fn the_default_stream_orders_blocking_streams() {
    wrong(&[9, 4], |w| {
        w.bump(null_mut(), w.x);
        w.look(w.b, w.x, w.y);
    });
    let blocking = || {
        let mut stream = null_mut();
        check(unsafe { cuda().cuStreamCreate(&mut stream, 0) });
        stream
    };
    right(|w| {
        let stream = blocking();
        w.bump(null_mut(), w.x);
        w.look(stream, w.x, w.y);
        w.bump(null_mut(), w.y);
    });
    // A copy on the blocking stream.
    right(|w| {
        let stream = blocking();
        let host = [0_u8; BYTES];
        w.bump(null_mut(), w.x);
        check(unsafe { cuda().cuMemcpyHtoDAsync(w.x, host.as_ptr().cast(), BYTES, stream) });
    });
    // After the stream is destroyed, its work is still ordered before the default stream's.
    right(|w| {
        let stream = blocking();
        w.bump(stream, w.x);
        check(unsafe { cuda().cuStreamDestroy(stream) });
        w.look(null_mut(), w.x, w.y);
    });
    wrong(&[9, 4], |w| {
        let (one, two) = (blocking(), blocking());
        w.bump(one, w.x);
        w.look(two, w.x, w.y);
    });
}

#[test]
fn copies_and_fills_need_an_order_too() {
    let copy_back = |w: &Work| {
        let mut host = [0_u8; BYTES];
        check(unsafe { cuda().cuMemcpyDtoH(host.as_mut_ptr().cast(), w.x, BYTES) });
    };
    wrong(&[9], |w| {
        w.fill(w.a, w.x);
        w.look(w.b, w.x, w.y);
    });
    right(|w| {
        w.fill(w.a, w.x);
        w.record(w.a);
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
    });
    wrong(&[], |w| {
        w.fill(w.a, w.x);
        check(unsafe { cuda().cuMemcpyDtoDAsync(w.y, w.x, BYTES, w.b) });
    });
    right(|w| {
        w.fill(w.a, w.x);
        check(unsafe { cuda().cuMemcpyDtoDAsync(w.y, w.x, BYTES, w.a) });
    });
    // The host waits for the copy, but not for the kernel.
    wrong(&[4], |w| {
        w.bump(w.a, w.x);
        copy_back(w);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.synchronize(w.a);
        copy_back(w);
        w.bump(w.b, w.x);
    });
}

/// Submits a copy of a buffer whose source the call reads, as a row or as a box.
fn copy_in_call(from: CUdeviceptr, to: CUdeviceptr, stream: CUstream, is_box: bool) {
    let order = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    let operand = |ptr| {
        let mut operand = CUmemcpy3DOperand {
            type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
            ..CUmemcpy3DOperand::default()
        };
        operand.op.ptr = CUmemcpy3DOperand_st__op__ptr {
            ptr,
            ..CUmemcpy3DOperand_st__op__ptr::default()
        };
        operand
    };
    let mut copy = CUDA_MEMCPY3D_BATCH_OP {
        src: operand(from),
        dst: operand(to),
        srcAccessOrder: order,
        ..CUDA_MEMCPY3D_BATCH_OP::default()
    };
    (copy.extent.width, copy.extent.height, copy.extent.depth) = (BYTES / 4, 4, 1);
    let mut attributes = CUmemcpyAttributes {
        srcAccessOrder: order,
        ..CUmemcpyAttributes::default()
    };
    let (mut from, mut to, mut bytes, mut first, mut failed) = (from, to, BYTES, 0, 0);
    check(unsafe {
        if is_box {
            cuda().cuMemcpy3DBatchAsync(1, &mut copy, &mut failed, 0, stream)
        } else {
            let kinds = &mut attributes;
            cuda().cuMemcpyBatchAsync(
                &mut to,
                &mut from,
                &mut bytes,
                1,
                kinds,
                &mut first,
                1,
                &mut failed,
                stream,
            )
        }
    });
}

#[test]
fn a_call_that_reads_the_source_of_a_copy_needs_an_order_too() {
    for is_box in [false, true] {
        let copy = |w: &Work| copy_in_call(w.x, w.y, w.a, is_box);
        // The call does not wait for the stream.
        wrong(&[], |w| {
            w.fill(w.a, w.x);
            copy(w);
        });
        right(|w| {
            w.fill(w.a, w.x);
            w.synchronize(w.a);
            copy(w);
            w.fill(w.b, w.x);
        });
    }
}

/// A kernel reads the target of a copy of memory that nothing has written.
#[test]
fn a_copy_that_is_read_by_the_call_does_not_initialise() {
    if lacks_software() {
        return;
    }
    for is_box in [false, true] {
        let _context = Context::new();
        let checks = cuda_driver_soft::check(Checks::INIT).unwrap();
        let work = Work::new();
        let (mut from, cuda) = (0, cuda());
        check(unsafe { cuda.cuMemAlloc(&mut from, BYTES) });
        check(unsafe { cuda.cuMemsetD8(from, 0, BYTES / 4) });
        copy_in_call(from, work.x, work.a, is_box);
        work.look(work.a, work.x, work.y);
        check(unsafe { cuda.cuCtxSynchronize() });
        let found = checks.finish();
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].check, found[0].places[0].line()), (Checks::INIT, 9));
    }
}

#[test]
fn page_locked_memory_needs_an_order_too() {
    let page_locked = || {
        let mut memory: *mut c_void = null_mut();
        check(unsafe { cuda().cuMemAllocHost(&mut memory, BYTES) });
        unsafe { memory.cast::<u8>().write_bytes(0, BYTES) };
        memory
    };
    // A kernel writes the memory while a copy to the device reads it.
    wrong(&[4], |w| {
        let memory = page_locked();
        w.bump(w.a, memory.addr() as u64);
        check(unsafe { cuda().cuMemcpyHtoDAsync(w.x, memory, BYTES, w.b) });
    });
    right(|w| {
        let memory = page_locked();
        w.bump(w.a, memory.addr() as u64);
        check(unsafe { cuda().cuMemcpyHtoDAsync(w.x, memory, BYTES, w.a) });
    });
}

#[test]
fn independent_work_of_streams_is_right() {
    right(|w| {
        w.look(w.a, w.x, w.y);
        w.look(w.b, w.x, w.z);
    });
    right(|w| {
        w.bump(w.a, w.x);
        w.bump(w.b, w.x + 128);
    });
    right(|w| {
        w.count(w.a, w.x);
        w.count(w.b, w.x);
    });
    wrong(&[9, 40], |w| {
        w.count(w.a, w.x);
        w.look(w.b, w.x, w.y);
    });
    // Memory of a pool that another stream uses again.
    right(|w| {
        for stream in [w.a, w.b, w.a] {
            let mut memory = 0;
            check(unsafe { cuda().cuMemAllocAsync(&mut memory, BYTES, stream) });
            w.fill(stream, memory);
            w.bump(stream, memory);
            check(unsafe { cuda().cuMemFreeAsync(memory, stream) });
        }
    });
}

unsafe extern "system" fn nothing(_: *mut c_void) {}

#[test]
fn host_functions_and_events_order_work() {
    right(|w| {
        w.bump(w.a, w.x);
        check(unsafe { cuda().cuLaunchHostFunc(w.a, Some(nothing), null_mut()) });
        w.record(w.a);
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
    });
    // A host function may signal the program that the work before the function is done.
    right(|w| {
        w.bump(w.a, w.x);
        check(unsafe { cuda().cuLaunchHostFunc(w.a, Some(nothing), null_mut()) });
        w.look(w.b, w.x, w.y);
    });
    // Many rounds over two streams.
    right(|w| {
        let mut second = null_mut();
        check(unsafe { cuda().cuEventCreate(&mut second, 0) });
        for _ in 0..20 {
            w.bump(w.a, w.x);
            w.record(w.a);
            w.wait(w.b);
            w.look(w.b, w.x, w.y);
            check(unsafe { cuda().cuEventRecord(second, w.b) });
            check(unsafe { cuda().cuStreamWaitEvent(w.a, second, 0) });
        }
    });
}

/// From the submission of a host function on, the check treats the earlier work of its stream as ordered, although that
/// work may not have begun.
#[test]
fn a_host_function_does_not_hide_work_that_has_not_begun() {
    wrong(&[9, 4], |w| {
        let door = Door::default();
        hold(w.a, &door);
        w.bump(w.a, w.x);
        w.look(w.b, w.x, w.y);
        check(unsafe { cuda().cuLaunchHostFunc(w.a, Some(nothing), null_mut()) });
        w.synchronize(w.b);
        door.open();
        w.synchronize(w.a);
    });
    // Work after the submission counts as ordered, even if it runs first.
    right(|w| {
        let door = Door::default();
        hold(w.a, &door);
        w.bump(w.a, w.x);
        check(unsafe { cuda().cuLaunchHostFunc(w.a, Some(nothing), null_mut()) });
        w.look(w.b, w.x, w.y);
        w.synchronize(w.b);
        door.open();
        w.synchronize(w.a);
    });
}

/// Launches a graph of two fills of `x` twice; with `edge`, one after the other.
fn graph(w: &Work, edge: bool) {
    let cuda = cuda();
    let (mut graph, mut exec, mut context) = (null_mut(), null_mut(), null_mut());
    let params = CUDA_MEMSET_NODE_PARAMS {
        dst: w.x,
        value: 3,
        elementSize: 1,
        width: BYTES,
        height: 1,
        ..Default::default()
    };
    let (mut first, mut second) = (null_mut(), null_mut());
    unsafe {
        check(cuda.cuCtxGetCurrent(&mut context));
        check(cuda.cuGraphCreate(&mut graph, 0));
        check(cuda.cuGraphAddMemsetNode(&mut first, graph, std::ptr::null(), 0, &params, context));
        let after = usize::from(edge);
        check(cuda.cuGraphAddMemsetNode(&mut second, graph, &first, after, &params, context));
        check(cuda.cuGraphInstantiate(&mut exec, graph, 0));
        check(cuda.cuGraphLaunch(exec, w.a));
        check(cuda.cuGraphLaunch(exec, w.a));
        check(cuda.cuGraphExecDestroy(exec));
        check(cuda.cuGraphDestroy(graph));
    }
}

#[test]
fn nodes_of_a_graph_need_an_edge() {
    wrong(&[], |w| graph(w, false));
    right(|w| graph(w, true));
    // The work before and after the graph.
    right(|w| {
        w.bump(w.a, w.x);
        graph(w, true);
        w.bump(w.a, w.x);
    });
    wrong(&[4], |w| {
        graph(w, true);
        w.bump(w.b, w.x);
    });
    // A captured fork and join.
    right(|w| {
        let cuda = cuda();
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let (mut graph, mut exec) = (null_mut(), null_mut());
        check(unsafe { cuda.cuStreamBeginCapture(w.a, relaxed) });
        w.bump(w.a, w.x);
        w.record(w.a);
        w.wait(w.b);
        w.look(w.b, w.x, w.y);
        w.look(w.a, w.x, w.z);
        w.record(w.b);
        w.wait(w.a);
        w.bump(w.a, w.x);
        check(unsafe { cuda.cuStreamEndCapture(w.a, &mut graph) });
        check(unsafe { cuda.cuGraphInstantiate(&mut exec, graph, 0) });
        for _ in 0..3 {
            check(unsafe { cuda.cuGraphLaunch(exec, w.a) });
        }
    });
}
