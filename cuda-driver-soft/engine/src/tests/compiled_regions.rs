//! Lanes that diverge in compiled code: faults of several lanes, memory after a fault, and unusual loops and branches.

use super::compiled::{arguments, counts, kernel, same, same_beyond_a_share, same_fault, same_fault_in};
use super::compiled_masks::{LOAD, STORE};
use super::{Bench, can_compile};
use crate::{Counts, Engine, Isa};

/// Branches and loops in which a lane faults if its address in `%rd10` is invalid.
const BODIES: [&str; 4] = [
    "setp.lt.u32 %p1, %r12, 9; @%p1 bra other; ld.global.u32 %r20, [%rd10]; bra join; other: ld.global.u32 %r21, [%rd10 + 4]; join:",
    "and.b32 %r13, %r10, 1; setp.eq.u32 %p1, %r13, 0; @%p1 bra join; st.global.u32 [%rd10], %r12; join: ld.global.u32 %r21, [%rd10];",
    "and.b32 %r13, %r11, 7; and.b32 %r22, %r12, 3; round: add.u32 %r21, %r21, 1; setp.lt.u32 %p3, %r21, %r22; @%p3 bra next; ld.global.u32 %r14, [%rd10];
    add.u32 %r20, %r20, %r14; next: setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
    "and.b32 %r13, %r11, 7; round: ld.global.u32 %r14, [%rd10]; mad.lo.u32 %r20, %r20, 3, %r14; add.u32 %r21, %r21, 1;
    setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
];

#[test]
fn faults_of_two_lanes() {
    // Both lanes are in one group of 8 lanes, of 16, or only of 32.
    for (a, b) in [(2, 5), (3, 12), (1, 17), (9, 31), (20, 30)] {
        for body in BODIES {
            let body = format!(
                "{LOAD} setp.eq.u32 %p2, %r6, {a}; setp.eq.or.u32 %p2, %r6, {b}, %p2; selp.b64 %rd10, 64, %rd6, %p2; {body} {STORE}"
            );
            same_fault_in(&[(64, 1), (32, 2)], &body);
        }
    }
}

#[test]
fn stores_before_a_fault() {
    if !can_compile() {
        return;
    }
    for lane in [0, 3, 17, 31] {
        for body in BODIES {
            let body = format!(
                "{LOAD} setp.eq.u32 %p2, %r6, {lane}; selp.b64 %rd10, 64, %rd6, %p2; setp.gt.u32 %p1, %r12, 20; @%p1 bra first;
                st.global.u32 [%rd3], %r12; first: {body} st.global.u32 [%rd3 + 4], %r21;"
            );
            // In the group of the faulty lane, the same lanes have stored as in the interpreter. Other groups may have
            // run further.
            let group = lane / 16 * 16..lane / 16 * 16 + 16;
            let mut stored = Vec::new();
            for engine in [Engine::Interpreter, Engine::Compiled { lanes: 16 }] {
                let mut bench = Bench::text(&kernel(&body), Isa::Wide);
                let input = bench.put(&(0..256).collect::<Vec<u32>>(), u32::to_le_bytes);
                let out = bench.put(&[!0u64; 32], u64::to_le_bytes);
                let args = arguments(out, input, 32);
                let mut launch = bench.launch("k", 1, 32, &args);
                launch.options.engine = engine;
                let fault = Bench::run(launch).fault().expect("a fault");
                let numbers = bench.get(input, 128, u32::from_le_bytes);
                let results = bench.get(out, 32, u64::from_le_bytes);
                stored.push((
                    (fault.line, fault.thread),
                    results[group.clone()].to_vec(),
                    numbers[4 * group.start..4 * group.end].to_vec(),
                ));
            }
            assert_eq!(stored[0], stored[1], "lane {lane}: {body}");
        }
    }
}

#[test]
fn a_loop_with_two_backward_jumps_to_different_blocks() {
    // The loop is entered in its middle. Even lanes leave it before odd ones, which still need the first value of
    // `%r15`.
    same(&format!(
        "{LOAD} mov.u32 %r15, 3; mov.u32 %r13, 0; and.b32 %r14, %r6, 1; setp.lt.u32 %p1, %r12, 20; @!%p1 bra outside; bra first;
        back: setp.eq.u32 %p2, %r14, 0; @%p2 bra second;
        first: mad.lo.u32 %r20, %r20, 5, %r15;
        second: add.u32 %r13, %r13, 1; setp.ge.u32 %p3, %r13, 2; setp.eq.and.u32 %p3, %r14, 0, %p3; setp.ge.or.u32 %p3, %r13, 5, %p3;
        @%p3 bra after; bra back;
        after: mov.u32 %r15, 7; add.u32 %r21, %r21, %r15;
        outside: {STORE}"
    ));
}

