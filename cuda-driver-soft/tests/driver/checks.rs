//! Tests of the checks of kernels and of the check for memory leaks: the findings, and the threads and processes that
//! are checked. The engine's tests run all pairs of right and wrong kernels.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, lacks_software, ptr};
use cuda_driver_soft::{AlreadyChecking, Checks, Finding};
use std::ptr::null_mut;

/// Begins checks on this thread.
fn begin(checks: Checks) -> cuda_driver_soft::Checking {
    cuda_driver_soft::check(checks).unwrap()
}

/// Runs a kernel of the files `check_*.cu`, with the parameters that `check_memory.cu` describes, in a context of its
/// own, and returns the result of the wait for it.
fn run(file: &str, name: &str, grid: u32, block: u32) -> u32 {
    const BYTES: usize = 4096 * 4;
    let context = Context::new();
    let cuda = cuda();
    let kernel = Kernel::load(file, name);
    let input: Vec<u32> = (0..4096).collect();
    let mut buffers = [0; 3];
    for buffer in &mut buffers {
        check(unsafe { cuda.cuMemAlloc(buffer, BYTES) });
    }
    let [mut given, mut out, mut zero] = buffers;
    check(unsafe { cuda.cuMemcpyHtoD(given, input.as_ptr().cast(), BYTES) });
    check(unsafe { cuda.cuMemsetD8(zero, 0, BYTES) });
    let mut params = [ptr(&mut given), ptr(&mut out), ptr(&mut zero)];
    check(kernel.launch(grid, block, null_mut(), &mut params));
    let result = unsafe { cuda.cuCtxSynchronize() };
    if result.0 == 0 {
        for buffer in buffers {
            check(unsafe { cuda.cuMemFree(buffer) });
        }
    } else {
        // The fault is sticky, so the process of this test ends soon, and frees nothing.
        std::mem::forget(context);
    }
    result.0
}

/// Returns the findings for `neighbour_right` or `neighbour_wrong`, of which only the second has a race.
fn neighbour(kind: &str) -> Vec<Finding> {
    let checks = begin(Checks::RACE | Checks::SYNC);
    expect(
        cuda_driver_sys::CUresult(run("check_race.sm_70.ptx", &format!("neighbour_{kind}"), 1, 64)),
        0,
    );
    checks.finish()
}

#[test]
fn a_race_is_reported_with_both_lines() {
    if lacks_software() {
        return;
    }
    assert_eq!(neighbour("right"), []);
    let found = neighbour("wrong");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].check, found[0].kernel.as_str()),
        (Checks::RACE, "neighbour_wrong")
    );
    let text = found[0].to_string();
    for part in [
        "race: `neighbour_wrong`: two accesses to offset 0x4 of shared memory that nothing orders",
        "check_race.sm_70.cu:18: thread [0,0,0] of block [0,0,0] reads 4 bytes",
        "check_race.sm_70.cu:17: thread [1,0,0] of block [0,0,0] writes the same memory",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn each_thread_sees_its_own_kernels() {
    if lacks_software() {
        return;
    }
    let threads: Vec<_> = ["wrong", "right", "wrong", "right"]
        .map(|kind| (kind, std::thread::spawn(move || neighbour(kind).len())))
        .into();
    for (kind, thread) in threads {
        assert_eq!(thread.join().unwrap(), usize::from(kind == "wrong"));
    }
}

#[test]
fn a_thread_has_one_session() {
    let first = begin(Checks::MEMORY);
    assert_eq!(cuda_driver_soft::check(Checks::RACE).unwrap_err(), AlreadyChecking);
    drop(first);
    assert_eq!(begin(Checks::RACE).finish(), []);
}

/// Runs a kernel that writes managed memory, and tells the checker that the program then reads that memory: after a
/// wait for the kernel if `waits` is true. Returns the findings.
fn read_managed_memory(waits: bool) -> Vec<Finding> {
    const BYTES: usize = 4096 * 4;
    let checks = begin(Checks::RACE);
    let host = checks.host_accesses();
    let _context = Context::new();
    let cuda = cuda();
    let kernel = Kernel::load("check_race.sm_70.ptx", "neighbour_right");
    let mut out = 0;
    check(unsafe { cuda.cuMemAllocManaged(&mut out, BYTES, 1) });
    let words = out as *mut u32;
    host.write(words, 4096);
    unsafe { words.write_bytes(0, 4096) };
    let (mut given, mut zero) = (out + 1024, out);
    let mut params = [ptr(&mut given), ptr(&mut out), ptr(&mut zero)];
    check(kernel.launch(1, 64, null_mut(), &mut params));
    if waits {
        check(unsafe { cuda.cuCtxSynchronize() });
    }
    host.read(words, 64);
    // Words that the kernel does not write.
    host.read(words.wrapping_add(64), 4096 - 64);
    check(unsafe { cuda.cuCtxSynchronize() });
    check(unsafe { cuda.cuMemFree(out) });
    checks.finish()
}

#[test]
fn accesses_of_the_program_to_managed_memory_race_with_kernels() {
    if lacks_software() {
        return;
    }
    assert_eq!(read_managed_memory(true), []);
    let found = read_managed_memory(false);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0].to_string();
    assert!(text.contains("the program's own code reads 0x"), "{text}");
    assert!(text.contains("which `neighbour_right` writes"), "{text}");
}

