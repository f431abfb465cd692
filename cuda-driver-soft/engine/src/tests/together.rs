//! Instructions of whole warps whose lanes arrive one after the other, operations that count as many instructions, and
//! the cluster's barrier.

use super::{Arg, Bench};
use crate::{Fault, FaultKind, Isa};

fn text(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 out) {{\n\
        .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<4>; .shared .align 8 .b32 flag[4];\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n\
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n{body}\nret; }}"
    )
}

/// Runs a block of `threads` threads, and returns the word that each of them stores to `[%rd1]`.
fn run(body: &str, threads: u32) -> Vec<u32> {
    Bench::words(&text(body), 1, threads, threads as usize, u64::MAX)
}

fn fault(body: &str, threads: u32, budget: u64) -> Fault {
    let mut bench = Bench::text(&text(body), Isa::best());
    let out = bench.bytes(4096);
    let mut launch = bench.launch("k", 1, threads, &[Arg::U64(out)]);
    launch.options.budget = Some(budget);
    Bench::run(launch).fault().expect("a fault")
}

/// Lane 31 polls the flag until another lane has set it; the other lanes set it and continue to the collective
/// instruction.
const PARTED: &str = "
        setp.ne.u32 %p1, %r1, 31; @%p1 bra GO;
    SPIN: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN;
    GO: mov.u32 %r3, 1; st.volatile.shared.u32 [flag], %r3;";

#[test]
fn matrices_wait_for_late_lanes() {
    // All elements in row i of A are i + 1, in column j of B they are j + 1.
    let multiply = "
        shr.u32 %r4, %r1, 2; add.u32 %r4, %r4, 1; mul.lo.u32 %r4, %r4, 0x01010101; mov.u32 %r6, %r4;
        mov.u32 %r5, 7;
        mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r7, %r8}, {%r4}, {%r6}, {%r5, %r5};
        mul.lo.u32 %r8, %r8, 10000; add.u32 %r7, %r7, %r8; st.global.u32 [%rd1], %r7;";
    let got = run(&format!("{PARTED}{multiply}"), 32);
    let want: Vec<u32> = (0..32)
        .map(|lane| {
            let (row, column) = (lane / 4 + 1, lane % 4 * 2 + 1);
            16 * row * column + 7 + 10_000 * (16 * row * (column + 1) + 7)
        })
        .collect();
    assert_eq!(got, want);
    // Lanes that wait give the values that they had when they arrived.
    let transpose = "
        shl.b32 %r4, %r1, 17; or.b32 %r4, %r4, %r1; shl.b32 %r5, %r1, 1; or.b32 %r4, %r4, %r5;
        movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r4; st.global.u32 [%rd1], %r6;";
    let whole = run(transpose, 32);
    assert_eq!(run(&format!("{PARTED}{transpose}"), 32), whole);
    assert_ne!(whole[1], whole[2]);
}

#[test]
fn matrices_in_a_function_called_by_divergent_lanes() {
    let function = |first: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.shared .b32 flag;\n\
            .func (.reg .b32 r) f(.reg .b32 a) {{ .reg .b32 %r<4>;\n\
            movmatrix.sync.aligned.m8n8.trans.b16 %r1, a; add.u32 r, %r1, 5; ret; }}\n\
            .visible .entry k(.param .u64 out) {{\n\
            .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n\
            mul.lo.u32 %r4, %r1, 0x00020003; {first} call.uni (%r5), f, (%r4);\n\
            mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r5; ret; }}"
        )
    };
    let run = |text: &str| {
        let mut bench = Bench::text(text, Isa::best());
        let out = bench.bytes(128);
        bench.run_well("k", 1, 32, &[Arg::U64(out)]);
        bench.get(out, 32, u32::from_le_bytes)
    };
    let whole = run(&function(""));
    assert_eq!(run(&function(PARTED)), whole);
    // Row 0, column 1 is the upper half of lane 0. It comes from row 1, column 0, the lower half of lane 4.
    assert_eq!((whole[0] - 5) >> 16, 4 * 3);
}

#[test]
fn divergent_matrices_are_reported() {
    let fault = fault(
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra LOW;
        movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; bra END;
    LOW: movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
    END: st.global.u32 [%rd1], %r2;",
        32,
        u64::MAX,
    );
    assert_eq!(fault.code(), 702);
    let text = fault.to_string();
    assert!(
        text.contains("lanes 0xffffff80 wait at `movmatrix` of all lanes in line 9")
            && text.contains("lanes 0x0000007f wait at `movmatrix` of all lanes in line 10"),
        "{text}"
    );
}

