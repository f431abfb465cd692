//! Tests of traces and summaries: each test records calls in a process of its own, and reads the files and lines that
//! the driver has written.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, lacks_software, library, ptr};
use crate::stream::{Door, NON_BLOCKING, hold, stream};
use cuda_driver_sys::{
    CUDA_CHILD_GRAPH_NODE_PARAMS, CUdeviceptr, CUgraphChildGraphNodeOwnership, CUgraphNodeParams, CUgraphNodeType,
    CUstreamCaptureMode,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Returns the path of a file that no other process uses.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()))
}

/// Returns the events of a file that may lack its end, as the format permits.
fn events(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.trim_end().trim_end_matches(']').trim_end();
    serde_json::from_str(&format!("{text}\n]")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

type Track = (u64, u64);

fn track(event: &Value) -> Track {
    (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())
}

fn is(event: &Value, phase: &str, name: &str) -> bool {
    event["ph"] == phase && event["name"] == name
}

/// Returns the index of the first event with this phase and name.
#[track_caller]
fn first(events: &[Value], phase: &str, name: &str) -> usize {
    let found = events.iter().position(|event| is(event, phase, name));
    found.unwrap_or_else(|| panic!("no {phase} {name} in {events:#?}"))
}

/// Checks that the times of events never decrease, and that the start and end events of each track nest. Returns the
/// names of the start events without an end.
fn unfinished(events: &[Value]) -> Vec<String> {
    let mut open: BTreeMap<Track, Vec<String>> = BTreeMap::new();
    let mut last = 0.0;
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let time = event["ts"].as_f64().unwrap();
        assert!(time >= last, "{event}");
        last = time;
        let open = open.entry(track(event)).or_default();
        let name = event["name"].as_str().unwrap().to_owned();
        match event["ph"].as_str() {
            Some("B") => open.push(name),
            Some("E") => assert_eq!(open.pop(), Some(name), "{event}"),
            _ => {}
        }
    }
    open.into_values().flatten().collect()
}

/// Returns the name of a track.
fn name_of(events: &[Value], track_of: Track) -> String {
    let mut names = events.iter().filter(|event| is(event, "M", "thread_name"));
    let found = names.find(|event| track(event) == track_of);
    found.unwrap()["args"]["name"].as_str().unwrap().to_owned()
}

unsafe extern "system" fn count(counter: *mut c_void) {
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, SeqCst);
}

/// Adds vectors and calls a host function in two streams, and makes calls that fail on another thread.
fn work() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    let context = Context::new();
    let cuda = cuda();
    let kernel = Kernel::load("vector_add", "vector_add");
    let (mut a, mut n) = (0, 16_i32);
    check(unsafe { cuda.cuMemAlloc(&mut a, 64) });
    for _ in 0..2 {
        let mut stream = null_mut();
        check(unsafe { cuda.cuStreamCreate(&mut stream, 0) });
        check(unsafe { cuda.cuMemsetD32Async(a, 7, 16, stream) });
        let (mut b, mut c) = (a, a);
        let mut arguments = [ptr(&mut a), ptr(&mut b), ptr(&mut c), ptr(&mut n)];
        check(kernel.launch(3, 32, stream, &mut arguments));
        check(unsafe { cuda.cuLaunchHostFunc(stream, Some(count), (&raw const CALLED).cast_mut().cast()) });
        check(unsafe { cuda.cuStreamSynchronize(stream) });
    }
    let mut bytes = [0_u8; 64];
    check(unsafe { cuda.cuMemcpyDtoH(bytes.as_mut_ptr().cast(), a, 64) });
    assert_eq!(CALLED.load(SeqCst), 2);
    let second = std::thread::Builder::new().name("second".into());
    let refused = || {
        expect(unsafe { library().cuCtxGetDevice(&mut 0) }, 201);
        expect(unsafe { library().cuCheckpointProcessLock(0, null_mut()) }, 801);
    };
    second.spawn(refused).unwrap().join().unwrap();
    drop(context);
}

