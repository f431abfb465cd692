//! Divergence, barriers, collective instructions, threads that wait for one another, and budgets of instructions.

use super::{Arg, Bench};
use crate::grid::execution::SPIN_PATIENCE;
use crate::{Engine, FaultKind, Isa, LaneState};

fn module(body: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{body}")
}

/// Runs `k(u64 out)` and returns `count` words of `out`.
fn words(ptx: &str, grid: u32, block: u32, count: usize) -> Vec<u32> {
    Bench::words(&module(ptx), grid, block, count, u64::MAX)
}

/// Runs `k(u64 out)`, which must fault, and returns the fault.
fn fault(ptx: &str, grid: u32, block: u32) -> crate::Fault {
    let mut bench = Bench::text(&module(ptx), Isa::best());
    let out = bench.bytes(4096);
    let execution = Bench::run(bench.launch("k", grid, block, &[Arg::U64(out)]));
    execution.fault().expect("a fault")
}

#[test]
fn lanes_reconverge_after_branches_and_loops() {
    // The number of iterations grows with the lane's number; then all lanes are active again.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, 0;
            and.b32 %r3, %r1, 1;
            setp.eq.u32 %p1, %r3, 0;
            @%p1 bra EVEN;
            add.u32 %r2, %r2, 1000;
            bra LOOP;
        EVEN:
            add.u32 %r2, %r2, 2000;
        LOOP:
            setp.ge.u32 %p2, %r3, %r1;
            add.u32 %r3, %r3, 1;
            add.u32 %r2, %r2, 1;
            @!%p2 bra LOOP;
            activemask.b32 %r4;
            mul.wide.u32 %rd2, %r1, 8;
            add.u64 %rd3, %rd1, %rd2;
            st.global.v2.u32 [%rd3], {%r2, %r4};
            ret;
        }",
        1,
        32,
        64,
    );
    for lane in 0..32u32 {
        let odd = lane & 1;
        let rounds = lane.saturating_sub(odd) + 1;
        let base = if odd == 1 { 1000 } else { 2000 };
        assert_eq!(got[2 * lane as usize], base + rounds, "lane {lane}");
        assert_eq!(got[2 * lane as usize + 1], !0, "active lanes that lane {lane} saw");
    }
}

#[test]
fn a_spin_lock_inside_a_warp() {
    // The lanes of a warp wait for one another: this hangs on hardware that cannot schedule lanes independently.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
        SPIN:
            atom.global.cas.b32 %r1, [%rd1], 0, 1;
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra SPIN;
            ld.volatile.global.u32 %r2, [%rd1+4];
            add.u32 %r2, %r2, 1;
            st.volatile.global.u32 [%rd1+4], %r2;
            membar.gl;
            atom.global.exch.b32 %r3, [%rd1], 0;
            ret;
        }",
        3,
        64,
        2,
    );
    assert_eq!(got, [0, 192]);
}

#[test]
fn a_warp_that_spins_lets_others_run_soon() {
    // Warp 0 holds the lock until the last warp arrives at barrier 1. The warps between them spin, and add the numbers
    // of their rounds to word 1.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            .shared .u32 lock;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.lt.u32 %p1, %r1, 32;
            @!%p1 bra OTHERS;
            mov.u32 %r2, 1;
            st.volatile.shared.u32 [lock], %r2;
            bar.sync 0;
            bar.sync 1, 64;
            mov.u32 %r2, 0;
            atom.shared.exch.b32 %r3, [lock], %r2;
            ret;
        OTHERS:
            bar.sync 0;
            setp.ge.u32 %p1, %r1, 224;
            @%p1 bra LAST;
            mov.u32 %r2, 0;
        SPIN:
            add.u32 %r2, %r2, 1;
            atom.shared.add.u32 %r3, [lock], 0;
            setp.ne.u32 %p2, %r3, 0;
            @%p2 bra SPIN;
            and.b32 %r4, %r1, 31;
            setp.eq.u32 %p2, %r4, 0;
            @%p2 red.global.add.u32 [%rd1+4], %r2;
            ret;
        LAST:
            bar.sync 1, 64;
            ret;
        }",
        1,
        256,
        2,
    );
    // With the longer turns of warps that need not wait for others, this was over 6000.
    assert!(got[1] < 2000, "the warps spun {} times", got[1]);
}

