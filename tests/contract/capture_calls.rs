//! Tests of calls during a stream capture, besides those in `capture_rules`: queries of the stream, calls that change
//! the device, events, wrong work, and the thread's capture mode.

use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::capture_rules::{ALWAYS, IMPLICIT, NEVER, UNSAFE, assert_codes, during};
use crate::common::{Codes, driver_version, needs};
use crate::graph_tools::{PTX, Steps, begin, end, event, graph, instantiate, nodes, status, stream};
use crate::{arguments, child, is, ok};

/// Makes a call on the last object of a list, and removes it from the list if the call succeeded.
fn use_up<T: Copy>(list: &mut Vec<T>, call: impl FnOnce(T) -> CUresult) -> CUresult {
    let Some(&last) = list.last() else {
        panic!("no object left")
    };
    let code = call(last);
    if code.0 == 0 {
        list.pop();
    }
    code
}

#[test]
fn calls_about_the_stream() {
    // In a process of its own, because a capture in global mode forbids some calls in all threads.
    child!("calls_about_the_stream", {
        let s = Steps::new();
        let exec = instantiate(graph());
        let mut managed = 0;
        ok!(cuMemAllocManaged(&raw mut managed, 4096, 1));
        let context = s.gpu.context;
        let (data, to) = (s.data, s.data + 64);
        assert_codes!(ALWAYS, |s| cuStreamAttachMemAsync(s, managed, 0, 4));
        assert_codes!(ALWAYS, |s| cuMemPrefetchAsync(managed, 4096, 0, s));
        assert_codes!(ALWAYS, |s| cuMemcpyPeerAsync(to, context, data, context, 64, s));
        let copy = CUDA_MEMCPY3D_PEER {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: data,
            srcContext: context,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: to,
            dstContext: context,
            WidthInBytes: 64,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        assert_codes!(ALWAYS, |s| cuMemcpy3DPeerAsync(&raw const copy, s));
        assert_codes!(ALWAYS, |s| cuGraphUpload(exec, s));
        if driver_version() >= 12080 {
            let mut device = 0;
            assert_codes!(ALWAYS, |s| cuStreamGetDevice(s, &raw mut device));
        } else {
            needs("a driver of CUDA 12.8 or later for cuStreamGetDevice");
        }
        let mut of = null_mut();
        assert_codes!(NEVER, |s| cuStreamGetCtx(s, &raw mut of));
        let policy = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
        let mut value = CUlaunchAttributeValue::default();
        assert_codes!(NEVER, |s| cuStreamGetAttribute(s, policy, &raw mut value));
        // Waits block or spin, as the driver chooses.
        value.syncPolicy = CUsynchronizationPolicy::CU_SYNC_POLICY_AUTO;
        assert_codes!(NEVER, |s| cuStreamSetAttribute(s, policy, &raw const value));

        // Work of several kinds on the null stream.
        let null: CUstream = null_mut();
        let none = s.none;
        assert_codes!(IMPLICIT, |s| cuLaunchKernel(
            none,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null,
            null_mut(),
            null_mut()
        ));
        assert_codes!(IMPLICIT, |s| cuMemcpyDtoDAsync(to, data, 64, null));
        assert_codes!(IMPLICIT, |s| cuMemcpyDtoD(to, data, 64));
        assert_codes!(IMPLICIT, |s| cuMemsetD32(data, 0, 1));
        // A capture cannot begin on the null stream. The attempt does not invalidate a non-blocking stream's capture.
        let relaxed = CUstreamCaptureMode(2);
        let mut on_null = |_| crate::call!(cuStreamBeginCapture(null, relaxed));
        for mode in 0..3 {
            assert_eq!(during(1, mode, &mut on_null), [900, 1, 0], "mode {mode}");
        }
    });
}

#[test]
fn calls_that_change_the_device() {
    child!("calls_that_change_the_device", {
        let s = Steps::new();
        let text = CString::new(PTX).unwrap_or_default();
        let image: *const c_void = text.as_ptr().cast();
        let mut memory = vec![0_u8; 3 * 4096];
        let page: *mut c_void = memory.as_mut_ptr().wrapping_add(4096).cast();
        // A call that succeeds uses up an object. Most calls succeed only in relaxed mode, which has two of the six
        // captures; streams and events can be destroyed in all six.
        let mut modules = Vec::new();
        let mut libraries = Vec::new();
        let mut pools = Vec::new();
        let mut execs = Vec::new();
        let mut streams = Vec::new();
        let mut events = Vec::new();
        let mut props = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            ..CUmemPoolProps::default()
        };
        props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        for _ in 0..2 {
            let (mut module, mut library, mut pool) = (null_mut(), null_mut(), null_mut());
            ok!(cuModuleLoadData(&raw mut module, image));
            let (options, values): (*mut CUjit_option, *mut *mut c_void) = (null_mut(), null_mut());
            ok!(cuLibraryLoadData(
                &raw mut library,
                image,
                options,
                values,
                0,
                null_mut(),
                null_mut(),
                0
            ));
            ok!(cuMemPoolCreate(&raw mut pool, &raw const props));
            modules.push(module);
            libraries.push(library);
            pools.push(pool);
            execs.push(instantiate(graph()));
        }
        for _ in 0..6 {
            streams.push(stream(1));
            events.push(event());
        }
        let (mut made, mut module) = (null_mut(), null_mut());
        let (mut free, mut total) = (0, 0);
        let step = s.step;
        let stack = CUlimit::CU_LIMIT_STACK_SIZE;
        let pool = pools[0];
        assert_codes!(UNSAFE, |s| cuCtxSetLimit(stack, 2048));
        assert_codes!(UNSAFE, |s| cuMemPoolTrimTo(pool, 0));
        assert_codes!(UNSAFE, |s| cuMemPoolCreate(&raw mut made, &raw const props));
        assert_codes!(UNSAFE, |s| use_up(&mut pools, |pool| cuMemPoolDestroy(pool)));
        assert_codes!(UNSAFE, |s| use_up(&mut modules, |module| cuModuleUnload(module)));
        assert_codes!(UNSAFE, |s| use_up(&mut libraries, |library| cuLibraryUnload(library)));
        assert_codes!(UNSAFE, |s| use_up(&mut execs, |exec| cuGraphExecDestroy(exec)));
        assert_codes!(UNSAFE, |s| {
            let code = cuMemHostRegister(page, 4096, 0);
            if code.0 == 0 {
                assert_eq!(cuMemHostUnregister(page).0, 0);
            }
            code
        });
        let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        assert_codes!(NEVER, |s| cuModuleLoadData(&raw mut module, image));
        assert_codes!(NEVER, |s| cuFuncSetAttribute(step, dynamic, 60_000));
        assert_codes!(NEVER, |s| cuMemGetInfo(&raw mut free, &raw mut total));
        assert_codes!(NEVER, |s| cuDeviceGraphMemTrim(0));
        assert_codes!(NEVER, |s| use_up(&mut streams, |stream| cuStreamDestroy(stream)));
        assert_codes!(NEVER, |s| use_up(&mut events, |event| cuEventDestroy(event)));
    });
}