#[test]
fn only_reads_of_unwritten_memory_are_found() {
    if lacks_software() {
        return;
    }
    let checks = begin(Checks::INIT);
    for kernel in ["global_right", "global_wrong", "accumulate_right"] {
        expect(cuda_driver_sys::CUresult(run("check_init", kernel, 2, 64)), 0);
    }
    let found = checks.finish();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].places[0].line(), 15);
    let allocation = found[0].allocation.as_ref().unwrap();
    assert_eq!((allocation.bytes, allocation.offset), (4096 * 4, 0));
}

#[test]
fn memory_that_a_thread_with_another_check_wrote_is_written() {
    if lacks_software() {
        return;
    }
    const BYTES: usize = 4096 * 4;
    let checks = begin(Checks::INIT);
    let context = Context::new();
    let mut buffers = [0; 3];
    for buffer in &mut buffers {
        check(unsafe { cuda().cuMemAlloc(buffer, BYTES) });
    }
    let [given, out, zero] = buffers;
    check(unsafe { cuda().cuMemsetD8(given, 0, BYTES) });
    check(unsafe { cuda().cuMemsetD8(zero, 0, BYTES) });
    let launch = move |mut given, mut out| {
        let mut zero = zero;
        let kernel = Kernel::load("check_init", "global_right");
        let mut params = [ptr(&mut given), ptr(&mut out), ptr(&mut zero)];
        check(kernel.launch(2, 64, null_mut(), &mut params));
        check(unsafe { cuda().cuCtxSynchronize() });
    };
    let handle = context.0.expose_provenance();
    let writer = std::thread::spawn(move || {
        let races = begin(Checks::RACE);
        check(unsafe { cuda().cuCtxSetCurrent(std::ptr::with_exposed_provenance_mut(handle)) });
        launch(given, out);
        assert_eq!(races.finish(), []);
    });
    writer.join().unwrap();
    // This thread reads the memory that the other one wrote.
    launch(out, given);
    assert_eq!(checks.finish(), []);
    for buffer in buffers {
        check(unsafe { cuda().cuMemFree(buffer) });
    }
}

#[test]
fn memory_that_is_not_freed_is_a_leak() {
    if lacks_software() {
        return;
    }
    let _context = Context::new();
    let (mut freed, mut kept) = (0, 0);
    let checks = begin(Checks::LEAKS);
    check(unsafe { cuda().cuMemAlloc(&mut freed, 100) });
    check(unsafe { cuda().cuMemAlloc(&mut kept, 200) });
    check(unsafe { cuda().cuMemFree(freed) });
    let found = checks.finish();
    check(unsafe { cuda().cuMemFree(kept) });
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0].to_string();
    assert!(text.starts_with("leak: 200 bytes were not freed"), "{text}");
}

#[test]
fn a_fault_is_a_finding() {
    if lacks_software() {
        return;
    }
    in_child("checks::a_fault_is_a_finding", &[], || {
        let checks = begin(Checks::MEMORY);
        expect(
            cuda_driver_sys::CUresult(run("check_memory", "bounds_wrong", 2, 64)),
            700,
        );
        let found = checks.finish();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].check, found[0].places[0].line()), (Checks::MEMORY, 20));
    });
}

#[test]
fn the_environment_checks_all_threads() {
    if lacks_software() {
        return;
    }
    let report = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checks-{}.jsonl", std::process::id()));
    let variables = [
        ("CUDA_SOFT_CHECK", "race,leaks"),
        ("CUDA_SOFT_CHECK_REPORT", report.to_str().unwrap()),
    ];
    let written = in_child("checks::the_environment_checks_all_threads", &variables, || {
        let thread = std::thread::spawn(|| run("check_race.sm_70.ptx", "sum_wrong", 4, 64));
        assert_eq!(thread.join().unwrap(), 0);
        // The memory and its context are not freed, so that the report at exit lists a leak. The report exists only on
        // Unix: elsewhere the driver registers no exit handler.
        let context = Context::new();
        let mut kept = 0;
        check(unsafe { cuda().cuMemAlloc(&mut kept, 300) });
        std::mem::forget(context);
    });
    let Some(written) = written else { return };
    let lines = std::fs::read_to_string(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    let found: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(written.contains("race: `sum_wrong`"), "{written}");
    assert!(
        found.iter().any(|f| f["check"] == "race" && f["line"] == 118),
        "{lines}"
    );
    if cfg!(unix) {
        assert!(
            found.iter().any(|f| f["problem"] == "300 bytes were not freed"),
            "{lines}"
        );
    }
}