#[test]
fn warps_and_blocks_wait_for_each_other() {
    // In block 0, warp 0 waits for warp 1, which waits for block 1.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<5>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            .shared .u32 flag;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ctaid.x;
            setp.ne.u32 %p1, %r2, 0;
            @%p1 bra SECOND;
            setp.lt.u32 %p2, %r1, 32;
            @%p2 bra FIRST_WARP;
        WAIT_BLOCK:
            ld.volatile.global.u32 %r3, [%rd1];
            setp.eq.u32 %p3, %r3, 0;
            @%p3 bra WAIT_BLOCK;
            st.volatile.shared.u32 [flag], 7;
            ret;
        FIRST_WARP:
            ld.volatile.shared.u32 %r4, [flag];
            setp.ne.u32 %p4, %r4, 7;
            @%p4 bra FIRST_WARP;
            st.global.u32 [%rd1+4], %r4;
            ret;
        SECOND:
            st.global.u32 [%rd1], 1;
            ret;
        }",
        2,
        64,
        2,
    );
    assert_eq!(got, [1, 7]);
}

#[test]
fn chains_of_blocks_end_within_a_budget_that_is_linear_in_their_length() {
    // Each block waits for the block after it, or for the block before it. If only one block made progress in each
    // round of all blocks, while each of the others ran as long as a waiting block may, the launch would take more than
    // 32 million instructions. Two rounds are enough.
    const BLOCKS: u32 = 32;
    for (step, last) in [("add", BLOCKS - 1), ("sub", 0)] {
        let body = format!(
            ".visible .entry k(.param .u64 out) {{
                .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %ctaid.x;
                mul.wide.u32 %rd2, %r1, 4;
                add.u64 %rd3, %rd1, %rd2;
                mov.u32 %r2, 0;
                setp.eq.u32 %p1, %r1, {last};
                @%p1 bra DONE;
                {step}.s64 %rd4, %rd3, 4;
            WAIT:
                ld.volatile.global.u32 %r2, [%rd4];
                setp.eq.u32 %p2, %r2, 0;
                @%p2 bra WAIT;
            DONE:
                add.u32 %r3, %r2, 1;
                st.volatile.global.u32 [%rd3], %r3;
                ret;
            }}"
        );
        let mut bench = Bench::text(&module(&body), Isa::best());
        let out = bench.bytes(u64::from(BLOCKS) * 4);
        let mut launch = bench.launch("k", BLOCKS, 1, &[Arg::U64(out)]);
        launch.options.budget = Some(2 * u64::from(BLOCKS) * SPIN_PATIENCE);
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None, "{step}");
        let got = bench.get(out, BLOCKS as usize, u32::from_le_bytes);
        let wanted: Vec<u32> = (0..BLOCKS).map(|i| last.abs_diff(i) + 1).collect();
        assert_eq!(got, wanted, "{step}");
    }
}

