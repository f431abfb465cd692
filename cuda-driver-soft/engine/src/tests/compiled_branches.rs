//! Tests of branches on comparisons that only the branch reads: the first and the last lane of a group show if all
//! lanes take the same side.

use super::can_compile;
use super::compiled::{counts, same};
use crate::Engine;

/// The comparisons of integers.
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

/// Tests a kernel that compares a number of each thread with `limits` in all ways, and stores a number that shows the
/// sides taken. `value` is the code that writes the thread's number to `%r10`, or to `%rd10` for types of 64 bits.
fn check(ty: &str, value: &str, limits: &[&str]) {
    let mut body = format!("mov.u32 %r20, 1; {value}\n");
    for (place, limit) in limits.iter().enumerate() {
        for (number, cmp) in COMPARISONS.iter().enumerate() {
            let not = ["", "!"][(number + place) % 2];
            let (label, number) = (format!("side{place}_{number}"), number + 1);
            let operands = if place % 3 == 2 {
                format!("{limit}, %x")
            } else {
                format!("%x, {limit}")
            };
            body += &format!(
                "setp.{cmp}.{ty} %p1, {operands}; @{not}%p1 bra {label}; mad.lo.u32 %r20, %r20, 5, {number}; {label}:\n"
            );
        }
    }
    let register = if ty.ends_with("64") { "%rd10" } else { "%r10" };
    let body = body.replace("%x", register);
    same(&format!("{body} cvt.u64.u32 %rd9, %r20; st.global.u64 [%rd3], %rd9;"));
}

#[test]
fn lanes_in_order() {
    let limits = ["13", "300", "0", "%r2"];
    for ty in ["u32", "s32"] {
        check(ty, "mov.u32 %r10, %r0;", &limits);
        // Steps down, other steps, and the same value in all lanes.
        check(ty, "sub.u32 %r10, 310, %r0;", &limits);
        check(ty, "mul.lo.u32 %r11, %r0, 7; sub.u32 %r10, %r11, 95;", &limits);
        check(ty, "add.u32 %r10, %r3, %r2;", &["3", "4", "%r2", "%r6"]);
    }
    let limits = ["13", "300", "0", "%rd2"];
    for ty in ["u64", "s64"] {
        check(ty, "mov.u64 %rd10, %rd5;", &limits);
        check(ty, "sub.u64 %rd10, 310, %rd5;", &limits);
        check(ty, "mul.lo.u64 %rd11, %rd5, 7; sub.u64 %rd10, %rd11, 95;", &limits);
    }
}

/// The numbers of a group wrap between two lanes.
#[test]
fn lanes_that_wrap() {
    for ty in ["u32", "s32"] {
        let limits = ["0", "0x7fffffff", "0x80000000", "0xffffffff", "0xfffffff8", "5"];
        check(ty, "sub.u32 %r10, %r0, 20;", &limits);
        check(ty, "sub.u32 %r10, 20, %r0;", &limits);
        check(ty, "add.u32 %r10, %r0, 0x7ffffff3;", &limits);
        check(ty, "sub.u32 %r10, 0x8000000b, %r0;", &limits);
        check(ty, "mul.lo.u32 %r10, %r0, 0x10000001;", &limits);
    }
    for ty in ["u64", "s64"] {
        let limits = [
            "0",
            "0x7fffffffffffffff",
            "0x8000000000000000",
            "0xffffffffffffffff",
            "-8",
            "5",
        ];
        check(ty, "sub.u64 %rd10, %rd5, 20;", &limits);
        check(ty, "sub.u64 %rd10, 20, %rd5;", &limits);
        check(ty, "add.u64 %rd10, %rd5, 0x7ffffffffffffff3;", &limits);
        check(ty, "sub.u64 %rd10, 0x800000000000000b, %rd5;", &limits);
    }
}

/// The predicate has another use, or is not the result of a plain comparison.
#[test]
fn predicates_that_are_needed() {
    let end = "cvt.u64.u32 %rd9, %r20; st.global.u64 [%rd3], %rd9;";
    same(&format!(
        "mov.u32 %r20, 1; setp.lt.u32 %p1, %r0, 77; @%p1 bra side; add.u32 %r20, %r20, %r0;
        side: selp.u32 %r21, 7, 9, %p1; add.u32 %r20, %r20, %r21; {end}"
    ));
    same(&format!(
        "mov.u32 %r20, 1; setp.gt.u32 %p1, %r0, 20; @%p1 setp.lt.u32 %p1, %r0, 77; @%p1 bra side; add.u32 %r20, %r20, 4;
        side: {end}"
    ));
    same(&format!(
        "mov.u32 %r20, 1; setp.gt.u32 %p1, %r0, 20; setp.lt.and.u32 %p2, %r0, 77, %p1; @%p2 bra side;
        setp.lt.u32 %p2|%p3, %r0, 99; @!%p3 bra side; add.u32 %r20, %r20, 4; side: {end}"
    ));
    // A loop whose lanes leave it one by one, and one that all lanes leave together.
    same(&format!(
        "mov.u32 %r20, 1; mov.u32 %r21, 0; mov.u32 %r22, 5;
        each: add.u32 %r20, %r20, %r21; add.u32 %r21, %r21, 1; setp.lt.u32 %p1, %r21, %r6; @%p1 bra each;
        all: mad.lo.u32 %r20, %r20, 3, %r0; sub.u32 %r22, %r22, 1; setp.ne.u32 %p1, %r22, 0; @%p1 bra all; {end}"
    ));
}

/// Lanes that diverge at a branch to the end of the kernel leave the code there, and the interpreter runs the branch.
#[test]
fn branches_at_which_lanes_leave_count_once() {
    if !can_compile() {
        return;
    }
    for end in ["exit", "ret"] {
        let body = format!("setp.lt.u32 %p1, %r6, 17; @%p1 {end}; add.u32 %r0, %r0, 1;");
        let (want, _) = counts(&body, Engine::Interpreter);
        let (got, _) = counts(&body, Engine::Compiled { lanes: 32 });
        assert_eq!(got.all, want.all, "{end}");
    }
}
