//! Kernels whose results depend on the order in which threads run, because threads read results of atomic operations or
//! use volatile accesses. Compiled code must run such instructions in the interpreter's order, and count as many
//! instructions as the interpreter.

use super::can_compile;
use super::compiled::{counts, same_in};
use crate::Engine;

/// Block shapes. In all but the last one, the threads of a warp differ only in `%tid.x`. For other shapes, such kernels
/// are not compiled.
const BLOCKS: [(u32, u32); 5] = [(64, 1), (96, 1), (32, 2), (40, 1), (16, 4)];

/// Loads a number of the thread into `%r10`, and copies its low four bits to `%r11`.
const LOAD: &str = "ld.global.u32 %r10, [%rd6]; and.b32 %r11, %r10, 15; mov.u32 %r12, 0; mov.f32 %f1, 0f00000000;";
/// Stores the result of the thread: `%r12` in the lower half, and `%f1` in the upper half.
const STORE: &str = "mov.b32 %r13, %f1; mov.b64 %rd9, {%r12, %r13}; st.global.u64 [%rd3], %rd9;";

/// Compares engines, and returns the percentage of instructions that compiled code runs; 100 on a CPU for which nothing
/// is compiled.
fn check(operation: &str) -> u64 {
    let body = format!("{LOAD} {operation} {STORE}");
    same_in(&BLOCKS, &body);
    if !can_compile() {
        return 100;
    }
    let (interpreted, _) = counts(&body, Engine::Interpreter);
    let (compiled, _) = counts(&body, Engine::Compiled { lanes: 16 });
    // The number of instructions decides when other blocks and warps run.
    assert_eq!(compiled.all, interpreted.all, "{operation}");
    100 * compiled.compiled / compiled.all
}

#[test]
fn operations_whose_order_matters() {
    for operation in [
        "atom.global.add.u32 %r12, [%rd1], %r10;",
        "atom.global.exch.b32 %r12, [%rd1], %r10;",
        "atom.global.cas.b32 %r12, [%rd1], %r10, %r0;",
        "atom.global.inc.u32 %r12, [%rd1], 100;",
        "atom.global.add.f32 %f1, [%rd1], 0f3fa00000;",
        "red.global.add.f32 [%rd1], 0f3f8ccccd; ld.volatile.global.f32 %f1, [%rd1];",
        "st.volatile.global.u32 [%rd1], %r0; ld.volatile.global.u32 %r12, [%rd1];",
        "mul.wide.u32 %rd7, %r11, 4; add.u64 %rd7, %rd1, %rd7; atom.global.add.u32 %r12, [%rd7], 1;",
        "setp.lt.u32 %p1, %r11, 7; @%p1 atom.global.add.u32 %r12, [%rd1], %r10;",
    ] {
        assert!(check(operation) >= 90, "{operation}");
    }
}

#[test]
fn loops_and_branches_around_atomics() {
    // The same number of rounds in all threads.
    let percent = check(
        "mov.u32 %r14, 0;
        round: atom.global.add.u32 %r15, [%rd1], %r14; add.u32 %r12, %r12, %r15; add.u32 %r14, %r14, 1;
        setp.lt.u32 %p1, %r14, %r2; @%p1 bra round;",
    );
    assert!(percent >= 90, "{percent}");
    // Lanes run 1 to 3 rounds: the same number in 16 neighbouring lanes or in 32, or different numbers in neighbouring
    // lanes.
    for shift in [4, 5, 0] {
        check(&format!(
            "shr.u32 %r16, %r6, {shift}; and.b32 %r16, %r16, 3; mov.u32 %r14, 0;
            round: atom.global.add.u32 %r15, [%rd1], %r14; mad.lo.u32 %r12, %r12, 3, %r15; add.u32 %r14, %r14, 1;
            setp.lt.u32 %p1, %r14, %r16; @%p1 bra round;"
        ));
    }
    for body in [
        // Both sides of a branch.
        "setp.lt.u32 %p1, %r11, 8; @%p1 bra small; atom.global.add.u32 %r12, [%rd1], 5; bra end;
        small: atom.global.exch.b32 %r12, [%rd1], %r0; end: atom.global.add.u32 %r15, [%rd1+4], %r12; add.u32 %r12, %r12, %r15;",
        "and.b32 %r14, %r6, 16; setp.eq.u32 %p1, %r14, 0; @%p1 bra small; atom.global.add.u32 %r12, [%rd1], 5; bra end;
        small: atom.global.exch.b32 %r12, [%rd1], %r0; end: atom.global.add.u32 %r15, [%rd1+4], %r12; add.u32 %r12, %r12, %r15;",
        // `%r16` is the same in the 16 lanes of each group, but not in the whole warp. A branch depends on it after a
        // barrier.
        "and.b32 %r14, %r6, 16; setp.eq.u32 %p1, %r14, 0; mov.u32 %r16, 0; @%p1 bra skip; mov.u32 %r16, 1;
        skip: bar.sync 0; setp.eq.u32 %p2, %r16, 0; @%p2 bra other; atom.global.add.u32 %r12, [%rd1], 3; bra end;
        other: atom.global.exch.b32 %r12, [%rd1], %r0; end: add.u32 %r12, %r12, 1;",
        // A shuffle, and lanes that end before the last atomic operation.
        "atom.global.add.u32 %r12, [%rd1], %r10; shfl.sync.bfly.b32 %r12, %r12, 5, 31, -1;
        and.b32 %r14, %r6, 31; setp.gt.u32 %p1, %r14, 27; @%p1 bra done; atom.global.add.u32 %r15, [%rd1], 1; add.u32 %r12, %r12, %r15;",
    ] {
        check(body);
    }
}