#[test]
fn events_of_a_capture() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (a, other) = (s.stream, stream(1));
    let (mut start, mut stop, mut time) = (null_mut(), null_mut(), 0.0);
    ok!(cuEventCreate(&raw mut start, 0));
    ok!(cuEventCreate(&raw mut stop, 0));
    begin(a);
    is!(c, 0, cuEventRecord(start, a));
    is!(c, 0, cuEventRecord(stop, a));
    // The elapsed time of captured events is refused without harm to the capture.
    is!(c, 907, cuEventElapsedTime(&raw mut time, start, stop));
    assert_eq!(status(a), 1);
    ok!(cuGraphDestroy(end(a)));
    // Once the capture is over, its events cannot be used until they are recorded again.
    is!(c, 1, cuEventQuery(start));
    is!(c, 1, cuEventSynchronize(start));
    is!(c, 1, cuStreamWaitEvent(other, start, 0));
    is!(c, 0, cuEventRecord(start, other));
    is!(c, 0, cuEventRecord(stop, other));
    is!(c, 0, cuEventSynchronize(stop));
    is!(c, 0, cuEventElapsedTime(&raw mut time, start, stop));
    is!(c, 0, cuEventDestroy(start));
    is!(c, 0, cuEventDestroy(stop));
    is!(c, 0, cuStreamDestroy(other));
}

#[test]
fn events_of_all_work_of_a_context() {
    // CUDA 12.5 added cuCtxRecordEvent and cuCtxWaitEvent.
    if driver_version() < 12050 {
        return needs("a driver of CUDA 12.5");
    }
    // In a process of its own, because a capture in global mode forbids some calls in all threads.
    child!("events_of_all_work_of_a_context", {
        let s = Steps::new();
        let mut c = Codes::new();
        let context = s.gpu.context;
        let (done, inside) = (event(), event());
        ok!(cuEventRecord(done, s.stream));
        assert_codes!(ALWAYS, |s| cuCtxRecordEvent(context, done));
        assert_codes!(ALWAYS, |s| cuCtxWaitEvent(context, done));
        // An event of the capture itself, during the capture and after it.
        let recorded = |stream| {
            ok!(cuEventRecord(inside, stream));
            inside
        };
        assert_codes!(ALWAYS, |s| cuCtxWaitEvent(context, recorded(s)));
        is!(c, 1, cuCtxWaitEvent(context, inside));
        is!(c, 0, cuCtxRecordEvent(context, inside));
        is!(c, 0, cuCtxWaitEvent(context, inside));
        is!(c, 0, cuEventSynchronize(inside));
    });
}

