//! Operands of unusual forms: negated predicates, cache policies, long vectors, registers that are wider than the
//! operand, and parts of 8 bits or fewer.

use super::{Arg, Bench, on_each_isa};
use crate::FaultKind;

/// Runs a body in one warp, and returns `%r10` to `%r13` of each lane. In the body, `%rd1` is the address of the
/// output, `%r0` is the lane, and `%rd2` is the address of its 16 bytes of output.
fn run(body: &str) -> Vec<[u32; 4]> {
    let text = format!(
        ".version 8.8\n.target sm_100\n.address_size 64
        .global .align 128 .b8 room[2048];
        .visible .entry k(.param .u64 out) {{
            .reg .b64 %rd<8>; .reg .b32 %r<40>; .reg .pred %p<8>; .reg .b16 %h<9>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r0, %tid.x;
            mul.wide.u32 %rd2, %r0, 16;
            add.u64 %rd2, %rd1, %rd2;
            {body}
            st.global.v4.u32 [%rd2], {{%r10, %r11, %r12, %r13}};
            ret;
        }}"
    );
    let words = Bench::words(&text, 1, 32, 128, u64::MAX);
    words.chunks(4).map(|w| [w[0], w[1], w[2], w[3]]).collect()
}

#[test]
fn negated_predicates() {
    let got = run("and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 1;
        and.b32 %r2, %r0, 2; setp.eq.u32 %p2, %r2, 2;
        and.pred %p3, !%p1, %p2;
        or.pred %p4, %p1, !%p2;
        xor.pred %p5, !%p1, !%p2;
        not.pred %p6, !%p1;
        selp.u32 %r10, 7, 8, !%p1;
        selp.u32 %r11, 1, 0, %p3; selp.u32 %r12, 2, 0, %p4; add.u32 %r11, %r11, %r12;
        selp.u32 %r12, 4, 0, %p5; add.u32 %r11, %r11, %r12;
        selp.u32 %r12, 8, 0, %p6; add.u32 %r11, %r11, %r12;
        setp.ge.and.u32 %p7, %r0, 16, !%p1;
        selp.u32 %r12, 1, 0, %p7;
        mov.u32 %r13, 0;
        @%p2 and.pred %p1, !%p1, !%p2;
        selp.u32 %r13, 1, 0, !%p1;");
    for (i, words) in got.iter().enumerate() {
        let (p, q) = (i & 1 == 1, i & 2 == 2);
        let bits = [!p && q, p || !q, p ^ q, p];
        let bits = (0..4).map(|k| u32::from(bits[k]) << k).sum();
        let last = if q { true } else { !p };
        let expected = [if p { 8 } else { 7 }, bits, u32::from(i >= 16 && !p), u32::from(last)];
        assert_eq!(*words, expected, "lane {i}");
    }
}

#[test]
fn lop3_with_a_predicate() {
    let got = run("and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 1;
        lop3.and.b32 %r10|%p2, %r0, 12, 0, 0xc0, %p1;
        lop3.or.b32 _|%p3, %r0, 12, 0, 0xc0, !%p1;
        selp.u32 %r11, 1, 0, %p2;
        selp.u32 %r12, 1, 0, %p3;
        mov.u32 %r13, %r0;");
    for (i, words) in got.iter().enumerate() {
        let (both, p) = (i as u32 & 12, i & 1 == 1);
        let expected = [both, u32::from(both != 0 && p), u32::from(both != 0 || !p), i as u32];
        assert_eq!(*words, expected, "lane {i}");
    }
}

#[test]
fn cache_policies_are_ignored() {
    let got = run("mov.u64 %rd5, 0x1234567812345678;
        add.u32 %r1, %r0, 100;
        st.global.L2::cache_hint.u32 [%rd2], %r1, %rd5;
        atom.global.add.L2::cache_hint.u32 %r10, [%rd2], 5, %rd5;
        red.global.max.L2::cache_hint.u32 [%rd2], 120, %rd5;
        atom.global.cas.b32 %r11, [%rd2], 120, 9;
        ld.global.L2::cache_hint.u32 %r12, [%rd2], %rd5;
        st.global.L2::cache_hint.u64 [%rd2], %rd5, %rd5;
        ld.global.u32 %r13, [%rd2+8];");
    for (i, words) in (0..).zip(&got) {
        let grown = (i + 105u32).max(120);
        let left = if grown == 120 { 9 } else { grown };
        assert_eq!(*words, [i + 100, grown, left, 0], "lane {i}");
    }
}

#[test]
fn vectors_of_eight() {
    let got = run(
        "mul.wide.u32 %rd3, %r0, 64; mov.u64 %rd4, room; add.u64 %rd3, %rd3, %rd4;
        mov.u32 %r20, %r0; add.u32 %r21, %r0, 1; add.u32 %r22, %r0, 2; add.u32 %r23, %r0, 3;
        add.u32 %r24, %r0, 4; add.u32 %r25, %r0, 5; add.u32 %r26, %r0, 6; add.u32 %r27, %r0, 7;
        st.global.v8.b16 [%rd3+16], {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27};
        ld.global.v8.u16 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, [%rd3+16];
        ld.global.u16 %r10, [%rd3+30];
        mov.u32 %r11, %r30; mov.u32 %r12, %r35; mov.u32 %r13, %r37;",
    );
    for (i, words) in (0..).zip(&got) {
        assert_eq!(*words, [i + 7, i, i + 5, i + 7u32], "lane {i}");
    }
}

#[test]
fn vectors_of_256_bits() {
    let got = run(".reg .b64 %w<5>;
        mul.wide.u32 %rd3, %r0, 64; mov.u64 %rd4, room; add.u64 %rd3, %rd3, %rd4;
        mov.u32 %r20, %r0; add.u32 %r21, %r0, 1; add.u32 %r22, %r0, 2; add.u32 %r23, %r0, 3;
        add.u32 %r24, %r0, 4; add.u32 %r25, %r0, 5; add.u32 %r26, %r0, 6; add.u32 %r27, %r0, 7;
        st.global.v8.b32 [%rd3+32], {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27};
        ld.relaxed.gpu.v4.u64 {%w1, %w2, %w3, %w4}, [%rd3+32];
        st.v4.b64 [%rd3], {%w4, %w3, %w2, %w1};
        ld.global.nc.v8.u32 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, [%rd3];
        ld.global.u32 %r10, [%rd3+60];
        mov.u32 %r11, %r30; mov.u32 %r12, %r35; mov.u32 %r13, %r36;");
    for (i, words) in (0..).zip(&got) {
        assert_eq!(*words, [i + 7, i + 6, i + 3, i], "lane {i}");
    }
}

/// The address of a vector of 256 bits must be a multiple of 32.
#[test]
fn vectors_of_256_bits_are_aligned() {
    on_each_isa(|isa| {
        let text = ".version 8.8\n.target sm_100\n.address_size 64
            .visible .entry k(.param .u64 out) {
                .reg .b64 %rd<2>; .reg .b32 %r<8>;
                ld.param.u64 %rd1, [out];
                ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1+16];
                ret;
            }";
        let mut bench = Bench::text(text, isa);
        let out = bench.bytes(64);
        let launch = bench.launch("k", 1, 32, &[Arg::U64(out)]);
        let fault = Bench::run(launch)
            .fault()
            .expect("the address is a multiple of 16 only");
        assert!(matches!(fault.kind, FaultKind::Misaligned { .. }), "{fault:?}");
    });
}

#[test]
fn a_vector_of_eight_may_replace_its_address() {
    let got = run(".reg .b64 %w<8>;
        mul.wide.u32 %rd3, %r0, 64; mov.u64 %rd4, room; add.u64 %rd3, %rd3, %rd4;
        mov.u32 %r20, %r0; mov.u32 %r21, 1; add.u32 %r25, %r0, 100; mov.u32 %r27, 7;
        st.global.v2.u16 [%rd3], {%r20, %r21};
        st.global.u16 [%rd3+10], %r25;
        st.global.u16 [%rd3+14], %r27;
        ld.global.v8.u16 {%rd3, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%rd3];
        cvt.u32.u64 %r10, %rd3; cvt.u32.u64 %r11, %w1; cvt.u32.u64 %r12, %w5; cvt.u32.u64 %r13, %w7;");
    for (i, words) in (0..).zip(&got) {
        assert_eq!(*words, [i, 1, i + 100, 7u32], "lane {i}");
    }
}

#[test]
fn atomic_operations_on_vectors() {
    let got = run(
        "mov.u32 %r1, 0x3F800000; mov.u32 %r2, 0x40000000; mov.u32 %r3, 0x40400000;
        add.u64 %rd3, %rd1, 0;
        mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 atom.global.add.v4.f32 {%r10, %r11, %r12, %r13}, [%rd2], {%r1, %r2, %r3, %r1};
        @%p1 atom.global.add.v2.f32 {%r10, _}, [%rd2+8], {%r1, %r2};
        @%p1 red.global.add.v2.f32 [%rd2+8], {%r1, %r2};
        @%p1 ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd2];",
    );
    let floats = got[0].map(f32::from_bits);
    assert_eq!(floats, [1.0, 2.0, 3.0 + 1.0 + 1.0, 1.0 + 2.0 + 2.0]);
}

#[test]
fn results_of_an_atomic_operation_on_a_vector_may_be_its_operands() {
    let got = run(
        "mov.u32 %r1, 0x3F800000; mov.u32 %r2, 0x40000000; mov.u32 %r3, 0x40400000;
        st.global.v2.u32 [%rd2], {%r3, %r3};
        atom.global.add.v2.f32 {%r2, %r1}, [%rd2], {%r1, %r2};
        ld.global.v2.u32 {%r10, %r11}, [%rd2];
        mov.u32 %r12, %r1; mov.u32 %r13, %r2;",
    );
    for words in got {
        assert_eq!(words.map(f32::from_bits), [4.0, 5.0, 3.0, 3.0]);
    }
}

#[test]
fn two_sources_with_scratch_rows() {
    // Values in registers wider than the operand, and special registers that change while they are read.
    let got = run("mov.b64 %rd3, 0x123456783f800000; mov.b64 %rd4, 0x9abcdef040000000;
        cvt.rn.f16x2.f32 %r10, %rd3, %rd4;
        cvt.rn.relu.f16x2.f32 %rd4, %rd4, %rd3; setp.ne.u64 %p1, %rd4, 0x40003c00; @%p1 trap;
        mov.b64 %rd5, {%r0, %clock}; mov.b64 {%r11, %r12}, %rd5;
        mov.b64 %rd6, {%clock, %clock_hi}; mov.b64 {%r1, %r13}, %rd6;");
    for (lane, words) in (0u32..).zip(&got) {
        assert_eq!(words[..2], [0x3c00_4000, lane]);
        assert!(words[2] > 0 && words[3] == 0, "{words:?}");
    }
}

#[test]
fn small_integers_are_packed() {
    let got = run("mov.u32 %r1, 0xabcdef12; mov.u32 %r2, 99; mov.u32 %r3, -3;
        cvt.pack.sat.u4.s32.b32 %r10, 7, %r2, %r1;
        cvt.pack.sat.s4.s32.b32 %r11, %r3, %r2, %r1;
        cvt.pack.sat.u2.s32.b32 %r12, 1, %r2, %r1;
        cvt.pack.sat.s2.s32.b32 %r13, %r3, %r2, %r1;");
    assert_eq!(
        got[0],
        [
            0xcdef_1200 | 0x7f,
            0xcdef_1200 | 0xd7,
            0xbcde_f120 | 0b0111,
            0xbcde_f120 | 0b1001,
        ]
    );
}

#[test]
fn bytes_are_packed_and_unpacked() {
    let got = run(".reg .b8 %b<8>; mov.b32 %r1, 0x8070605f; mov.b16 %h1, 0xc180;
        mov.b32 {%b0, %b1, %b2, %b3}, %r1; mov.b32 %r10, {%b3, %b0, %b1, %b2};
        mov.b16 {%b4, %b5}, %h1; mov.b16 %h2, {%b5, %b2}; cvt.u32.u16 %r11, %h2;
        cvt.s32.s8 %r12, %b4;
        mov.b16 %h3, 0xc0a8; cvt.rzi.s8.bf16 %b6, %h3; mov.b16 %h4, {%b6, 0}; cvt.u32.u16 %r13, %h4;");
    assert_eq!(got[9], [0x7060_5f80, 0x70c1, 0xffff_ff80, 0x00fb]);
}
