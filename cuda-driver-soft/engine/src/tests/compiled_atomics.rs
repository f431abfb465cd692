//! Atomic operations whose results nothing reads, in compiled code, against the interpreter.

use super::can_compile;
use super::compiled::{counts, same, same_fault};
use crate::Engine;

/// Loads numbers of the thread into `%r10` and `%rd10`.
const LOAD: &str = "ld.global.u32 %r10, [%rd6]; ld.global.u64 %rd10, [%rd6+8];";

fn check(body: &str) {
    let body = format!("{LOAD} {body}");
    same(&body);
    // Each form must have machine code. The order of threads does not matter, so each group runs it on its own.
    if can_compile() {
        for lanes in [8, 16] {
            let (counts, warps) = counts(&body, Engine::Compiled { lanes });
            // Compiled code leaves each access to the interpreter once, before its memory is known. The end of each
            // warp does not count as compiled.
            assert!(counts.called <= 3, "{counts:?} {lanes}: {body}");
            assert!(counts.compiled >= counts.all - warps, "{counts:?} {lanes}: {body}");
        }
    }
}

#[test]
fn reductions_in_global_memory() {
    for op in ["add.u32", "and.b32", "or.b32", "xor.b32", "add.s32"] {
        for (address, value) in [
            ("[%rd3]", "%r10"),
            ("[%rd3+4]", "%r0"),
            ("[%rd0]", "%r10"),
            ("[%rd0+16]", "%r0"),
            ("[%rd0]", "%r2"),
            ("[%rd7]", "%r10"),
            ("[%rd7+4]", "7"),
            ("[%rd7]", "%r0"),
        ] {
            check(&format!(
                "and.b32 %r11, %r10, 63; mul.wide.u32 %rd7, %r11, 8; add.u64 %rd7, %rd0, %rd7;
                red.global.{op} {address}, {value};"
            ));
        }
    }
    for op in ["add.u64", "and.b64", "or.b64", "xor.b64"] {
        for (address, value) in [
            ("[%rd3]", "%rd10"),
            ("[%rd0]", "%rd10"),
            ("[%rd0]", "%rd2"),
            ("[%rd0]", "%rd5"),
            ("[%rd7]", "%rd5"),
            ("[%rd7]", "-3"),
        ] {
            check(&format!(
                "and.b32 %r11, %r10, 63; mul.wide.u32 %rd7, %r11, 8; add.u64 %rd7, %rd0, %rd7;
                red.global.{op} {address}, {value};"
            ));
        }
    }
}

#[test]
fn results_that_nothing_reads() {
    check("atom.global.add.u32 %r20, [%rd3], %r10;");
    check("atom.global.add.u32 %r20, [%rd0], 1;");
    check("atom.add.u64 %rd20, [%rd3], %rd10;");
    // The result is read only in the next round of the loop.
    same(&format!(
        "{LOAD} mov.u32 %r20, 0; mov.u32 %r21, 0;
        round: add.u32 %r10, %r10, %r20; atom.global.add.u32 %r20, [%rd3], %r10; add.u32 %r21, %r21, 1;
        setp.lt.u32 %p1, %r21, 3; @%p1 bra round;"
    ));
}

#[test]
fn reductions_in_shared_memory() {
    for operation in [
        "red.shared.add.u32 [%rd8], 1;",
        "red.shared.add.u32 [%rd8], %r10;",
        "red.shared.or.b32 [%rd8+4], %r10;",
        "red.shared.xor.b32 [%rd8], %r0;",
        "red.shared.add.u32 [part], %r10;",
        "red.shared.add.u32 [part+8], %r2;",
        "red.shared.and.b64 [%rd8], %rd10;",
        "red.shared.add.u32 [%r14], %r10;",
        "atom.shared.add.u32 %r20, [%rd8], %r10;",
    ] {
        same(&format!(
            "{LOAD} mov.u64 %rd7, part; mul.wide.u32 %rd12, %r8, 8; add.u64 %rd9, %rd7, %rd12;
            st.shared.u64 [%rd9], %rd10; and.b32 %r11, %r10, 31; rem.u32 %r11, %r11, %r9; mul.wide.u32 %rd8, %r11, 8;
            add.u64 %rd8, %rd7, %rd8; cvt.u32.u64 %r14, %rd8; bar.sync 0; {operation} bar.sync 0;
            ld.shared.u64 %rd11, [%rd9]; st.global.u64 [%rd3], %rd11;"
        ));
    }
}

#[test]
fn faults() {
    for lane in [0, 3, 17, 31] {
        for wrong in ["1", "0x10000000"] {
            for op in ["global.add.u32 [%rd7], %r10", "shared.add.u32 [%rd8], 1"] {
                same_fault(&format!(
                    "{LOAD} mov.u64 %rd8, part; and.b32 %r11, %r8, 31; setp.eq.u32 %p1, %r11, {lane};
                    selp.b64 %rd9, {wrong}, 0, %p1; add.u64 %rd7, %rd3, %rd9; add.u64 %rd8, %rd8, %rd9; red.{op};"
                ));
            }
        }
    }
}
