//! Threads that wait for other threads in all kinds of loops, and kernels that never end.

use super::{Arg, Bench};
use crate::{Execution, Fault, FaultKind, Isa, Progress};

fn module(body: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{body}")
}

fn bench(body: &str) -> Bench {
    Bench::text(&module(body), Isa::best())
}

/// Runs `k(u64 out)` in slices, as the driver does, and returns the 16 words of `out`.
fn run(body: &str, grid: u32, block: u32) -> Vec<u32> {
    Bench::words(&module(body), grid, block, 16, 1 << 16)
}

/// Runs `k(u64 out)` with a budget, and returns the fault that must end it.
fn fault(body: &str, grid: u32, block: u32, budget: u64) -> Fault {
    let mut bench = bench(body);
    let out = bench.bytes(64);
    let mut launch = bench.launch("k", grid, block, &[Arg::U64(out)]);
    launch.options.budget = Some(budget);
    Bench::run(launch).fault().expect("a fault")
}

/// Returns a kernel whose threads from `first` on wait for the word at `out`, in a loop in which even and odd lanes
/// diverge and reconverge. The threads before `first` set the word.
fn parting_loop(first: u32) -> String {
    format!(
        ".visible .entry k(.param .u64 out) {{
            .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            and.b32 %r5, %r1, 1;
            setp.eq.u32 %p3, %r5, 0;
            setp.lt.u32 %p1, %r1, {first};
            mov.u32 %r6, 0;
            mov.u32 %r7, 0;
            @%p1 bra SET;
        L:  @%p3 bra EVEN;
            add.u32 %r6, %r6, 1;
            bra J;
        EVEN: add.u32 %r7, %r7, 1;
        J:  ld.volatile.global.u32 %r2, [%rd1];
            setp.eq.u32 %p2, %r2, 0;
            @%p2 bra L;
            st.global.u32 [%rd1+4], %r2;
            ret;
        SET: mov.u32 %r3, 5; st.volatile.global.u32 [%rd1], %r3; ret;
        }}"
    )
}

#[test]
fn divergent_loops_wait_for_a_later_warp() {
    // Warp 0 waits for warp 1, so the waiting warp runs first.
    let text = parting_loop(32).replace("setp.lt.u32 %p1", "setp.ge.u32 %p1");
    assert_eq!(run(&text, 1, 64)[..2], [5, 5]);
}

#[test]
fn divergent_loops_wait_for_other_lanes() {
    assert_eq!(run(&parting_loop(1), 1, 32)[..2], [5, 5]);
    assert_eq!(run(&parting_loop(16), 1, 32)[..2], [5, 5]);
    assert_eq!(run(&parting_loop(31), 1, 32)[..2], [5, 5]);
}

#[test]
fn lanes_wait_for_other_lanes_by_any_load() {
    for load in [
        "ld.global.u32",
        "ld.global.cg.u32",
        "ld.global.cv.u32",
        "ld.volatile.global.u32",
    ] {
        let text = format!(
            ".visible .entry k(.param .u64 out) {{
                .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                setp.eq.u32 %p1, %r1, 31;
                @%p1 bra SET;
            L:  {load} %r2, [%rd1];
                setp.eq.u32 %p2, %r2, 0;
                @%p2 bra L;
                st.global.u32 [%rd1+4], %r2;
                ret;
            SET: mov.u32 %r3, 5; st.global.u32 [%rd1], %r3; ret;
            }}"
        );
        assert_eq!(run(&text, 1, 32)[..2], [5, 5], "{load}");
    }
}

/// Warps that synchronise by atomics in shared memory run in the same order for any size of slices.
#[test]
fn the_order_of_warps_does_not_depend_on_slices() {
    // Each warp iterates a number of times that depends on the block. Then its first lane takes a ticket, and stores
    // the warp's number at the ticket's place.
    let text = "
        .visible .entry k(.param .u64 out) {
            .reg .b64 %rd<4>; .reg .b32 %r<11>; .reg .pred %p<3>; .shared .align 4 .b8 s[4];
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r9, %ctaid.x;
            mul.lo.u32 %r10, %r9, 37;
            and.b32 %r10, %r10, 2047;
            add.u32 %r10, %r10, 200;
            mov.u32 %r2, 0;
            mov.u32 %r8, s;
        L:  add.u32 %r2, %r2, 1;
            setp.lt.u32 %p1, %r2, %r10;
            @%p1 bra L;
            and.b32 %r3, %r1, 31;
            setp.ne.u32 %p2, %r3, 0;
            @%p2 bra E;
            mov.u32 %r5, 1;
            atom.shared.add.u32 %r4, [%r8], %r5;
            mad.lo.u32 %r6, %r9, 4, %r4;
            mul.wide.u32 %rd2, %r6, 4;
            add.u64 %rd3, %rd1, %rd2;
            shr.u32 %r7, %r1, 5;
            st.global.u32 [%rd3], %r7;
        E:  ret;
        }";
    let orders = [u64::MAX, 1 << 16, 5_000, 700].map(|piece| {
        let mut bench = bench(text);
        let out = bench.bytes(64 * 4 * 4);
        let execution = bench.launch("k", 64, 128, &[Arg::U64(out)]).start();
        while execution.work(piece) != Progress::Finished {}
        assert_eq!(execution.fault().map(|f| f.to_string()), None);
        bench.get(out, 64 * 4, u32::from_le_bytes)
    });
    for order in &orders[1..] {
        assert_eq!(*order, orders[0]);
    }
}