#[test]
fn rings_of_blocks_take_a_time_that_is_linear_in_their_number() {
    // A number passes all blocks of a ring several times, upwards or downwards. All blocks are in progress, because the
    // launch is cooperative. Two rounds of all blocks are enough for each time that the number passes the ring, in
    // whatever order the blocks have started.
    const TIMES: u32 = 8;
    let steps = |blocks: u32, step: u32| {
        let body = format!(
            ".visible .entry k(.param .u64 out) {{
                .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<6>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %ctaid.x;
                mul.wide.u32 %rd2, %r1, 4;
                add.u64 %rd3, %rd1, %rd2;
                add.u32 %r2, %r1, {step};
                rem.u32 %r2, %r2, {blocks};
                mul.wide.u32 %rd4, %r2, 4;
                add.u64 %rd5, %rd1, %rd4;
                setp.eq.u32 %p1, %r1, 0;
                mov.u32 %r3, 1;
            TIME:
                selp.b32 %r5, 1, 0, %p1;
                sub.u32 %r5, %r3, %r5;
            WAIT:
                ld.volatile.global.u32 %r4, [%rd5];
                setp.lt.u32 %p2, %r4, %r5;
                @%p2 bra WAIT;
                st.volatile.global.u32 [%rd3], %r3;
                add.u32 %r3, %r3, 1;
                setp.le.u32 %p3, %r3, {TIMES};
                @%p3 bra TIME;
                ret;
            }}"
        );
        let mut bench = Bench::text(&module(&body), Isa::best());
        let out = bench.bytes(u64::from(blocks) * 4);
        let mut launch = bench.launch("k", blocks, 1, &[Arg::U64(out)]);
        launch.options.cooperative = true;
        launch.options.budget = Some(1 << 28);
        let execution = Bench::run(launch);
        assert_eq!(
            execution.fault().map(|f| f.to_string()),
            None,
            "{blocks} blocks, {step}"
        );
        let got = bench.get(out, blocks as usize, u32::from_le_bytes);
        assert_eq!(got, vec![TIMES; blocks as usize]);
        execution.counts().all
    };
    for blocks in [8, 32, 64] {
        // Each block waits for the one before it, or after it.
        for step in [blocks - 1, 1] {
            let steps = steps(blocks, step);
            assert!(
                steps < u64::from(blocks * TIMES) * 10_000,
                "{blocks} blocks, {step}: {steps}"
            );
        }
    }
}

#[test]
fn a_barrier_counts_warps_and_passes_values() {
    // Of 64 threads, 16 exit first. Each result combines the conjunction and the disjunction of the predicates, the
    // number of those that are true, and the value of another thread.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<6>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            .shared .u32 data[64];
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 48;
            @%p1 exit;
            shl.b32 %r2, %r1, 2;
            mov.u32 %r3, data;
            add.u32 %r3, %r3, %r2;
            st.shared.u32 [%r3], %r1;
            bar.sync 1, 64;
            xor.b32 %r4, %r2, 32;
            mov.u32 %r5, data;
            add.u32 %r5, %r5, %r4;
            ld.shared.u32 %r6, [%r5];
            and.b32 %r4, %r1, 3;
            setp.eq.u32 %p2, %r4, 0;
            bar.red.popc.u32 %r7, 0, %p2;
            bar.red.and.pred %p3, 0, %p2;
            bar.red.or.pred %p4, 0, %p2;
            selp.u32 %r4, 1, 0, %p3;
            selp.u32 %r2, 2, 0, %p4;
            add.u32 %r4, %r4, %r2;
            mad.lo.u32 %r7, %r7, 100, %r6;
            mad.lo.u32 %r7, %r4, 10000, %r7;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r7;
            ret;
        }",
        1,
        64,
        48,
    );
    for (i, value) in got.iter().enumerate() {
        assert_eq!(*value as usize, 20000 + 12 * 100 + (i ^ 8), "thread {i}");
    }
}

#[test]
fn a_warp_arrives_without_waiting() {
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<4>;
            .shared .u32 cell;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 32;
            @%p1 bra CONSUMER;
            st.shared.u32 [cell], 42;
            bar.arrive 3, 64;
            ret;
        CONSUMER:
            bar.sync 3, 64;
            ld.shared.u32 %r2, [cell];
            st.global.u32 [%rd1], %r2;
            ret;
        }",
        1,
        64,
        1,
    );
    assert_eq!(got, [42]);
}

