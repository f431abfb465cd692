//! `alloca` and the threads' stacks, and atomic operations on 128 bits.

use super::{Arg, Bench, on_each_isa};
use crate::{FaultKind, Isa};

const HEAD: &str = ".version 8.3\n.target sm_90\n.address_size 64\n";

fn words(text: &str, grid: u32, block: u32, count: usize) -> Vec<u32> {
    Bench::words(&format!("{HEAD}{text}"), grid, block, count, u64::MAX)
}

/// The contract tests cover allocations of several sizes.
#[test]
fn allocations_are_zero_and_separate() {
    let got = words(
        ".func (.param .b32 r) f(.param .b32 a) {
            .reg .b32 %r<4>; .reg .b64 %rd<4>; .local .b32 own[4];
            ld.param.b32 %r1, [a]; st.local.b32 [own+4], %r1; st.local.b32 [own+8], 77;
            alloca.u64 %rd1, 16; st.local.b32 [%rd1+12], 5; ld.local.b32 %r2, [%rd1+12];
            ld.local.b32 %r3, [own+4]; add.u32 %r3, %r3, %r2; st.param.b32 [r], %r3; ret;
        }
        .visible .entry k(.param .u64 out) {
            .reg .b32 %r<8>; .reg .b64 %rd<4>; .local .align 8 .b8 fixed[24];
            ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
            st.local.b32 [fixed+20], 1234;
            alloca.u64 %rd2, 8; ld.local.u32 %r2, [%rd2]; mov.u32 %r3, 9; st.local.u32 [%rd2], %r3;
            { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), f, (a); ld.param.b32 %r4, [r]; }
            ld.local.u32 %r5, [%rd2]; ld.local.u32 %r6, [fixed+20];
            mul.wide.u32 %rd3, %r1, 16; add.u64 %rd3, %rd1, %rd3; st.global.v4.u32 [%rd3], {%r2, %r4, %r5, %r6};
            ret;
        }",
        1,
        32,
        128,
    );
    for (lane, words) in (0u32..).zip(got.chunks(4)) {
        assert_eq!(words, [0, lane + 5, 9, 1234], "lane {lane}");
    }
}

#[test]
fn stackrestore_frees_allocations() {
    // Without `stackrestore`, 1000 iterations would overflow the stack. Each allocation is zero, in each block.
    let got = words(
        ".visible .entry k(.param .u64 out) {
            .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
            ld.param.u64 %rd1, [out]; mov.u32 %r1, 0; mov.u32 %r2, 0;
            alloca.u64 %rd2, 8;
        L:  stacksave.u64 %rd3;
            alloca.u64 %rd4, 200;
            ld.local.u32 %r3, [%rd4+196]; add.u32 %r1, %r1, %r3; mov.u32 %r4, 1; st.local.u32 [%rd4+196], %r4;
            stackrestore.u64 %rd3;
            alloca.u64 %rd5, 16; setp.ne.u64 %p1, %rd5, %rd4; @%p1 add.u32 %r1, %r1, 1000;
            stackrestore.u64 %rd3;
            add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000; @%p1 bra L;
            mov.u32 %r5, %ctaid.x; mul.wide.u32 %rd6, %r5, 4; add.u64 %rd1, %rd1, %rd6;
            add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret;
        }",
        3,
        1,
        3,
    );
    assert_eq!(got, [1000; 3]);
}

#[test]
fn a_full_stack_faults() {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b64 %rd<4>; .reg .pred %p<2>;
            L: alloca.u64 %rd1, 1000; setp.ne.u64 %p1, %rd1, 1; @%p1 bra L; ret; }}"
    );
    let mut bench = Bench::text(&text, Isa::best());
    let out = bench.bytes(4);
    let fault = Bench::run(bench.launch("k", 1, 32, &[Arg::U64(out)])).fault();
    let fault = fault.expect("a fault");
    assert!(matches!(fault.kind, FaultKind::StackOverflow { .. }), "{fault}");
    // An access after the end of the allocation faults.
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b64 %rd<4>; .reg .b32 %r<2>;
            alloca.u64 %rd1, 100; ld.local.u32 %r1, [%rd1+96];
            ld.local.u32 %r1, [%rd1+100]; ret; }}"
    );
    let mut bench = Bench::text(&text, Isa::best());
    let out = bench.bytes(4);
    let fault = Bench::run(bench.launch("k", 1, 32, &[Arg::U64(out)])).fault();
    let fault = fault.expect("a fault");
    assert_eq!((fault.code(), fault.line), (700, 6), "{fault}");
}