#[test]
fn wrong_work_in_a_capture() {
    // In a process of its own, where no other test's graph gets the handle of the destroyed graph.
    child!("wrong_work_in_a_capture", { wrong_work_in_a_capture_alone() });
}

fn wrong_work_in_a_capture_alone() {
    let s = Steps::new();
    let mut c = Codes::new();
    let a = s.stream;
    let mut graph_of = |code: u32, call: &dyn Fn() -> CUresult| {
        begin(a);
        c.is(code, "the call", call().0);
        let after = status(a);
        let mut graph = null_mut();
        let ended = crate::call!(cuStreamEndCapture(a, &raw mut graph)).0;
        (after, ended, graph)
    };
    // Launches that cannot run invalidate the capture.
    let launch = |grid: u32, block: u32, shared: u32| {
        crate::call!(cuLaunchKernel(
            s.none,
            grid,
            1,
            1,
            block,
            1,
            1,
            shared,
            a,
            null_mut(),
            null_mut()
        ))
    };
    for (grid, block, shared) in [(0, 1, 0), (1, 0, 0), (1, 1025, 0), (1, 1, 1 << 20)] {
        assert_eq!(graph_of(1, &|| launch(grid, block, shared)), (2, 901, null_mut()));
    }
    let cooperative = || {
        crate::call!(cuLaunchCooperativeKernel(
            s.none,
            1 << 20,
            1,
            1,
            1024,
            1,
            1,
            0,
            a,
            null_mut()
        ))
    };
    assert_eq!(graph_of(720, &cooperative), (2, 901, null_mut()));
    // The memory of a fill is not checked before the graph is instantiated.
    let (after, ended, graph) = graph_of(0, &|| crate::call!(cuMemsetD32Async(16, 1, 4, a)));
    assert_eq!((after, ended), (1, 0));
    is!(c, 1, cuGraphInstantiateWithFlags(&mut null_mut(), graph, 0));
    is!(c, 0, cuGraphDestroy(graph));
    // CUDA 12.3 added cuStreamBeginCaptureToGraph.
    if driver_version() < 12030 {
        return needs("a driver of CUDA 12.3");
    }
    // A failed capture to an existing graph destroys the graph.
    let into = crate::graph_tools::graph();
    let relaxed = CUstreamCaptureMode(2);
    is!(
        c,
        0,
        cuStreamBeginCaptureToGraph(a, into, ptr::null(), ptr::null(), 0, relaxed)
    );
    c.is(1, "an empty grid", launch(0, 1, 0).0);
    is!(c, 901, cuStreamEndCapture(a, &mut null_mut()));
    is!(c, 1, cuGraphDestroy(into));
}

#[test]
fn arguments_as_one_buffer_stay_one_buffer() {
    let s = Steps::new();
    let mut buffer = [0_u8; 12];
    buffer[..8].copy_from_slice(&s.data.to_ne_bytes());
    buffer[8..].copy_from_slice(&7_u32.to_ne_bytes());
    let mut size = buffer.len();
    let mut extra: [*mut c_void; 5] = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        buffer.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut size).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    begin(s.stream);
    ok!(cuLaunchKernel(
        s.put,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        s.stream,
        null_mut(),
        extra.as_mut_ptr()
    ));
    let graph = end(s.stream);
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    ok!(cuGraphKernelNodeGetParams(nodes(graph)[0], &raw mut params));
    assert!(params.kernelParams.is_null() && !params.extra.is_null());
    let exec = instantiate(graph);
    assert_eq!(s.run(exec), 7);
    // Arguments that are passed as an array of pointers stay an array.
    let mut arguments = arguments![s.data, 8_u32];
    let mut pointers = arguments.pointers();
    begin(s.stream);
    let pointers = pointers.as_mut_ptr();
    ok!(cuLaunchKernel(
        s.put,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        s.stream,
        pointers,
        null_mut()
    ));
    let other = end(s.stream);
    ok!(cuGraphKernelNodeGetParams(nodes(other)[0], &raw mut params));
    assert!(!params.kernelParams.is_null() && params.extra.is_null());
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphDestroy(other));
}

#[test]
fn any_number_is_a_capture_mode_of_a_thread() {
    crate::common::driver();
    let exchanged = std::thread::spawn(|| {
        let mut mode = CUstreamCaptureMode(77);
        let mut seen = Vec::new();
        for next in [5, 0, 0] {
            ok!(cuThreadExchangeStreamCaptureMode(&raw mut mode));
            seen.push(mode.0);
            mode.0 = next;
        }
        seen
    });
    assert_eq!(exchanged.join().unwrap_or_default(), [0, 77, 5]);
}
