//! Operations across the lanes of a warp in compiled code, against the interpreter.

use super::can_compile;
use super::compiled::{counts, same_fault_in, same_in};
use crate::{Counts, Engine};

/// Block shapes of whole warps. In the last one, a warp has threads of two rows of the block.
const BLOCKS: [(u32, u32); 4] = [(64, 1), (96, 1), (32, 2), (16, 4)];

/// Loads a number of the thread into `%r10`. `%p1` is true if its two low bits are not both 0.
const LOAD: &str = "ld.global.u32 %r10, [%rd6]; and.b32 %r11, %r10, 3; setp.ne.u32 %p1, %r11, 0;";
/// Stores `%r12`, and `%p2` above it.
const STORE: &str = "cvt.u64.u32 %rd9, %r12; selp.b64 %rd10, 0x100000000, 0, %p2; or.b64 %rd9, %rd9, %rd10; st.global.u64 [%rd3], %rd9;";

fn check(operation: &str) {
    let body = format!("{LOAD} mov.u32 %r12, 9; setp.eq.u32 %p2, %r12, 0; {operation} {STORE}");
    same_in(&BLOCKS, &body);
    // Whole warps must stay in compiled code, which calls the interpreter for operations without machine code.
    if can_compile() {
        let (Counts { all, compiled, .. }, warps) = counts(&body, Engine::Compiled { lanes: 16 });
        // The end of each warp does not count as compiled.
        assert_eq!(compiled, all - warps, "{operation}");
    }
}

#[test]
fn shuffles() {
    for (mode, by, clamp) in [
        ("bfly", "1", 31),
        ("bfly", "3", 31),
        ("bfly", "8", 31),
        ("bfly", "16", 31),
        ("bfly", "21", 31),
        ("bfly", "4", 0x181f),
        ("bfly", "12", 0x1807),
        ("down", "1", 31),
        ("down", "8", 31),
        ("down", "13", 31),
        ("down", "31", 31),
        ("down", "5", 0x101f),
        ("up", "1", 0),
        ("up", "16", 0),
        ("up", "30", 0),
        ("up", "3", 0x1800),
        ("up", "3", 9),
        ("idx", "0", 31),
        ("idx", "17", 31),
        ("idx", "5", 0x181f),
        ("idx", "40", 3),
        ("idx", "%r11", 31),
        ("down", "%r11", 0x181f),
    ] {
        check(&format!("shfl.sync.{mode}.b32 %r12|%p2, %r10, {by}, {clamp:#x}, -1;"));
    }
    // The destination is the source. Then sources that grow by a step from lane to lane, or are the same in all lanes.
    check("shfl.sync.bfly.b32 %r10, %r10, 9, 31, -1; mov.u32 %r12, %r10;");
    check("shfl.sync.down.b32 %r12|%p2, %r0, 2, 31, -1;");
    check("shfl.sync.down.b32 %r12|%p2, %r4, 2, 31, -1;");
    check("shfl.sync.idx.b32 %r12, 77, 2, 31, -1;");
    check("mov.u32 %r13, %laneid; shfl.sync.up.b32 %r12|%p2, %r13, 2, 0, -1;");
    // The mask is in a register.
    check("sub.u32 %r14, %r3, %r3; not.b32 %r14, %r14; shfl.sync.bfly.b32 %r12, %r10, 2, 31, %r14;");
}

#[test]
fn votes_and_reductions() {
    for vote in [
        "ballot.b32 %r12, %p1",
        "ballot.b32 %r12, !%p1",
        "all.pred %p2, %p1",
        "all.pred %p2, !%p1",
        "any.pred %p2, %p1",
        "any.pred %p2, !%p1",
        "uni.pred %p2, %p1",
    ] {
        check(&format!("vote.sync.{vote}, -1;"));
        // The predicate is the same in all lanes, or in all lanes of some warps.
        check(&format!("setp.lt.u32 %p1, %r6, 64; vote.sync.{vote}, -1;"));
        check(&format!("setp.lt.u32 %p1, %r6, 40; vote.sync.{vote}, -1;"));
    }
    for reduction in ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32"] {
        check(&format!("redux.sync.{reduction} %r12, %r10, -1;"));
        check(&format!("redux.sync.{reduction} %r12, %r0, -1;"));
    }
    for reduction in ["and", "or", "xor"] {
        check(&format!("redux.sync.{reduction}.b32 %r12, %r10, -1;"));
    }
    for operation in [
        "match.any.sync.b32 %r12, %r11, -1;",
        "match.all.sync.b32 %r12|%p2, %r11, -1;",
        "match.all.sync.b64 %r12|%p2, %rd2, -1;",
        "elect.sync %r12|%p2, -1;",
        "activemask.b32 %r12;",
        "bar.warp.sync -1; mov.u32 %r12, %r10;",
    ] {
        check(operation);
    }
}

