//! Branches at which lanes of a group diverge in compiled code, against the interpreter.

use super::can_compile;
use super::compiled::{counts, same, same_beyond_a_share, same_fault_in, same_in};
use crate::{Counts, Engine};

/// Loads two numbers of the thread into `%r10` and `%r11`, and the low bits of `%tid.x` into `%r12`: in blocks of one
/// row, the lane. `%r20` and `%r21` are 0.
pub(super) const LOAD: &str =
    "ld.global.v2.u32 {%r10, %r11}, [%rd6]; and.b32 %r12, %r6, 31; mov.u32 %r20, 0; mov.u32 %r21, 0;";
/// Stores `%r20` and `%r21`.
pub(super) const STORE: &str = "mov.b64 %rd9, {%r20, %r21}; st.global.u64 [%rd3], %rd9;";

/// Compares engines. If `inside` is true, no group may leave compiled code before the end of the kernel.
fn check(body: &str, inside: bool) {
    let body = format!("{LOAD} {body} {STORE}");
    same(&body);
    if inside && can_compile() {
        let (Counts { all, compiled, .. }, warps) = counts(&body, Engine::Compiled { lanes: 16 });
        // The end of each warp does not count as compiled.
        assert!(compiled >= all - warps, "{compiled} of {all}: {body}");
    }
}

#[test]
fn sides_of_branches() {
    for condition in [
        "setp.lt.u32 %p1, %r12, 5;",
        "setp.gt.s32 %p1, %r10, 0;",
        "and.b32 %r13, %r10, 1; setp.eq.u32 %p1, %r13, 0;",
        "setp.eq.u32 %p1, %r12, 31;",
        "setp.lt.u32 %p1, %r3, 2;",
    ] {
        // Code on one side, and on both.
        check(
            &format!("{condition} @%p1 bra join; add.u32 %r20, %r10, 3; mul.lo.u32 %r21, %r12, %r10; join:"),
            true,
        );
        check(
            &format!(
                "{condition} @!%p1 bra other; add.u32 %r20, %r10, 3; mov.u32 %r21, 77; bra join;
                other: xor.b32 %r20, %r11, 9; add.u32 %r21, %r12, 5; join:"
            ),
            true,
        );
        // Branches inside, and registers that the sides read and write.
        check(
            &format!(
                "mov.u32 %r20, 5; {condition} @%p1 bra join; add.u32 %r20, %r20, %r10; setp.gt.u32 %p2, %r12, 9; @%p2 bra inner;
                add.u32 %r20, %r20, 100; setp.eq.u32 %p3, %r12, 3; @%p3 bra join; add.u32 %r21, %r20, 1;
                inner: add.u32 %r21, %r21, %r12; join: add.u32 %r21, %r21, %r20;"
            ),
            true,
        );
        // Registers of each kind.
        check(
            &format!(
                "mov.u16 %h1, 7; mov.u64 %rd10, 9; mov.f64 %fd1, 0d3ff0000000000000; setp.eq.u32 %p4, %r12, 2; cvt.u16.u32 %h2, %r11;
                {condition} @%p1 bra join; add.u16 %h1, %h1, %h2; mul.wide.u32 %rd10, %r10, %r11; add.f64 %fd1, %fd1, %fd1;
                setp.lt.s32 %p4, %r10, %r11; sub.u16 %h2, %h1, 3; mov.u32 %r21, %r2;
                join: cvt.u32.u16 %r20, %h1; cvt.u32.u64 %r13, %rd10; xor.b32 %r20, %r20, %r13; shr.u64 %rd10, %rd10, 32;
                cvt.u32.u64 %r13, %rd10; xor.b32 %r20, %r20, %r13; mov.b64 {{%r14, %r15}}, %fd1; xor.b32 %r21, %r21, %r15;
                selp.u32 %r13, 64, 0, %p4; add.u32 %r21, %r21, %r13; cvt.u32.u16 %r13, %h2; add.u32 %r21, %r21, %r13;"
            ),
            true,
        );
    }
}

