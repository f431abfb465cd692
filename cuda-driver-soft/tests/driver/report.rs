//! Tests of reports about threads of a kernel, at a fault and at a line that `CUDA_SOFT_STOP_AT` names: source line,
//! calls of the thread, other lanes of the warp, registers.

use crate::common::{Context, Kernel, cuda, in_child, lacks_software};
use std::ffi::CString;
use std::ptr::null_mut;

/// Lanes 0 and 1 exit, lanes 16 to 31 take another branch, and lanes 2 to 15 fault in a function. The fault is that of
/// lane 2, the first of them.
const CALLS: &str = "
.version 7.7
.target sm_52
.address_size 64
.func inner(.param .b64 at)
{
    .reg .b64 %rd<2>;
    .reg .b32 %value;
    .loc 1 3 5
    ld.param.u64 %rd1, [at];
    mov.u32 %value, 7;
    .loc 1 4 5
    st.global.u32 [%rd1], %value;
    ret;
}
.visible .entry outer()
{
    .reg .pred %p<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .loc 1 9 5
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 2;
    @%p1 exit;
    .loc 1 10 5
    setp.gt.u32 %p2, %r1, 15;
    @%p2 bra $other;
    .loc 1 11 5
    mov.u64 %rd1, 16;
    {
        .param .b64 p0;
        st.param.b64 [p0], %rd1;
        call inner, (p0);
    }
    ret;
$other:
    .loc 1 14 5
    ret;
}
.file 1 \"report.cu\"
";

/// A trap in an inlined function.
const TRAP: &str = "
.version 7.7
.target sm_52
.address_size 64
.visible .entry stops()
{
    .loc 1 5 3, function_name $name, inlined_at 1 20 3
    trap;
    ret;
}
.file 1 \"trap.cu\"
";

/// An assertion fails for each lane.
const ASSERT: &str = "
.version 7.7
.target sm_52
.address_size 64
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[2] = {120, 0};
.visible .entry fails()
{
    .reg .b64 %rd<3>;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd2, %rd1;
    .loc 1 7 3
    {
        .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
        st.param.b64 [p0], %rd2;
        st.param.b64 [p1], %rd2;
        st.param.b32 [p2], 7;
        st.param.b64 [p3], %rd2;
        st.param.b64 [p4], 1;


        call __assertfail, (p0, p1, p2, p3, p4);
    }
    ret;
}
.file 1 \"assert.cu\"
";

/// Runs a kernel with one warp, which raises a fault, in a process of its own. Returns the log in the parent, and
/// `None` in the child.
fn log_of(test: &str, variables: &[(&str, &str)], text: &str, name: &str) -> Option<String> {
    let variables: Vec<_> = [("CUDA_SOFT_LOG", "1")].iter().chain(variables).copied().collect();
    in_child(test, &variables, || {
        let context = Context::new();
        let kernel = Kernel::from_ptx(&CString::new(text).unwrap(), name);
        let _ = kernel.launch(1, 32, null_mut(), &mut []);
        assert_ne!(unsafe { cuda().cuCtxSynchronize() }.0, 0);
        std::mem::forget(context);
    })
}

/// Checks that the log has these lines one after another.
#[track_caller]
fn has(log: &str, lines: &[&str]) {
    let wanted: String = lines.iter().map(|line| format!("cuda-driver-soft: {line}\n")).collect();
    assert!(log.contains(&wanted), "{wanted}\nis not in\n{log}");
}

#[test]
fn calls_and_other_lanes() {
    if lacks_software() {
        return;
    }
    let Some(log) = log_of("report::calls_and_other_lanes", &[], CALLS, "outer") else {
        return;
    };
    has(
        &log,
        &[
            "outer: illegal write of 4 bytes at 0x10 in global memory, a null pointer (report.cu:4, PTX line 13, block \
             [0,0,0], thread [2,0,0])",
            "  the thread is in inner (report.cu:4, PTX line 13)",
            "  called from outer (report.cu:11, PTX line 33)",
            "  lanes 3-15 are at inner (report.cu:4, PTX line 13)",
            "  lanes 16-31 are at outer (report.cu:14, PTX line 38)",
            "  lanes 0-1 have exited",
        ],
    );
    assert!(!log.contains("%rd1"), "{log}");
}