#[test]
fn divergent_loops_wait_for_a_later_block() {
    let text = parting_loop(1)
        .replace("%tid.x", "%ctaid.x")
        .replace("setp.lt.u32 %p1, %r1, 1", "setp.ge.u32 %p1, %r1, 7")
        .replace("and.b32 %r5, %r1, 1", "mov.u32 %r5, %tid.x; and.b32 %r5, %r5, 1");
    assert_eq!(run(&text, 8, 32)[..2], [5, 5]);
}

#[test]
fn a_loop_by_jump_table_waits() {
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 16;
            @%p1 bra SET;
        L:  ld.volatile.global.u32 %r2, [%rd1];
        TABLE: .branchtargets L, END;
            brx.idx %r2, TABLE;
        SET: mov.u32 %r3, 1; st.volatile.global.u32 [%rd1], %r3; ret;
        END: st.global.u32 [%rd1+4], %r1; ret;
        }";
    let got = run(text, 1, 32);
    assert_eq!(got[0], 1);
    assert!(got[1] < 16, "{}", got[1]);
}

#[test]
fn a_weak_load_in_a_loop_waits_for_a_later_block() {
    // The kernel has only weak loads, so the engine cannot tell that threads see stores of others.
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %ctaid.x;
            setp.ge.u32 %p1, %r1, 2;
            @%p1 bra SET;
        L:  ld.global.u32 %r2, [%rd1];
            setp.eq.u32 %p2, %r2, 0;
            @%p2 bra L;
            ret;
        SET: mov.u32 %r3, 1; st.global.u32 [%rd1], %r3; ret;
        }";
    assert_eq!(run(text, 3, 32)[0], 1);
}

#[test]
fn the_budget_ends_every_loop() {
    const BUDGET: u64 = 3_000_000;
    let wanted = FaultKind::Budget { instructions: BUDGET };
    let head = ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<9>; .reg .pred %p<5>;
            mov.u32 %r1, %tid.x;
            and.b32 %r2, %r1, 1;
            setp.eq.u32 %p1, %r2, 0;";
    let parting = "L: @%p1 bra EVEN; add.u32 %r3, %r3, 1; bra L; EVEN: add.u32 %r4, %r4, 1; bra L; }";
    let meeting = "L: @%p1 bra EVEN; add.u32 %r3, %r3, 1; bra J; EVEN: add.u32 %r4, %r4, 1; J: bra L; }";
    let table = "TABLE: .branchtargets L, M; L: brx.idx %r2, TABLE; M: brx.idx %r2, TABLE; }";
    let barrier = "L: bar.sync 0; bra L; }";
    for body in [parting, meeting, table, barrier] {
        let found = fault(&format!("{head}{body}"), 2, 64, BUDGET);
        assert_eq!(found.kind, wanted, "{body}: {found}");
    }
    // No loop: a function that calls itself twice, to a depth of forty.
    let calls = ".func twice(.reg .u32 %n) {
            .reg .pred %p; .reg .u32 %m;
            setp.eq.u32 %p, %n, 0;
            @%p ret;
            sub.u32 %m, %n, 1;
            call twice, (%m);
            call twice, (%m);
            ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .u32 %r;
            mov.u32 %r, 40;
            call twice, (%r);
            ret;
        }";
    let found = fault(calls, 1, 32, BUDGET);
    assert_eq!(found.kind, wanted, "{found}");
}

#[test]
fn a_block_does_not_wait_for_a_failed_block() {
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %ctaid.x;
            setp.eq.u32 %p1, %r1, 1;
            @%p1 trap;
        L:  ld.volatile.global.u32 %r2, [%rd1];
            setp.eq.u32 %p2, %r2, 0;
            @%p2 bra L;
            ret;
        }";
    for slice in [1 << 16, u64::MAX] {
        let mut bench = bench(text);
        let out = bench.bytes(64);
        let mut launch = bench.launch("k", 5, 32, &[Arg::U64(out)]);
        launch.options.budget = None;
        let execution = launch.start();
        while execution.work(slice) != Progress::Finished {}
        let fault = execution.fault().expect("a fault");
        assert_eq!((fault.kind, fault.block), (FaultKind::Trap, [1, 0, 0]));
    }
}