#[test]
fn loops_that_lanes_leave_one_by_one() {
    for body in [
        "and.b32 %r13, %r10, 7; round: add.u32 %r20, %r20, %r11; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
        // A counter that is the same in all lanes that run the loop.
        "and.b32 %r13, %r10, 7; mov.u32 %r14, 0; round: mad.lo.u32 %r20, %r14, %r11, %r20; add.u32 %r14, %r14, 1;
        setp.lt.u32 %p1, %r14, %r13; @%p1 bra round;",
        // A branch inside the loop, and an exit in its middle.
        "and.b32 %r13, %r10, 7; round: add.u32 %r21, %r21, 1; and.b32 %r14, %r21, %r11; setp.eq.u32 %p1, %r14, 0; @%p1 bra next;
        mad.lo.u32 %r20, %r20, 3, %r21; setp.gt.u32 %p2, %r20, 5000; @%p2 bra end;
        next: setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; end:",
        // Loops inside loops and branches.
        "and.b32 %r13, %r10, 3; and.b32 %r14, %r11, 3; setp.lt.u32 %p1, %r12, 20; @!%p1 bra join;
        outer: mov.u32 %r15, 0; inner: add.u32 %r20, %r20, %r15; add.u32 %r15, %r15, 1; setp.lt.u32 %p1, %r15, %r14; @%p1 bra inner;
        add.u32 %r21, %r21, 1; setp.le.u32 %p1, %r21, %r13; @%p1 bra outer; join:",
    ] {
        check(body, true);
    }
    // A loop on one side of a branch. It is entered in its middle, and each round begins at one of two places. The
    // register that both the loop and the code after it use is the same in all lanes.
    check(
        "and.b32 %r13, %r10, 7; and.b32 %r14, %r12, 3; add.u32 %r15, %r2, 40; setp.ge.u32 %p1, %r12, 25; @%p1 bra outside; bra first;
        back: setp.ge.u32 %p2, %r14, 2; @%p2 bra second;
        first: mad.lo.u32 %r20, %r20, 3, %r15;
        second: add.u32 %r21, %r21, 1; setp.gt.u32 %p3, %r21, %r13; @%p3 bra after; bra back;
        after: add.u32 %r15, %r3, 1000; add.u32 %r20, %r20, %r15; outside:",
        false,
    );
    // More rounds than compiled code runs at a time.
    same_beyond_a_share(
        &format!(
            "{LOAD} and.b32 %r13, %r12, 7; mul.lo.u32 %r13, %r13, 32000;
            round: mad.lo.u32 %r20, %r20, 3, %r11; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; {STORE}"
        ),
        false,
    );
    // Several branches begin the next round.
    check(
        "and.b32 %r13, %r10, 7; round: add.u32 %r21, %r21, 1; setp.ge.u32 %p1, %r21, %r13; @%p1 bra end; and.b32 %r14, %r21, %r11;
        setp.eq.u32 %p1, %r14, 0; @%p1 bra round; add.u32 %r20, %r20, %r21; bra round; end:",
        false,
    );
}

#[test]
fn constant_predicates() {
    let first = "setp.gt.s32 %p2, %r10, 0;";
    for op in [
        "mov.pred %p2, 0;",
        "mov.pred %p2, 1;",
        "mov.pred %p2, -1;",
        "not.pred %p2, 0;",
        "not.pred %p2, -1;",
        "and.pred %p2, %p2, 0;",
        "and.pred %p2, -1, %p2;",
        "or.pred %p2, %p2, -1;",
        "or.pred %p2, 0, %p2;",
        "xor.pred %p2, %p2, 0;",
        "xor.pred %p2, %p2, -1;",
    ] {
        let read = "selp.u32 %r20, %r12, 7, %p2; not.pred %p3, %p2; selp.u32 %r21, %r12, 9, %p3;";
        for body in [
            format!("{first} {op} {read}"),
            // Only some lanes run the instruction.
            format!("{first} setp.lt.u32 %p1, %r12, 5; @%p1 bra join; {op} join: {read}"),
            // Each round of a loop that lanes leave one by one sets the predicate again.
            format!(
                "and.b32 %r13, %r10, 7; {first}
                round: {op} selp.u32 %r15, %r11, 0, %p2; add.u32 %r20, %r20, %r15; setp.gt.s32 %p2, %r11, 0; add.u32 %r21, %r21, 1;
                setp.lt.u32 %p1, %r21, %r13; @%p1 bra round; selp.u32 %r14, %r12, 7, %p2; add.u32 %r20, %r20, %r14;"
            ),
        ] {
            check(&body, true);
            if can_compile() {
                // The interpreter runs it no more often than a comparison, which is always compiled.
                let called = |body: &str| {
                    let (counts, _) = counts(&format!("{LOAD} {body} {STORE}"), Engine::Compiled { lanes: 16 });
                    counts.called
                };
                let comparison = body.replace(op, "setp.ne.u32 %p2, %r10, %r11;");
                assert_eq!(called(&body), called(&comparison), "{body}");
            }
        }
    }
    for third in ["0", "-1"] {
        check(
            &format!(
                "setp.lt.and.u32 %p2|%p3, %r10, %r11, {third}; selp.u32 %r20, %r12, 7, %p2; selp.u32 %r21, %r12, 9, %p3;"
            ),
            true,
        );
    }
}

