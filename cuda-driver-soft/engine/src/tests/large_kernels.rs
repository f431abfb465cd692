//! Tests of the compiler with long kernels, for which it once took a time quadratic in their length: minutes in these
//! tests. The compiler accepts kernels of up to 8,192 instructions.

use super::can_compile;
use super::compiled::counts;
use crate::Engine;

/// Returns the number of instructions that ran as machine code.
fn compiled(body: &str) -> u64 {
    let (counts, _) = counts(body, Engine::Compiled { lanes: 16 });
    counts.compiled
}

fn repeat(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect()
}

/// Each round of the loop passes the shape of one register to the next.
#[test]
fn values_that_pass_from_register_to_register() {
    if !can_compile() {
        return;
    }
    const COUNT: usize = 8_000;
    let moves = repeat(COUNT, |i| format!("mov.u32 %x{}, %x{};\n", COUNT - i, COUNT - i - 1));
    let body = format!(
        ".reg .b32 %x<{}>; .reg .b32 %n; .reg .pred %more; mov.u32 %x0, %r0; mov.u32 %n, 0;
        L:\n{moves} add.u32 %n, %n, 1; setp.lt.u32 %more, %n, 2; @%more bra L;
        st.global.u32 [%rd3], %x{COUNT};",
        COUNT + 1
    );
    assert_ne!(compiled(&body), 0);
}

/// Each barrier begins a phase. Each jump leads to all blocks.
#[test]
fn jumps_to_many_blocks() {
    if !can_compile() {
        return;
    }
    const COUNT: usize = 4_000;
    let labels = repeat(COUNT, |i| format!("L{i},"));
    let blocks = repeat(COUNT, |i| format!("L{i}: add.u32 %r0, %r0, 1;\n"));
    let jumps = "brx.idx %n, T;\n".repeat(40);
    let body = format!(
        ".reg .b32 %n; .reg .pred %p; mov.u32 %n, {COUNT};\n setp.eq.u32 %p, %n, 0; @!%p bra E;
        T: .branchtargets {labels} E;\n{jumps}{blocks}E:\n st.global.u32 [%rd3], %r0;"
    );
    assert_ne!(compiled(&body), 0);
}

/// Each exit of the code writes all live registers: the code of this kernel would have tens of megabytes.
#[test]
fn kernels_whose_code_would_be_long_are_interpreted() {
    if !can_compile() {
        return;
    }
    const COUNT: usize = 900;
    let registers = repeat(COUNT, |i| format!("add.u32 %x{i}, %r0, {i};\n"));
    let branches = repeat(COUNT, |i| {
        format!("setp.eq.u32 %p, %r0, {i};\n@%p bra L{i};\nadd.u32 %s, %s, %x{i};\nL{i}:\n")
    });
    let body =
        format!(".reg .b32 %x<{COUNT}>; .reg .b32 %s; .reg .pred %p;\n{registers}{branches} st.global.u32 [%rd3], %s;");
    assert_eq!(compiled(&body), 0);
}
