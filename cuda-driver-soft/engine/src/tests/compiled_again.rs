//! Tests of groups of lanes for which an assumption of compiled code does not hold, as at the edge of an image. If one
//! operand of a minimum or maximum has a step from lane to lane and the other is the same in all lanes, the code
//! assumes that the operand with the step is the result in all lanes of a group. Other groups begin again in code
//! without assumptions, or leave compiled code. They must give the interpreter's results, and no instruction may count
//! twice.

use super::can_compile;
use super::compiled::{counts, counts_in, same, same_in};
use crate::{Counts, Engine};

/// Limits `%r0 - 3` to 0 … 700 in `%r11`, and puts the address of this 16-byte element of `in` into `%rd10`.
const LIMITED: &str = "add.s32 %r10, %r0, -3; max.s32 %r10, %r10, 0; min.s32 %r11, %r10, 700;
    mul.wide.s32 %rd10, %r11, 16; add.u64 %rd10, %rd1, %rd10;";

/// Compares the results of all engines. If `inside` is true, groups may leave compiled code only at barriers and at the
/// end of the kernel, and no instruction may count twice. Otherwise, some groups must leave it elsewhere.
fn check(body: &str, inside: bool) {
    same(body);
    if !can_compile() {
        return;
    }
    let (interpreted, warps) = counts(body, Engine::Interpreter);
    for lanes in [8, 16, 32] {
        let (Counts { all, compiled, .. }, _) = counts(body, Engine::Compiled { lanes });
        // The barriers and the end of each warp do not count as compiled.
        let outside = warps * (1 + body.matches("bar.sync").count() as u64);
        let stays = compiled >= all - outside;
        assert_eq!(stays, inside, "{compiled} of {all}, groups of {lanes}: {body}");
        if inside {
            assert_eq!(all, interpreted.all, "groups of {lanes}: {body}");
        }
    }
}

#[test]
fn groups_at_edges_stay_in_compiled_code() {
    check(
        &format!("{LIMITED} ld.global.u64 %rd9, [%rd10]; st.global.u64 [%rd3], %rd9;"),
        true,
    );
    // The assumption fails after loads, while values in registers are live.
    check(
        &format!(
            "ld.global.u32 %r20, [%rd6]; mul.lo.u32 %r21, %r20, %r0; setp.lt.s32 %p2, %r20, 0; {LIMITED}
            ld.global.u32 %r22, [%rd10]; @%p2 add.u32 %r22, %r22, %r21; min.u32 %r12, %r0, 333;
            mad.lo.u32 %r22, %r12, 7, %r22; cvt.u64.u32 %rd9, %r22; st.global.u64 [%rd3], %rd9;"
        ),
        true,
    );
    // Minima and maxima of 64 bits: of values that fall from lane to lane, and with a parameter as the other operand.
    check(
        "sub.s64 %rd10, 600, %rd5; max.s64 %rd10, %rd10, 7; min.u64 %rd11, %rd2, %rd5; shl.b64 %rd10, %rd10, 4;
        add.u64 %rd10, %rd1, %rd10; ld.global.u64 %rd9, [%rd10]; add.u64 %rd9, %rd9, %rd11; st.global.u64 [%rd3], %rd9;",
        true,
    );
}

/// Loops and branches around the assumption. Each instruction of each round must count once.
#[test]
fn loops_and_branches_begin_again() {
    let step = "mul.wide.s32 %rd10, %r11, 16; add.u64 %rd10, %rd1, %rd10; ld.global.u32 %r22, [%rd10];
        mad.lo.u32 %r20, %r20, 3, %r22;";
    let store = "cvt.u64.u32 %rd9, %r20; st.global.u64 [%rd3], %rd9;";
    check(
        &format!(
            "mov.u32 %r20, 0; mov.u32 %r21, 0;
            round: sub.s32 %r10, %r0, %r21; max.s32 %r11, %r10, 13; {step}
            add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 9; @%p1 bra round; {store}"
        ),
        true,
    );
    // Lanes diverge before the assumption, and some of them have left the loop.
    let parts = "mov.u32 %r20, 0; mov.u32 %r21, 0; and.b32 %r23, %r6, 7; setp.lt.u32 %p1, %r23, 5; @%p1 bra round;
        add.u32 %r20, %r0, 9;
        round: setp.eq.u32 %p2, %r21, %r23; @%p2 bra end; sub.s32 %r10, %r0, %r21; max.s32 %r11, %r10, 13;";
    check(
        &format!("{parts} {step} add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 9; @%p1 bra round; end: {store}"),
        true,
    );
    // In one side of a branch.
    check(
        &format!(
            "mov.u32 %r20, 5; and.b32 %r23, %r6, 7; setp.lt.u32 %p1, %r23, 5; @%p1 bra join;
            min.s32 %r11, %r0, 300; {step} join: {store}"
        ),
        true,
    );
}