/// Checks the events of [`work`].
fn check_work(events: &[Value]) {
    // Arguments are shown at the start of a call, results and returned values at its end.
    let begin = &events[first(events, "B", "cuMemAlloc_v2")];
    assert_eq!(begin["args"]["bytesize"], 64);
    let end = &events[first(events, "E", "cuMemAlloc_v2")];
    assert_eq!(end["args"]["result"], "CUDA_SUCCESS");
    assert!(end["args"]["*dptr"].as_str().unwrap().starts_with("0x"), "{end}");
    let end = &events[first(events, "E", "cuModuleGetFunction")];
    assert_eq!(end["args"]["*name"], "vector_add");
    // Each stream has a track, with its work in order.
    let kernels: Vec<&Value> = events.iter().filter(|event| is(event, "B", "vector_add")).collect();
    assert_eq!(kernels.len(), 2);
    assert_ne!(track(kernels[0]), track(kernels[1]));
    for kernel in &kernels {
        assert_eq!(kernel["args"]["grid"], serde_json::json!([3, 1, 1]));
        assert_eq!(kernel["args"]["block"], serde_json::json!([32, 1, 1]));
        assert_eq!(kernel["args"]["arguments"][3], "0x10");
        assert!(name_of(events, track(kernel)).starts_with("stream 0x"));
        let of_stream = events.iter().filter(|event| track(event) == track(kernel));
        let begun = of_stream
            .filter(|event| event["ph"] == "B")
            .map(|event| event["name"].as_str().unwrap());
        assert_eq!(begun.collect::<Vec<_>>(), ["fill", "vector_add", "host function"]);
    }
    // A kernel runs between its launch and the end of the wait for it. Each arrow that ends has one start.
    assert!(first(events, "B", "cuLaunchKernel") < first(events, "B", "vector_add"));
    assert!(first(events, "E", "vector_add") < first(events, "E", "cuStreamSynchronize"));
    for end in events.iter().filter(|event| event["ph"] == "f") {
        let starts = events
            .iter()
            .filter(|event| event["ph"] == "s" && event["id"] == end["id"]);
        assert_eq!(starts.count(), 1, "{end}");
    }
    assert_eq!(events[first(events, "B", "copy DtoH")]["args"]["bytes"], 64);
    // Failed calls of the other thread.
    let failed = &events[first(events, "E", "cuCtxGetDevice")];
    assert_eq!(failed["args"]["result"], "CUDA_ERROR_INVALID_CONTEXT");
    assert_eq!(name_of(events, track(failed)), "second");
    // Each process of the viewer, the program and the device, has one name.
    for process in [
        &events[first(events, "B", "cuLaunchKernel")],
        &events[first(events, "B", "vector_add")],
    ] {
        let named = |event: &&Value| is(event, "M", "process_name") && event["pid"] == process["pid"];
        assert_eq!(events.iter().filter(named).count(), 1, "{process}");
    }
    let refused = &events[first(events, "E", "cuCheckpointProcessLock")];
    assert_eq!(refused["args"]["result"], "CUDA_ERROR_NOT_SUPPORTED");
}