#[test]
fn an_earlier_fault_replaces_a_later_one() {
    // Block 0 is slow; block 1 starts and fails while block 0 runs.
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<5>;
            mov.u32 %r1, %ctaid.x;
            setp.eq.u32 %p1, %r1, 1;
            @%p1 bra BAD;
            mov.u32 %r2, 0;
        L:  add.u32 %r2, %r2, 1;
            setp.lt.u32 %p2, %r2, 1500000;
            @%p2 bra L;
            trap;
        BAD:
            mov.u64 %rd1, 0;
            ld.global.u32 %r2, [%rd1];
            ret;
        }";
    let bench = bench(text);
    let execution = bench.launch("k", 2, 1, &[Arg::U64(0)]).start();
    while execution.work(1 << 16) != Progress::Finished {}
    let fault = execution.fault().expect("a fault");
    assert_eq!((fault.kind, fault.block), (FaultKind::Trap, [0, 0, 0]));
}

#[test]
fn a_block_without_memory_starts_when_others_have_finished() {
    use crate::grid::queue::Taken;
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<3>; .reg .b32 %r<3>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %ctaid.x;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd1, %rd1, %rd2;
            st.global.u32 [%rd1], 7;
            ret;
        }";
    let mut bench = bench(text);
    let out = bench.bytes(32);
    let begin = |execution: &Execution| match execution.started.queue.take("k", 1, 0) {
        Some(Taken::New(numbers, alone)) => Some((numbers.start, alone)),
        _ => None,
    };
    let execution = bench.launch("k", 8, 1, &[Arg::U64(out)]).start();
    assert_eq!(begin(&execution), Some((0, false)));
    assert_eq!(begin(&execution), Some((1, false)));
    // Put block 1 back, as when it runs out of memory: then no block starts while block 0 is in progress.
    assert!(execution.started.queue.put_back(1, false));
    assert_eq!(execution.work(u64::MAX), Progress::NothingToTake);
    // Block 0 runs out of memory too. Then it is retried alone; if that fails, it cannot run at all.
    assert!(execution.started.queue.put_back(0, false));
    assert_eq!(begin(&execution), Some((0, true)));
    assert!(!execution.started.queue.put_back(0, true));
    assert!(execution.started.queue.put_back(0, false));
    assert_eq!(execution.work(u64::MAX), Progress::Finished);
    assert_eq!(execution.fault(), None);
    assert_eq!(bench.get(out, 8, u32::from_le_bytes), [7; 8]);

    // After a fault, a block that was put back counts as finished.
    let execution = bench.launch("k", 8, 1, &[Arg::U64(out)]).start();
    assert_eq!(begin(&execution), Some((0, false)));
    assert_eq!(begin(&execution), Some((1, false)));
    assert!(execution.started.queue.put_back(1, false));
    let fault = Fault {
        kind: FaultKind::Trap,
        kernel: String::new(),
        line: 0,
        block: [0; 3],
        block_size: [1; 3],
        thread: [0; 3],
        report: crate::Report::default(),
    };
    execution.started.report(0, fault);
    assert!(!execution.is_finished());
    execution.started.queue.count_finished();
    assert!(execution.is_finished());
}

#[test]
fn registers_of_nested_calls_are_bounded() {
    use std::fmt::Write;
    // Each call needs a megabyte of registers.
    let mut deep = String::from(
        ".func deep(.reg .u64 %p) {
            .reg .b64 %q<4096>;
            mov.u64 %q0, %p;\n",
    );
    for i in 1..4096 {
        writeln!(deep, "add.u64 %q{i}, %q{}, %p;", i - 1).unwrap();
    }
    deep.push_str("call deep, (%q4095); st.global.u64 [%q7], %q4095; ret; }");
    let text = format!(
        "{deep} .visible .entry k(.param .u64 out) {{
            .reg .b64 %rd1;
            ld.param.u64 %rd1, [out];
            call deep, (%rd1);
            ret;
        }}"
    );
    let found = fault(&text, 1, 32, 1_000_000_000);
    let FaultKind::StackOverflow { bytes } = found.kind else {
        panic!("{found}")
    };
    assert!(bytes > 1 << 20, "{bytes} bytes of a thread");
}

#[test]
fn parameters_cannot_be_written() {
    let text = ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd<4>; .reg .b32 %r<3>;
            mov.b64 %rd1, out;
            cvta.param.u64 %rd2, %rd1;
            ld.u64 %rd3, [%rd2];
            mov.u32 %r1, 1;
            st.global.u32 [%rd3], %r1;
            st.u32 [%rd2], %r1;
            ret;
        }";
    let found = fault(text, 1, 1, 1000);
    let FaultKind::IllegalAddress { write, space, .. } = found.kind else {
        panic!("{found}")
    };
    assert_eq!((write, space, found.code()), (true, ptx::ir::Space::Param, 700));
}
