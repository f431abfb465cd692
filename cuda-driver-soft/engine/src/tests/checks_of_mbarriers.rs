//! Tests of the race checker with mbarriers, and with the bulk copies that they complete.

use super::checks::checks_of_module;
use super::{Arg, Bench};
use crate::Isa;
use crate::check::{Checker, Checks};

/// Warp 0 waits for the two arrivals of a thread of warp 1, which writes a word between them.
#[test]
fn a_wait_at_an_mbarrier_does_not_publish_accesses_before_it() {
    let kernel = |before: &str, behind: &str| {
        format!(
            ".version 8.0
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 out) {{
                .reg .pred %p<2>;
                .reg .b32 %r<5>;
                .reg .b64 %rd<4>;
                .shared .align 8 .b64 bar;
                .shared .align 4 .b32 word;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, bar;
                mov.u32 %r3, word;
                mov.u32 %r4, 0;
                setp.ne.u32 %p0, %r1, 0;
                @%p0 bra READY;
                mbarrier.init.shared.b64 [%r2], 2;
                st.shared.u32 [%r3], 0;
            READY:
                bar.sync 0;
                setp.lt.u32 %p0, %r1, 32;
                @%p0 bra CONSUME;
                setp.ne.u32 %p0, %r1, 32;
                @%p0 bra DONE;
                mbarrier.arrive.shared.b64 %rd2, [%r2];
                st.shared.u32 [%r3], 7;
                mbarrier.arrive.shared.b64 %rd2, [%r2];
                bra DONE;
            CONSUME:
                {before}
            WAIT:
                mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
                @!%p1 bra WAIT;
                {behind}
                mad.wide.u32 %rd3, %r1, 4, %rd1;
                st.global.u32 [%rd3], %r4;
            DONE:
                ret;
            }}"
        )
    };
    let read = "ld.shared.u32 %r4, [%r3];";
    for (before, behind, races) in [("", read, 0), (read, "", 1)] {
        let found = checks_of_module(&kernel(before, behind), (1, 64), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "before: {before}, behind: {behind}");
    }
}

#[test]
fn an_mbarrier_must_be_initialised_before_other_threads_use_it() {
    let kernel = |wait: &str| {
        format!(
            ".version 8.0
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 out) {{
                .reg .pred %p;
                .reg .b32 %r<3>;
                .reg .b64 %rd;
                .shared .align 8 .b64 bar;
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, bar;
                setp.ne.u32 %p, %r1, 0;
                @%p bra READY;
                mbarrier.init.shared.b64 [%r2], 64;
            READY:
                {wait}
                mbarrier.arrive.shared.b64 %rd, [%r2];
                ret;
            }}"
        )
    };
    for (wait, races) in [("bar.sync 0;", 0), ("", 1)] {
        let found = checks_of_module(&kernel(wait), (1, 64), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "{wait}");
    }
}

/// The first thread of a cluster copies 64 bytes to the shared memory of both blocks.
#[test]
fn a_copy_to_several_blocks_is_ordered_by_the_mbarrier_of_each() {
    let kernel = |wait: &str| {
        format!(
            ".version 8.0
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 out) {{
                .reg .pred %p;
                .reg .b16 %h;
                .reg .b32 %r<8>;
                .reg .b64 %rd<4>;
                .shared .align 16 .b8 place[64];
                .shared .align 8 .b64 bar;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, place;
                mov.u32 %r3, bar;
                setp.ne.u32 %p, %r1, 0;
                @%p bra READY;
                mbarrier.init.shared.b64 [%r3], 1;
                mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], 64;
            READY:
                barrier.cluster.arrive;
                barrier.cluster.wait;
                mov.u32 %r4, %cluster_ctarank;
                or.b32 %r4, %r4, %r1;
                setp.ne.u32 %p, %r4, 0;
                @%p bra WAIT;
                mov.u16 %h, 3;
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
                    [%r2], [%rd1], 64, [%r3], %h;
            WAIT:
                {wait}
                mad.lo.u32 %r5, %r1, 4, %r2;
                ld.shared.u32 %r6, [%r5];
                mov.u32 %r7, %ctaid.x;
                mad.lo.u32 %r7, %r7, 16, %r1;
                mad.wide.u32 %rd3, %r7, 4, %rd1;
                st.global.u32 [%rd3+64], %r6;
                barrier.cluster.arrive;
                barrier.cluster.wait;
                ret;
            }}"
        )
    };
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p, [%r3], 0; @!%p bra WAIT;";
    for (wait, races) in [(wait, 0), ("", 1)] {
        let mut bench = Bench::text(&kernel(wait), Isa::best());
        let checker = Checker::new(Checks::KERNELS);
        let out = bench.put(&[7_u32; 48], u32::to_le_bytes);
        let mut launch = bench.launch("k", 2, 16, &[Arg::U64(out)]);
        launch.options.cluster = Some([2, 1, 1]);
        launch.options.observers = checker.observers();
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        assert_eq!(bench.get(out, 48, u32::from_le_bytes), [7; 48]);
        let found: Vec<_> = checker.findings().iter().map(|f| f.check).collect();
        assert_eq!(found, vec![Checks::RACE; races], "{wait}");
    }
}

/// A thread copies 64 bytes to shared memory, and signals an mbarrier for which 16 threads wait.
#[test]
fn a_bulk_copy_needs_a_wait() {
    let kernel = |before: &str, wait: &str| {
        format!(
            ".version 8.0
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 out) {{
                .reg .pred %p<2>;
                .reg .b32 %r<6>;
                .reg .b64 %rd<4>;
                .shared .align 16 .b8 place[64];
                .shared .align 8 .b64 bar;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, place;
                mov.u32 %r3, bar;
                mad.lo.u32 %r4, %r1, 4, %r2;
                st.shared.u32 [%r4], 1;
                {before}
                setp.ne.u32 %p0, %r1, 0;
                @%p0 bra WAIT;
                mbarrier.init.shared.b64 [%r3], 1;
                mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], 64;
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [%r3];
            WAIT:
                {wait}
                ld.shared.u32 %r5, [%r4];
                mad.wide.u32 %rd3, %r1, 4, %rd1;
                st.global.u32 [%rd3+64], %r5;
                ret;
            }}"
        )
    };
    let wait = "bar.sync 0; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra AGAIN;";
    for (before, wait, races) in [
        ("bar.sync 0;", wait, 0),
        ("bar.sync 0;", "bar.sync 0;", 1),
        ("", wait, 1),
    ] {
        let found = checks_of_module(&kernel(before, wait), (1, 16), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "{before} {wait}");
    }
}