#[test]
fn guards_and_calls_of_the_interpreter() {
    for condition in [
        "setp.lt.u32 %p1, %r12, 5;",
        "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
    ] {
        for body in [
            // Guards that are true in all running lanes, in none, or in some.
            "setp.ge.u32 %p2, %r12, 5; @%p2 add.u32 %r20, %r10, %r11; @!%p2 mov.u32 %r21, %r10;",
            "setp.ge.u32 %p2, %r12, 3; @%p2 add.u32 %r20, %r10, %r11; @!%p2 xor.b32 %r21, %r10, 5;",
            "setp.ge.u32 %p2, %r12, 5; @%p2 ld.global.u32 %r20, [%rd6 + 4]; @!%p2 st.global.u32 [%rd3], %r10;",
            "mov.u32 %r13, 3; setp.gt.u32 %p2, %r2, 1; @%p2 add.u32 %r13, %r13, %r2; add.u32 %r20, %r13, %r10;",
            "mov.u32 %r13, 3; setp.gt.u32 %p2, %r2, 99; @%p2 add.u32 %r13, %r13, %r12; add.u32 %r20, %r13, %r10;",
            // Scalars that the interpreter computes, also while the first lane does not run.
            "rem.s32 %r13, %r4, 7; div.s32 %r14, %r4, %r2; add.u32 %r20, %r13, %r10; add.u32 %r21, %r14, %r12;",
            "sub.u64 %rd10, %rd6, %rd5; ld.param.u64 %rd11, [in]; ld.global.u32 %r13, [%rd11 + 64]; add.u32 %r20, %r13, %r10;",
            "bfind.u32 %r13, %r4; popc.b32 %r14, %r4; brev.b32 %r15, %r14; add.u32 %r20, %r13, %r14; add.u32 %r21, %r20, %r15;",
            "cvt.u16.u32 %h1, %r4; setp.gt.u16 %p3, %h1, 3; selp.u32 %r20, %r10, %r11, %p3; cvt.u32.u16 %r13, %h1; add.u32 %r21, %r13, %r12;",
            "sub.u32 %r13, %r12, 5; cvt.u64.u32 %rd10, %r13; mul.wide.u32 %rd11, %r13, 4; add.u64 %rd10, %rd10, %rd11;
            mov.b64 {%r20, %r21}, %rd10;",
            "setp.lt.u32 %p2|%p3, %r10, %r11; selp.u32 %r20, %r12, 7, %p2; selp.u32 %r21, %r12, 9, %p3;",
        ] {
            check(
                &format!(
                    "{condition} mov.u32 %r20, %r12; mov.u32 %r21, 6; @%p1 bra join; {body} join: add.u32 %r20, %r20, %r21;"
                ),
                false,
            );
        }
    }
}

/// Lanes diverge outside of compiled code, because a kernel with `activemask` has no code for some lanes of a group.
/// The code continues where they meet again. Each side of the branch writes a register with a value that is the same in
/// all lanes that run it, so that the register then differs between the lanes of a group.
#[test]
fn registers_that_differ_after_a_branch_outside_of_the_code() {
    for (write, read) in [
        ("mov.u16 %h1,", "cvt.u32.u16 %r20, %h1;"),
        ("mov.u16 %h1,", "cvt.u64.u16 %rd9, %h1; cvt.u32.u64 %r20, %rd9;"),
        ("mov.u16 %h1,", "setp.gt.u16 %p2, %h1, 8; selp.u32 %r20, 1, 2, %p2;"),
        ("mov.u32 %r13,", "add.u32 %r20, %r13, %r2;"),
        ("mov.u64 %rd10,", "add.u64 %rd10, %rd10, %rd2; cvt.u32.u64 %r20, %rd10;"),
        ("setp.gt.u32 %p3, %r2,", "selp.u32 %r20, 1, 2, %p3;"),
    ] {
        check(
            &format!(
                "activemask.b32 %r21; and.b32 %r14, %r10, 1; setp.eq.u32 %p1, %r14, 0; {write} 2; @%p1 bra join; {write} 9;
                join: {read} mad.lo.u32 %r20, %r20, 3, %r20; xor.b32 %r21, %r21, %r12;"
            ),
            false,
        );
    }
}