#[test]
fn a_divergent_barrier_is_reported() {
    let fault = fault(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<5>;
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 16;
            @%p1 bra OTHER;
            bar.sync 0;
            ret;
        OTHER:
            bar.sync 0;
            ret;
        }",
        1,
        32,
    );
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
    assert_eq!(fault.code(), 702);
}

#[test]
fn a_barrier_that_other_warps_never_reach_is_a_deadlock() {
    let fault = fault(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<5>;
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 32;
            @%p1 bra OTHER;
            bar.sync 1, 64;
            ret;
        OTHER:
            bar.sync 2, 64;
            ret;
        }",
        2,
        64,
    );
    let FaultKind::Deadlock { report } = &fault.kind else {
        panic!("{fault}")
    };
    assert!(
        report.contains("warp 0 waits at barrier 1") && report.contains("warp 1 waits at barrier 2"),
        "{report}"
    );
    assert_eq!((fault.code(), fault.block), (702, [0, 0, 0]));
}

#[test]
fn lanes_of_a_whole_warp_are_reported_at_the_barrier_where_they_wait() {
    let wrong = |first: &str, second: &str| {
        let text = format!(
            ".visible .entry k(.param .u64 out) {{
                .reg .pred %p<3>; .reg .b32 %r<5>;
                mov.u32 %r1, %tid.x;
                setp.eq.u32 %p2, %r1, 0;
                @%p2 exit;
                setp.ge.u32 %p1, %r1, 32;
                @%p1 bra OTHER;
                {first};
                ret;
            OTHER:
                {second};
                ret;
            }}"
        );
        fault(&text, 1, 64)
    };
    let check = |fault: crate::Fault, line: u32, thread: u32, exited: u32| {
        assert_eq!((fault.line, fault.thread), (line, [thread, 0, 0]), "{fault}");
        let calls: Vec<u32> = fault.report.calls.iter().map(|call| call.line).collect();
        assert_eq!((calls, fault.report.exited), (vec![line], exited), "{fault}");
        let others = fault.report.others.iter();
        let others: Vec<_> = others
            .map(|group| (group.lanes, group.state, group.position.line))
            .collect();
        let rest = !exited & !(1 << (thread % 32));
        assert_eq!(others, [(rest, LaneState::AtBarrier, line)], "{fault}");
    };
    // Each warp waits at a barrier of its own. Thread 0 has exited, so that thread 1 is the first that waits.
    let fault = wrong("bar.sync 1", "bar.sync 2");
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
    check(fault, 11, 1, 1);
    // The second warp arrives without the thread count of the first one.
    let fault = wrong("bar.sync 1, 64", "bar.sync 1");
    assert!(matches!(fault.kind, FaultKind::BarrierConflict { .. }), "{fault}");
    check(fault, 14, 32, 0);
}

#[test]
fn lanes_join_the_same_collective_at_different_instructions() {
    // As on an H200, lanes at different instances of the same operation take part in it together.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 16;
            @%p1 bra OTHER;
            add.u32 %r2, %r1, 100;
            shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
            bar.warp.sync -1;
            bra END;
        OTHER:
            add.u32 %r2, %r1, 200;
            shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
            bar.warp.sync -1;
        END:
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r3;
            ret;
        }",
        1,
        32,
        32,
    );
    for lane in 0..32u32 {
        let partner = lane ^ 16;
        assert_eq!(got[lane as usize], partner + if partner >= 16 { 200 } else { 100 });
    }
}

#[test]
fn lanes_that_wait_for_different_things_are_reported() {
    let fault = fault(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<8>;
            mov.u32 %r1, %tid.x;
            setp.ge.u32 %p1, %r1, 16;
            @%p1 bra OTHER;
            shfl.sync.bfly.b32 %r3, %r1, 16, 31, -1;
            ret;
        OTHER:
            shfl.sync.down.b32 %r3, %r1, 16, 31, -1;
            ret;
        }",
        1,
        32,
    );
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
}