/// The minimum is not the thread's number in all lanes of some groups. Such a group leaves compiled code in the middle
/// of a round, and the others must not begin the next round before it.
#[test]
fn a_group_leaves_in_a_loop_with_an_atomic() {
    check(
        "mov.u32 %r14, 0;
        round: atom.global.add.u32 %r15, [%rd1], %r6; mad.lo.u32 %r12, %r12, 3, %r15; sub.s32 %r16, %r6, %r14;
        min.s32 %r18, %r16, 20; mul.wide.s32 %rd10, %r18, 16; add.u64 %rd10, %rd1, %rd10;
        ld.global.u32 %r17, [%rd10+640]; xor.b32 %r12, %r12, %r17; add.u32 %r14, %r14, 1;
        setp.lt.u32 %p1, %r14, 9; @%p1 bra round;",
    );
}

/// Addresses of words in shared memory: `%r20` for the thread itself, and `%r21` for lane `%r22` of its warp.
const WORDS: &str = "mov.u32 %r23, part; shl.b32 %r20, %r8, 2; add.u32 %r20, %r23, %r20; and.b32 %r24, %r8, -32;";
const OTHER: &str = "or.b32 %r21, %r24, %r22; shl.b32 %r21, %r21, 2; add.u32 %r21, %r23, %r21;";

#[test]
fn lanes_exchange_values_without_a_barrier() {
    // The other half of the warp, and the next lane.
    for other in ["xor.b32 %r22, %r8, 16;", "add.u32 %r22, %r8, 1;"] {
        check(&format!(
            "{WORDS} {other} and.b32 %r22, %r22, 31; {OTHER}
            st.shared.u32 [%r20], %r10; ld.shared.u32 %r12, [%r21];"
        ));
        check(&format!(
            "{WORDS} {other} and.b32 %r22, %r22, 31; {OTHER} st.shared.u32 [%r20], %r10; bar.sync 0;
            ld.shared.u32 %r14, [%r21]; st.shared.u32 [%r20], %r14; ld.shared.u32 %r12, [%r21];"
        ));
    }
    // Each lane changes the word of each lane in turn, also if some lanes leave out some rounds.
    for skip in ["", "@%p2 bra behind;", "@!%p2 bra behind;"] {
        check(&format!(
            "{WORDS} st.shared.u32 [%r20], %r10; bar.sync 0; and.b32 %r22, %r8, 31; mov.u32 %r14, 0;
            round: {OTHER} and.b32 %r15, %r22, 15; setp.eq.u32 %p2, %r15, %r11; {skip}
            ld.shared.u32 %r16, [%r21]; mad.lo.u32 %r16, %r16, 3, %r10; st.shared.u32 [%r21], %r16;
            behind: add.u32 %r22, %r22, 1; and.b32 %r22, %r22, 31; add.u32 %r14, %r14, 1;
            setp.lt.u32 %p1, %r14, 32; @%p1 bra round; bar.sync 0; ld.shared.u32 %r12, [%r20];"
        ));
    }
}

/// Some lanes store for all lanes of their warp, which load without a barrier.
#[test]
fn one_lane_stores_for_all() {
    // `%r21` is the address of one word for each warp, and `%p1` is true in the lane that stores.
    let prepare = |lane: u32| {
        format!(
            "{WORDS} mov.u32 %r22, 0; {OTHER} and.b32 %r25, %r8, 31; setp.eq.u32 %p1, %r25, {lane};
            mad.lo.u32 %r26, %r10, 3, 1;"
        )
    };
    for lane in [31, 17, 0] {
        for store in [
            "@!%p1 bra over; st.shared.u32 [%r21], %r26; over:",
            "@%p1 st.shared.u32 [%r21], %r26;",
            // In each round of a loop.
            "mov.u32 %r14, 0; round: add.u32 %r26, %r26, %r12; @%p1 st.shared.u32 [%r21], %r26;
            ld.shared.u32 %r12, [%r21]; add.u32 %r14, %r14, 1; setp.lt.u32 %p2, %r14, %r2; @%p2 bra round;",
        ] {
            check(&format!("{} {store} ld.shared.u32 %r12, [%r21];", prepare(lane)));
        }
    }
}

/// All lanes of a warp load the sum to which each of them has added a number.
#[test]
fn lanes_read_a_sum_without_a_barrier() {
    for operation in [
        "red.shared.add.u32 [%r21], %r10;",
        "atom.shared.add.u32 %r27, [%r21], %r10;",
        "setp.lt.u32 %p1, %r11, 7; @%p1 red.shared.max.u32 [%r21], %r10;",
    ] {
        check(&format!(
            "{WORDS} mov.u32 %r22, 0; {OTHER} {operation} ld.shared.u32 %r12, [%r21];"
        ));
    }
}