#[test]
fn a_program_is_recorded_by_the_environment() {
    if lacks_software() {
        return;
    }
    let path = file("environment");
    let variables = [("CUDA_SOFT_TRACE", path.to_str().unwrap()), ("CUDA_SOFT_SUMMARY", "1")];
    let printed = in_child("trace::a_program_is_recorded_by_the_environment", &variables, work);
    let Some(printed) = printed else { return };
    let events = events(&path);
    assert!(unfinished(&events).is_empty());
    check_work(&events);
    // The driver writes the end of the file and the summary in an exit handler, which it registers only on Unix.
    if cfg!(unix) {
        let count = || {
            let text = std::fs::read_to_string(&path).unwrap();
            serde_json::from_str::<Vec<Value>>(&text).unwrap().len()
        };
        assert_eq!(count(), events.len());
        // Another process adds its events to the file.
        in_child("trace::a_program_is_recorded_by_the_environment", &variables, work);
        assert!(count() > events.len());
        let line = |name: &str| {
            let found = printed.lines().find(|line| line.trim_start().starts_with(name));
            found
                .unwrap_or_else(|| panic!("{name}: {printed}"))
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!(line("cuLaunchKernel ")[1..3], ["2", "0"]);
        assert_eq!(line("cuCtxGetDevice ")[1..3], ["1", "1"]);
        assert_eq!(line("vector_add ")[1..3], ["2", "6"]);
        assert_eq!(line("copy DtoH ")[2..4], ["1", "64"]);
        assert!(printed.contains("\n  cuCheckpointProcessLock (1x)"), "{printed}");
    }
    std::fs::remove_file(path).unwrap();
}

/// A host function that ends the process without running exit handlers.
#[cfg(unix)]
unsafe extern "system" fn exit_now(_: *mut c_void) {
    unsafe { libc::_exit(3) };
}

#[cfg(unix)]
#[test]
fn the_trace_of_a_process_that_ends_at_once_is_readable() {
    const CHILD: &str = "CUDA_SOFT_TRACE_TEST_ENDS";
    if lacks_software() {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        let _context = Context::new();
        check(unsafe { cuda().cuLaunchHostFunc(null_mut(), Some(exit_now), null_mut()) });
        let _ = unsafe { cuda().cuCtxSynchronize() };
        unreachable!("the host function ends the process");
    }
    let path = file("ends");
    let test = "trace::the_trace_of_a_process_that_ends_at_once_is_readable";
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("CUDA_SOFT_TRACE", &path)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let events = events(&path);
    let unfinished = unfinished(&events);
    assert!(unfinished.contains(&"host function".to_owned()), "{unfinished:?}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_guard_records_until_it_is_finished() {
    if lacks_software() {
        return;
    }
    let child = in_child("trace::a_guard_records_until_it_is_finished", &[], || {
        let path = file("guard");
        // An earlier file is replaced.
        std::fs::write(&path, "old").unwrap();
        let trace = cuda_driver_soft::trace(&path).unwrap();
        let error = cuda_driver_soft::trace(&path).unwrap_err().to_string();
        assert!(error.contains("being recorded already"), "{error}");
        work();
        let summary = trace.finish();
        let mut version = 0;
        check(unsafe { library().cuDriverGetVersion(&mut version) });
        // The file is complete.
        let whole: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert!(unfinished(&whole).is_empty());
        check_work(&whole);
        assert!(!whole.iter().any(|event| event["name"] == "cuDriverGetVersion"));
        assert_eq!(summary.kernels["vector_add"].count, 2);
        assert_eq!(summary.kernels["vector_add"].blocks, 6);
        assert_eq!(summary.calls["cuCtxGetDevice"].errors, 1);
        assert_eq!(summary.not_supported["cuCheckpointProcessLock"].count, 1);
        // Another trace may follow, here one without events.
        drop(cuda_driver_soft::trace(&path).unwrap());
        assert_eq!(events(&path).len(), 0);
        std::fs::remove_file(&path).unwrap();
        let missing = path.join("trace.json");
        let error = cuda_driver_soft::trace(&missing).unwrap_err().to_string();
        assert!(error.contains(missing.to_str().unwrap()), "{error}");
    });
    assert!(child.is_none_or(|printed| !printed.contains("panicked")));
}

/// Work that runs or is queued while a trace ends is not in the next trace, which lacks its start or its submission.
#[test]
fn work_that_outlives_its_trace_is_in_no_other() {
    if lacks_software() {
        return;
    }
    in_child("trace::work_that_outlives_its_trace_is_in_no_other", &[], || {
        let path = file("outlived");
        let (cuda, _context, door) = (cuda(), Context::new(), Door::default());
        let stream = stream(NON_BLOCKING);
        let first = cuda_driver_soft::trace(&path).unwrap();
        hold(stream, &door);
        hold(stream, &door);
        // Waits until the first host function runs.
        while !events(&path).iter().any(|event| is(event, "B", "host function")) {
            std::thread::yield_now();
        }
        assert_eq!(first.finish().calls["cuLaunchHostFunc"].count, 2);
        let second = cuda_driver_soft::trace(&path).unwrap();
        door.open();
        check(unsafe { cuda.cuStreamSynchronize(stream) });
        assert_eq!(second.finish().calls.len(), 1);
        let events = events(&path);
        assert!(unfinished(&events).is_empty());
        assert!(!events.iter().any(|event| event["name"] == "host function"));
        std::fs::remove_file(&path).unwrap();
        check(unsafe { cuda.cuStreamDestroy(stream) });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_gets_the_events() {
    if lacks_software() {
        return;
    }
    let variables = [("CUDA_SOFT_TRACE", "/dev/stderr")];
    let printed = in_child("trace::a_pipe_gets_the_events", &variables, || {
        assert!(!Context::new().0.is_null());
    });
    let Some(printed) = printed else { return };
    assert!(printed.contains("\"name\":\"cuCtxCreate"), "{printed}");
    assert!(!printed.contains("ends early"), "{printed}");
}

#[test]
fn a_file_that_cannot_be_written_is_reported_and_the_program_runs() {
    if lacks_software() {
        return;
    }
    let path = file("missing").join("trace.json");
    let variables = [("CUDA_SOFT_TRACE", path.to_str().unwrap())];
    let test = "trace::a_file_that_cannot_be_written_is_reported_and_the_program_runs";
    let printed = in_child(test, &variables, || {
        assert!(!Context::new().0.is_null());
    });
    let Some(printed) = printed else { return };
    let wanted = format!("CUDA_SOFT_TRACE: cannot write the trace to {}: ", path.display());
    assert_eq!(printed.matches(&wanted).count(), 1, "{printed}");
}

#[cfg(unix)]
#[test]
fn the_summary_does_not_need_the_file() {
    if lacks_software() {
        return;
    }
    let path = file("missing").join("trace.json");
    let variables = [("CUDA_SOFT_TRACE", path.to_str().unwrap()), ("CUDA_SOFT_SUMMARY", "1")];
    let printed = in_child("trace::the_summary_does_not_need_the_file", &variables, || {
        assert!(!Context::new().0.is_null());
    });
    let Some(printed) = printed else { return };
    assert!(printed.contains("cannot write the trace"), "{printed}");
    assert!(printed.contains("cuCtxCreate"), "{printed}");
}

#[test]
fn a_line_of_an_earlier_call_is_not_a_reason() {
    if lacks_software() {
        return;
    }
    in_child("trace::a_line_of_an_earlier_call_is_not_a_reason", &[], || {
        let path = file("reason");
        let _context = Context::new();
        let kernel = Kernel::load("vector_add", "vector_add");
        let (mut graph, mut node) = (null_mut(), null_mut());
        check(unsafe { library().cuGraphCreate(&mut graph, 0) });
        let trace = cuda_driver_soft::trace(&path).unwrap();
        // A call that succeeds and writes to the log.
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            ..Default::default()
        };
        params.anonymous1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
            graph,
            ownership: CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
        };
        check(unsafe { library().cuGraphAddNode_v2(&mut node, graph, null(), null(), 0, &mut params) });
        expect(
            unsafe { library().cuParamSetTexRef(kernel.function, 0, null_mut()) },
            801,
        );
        let summary = trace.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.contains("the graph is moved into itself"), "{text}");
        assert_eq!(summary.not_supported["cuParamSetTexRef"].reason, "");
    });
}

#[test]
fn copies_have_the_same_names_in_graphs() {
    if lacks_software() {
        return;
    }
    in_child("trace::copies_have_the_same_names_in_graphs", &[], || {
        let path = file("graph");
        let context = Context::new();
        let cuda = cuda();
        let (mut stream, mut memory, mut pinned) = (null_mut(), 0, null_mut());
        let (mut graph, mut exec) = (null_mut(), null_mut());
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let trace = cuda_driver_soft::trace(&path).unwrap();
        unsafe {
            check(cuda.cuStreamCreate(&mut stream, 0));
            check(cuda.cuMemAlloc(&mut memory, 64));
            check(cuda.cuMemAllocHost(&mut pinned, 64));
            let host = pinned as CUdeviceptr;
            // Each of these calls names the page-locked memory by a device address or a unified one.
            let copy = || {
                check(cuda.cuMemcpyAsync(memory, host, 64, stream));
                check(cuda.cuMemcpyDtoDAsync(memory, host, 64, stream));
                check(cuda.cuMemcpyAsync(host, memory, 64, stream));
            };
            copy();
            check(cuda.cuStreamBeginCapture(stream, relaxed));
            copy();
            check(cuda.cuStreamEndCapture(stream, &mut graph));
            check(cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
            check(cuda.cuGraphLaunch(exec, stream));
            check(cuda.cuStreamSynchronize(stream));
            check(cuda.cuMemFreeHost(pinned));
        }
        drop(context);
        let summary = trace.finish();
        std::fs::remove_file(&path).unwrap();
        let counts: Vec<(&str, u64)> = summary.copies.iter().map(|(name, all)| (&**name, all.count)).collect();
        assert_eq!(counts, [("copy DtoH", 2), ("copy HtoD", 4)]);
    });
}