#[test]
fn registers_on_request() {
    if lacks_software() {
        return;
    }
    let variables = [("CUDA_SOFT_REGISTERS", "1")];
    let Some(log) = log_of("report::registers_on_request", &variables, CALLS, "outer") else {
        return;
    };
    has(&log, &["  lanes 0-1 have exited", "  %rd1 = 0x10, %value = 0x7"]);
}

#[test]
fn an_inlined_trap() {
    if lacks_software() {
        return;
    }
    let Some(log) = log_of("report::an_inlined_trap", &[], TRAP, "stops") else {
        return;
    };
    has(
        &log,
        &[
            "stops: trap (trap.cu:5, inlined at trap.cu:20, PTX line 8, block [0,0,0], thread [0,0,0])",
            "  the thread is in stops (trap.cu:5, inlined at trap.cu:20, PTX line 8)",
            "  lanes 1-31 are at stops (trap.cu:5, inlined at trap.cu:20, PTX line 8)",
        ],
    );
}

#[test]
fn a_failed_assertion() {
    if lacks_software() {
        return;
    }
    let Some(log) = log_of("report::a_failed_assertion", &[], ASSERT, "fails") else {
        return;
    };
    // As on a GPU, each thread for which the assertion fails writes a line.
    for thread in 0..32 {
        let line = format!("x:7: x: block: [0,0,0], thread: [{thread},0,0] Assertion `x` failed.\n");
        assert!(log.contains(&line), "{log}");
    }
    has(&log, &["  the thread is in fails (assert.cu:7, PTX line 22)"]);
}

#[test]
fn threads_that_are_about_to_run_a_line_are_reported() {
    if lacks_software() {
        return;
    }
    let test = "report::threads_that_are_about_to_run_a_line_are_reported";
    let at = [("CUDA_SOFT_STOP_AT", "report.cu:4,thread=5.0.0")];
    let Some(log) = log_of(test, &at, CALLS, "outer") else {
        return;
    };
    assert_eq!(log.matches("outer: stop in ").count(), 1, "{log}");
    let stop = [
        "outer: stop in inner (report.cu:4, PTX line 13), block [0,0,0], thread [5,0,0]",
        "  the thread is in inner (report.cu:4, PTX line 13)",
        "  called from outer (report.cu:11, PTX line 33)",
    ];
    has(&log, &stop);
    for line in [
        "  lanes 2-4, 6-15 are at inner (report.cu:4, PTX line 13)",
        "%value = 0x7",
    ] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
}

#[test]
fn a_stop_names_a_line_of_the_ptx_or_of_a_file() {
    if lacks_software() {
        return;
    }
    const LOOP: &str = "
.version 7.7
.target sm_52
.address_size 64
.visible .entry loops()
{
    .reg .pred %p;
    .reg .b32 %i;
    .loc 1 3 1
    mov.u32 %i, 0;
$again:
    .loc 1 5 1
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 300;
    @%p bra $again;
    ret;
}
.file 1 \"folder/loop.cu\"
";
    // Values of `CUDA_SOFT_STOP_AT`, and the number of stops. They concern one block: block 0, unless the value names
    // another. Each of its two warps stops at the line, unless the value names a thread. At most 100 stops of a launch
    // are reported.
    let cases = [
        ("loop.cu:3", 2),
        ("folder/loop.cu:3", 2),
        ("oop.cu:3", 0),
        ("loop.cu:4", 0),
        ("loop.cu:5", 100),
        ("ptx:10", 2),
        ("loop.cu:3,thread=40", 1),
        ("loop.cu:3,block=1", 2),
        ("loop.cu:3,block=2", 0),
    ];
    let test = "report::a_stop_names_a_line_of_the_ptx_or_of_a_file";
    for (at, count) in cases {
        let written = in_child(test, &[("CUDA_SOFT_STOP_AT", at)], || {
            let _context = Context::new();
            let kernel = Kernel::from_ptx(&CString::new(LOOP).unwrap(), "loops");
            assert_eq!(kernel.launch(2, 64, null_mut(), &mut []).0, 0);
            assert_eq!(unsafe { cuda().cuCtxSynchronize() }.0, 0);
        });
        let Some(written) = written else { return };
        assert_eq!(written.matches("loops: stop in ").count(), count, "{at}: {written}");
    }
}