#[test]
fn loops_of_one_basic_block() {
    for body in [
        // Registers of each kind that lanes need after they have left the loop.
        "and.b32 %r13, %r10, 7; mov.u64 %rd10, 1; mov.u16 %h1, 3; round: add.u32 %r21, %r21, 1; mad.wide.u32 %rd10, %r11, %r21, %rd10;
        add.u16 %h1, %h1, 5; setp.gt.u64 %p2, %rd10, %rd2; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;
        cvt.u32.u64 %r14, %rd10; cvt.u32.u16 %r15, %h1; selp.u32 %r20, %r14, %r15, %p2; xor.b32 %r20, %r20, %r15;",
        // A condition that is true at the end of the loop, and a register that the loop only writes.
        "and.b32 %r13, %r10, 7; round: mul.lo.u32 %r20, %r21, %r11; add.u32 %r21, %r21, 1; setp.ge.u32 %p1, %r21, %r13; @!%p1 bra round;",
        // More registers than machine registers.
        "and.b32 %r13, %r10, 7; mov.u64 %rd10, 1; mov.u64 %rd11, 2; mov.u64 %rd12, 3; mov.u64 %rd13, 4; round: add.u64 %rd10, %rd10, %rd11;
        xor.b64 %rd11, %rd11, %rd12; add.u64 %rd12, %rd12, %rd13; sub.u64 %rd13, %rd13, %rd10; add.u32 %r21, %r21, 1;
        setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; xor.b64 %rd10, %rd10, %rd11; add.u64 %rd12, %rd12, %rd13; add.u64 %rd10, %rd10, %rd12;
        cvt.u32.u64 %r20, %rd10;",
        // Stores to consecutive places, to places with gaps between them, and to places in another order.
        "and.b32 %r13, %r10, 7; mov.u32 %r14, part; shl.b32 %r15, %r8, 2; add.u32 %r14, %r14, %r15; mov.u32 %r15, 9; st.shared.u32 [%r14], %r15;
        round: add.u32 %r21, %r21, 1; st.shared.u32 [%r14], %r21; st.global.u32 [%rd3], %r21; xor.b32 %r16, %r14, 4; st.shared.u32 [%r16], %r21;
        setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; bar.sync 0; ld.shared.u32 %r20, [%r14];",
        // Calls of the interpreter, and a guard.
        "and.b32 %r13, %r10, 7; round: add.u32 %r21, %r21, 1; rem.u32 %r14, %r11, %r21; setp.gt.u32 %p2, %r14, 1; @%p2 add.u32 %r20, %r20, %r14;
        bfind.u32 %r15, %r21; add.u32 %r20, %r20, %r15; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
        // The loop is on one side of a branch, and the other lanes wait after it.
        "mov.u32 %r22, 40; and.b32 %r13, %r10, 7; setp.lt.u32 %p1, %r12, 9; @%p1 bra join; mov.u32 %r22, 3; round: add.u32 %r21, %r21, %r22;
        add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, %r13; @%p1 bra round; join: add.u32 %r21, %r21, %r22;",
        // Another loop follows at once.
        "and.b32 %r13, %r10, 7; round: add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; and.b32 %r13, %r11, 7;
        again: add.u32 %r20, %r20, %r21; sub.u32 %r13, %r13, 1; setp.gt.s32 %p1, %r13, 0; @%p1 bra again;",
    ] {
        let body = format!("{LOAD} {body} {STORE}");
        same(&body);
        if can_compile() {
            let (Counts { all, compiled, .. }, _) = counts(&body, Engine::Compiled { lanes: 16 });
            assert!(10 * compiled >= 9 * all, "{compiled} of {all}: {body}");
        }
    }
    // More rounds than compiled code runs at a time: the interpreter continues.
    let body = "mul.lo.u32 %r13, %r12, 7000; round: mad.lo.u32 %r20, %r20, 3, %r11; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;";
    same_beyond_a_share(&format!("{LOAD} {body} {STORE}"), false);
}

#[test]
fn rare_regions() {
    for condition in [
        "setp.lt.u32 %p1, %r12, 5;",
        "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
    ] {
        for body in [
            // Local memory.
            "{ .local .align 8 .b32 cells[8]; mov.u64 %rd10, cells; and.b32 %r13, %r10, 7; mul.wide.u32 %rd11, %r13, 4;
            add.u64 %rd11, %rd10, %rd11; st.local.u32 [%rd11], %r2; @%p1 bra join; st.local.u32 [%rd11], %r11; st.local.v2.u32 [%rd10 + 8], {%r12, %r10};
            ld.local.u32 %r20, [%rd11]; join: ld.local.u32 %r21, [%rd11]; }",
            // Values of 16 and 8 bits that all lanes store to one place.
            "mov.u32 %r13, part; shr.u32 %r14, %r8, 5; shl.b32 %r14, %r14, 2; add.u32 %r13, %r13, %r14; mov.u16 %h1, 7; cvt.u16.u32 %h2, %r10;
            @%p1 bra join; st.shared.u16 [%r13], %h1; st.shared.u16 [%r13 + 2], %h2; st.shared.u8 [%r13 + 1], %h2;
            join: bar.sync 0; ld.shared.u32 %r20, [%r13];",
            // Consecutive words of shared memory, which keep their values for lanes that do not run.
            "mov.u32 %r13, part; shl.b32 %r14, %r8, 2; add.u32 %r13, %r13, %r14; mov.u32 %r15, 9; st.shared.u32 [%r13], %r15; bar.sync 0;
            @%p1 bra join; st.shared.u32 [%r13], %r10; join: bar.sync 0; ld.shared.u32 %r20, [%r13];",
            // An endless loop and a trap, which no lanes reach.
            "setp.gt.u32 %p2, %r12, 40; @%p1 bra join; @%p2 bra endless; add.u32 %r20, %r10, 1; bra join; endless: add.u32 %r21, %r21, 1;
            bra endless; join:",
            "setp.gt.u32 %p2, %r12, 40; @%p1 bra join; @%p2 bra bad; add.u32 %r20, %r10, 1; bra join; bad: trap; join: add.u32 %r21, %r20, 1;",
        ] {
            same(&format!("{LOAD} {condition} {body} {STORE}"));
        }
        // A trap that one thread of a block reaches.
        let body = "@%p1 bra join; add.u32 %r20, %r10, 1; setp.eq.u32 %p2, %r8, 29; @%p2 bra bad; bra join; bad: trap; join: add.u32 %r21, %r20, 1;";
        same_fault(&format!("{LOAD} {condition} {body} {STORE}"));
    }
}