/// After an effect that must not be repeated, groups leave compiled code instead. The results show how often an effect
/// on memory has happened.
#[test]
fn effects_are_not_repeated() {
    let add =
        "cvt.u64.u32 %rd9, %r22; ld.global.u64 %rd12, [%rd3]; add.u64 %rd12, %rd12, %rd9; st.global.u64 [%rd3], %rd12;";
    // The assumption comes after a store.
    check(
        &format!(
            "ld.global.u64 %rd9, [%rd3]; add.u64 %rd9, %rd9, 1; st.global.u64 [%rd3], %rd9;
            {LIMITED} ld.global.u32 %r22, [%rd10]; {add}"
        ),
        false,
    );
    // A loop goes back to the assumption after a store.
    check(
        "mov.u32 %r21, 0;
            round: sub.s32 %r10, %r0, %r21; max.s32 %r11, %r10, 13; mul.wide.s32 %rd10, %r11, 16; add.u64 %rd10, %rd1, %rd10;
            ld.global.u32 %r22, [%rd10]; ld.global.u64 %rd12, [%rd3]; mad.wide.u32 %rd12, %r22, 5, %rd12;
            st.global.u64 [%rd3], %rd12; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, 9; @%p1 bra round;",
        false,
    );
    // The assumption comes after an atomic operation.
    check(
        &format!("red.global.add.u64 [%rd3], 1; {LIMITED} ld.global.u32 %r22, [%rd10]; {add}"),
        false,
    );
    // A register is read before it is written: a second run would not find its first value.
    check(
        &format!(
            "add.u32 %r30, %r30, 1; add.u32 %r30, %r30, %r0; {LIMITED} ld.global.u32 %r22, [%rd10];
            add.u32 %r22, %r22, %r30; {add}"
        ),
        false,
    );
}

/// After a barrier, all groups continue in the code with assumptions. A group that has begun again can do so only if
/// each value that is needed there has the same shape in both codes: one number for all lanes, one step from lane to
/// lane, or any numbers. Otherwise, it leaves.
#[test]
fn barriers_after_edges() {
    let shared = "mov.u32 %r20, part; shl.b32 %r21, %r8, 2; add.u32 %r20, %r20, %r21; ld.global.u32 %r22, [%rd10];
        st.shared.u32 [%r20], %r22;";
    let other = "xor.b32 %r21, %r21, 4; mov.u32 %r20, part; add.u32 %r20, %r20, %r21; ld.shared.u32 %r22, [%r20];";
    let store = "cvt.u64.u32 %rd9, %r22; st.global.u64 [%rd3], %rd9;";
    check(&format!("{LIMITED} {shared} bar.sync 0; {other} {store}"), true);
    // `%r11` is needed after the barrier. It has a step from lane to lane only in groups that have not begun again.
    check(
        &format!("{LIMITED} {shared} bar.sync 0; {other} mad.lo.u32 %r22, %r11, 3, %r22; {store}"),
        false,
    );
}

/// In blocks of four warps, the assumption fails in each possible set of warps. All instructions must count once, in
/// these warps and in the others.
#[test]
fn any_warps_of_a_block() {
    // Each row of the block is a warp. In the rows whose bit is set, the minimum is 500, so the assumption fails.
    let limited = |rows: u32| {
        format!(
            "shr.u32 %r20, {rows}, %r7; and.b32 %r21, %r20, 1; mad.lo.u32 %r10, %r21, 1000, %r6; min.s32 %r11, %r10, 500;
            mul.wide.s32 %rd10, %r11, 4; add.u64 %rd10, %rd1, %rd10; ld.global.u32 %r22, [%rd10];"
        )
    };
    let store = "cvt.u64.u32 %rd9, %r22; st.global.u64 [%rd3], %rd9;";
    // Groups that have begun again leave at the barrier, because `%r11` is needed after it and has another shape in
    // their code.
    let leaves = "bar.sync 0; mad.lo.u32 %r22, %r11, 3, %r22;";
    let blocks = [(32, 4)];
    for rows in 0..16 {
        for end in ["", leaves] {
            let body = format!("{} {end} {store}", limited(rows));
            same_in(&blocks, &body);
            if !can_compile() {
                continue;
            }
            let counts = |engine| counts_in(blocks[0], &body, engine).0;
            let interpreted = counts(Engine::Interpreter);
            let Counts { all, compiled, .. } = counts(Engine::Compiled { lanes: 32 });
            assert_eq!(all, interpreted.all, "rows {rows:#b}: {body}");
            assert!(
                compiled <= all && (compiled > all / 2 || !end.is_empty()),
                "{compiled} of {all}, rows {rows:#b}: {body}"
            );
        }
    }
}