/// A generic address is in local memory in some lanes and in global memory in others; the lanes that do not run the
/// access have no valid address.
#[test]
fn generic_addresses_of_local_and_global_memory_at_once() {
    for (global_lanes, skipped_lanes) in [
        (0_u32, 0_u32),
        (0x5555_5555, 0),
        (0xaaaa_aaaa, 0),
        (0, 0x8000_0001),
        (6, 0x11),
    ] {
        let got = words(
            &format!(
                ".visible .entry k(.param .u64 out) {{
                    .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .local .align 16 .b8 own[64];
                    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
                    mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2; cvta.global.u64 %rd3, %rd1;
                    mov.u64 %rd4, own; cvta.local.u64 %rd4, %rd4; and.b32 %r2, %r1, 3; mul.wide.u32 %rd5, %r2, 16;
                    add.u64 %rd4, %rd4, %rd5;
                    shr.u32 %r3, {global_lanes}, %r1; and.b32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0;
                    selp.b64 %rd6, %rd3, %rd4, %p1;
                    shr.u32 %r4, {skipped_lanes}, %r1; and.b32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0;
                    selp.b64 %rd6, 1, %rd6, %p2;
                    @%p2 bra SKIP;
                    add.u32 %r5, %r1, 100; cvt.u16.u32 %h1, %r1;
                    st.u32 [%rd6], %r5; st.v2.u32 [%rd6+8], {{%r1, %r5}}; st.u16 [%rd6+4], %h1; st.u16 [%rd6+6], %h1;
                    ld.v4.u32 {{%r6, %r7, %r8, %r9}}, [%rd6];
                    st.global.v4.u32 [%rd1], {{%r6, %r7, %r8, %r9}};
                SKIP: ret;
                }}"
            ),
            1,
            32,
            128,
        );
        for (lane, words) in (0u32..).zip(got.chunks(4)) {
            let wanted = [lane + 100, lane << 16 | lane, lane, lane + 100];
            let skipped = skipped_lanes >> lane & 1 != 0;
            assert_eq!(
                words,
                if skipped { [0; 4] } else { wanted },
                "lane {lane} of {global_lanes:#x}"
            );
        }
    }
}

#[test]
fn a_lane_leaves_its_local_memory() {
    // Only lane 5 has another offset.
    let fault_at = |space: &str, offset: i32| {
        let text = format!(
            "{HEAD}.visible .entry k(.param .u64 out) {{
                .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<4>; .local .align 8 .b8 own[16];
                mov.u32 %r1, %tid.x; mov.u64 %rd1, own; {} add.u64 %rd2, %rd1, {offset};
                setp.eq.u32 %p1, %r1, 5; selp.b64 %rd1, %rd2, %rd1, %p1;
                st{space}.u32 [%rd1], %r1; ret; }}",
            if space.is_empty() {
                "cvta.local.u64 %rd1, %rd1;"
            } else {
                ""
            },
        );
        let mut bench = Bench::text(&text, Isa::best());
        let out = bench.bytes(4);
        Bench::run(bench.launch("k", 1, 32, &[Arg::U64(out)])).fault()
    };
    for space in ["", ".local"] {
        assert!(fault_at(space, 12).is_none(), "{space}");
        for (offset, code) in [(16, 700), (14, 716), (1 << 20, 700)] {
            let fault = fault_at(space, offset).expect("a fault");
            assert_eq!((fault.code(), fault.thread[0]), (code, 5), "{space} {offset}: {fault}");
        }
    }
    let below = fault_at(".local", -4).expect("a fault");
    assert_eq!((below.code(), below.thread[0]), (700, 5), "{below}");
}

/// Two host threads run the blocks.
#[test]
fn atomic_operations_on_128_bits() {
    // Every thread adds 1 to the lower half of a counter and subtracts 1 from the upper half, by compare-and-swap.
    let text = ".visible .entry k(.param .u64 out) {
            .reg .pred %p<4>; .reg .b64 %rd<12>; .reg .b128 %q<6>;
            ld.param.u64 %rd1, [out];
            ld.global.v2.u64 {%rd2, %rd3}, [%rd1];
        L:  mov.b128 %q1, {%rd2, %rd3};
            add.u64 %rd4, %rd2, 1; sub.u64 %rd5, %rd3, 1;
            mov.b128 %q2, {%rd4, %rd5};
            atom.global.cas.b128 %q3, [%rd1], %q1, %q2;
            mov.b128 {%rd6, %rd7}, %q3;
            setp.ne.u64 %p1, %rd6, %rd2; setp.ne.or.u64 %p2, %rd7, %rd3, %p1;
            mov.u64 %rd2, %rd6; mov.u64 %rd3, %rd7;
            @%p2 bra L;
            ret;
        }";
    on_each_isa(|isa| {
        let mut bench = Bench::text(&format!("{HEAD}{text}"), isa);
        let out = bench.put(&[0u64; 4], u64::to_le_bytes);
        let mut launch = bench.launch("k", 8, 64, &[Arg::U64(out)]);
        launch.options.parallel = true;
        let execution = launch.start();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| execution.work(u64::MAX));
            }
        });
        assert_eq!(execution.fault().map(|f| f.to_string()), None);
        let got = bench.get(out, 4, u64::from_le_bytes);
        assert_eq!(got, [512, 512u64.wrapping_neg(), 0, 0]);
        // A misaligned access faults.
        let fault = Bench::run(bench.launch("k", 1, 1, &[Arg::U64(out + 8)])).fault();
        assert_eq!(fault.expect("a fault").code(), 716);
    });
}