#[test]
fn lanes_that_exit_are_not_waited_for() {
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %laneid;
            setp.lt.u32 %p1, %r1, 8;
            @!%p1 bra LATE;
            vote.sync.ballot.b32 %r2, 1, -1;
            match.any.sync.b32 %r3, %r1, 0xff;
            redux.sync.add.s32 %r4, %r1, 0xff;
            elect.sync %r5|%p2, 0xff;
            vote.sync.all.pred %p3, %p2, 0xff;
            selp.u32 %r6, 2, 0, %p3;
            selp.u32 %r7, 1, %r6, %p2;
            mad.lo.u32 %r5, %r5, 4, %r7;
            mul.wide.u32 %rd2, %r1, 16;
            add.u64 %rd3, %rd1, %rd2;
            st.global.v4.u32 [%rd3], {%r2, %r3, %r4, %r5};
            ret;
        LATE:
            exit;
        }",
        1,
        32,
        32,
    );
    for (lane, words) in got.chunks(4).enumerate().take(8) {
        // `elect` elects lane 0, and its predicate is true only there.
        assert_eq!(words, [0xff, 1 << lane, 28, u32::from(lane == 0)]);
    }
}

#[test]
fn a_jump_table_splits_the_warp() {
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .b32 %r<5>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            rem.u32 %r2, %r1, 3;
        TABLE: .branchtargets A, B, C;
            brx.idx %r2, TABLE;
        A:  mov.u32 %r3, 10; bra END;
        B:  mov.u32 %r3, 20; bra END;
        C:  mov.u32 %r3, 30;
        END:
            activemask.b32 %r4;
            popc.b32 %r4, %r4;
            mad.lo.u32 %r3, %r4, 100, %r3;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r3;
            ret;
        }",
        1,
        32,
        32,
    );
    assert!((0..32).all(|i| got[i] == 3200 + 10 * (i as u32 % 3 + 1)));
}

#[test]
fn unwritten_registers_are_zero_in_every_block() {
    // Only odd blocks write the register. In even blocks it must be zero, whichever block ran before.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ctaid.x;
            and.b32 %r4, %r2, 1;
            setp.eq.u32 %p1, %r4, 1;
            @%p1 mov.u32 %r3, 77;
            mad.lo.u32 %r5, %r2, 32, %r1;
            mul.wide.u32 %rd2, %r5, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r3;
            ret;
        }",
        6,
        32,
        192,
    );
    assert!((0..192).all(|i| got[i] == if i / 32 % 2 == 1 { 77 } else { 0 }));
}

#[test]
fn the_budget_ends_an_endless_launch() {
    let mut bench = Bench::text(
        &module(
            ".visible .entry k(.param .u64 out) {
            LOOP: bra LOOP;
            }",
        ),
        Isa::best(),
    );
    let out = bench.bytes(4);
    let mut launch = bench.launch("k", 4, 64, &[Arg::U64(out)]);
    launch.options.budget = Some(50_000_000);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert_eq!(
        (&fault.kind, fault.code()),
        (
            &FaultKind::Budget {
                instructions: 50_000_000
            },
            702
        )
    );
}

#[test]
fn blocks_that_finish_spend_the_budget_of_the_launch() {
    let mut bench = Bench::text(
        &module(
            ".visible .entry k(.param .u64 out) {
            .reg .b64 %rd0; .reg .b32 %r0;
            ld.param.u64 %rd0, [out];
            atom.global.add.u32 %r0, [%rd0], 1;
            ret;
            }",
        ),
        Isa::best(),
    );
    let out = bench.bytes(4);
    let mut launch = bench.launch("k", 10_000, 32, &[Arg::U64(out)]);
    launch.options.budget = Some(1000);
    let fault = Bench::run(launch).fault().expect("a fault");
    assert_eq!(fault.kind, FaultKind::Budget { instructions: 1000 });
    let threads = bench.get(out, 1, u32::from_le_bytes)[0];
    assert!((32..32 * 1000).contains(&threads), "{threads} threads have run");
}