#[test]
fn accesses_of_some_lanes() {
    let place = "mov.u32 %r13, part; shl.b32 %r14, %r8, 4; add.u32 %r13, %r13, %r14; mov.u32 %r15, 0x01020304;
        st.shared.v4.u32 [%r13], {%r15, %r15, %r15, %r15}; bar.sync 0;";
    for condition in [
        "setp.lt.u32 %p1, %r12, 5;",
        "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
    ] {
        for store in [
            "st.shared.u8 [%r13], %r10;",
            "st.shared.u16 [%r13 + 2], %r10;",
            "st.shared.u32 [%r13 + 4], %r10;",
            "st.shared.v2.u32 [%r13 + 8], {%r10, %r11};",
            "st.shared.v4.u32 [%r13], {%r10, %r11, %r12, %r15};",
            "mov.b64 %rd9, {%r11, %r10}; st.shared.u64 [%r13], %rd9;",
            // Addresses in another order, and consecutive ones.
            "xor.b32 %r17, %r13, 16; st.shared.u32 [%r17 + 12], %r11;",
            "shr.u32 %r17, %r14, 2; mov.u32 %r18, part; add.u32 %r17, %r17, %r18; st.shared.u32 [%r17], %r11;",
            "shr.u32 %r17, %r14, 1; mov.u32 %r18, part; add.u32 %r17, %r17, %r18; mov.b64 %rd9, {%r11, %r10}; st.shared.u64 [%r17], %rd9;",
            "shr.u32 %r17, %r14, 4; mov.u32 %r18, part; add.u32 %r17, %r17, %r18; st.shared.u8 [%r17], %r11;",
            // The same address in all lanes.
            "mov.u32 %r17, part; st.shared.u32 [%r17 + 4], %r2; ld.shared.u32 %r21, [%r17 + 4];",
            // A call of the interpreter.
            "atom.shared.add.u32 %r21, [%r13], %r10;",
        ] {
            check(
                &format!(
                    "{place} {condition} @%p1 bra join; {store} join: bar.sync 0; ld.shared.v4.u32 {{%r14, %r15, %r16, %r17}}, [%r13];
                    mad.lo.u32 %r20, %r14, 3, %r15; mad.lo.u32 %r20, %r20, 5, %r16; mad.lo.u32 %r20, %r20, 7, %r17;"
                ),
                false,
            );
        }
        // Lanes that do not run have an invalid address, or one that other lanes change.
        for load in [
            "selp.b64 %rd10, 0, %rd6, %p1; @%p1 bra join; ld.global.u32 %r20, [%rd10]; st.global.u32 [%rd10 + 8], %r20; ld.global.u32 %r21, [%rd10 + 8]; join:",
            "sub.u64 %rd10, %rd6, 16; @%p1 bra join; ld.global.u32 %r20, [%rd10 + 16]; add.u64 %rd10, %rd10, %rd5; join:",
        ] {
            check(&format!("{condition} {load}"), false);
        }
    }
}

#[test]
fn faults_of_some_lanes() {
    for lane in [0, 3, 17, 31] {
        for body in [
            "setp.gt.u32 %p1, %r12, 17; setp.ne.and.u32 %p1, %r12, 31, %p1; @%p1 bra join; ld.global.u32 %r20, [%rd10]; join:",
            "setp.lt.u32 %p1, %r12, 9; @!%p1 bra join; st.global.u32 [%rd10], %r20; join: ld.global.u32 %r21, [%rd10];",
            "and.b32 %r13, %r10, 7; round: add.u32 %r21, %r21, 1; ld.global.u32 %r14, [%rd10]; add.u32 %r20, %r20, %r14;
            setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
        ] {
            let body = format!(
                "{LOAD} setp.eq.u32 %p2, %r6, {lane}; selp.b64 %rd10, 64, %rd6, %p2; {body} {STORE}"
            );
            same_fault_in(&[(64, 1), (32, 2)], &body);
        }
    }
}