#[test]
fn a_matrix_product_counts_as_many_instructions() {
    // The engine first compares a launch with its budget after 4 million instructions. The loop runs 800,000, so it
    // exceeds the budget only if a product counts as many.
    let body = "mov.u32 %r2, 0; mov.u32 %r3, 200000;
    L: mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r7, %r8}, {%r2}, {%r2}, {%r2, %r2};
        sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra L;";
    let fault = fault(body, 32, 50_000);
    assert!(matches!(fault.kind, FaultKind::Budget { .. }), "{fault}");
}

#[test]
fn printing_counts_by_length() {
    let text = "%4000d".repeat(4);
    let bytes: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
    let ptx = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
        .global .align 1 .b8 format[{}] = {{{}, 0}};\n\
        .visible .entry k(.param .u64 out) {{ .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n\
        .local .align 8 .b8 values[16]; mov.u64 %rd1, values; cvta.local.u64 %rd1, %rd1;\n\
        mov.u64 %rd2, format; cvta.global.u64 %rd2, %rd2; mov.u32 %r1, 1000;\n\
        L: {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd2; st.param.b64 [a], %rd1;\n\
        call.uni (r), vprintf, (f, a); }}\n\
        sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret; }}",
        text.len() + 1,
        bytes.join(",")
    );
    let mut bench = Bench::text(&ptx, Isa::best());
    let out = bench.bytes(4);
    let mut launch = bench.launch("k", 1, 32, &[Arg::U64(out)]);
    launch.options.budget = Some(1_000_000);
    let execution = Bench::run(launch);
    let fault = execution.fault().expect("a fault");
    assert!(matches!(fault.kind, FaultKind::Budget { .. }), "{fault}");
    let printed = execution.take_output(0).len();
    assert!((1 << 20..32 << 20).contains(&printed), "{printed} bytes");
}

#[test]
fn the_barrier_of_the_cluster_has_no_number() {
    let fault = fault(
        "mov.u32 %r2, -1; bar.sync %r2; st.global.u32 [%rd1], %r2;",
        64,
        u64::MAX,
    );
    assert_eq!(fault.code(), 715);
    assert!(fault.to_string().contains("barrier 4294967295"), "{fault}");
}

#[test]
fn arriving_at_the_cluster_and_waiting_are_separate() {
    // The second warp waits at the block's barrier after its arrival at the cluster's barrier, and before its wait
    // there.
    let got = run(
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST;
        barrier.cluster.arrive.aligned; bar.sync 0; barrier.cluster.wait.aligned; bra END;
    FIRST: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; bar.sync 0;
    END: st.global.u32 [%rd1], %r1;",
        64,
    );
    assert_eq!(got, (0..64).collect::<Vec<u32>>());
    // In each phase, a thread that has waited sees the stores that others did before they arrived.
    let got = run(
        "mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r9, %r1, 31; setp.lt.u32 %p1, %r1, 64;
    L: @%p1 bra ARRIVE;
        mov.u32 %r2, 5000;
    SLOW: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra SLOW;
        ld.volatile.shared.u32 %r3, [flag]; add.u32 %r3, %r3, 1; bar.warp.sync -1; st.volatile.shared.u32 [flag], %r3;
    ARRIVE: barrier.cluster.arrive; barrier.cluster.wait;
        ld.volatile.shared.u32 %r3, [flag]; add.u32 %r6, %r6, %r3;
        barrier.cluster.arrive; barrier.cluster.wait;
        add.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 3; @%p2 bra L;
        st.global.u32 [%rd1], %r6;",
        96,
    );
    assert_eq!(got, [1 + 2 + 3; 96]);
}

#[test]
fn the_arrival_of_an_exited_warp_does_not_count_for_another() {
    // The first warp arrives and exits; the second waits for the third, which arrives late.
    let got = run(
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra GONE; setp.lt.u32 %p1, %r1, 64; @%p1 bra WAIT;
        mov.u32 %r2, 5000;
    SLOW: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra SLOW;
        mov.u32 %r3, 9; st.volatile.shared.u32 [flag], %r3;
    WAIT: barrier.cluster.arrive; barrier.cluster.wait; ld.volatile.shared.u32 %r4, [flag]; st.global.u32 [%rd1], %r4;
        ret;
    GONE: barrier.cluster.arrive; st.global.u32 [%rd1], %r1;",
        96,
    );
    assert_eq!(got[32..], [9; 64]);
}