#[test]
fn a_call_that_has_spent_its_budget_leaves_blocks_for_the_next() {
    let mut bench = Bench::file("vector_add", Isa::best());
    let n = 1u32 << 16;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (da, dc) = (bench.put(&a, f32::to_le_bytes), bench.bytes(4 * u64::from(n)));
    let args = [Arg::U64(da), Arg::U64(da), Arg::U64(dc), Arg::U32(n)];
    let execution = bench.launch("vector_add", n / 256, 256, &args).start();
    let mut calls = 0;
    while execution.work(1000) != crate::Progress::Finished {
        calls += 1;
        assert!(calls < 100_000);
    }
    assert!(calls > 10, "{calls} calls");
    let c = bench.get(dc, n as usize, f32::from_le_bytes);
    assert!((0..n as usize).all(|i| c[i] == 2.0 * a[i]));
}

#[test]
fn results_do_not_depend_on_the_number_of_host_threads() {
    let mut bench = Bench::file("reduce", Isa::best());
    let n = 1u32 << 18;
    let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 1000) as f32 * 0.37).collect();
    let (input, blocks) = (bench.put(&values, f32::to_le_bytes), n / 256);
    let mut seen: Option<Vec<u32>> = None;
    for threads in [1, 4] {
        let out = bench.bytes(4 * u64::from(blocks));
        let args = [Arg::U64(input), Arg::U64(out), Arg::U32(n)];
        let execution = bench.launch("reduce_sum_f32", blocks, 256, &args).start();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| while execution.work(100_000) == crate::Progress::BudgetSpent {});
            }
        });
        assert!(execution.is_finished() && execution.fault().is_none());
        let sums = bench.get(out, blocks as usize, u32::from_le_bytes);
        match &seen {
            None => seen = Some(sums),
            Some(first) => assert_eq!(first, &sums),
        }
    }
}

#[test]
fn results_do_not_depend_on_the_size_of_slices() {
    // With barriers and divergence, execution continues correctly wherever a call of `work` stops.
    for (file, name) in [
        ("reduce", "reduce_sum_f32"),
        ("divergent", "collatz"),
        ("divergent", "nested"),
        ("divergent", "loops"),
    ] {
        let mut bench = Bench::file(file, Isa::best());
        let n = 1000u32;
        let values: Vec<u32> = (0..n).map(|i| i * 37 % 1013 + 1).collect();
        let input = bench.put(&values, u32::to_le_bytes);
        let mut seen: Option<Vec<u32>> = None;
        // Compiled blocks are put aside between two barriers.
        let engines = [
            Engine::Interpreter,
            Engine::Compiled { lanes: 32 },
            Engine::Compiled { lanes: 16 },
        ];
        let slices = [u64::MAX, 1, 3, 50, 1777];
        for (engine, slice) in engines
            .into_iter()
            .flat_map(|engine| slices.map(|slice| (engine, slice)))
        {
            let out = bench.bytes(4 * u64::from(n));
            let args = [Arg::U64(input), Arg::U64(out), Arg::U32(n)];
            let mut launch = bench.launch(name, n.div_ceil(128), 128, &args);
            launch.options.engine = engine;
            let execution = launch.start();
            let mut calls = 0;
            while execution.work(slice) != crate::Progress::Finished {
                calls += 1;
                assert!(calls < 100_000, "{name} in slices of {slice} on {engine:?}");
            }
            assert_eq!(execution.fault().map(|f| f.to_string()), None);
            if slice == 1 && file == "reduce" {
                // Each block has eight barriers.
                assert!(calls >= n.div_ceil(128) * 8, "{calls} calls on {engine:?}");
            }
            let got = bench.get(out, n as usize, u32::from_le_bytes);
            let first = seen.get_or_insert_with(|| got.clone());
            assert_eq!(first, &got, "{name} in slices of {slice} on {engine:?}");
        }
    }
}