#[test]
fn lanes_that_wait_for_waiting_lanes() {
    let place =
        "mov.u32 %r13, part; shr.u32 %r14, %r8, 5; shl.b32 %r14, %r14, 2; add.u32 %r13, %r13, %r14; mov.u32 %r14, 0;
        st.shared.u32 [%r13], %r14; bar.sync 0; setp.eq.u32 %p1, %r12, 0; setp.ne.or.u32 %p1, %r3, 0, %p1;";
    // Only lanes of the first block wait.
    for body in [
        // The loop comes first, so that the other lanes run only when it is suspended.
        "@%p1 bra set; round: add.u32 %r21, %r21, 1; ld.shared.u32 %r14, [%r13]; setp.eq.u32 %p2, %r14, 0; @%p2 bra round; bra join;
        set: mov.u32 %r15, 1; st.shared.u32 [%r13], %r15; join: mov.u32 %r21, 0; add.u32 %r20, %r10, %r11;",
        "@!%p1 bra round; mov.u32 %r15, 1; st.shared.u32 [%r13], %r15; bra join;
        round: ld.shared.u32 %r14, [%r13]; setp.eq.u32 %p2, %r14, 0; @%p2 bra round; join: add.u32 %r20, %r10, %r11;",
        // The lanes that set the word have left the same loop.
        "round: ld.shared.u32 %r14, [%r13]; setp.ne.u32 %p3, %r14, 0; or.pred %p2, %p1, %p3; @!%p2 bra round;
        st.shared.u32 [%r13], %r2;",
    ] {
        same_in(&[(64, 1)], &format!("{LOAD} {place} {body} {STORE}"));
    }
}

#[test]
fn stores_and_reductions_of_some_lanes_at_one_place() {
    let place = "mov.u32 %r13, part; mov.u32 %r14, 9; shl.b32 %r15, %r8, 2; add.u32 %r15, %r13, %r15; st.shared.u32 [%r15], %r14;
        st.shared.u32 [%r15 + 4096], %r14; bar.sync 0; shr.u32 %r15, %r8, 5; shl.b32 %r15, %r15, 5; add.u32 %r15, %r15, %r13;";
    for condition in [
        "setp.eq.u32 %p1, %r12, 0;",
        "setp.eq.u32 %p1, %r12, 7;",
        "setp.lt.u32 %p1, %r12, 5;",
        "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
    ] {
        for store in [
            "st.shared.u32 [%r15], %r12;",
            "st.shared.u32 [%r15], %r10;",
            "st.shared.u8 [%r15 + 1], %r10;",
            "st.shared.v2.u32 [%r15 + 8], {%r10, %r12};",
            "st.shared.v4.u32 [%r15], {%r10, %r12, %r2, %r11};",
            "mov.b64 %rd9, {%r11, %r10}; st.shared.u64 [%r15 + 8], %rd9;",
            "cvt.u16.u32 %h1, %r10; st.shared.u16 [%r15 + 2], %h1;",
            "red.shared.add.u32 [%r15], %r10;",
            "red.shared.add.u32 [%r15], 3;",
            "red.shared.xor.b32 [%r15 + 4], %r12;",
            "red.shared.or.b32 [%r15 + 4], %r12;",
            "shl.b32 %r16, %r12, 2; add.u32 %r16, %r16, %r13; red.shared.add.u32 [%r16], %r12;",
            "and.b32 %r16, %r10, 28; add.u32 %r16, %r16, %r13; red.shared.add.u32 [%r16 + 4096], %r11;",
        ] {
            check(
                &format!(
                    "{place} {condition} @!%p1 bra join; {store} join: bar.sync 0; ld.shared.u32 %r20, [%r15]; ld.shared.v2.u32 {{%r16, %r17}}, [%r15 + 8];
                    mad.lo.u32 %r20, %r20, 3, %r16; mad.lo.u32 %r20, %r20, 5, %r17; ld.shared.u32 %r17, [%r15 + 4];
                    mad.lo.u32 %r20, %r20, 5, %r17; shl.b32 %r16, %r12, 2; add.u32 %r16, %r16, %r13; ld.shared.u32 %r21, [%r16];
                    ld.shared.u32 %r17, [%r16 + 4096]; mad.lo.u32 %r21, %r21, 3, %r17;"
                ),
                false,
            );
        }
    }
}

