//! Bulk copies, and stores and reductions that complete on an mbarrier.

use super::{Arg, Bench, on_each_isa};
use crate::Isa;

fn module(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n\
        .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;\n\
        .visible .entry k(.param .u64 out) {{\n\
        .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<16>; .reg .f32 %f<4>; .reg .b64 %rd<8>;\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, bar;\n\
        mov.u32 %r3, tile; @!%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;\n{body}\nret; }}"
    )
}

const WAIT: &str = "
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra W;";

#[test]
fn bulk_copies_to_and_from_shared_memory() {
    // Thread 0 copies 256 bytes to shared memory, all threads wait for them, each adds 1 to its word, and thread 0
    // copies the words to global memory. Then it copies 32 bytes within shared memory, waits for them, and copies them
    // to global memory.
    for form in [
        "shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r2];",
        "shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], %r4, [bar];",
        "shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r3], [%rd1], %r4, [%r2], %h1, %rd2;",
    ] {
        let text = module(&format!(
            "@%p1 bra W; mov.u32 %r4, 256; mov.b16 %h1, 1; createpolicy.fractional.L2::evict_first.b64 %rd2, 1.0;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
            cp.async.bulk.{form} {WAIT}
            shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r3; ld.shared.u32 %r6, [%r5]; add.u32 %r6, %r6, 1; st.shared.u32 [%r5], %r6;
            fence.proxy.async; bar.sync 0; @%p1 ret;
            cp.async.bulk.global.shared::cta.bulk_group [%rd1+256], [%r3], 256;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
            cp.async.bulk.prefetch.L2.global [%rd1], 32;
            mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 32;
            cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [%r3+128], 32, [%r2];
            W2: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 1; @!%p2 bra W2;
            cp.async.bulk.global.shared::cta.bulk_group [%rd1+512], [%r3], 32;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        ));
        on_each_isa(|isa| {
            let mut bench = Bench::text(&text, isa);
            let words: Vec<u32> = (0..144).map(|i| if i < 64 { i * 3 } else { 0 }).collect();
            let out = bench.put(&words, u32::to_le_bytes);
            bench.run_well("k", 1, 64, &[Arg::U64(out)]);
            let got = bench.get(out, 144, u32::from_le_bytes);
            assert_eq!(got[..64], words[..64]);
            assert!((0..64).all(|i| got[64 + i as usize] == i * 3 + 1), "{got:?}");
            assert!((0..8).all(|i| got[128 + i as usize] == (i + 32) * 3 + 1));
            assert_eq!(got[136..], [0; 8]);
        });
    }
}

#[test]
fn bulk_reductions() {
    let text = module(
        "shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r3;
        cvt.rn.f32.u32 %f1, %r1; st.shared.f32 [%r5], %f1; st.shared.u32 [%r5+128], %r1;
        bar.sync 0; @%p1 ret;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r3], 128;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%rd1+128], [%r3+128], 128;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64 [%rd1+256], [%r3+128], 64;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%rd1+320], [%r3+128], 16;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r3+192], [%r3+128], 64, [%r2];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra W;
        ld.shared.u32 %r6, [%r3+200]; st.global.u32 [%rd1+336], %r6;",
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let mut words: Vec<u32> = (0..32).map(|i| (i as f32 * 0.5).to_bits()).collect();
        words.extend((0..32).map(|i| if i % 2 == 0 { 1000 } else { -5i32 as u32 }));
        words.extend([0x00ff_00ff; 16]);
        words.extend([0, 0, 2, 7, 0, 0]);
        let out = bench.put(&words, u32::to_le_bytes);
        bench.run_well("k", 1, 32, &[Arg::U64(out)]);
        let got = bench.get(out, words.len(), u32::from_le_bytes);
        for i in 0..32u32 {
            assert_eq!(f32::from_bits(got[i as usize]), i as f32 * 1.5);
            assert_eq!(got[32 + i as usize], if i % 2 == 0 { 1000 } else { i });
        }
        assert!((0..16u32).all(|i| got[64 + i as usize] == 0x00ff_00ff ^ i));
        // `inc` counts up to the number in shared memory, then starts again from zero.
        assert_eq!(got[80..84], [0, 1, 0, 0]);
        // Word 18, to which word 2 was added: before, each word was its number.
        assert_eq!(got[84], 18 + 2);
    });
}

#[test]
fn asynchronous_stores_and_reductions() {
    let text = module(&format!(
        "@%p1 bra W; mov.u32 %r4, 7; mov.f32 %f1, 0f3f800000;
        mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 32;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r4, [%r2];
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r3+16], {{%f1, %f1, %f1, %f1}}, [%r2];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3], 5, [%r2];
        mov.u64 %rd3, -2;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [%r3+8], %rd3, [%r2];
        {WAIT} ld.shared.v2.u32 {{%r5, %r6}}, [%r3]; @%p1 ret; st.global.v2.u32 [%rd1], {{%r5, %r6}};
        ld.shared.v2.u32 {{%r5, %r6}}, [%r3+8]; ld.shared.v2.u32 {{%r7, %r8}}, [%r3+16];
        st.global.v4.u32 [%rd1+16], {{%r5, %r6, %r7, %r8}};"
    ));
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(32);
        let launch = || bench.launch("k", 1, 32, &[Arg::U64(out)]);
        // An H200 faults on these instructions in launches without clusters.
        let fault = Bench::run(launch()).fault();
        assert_eq!(fault.map(|f| f.code()), Some(715));
        let mut launch = launch();
        launch.options.cluster = Some([1; 3]);
        assert_eq!(Bench::run(launch).fault(), None);
        let one = 1.0f32.to_bits();
        let got = bench.get(out, 8, u32::from_le_bytes);
        assert_eq!(got[..2], [12, 0]);
        assert_eq!(got[4..], [u32::MAX - 1, u32::MAX, one, one]);
    });
}

#[test]
fn bulk_copies_that_are_misaligned_or_leave_their_memory_fault() {
    let copy = "cp.async.bulk.global.shared::cta.bulk_group";
    for (body, code) in [
        (format!("{copy} [%rd1+8], [%r3], 16;"), 716),
        (format!("{copy} [%rd1], [%r3+4], 16;"), 716),
        (format!("mov.u32 %r4, 24; {copy} [%rd1], [%r3], %r4;"), 716),
        (format!("{copy} [%rd1], [%r3], 4096;"), 715),
        (format!("mov.u32 %r4, 128; {copy} [%rd1], [%r3], %r4;"), 700),
    ] {
        let mut bench = Bench::text(&module(&body), Isa::best());
        let out = bench.bytes(64);
        let fault = Bench::run(bench.launch("k", 1, 1, &[Arg::U64(out)])).fault();
        assert_eq!(fault.map(|f| f.code()), Some(code), "{body}");
    }
}

#[test]
fn faults_name_the_operands_of_the_program() {
    let copy = "mov.u32 %r4, 24; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], %r4;";
    let arrive = "mov.u64 %rd3, 4660; mbarrier.arrive.b64 %rd4, [%rd3];";
    for (body, code, expected) in [
        (copy, 716, "bulk copy of 24 bytes, which is not a multiple of 16 bytes"),
        (
            arrive,
            715,
            "mbarrier at generic address 0x1234, which is not in shared memory",
        ),
    ] {
        let mut bench = Bench::text(&module(body), Isa::best());
        let out = bench.bytes(64);
        let fault = Bench::run(bench.launch("k", 1, 1, &[Arg::U64(out)])).fault();
        let fault = fault.expect("a fault");
        let text = fault.to_string();
        assert!(fault.code() == code && text.contains(expected), "{text}");
    }
}