#[test]
fn results_that_replace_registers_of_16_bits() {
    // In groups of 32 lanes these registers fill the vector registers, so that one is written to its row first.
    for operation in [
        "vote.sync.ballot.b32 %r12, %p1, -1;",
        "redux.sync.xor.b32 %r12, %r10, -1;",
    ] {
        check(&format!(
            "mov.u32 %r12, %r10; ld.global.u16 %h1, [%rd6+4]; ld.global.u16 %h2, [%rd6+6]; ld.global.u16 %h3, [%rd6+8];
            {operation} cvt.u32.u16 %r13, %h1; add.u32 %r12, %r12, %r13; cvt.u32.u16 %r13, %h2; add.u32 %r12, %r12, %r13;
            cvt.u32.u16 %r13, %h3; add.u32 %r12, %r12, %r13;"
        ));
    }
}

#[test]
fn collectives_in_loops_and_after_branches() {
    // A sum over the warp, by shuffles of two modes.
    check(
        "shfl.sync.down.b32 %r13, %r10, 16, 31, -1; add.u32 %r10, %r10, %r13;
        shfl.sync.down.b32 %r13, %r10, 8, 31, -1; add.u32 %r10, %r10, %r13;
        shfl.sync.bfly.b32 %r13, %r10, 4, 31, -1; add.u32 %r10, %r10, %r13;
        shfl.sync.bfly.b32 %r13, %r10, 2, 31, -1; add.u32 %r10, %r10, %r13;
        shfl.sync.bfly.b32 %r13, %r10, 1, 31, -1; add.u32 %r12, %r10, %r13;",
    );
    // The halves of a number of 64 bits.
    check(
        "ld.global.u64 %rd12, [%rd6]; mov.b64 {%r13, %r14}, %rd12;
        shfl.sync.bfly.b32 %r15, %r13, 1, 31, -1; shfl.sync.bfly.b32 %r16, %r14, 1, 31, -1;
        mov.b64 %rd13, {%r15, %r16}; add.u64 %rd13, %rd13, %rd12; cvt.u32.u64 %r12, %rd13;",
    );
    // A loop of shuffles whose distance is in a register, with registers that are live across it: one grows by a step
    // from lane to lane, and one is the same in all lanes.
    check(
        "mov.u32 %r13, 16; add.u32 %r15, %r0, 7; mul.lo.u32 %r16, %r2, 5;
        round: shfl.sync.bfly.b32 %r14, %r10, %r13, 31, -1; add.u32 %r10, %r10, %r14; add.u32 %r10, %r10, %r15;
        shr.u32 %r13, %r13, 1; setp.ne.u32 %p3, %r13, 0; @%p3 bra round; add.u32 %r12, %r10, %r16;",
    );
    // A loop that a vote ends.
    check("mov.u32 %r13, 0;
        round: add.u32 %r13, %r13, 1; and.b32 %r14, %r10, 15; setp.gt.u32 %p3, %r14, %r13; vote.sync.any.pred %p4, %p3, -1;
        @%p4 bra round; mov.u32 %r12, %r13;");
    for body in [
        // Some groups skip the operation, and so do some lanes of others. The remaining lanes take part.
        "mov.u32 %r12, 0; and.b32 %r13, %r6, 31; setp.lt.u32 %p3, %r13, 16; @%p3 bra skip;
        shfl.sync.bfly.b32 %r12, %r10, 1, 31, 0xffff0000; add.u32 %r12, %r12, 1;
        skip: add.u32 %r12, %r12, %r13;",
        "mov.u32 %r12, 0; and.b32 %r13, %r6, 31; setp.lt.u32 %p3, %r13, 5; @%p3 bra skip;
        activemask.b32 %r12; skip: shfl.sync.bfly.b32 %r13, %r10, 3, 31, -1; add.u32 %r12, %r12, %r13;",
        "mov.u32 %r12, 0; and.b32 %r13, %r6, 31; setp.lt.u32 %p3, %r13, 16; @%p3 bra skip;
        activemask.b32 %r12; skip: vote.sync.ballot.b32 %r13, %p1, -1; add.u32 %r12, %r12, %r13;",
        // Groups meet at different instructions.
        "and.b32 %r13, %r6, 31; setp.lt.u32 %p3, %r13, 16; @%p3 bra other;
        shfl.sync.bfly.b32 %r12, %r10, 16, 31, -1; bra end;
        other: shfl.sync.bfly.b32 %r12, %r10, 16, 31, -1; add.u32 %r12, %r12, 1; end:",
        // Masks of a part of the warp, which are known only when the kernel runs.
        "mov.u32 %r13, -1; setp.lt.u32 %p3, %r8, 32; selp.b32 %r13, 0x0000ffff, %r13, %p3; and.b32 %r14, %r8, 31;
        setp.lt.u32 %p4, %r14, 16; selp.b32 %r13, %r13, -1, %p4; mov.u32 %r12, 1;
        @!%p4 bra skip; @!%p3 bra skip; shfl.sync.down.b32 %r12, %r10, 3, 31, %r13; skip:",
        // Some lanes end before the operation.
        "and.b32 %r13, %r6, 31; setp.gt.u32 %p3, %r13, 20; @%p3 bra done; redux.sync.add.u32 %r12, %r10, -1;",
        "and.b32 %r13, %r6, 31; setp.gt.u32 %p3, %r13, 15; @%p3 bra done; redux.sync.add.u32 %r12, %r10, -1;",
    ] {
        let body = format!("{LOAD} mov.u32 %r12, 9; setp.eq.u32 %p2, %r12, 0; {body} {STORE}");
        same_in(&BLOCKS, &body);
    }
}

#[test]
fn faults_before_and_after_collectives() {
    // One lane reads outside of memory, before or after the instruction at which groups meet.
    for lane in [0, 3, 17, 31, 40, 63] {
        for (before, after) in [
            ("@%p3 ld.global.u32 %r12, [%rd12];", ""),
            ("", "@%p3 ld.global.u32 %r12, [%rd12];"),
        ] {
            let body = format!(
                "{LOAD} mov.u64 %rd12, 64; setp.eq.u32 %p3, %r8, {lane}; mov.u32 %r12, 0; setp.eq.u32 %p2, %r12, 1;
                {before} shfl.sync.bfly.b32 %r12, %r10, 1, 31, -1; {after} {STORE}"
            );
            same_fault_in(&BLOCKS, &body);
        }
    }
}

#[test]
fn active_lanes_in_loops_in_which_one_group_diverges() {
    for limit in [4, 12, 20, 28] {
        // Lanes of one group diverge in each round. The other groups reach the next round first.
        let body = format!(
            "{LOAD} and.b32 %r13, %r6, 31; mov.u32 %r15, 0; mov.u32 %r12, 0; setp.eq.u32 %p2, %r12, 0;
            round: activemask.b32 %r14; add.u32 %r12, %r12, %r14;
            setp.lt.u32 %p3, %r13, {limit}; @!%p3 bra skip; add.u32 %r12, %r12, 1; activemask.b32 %r14; xor.b32 %r12, %r12, %r14;
            skip: add.u32 %r15, %r15, 1; setp.lt.u32 %p3, %r15, 5; @%p3 bra round; {STORE}"
        );
        same_in(&BLOCKS, &body);
        // The number of rounds differs between lanes.
        let body = format!(
            "{LOAD} and.b32 %r13, %r6, 31; mov.u32 %r15, 0; mov.u32 %r12, 0; setp.eq.u32 %p2, %r12, 0;
            round: activemask.b32 %r14; mad.lo.u32 %r12, %r12, 3, %r14;
            setp.eq.u32 %p3, %r13, {limit}; @%p3 bra end;
            add.u32 %r15, %r15, 1; setp.le.u32 %p3, %r15, %r11; @%p3 bra round; end: {STORE}"
        );
        same_in(&BLOCKS, &body);
    }
}