#[test]
fn stores_of_some_lanes_keep_what_other_lanes_have_stored() {
    for condition in [
        "setp.lt.u32 %p1, %r12, 5;",
        "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
    ] {
        // Rows, and places in another order than that of the lanes.
        for index in ["mov.u32 %r13, %r8;", "xor.b32 %r13, %r8, 5;"] {
            for (bytes, store) in [
                (4, "st.shared.u32 [%rd10], %r10;"),
                (4, "add.u32 %r17, %r8, 3; st.shared.u32 [%rd10], %r17;"),
                (8, "mov.b64 %rd12, {%r10, %r11}; st.shared.u64 [%rd10], %rd12;"),
                (8, "st.shared.v2.u32 [%rd10], {%r10, %r11};"),
                (8, "add.u64 %rd12, %rd5, 3; st.shared.u64 [%rd10], %rd12;"),
                (2, "cvt.u16.u32 %h1, %r10; st.shared.u16 [%rd10], %h1;"),
            ] {
                let body = format!(
                    "{index} mov.u64 %rd13, part; mul.wide.u32 %rd11, %r13, {bytes}; add.u64 %rd10, %rd13, %rd11;
                    mov.u32 %r18, part; shl.b32 %r15, %r8, 3; add.u32 %r14, %r18, %r15;
                    st.shared.v2.u32 [%r14], {{%r0, %r0}}; bar.sync 0;
                    {condition} @%p1 bra join; {store} join: bar.sync 0; ld.shared.v2.u32 {{%r20, %r21}}, [%r14];"
                );
                check(&body, false);
            }
        }
    }
}

/// Stores of some lanes to local memory at one address do not move the local memory of the others.
#[test]
fn local_memory_of_lanes_that_do_not_run() {
    for store in [
        "st.local.u32 [%rd10 + 4], %r11;",
        "st.local.v2.u32 [%rd10 + 8], {%r11, %r10};",
        "st.local.u64 [%rd10 + 8], %rd5;",
        "add.u64 %rd11, %rd10, %rd11; st.local.u32 [%rd11], %r11;",
    ] {
        for condition in [
            "setp.lt.u32 %p1, %r12, 5;",
            "and.b32 %r16, %r10, 1; setp.eq.u32 %p1, %r16, 0;",
        ] {
            check(
                &format!(
                    "{{ .local .align 8 .b32 cells[8]; mov.u64 %rd10, cells; and.b32 %r13, %r10, 3; mul.wide.u32 %rd11, %r13, 4;
                    st.local.u32 [%rd10], %r2; st.local.u32 [%rd10 + 4], %r12; st.local.u64 [%rd10 + 8], %rd5;
                    {condition} @%p1 bra join; {store}
                    join: ld.local.u32 %r21, [%rd10]; st.local.u32 [%rd10 + 12], %r8; ld.local.u32 %r20, [%rd10 + 4];
                    ld.local.v2.u32 {{%r14, %r15}}, [%rd10 + 8]; mad.lo.u32 %r20, %r20, 3, %r14; mad.lo.u32 %r21, %r21, 3, %r15; }}"
                ),
                true,
            );
        }
    }
}

/// Some groups of a warp wait at a barrier, and the others end the kernel before it: the warp counts the instructions
/// of the groups once.
#[test]
fn groups_of_a_warp_end_apart() {
    if !can_compile() {
        return;
    }
    // The last group of 8 lanes of the first or the second warp of each block.
    for last in [24, 56] {
        let body = format!(
            "{LOAD} sub.u32 %r13, %r6, {last}; setp.lt.u32 %p1, %r13, 8; @%p1 bra done;
            again: add.u32 %r20, %r20, %r10; mul.lo.u32 %r20, %r20, %r11; add.u32 %r21, %r21, 1;
            setp.lt.u32 %p2, %r21, 200; @%p2 bra again; bar.sync 0; {STORE}"
        );
        same(&body);
        let (interpreted, warps) = counts(&body, Engine::Interpreter);
        let (Counts { all, .. }, _) = counts(&body, Engine::Compiled { lanes: 8 });
        let most = interpreted.all + 20 * warps;
        assert!(all <= most, "{all} instead of {}: {body}", interpreted.all);
    }
}

/// Warps that need not wait for others have so large a share of backward jumps that their lanes finish long loops in
/// compiled code.
#[test]
fn long_loops() {
    check(
        "and.b32 %r13, %r10, 1023; add.u32 %r13, %r13, 9000;
        round: mad.lo.u32 %r20, %r20, 3, %r11; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r13; @%p1 bra round;",
        true,
    );
}
